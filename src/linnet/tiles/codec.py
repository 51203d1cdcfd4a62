"""Tiles as bytes: a short header, then the elements as they lie in memory.

    offset  bytes
         0      4   "LNTL"
         4      2   version of this format
         6      1   number of axes
         7      1   order of the elements: "C" or "F"
         8      1   compression: 0 none, 1 zstd, 2 lz4
         9      1   length of the text of the dtype
        10      2   where the payload starts, a multiple of 64
        12      4   zeros
        16      8   bytes of the elements
        24      8   bytes of the payload; the same, unless compressed
        32      8   checksum of the payload (XXH3)
        40      …   text of the dtype, 8 bytes for each axis of the shape, zeros
        -8      8   checksum of the header up to here

Numbers are little-endian. Every byte is covered by one of the checksums, so that any change is
found; what reads a tile takes memory only after the header was found sound, and never more than
the payload can hold. Dtypes come from a list: there are none among them that could run anything.
"""

from __future__ import annotations

import importlib
import math
import re
import struct
import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np
import xxhash
from numpy.typing import NDArray

from linnet.errors import DamagedTileError, InputError, missing_extra

Buffer = bytes | bytearray | memoryview
"""Bytes somewhere in memory."""

Compression = Literal["zstd", "lz4"]
"""How the elements may be packed."""

MAGIC = b"LNTL"
VERSION = 1
ALIGNMENT = 64
MAX_COMPRESSED = 1 << 30
"""Larger tiles are stored as they are, and a compressed one that claims to be larger is refused."""

_FIXED = struct.Struct("<4sHBcBBH4xQQQ")
_CHECKSUM = struct.Struct("<Q")
_MAX_AXES = 64  # of NumPy
_NAMES: dict[int, Compression | None] = {0: None, 1: "zstd", 2: "lz4"}
_CODES = {name: code for code, name in _NAMES.items()}
_PACKAGES = {"zstd": "zstandard", "lz4": "lz4.block"}
# How many bytes one can stand for at most: zstd has runs of 128 KB in 4 bytes, lz4 adds 255 to a length.
_MAX_RATIO = {"zstd": 1 << 15, "lz4": 255}
_SLACK = 1 << 17
_NATIVE = "<" if sys.byteorder == "little" else ">"
_LONG_DOUBLE = np.finfo(np.longdouble).nmant  # x86, ARM and POWER each have another one
_PLAIN = re.compile(
    r"\|(b1|[iu]1|S[1-9]\d{0,6})"
    r"|[<>]([iu][248]|f[248]|c8|c16|U[1-9]\d{0,6}|[Mm]8(\[\d{0,9}([YMWDhms]|[munpfa]s)\])?)"
)


def memory_order(tile: NDArray[Any]) -> Literal["C", "F"]:
    """The order in which a copy of a tile lies as the tile does, gaps left out.

    >>> whole = np.zeros((6, 6))
    >>> memory_order(whole[:2, :3]), memory_order(whole.T[:2, :3])
    ('C', 'F')
    """
    steps = [abs(step) for step, length in zip(tile.strides, tile.shape, strict=True) if length > 1]
    return "C" if steps == sorted(steps, reverse=True) else "F"


def encoded(tile: NDArray[Any], compression: Compression | None = None) -> list[Buffer]:
    """`tile` as bytes, in parts to be written one after the other: header, payload.

    The payload is the memory of the tile itself where that is contiguous and in the byte order of
    this machine; other tiles are copied first. The order of the elements stays, if it is C's or Fortran's:
    in which order NumPy adds numbers depends on it. Compression is used where it makes the tile smaller.

    >>> parts = encoded(np.arange(3.0))
    >>> [len(part) for part in parts]
    [64, 24]
    >>> decoded(b"".join(parts))
    array([0., 1., 2.])
    """
    text = _text(tile.dtype)
    flags = tile.flags
    if not tile.dtype.isnative or not (flags.c_contiguous or flags.f_contiguous):
        tile = tile.astype(tile.dtype.newbyteorder("="), order=memory_order(tile))
        flags = tile.flags
    order, lying = (b"C", tile) if flags.c_contiguous else (b"F", tile.T)
    payload: Buffer = lying.reshape(-1).view(np.uint8).data.toreadonly()
    code = 0
    if compression is not None:
        code, payload = _compressed(payload, compression)
    start = _start(len(text), tile.ndim)
    fixed = _FIXED.pack(
        MAGIC,
        VERSION,
        tile.ndim,
        order,
        code,
        len(text),
        start,
        tile.nbytes,
        len(payload),
        _checksum(payload),
    )
    header = (fixed + text + struct.pack(f"<{tile.ndim}Q", *tile.shape)).ljust(start - _CHECKSUM.size, b"\0")
    return [header + _CHECKSUM.pack(_checksum(header)), payload]


