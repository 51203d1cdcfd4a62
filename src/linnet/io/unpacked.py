"""Compressed files, unpacked once for each process: text cannot be cut while it is packed.

The copy goes into the system's folder for temporary files and is gone when the process ends, however
it ends: the file has no name. Whoever needs a range of bytes, reads it there.
"""

from __future__ import annotations

import atexit
import os
import threading
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

from linnet.errors import FormatError, InputError
from linnet.io import stores
from linnet.io.places import Place

COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zst": "zstd"}
"""By the end of a file's name."""

_BLOCK = 1 << 22
_lock = threading.Lock()
_copies: dict[tuple[Place, str, str], tuple[Any, int, threading.Lock]] = {}


def compression_of(place: Place, given: str | None) -> str | None:
    """How a file is compressed: as the user says, or as its name tells ("infer")."""
    if given == "infer":
        return next((kind for end, kind in COMPRESSIONS.items() if place.name.endswith(end)), None)
    if given is not None and given not in COMPRESSIONS.values():
        raise InputError(
            f"compression={given!r} is not known; use {', '.join(COMPRESSIONS.values())}, None or 'infer'"
        )
    return given


class Bytes:
    """Ranges of bytes of a file or object, unpacked if it is compressed."""

    def __init__(self, place: Place, version: str, compression: str | None) -> None:
        self.place = place
        self._version = version
        self._compression = compression

    def size(self) -> int:
        """How many there are."""
        if self._compression is None:
            return stores.size_and_version(self.place)[0]
        return _unpacked(self.place, self._version, self._compression)[1]

    def read(self, start: int, stop: int) -> Any:
        """Those in a range; fewer at the end."""
        if self._compression is None:
            return stores.read(self.place, start, stop)
        file, _ = _unpacked(self.place, self._version, self._compression)
        return os.pread(file.fileno(), stop - start, start)

    @property
    def is_near(self) -> bool:
        """Whether they are on this machine: then small pieces may be read one by one."""
        return self.place.is_local or self._compression is not None

    def fill(self, room: Any, start: int) -> int:
        """Fill memory with those from a place on, if they are near; returns how many there were."""
        if self._compression is None:
            return stores.fill(self.place, room, start)
        file, _ = _unpacked(self.place, self._version, self._compression)
        return os.preadv(file.fileno(), [room], start)


def _unpacked(place: Place, version: str, compression: str) -> tuple[BinaryIO, int]:
    import tempfile

    key = (place, version, compression)
    with _lock:
        file, size, making = _copies.setdefault(key, (None, -1, threading.Lock()))
    with making:
        file, size, _ = _copies[key]
        if file is None:
            file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 # it is kept
            try:
                size = sum(file.write(block) for block in _blocks(place, compression))
            except BaseException:
                file.close()
                raise
            with _lock:
                for other in [each for each in _copies if each[0] == place and each != key]:
                    _close(other)
                _copies[key] = (file, size, making)
    return file, size


def _close(key: tuple[Place, str, str]) -> None:
    """Give up the copy of a file; there is none if it could not be unpacked."""
    file = _copies.pop(key)[0]
    if file is not None:
        file.close()


@atexit.register
def _close_all() -> None:
    """At the end of the process, lest the interpreter warns of files that nobody closed."""
    with _lock:
        for key in list(_copies):
            _close(key)


def _blocks(place: Place, compression: str) -> Iterator[bytes]:
    """The bytes of a compressed file, unpacked, a few megabytes at a time."""
    import bz2
    import gzip
    import lzma

    source = _Stream(stores.stream(place))
    kinds: dict[str, Any] = {"gzip": gzip.open, "bz2": bz2.open, "xz": lzma.open, "zstd": _zstd}
    try:
        with kinds[compression](source) as file:
            while block := file.read(_BLOCK):
                yield block
    except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
        if isinstance(error, FormatError) or (isinstance(error, OSError) and error.errno):
            raise
        raise FormatError(
            f"{place} is not {compression}, or is truncated, after {source.taken:,} bytes of it ({error})"
        ) from error


def _zstd(source: Any) -> Any:
    try:
        import pyarrow as pa
    except ImportError as error:
        raise stores.extra("pyarrow", "reading files compressed by zstd") from error
    return pa.CompressedInputStream(pa.PythonFile(source, mode="r"), "zstd")


class _Stream:
    """Blocks of bytes as a file that is read from its beginning to its end."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._left = b""
        self.taken = 0
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        while (size < 0 or len(self._left) < size) and (block := next(self._blocks, b"")):
            self._left += block
        data, self._left = (self._left, b"") if size < 0 else (self._left[:size], self._left[size:])
        self.taken += len(data)
        return data

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def writable(self) -> bool:
        return False

    def flush(self) -> None:
        """Nothing is kept back."""

    def close(self) -> None:
        self.closed = True

    def tell(self) -> int:
        return self.taken
