"""Tiles that lie in files mapped into memory.

Their pages count as memory of this process once they were touched, and so do the pages
around them that the system maps along, until they are let go with `madvise`; what was
written to them stays in the file. So a run with a budget copies such tiles, a few rows at a
time, and lets go of the pages at once: what it counts is then what it takes. Files of ours are
also open: runs of bytes that are long enough are read and written past the mapping, which
touches no page and takes half the time; compiled, a tenth. Private mappings (mode "c") keep their changes in
memory alone and are left untouched.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from linnet.engines import compiled
from linnet.tiles import Tile

_SLAB = 64 * 2**20
"""Spilled tiles share files of at least this size: each mapping costs file descriptors."""
_LARGEST_SLAB = 2**30
"""Each file is twice as large as the one before, up to this; what is not written takes no room."""
_PAGE = mmap.PAGESIZE
_AROUND = 2 * 2**20
"""Linux maps pages in its cache along with the one touched: all of a folio, which can be so large."""
_PIECE = 2**20
"""Bytes of a mapped file that are touched before they are let go, or copied before they are written."""
_RUN = 8192
"""Bytes in a row from which on a call of the system is cheaper than touching the pages."""
_COMPILED_RUN = 512
"""The same where it is not Python that calls."""


class OpenMapping(mmap.mmap):
    """A mapped file that is also open, as long as it is mapped."""

    descriptor = -1

    def __del__(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)


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
    if not isinstance(base, OpenMapping) and not (shared and isinstance(base, mmap.mmap)):
        return None
    start = np.frombuffer(base, np.uint8, 1).__array_interface__["data"][0]
    return Place(base, tile.__array_interface__["data"][0] - start)


def loaded(tile: Tile) -> Tile:
    """A copy in memory of a tile in a mapped file, in the same order."""
    copy = np.empty_like(tile, order="K", subok=False)
    _transfer(copy, tile, writing=False)
    return copy


def stored(tile: Tile, place: Tile) -> None:
    """Copy a tile into its place in a mapped file."""
    _transfer(tile, place, writing=True)


def _transfer(memory: Tile, mapped: Tile, *, writing: bool) -> None:
    """Copy from or to a file, in pieces."""
    found = place_of(mapped)
    if found is None or mapped.size == 0:
        np.copyto(mapped if writing else memory, memory if writing else mapped, casting="same_kind")
        return
    order = sorted(range(mapped.ndim), key=lambda axis: -abs(mapped.strides[axis]))
    mapped, memory = mapped.transpose(order), memory.transpose(order)
    run, split = _run(mapped)
    owner = found.owner
    if isinstance(owner, OpenMapping):
        library = compiled.library()
        alike = memory.dtype == mapped.dtype and _run(memory)[1] <= split
        if library is not None and alike and split and run >= _COMPILED_RUN:
            _by_rows(library, owner.descriptor, found.offset, memory, mapped, split, writing)
            return
        if run >= _RUN or not split:
            _past_mapping(owner.descriptor, found.offset, memory, mapped, split, writing)
            return
    for piece in _pieces(mapped):
        target, source = (mapped, memory) if writing else (memory, mapped)
        np.copyto(target[piece], source[piece], casting="same_kind")
        let_go(mapped[piece])


def let_go(tile: Tile) -> None:
    """Give back the memory that pages of a tile in a mapped file take; a tile in memory stays there."""
    found = place_of(tile)
    if found is None or not tile.size:
        return
    low, extent = _extent(tile)
    start = found.offset + low - tile.__array_interface__["data"][0]
    begin = max(0, (start - _AROUND) // _PAGE * _PAGE)
    end = min(start + extent + _AROUND, len(found.owner))
    found.owner.madvise(mmap.MADV_DONTNEED, begin, end - begin)


def _run(mapped: Tile) -> tuple[int, int]:
    """How many bytes lie in a row, and the axis from which on they do."""
    run, axis = mapped.itemsize, mapped.ndim
    while axis and (mapped.strides[axis - 1] == run or mapped.shape[axis - 1] == 1):
        axis -= 1
        run *= mapped.shape[axis]
    return run, axis


def _pieces(mapped: Tile) -> Iterator[Any]:
    """Keys for parts along the first axis, of about `_PIECE` bytes of the file each."""
    if not mapped.ndim:
        yield ()
        return
    step = max(1, _PIECE // max(1, abs(mapped.strides[0])))
    for first in range(0, mapped.shape[0], step):
        yield slice(first, first + step)


def _extent(part: Tile) -> tuple[int, int]:
    """The address of the first byte of a part, and how many bytes there are from there to its last."""
    extents = [((n - 1) * s) for n, s in zip(part.shape, part.strides, strict=True)]
    low = part.__array_interface__["data"][0] + sum(extent for extent in extents if extent < 0)
    return low, part.itemsize + sum(map(abs, extents))


def _by_rows(
    library: ctypes.CDLL, file: int, offset: int, memory: Tile, mapped: Tile, split: int, writing: bool
) -> None:
    """The same for a tile in the order and of the dtype of the file: compiled, a row of runs at a time."""
    run = mapped.itemsize * int(np.prod(mapped.shape[split:]))
    count, apart, step = mapped.shape[split - 1], mapped.strides[split - 1], memory.strides[split - 1]
    for index in np.ndindex(*mapped.shape[: split - 1]):
        place = offset + sum(i * s for i, s in zip(index, mapped.strides, strict=False))
        first = memory[index].__array_interface__["data"][0]
        error = library.linnet_move_runs(file, place, apart, first, step, run, count, writing)
        if error > 0:
            raise OSError(error, os.strerror(error))
        if error:
            raise OSError(f"a scratch file ends within the {count} rows from byte {place} on")


def _past_mapping(file: int, offset: int, memory: Tile, mapped: Tile, split: int, writing: bool) -> None:
    """Read or write the runs of a tile with calls of the system; axes from `split` on are one run."""
    for index in np.ndindex(*mapped.shape[:split]):
        place = offset + sum(i * s for i, s in zip(index, mapped.strides, strict=False))
        part = memory[(*index, ...)]
        if part.flags.c_contiguous and part.dtype == mapped.dtype:
            _move(file, place, part, writing)
            continue
        # A tile in another order, or of another dtype, is brought into this one a piece at a time.
        rows = part.reshape(1) if not part.ndim else part
        row = mapped.itemsize * (rows.size // len(rows))
        step = max(1, _PIECE // row)
        for first in range(0, len(rows), step):
            piece = rows[first : first + step].astype(mapped.dtype, "C", casting="same_kind")
            _move(file, place + first * row, piece, writing)


def _move(file: int, place: int, memory: Tile, writing: bool) -> None:
    """Bytes of an array in one piece from or to a file."""
    left = memory.reshape(-1).view(np.uint8).data
    while left:
        done = os.pwrite(file, left, place) if writing else os.preadv(file, [left], place)
        if not done:
            raise OSError(
                f"a scratch file ends at byte {place}, where {len(left)} more bytes were to be read"
            )
        left = left[done:]
        place += done


def mapped_zeros(shape: tuple[int, ...], dtype: DTypeLike, scratch: str | None = None) -> NDArray[Any]:
    """An array of zeros in a file that vanishes with the array; it takes no memory until touched."""
    kind = np.dtype(dtype)
    size = int(np.prod(shape)) * kind.itemsize
    if size == 0:
        return np.zeros(shape, kind)
    with tempfile.TemporaryFile(prefix="linnet-", dir=scratch) as file:
        file.truncate(size)
        owner = OpenMapping(file.fileno(), size)
        owner.descriptor = os.dup(file.fileno())
    return np.ndarray(shape, kind, owner)


class Scratch:
    """Room on disk for tiles that had to leave memory; places that are given back are used again.

    A file vanishes with the last tile in it.
    """

    def __init__(self, folder: str | None) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._free: dict[int, list[NDArray[Any]]] = defaultdict(list)
        self._slab: NDArray[Any] = np.zeros(0, np.uint8)
        self._used = 0
        self.bytes: int = 0
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
            length = max(size, min(max(_SLAB, 2 * len(self._slab)), _LARGEST_SLAB))
            self._slab = mapped_zeros((length,), np.uint8, self._folder)
            self._used = 0
            self.bytes += length
        slot = self._slab[self._used : self._used + size]
        self._used += size
        return slot
