"""Where the largest or smallest element is: argmax and argmin, tile by tile.

A tile gives its best value and that value's position in the whole array; joining keeps the better
of two, and of equals the one that comes first. As in NumPy, NaN and NaT are better than any number.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.kernels.registry import kernel
from linnet.machine.float_errors import quietly

Tile = NDArray[Any]

_SEARCH = {"max": (np.argmax, np.greater), "min": (np.argmin, np.less)}


def _search(kind: str) -> Any:
    try:
        return _SEARCH[kind.removeprefix("arg")]
    except KeyError:
        raise ValueError(f"kind={kind!r} is not known; expected 'max' or 'min'") from None


def _kept(shape: Sequence[int], axis: int | None) -> tuple[int, ...]:
    if axis is None:
        return (1,) * len(shape)
    return tuple(1 if each == axis % len(shape) else length for each, length in enumerate(shape))


def _arg_shapes(x: Sequence[int], *starts: int, axis: int | None = None, **_: Any) -> list[tuple[int, ...]]:
    return [_kept(x, axis)] * 2


@kernel(
    "arg_tile",
    shape=_arg_shapes,
    dtype=lambda x, *starts, **attributes: [x, np.dtype(np.intp)],
    flops=lambda x, *starts, **attributes: float(math.prod(x)),
)
def arg_tile(
    x: Tile, *starts: int, kind: str, axis: int | None = None, shape: Sequence[int] | None = None
) -> list[Tile]:
    """The best values of a tile and their positions in the whole array, folded axes kept with length 1.

    With an axis, `starts` is where the tile begins along it (the length of the whole axis may follow;
    it is not needed). Without, `starts` is where the tile begins along every axis, `shape` is that of
    the whole array, and positions count its elements in C order.

    >>> arg_tile(np.array([[3, 9], [9, 1]]), 10, kind="max", axis=1)
    [array([[9],
           [9]]), array([[11],
           [10]])]
    >>> arg_tile(np.array([[3, 9], [9, 1]]), 0, 2, kind="min", shape=(2, 4))
    [array([[1]]), array([[7]])]
    """
    find, _ = _search(kind)
    if axis is not None:
        if len(starts) not in (1, 2):
            raise ValueError(f"arg_tile along axis {axis} expects where the tile starts there, got {starts}")
        local = find(x, axis=axis, keepdims=True)
        return [np.take_along_axis(x, local, axis), local + starts[0]]
    if shape is None or len(starts) != x.ndim or len(shape) != x.ndim:
        raise ValueError(
            f"arg_tile without an axis expects a start for each of the {x.ndim} axes and the shape of the "
            f"whole array; got starts {starts} and shape={shape}"
        )
    place = np.unravel_index(find(x), x.shape) if x.ndim else ()
    position = 0
    for index, start, length in zip(place, starts, shape, strict=True):
        position = position * length + int(index) + start
    kept = _kept(x.shape, None)
    return [x[place].reshape(kept).copy(), np.full(kept, position, np.intp)]


def _pairs(values: Any, indices: Any) -> list[tuple[Tile, Tile]]:
    """Values with their positions, in order, from nested lists."""
    if not isinstance(values, list):
        return [(values, indices)]
    if not values:
        raise ValueError("arg_join got an empty range of tiles; there is nothing to join")
    return [pair for value, index in zip(values, indices, strict=True) for pair in _pairs(value, index)]


def _better(beats: Any, left: tuple[Tile, Tile], right: tuple[Tile, Tile]) -> tuple[Tile, Tile]:
    (x, i), (y, j) = left, right
    take = beats(y, x) | ((y == x) & (j < i))
    if x.dtype.kind in "fcmM":
        lost, wins = np.isnan(x), np.isnan(y)
        take = np.where(lost, wins & (j < i), wins | take)
    return np.where(take, y, x), np.where(take, j, i)


def _join_shape(values: Any, indices: Any, *, drop: Sequence[int] = (), **_: Any) -> tuple[int, ...]:
    while isinstance(values, list):
        values = values[0]
    axes = {axis % len(values) for axis in drop}
    return tuple(length for axis, length in enumerate(values) if axis not in axes)


@kernel(
    "arg_join",
    shape=_join_shape,
    dtype=lambda values, indices, **attributes: np.dtype(np.intp),
    flops=lambda values, indices, **attributes: 0.0,
)
def arg_join(
    values: Any, indices: Any, *, kind: str, axis: int | None = None, drop: Sequence[int] = ()
) -> Tile:
    """The positions of the best of many tiles, from what `arg_tile` gives of each (nested lists); then
    the axes in `drop` go. Of equals, the first position wins, in whatever order the tiles come.

    >>> tiles = [arg_tile(np.array(x), start, kind="max", axis=0) for x, start in (([1, 7], 0), ([7, 2], 2))]
    >>> values, indices = map(list, zip(*tiles))
    >>> arg_join(values, indices, kind="max", axis=0, drop=(0,))
    array(1)
    """
    _, beats = _search(kind)
    better = functools.partial(_better, beats)
    _, found = quietly(functools.reduce, better, _pairs(values, indices))
    return np.array(found.reshape(_join_shape(found.shape, found.shape, drop=drop)))
