"""Chunks of Zarr arrays: bytes to elements and back.

zarr-python puts an event loop and several copies between the bytes and the tile; measured with zstd
on two cores that halves the speed of the codec. So where an array has the codecs that nearly all
have (zstd, gzip, blosc, any filter of format 2), chunks are decoded straight into the tile. What
else there is (shards, transposes, codecs yet to come) goes through zarr-python.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.errors import FormatError
from linnet.io import stores
from linnet.io.cuts import Box, meeting
from linnet.io.places import Place

Tile = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Chunks:
    """The chunks of one array, and how they are coded."""

    place: Place
    """The array."""
    metadata: Any
    """As zarr-python has it."""
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    """Of the elements, in the order of their bytes in the file."""
    stored: tuple[int, ...]
    """Lengths of what is one object: chunks, or shards."""
    unit: tuple[int, ...]
    """Lengths of what is decoded at once: chunks."""
    order: str
    """How elements lie in a chunk: "C" or "F"."""
    codecs: tuple[Any, ...] | None
    """From bytes to bytes, in the order in which they encode; None: only zarr-python knows them."""

    @classmethod
    def of(cls, place: Place, metadata: Any) -> Chunks:
        """From metadata that zarr-python has read."""
        dtype = np.dtype(metadata.dtype.to_native_dtype())
        shape = tuple(map(int, metadata.shape))
        if metadata.zarr_format == 2:
            codecs = (*(metadata.filters or ()), *((metadata.compressor,) if metadata.compressor else ()))
            stored = tuple(map(int, metadata.chunks))
            return cls(place, metadata, shape, dtype, stored, stored, metadata.order, codecs)
        if metadata.chunk_grid.to_dict()["name"] != "regular":
            raise ValueError(f"its chunks are {metadata.chunk_grid.to_dict()['name']}, not regular")
        stored = unit = tuple(map(int, metadata.chunk_grid.chunk_shape))
        first, *rest = (codec.to_dict() for codec in metadata.codecs)
        if first["name"] == "sharding_indexed":
            unit = tuple(map(int, first["configuration"]["chunk_shape"]))
        endian = first.get("configuration", {}).get("endian", "little")
        codecs = tuple(map(_numcodec, rest)) if first["name"] == "bytes" else (None,)
        known = codecs if all(codec is not None for codec in codecs) else None
        dtype = dtype.newbyteorder("<" if endian == "little" else ">")
        return cls(place, metadata, shape, dtype, stored, unit, "C", known)

    def key(self, index: tuple[int, ...]) -> str:
        """The name of a chunk's object under the array."""
        return self.metadata.encode_chunk_key(index)

    # ---- reading

    def read(self, box: Box, into: Tile) -> None:
        """Fill a tile with the elements of a box."""
        if self.codecs is None:
            self._through_library(box, into)
            return
        for index, inside, target in meeting(box, self.stored):
            part = into[(*target, ...)]
            whole = part.shape == self.stored
            if whole and self._straight(index, part):
                continue
            chunk = self.chunk(index)
            part[...] = self.filling if chunk is None else chunk[(*inside, ...)]

    def chunk(self, index: tuple[int, ...]) -> Tile | None:
        """One chunk, whole; None if it is not stored."""
        place = self.place / self.key(index)
        data = stores.read_if_there(place)
        if data is None:
            return None
        try:
            for codec in reversed(self.codecs or ()):
                data = codec.decode(data)
            flat = np.frombuffer(data, self.dtype) if not isinstance(data, np.ndarray) else data.reshape(-1)
            return flat.view(self.dtype).reshape(self.stored, order=self.order)  # type: ignore[call-overload]
        except Exception as error:
            raise self._damaged(place, index, error) from error

    def _straight(self, index: tuple[int, ...], part: Tile) -> bool:
        """Decode a whole chunk into its place, if it can be: one codec, and the same order of elements."""
        codecs = self.codecs or ()
        matching = part.dtype == self.dtype and (
            part.flags.c_contiguous if self.order == "C" else part.flags.f_contiguous
        )
        if not matching or len(codecs) != 1:
            return False
        place = self.place / self.key(index)
        data = stores.read_if_there(place)
        if data is None:
            part[...] = self.filling
            return True
        if _decoded_size(codecs[0].codec_id, data) != part.nbytes:
            return False
        flat = part.reshape(-1) if self.order == "C" else part.T.reshape(-1)
        try:
            codecs[0].decode(data, flat.view(np.uint8))
        except Exception as error:
            raise self._damaged(place, index, error) from error
        return True

    @property
    def filling(self) -> Any:
        """What elements of chunks that are not stored are."""
        value = self.metadata.fill_value
        return np.zeros((), self.dtype)[()] if value is None else value

    def _damaged(self, place: Place, index: tuple[int, ...], error: Exception) -> FormatError:
        size = math.prod(self.stored) * self.dtype.itemsize
        return FormatError(
            f"{place}: chunk {index} is damaged or truncated: it does not decode to the {size:,} bytes of "
            f"{'×'.join(map(str, self.stored)) or 'one'} {self.dtype.name} ({error})"
        )

    # ---- writing

    def write(self, box: Box, tile: Tile) -> None:
        """Store the chunks that a box meets; those it covers in part are read first."""
        if self.codecs is None:
            self._through_library(box, tile, writing=True)
            return
        for index, inside, source in meeting(box, self.stored):
            part = tile[(*source, ...)]
            if part.shape != self.stored or part.dtype != self.dtype:
                part = self._completed(index, inside, part)
            data: Any = np.asarray(part, order=self.order)  # type: ignore[call-overload]
            data = data.reshape(-1, order=self.order)
            for codec in self.codecs:
                data = codec.encode(data)
            stores.write(self.place / self.key(index), np.ascontiguousarray(data).view(np.uint8))

    def _completed(self, index: tuple[int, ...], inside: Box, part: Tile) -> Tile:
        """A whole chunk with a part put into it."""
        edges = [min(s, n - i * s) for i, s, n in zip(index, self.stored, self.shape, strict=True)]
        covered = list(part.shape) == edges
        known = None if covered else self.chunk(index)
        if known is None:
            whole = np.full(self.stored, self.filling, self.dtype)
        else:
            whole = np.array(known, self.dtype)
        whole[(*inside, ...)] = part
        return whole

    # ---- what only zarr-python knows

    def _through_library(self, box: Box, tile: Tile, writing: bool = False) -> None:
        if not self.place.is_local:
            stores.object_store(self.place)  # whoever may not go that way is told so, each time
        array = _library_array(self)
        if writing:
            array[box] = tile
            return
        try:
            tile[...] = array[box]
        except (RuntimeError, ValueError, OSError) as error:
            named = list(itertools.islice((index for index, _, _ in meeting(box, self.stored)), 2))
            where = f"chunk {named[0]}" if len(named) == 1 else f"one of the chunks from {named[0]} on"
            raise FormatError(f"{self.place}: {where} is damaged or truncated ({error})") from error


