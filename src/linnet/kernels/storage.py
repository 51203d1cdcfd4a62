"""Large arrays, in pages of ordinary size.

NumPy asks for huge pages. Where a virtual machine gives freed memory back to its host, a fresh huge
page has to be fetched from there: 200 MB took 2.3 s on such a machine, and 0.17 s in ordinary pages.
LAPACK's own callers do not ask for them either.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import sys
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Array = NDArray[Any]

_LARGE = 2**22
"""Bytes from which NumPy asks for huge pages."""
_NO_HUGE_PAGES = 15
"""The advice, as madvise(2) on Linux has it."""
_madvise: Any = ctypes.CDLL(None).madvise if sys.platform.startswith("linux") else None
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


def empty(shape: int | tuple[int, ...], dtype: DTypeLike) -> Array:
    """An array that somebody will write all of; memory that was freed before is used again as it is.

    >>> empty((2, 3), np.float32).shape
    (2, 3)
    """
    made = np.empty(shape, dtype)
    if made.nbytes >= _LARGE and _madvise is not None:
        first = -(-made.__array_interface__["data"][0] // mmap.PAGESIZE) * mmap.PAGESIZE
        last = (made.__array_interface__["data"][0] + made.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
        # A system that refuses gives huge pages, which is slower and not wrong.
        _madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), _NO_HUGE_PAGES)
    return made


def columns(rows: int, count: int, dtype: DTypeLike) -> Array:
    """A matrix of zeros in Fortran order, whose columns do not get into one another's way in the cache.

    >>> columns(128, 2, np.float64).strides
    (8, 1088)
    """
    apart = np.dtype(dtype).itemsize * rows
    spare = 64 // np.dtype(dtype).itemsize if apart % _APART == 0 else 0
    return zeros((count, rows + spare), dtype).T[:rows]
