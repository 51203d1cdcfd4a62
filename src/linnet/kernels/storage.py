"""Large arrays, in pages of ordinary size.

NumPy asks for huge pages. Where a virtual machine gives freed memory back to its host, a fresh huge
page has to be fetched from there: 200 MB took 2.3 s on such a machine, and 0.17 s in ordinary pages.
LAPACK's own callers do not ask for them either.
"""

from __future__ import annotations

import math
import mmap
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Array = NDArray[Any]

_LARGE = 2**22
"""Bytes from which NumPy asks for huge pages."""
_APART = 1024
"""Columns a multiple of so many bytes apart fall upon the same places in the cache."""


def zeros(shape: int | tuple[int, ...], dtype: DTypeLike) -> Array:
    """An array of zeros; memory is taken when it is written to.

    >>> zeros((2, 2), np.float64)
    array([[0., 0.],
           [0., 0.]])
    """
    dtype, extents = np.dtype(dtype), (shape,) if isinstance(shape, int) else shape
    size = math.prod(extents) * dtype.itemsize
    if size < _LARGE:
        return np.zeros(extents, dtype)
    return np.ndarray(extents, dtype, mmap.mmap(-1, size))


def columns(rows: int, count: int, dtype: DTypeLike) -> Array:
    """A matrix of zeros in Fortran order, whose columns do not get into one another's way in the cache.

    >>> columns(128, 2, np.float64).strides
    (8, 1088)
    """
    apart = np.dtype(dtype).itemsize * rows
    spare = 64 // np.dtype(dtype).itemsize if apart % _APART == 0 else 0
    return zeros((count, rows + spare), dtype).T[:rows]
