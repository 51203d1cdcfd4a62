"""Kernels that work element by element on tiles of any rank and dtype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.kernels.registry import kernel

Tile = NDArray[Any]


def _size(shape: Sequence[int]) -> float:
    return float(np.prod(shape))


@kernel("copy", shape=lambda x: x, dtype=lambda x: x, flops=lambda x: 0.0, inplace=0, into=True)
def copy(x: Tile, *, overwrite: Sequence[int] = (), into: Tile | None = None) -> Tile:
    """The same tile under another name; no bytes move when nobody else needs the old one.

    >>> copy(np.arange(3))
    array([0, 1, 2])
    """
    if into is not None and into.shape == x.shape and into.dtype == x.dtype:
        np.copyto(into, x)
        return into
    return x if 0 in overwrite else np.array(x, order="K")


@kernel("add", shape=lambda x, y: x, flops=lambda x, y: _size(x), inplace=0)
def add(x: Tile, y: Tile, *, overwrite: Sequence[int] = ()) -> Tile:
    """`x + y`, for tiles of one shape.

    >>> add(np.arange(3), np.ones(3))
    array([1., 2., 3.])
    """
    if x.shape != y.shape:
        raise ValueError(f"add expects two tiles of one shape, got {x.shape} and {y.shape}")
    into = x if 0 in overwrite and x.dtype == np.result_type(x, y) else None
    return np.asarray(np.add(x, y, out=into))


@kernel(
    "sum_tiles",
    shape=lambda tiles: tiles[0],
    dtype=lambda tiles: np.result_type(*set(tiles)),
    flops=lambda tiles: _size(tiles[0]) * (len(tiles) - 1),
)
def sum_tiles(tiles: list[Tile]) -> Tile:
    """The sum of a range of tiles of one shape, from left to right.

    >>> sum_tiles([np.arange(3), np.arange(3), np.ones(3)])
    array([1., 3., 5.])
    """
    shapes = {tile.shape for tile in tiles}
    if len(shapes) != 1:
        raise ValueError(
            f"sum_tiles expects tiles of one shape, at least one; got {sorted(shapes) or 'none'}"
        )
    total = np.array(tiles[0], dtype=np.result_type(*{tile.dtype for tile in tiles}), order="K")
    for tile in tiles[1:]:
        total += tile
    return total
