"""Programs printed back as source, kept as golden texts (`--update-golden` rewrites them)."""

from __future__ import annotations

import pytest
from test_program_language import CONSTRUCTS
from test_program_paper import CHOLESKY, QR, TSQR

from linnet.programs import TileProgram

PRINTED = {
    "cholesky": CHOLESKY,
    "tsqr": TSQR,
    "qr": QR,
    **{name.replace(" ", "-").replace(",", ""): source for name, source in CONSTRUCTS.items()},
}


@pytest.mark.parametrize("name", PRINTED)
def test_a_program_prints_as_readable_source(name: str, golden) -> None:
    program = TileProgram.from_source(PRINTED[name])
    golden.check(name, repr(program))
    assert str(program) == repr(program)


@pytest.mark.parametrize("name", PRINTED)
def test_what_is_printed_is_read_back_as_the_same_program(name: str) -> None:
    program = TileProgram.from_source(PRINTED[name])
    again = TileProgram.from_source(repr(program))
    assert again == program
    assert repr(again) == repr(program)


PRECEDENCE = [
    "(a + b) * c", "a + b * c", "a - (b - c)", "a - b - c", "-(a + b)", "-a + b", "(-a) ** 2", "-(a ** 2)", "2 ** (a ** b)",
    "(2 ** a) ** b", "a // (b * c)", "a // b * c", "a % (b + 1)", "(a if b < c else c) + 1", "a if b < c else b if c < 2 else 3",
    "min(a, b - 1, -c)", "-(3)", "-3", "a - -3", "2 ** -(a - b)", "(a < b) + 1", "a * -b", "(a + 1) // -2",
]  # fmt: skip


@pytest.mark.parametrize("text", PRECEDENCE)
def test_parentheses_are_printed_where_they_matter(text: str) -> None:
    source = f"def p(A: In, O: Out, a: int, b: int, c: int):\n    O[0] = t_one(A[0], {text})\n"
    program = TileProgram.from_source(source)
    again = TileProgram.from_source(repr(program))
    assert again == program
    for values in ((0, 1, 2), (3, 1, 2), (2, 5, 1)):
        names = dict(zip("abc", values, strict=True))
        try:
            expected = eval(text, {"min": min}, names)
        except ZeroDivisionError:
            continue
        if isinstance(expected, float):
            continue  # 2 to a negative power is no integer: refused elsewhere
        bound = program.bind(**names)
        (task,) = bound.tasks()
        assert bound.call(task).args[1] == expected


CONDITIONS = [
    "a < b and b < c or a == 0", "a < b and (b < c or a == 0)", "not a < b", "not (a < b and b < c)",
    "not (a < b) == (b < c)", "(a < b) == (b < c)", "a < b < c", "not not a < b", "a != b or not (c >= 2 and a <= 1)",
]  # fmt: skip


@pytest.mark.parametrize("text", CONDITIONS)
def test_conditions_keep_their_meaning(text: str) -> None:
    source = f"def p(A: In, O: Out, a: int, b: int, c: int):\n    if {text}:\n        O[0] = t_one(A[0])\n"
    program = TileProgram.from_source(source)
    again = TileProgram.from_source(repr(program))
    assert again == program
    for a in range(3):
        for b in range(3):
            for c in range(3):
                expected = int(eval(text, {}, {"a": a, "b": b, "c": c}))
                assert program.bind(a=a, b=b, c=c).count() == expected
                assert len(list(again.bind(a=a, b=b, c=c).tasks())) == expected
