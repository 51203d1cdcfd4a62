"""QR of any matrix: tall and skinny ones by a tree, all others by panels.

The programs are in `householder` (panels) and `tsqr` (trees).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from linnet.algorithms.householder import completed, projected, qr, qr_at_hand, qr_with_q
from linnet.algorithms.recipe import Output, Recipe, only
from linnet.algorithms.tsqr import leaf_rows, tsqr, tsqr_project, tsqr_with_q
from linnet.programs import TileProgram
from linnet.session.work import Setting
from linnet.tiles import Boundaries, Layout

_SKINNY = 8
"""A matrix with this many times more rows than columns is factorised by a tree."""


def is_skinny(shape: tuple[int, ...]) -> bool:
    """Whether a matrix is so tall that a tree is better than panels."""
    return shape[0] >= _SKINNY * max(1, shape[1])


def leaves(layout: Layout, *, tile: int | None, own: bool) -> Layout:
    """The cut of a skinny matrix into one column of tiles, each but the last with more rows than columns.

    >>> leaves(Layout.regular((100, 3), 7), tile=2, own=False).grid
    (34, 1)
    """
    shape = layout.shape
    rows, columns = layout.boundaries
    tall = len(rows) > 2 and all(b - a >= shape[1] for a, b in list(pairwise(rows))[:-1])
    if tile is None and own and len(columns) == 2 and tall:
        return layout
    height = max(tile or leaf_rows(shape[1]), shape[1], 1)
    return Layout.regular(shape, (height, max(1, shape[1])))


def factors(layout: Layout, dtype: np.dtype[np.generic], *, skinny: bool) -> Recipe:
    """`O`, which is Q, and `R`, of a matrix `A`."""
    rows, columns, edges = _cuts(layout)
    outputs = (("O", Output(Layout((rows, edges)), dtype)), ("R", Output(Layout((edges, columns)), dtype)))
    return Recipe("qr", ("A",), outputs, _by_tree if skinny else _by_panels, _sizes(layout))


def triangle(layout: Layout, dtype: np.dtype[np.generic], *, skinny: bool) -> Recipe:
    """`R` alone; the signs of its rows may be others than those in `factors`."""
    _, columns, edges = _cuts(layout)
    program = tsqr if skinny else qr
    return Recipe(
        "qr", ("A",), (("R", Output(Layout((edges, columns)), dtype)),), only(program), _sizes(layout)
    )


def projection(layout: Layout, right: Layout, dtype: np.dtype[np.generic], *, skinny: bool) -> Recipe:
    """`R` and `X`, which is Qᴴ·B: with as many rows as `A` has, or, by a tree, columns."""
    rows, columns, edges = _cuts(layout)
    height = edges if skinny else rows
    outputs = (
        ("R", Output(Layout((edges, columns)), dtype)),
        ("X", Output(Layout((height, right.boundaries[1])), dtype)),
    )
    sizes = (
        {**dict(_sizes(layout)), "K": right.grid[1]}
        if skinny
        else {**dict(_sizes(layout)), "N": right.grid[1]}
    )
    return Recipe(
        "qr", ("A", "B"), outputs, only(tsqr_project if skinny else projected), tuple(sizes.items())
    )


def complete(layout: Layout, right: Layout, dtype: np.dtype[np.generic]) -> Recipe:
    """`R`, the first columns `O` of a square Q, and `X`, Q times `B`: its others, if B is the identity's."""
    rows, columns, edges = _cuts(layout)
    outputs = (
        ("R", Output(Layout((edges, columns)), dtype)),
        ("O", Output(Layout((rows, edges)), dtype)),
        ("X", Output(Layout((rows, right.boundaries[1])), dtype)),
    )
    sizes = {**dict(_sizes(layout)), "N": right.grid[1]}
    return Recipe("qr", ("A", "B"), outputs, only(completed), tuple(sizes.items()))


def _cuts(layout: Layout) -> tuple[Boundaries, Boundaries, Boundaries]:
    """Where rows and columns are cut, and where the columns of Q and the rows of R are."""
    rows, columns = layout.boundaries
    return rows, columns, (*columns[: min(layout.grid)], min(layout.shape))


def _sizes(layout: Layout) -> tuple[tuple[str, int], ...]:
    rows, columns = layout.grid
    return (("P", rows), ("Q", columns), ("K", min(rows, columns)), ("N", rows))


def _by_panels(setting: Setting, wanted: frozenset[str], sizes: Mapping[str, int]) -> TileProgram:
    return qr_at_hand if setting.at_hand else qr_with_q


def _by_tree(setting: Setting, wanted: frozenset[str], sizes: Mapping[str, int]) -> TileProgram:
    return tsqr_with_q
