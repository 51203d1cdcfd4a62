"""Tiles that lie in files mapped into memory.

Their pages count as memory of this process once they were touched, until they are let go
with `madvise`; what was written to them stays in the file. That is how a run with a budget
forgets a tile without losing it. Private mappings (mode "c") keep their changes in memory
alone and are left untouched.
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


def forget(tile: Tile, place: Place) -> None:
    """Let go of the pages of a mapped tile; they are read from the file when next touched."""
    for first, last in _spans(tile, place.offset):
        start = first // _PAGE * _PAGE
        place.owner.madvise(mmap.MADV_DONTNEED, start, min(last, len(place.owner)) - start)


def _spans(tile: Tile, offset: int) -> list[tuple[int, int]]:
    """The bytes of a tile in its file, as spans; rows that lie close are one span."""
    if tile.size == 0:
        return []
    axes = sorted(zip(tile.shape, tile.strides, strict=True), key=lambda axis: -abs(axis[1]))
    low = offset + sum((n - 1) * step for n, step in axes if step < 0)
    length = tile.itemsize + sum((n - 1) * abs(step) for n, step in axes)
    if not axes or length <= 2 * tile.nbytes + _PAGE:
        return [(low, low + length)]
    count, step = axes[0]
    inner = length - (count - 1) * abs(step)
    return [(low + k * abs(step), low + k * abs(step) + inner) for k in range(count)]


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
        copy[...] = source
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
