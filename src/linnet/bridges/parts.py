"""Arrays whose tiles are asked for: something that gives any box of itself, when it is needed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from linnet.arrays.elements.core import checked, wrap, wrapped
from linnet.arrays.expression import chunking
from linnet.arrays.expression.nodes import Entry, Number
from linnet.arrays.functions.map_blocks import called
from linnet.arrays.lowering.read_files_twice import repeatable
from linnet.kernels.arrays.user_functions import Wrapper
from linnet.tiles import Layout
from linnet.tiles.layout import from_sizes

Box = tuple[slice, ...]


def from_boxes(part: Callable[[Box], Any], layout: Layout, dtype: Any) -> Any:
    """An array of what `part` gives for the box of each tile. It is called once for each use of a tile.

    >>> cut = Layout.regular((6,), 4)
    >>> squares = from_boxes(lambda box: np.arange(box[0].start, box[0].stop) ** 2, cut, int)
    >>> squares.compute()
    array([ 0,  1,  4,  9, 16, 25])
    """
    checked(np.empty(0, dtype))
    starts: list[Number] = [Entry(axis, edges[:-1]) for axis, edges in enumerate(layout.boundaries)]
    stops: list[Number] = [Entry(axis, edges[1:]) for axis, edges in enumerate(layout.boundaries)]
    return wrap(repeatable(called(_Tile(part), (), [*starts, *stops], layout, dtype)))


class _Tile(Wrapper):
    """What a function of boxes gives for one, told by its starts and its stops."""

    def __call__(self, *numbers: int) -> Any:
        rank = len(numbers) // 2
        return np.asarray(self.function(tuple(map(slice, numbers[:rank], numbers[rank:]))))


def in_memory(part: Callable[[Box], Any], shape: tuple[int, ...], dtype: Any, chunks: Any) -> Any:
    """The same for what lies in memory: a short array is put together at once."""
    kind = np.dtype(dtype)
    if chunks is None and math.prod(shape) * kind.itemsize <= chunking.SMALL:
        return wrapped(np.asarray(part(tuple(slice(0, length) for length in shape))))
    return from_boxes(part, chunking.normalized("auto" if chunks is None else chunks, shape, kind), kind)


def from_chunks(chunks: tuple[tuple[int, ...], ...]) -> Layout:
    """The layout of another library's chunks; empty ones among them are left out.

    >>> from_chunks(((2, 0, 3), (4,))).boundaries
    ((0, 2, 5), (0, 4))
    """
    kept = [[int(size) for size in sizes if size] for sizes in chunks]
    return Layout(tuple(from_sizes(sizes) if sizes else (0, 0) for sizes in kept))
