"""The kernel of Fourier transforms: one axis of one tile, by NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.kernels.registry import kernel

Tile = NDArray[Any]
NAMES = frozenset({"fft", "ifft", "rfft", "irfft", "hfft", "ihfft"})


def _flops(shape: tuple[int, ...], *, axis: int, **_: Any) -> float:
    return 5.0 * math.prod(shape) * math.log2(max(2, shape[axis]))


@kernel("transform", flops=_flops)
def transform(x: Tile, *, name: str, n: int | None, axis: int, norm: str | None) -> Tile:
    """One of NumPy's transforms along an axis.

    >>> transform(np.ones(4), name="fft", n=None, axis=0, norm=None).real
    array([4., 0., 0., 0.])
    """
    if name not in NAMES:
        raise ValueError(f"transform expects one of {', '.join(sorted(NAMES))}, got {name!r}")
    return getattr(np.fft, name)(x, n=n, axis=axis, norm=norm)
