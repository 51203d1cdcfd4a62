"""Spec row T3: what is wrong is said at once, at its place, with what to write instead."""

from __future__ import annotations

import pytest
from refusals import refused, underlined

from linnet.errors import BindError, ProgramError
from linnet.programs import Task, TileProgram, tile_program

# name: (source, what is underlined, words of the message, words of the hint)
WRONG: dict[str, tuple[str, str, str, str]] = {
    "a loop that is no range": (
        "def p(A: In, O: Out, N: int):\n    for i in [1, 2]:\n        O[i] = t_one(A[i])\n",
        "[1, 2]",
        "loops run over ranges, not over `[1, 2]`",
        "for i in range(start, stop, step)",
    ),
    "two loop variables": (
        "def p(A: In, O: Out, N: int):\n    for i, j in range(N):\n        O[i] = t_one(A[i])\n    O[0] = t_one(A[0])\n",
        "i, j",
        "a loop has one variable",
        "for i in range(...)",
    ),
    "an unknown kernel": (
        "def p(A: In, O: Out, N: int):\n    O[0] = t_onee(A[0])\n",
        "O[0] = t_onee(A[0])",
        "no kernel named 't_onee' is registered; did you mean 't_one'?",
        "register one with @ln.kernel before the program is defined",
    ),
    "too few outputs": (
        "def p(A: In, O: Out, N: int):\n    O[0] = t_two(A[0])\n",
        "O[0] = t_two(A[0])",
        "kernel 't_two' returns 2 tiles, but 1 tile on the left",
        "write 2 tiles on the left",
    ),
    "too many outputs": (
        "def p(A: In, O: Out, N: int):\n    O[0], O[1] = t_one(A[0])\n",
        "O[0], O[1] = t_one(A[0])",
        "kernel 't_one' returns 1 tile, but 2 tiles on the left",
        "write 1 tile on the left",
    ),
    "a tile written from no kernel": (
        "def p(A: In, O: Out, N: int):\n    O[0] = A[0] + A[1]\n    O[1] = t_one(A[0])\n",
        "A[0] + A[1]",
        "`A[0] + A[1]` is not a kernel call",
        "registered kernel",
    ),
    "a call that goes nowhere": (
        "def p(A: In, O: Out, N: int):\n    t_one(A[0])\n    O[0] = t_one(A[0])\n",
        "t_one(A[0])",
        "goes nowhere",
        "assign it to a tile",
    ),
    "an unknown name": (
        "def p(A: In, O: Out, N: int):\n    for i in range(N):\n        O[i] = t_one(A[i + width])\n",
        "width",
        "the name 'width' is not known here",
        "add a parameter `width: int`?",
    ),
    "an unknown array": (
        "def p(A: In, O: Out, N: int):\n    for i in range(N):\n        O[i] = t_one(B[i])\n",
        "B[i]",
        "'B'",
        "B",
    ),
    "an input written": (
        "def p(A: In, O: Out, N: int):\n    O[0] = t_one(A[0])\n    A[1] = t_one(A[0])\n",
        "A[1]",
        "'A' is an input and cannot be written",
        "ln.Out or ln.Temp",
    ),
    "a float index": (
        "def p(A: In, O: Out, N: int):\n    O[0] = t_one(A[N / 2])\n",
        "N / 2",
        "an index must be an integer, this is a float",
        "use // instead of /",
    ),
    "a logarithm that is no integer": (
        "def p(A: In, O: Out, N: int):\n    for i in range(log2(N)):\n        O[i] = t_one(A[i])\n",
        "log2(N)",
        "the stop of a loop must be an integer, this is a float",
        "ceil(log2(n)) instead of log2(n)",
    ),
    "a number as condition": (
        "def p(A: In, O: Out, N: int):\n    for i in range(N):\n        if i % 2:\n            O[i] = t_one(A[i])\n",
        "i % 2",
        "a condition must be a comparison",
        "if i > 0",
    ),
    "a step of zero": (
        "def p(A: In, O: Out, N: int):\n    for i in range(0, N, 0):\n        O[i] = t_one(A[i])\n",
        "i in range(0, N, 0)",
        "the step of a loop is 0",
        "positive or negative step",
    ),
    "a hidden name": (
        "def p(A: In, O: Out, N: int):\n    for i in range(N):\n        for i in range(3):\n            O[i] = t_one(A[i])\n",
        "i in range(3)",
        "the loop variable 'i' hides another name",
        "a variable of its own",
    ),
    "a scalar carried over": (
        "def p(A: In, O: Out, N: int):\n    x = 0\n    for i in range(N):\n        x = x + 1\n        O[x] = t_one(A[i])\n",
        "x",
        "'x' would carry its value from one iteration to the next",
        "compute it from the loop variables",
    ),
    "a scalar of one branch": (
        "def p(A: In, O: Out, N: int):\n    for i in range(N):\n        if i > 0:\n            x = 1\n"
        "        O[x + i] = t_one(A[i])\n",
        "x",
        "'x' has no value here: it is assigned only inside a loop or one branch",
        "in both branches",
    ),
    "two ranks": (
        "def p(A: In, O: Out, N: int):\n    for i in range(N):\n        O[i] = t_one(A[i], A[i, 0])\n",
        "A[i, 0]",
        "'A' has 2 indices here and 1 before",
        "the same number of indices everywhere",
    ),
    "versions of the wrong rank": (
        'def p(A: In, S: Temp("A"), O: Out, N: int):\n    for i in range(N):\n'
        "        S[i + 1] = t_one(A[i])\n        O[i] = t_one(S[i + 1])\n",
        "S[i + 1]",
        "'S' has 1 indices, but its version 0 is 'A', which has 1",
        "give S 2 indices",
    ),
    "a fill that is no number": (
        "def p(A: In, S: Temp(fill='x'), O: Out, N: int):\n    for i in range(N):\n        O[i] = t_one(A[i])\n",
        "S: Temp(fill='x')",
        "role of 'S' cannot be read: Temp(fill='x')",
        'ln.Temp, ln.Temp(fill=0), or ln.Temp("A")',
    ),
    "a range without end": (
        "def p(A: In, O: Out, N: int):\n    O[0] = t_one(A[1:])\n",
        "1:",
        "a range of tiles needs an end",
        "A[i, 0:N]",
    ),
    "a foreign function": (
        "def p(A: In, O: Out, N: int):\n    O[0] = t_one(A[abs(N)])\n",
        "abs(N)",
        "`abs(N)` is not a function of the language",
        "use min, max, ceil(log2(n)), floor(log2(n))",
    ),
    "a foreign expression": (
        "def p(A: In, O: Out, N: int):\n    O[0] = t_one(A[(lambda: 0)()])\n",
        "(lambda: 0)()",
        "is not a function of the language",
        "min, max",
    ),
    "while": (
        "def p(A: In, O: Out, N: int):\n    while N > 0:\n        O[0] = t_one(A[0])\n    O[0] = t_one(A[0])\n",
        "while N > 0:",
        "`while` is not part of the language",
        "for x in range(...)",
    ),
    "an update in place": (
        "def p(A: In, O: Out, N: int):\n    O[0] = t_one(A[0])\n    O[0] += t_one(A[0])\n",
        "O[0] += t_one(A[0])",
        "a tile is written once; write a new version",
        "",
    ),
    "a parameter without role": (
        "def p(A: In, O: Out, N):\n    O[0] = t_one(A[N])\n",
        "N",
        "parameter 'N' has no role",
        "int (a size)",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_words_and_the_caret(name: str) -> None:
    source, marked, message, hint = WRONG[name]
    error = refused(source)
    assert isinstance(error, ValueError)
    found = [d for d in error.diagnostics if message in d.message]
    assert found, f"{message!r} is not said in:\n{error}"
    assert hint in found[0].hint or hint in found[0].message, str(error)
    assert marked in underlined(error), str(error)
    line = source.splitlines()[found[0].line - 1]
    assert line[found[0].column - 1 :].startswith(marked), str(error)
    assert f"<source>:{found[0].line}:{found[0].column}: {found[0].message}" in str(error)


@pytest.mark.parametrize(
    ("role", "body", "message", "hint"),
    [
        (
            'Temp("A", fill=0)',
            "S[1, i] = t_one(A[i])",
            "'S' is Temp('A', fill=0): an array with versions has no fill",
            "write ln.Temp('A'), or ln.Temp(fill=0)",
        ),
        (
            "Temp(fill=0)",
            "O[i, i] = t_one(S[i])",
            "'S' is read and has a fill, but is never written, so that its tiles have no shape",
            "write some of its tiles, or remove the parameter",
        ),
        (
            f"Temp(fill={2**70})",
            "S[i] = t_one(A[i])",
            f"the fill {2**70} of 'S' is too large",
            "a fill fits 64 bits; write a float",
        ),
        (
            f"Out(fill=-{2**70})",
            "S[i] = t_one(A[i])",
            f"the fill -{2**70} of 'S' is too large",
            "a fill fits 64 bits; write a float",
        ),
    ],
)
def test_fills_that_cannot_be(role: str, body: str, message: str, hint: str) -> None:
    error = refused(
        f"def p(A: In, S: {role}, O: Out, N: int):\n    for i in range(N):\n"
        f"        O[i, N] = t_one(A[i])\n        {body}\n"
    )
    assert message in str(error)
    assert hint in str(error)


def test_all_problems_are_shown_together_in_source_order() -> None:
    error = refused(
        "def p(A: In, O: Out, N: int):\n"
        "    for i in range(N):\n"
        "        O[i, 0] = t_two(A[i])\n"
        "        O[i, 1] = t_nowhere(A[j])\n"
        "        A[i] = t_one(A[i / 2])\n"
    )
    assert str(error).startswith("tile program 'p': 5 problems")
    assert [(d.line, d.column) for d in error.diagnostics] == sorted(
        (d.line, d.column) for d in error.diagnostics
    )
    words = [
        "returns 2 tiles",
        "no kernel named 't_nowhere'",
        "name 'j' is not known",
        "is an input",
        "this is a float",
    ]
    for word in words:
        assert word in str(error)
    assert underlined(error) == ["O[i, 0] = t_two(A[i])", "O[i, 1] = t_nowhere(A[j])", "j", "A[i]", "i / 2"]


def test_several_things_python_has_and_the_language_has_not() -> None:
    error = refused(
        "def p(A: In, O: Out, N: int):\n"
        "    for i in [1]:\n"
        "        O[i] = t_one(A[i])\n"
        "    while True:\n"
        "        pass\n"
        "    return 3\n"
    )
    for word in ("loops run over ranges", "`while`", "`return`"):
        assert word in str(error)


def test_a_decorated_function_is_shown_with_its_file_and_line() -> None:
    with pytest.raises(ProgramError) as caught:

        @tile_program
        def wrong(A: In, O: Out, N: int):
            for i in range(N):
                O[i] = t_one(A[i + missing])

    (diagnostic,) = caught.value.diagnostics
    line = wrong_line()
    assert diagnostic.line == line
    assert f"test_program_errors.py:{line}:36: the name 'missing' is not known" in str(caught.value)
    assert underlined(caught.value) == ["missing"]


def wrong_line() -> int:
    with open(__file__, encoding="utf-8") as source:
        return next(n for n, line in enumerate(source, 1) if "A[i + missing]" in line)


# ---- binding -----------------------------------------------------------------------


@pytest.fixture
def copy() -> TileProgram:
    return TileProgram.from_source(
        "def copy(A: In, O: Out, N: int, M: int):\n    assert M >= N\n"
        "    for i in range(N):\n        O[i] = t_one(A[i])\n"
    )


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"N": 3}, "M"),
        ({}, "N"),
        ({"N": 3, "M": 4, "K": 5}, "K"),
        ({"N": -1, "M": 4}, "-1"),
        ({"N": 2.5, "M": 4}, "2.5"),
        ({"N": "3", "M": 4}, "'3'"),
        ({"N": True, "M": 4}, "True"),
        ({"N": None, "M": 4}, "None"),
        ({"N": 5, "M": 4}, "M >= N"),
    ],
)
def test_wrong_sizes_are_named(copy: TileProgram, sizes: dict[str, object], words: str) -> None:
    with pytest.raises(BindError) as caught:
        copy.bind(**sizes)
    assert words in str(caught.value)
    assert "copy" in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_numpy_integers_are_sizes(copy: TileProgram) -> None:
    import numpy as np

    assert copy.bind(N=np.int64(3), M=np.uint8(4)).count() == 3