def decoded(data: Buffer, name: str = "tile", *, verify: bool = True) -> NDArray[Any]:
    """The tile in `data`, read-only, in the byte order of this machine.

    Without compression the tile is a view of `data`. `name` is for messages. `verify=False` leaves
    out the checksum of the payload, for bytes that have been checked before.

    >>> stored = b"".join(encoded(np.eye(2)))
    >>> decoded(stored, "A[0, 0]")
    array([[1., 0.],
           [0., 1.]])
    >>> decoded(stored[:-1], "A[0, 0]")
    Traceback (most recent call last):
    linnet.errors.DamagedTileError: A[0, 0]: 159 bytes where the header says 160: truncated; resume ...
    """
    data = memoryview(data)
    if data.format != "B":
        data = data.cast("B")
    header = _header(data, name)
    payload = data[header.start :]
    if verify and _checksum(payload) != header.checksum:
        _damaged(name, "the checksum of its elements does not match")
    if header.compression is not None:
        payload = _expanded(payload, header.compression, header.size, name)
    try:
        tile = np.ndarray(header.shape, header.dtype, payload, order=header.order)
    except ValueError as error:  # an axis longer than any array can have, beside one of length 0
        _damaged(name, f"its shape is {header.shape}: {error}")
    if not header.dtype.isnative or not tile.flags.aligned:
        tile = tile.astype(header.dtype.newbyteorder("="), order=header.order)
    tile.flags.writeable = False
    return tile


def size_of(parts: Sequence[Buffer]) -> int:
    """How many bytes the parts have together.

    >>> size_of(encoded(np.zeros((2, 0))))
    128
    """
    return sum(map(len, parts))


# ---- the header --------------------------------------------------------------------


