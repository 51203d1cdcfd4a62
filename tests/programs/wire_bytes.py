"""The wire format as an attacker knows it: a valid program, its parts, and bytes around any body."""

from __future__ import annotations

import hashlib
import struct
from typing import Any

import msgpack
import sample_kernels  # noqa: F401  the program below calls them

from linnet.errors import WireError
from linnet.programs import TileProgram

CHOLESKY = TileProgram.from_source("""
def cholesky(A: In, O: Out(fill=0), S: Temp("A"), N: int):
    for i in range(N):
        O[i, i] = t_one(S[i, i, i])
        for j in range(i + 1, N):
            O[j, i] = t_one(O[i, i], S[i, j, i])
            for k in range(i + 1, j + 1):
                S[i + 1, j, k] = t_one(S[i, j, k], O[j, i], O[k, i], side="left")
""")
BYTES = CHOLESKY.to_bytes()
HEADER = struct.Struct(">4sHI16s")
BODY = msgpack.unpackb(BYTES[HEADER.size :])


def sealed(body: Any, version: int = 2) -> bytes:
    """Bytes with a right header and checksum around any body: hostile, not merely damaged."""
    raw = body if isinstance(body, bytes) else msgpack.packb(body)
    return HEADER.pack(b"LNTP", version, len(raw), hashlib.blake2b(raw, digest_size=16).digest()) + raw


def load(data: bytes) -> TileProgram | None:
    """The program, or None where it is refused as it should be."""
    try:
        return TileProgram.from_bytes(data)
    except WireError as error:
        assert isinstance(error, ValueError)
        assert 0 < len(str(error)) < 20_000
        return None
