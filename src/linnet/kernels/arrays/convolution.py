"""Convolution of neighbouring tiles, and interpolation in a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.kernels.registry import kernel

Tile = NDArray[Any]

_LONG = 256
"""Elements of the shorter operand from which on the Fourier transform is faster."""


def _length(tiles: Sequence[Any], y: Any, offset: int, length: int) -> tuple[int, ...]:
    return (length,)


@kernel(
    "convolve_tile",
    shape=_length,
    dtype=lambda tiles, y, *_: np.result_type(tiles[0], y),
    flops=lambda tiles, y, offset, length: 2.0 * length * y[0],
)
def convolve_tile(tiles: list[Tile], y: Tile, offset: int, length: int) -> Tile:
    """Elements offset … offset + length of the convolution of `tiles`, one behind another, with `y`.

    >>> convolve_tile([np.array([1, 2]), np.array([3])], np.array([1, 1]), 1, 2)
    array([3, 5])
    """
    x = tiles[0] if len(tiles) == 1 else np.concatenate(tiles)
    low = max(0, offset - y.size + 1)
    x = x[low : offset + length]
    dtype = np.result_type(x.dtype, y.dtype)
    if min(x.size, y.size) >= _LONG and dtype.kind in "fc" and _is_tame(x) and _is_tame(y):
        from scipy.signal import fftconvolve

        whole = fftconvolve(x, y).astype(dtype, copy=False)
    else:
        whole = np.convolve(x, y)
    return whole[offset - low : offset - low + length].copy()


def _is_tame(x: Tile) -> bool:
    """Whether a transform gives the same up to rounding: one infinity would spoil every element."""
    return bool(np.isfinite(x).all())


@kernel(
    "interp_tile",
    shape=lambda x, *_, **__: tuple(x),
    dtype=lambda x, xp, fp, **_: np.result_type(fp, np.float64),
    flops=lambda x, *_, **__: 20.0 * math.prod(x),
)
def interp_tile(
    x: Tile,
    xp: Tile,
    fp: Tile,
    *,
    sides: tuple[tuple[float, float] | None, ...],
    period: float | None,
) -> Tile:
    """`np.interp`; the values beyond the ends as real and imaginary parts.

    >>> table = np.array([0.0, 2.0]), np.array([10.0, 20.0])
    >>> interp_tile(np.array([1.0, 9.0]), *table, sides=(None, (7.0, 0.0)), period=None)
    array([15.,  7.])
    """
    left, right = (
        None if each is None else complex(*each) if fp.dtype.kind == "c" else each[0] for each in sides
    )
    return np.asarray(np.interp(x, xp, fp, left, right, period))  # type: ignore[arg-type]
