"""NumPy's own files, `.npy` and `.npz`: a header, then the elements as they lie in memory.

Of local files runs of bytes that are long enough are read into the tile; where they are short the file is
mapped, and its pages, which would count as memory of the process, are let go. A member of an `.npz` that is
not compressed is a stretch of the file like any other; one that is gets unpacked first. Files with objects
would need unpickling, which can run
whatever their author liked: they are refused.
"""

from __future__ import annotations

import io
import math
import mmap
import os
import struct
import zipfile
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from linnet.errors import FileMissingError, FormatError
from linnet.io import stores
from linnet.io.cuts import Box, Described, runs
from linnet.io.places import Options, Place

Tile = NDArray[Any]
_HEADER = 1 << 16
"""Bytes in which a header ends, of an array without named fields."""
_RUN = 8192
"""Bytes in a row from which on a call of the system is cheaper than touching the pages of a mapped file."""
_PIECE = 1 << 20
"""Bytes of a mapped file that are touched before they are let go."""
_AROUND = 2 << 20
"""Linux maps pages in its cache along with the one touched: all of a folio, which can be so large."""


def describe(place: Place, member: str | None = None) -> Described:
    """What an `.npy` file holds, or a member of an `.npz` file."""
    size, version = stores.size_and_version(place)
    attributes: dict[str, Any] = {"url": place.url, "options": place.options, "version": version}
    shown, begin, compressed = str(place), 0, False
    if member is not None:
        begin, size, compressed = _member(place, member)
        shown = f"{place}[{member!r}]"
        if compressed:
            attributes["member"] = member
            begin, size = 0, _unpacked(place, version, member)[1]
    head = _bytes(place, version, attributes.get("member"), begin, begin + min(size, _HEADER))
    shape, fortran, dtype, offset = _header(bytes(head), shown)
    needed = offset + math.prod(shape) * dtype.itemsize
    if size < needed:
        raise FormatError(
            f"{shown} is truncated: {'×'.join(map(str, shape)) or 'one'} {dtype.name} take {needed:,} bytes "
            f"with their header, the file has {size:,}; write or copy it again"
        )
    attributes |= {"offset": begin + offset, "shape": shape, "fortran": fortran, "stored": dtype.str}
    return Described(shape, dtype.newbyteorder("="), None, attributes)


def _header(head: bytes, shown: str) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    file = io.BytesIO(head)
    try:
        version = npy_format.read_magic(file)
        reading = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
        shape, fortran, dtype = reading(file)
    except (ValueError, SyntaxError, EOFError) as error:
        raise FormatError(f"{shown} is no .npy file, or its header is damaged: {error}") from error
    if dtype.hasobject or dtype.kind in "VSUT":
        why = "reading objects can run code" if dtype.hasobject else "arrays hold booleans, numbers and times"
        raise FormatError(f"{shown} holds {dtype}, which is refused: {why}")
    return shape, fortran, dtype, file.tell()


def _bytes(place: Place, version: str, member: str | None, start: int, stop: int) -> Any:
    if member is None:
        return stores.read(place, start, stop)
    return memoryview(_unpacked(place, version, member)[0])[start:stop]


# ---- members of .npz files


def members(place: Place) -> list[str]:
    """Names of the arrays in an `.npz` file."""
    return [name.removesuffix(".npy") for name in _archive(place).namelist()]


def _archive(place: Place) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(stores.Seekable(place))  # type: ignore[arg-type] # reads, seeks and tells
    except zipfile.BadZipFile as error:
        raise FormatError(f"{place} is no .npz file, or is truncated: {error}") from error


def _info(place: Place, member: str) -> zipfile.ZipInfo:
    archive = _archive(place)
    for name in (f"{member}.npy", member):
        if name in archive.NameToInfo:
            return archive.NameToInfo[name]
    held = ", ".join(sorted(name.removesuffix(".npy") for name in archive.namelist()))
    raise FileMissingError(f"there is no array {member!r} in {place}; it holds {held or 'none'}")


def _member(place: Place, member: str) -> tuple[int, int, bool]:
    """Where the file of a member begins, its bytes, and whether it is compressed."""
    info = _info(place, member)
    if info.compress_type != zipfile.ZIP_STORED:
        return 0, info.file_size, True
    # Names and extra fields come twice, and need not be equal: those before the data count.
    local = bytes(stores.read(place, info.header_offset, info.header_offset + 30))
    name_length, extra_length = struct.unpack("<HH", local[26:30])
    return info.header_offset + 30 + name_length + extra_length, info.file_size, False


@lru_cache(maxsize=8)
def _unpacked(place: Place, version: str, member: str) -> tuple[mmap.mmap, int]:
    """A compressed member, unpacked into memory without a name in the file system."""
    import tempfile

    with tempfile.TemporaryFile() as file:
        try:
            with _archive(place).open(_info(place, member)) as packed:
                while block := packed.read(1 << 22):
                    file.write(block)
        except (zipfile.BadZipFile, EOFError, OSError) as error:
            raise FormatError(f"{place}[{member!r}] is damaged or truncated: {error}") from error
        file.flush()
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), file.tell()


