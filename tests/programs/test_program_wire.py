"""Spec row T7: programs as bytes. They come back the same; what is damaged is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agreement import same
from hypothesis import given
from hypothesis import strategies as st
from random_programs import Sample, examples, programs
from wire_bytes import BODY, BYTES, load, sealed

from linnet.errors import ProgramError, WireError
from linnet.programs import TileProgram

pytestmark = pytest.mark.timeout(60)  # no bytes may make loading hang; the usual answer takes milliseconds

# ---- round trips -------------------------------------------------------------------


def test_the_body_is_what_these_tests_take_it_for() -> None:
    assert sealed(BODY) == BYTES


@pytest.mark.slow
@examples(20)
@given(programs(wild=False))
def test_round_trip(sample: Sample) -> None:
    program = TileProgram.from_source(sample.source, constants=sample.constants)
    data = program.to_bytes()
    again = TileProgram.from_bytes(data)
    assert again.to_bytes() == data
    assert repr(again) == repr(program)
    assert again == program == TileProgram.from_source(repr(program))
    sizes = dict.fromkeys(sample.sizes, 3)
    try:
        one, other = program.bind(**sizes, **sample.tables), again.bind(**sizes, **sample.tables)
    except ValueError as error:
        assert "assert" in str(error) or ">=" in str(error) or "<=" in str(error)
        return
    same(other.tasks(), list(one.tasks()), "tasks after a round trip")


def test_bytes_of_the_first_version_are_read() -> None:
    """Jobs that were submitted before intermediate arrays could have a fill are still run."""
    data = bytes.fromhex((Path(__file__).parent / "golden" / "wire_version_1.hex").read_text("ascii"))
    program = TileProgram.from_bytes(data)
    assert program == TileProgram.from_source("""
def old(A: In, O: Out(fill=-1.5), P: Out(fill=True), Q: Temp, S: Temp("A"), N: int, T: Table):
    U = (4, 0, -2)
    assert N >= 1
    half = N // 2
    for i in range(N - 1, -1, -1):
        if i % 3 == 0 and not i > half:
            S[1, i], P[T[i]] = t_two(S[0, i], A[0:N:2], 0.5, axis=(1, None, 'left'))
        else:
            S[1, i] = t_one(A[max(i, U[0])], ceil(log2(i + 1)))
        Q[i] = t_one(S[1, i], i if i > 2 else -i)
        O[i, 2**i] = t_one(Q[i], scale=i / 2)
""")
    assert program.to_bytes()[4:6] == b"\0\2"
    assert TileProgram.from_bytes(program.to_bytes()) == program


def test_the_fill_of_an_intermediate_array_travels() -> None:
    source = "def p(A: In, S: Temp(fill={}), O: Out, N: int):\n    S[0, N] = t_one(A[0])\n    O[0] = t_one(S[0, 0])\n"
    for fill in ("0", "-7", "2.5", "True", "False"):
        program = TileProgram.from_source(source.format(fill))
        again = TileProgram.from_bytes(program.to_bytes())
        assert repr(again.arrays["S"]) == repr(program.arrays["S"]) == f"Temp(of=None, fill={fill})"


def test_large_integers_travel_or_are_refused() -> None:
    for number in (2**62, 2**63, 2**64, 10**30, -(2**70)):
        for text in (f"A[i], {number}", f"A[i], offset={number}"):
            try:
                program = TileProgram.from_source(
                    f"def p(A: In, O: Out, N: int):\n    for i in range(N):\n        O[i] = t_one({text})\n"
                )
                data = program.to_bytes()
            except (ProgramError, WireError):
                continue
            assert TileProgram.from_bytes(data).to_bytes() == data


# ---- damage ------------------------------------------------------------------------


@examples(300)
@given(st.binary(max_size=300))
def test_random_bytes(data: bytes) -> None:
    assert load(data) is None


@pytest.mark.parametrize("length", range(len(BYTES)))
def test_truncation(length: int) -> None:
    assert load(BYTES[:length]) is None


def test_every_bit_flip_is_noticed() -> None:
    for position in range(len(BYTES)):
        for bit in range(8):
            damaged = bytearray(BYTES)
            damaged[position] ^= 1 << bit
            assert load(bytes(damaged)) is None


@examples(50)
@given(st.binary(min_size=1, max_size=20))
def test_something_appended(tail: bytes) -> None:
    assert load(BYTES + tail) is None


def test_what_is_said() -> None:
    cases = [
        (b"", "0 bytes are too few"),
        (b"PK\x03\x04" + b"\0" * 60, "it starts with b'PK\\x03\\x04'"),
        (sealed(BODY, version=9), "format version 9; this Linnet reads versions 1 to 2"),
        (sealed(BODY, version=0), "format version 0; this Linnet reads versions 1 to 2"),
        (BYTES[:-1], "truncated or damaged"),
        (BYTES[:-1] + bytes([BYTES[-1] ^ 1]), "checksum"),
    ]
    for data, words in cases:
        with pytest.raises(WireError) as caught:
            TileProgram.from_bytes(data)
        assert words in str(caught.value)


@pytest.mark.parametrize("value", [None, "text", 3, [], {}])
def test_what_is_not_bytes(value: Any) -> None:
    with pytest.raises((WireError, TypeError)):
        TileProgram.from_bytes(value)
