"""Spec row T7: programs as bytes. They come back the same; what is damaged is refused."""

from __future__ import annotations

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
        (sealed(BODY, version=9), "format version 9"),
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
