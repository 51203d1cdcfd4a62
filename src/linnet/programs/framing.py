"""Bytes that say what they are: a mark, a version, a length and a checksum before the body.

mark: 4 bytes | version: 2 bytes | length of body: 4 bytes | checksum of body: 16 bytes | body
"""

from __future__ import annotations

import hashlib
import struct

from linnet.errors import WireError

_HEADER = struct.Struct(">4sHI16s")


def framed(mark: bytes, version: int, body: bytes) -> bytes:
    """A body with its header.

    >>> unframed(framed(b"TEST", 1, b"body"), b"TEST", 1, "a test", most=100)
    b'body'
    """
    return _HEADER.pack(mark, version, len(body), _checksum(body)) + body


def unframed(
    data: bytes | bytearray | memoryview,
    mark: bytes,
    version: int,
    what: str,
    *,
    most: int,
    oldest: int | None = None,
) -> bytes:
    """The body; WireError if the bytes are not `what`, or not as they were written.

    Versions from `oldest` on are read, if it is given; else `version` alone.
    """
    raw = bytes(data)
    if len(raw) < _HEADER.size:
        raise WireError(f"{len(raw)} bytes are too few for {what} (the header alone has {_HEADER.size})")
    kind, number, length, checksum = _HEADER.unpack_from(raw)
    if kind != mark:
        raise WireError(f"this is not {what}: it starts with {kind!r}, expected {mark!r}")
    first = version if oldest is None else oldest
    if not first <= number <= version:
        read = f"version {version}" if first == version else f"versions {first} to {version}"
        raise WireError(f"{what} of format version {number}; this Linnet reads {read}")
    body = raw[_HEADER.size :]
    if len(body) != length or length > most:
        raise WireError(f"{what} of {length} bytes is {len(body)} bytes long here: truncated or damaged")
    if _checksum(body) != checksum:
        raise WireError(f"the checksum of {what} does not match: it is damaged")
    return body


def version_of(data: bytes | bytearray | memoryview) -> int:
    """The format version of bytes that `unframed` took."""
    number: int = _HEADER.unpack_from(data)[1]
    return number


def _checksum(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=16).digest()