# ---- tiles


def read(
    box: Box,
    into: Tile,
    *,
    url: str,
    options: Options,
    version: str,
    offset: int,
    shape: tuple[int, ...],
    fortran: bool,
    stored: str,
    member: str | None = None,
) -> None:
    """Fill a tile with the elements of a box."""
    place, dtype = Place(url, options), np.dtype(stored)
    if fortran:  # the same bytes in C order, under the axes reversed
        shape, box, into = shape[::-1], box[::-1], into.T
    if not place.is_local and member is None:
        _read_ranges(place, dtype, offset, shape, box, into)
        return
    if place.is_local:
        stores.same_version(place, version)
    length, starts = runs(shape, box)
    if member is None and into.dtype == dtype and into.flags.c_contiguous and length * dtype.itemsize >= _RUN:
        _read_runs(place, [offset + start * dtype.itemsize for start in starts], into)
        return
    buffer = _mapped(place, version) if member is None else _unpacked(place, version, member)[0]
    elements = np.ndarray(shape, dtype, buffer, offset)[(*box, ...)]
    if not elements.ndim:
        into[...] = elements
        return
    step = max(1, _PIECE // max(1, elements.strides[0]))
    for first in range(0, len(elements), step):
        into[first : first + step] = elements[first : first + step]
        _let_go(buffer, elements[first : first + step])


def _read_runs(place: Place, begins: list[int], into: Tile) -> None:
    """Fill a tile with as many runs of bytes of a local file, each as long as the others."""
    memory = memoryview(into.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
    size = len(memory) // max(1, len(begins))
    with stores.translated(place), open(place.url, "rb", buffering=0) as file:
        for number, at in enumerate(begins):
            left = memory[number * size : (number + 1) * size]
            while left:
                done = os.preadv(file.fileno(), [left], at)
                if not done:
                    raise FormatError(
                        f"{place} ended early: {len(left):,} bytes were asked for from byte {at:,} on"
                    )
                left, at = left[done:], at + done


def _let_go(buffer: mmap.mmap, part: Tile) -> None:
    """Give back the memory that pages of a part of a mapped file take: the part has been copied."""
    if not part.size or not hasattr(mmap, "MADV_DONTNEED"):
        return
    start = np.frombuffer(buffer, np.uint8, 1).__array_interface__["data"][0]
    begin = part.__array_interface__["data"][0] - start
    extent = part.itemsize + sum((n - 1) * s for n, s in zip(part.shape, part.strides, strict=True))
    first = max(0, (begin - _AROUND) // mmap.PAGESIZE * mmap.PAGESIZE)
    last = min(begin + extent + _AROUND, len(buffer))
    buffer.madvise(mmap.MADV_DONTNEED, first, last - first)


@lru_cache(maxsize=64)
def _mapped(place: Place, version: str) -> mmap.mmap:
    with stores.translated(place), open(place.url, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _read_ranges(
    place: Place, dtype: np.dtype[Any], offset: int, shape: tuple[int, ...], box: Box, into: Tile
) -> None:
    length, starts = runs(shape, box)
    size = length * dtype.itemsize
    begins = [offset + start * dtype.itemsize for start in starts]
    if not begins or not size:
        return
    blocks = stores.read_ranges(place, begins, size)
    elements = np.frombuffer(b"".join(map(bytes, blocks)), dtype)
    if elements.size != into.size:
        raise FormatError(
            f"{place} ended early: {into.size:,} elements were asked for, {elements.size:,} came"
        )
    into[...] = elements.reshape(into.shape)


# ---- writing


def header(shape: tuple[int, ...], dtype: np.dtype[Any]) -> bytes:
    """What comes before the elements of an array in C order."""
    file = io.BytesIO()
    described = {"descr": npy_format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    npy_format.write_array_header_1_0(file, described)
    return file.getvalue()


def prepare(place: Place, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """A local file with a header and room for the elements."""
    head = header(shape, dtype)
    stores.write(place, head)
    with stores.translated(place, "write"):
        os.truncate(place.url, len(head) + math.prod(shape) * dtype.itemsize)


def write(box: Box, tile: Tile, *, place: Place, offset: int, shape: tuple[int, ...]) -> None:
    """Put a tile into a local file that was prepared."""
    size = tile.dtype.itemsize
    length, starts = runs(shape, box)
    data = memoryview(np.ascontiguousarray(tile).reshape(-1).view(np.uint8))  # type: ignore[arg-type]
    with stores.translated(place, "write"), open(place.url, "r+b", buffering=0) as file:
        for number, start in enumerate(starts):
            part = data[number * length * size : (number + 1) * length * size]
            at = offset + start * size
            while len(part):
                written = os.pwrite(file.fileno(), part, at)
                part, at = part[written:], at + written