def _decoded_size(codec: str, data: Any) -> int | None:
    """Bytes that a chunk says it decodes to, where its first bytes tell: codecs fill less without a word."""
    head = bytes(memoryview(data)[:18])
    if codec == "blosc" and len(head) >= 16:
        return int.from_bytes(head[4:8], "little")
    if codec != "zstd" or len(head) < 6 or head[:4] != b"\x28\xb5\x2f\xfd":
        return None
    flags = head[4]
    single = flags >> 5 & 1
    size = (single, 2, 4, 8)[flags >> 6]
    start = 5 + (1 - single) + (0, 1, 2, 4)[flags & 3]
    if not size:
        return None
    return int.from_bytes(head[start : start + size], "little") + (256 if size == 2 else 0)


def _numcodec(named: dict[str, Any]) -> Any | None:
    """The codec of numcodecs' for one of format 3, if we know it."""
    import numcodecs

    configuration = named.get("configuration", {})
    match named["name"]:
        case "zstd":
            return numcodecs.Zstd(level=configuration["level"], checksum=configuration.get("checksum", False))
        case "gzip":
            return numcodecs.GZip(level=configuration["level"])
        case "blosc":
            shuffle = {"noshuffle": 0, "shuffle": 1, "bitshuffle": 2}[configuration["shuffle"]]
            return numcodecs.Blosc(
                configuration["cname"], configuration["clevel"], shuffle, configuration.get("blocksize", 0)
            )
    return None


@lru_cache(maxsize=64)
def _library_array(chunks: Chunks) -> Any:
    """The array as zarr-python's own."""
    from zarr import Array
    from zarr.core.array import AsyncArray
    from zarr.storage import LocalStore, ObjectStore, StorePath

    place = chunks.place
    if place.is_local:
        path = StorePath(LocalStore(place.url))
    else:
        path = StorePath(ObjectStore(stores.object_store(place)), place.key)
    config: Any = {"write_empty_chunks": True}
    return Array(AsyncArray(metadata=chunks.metadata, store_path=path, config=config))
