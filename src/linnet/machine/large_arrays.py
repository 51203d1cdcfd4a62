"""Large arrays, in pages of ordinary size, which are used again.

NumPy asks for huge pages. Where a virtual machine gives freed memory back to its host, a fresh huge
page has to be fetched from there: 800 MB took between 0.2 and 2.3 s on such a machine, and 0.28 s in
ordinary pages. Pages that were used before take 0.03 s. So those of large arrays are kept when the
arrays go, as memory that the system may take at any time, until the next array of about that size.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import sys
import threading
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from linnet.tiles.amounts import human, total_memory

Array = NDArray[Any]

_LARGE = 2**22
"""Bytes from which NumPy asks for huge pages."""
_OWN = 2**25
"""Bytes from which an array has pages of its own; smaller blocks are used again by the allocator."""
_AGAIN = 2**20
"""Bytes from which memory that a program has just freed is worth asking for again."""
_WARM = 2**26
"""Bytes of such memory that stay as they are; the system may take the rest."""
_SPARE = 4
"""Pages that are kept may be this many times fewer than the whole memory, and no more."""
_WASTED = 1.25
"""Kept pages serve an array if they are at most so many times more than it needs."""
_HAS_PAGES = hasattr(mmap, "MADV_FREE") and hasattr(mmap, "MADV_NOHUGEPAGE")
_NO_HUGE_PAGES = 15
"""The advice, as madvise(2) on Linux has it."""
_madvise: Any = ctypes.CDLL(None).madvise if sys.platform.startswith("linux") else None
_APART = 1024
"""Columns a multiple of so many bytes apart fall upon the same places in the cache."""


class _Pages:
    """Memory of one array; when that and all views of it are gone, it is kept for another."""

    def __init__(self, pages: mmap.mmap) -> None:
        self._pages = pages
        start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
        self.__array_interface__ = {
            "version": 3,
            "data": (start, False),
            "shape": (len(pages),),
            "typestr": "|u1",
        }

    def __del__(self) -> None:
        if not sys.is_finalizing():
            _KEPT.give(self._pages)


class _Kept:
    """Pages that nobody uses. Arrays go in any thread and at any time, so that no lock may be waited for."""

    def __init__(self) -> None:
        self._pages: deque[mmap.mmap] = deque()
        self._warm: deque[mmap.mmap] = deque()
        """Those that were given last, of arrays with less than `_OWN`."""
        self.most = total_memory() // _SPARE
        """Bytes that are kept."""
        self._refusals = 0
        """How many ask that nothing be kept."""
        self._lock = threading.Lock()

    def give(self, pages: mmap.mmap) -> None:
        if self._refusals or len(pages) > self.most:
            return
        if len(pages) < _OWN:
            self._warm.append(pages)
            self._cool()
        else:
            self._lay_by(pages)

    def _lay_by(self, pages: mmap.mmap) -> None:
        pages.madvise(mmap.MADV_FREE)
        self._pages.append(pages)
        self._shed(self.most)

    def _cool(self) -> None:
        while sum(map(len, tuple(self._warm))) > _WARM:
            try:
                self._lay_by(self._warm.popleft())
            except IndexError:  # another thread was faster
                return

    def take(self, size: int) -> mmap.mmap | None:
        return (_fitting(self._warm, size) if size < _OWN else None) or _fitting(self._pages, size)

    def _shed(self, most: int) -> None:
        while sum(map(len, tuple(self._pages))) > most:
            try:
                self._pages.popleft()
            except IndexError:
                return

    def refuse(self, more: int) -> None:
        with self._lock:
            self._refusals += more
        self._pages.clear()
        self._warm.clear()


def _fitting(kept: deque[mmap.mmap], size: int) -> mmap.mmap | None:
    for _ in range(len(kept)):
        try:
            pages = kept.pop()
        except IndexError:  # another thread was faster
            return None
        if size <= len(pages) <= size * _WASTED:
            return pages
        kept.appendleft(pages)
    return None


_KEPT = _Kept()


@contextmanager
def nothing_kept() -> Generator[None]:
    """Memory of arrays that go is given back at once, for as long as this lasts."""
    _KEPT.refuse(1)
    try:
        yield
    finally:
        _KEPT.refuse(-1)


def zeros(shape: int | tuple[int, ...], dtype: DTypeLike) -> Array:
    """An array of zeros; new memory is taken when it is written to.

    >>> zeros((2, 2), np.float64)
    array([[0., 0.],
           [0., 0.]])
    """
    array, clean = blank(shape, dtype)
    if not clean:
        array.fill(0)
    return array


def blank(shape: int | tuple[int, ...], dtype: DTypeLike) -> tuple[Array, bool]:
    """An array, and whether it holds zeros, as new memory does; else somebody will have to write all of it.

    >>> blank((2, 2), np.float64)[1]
    True
    """
    dtype, extents = np.dtype(dtype), (shape,) if isinstance(shape, int) else shape
    size = math.prod(map(int, extents)) * dtype.itemsize
    if size < _OWN or not _HAS_PAGES:
        return _in_small_pages(np.zeros(extents, dtype)), True
    known = _KEPT.take(size)
    return _over(_new(size) if known is None else known, extents, dtype), known is None


def empty(shape: int | tuple[int, ...], dtype: DTypeLike) -> Array:
    """An array that somebody will write all of; memory that was freed before is used again as it is.

    >>> empty((2, 3), np.float32).shape
    (2, 3)
    """
    dtype, extents = np.dtype(dtype), (shape,) if isinstance(shape, int) else shape
    size = math.prod(map(int, extents)) * dtype.itemsize
    if size < _OWN or not _HAS_PAGES:
        return _in_small_pages(np.empty(extents, dtype))
    return _over(_KEPT.take(size) or _new(size), extents, dtype)


def again(shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """As `empty`, for what comes and goes in a program of whole arrays: memory that was freed last first.

    NumPy's allocator gives such memory back to the system between two statements, and every page that is
    touched for the first time takes longer than what is computed in it.

    >>> again((2, 3), np.float32).shape
    (2, 3)
    """
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    if size < _AGAIN or not _HAS_PAGES:
        return np.empty(shape, dtype)
    return _over(_KEPT.take(size) or _new(size), shape, dtype)


def _new(size: int) -> mmap.mmap:
    try:
        pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError) as error:
        raise MemoryError(f"there is no memory for an array of {human(size)}") from error
    pages.madvise(mmap.MADV_NOHUGEPAGE)
    return pages


def _over(pages: mmap.mmap, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    size = math.prod(shape) * dtype.itemsize
    return np.asarray(_Pages(pages))[:size].view(dtype).reshape(shape)


def _in_small_pages(made: Array) -> Array:
    if made.nbytes >= _LARGE and _madvise is not None:
        first = -(-made.__array_interface__["data"][0] // mmap.PAGESIZE) * mmap.PAGESIZE
        last = (made.__array_interface__["data"][0] + made.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
        # A system that refuses gives huge pages, which is slower and not wrong.
        _madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), _NO_HUGE_PAGES)
    return made


def is_kept(owner: object) -> bool:
    """Whether it is what the memory of one of these arrays belongs to."""
    return isinstance(owner, _Pages)


def columns(rows: int, count: int, dtype: DTypeLike) -> Array:
    """A matrix of zeros in Fortran order, whose columns do not get into one another's way in the cache.

    >>> columns(128, 2, np.float64).strides
    (8, 1088)
    """
    return zeros((count, rows + spare(rows, dtype)), dtype).T[:rows]


def spare(rows: int, dtype: DTypeLike) -> int:
    """Elements to leave free between columns of so many rows, if these fell upon like places of the cache.

    >>> spare(128, np.float64), spare(100, np.float64)
    (8, 0)
    """
    item = np.dtype(dtype).itemsize
    return 64 // item if item * rows % _APART == 0 else 0