def _start(text: int, axes: int) -> int:
    """Where the payload starts, after the text of the dtype and the shape."""
    return -(-(_FIXED.size + text + 8 * axes + _CHECKSUM.size) // ALIGNMENT) * ALIGNMENT


class _Header(NamedTuple):
    """What a header says, each part of it checked."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    order: Literal["C", "F"]
    compression: Compression | None
    start: int
    """Where the payload starts."""
    size: int
    """Bytes of the elements."""
    checksum: int
    """Of the payload."""


def _header(data: memoryview, name: str) -> _Header:
    if len(data) < ALIGNMENT:
        _damaged(name, f"{len(data)} bytes are too few for a tile (the header alone has {ALIGNMENT})")
    magic, version, axes, order, code, text, start, size, stored, checksum = _FIXED.unpack_from(data)
    if magic != MAGIC:
        _damaged(name, f"it starts with {magic!r}, a tile with {MAGIC!r}")
    if start != _start(text, axes) or len(data) < start or axes > _MAX_AXES:
        _damaged(name, f"its header of {start} bytes cannot be right")
    end = start - _CHECKSUM.size
    if _CHECKSUM.unpack_from(data, end)[0] != _checksum(data[:end]):
        _damaged(name, "the checksum of its header does not match")
    if version != VERSION:
        _damaged(name, f"it has version {version} of the tile format, this Linnet reads {VERSION}")
    if order not in (b"C", b"F") or code not in _NAMES:
        _damaged(name, f"its header says order {order!r} and compression {code}")
    if len(data) != start + stored:
        what = "truncated" if len(data) < start + stored else "something was added"
        _damaged(name, f"{len(data)} bytes where the header says {start + stored}: {what}")
    dtype = _dtype(bytes(data[_FIXED.size : _FIXED.size + text]), name)
    shape = struct.unpack_from(f"<{axes}Q", data, _FIXED.size + text)
    compression = _NAMES[code]
    if size != math.prod(shape) * dtype.itemsize or not _holds(stored, size, compression):
        how = compression or "not compressed"
        _damaged(name, f"{dtype} of shape {shape} in {stored} bytes, {how}, cannot be")
    return _Header(dtype, shape, "C" if order == b"C" else "F", compression, start, size, checksum)


def _holds(stored: int, size: int, compression: Compression | None) -> bool:
    """Whether `stored` bytes can be `size` bytes of elements."""
    if compression is None:
        return size == stored
    return 0 < size <= min(stored * _MAX_RATIO[compression] + _SLACK, MAX_COMPRESSED)


def _checksum(data: Buffer) -> int:
    return xxhash.xxh3_64_intdigest(data)


def _damaged(name: str, why: str) -> NoReturn:
    advice = "resume the job: what is damaged or missing is computed again"
    raise DamagedTileError(f"{name}: {why}; {advice}")


# ---- dtypes ------------------------------------------------------------------------


def check_dtype(dtype: np.dtype[Any]) -> None:
    """InputError if tiles of this dtype cannot be stored."""
    _text(dtype)


@lru_cache(maxsize=256)
def _text(dtype: np.dtype[Any]) -> bytes:
    """What the header says for `dtype`, in the byte order of this machine."""
    text = dtype.newbyteorder("=").str if dtype.kind in "biufcmMSU" else ""
    if dtype.kind in "fc" and dtype.itemsize in (np.longdouble().itemsize, np.clongdouble().itemsize):
        text = text if _PLAIN.fullmatch(text) else f"{text}/{_LONG_DOUBLE}"
    elif not _PLAIN.fullmatch(text):
        raise InputError(
            f"a tile of dtype {dtype} cannot be stored: tiles in a store hold numbers, Booleans, "
            f"datetime64, timedelta64, or bytes and text of one length; convert it first"
        )
    return text.encode()


def _dtype(text: bytes, name: str) -> np.dtype[Any]:
    try:
        return _known(text)
    except (TypeError, ValueError):
        _damaged(name, f"its dtype {text[:40]!r} is none that tiles have on this machine")


@lru_cache(maxsize=256)
def _known(text: bytes) -> np.dtype[Any]:
    words = text.decode("ascii")
    if words in (f"{_NATIVE}{kind}/{_LONG_DOUBLE}" for kind in ("f12", "f16", "c24", "c32")):
        return np.dtype(words.partition("/")[0])
    if not _PLAIN.fullmatch(words):
        raise ValueError(words)
    return np.dtype(words)


# ---- compression -------------------------------------------------------------------


def _package(compression: Compression) -> Any:
    try:
        return importlib.import_module(_PACKAGES[compression])
    except ImportError:
        package = _PACKAGES[compression].partition(".")[0]
        raise missing_extra(f"compression={compression!r}", package, "compression") from None


def _compressed(payload: Buffer, compression: Compression) -> tuple[int, Buffer]:
    """The code of what was done to the payload, and what became of it."""
    if compression not in _PACKAGES:
        raise InputError(f"compression={compression!r}: give 'zstd', 'lz4' or None")
    package = _package(compression)
    if not 0 < len(payload) <= MAX_COMPRESSED:
        return 0, payload
    if compression == "zstd":
        packed: bytes = package.ZstdCompressor(level=1).compress(payload)
    else:
        packed = package.compress(payload, store_size=False)
    return (_CODES[compression], packed) if len(packed) < len(payload) else (0, payload)


def _expanded(payload: memoryview, compression: Compression, size: int, name: str) -> memoryview:
    """The elements of a compressed payload: `size` bytes, or it is damaged."""
    package = _package(compression)
    refusals = package.ZstdError if compression == "zstd" else package.LZ4BlockError
    try:
        if compression == "zstd":
            said = package.frame_content_size(payload)  # asked first: the decompressor would allocate it
            expanded = (
                b""
                if said != size
                else package.ZstdDecompressor().decompress(payload, allow_extra_data=False)
            )
        else:
            expanded = package.decompress(payload, uncompressed_size=size)
    except refusals as error:
        _damaged(name, f"its elements cannot be expanded by {compression}: {error}")
    if len(expanded) != size:
        _damaged(
            name, f"its elements are {len(expanded)} bytes after {compression} where the header says {size}"
        )
    return memoryview(expanded)
