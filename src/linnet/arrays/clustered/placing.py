"""From arrays to tiles on nodes, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from linnet.algorithms.tsqr import leaf_rows
from linnet.algorithms.tuning import SHORTCUT, tile_size
from linnet.arrays.building import recut
from linnet.arrays.core import ArrayBase, wrap
from linnet.arrays.elementwise import apply
from linnet.arrays.evaluation import computed, persisted, tiled
from linnet.arrays.expression import Stored
from linnet.engines import Engine, Outputs
from linnet.kernels.fortran import promote
from linnet.tiles import Layout, TiledArray

_FEWEST, _SHORTEST = 4, 128
"""Tiles along each axis, and elements along a side of them, below which a matrix is cut anew."""


def is_large(a: Any, tile: int | None, limit: int = SHORTCUT) -> bool:
    """Whether it is one matrix that is worth tiles, or is to have some."""
    shape = np.shape(a)
    if not isinstance(a, ArrayBase) or len(shape) != 2 or 0 in shape:
        return False
    return tile is not None or max(shape) >= limit


def square(a: Any, tile: int | None, kind: str) -> Layout:
    """A cut whose tiles on the diagonal are square: its own, if that is a good one, else a new one."""
    rows, columns = a.node.layout.boundaries
    steps = min(len(rows), len(columns)) - 1
    alike = rows[:steps] == columns[:steps] and (a.shape[0] != a.shape[1] or rows == columns)
    if tile is None and alike and steps >= _FEWEST and rows[1] >= _SHORTEST:
        return a.node.layout
    return Layout.regular(a.shape, tile or tile_size(a.shape, promote(a.dtype), kind))


def leaves(a: Any, tile: int | None) -> Layout:
    """A cut into one column of tiles, each with more rows than columns."""
    rows, columns = a.node.layout.boundaries
    heights = np.diff(rows)
    if tile is None and len(columns) == 2 and len(rows) > 2 and heights[:-1].min() >= a.shape[1]:
        return a.node.layout
    return Layout.regular(a.shape, (max(tile or leaf_rows(a.shape[1]), a.shape[1]), a.shape[1]))


def placed(engine: Engine, a: Any, layout: Layout, dtype: np.dtype[Any] | None = None) -> TiledArray:
    """An array in tiles of this cut, on the nodes if it has to be computed."""
    wanted = promote(a.dtype) if dtype is None else dtype
    array = a if a.dtype == wanted else a.astype(wanted)
    (node,) = persisted([recut(array.node, layout)], engine=engine)
    return tiled(node)


def left(made: Outputs, name: str, layout: Layout, dtype: np.dtype[Any]) -> Any:
    """One array of a run as an array of ours, its tiles where they are."""
    return wrap(Stored(made.left(name, layout, dtype)))


def kept(engine: Engine, a: Any) -> Any:
    """An array, computed, its tiles on the nodes."""
    return wrap(persisted([a.node], engine=engine)[0])


def value(engine: Engine, a: Any) -> Any:
    """What an array is, here."""
    return computed([a.node], engine=engine)[0] if isinstance(a, ArrayBase) else np.asarray(a)


def adjoint(a: Any) -> Any:
    """The conjugate transpose."""
    return apply(np.conjugate, a.mT) if a.dtype.kind == "c" else a.mT
