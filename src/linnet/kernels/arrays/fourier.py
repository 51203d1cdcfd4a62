"""The kernel of Fourier transforms: one axis of one tile, by NumPy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.kernels.arrays.moves import room
from linnet.kernels.registry import kernel

Tile = NDArray[Any]
NAMES = frozenset({"fft", "ifft", "rfft", "irfft", "hfft", "ihfft"})


def transformed(name: str, length: int, n: int | None) -> int:
    """Elements of a transform along its axis.

    >>> transformed("rfft", 8, None), transformed("irfft", 5, None), transformed("fft", 8, 4)
    (5, 8, 4)
    """
    if name in ("rfft", "ihfft"):
        return (length if n is None else n) // 2 + 1
    if name in ("irfft", "hfft"):
        return 2 * (length - 1) if n is None else n
    return length if n is None else n


def _shape(shape: Sequence[int], *, name: str, n: int | None, axis: int, **_: Any) -> tuple[int, ...]:
    return (*shape[:axis], transformed(name, shape[axis], n), *shape[axis + 1 :])


def _dtype(dtype: Any, *, name: str, **_: Any) -> np.dtype[Any]:
    return getattr(np.fft, name)(np.ones(2, dtype)).dtype


def _flops(shape: Sequence[int], *, axis: int, **_: Any) -> float:
    return 5.0 * math.prod(shape) * math.log2(max(2, shape[axis]))


@kernel("transform", shape=_shape, dtype=_dtype, flops=_flops, scratch=1.0, into=True)
def transform(
    x: Tile, *, name: str, n: int | None, axis: int, norm: str | None, into: Tile | None = None
) -> Tile:
    """One of NumPy's transforms along an axis.

    >>> transform(np.ones(4), name="fft", n=None, axis=0, norm=None).real
    array([4., 0., 0., 0.])
    """
    if name not in NAMES:
        raise ValueError(f"transform expects one of {', '.join(sorted(NAMES))}, got {name!r}")
    place = room(_shape(x.shape, name=name, n=n, axis=axis), _dtype(x.dtype, name=name), into)
    return getattr(np.fft, name)(x, n=n, axis=axis, norm=norm, out=place)
