"""Sparse tiles: a fill, and the elements that differ from it in rows that are compressed.

The first axis has a pointer for each row into the stored elements; the others, taken together in C order, an
index for each element: of a matrix that is the usual compressed form of rows. A tile with one axis is
one row. Indices of a row ascend, and each is there once.

A sparse tile travels as an array of bytes, so that engines, stores and caches need to know nothing of it:

    offset  bytes
         0      4   "LNSP"
         4      2   version
         6      1   number of axes
         7      1   bytes of an index: 4 or 8
         8      8   how many elements are stored
        16      8   text of the dtype, zeros
        24     32   the fill, zeros
        56     16   for each axis: its length, and where the tile begins in its array
         …      …   pointers, indices and values, each beginning at a multiple of 16

Whoever reads one is sure, before anything is computed, that pointers ascend and indices lie inside.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.errors import DamagedTileError

_MAGIC = b"LNSP"
_VERSION = 1
_FIXED = struct.Struct("<4sHBBQ8s32s")
_MAX_AXES = 32
KINDS = "biufc"
"""Kinds of dtypes that may be stored."""


@dataclass(frozen=True, slots=True, eq=False)
class SparseTile:
    """A tile most of whose elements are `fill`.

    >>> tile = SparseTile.of(np.array([[0, 7], [0, 0]]), 0)
    >>> tile.stored, tile.dense()
    (1, array([[0, 7],
           [0, 0]]))
    """

    shape: tuple[int, ...]
    origin: tuple[int, ...]
    """Where its first element lies in the whole array."""
    fill: Any
    """A scalar of NumPy's, of the tile's dtype."""
    pointers: NDArray[Any]
    indices: NDArray[Any]
    values: NDArray[Any]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of its elements."""
        return self.values.dtype

    @property
    def stored(self) -> int:
        """How many elements are stored."""
        return len(self.values)

    @property
    def folded(self) -> tuple[int, int]:
        """Rows, and elements of a row."""
        return folded(self.shape)

    @classmethod
    def of(cls, array: NDArray[Any], fill: Any, origin: Sequence[int] | None = None) -> SparseTile:
        """The elements of an array that differ from `fill`."""
        fill = array.dtype.type(fill)
        keep = ~same(array, fill)
        positions = np.flatnonzero(keep.reshape(-1))
        values = array.reshape(-1)[positions]
        return cls.at(array.shape, origin or (0,) * array.ndim, fill, positions, values)

    @classmethod
    def at(
        cls,
        shape: Sequence[int],
        origin: Sequence[int],
        fill: Any,
        positions: NDArray[Any],
        values: NDArray[Any],
    ) -> SparseTile:
        """Elements at positions (in C order, ascending, each once)."""
        rows, columns = folded(tuple(shape))
        index = index_type(rows, columns, len(values))
        row = positions // max(1, columns)
        pointers = np.zeros(rows + 1, index)
        pointers[1:] = np.cumsum(np.bincount(row, minlength=rows)) if rows else 0
        indices = (positions - row * columns).astype(index)
        return cls(
            tuple(shape),
            tuple(origin),
            values.dtype.type(fill),
            pointers,
            indices,
            np.ascontiguousarray(values),
        )

    def rows(self) -> NDArray[Any]:
        """The row of each stored element."""
        return np.repeat(np.arange(len(self.pointers) - 1, dtype=self.indices.dtype), np.diff(self.pointers))

    def positions(self) -> NDArray[Any]:
        """Where stored elements are, counted in C order."""
        return self.rows().astype(np.int64) * self.folded[1] + self.indices

    def coordinates(self) -> tuple[NDArray[Any], ...]:
        """Where stored elements are, along each axis."""
        if len(self.shape) == 1:
            return (self.indices,)
        if len(self.shape) == 2:
            return (self.rows(), self.indices)
        return tuple(np.unravel_index(self.positions(), self.shape))

    def dense(self, into: NDArray[Any] | None = None) -> NDArray[Any]:
        """All of its elements."""
        whole = np.empty(self.shape, self.dtype) if into is None else into
        whole[...] = self.fill
        whole[self.coordinates()] = self.values
        return whole

    def packed(self) -> NDArray[np.uint8]:
        """The tile as bytes."""
        header = self._header(self.stored)
        parts = (self.pointers, self.indices, self.values)
        place = _aligned(len(header))
        packed = np.zeros(place + sum(_aligned(part.nbytes) for part in parts), np.uint8)
        packed[: len(header)] = np.frombuffer(header, np.uint8)
        for part in parts:
            packed[place : place + part.nbytes] = part.view(np.uint8)
            place += _aligned(part.nbytes)
        return packed

    def _header(self, stored: int) -> bytes:
        index = self.indices.dtype.itemsize
        fill = np.asarray(self.fill, self.dtype).tobytes()
        axes = len(self.shape)
        begin = _FIXED.pack(_MAGIC, _VERSION, axes, index, stored, self.dtype.str.encode(), fill)
        return begin + struct.pack(f"<{2 * axes}q", *self.shape, *self.origin)

    @classmethod
    def room(
        cls, shape: tuple[int, ...], origin: tuple[int, ...], fill: Any, most: int
    ) -> tuple[SparseTile, NDArray[np.uint8]]:
        """A tile to be written, with room for so many elements, and its memory; see `filled`."""
        rows, columns = folded(shape)
        index = np.dtype(index_type(rows, columns, most))
        dtype = np.asarray(fill).dtype
        place = _aligned(_FIXED.size + 16 * len(shape))
        sizes = ((rows + 1) * index.itemsize, most * index.itemsize, most * dtype.itemsize)
        memory = np.empty(place + sum(map(_aligned, sizes)), np.uint8)
        parts: list[NDArray[Any]] = []
        for size, kind in zip(sizes, (index, index, dtype), strict=True):
            parts.append(memory[place : place + size].view(kind))
            place += _aligned(size)
        return cls(shape, origin, fill, *parts), memory

    def filled(self, memory: NDArray[np.uint8], stored: int) -> NDArray[np.uint8]:
        """The tile as bytes, in the memory of its `room`, after so many elements were written.

        >>> tile, memory = SparseTile.room((1, 4), (0, 0), np.float64(0), 3)
        >>> tile.pointers[:], tile.indices[:2], tile.values[:2] = [0, 2], [1, 3], [5, 6]
        >>> SparseTile.unpacked(tile.filled(memory, 2)).dense()
        array([[0., 5., 0., 6.]])
        """
        header = self._header(stored)
        memory[: len(header)] = np.frombuffer(header, np.uint8)
        memory[len(header) : _aligned(len(header))] = 0
        place = _aligned(len(header))
        parts = (self.pointers, self.indices[:stored], self.values[:stored])
        for part in parts:
            there = memory[place : place + part.nbytes].view(part.dtype)
            if there.ctypes.data != part.ctypes.data:
                _moved_down(part, there)
            end = place + _aligned(part.nbytes)
            memory[place + part.nbytes : end] = 0
            place = end
        return memory[:place]

    @classmethod
    def unpacked(cls, data: NDArray[np.uint8]) -> SparseTile:
        """The tile in such bytes, as views of them."""
        if data.dtype != np.uint8 or data.ndim != 1 or len(data) < _FIXED.size:
            raise _damaged(f"it is {data.dtype} of shape {data.shape}")
        data = np.ascontiguousarray(data)
        magic, version, axes, index, stored, text, fill = _FIXED.unpack(data[: _FIXED.size].tobytes())
        if magic != _MAGIC or version != _VERSION or not 1 <= axes <= _MAX_AXES or index not in (4, 8):
            raise _damaged("its header is not that of a sparse tile of this version")
        try:
            dtype = np.dtype(text.rstrip(b"\0").decode("ascii"))
        except (TypeError, ValueError, UnicodeDecodeError) as error:
            raise _damaged("its dtype is not known") from error
        if dtype.kind not in KINDS:
            raise _damaged(f"its dtype is {dtype}")
        end = _FIXED.size + 16 * axes
        if len(data) < end:
            raise _damaged("it is truncated")
        sides = struct.unpack(f"<{2 * axes}q", data[_FIXED.size : end].tobytes())
        shape, origin = sides[:axes], sides[axes:]
        if min(shape) < 0:
            raise _damaged(f"its shape is {shape}")
        rows, columns = folded(shape)
        place = _aligned(end)
        parts: list[NDArray[Any]] = []
        for count, kind in ((rows + 1, f"i{index}"), (stored, f"i{index}"), (stored, dtype)):
            size = count * np.dtype(kind).itemsize
            if place + size > len(data):
                raise _damaged("it is truncated")
            parts.append(data[place : place + size].view(kind))
            place += _aligned(size)
        pointers, indices, values = parts
        if pointers[0] != 0 or pointers[-1] != stored or (rows > 1 and (np.diff(pointers) < 0).any()):
            raise _damaged("its rows are not in order")
        # Seen without a sign a negative index is a large one: one pass looks for both.
        if stored and int(indices.view(f"u{index}").max()) >= columns:
            raise _damaged("an index lies beyond its row")
        scalar = np.frombuffer(fill[: dtype.itemsize], dtype)[0]
        return cls(shape, origin, scalar, pointers, indices, values)


