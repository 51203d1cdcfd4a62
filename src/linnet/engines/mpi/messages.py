"""What ranks say to one another: a header of fixed form, then bytes.

    offset  bytes
         0      1   kind of message
         1      1   for tiles: order of the elements, "C" or "F"
         2      1   for tiles: number of axes
         3      1   for tiles: length of the text of the dtype
         4      4   number of the run
         8      8   a number: of a tile, most often
        16      8   bytes of the body
        24      …   for tiles: 8 bytes for each axis of the shape, then the text of the dtype

A body that is short stands behind the header, in the same message. A long one follows in a message of its
own, which goes from the memory of a tile straight into that of another. Nothing is pickled.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linnet.errors import InputError

Bytes = NDArray[np.uint8]

INLINE = 16 << 10
"""Bytes of the longest body that stands behind its header."""
LONGEST = INLINE + 24 + 8 * 64 + 256
"""Bytes of the longest message that is a header."""

_FIXED = struct.Struct("<BcBBIqQ")
_KINDS = "biufcmMSU"


class Kind(IntEnum):
    """What a message is about."""

    START = 1
    """A run begins; the body says which."""
    STOP = 2
    """A run is broken off."""
    QUIT = 3
    """Nothing more will come: the rank may go."""
    WANT = 4
    """Tiles that the sender needs; the body lists their numbers."""
    TILE = 5
    """A tile that was asked for."""
    INPUT = 6
    """A tile of an array in the memory of rank 0, that was asked for."""
    RESULT = 7
    """A tile of an output, for rank 0."""
    PLANNED = 8
    """The rank has made its plan; the number is a checksum of it."""
    NEWS = 9
    """What happened: the number is how many tasks are done, the body lists events."""
    FAILED = 10
    """A task failed; the body says how."""
    DONE = 11
    """The rank has done its share; the body says what it counted."""
    FETCH = 12
    """Rank 0 asks for a tile of an output that stayed with the rank."""
    HELD = 13
    """That tile."""
    DROP = 14
    """Tiles of outputs that stayed with the rank and are needed no more; the body lists their numbers."""
    SAVE = 15
    """Tiles in memory are to be written down, so that the run can go on from them."""
    SAVED = 16
    """The rank has done that."""


TILES = frozenset({Kind.TILE, Kind.INPUT, Kind.RESULT, Kind.HELD})
"""Messages whose body is a tile."""


class Header(NamedTuple):
    """The beginning of a message, understood."""

    kind: Kind
    run: int
    number: int
    size: int
    """Bytes of the body."""
    order: Literal["C", "F"] = "C"
    shape: tuple[int, ...] = ()
    dtype: str = ""

    def packed(self) -> bytes:
        """As it travels."""
        text = self.dtype.encode()
        fixed = _FIXED.pack(
            self.kind,
            self.order.encode(),
            len(self.shape),
            len(text),
            self.run,
            self.number,
            self.size,
        )
        return fixed + struct.pack(f"<{len(self.shape)}q", *self.shape) + text

    def empty(self) -> NDArray[Any]:
        """Memory for the tile that follows."""
        return np.empty(self.shape, np.dtype(self.dtype), order=self.order)


def unpacked(data: memoryview) -> tuple[Header, memoryview]:
    """The header of a message, and what stands behind it.

    >>> header = Header(Kind.TILE, 3, 17, 24, "F", (3,), "<f8")
    >>> found, rest = unpacked(memoryview(header.packed() + b"body"))
    >>> found == header, bytes(rest)
    (True, b'body')
    """
    kind, order, axes, text, run, number, size = _FIXED.unpack_from(data)
    shape = struct.unpack_from(f"<{axes}q", data, _FIXED.size)
    start = _FIXED.size + 8 * axes
    dtype = bytes(data[start : start + text]).decode()
    header = Header(Kind(kind), run, number, size, "C" if order == b"C" else "F", shape, dtype)
    return header, data[start + text :]


def check_sendable(tile: NDArray[Any]) -> None:
    """Refuse a tile whose elements mean nothing to another process."""
    if tile.dtype.kind not in _KINDS:
        raise InputError(
            f"a tile of dtype {tile.dtype} cannot go to another rank: tiles there hold numbers, Booleans, "
            "datetime64, timedelta64, or bytes and text of one length; convert it first"
        )


def tile_header(kind: Kind, run: int, number: int, tile: NDArray[Any]) -> Header:
    """The header of a message with a tile, which lies in one piece of memory."""
    order = "C" if tile.flags.c_contiguous else "F"
    return Header(kind, run, number, tile.nbytes, order, tile.shape, tile.dtype.str)


def contiguous(tile: NDArray[Any]) -> NDArray[Any]:
    """The tile, copied if it does not lie in one piece of memory."""
    if tile.flags.c_contiguous or tile.flags.f_contiguous:
        return tile
    return np.array(tile, order="F" if tile.strides[0] < tile.strides[-1] else "C")


def as_bytes(tile: NDArray[Any]) -> Bytes:
    """The memory of a tile that lies in one piece.

    >>> as_bytes(np.array([1, 256], "<i2"))
    array([1, 0, 0, 1], dtype=uint8)
    """
    if not tile.nbytes:
        return np.empty(0, np.uint8)
    lying = tile if tile.flags.c_contiguous else tile.T
    return lying.reshape(-1).view(np.uint8)
