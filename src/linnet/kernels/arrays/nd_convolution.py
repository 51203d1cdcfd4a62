"""Convolution of arrays with several axes: a tile of the result from the tiles that it overlaps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.kernels.registry import kernel

Tile = NDArray[Any]

_MANY = 600
"""Elements of the smaller operand from which on the Fourier transform is faster."""


@kernel(
    "convolve_box",
    shape=lambda tiles, y, *numbers, steps: tuple(numbers[len(steps) :]),
    dtype=lambda tiles, y, *_, **__: np.result_type(_first(tiles), y),
    flops=lambda tiles, y, *numbers, steps: 2.0 * math.prod(numbers[len(steps) :]) * math.prod(y),
)
def convolve_box(tiles: Any, y: Tile, *numbers: int, steps: tuple[int, ...]) -> Tile:
    """Elements of the convolution of `tiles`, put together, with `y`: offsets, then how many, for each axis.

    >>> convolve_box([[np.ones((2, 2))]], np.ones((2, 1)), 0, 0, 2, 2, steps=(1, 1))
    array([[1., 1.],
           [2., 2.]])
    """
    x = tiles if isinstance(tiles, np.ndarray) else np.block(tiles)
    return box_of_convolution(x, y, numbers[: y.ndim], numbers[y.ndim :], steps)


def _first(tiles: Any) -> Any:
    while isinstance(tiles, list):
        tiles = tiles[0]
    return tiles


def box_of_convolution(
    x: Tile, y: Tile, starts: Sequence[int], counts: Sequence[int], steps: Sequence[int]
) -> Tile:
    """`full[start : : step]`, so many along each axis, of the whole convolution; zero beyond its ends.

    >>> box_of_convolution(np.arange(4.0), np.ones(2), (-1,), (3,), (2,))
    array([0., 1., 5.])
    """
    dtype = np.result_type(x, y)
    window = _window(x, y.shape, starts, counts, steps)
    if y.size >= _MANY and dtype.kind in "fc" and np.isfinite(window).all() and np.isfinite(y).all():
        from scipy.signal import fftconvolve

        whole = fftconvolve(window, y, mode="valid")
        return np.ascontiguousarray(
            whole[tuple(slice(None, None, s) for s in steps)].astype(dtype, copy=False)
        )
    made = np.zeros(tuple(counts), dtype)
    reach = [(count - 1) * step + 1 for count, step in zip(counts, steps, strict=True)]
    for place in itertools.product(*map(range, y.shape)):
        part = tuple(
            slice(m - 1 - j, m - 1 - j + length, step)
            for j, m, length, step in zip(place, y.shape, reach, steps, strict=True)
        )
        made += window[part] * y[place]
    return made


def _window(
    x: Tile, kernel_shape: tuple[int, ...], starts: Sequence[int], counts: Sequence[int], steps: Sequence[int]
) -> Tile:
    """All elements of `x` that are read, with zeros beyond its ends."""
    taken: list[slice] = []
    added: list[tuple[int, int]] = []
    for n, m, start, count, step in zip(x.shape, kernel_shape, starts, counts, steps, strict=True):
        low, high = start - m + 1, start + (count - 1) * step + 1
        first, last = min(max(low, 0), n), min(max(high, 0), n)
        last = max(first, last)
        before = max(0, min(0, high) - low) if first == last and low < 0 else max(0, -low)
        before = min(before, high - low)
        taken.append(slice(first, last))
        added.append((before, high - low - before - (last - first)))
    part = x[tuple(taken)]
    return np.pad(part, added) if any(map(any, added)) else part