def origin_of(data: NDArray[np.uint8]) -> tuple[int, ...]:
    """Where a packed tile begins in its array; the rest of it is not looked at."""
    axes = int(data[6])
    return struct.unpack(f"<{axes}q", data[_FIXED.size + 8 * axes : _FIXED.size + 16 * axes].tobytes())


def folded(shape: tuple[int, ...]) -> tuple[int, int]:
    """The rows of a tile, and how long they are.

    >>> folded((2, 3, 4)), folded((5,))
    ((2, 12), (1, 5))
    """
    return (1, shape[0]) if len(shape) == 1 else (shape[0], math.prod(shape[1:]))


def index_type(rows: int, columns: int, stored: int) -> type[Any]:
    """The integers that pointers and indices are."""
    return np.int32 if max(rows, columns, stored) < 2**31 else np.int64


def same(values: NDArray[Any], fill: Any) -> NDArray[Any]:
    """Which elements are the fill; not-a-number counts as equal to itself."""
    if values.dtype.kind in "fc" and np.isnan(fill):
        return np.isnan(values)
    return values == fill


def scalar_text(value: Any) -> str:
    """A number as text that holds all of its bits.

    >>> scalar_of(scalar_text(np.float32(0.1)))
    np.float32(0.1)
    """
    array = np.asarray(value)
    return f"{array.dtype.str}:{array.tobytes().hex()}"


def scalar_of(text: str) -> Any:
    """The number of `scalar_text`."""
    dtype, _, digits = text.partition(":")
    kind = np.dtype(dtype)
    if kind.kind not in KINDS:
        raise _damaged(f"a number of dtype {kind}")
    return np.frombuffer(bytes.fromhex(digits), kind)[0]


def _moved_down(part: NDArray[Any], there: NDArray[Any]) -> None:
    """Copy to a place before, which may overlap: in pieces, so that nothing is copied twice."""
    step = 1 << 16
    for start in range(0, len(part), step):
        there[start : start + step] = part[start : start + step]


def _aligned(size: int) -> int:
    return -(-size // 16) * 16


def _damaged(why: str) -> DamagedTileError:
    return DamagedTileError(f"a sparse tile cannot be read: {why}; compute the array anew")
