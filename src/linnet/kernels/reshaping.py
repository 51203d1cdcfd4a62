"""Kernels that give tiles other shapes: reshaping, joining, repeating, reading bytes as another dtype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.kernels.moves import cut
from linnet.kernels.registry import kernel

Tile = NDArray[Any]


def _no_flops(*_: Any, **__: Any) -> float:
    return 0.0


@kernel("reshape", shape=lambda x, *lengths: lengths, dtype=lambda x, *_: x, flops=_no_flops, inplace=0)
def reshape(x: Tile, *lengths: int, overwrite: Sequence[int] = ()) -> Tile:
    """The elements of a tile, row by row, under other axes; nothing moves if nobody else needs the tile.

    >>> reshape(np.arange(4), 2, 2)
    array([[0, 1],
           [2, 3]])
    """
    made = x.reshape(lengths)
    return made if 0 in overwrite or not np.may_share_memory(made, x) else made.copy()


def _joined_shape(*parts: Any, axis: int) -> tuple[int, ...]:
    shape = list(_leaf(parts[0]))
    shape[axis] = sum(parts[place + 1] - parts[place] for place in range(1, len(parts), 3))
    return tuple(shape)


def _leaf(nest: Any) -> Any:
    while isinstance(nest, list):
        nest = nest[0]
    return nest


@kernel("join", shape=_joined_shape, dtype=lambda first, *_, **__: _leaf(first), flops=_no_flops)
def join(*parts: Any, axis: int) -> Tile:
    """Parts of several arrays one behind another.

    Each part is three arguments: neighbouring tiles of an array along the axis, and the first and
    past-last element wanted, counted from the corner of the first of these tiles.

    >>> join([np.arange(4)], 3, 4, [np.arange(10, 12), np.arange(12, 14)], 1, 3, axis=0)
    array([ 3, 11, 12])
    """
    pieces = [
        cut(parts[place], parts[place + 1], parts[place + 2], ranged=(axis,), steps=(1,))
        for place in range(0, len(parts), 3)
    ]
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis=axis)


@kernel("repeat", dtype=lambda x, *_, **__: x, flops=_no_flops)
def repeat(x: Tile, counts: Tile, *, axis: int) -> Tile:
    """Each element along an axis as many times as its count says.

    >>> repeat(np.array([7, 8]), np.array([1, 2]), axis=0)
    array([7, 8, 8])
    """
    return np.repeat(x, counts, axis=axis)


@kernel("reinterpret", shape=lambda x, **_: x, dtype=lambda x, *, into: np.dtype(into), flops=_no_flops)
def reinterpret(x: Tile, *, into: str) -> Tile:
    """The bytes of a tile read as another dtype of the same size.

    >>> reinterpret(np.array([-1], "i4"), into="u4")
    array([4294967295], dtype=uint32)
    """
    return np.ascontiguousarray(x).reshape(x.shape).view(into).copy()


@kernel(
    "vander",
    shape=lambda x, *, columns, **_: (x[0], columns),
    dtype=lambda x, **_: np.promote_types(x, int),
    flops=lambda x, *, columns, **_: float(x[0] * columns),
)
def vander(x: Tile, *, columns: int, increasing: bool) -> Tile:
    """Powers of the elements, a row for each.

    >>> vander(np.array([2, 3]), columns=3, increasing=True)
    array([[1, 2, 4],
           [1, 3, 9]])
    """
    return np.vander(x, columns, increasing)
