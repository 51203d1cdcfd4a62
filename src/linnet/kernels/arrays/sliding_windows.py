"""Windows that slide over neighbouring tiles."""

from __future__ import annotations

from typing import Any

from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from linnet.kernels.arrays.moves import cut
from linnet.kernels.registry import kernel

Tile = NDArray[Any]


def _first_dtype(tiles: Any, *_: Any, **__: Any) -> Any:
    while isinstance(tiles, list | tuple):
        tiles = tiles[0]
    return tiles


def _shape(tiles: Any, *bounds: int, axes: tuple[int, ...], lengths: tuple[int, ...]) -> tuple[int, ...]:
    first = tiles
    for _ in axes:
        first = first[0]
    shape = list(first)
    for level, (axis, length) in enumerate(zip(axes, lengths, strict=True)):
        shape[axis] = bounds[2 * level + 1] - bounds[2 * level] - length + 1
    return (*shape, *lengths)


@kernel("windows", shape=_shape, dtype=_first_dtype, flops=lambda *_, **__: 0.0)
def windows(tiles: Any, *bounds: int, axes: tuple[int, ...], lengths: tuple[int, ...]) -> Tile:
    """All windows of some lengths along some axes (ascending) of a block of tiles, on new axes at the end.

    `bounds` holds start and stop for each of these axes, as in `cut`. The result takes no more memory
    than the elements themselves: windows overlap in it, and it cannot be written to.

    >>> import numpy as np
    >>> windows([np.arange(3), np.arange(3, 6)], 1, 5, axes=(0,), lengths=(3,))
    array([[1, 2, 3],
           [2, 3, 4]])
    """
    whole = cut(tiles, *bounds, ranged=axes, steps=(1,) * len(axes))
    whole.setflags(write=False)
    return sliding_window_view(whole, lengths, axes)
