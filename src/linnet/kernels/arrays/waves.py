"""Recurrences in two loops, tile by tile: each cell is made of cells above it and to its left.

A tile of the recurrence is given the rows above it and the columns to its left (with the corner), and
gives the last rows and columns of its own besides: edges travel, not tiles. Inside it runs along
diagonals, whose cells do not need each other; the last few diagonals are kept in rows of memory of their
own. What is computed is data: steps of element-wise operations, as in fused kernels. In C where these are
all known there (`compiled/waves.c`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from linnet.kernels.arrays.operations import cast, operation
from linnet.kernels.arrays.waves_in_c import in_c
from linnet.kernels.registry import kernel
from linnet.machine.float_errors import quietly
from linnet.tiles.sparse_tile import scalar_of

Tile = NDArray[Any]
MOST = 3
"""Arrays that a recurrence may write at most."""


def _shapes(*given: Any, halos: Sequence[tuple[int, int]], rims: Any, start: Any, **_: Any) -> Any:
    found: list[tuple[int, ...]] = []
    for number, (high, wide) in enumerate(halos):
        top, left = given[2 * number : 2 * number + 2]
        rows, columns = _rim(rims[number], start, given[-2:])
        found += [(rows + left[0] - high, columns + top[1]), (high, top[1]), (left[0], wide)]
    return tuple(found)


def _rim(rim: tuple[int, int], start: tuple[int, int], first: Sequence[int]) -> tuple[int, int]:
    """Rows and columns that a tile has before those that are computed."""
    return rim[0] if first[0] == start[0] else 0, rim[1] if first[1] == start[1] else 0


def _dtypes(*given: Any, halos: Sequence[tuple[int, int]], **_: Any) -> Any:
    return tuple(given[2 * number] for number in range(len(halos)) for _ in range(3))


def _flops(*given: Any, halos: Any, steps: Any, **_: Any) -> float:
    return float(len(steps)) * (given[1][0] - halos[0][0]) * given[0][1]


def wave(
    *arguments: Any,
    halos: Sequence[tuple[int, int]],
    kinds: Sequence[str],
    reads: Sequence[tuple[int, int, int]],
    constants: Sequence[str],
    steps: Sequence[tuple[Any, ...]],
    results: Sequence[int],
    rims: Sequence[tuple[int, int]],
    start: tuple[int, int],
    into: Tile | None = None,
) -> tuple[Tile, ...]:
    """One tile of a recurrence, and its edges, of each array that is written.

    Arguments are, for each of these, the rows above the tile and the columns to its left with those of the
    rows above; then tiles that are only read, and the values of both loops at the first cell. `halos` says
    how many rows and columns of each are given, `kinds` along which loops the others lie ("i", "j" or "ij"),
    `reads` which array is read, and how far above and to the left. Values are numbered: the two loop
    variables, the tiles that are read, `reads`, `constants`, then the steps; `results` are those that are
    written. Tiles at the upper and left side of the array, where the values of the loops are those of
    `start`, contain as many of the given rows and columns as `rims` says. The first tile goes `into` a place.

    >>> options = dict(
    ...     halos=((1, 1),),
    ...     kinds=(),
    ...     reads=((0, 1, 0), (0, 0, 1)),
    ...     constants=(),
    ...     rims=((0, 0),),
    ...     start=(0, 0),
    ... )
    >>> one = np.ones((1, 3)), np.ones((4, 1))
    >>> wave(*one, 0, 0, steps=(("add", 2, 3),), results=(4,), **options)[0]  # Pascal's triangle
    array([[ 2.,  3.,  4.],
           [ 3.,  6., 10.],
           [ 4., 10., 20.]])
    """
    edges, others = arguments[: 2 * len(halos)], arguments[2 * len(halos) : -2]
    first: tuple[int, int] = arguments[-2:]
    sides = list(zip(edges[::2], edges[1::2], strict=True))
    shape = edges[1].shape[0] - halos[0][0], edges[0].shape[1]
    around = [_rim(rim, start, first) for rim in rims]
    whole = [
        np.empty((shape[0] + rows, shape[1] + columns), top.dtype)
        for (rows, columns), (top, _) in zip(around, sides, strict=True)
    ]
    if into is not None and into.flags.c_contiguous | (into.strides[1] == into.itemsize):
        whole[0] = into
    tiles = [each[rows:, columns:] for each, (rows, columns) in zip(whole, around, strict=True)]
    numbers = [scalar_of(each) for each in constants]
    if not in_c(tiles, sides, others, first, halos, kinds, reads, numbers, steps, results):
        quietly(in_numpy, tiles, sides, others, first, halos, kinds, reads, numbers, steps, results)
    found: list[Tile] = []
    for tile, all_of, rim, (top, left), (high, wide) in zip(tiles, whole, around, sides, halos, strict=True):
        above = np.hstack([left[:high], top])
        if rim[0]:
            all_of[: rim[0]] = above[:, wide - rim[1] :]
        if rim[1]:
            all_of[rim[0] :, : rim[1]] = left[high:]
        beside = np.hstack([left[high:], tile[:, -wide:]])
        bottom = tile[-high:] if tile.shape[0] >= high else np.vstack([top, tile])[-high:]
        found += [all_of, bottom.copy(), np.vstack([above[:, -wide:], beside[:, -wide:]])]
    return tuple(found)


def in_numpy(
    tiles: Sequence[Tile], sides: Any, others: Any, first: tuple[int, int], halos: Any, kinds: Any,
    reads: Any, constants: Any, steps: Any, results: Any,
) -> None:  # fmt: skip
    """Fill tiles, diagonal by diagonal."""
    height, width = tiles[0].shape
    rings = [_Ring(top, left, *halo) for (top, left), halo in zip(sides, halos, strict=True)]
    down = np.arange(first[0], first[0] + height)
    across = np.arange(first[1] + width - 1, first[1] - 1, -1)
    loaded = [
        each[::-1] if kind == "j" else np.ascontiguousarray(each)
        for each, kind in zip(others, kinds, strict=True)
    ]
    called = [
        (cast(step[-1]), step[1:-1]) if step[0] == "cast" else (operation(step[0]), step[1:])
        for step in steps
    ]
    for diagonal in range(height + width - 1):
        low, high = max(0, diagonal - width + 1), min(height, diagonal + 1)
        turned = slice(width - 1 - diagonal + low, width - 1 - diagonal + high)
        values: list[Any] = [down[low:high], across[turned]]
        for each, kind in zip(loaded, kinds, strict=True):
            if kind == "ij":
                values.append(_along(each, low, high, diagonal))
            else:
                values.append(each[low:high] if kind == "i" else each[turned])
        values += [rings[which].read(diagonal - up - back, low - up, high - up) for which, up, back in reads]
        values += constants
        for what, places in called:
            values.append(what.function(*(np.asarray(values[place]) for place in places)))
        for tile, ring, result in zip(tiles, rings, results, strict=True):
            row = ring.row(diagonal)
            row[low + ring.high : high + ring.high] = values[result]
            _along(tile, low, high, diagonal)[...] = row[low + ring.high : high + ring.high]


def _along(tile: Tile, low: int, high: int, diagonal: int) -> Tile:
    """The cells of a diagonal, in some rows, as a view."""
    down, right = tile.strides
    return as_strided(tile[low:, diagonal - low :], (high - low,), (down - right,))


class _Ring:
    """The last diagonals of an array, each a row of memory by rows of the tile; edges are put in."""

    def __init__(self, top: Tile, left: Tile, high: int, wide: int) -> None:
        self.top, self.left, self.high, self.wide = top, left, high, wide
        self.rows = [np.zeros(left.shape[0], top.dtype) for _ in range(high + wide + 1)]
        for diagonal in range(-high - wide, 0):
            self.row(diagonal)

    def row(self, diagonal: int) -> Tile:
        """The memory of a diagonal, with what lies on it of the edges."""
        row = self.rows[diagonal % len(self.rows)]
        height, width = self.left.shape[0] - self.high, self.top.shape[1]
        for r in range(-self.high, 0):
            c = diagonal - r
            if 0 <= c < width:
                row[r + self.high] = self.top[r + self.high, c]
            elif -self.wide <= c < 0:
                row[r + self.high] = self.left[r + self.high, c + self.wide]
        for c in range(-self.wide, 0):
            r = diagonal - c
            if 0 <= r < height:
                row[r + self.high] = self.left[r + self.high, c + self.wide]
        return row

    def read(self, diagonal: int, low: int, high: int) -> Tile:
        """Its cells in some rows."""
        return self.rows[diagonal % len(self.rows)][low + self.high : high + self.high]


for _count in range(1, MOST + 1):
    kernel(f"wave{_count}", outputs=3 * _count, shape=_shapes, dtype=_dtypes, flops=_flops, into=True)(wave)