@pytest.mark.parametrize("table", ["abc", [0.5], 3, [[1]], None, [True, "x"]])
def test_a_wrong_table_is_named(table: object) -> None:
    program = TileProgram.from_source("def p(A: In, O: Out, T: Table):\n    O[0] = t_one(A[T[0]])\n")
    with pytest.raises(BindError, match="T"):
        program.bind(T=table)


def test_a_table_that_is_too_short_is_named() -> None:
    program = TileProgram.from_source(
        "def p(A: In, O: Out, N: int, T: Table):\n    for i in range(N):\n        O[i] = t_one(A[T[i]])\n"
    )
    bound = program.bind(N=3, T=[4, 5])
    with pytest.raises(ProgramError, match="table 'T' has 2 entries; entry 2"):
        bound.call(Task(0, (2,)))


@pytest.mark.parametrize(
    "task", [Task(0, (3,)), Task(0, (-1,)), Task(1, (0,)), Task(0, ()), Task(0, (0, 0)), Task(-1, (0,))]
)
def test_a_task_that_does_not_exist(copy: TileProgram, task: Task) -> None:
    bound = copy.bind(N=3, M=3)
    for ask in (bound.call, bound.children, bound.parents, bound.in_degree):
        with pytest.raises(ProgramError, match="task|statement"):
            ask(task)
    assert task not in bound
