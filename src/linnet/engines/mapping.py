"""Tiles that lie in files mapped into memory.

Their pages count as memory of this process once they were touched, and so do the pages
around them that the system maps along, until they are let go with `madvise`; what was
written to them stays in the file. So a run with a budget copies such tiles, a few rows at a
time, and lets go of the pages at once: what it counts is then what it takes. Private
mappings (mode "c") keep their changes in memory alone and are left untouched.
"""

from __future__ import annotations

import mmap
import tempfile
import threading
from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from linnet.tiles import Tile

_SLAB = 64 * 2**20
"""Spilled tiles share files of at least this size: each mapping costs a file descriptor."""
_PAGE = mmap.PAGESIZE
_AROUND = 65_536
"""Linux maps pages that are in its cache along with the one touched, in windows of this size."""
_PIECE = 2**20
"""Bytes of a mapped file that are touched before they are let go."""


class Place(NamedTuple):
    """Where a tile lies in a mapped file."""

    owner: mmap.mmap
    """The mapping."""
    offset: int
    """Of the tile's first byte in it."""


def place_of(tile: Tile) -> Place | None:
    """Where in a file the tile lies, if it lies in one and its pages may be let go; else None."""
    base: Any = tile
    shared = False
    while isinstance(base, np.ndarray):
        shared = shared or getattr(base, "mode", "c") != "c"
        base = base.base
    if not shared or not isinstance(base, mmap.mmap):
        return None
    start = np.frombuffer(base, np.uint8, 1).__array_interface__["data"][0]
    return Place(base, tile.__array_interface__["data"][0] - start)


def loaded(tile: Tile) -> Tile:
    """A copy in memory of a tile in a mapped file, in the same order."""
    copy = np.empty_like(tile, order="K", subok=False)
    _transfer(copy, tile, tile)
    return copy


def stored(tile: Tile, place: Tile) -> None:
    """Copy a tile into its place in a mapped file."""
    _transfer(place, tile, place)


def _transfer(target: Tile, source: Tile, mapped: Tile) -> None:
    """Copy in pieces, and let go of the pages of the mapped side after each."""
    found = place_of(mapped)
    if found is None or mapped.size == 0:
        np.copyto(target, source, casting="same_kind")
        return
    axis = int(np.argmax(np.abs(mapped.strides))) if mapped.ndim else 0
    step = max(1, _PIECE // max(1, abs(mapped.strides[axis]))) if mapped.ndim else 1
    start = found.offset - mapped.__array_interface__["data"][0]
    for first in range(0, mapped.shape[axis] if mapped.ndim else 1, step):
        piece = (*(slice(None),) * axis, slice(first, first + step)) if mapped.ndim else ()
        np.copyto(target[piece], source[piece], casting="same_kind")
        part = mapped[piece]
        low = start + part.__array_interface__["data"][0]
        low += sum((n - 1) * s for n, s in zip(part.shape, part.strides, strict=True) if s < 0)
        extent = part.itemsize + sum((n - 1) * abs(s) for n, s in zip(part.shape, part.strides, strict=True))
        begin = max(0, low // _AROUND * _AROUND)
        end = min(-(-(low + extent) // _AROUND) * _AROUND, len(found.owner))
        found.owner.madvise(mmap.MADV_DONTNEED, begin, end - begin)


def mapped_zeros(shape: tuple[int, ...], dtype: DTypeLike, scratch: str | None = None) -> NDArray[Any]:
    """An array of zeros in a file that vanishes with the array; it takes no memory until touched."""
    kind = np.dtype(dtype)
    size = int(np.prod(shape)) * kind.itemsize
    if size == 0:
        return np.zeros(shape, kind)
    with tempfile.TemporaryFile(prefix="linnet-", dir=scratch) as file:
        file.truncate(size)
        # The mapping keeps the file alive after it is closed and has lost its name.
        return np.memmap(file, kind, "r+", 0, shape)


class Scratch:
    """Room on disk for tiles that had to leave memory; places that are given back are used again."""

    def __init__(self, folder: str | None) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._free: dict[int, list[NDArray[Any]]] = defaultdict(list)
        self._slab: NDArray[Any] = np.zeros(0, np.uint8)
        self._used = 0
        self.bytes = 0
        """On disk in all."""

    def store(self, tile: Tile) -> tuple[Tile, NDArray[Any]]:
        """A copy of the tile on disk, and the slot it lies in, for `give_back`."""
        with self._lock:
            slots = self._free[tile.nbytes]
            slot = slots.pop() if slots else self._slot(tile.nbytes)
        # A tile by columns stays one.
        flipped = tile.ndim > 1 and tile.strides[0] < tile.strides[-1]
        source = tile.T if flipped else tile
        copy = slot[: tile.nbytes].view(tile.dtype).reshape(source.shape)
        stored(source, copy)
        return (copy.T if flipped else copy), slot

    def give_back(self, slot: NDArray[Any], nbytes: int) -> None:
        """The tile in this slot is needed no more."""
        with self._lock:
            self._free[nbytes].append(slot)

    def _slot(self, nbytes: int) -> NDArray[Any]:
        size = -(-nbytes // _PAGE) * _PAGE
        if self._used + size > len(self._slab):
            self._slab = mapped_zeros((max(_SLAB, size),), np.uint8, self._folder)
            self._used = 0
            self.bytes += len(self._slab)
        slot = self._slab[self._used : self._used + size]
        self._used += size
        return slot
