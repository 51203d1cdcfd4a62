"""Programs inside larger programs, at known sizes, and the part of a program that is wanted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_programs import Sample, examples, programs

from linnet.errors import ProgramError
from linnet.programs import BoundProgram, In, Out, ProgramBuilder, Temp, TileProgram
from linnet.programs.compose import inlined
from linnet.programs.grammar import Binary, Int, Name, Program, Size, Table
from linnet.programs.liveness import live
from linnet.programs.printing import show_program


def calls(bound: BoundProgram) -> list[tuple[Any, ...]]:
    """What each task does, in order."""
    made = (bound.call(task) for task in bound.tasks())
    return [(c.kernel, list(c.outputs), tuple(c.args), dict(c.attributes)) for c in made]


def expected(trace: oracle.Trace, names: Mapping[str, str]) -> list[tuple[Any, ...]]:
    """What each task of a trace does, with arrays renamed."""

    def renamed(item: Any) -> Any:
        if isinstance(item, list):
            return [renamed(each) for each in item]
        return (names[item[0]], item[1]) if isinstance(item, tuple) else item

    return [
        (c.kernel, renamed(c.outputs), tuple(renamed(a) for a in c.args), dict(c.attributes))
        for c in (trace.calls[task] for task in trace.order)
    ]


def body_as_program(tree: Program, sizes: Mapping[str, int], tables: Mapping[str, Any]) -> TileProgram:
    """A program of nothing but the inlined body of another, with all arrays renamed."""
    b = ProgramBuilder("around")
    names = {name: f"{name}_here" for name in tree.roles(In, Out, Temp)}
    for name, role in tree.roles(In, Out, Temp).items():
        match role:
            case In():
                b.input(names[name])
            case Out(fill):
                b.output(names[name], fill)
            case _:
                b.temp(names[name], of=role.of and names[role.of], fill=role.fill)
    known = {**tables, **dict(tree.tables)}
    for name, values in known.items():
        b.constant_table(f"{name}_here", values)
    b.extend(inlined(tree, names, sizes, {name: f"{name}_here" for name in known}, "own_"))
    return b.build(verify=False)


@pytest.mark.slow
@examples(60)
@given(programs(wild=False))
def test_an_inlined_program_makes_the_same_calls(sample: Sample) -> None:
    program = TileProgram.from_source(sample.source, constants=sample.constants)
    for n in (0, 1, 2, 4):
        sizes = dict.fromkeys(sample.sizes, n)
        try:
            trace = oracle.run(sample.source, {**sizes, **sample.tables}, sample.constants)
        except (AssertionError, oracle.TooLongError, oracle.UndefinedError):
            continue
        names = {name: f"{name}_here" for name in program.arrays}
        try:
            made = body_as_program(program.tree, sizes, sample.tables)
        except ProgramError as error:
            assert "is never written" in str(error)  # an output of which nothing is left
            continue
        assert calls(made.bind()) == expected(trace, names)


TRIANGLE = """
def triangle(A: In, B: Out(fill=0), S: Temp, N: int, M: int):
    assert M <= N
    half = N // 2
    for i in range(N):
        last = min(i + half, N)
        if i >= half and M > 0:
            S[i] = t_one(A[i, 0:last])
        else:
            S[i] = t_uno(A[i, 0])
        for j in range(M - 2, M):
            B[i, j] = t_one(S[i], axis=j)
"""


def shown(sizes: Mapping[str, Any]) -> str:
    tree = TileProgram.from_source(TRIANGLE).tree
    names = {"A": "X", "B": "Y", "S": "i"}  # an array called as a loop of the program is
    return show_program(Program("p", (), inlined(tree, names, sizes, {}, "")))


def test_what_sizes_decide_is_decided() -> None:
    assert shown({"N": 1, "M": 1}).splitlines()[2:] == [
        "    i[0] = t_one(X[0, 0:0])",
        "    for j in range(-1, 1):",
        "        Y[0, j] = t_one(i[0], axis=j)",
    ]
    assert shown({"N": 4, "M": 0}).splitlines()[2:4] == [
        "    for i_2 in range(4):",
        "        i[i_2] = t_uno(X[i_2, 0])",
    ]
    assert shown({"N": 0, "M": 0}).splitlines()[2:] == ["    pass"]


def test_sizes_may_be_expressions_over_names_outside() -> None:
    text = shown({"N": Binary("+", Name("half"), Int(1)), "M": Int(1)})
    assert "for i_2 in range(half + 1):" in text
    assert "t_one(X[i_2, 0:min(i_2 + (half + 1) // 2, half + 1)])" in text


def test_branches_that_scalars_come_from_are_written_out() -> None:
    source = """
def p(A: In, B: Out, N: int, M: int):
    for i in range(N):
        if i < M:
            x = i
            if M > 5:
                y = 1
            else:
                y = 2
        else:
            x = M
            y = 2
        for y_2 in range(1):
            x = x + y
        B[i] = t_one(A[i], x, y)
"""
    with pytest.raises(ProgramError, match="has no value here"):
        TileProgram.from_source(source)  # what a loop assigns ends with it
    source = source.replace("        for y_2 in range(1):\n            x = x + y\n", "        x = x + y\n")
    tree = TileProgram.from_source(source).tree
    text = show_program(Program("p", (), inlined(tree, {"A": "A", "B": "B"}, {"N": 3, "M": 2}, {}, "_")))
    assert "B[_i] = t_one(A[_i], (_i if _i < 2 else 2) + 2, 2)" in text


@pytest.mark.parametrize(
    ("names", "sizes", "words"),
    [
        ({"A": "A", "B": "B"}, {"N": 1, "M": 1}, "its arrays are A, B, S; S not given"),
        ({"A": "A", "B": "B", "S": "S", "Q": "Q"}, {"N": 1, "M": 1}, "its arrays are A, B, S; it has no Q"),
        ({"A": "A", "B": "B", "S": "S"}, {"N": 1}, "its sizes are N, M; M not given"),
        ({"A": "A", "B": "B", "S": "S"}, {"N": 1, "M": 2}, "needs M <= N, but N = 1, M = 2"),
        ({"A": "A", "B": "B", "S": "S"}, {"N": 1, "M": -2}, "size 'M' of 'triangle' is -2"),
        ({"A": "A", "B": "A", "S": "S"}, {"N": 1, "M": 1}, "B is written, so it cannot be A as A is"),
    ],
)
def test_what_cannot_be_inlined_is_said(names: dict[str, str], sizes: dict[str, int], words: str) -> None:
    with pytest.raises(ProgramError) as caught:
        inlined(TileProgram.from_source(TRIANGLE).tree, names, sizes, {}, "t_")
    assert words in str(caught.value)


def test_the_tables_of_an_inlined_program_are_needed_by_name() -> None:
    tree = TileProgram.from_source(
        "def p(A: In, B: Out, T: Table, N: int):\n    U = (3, 1)\n"
        "    for i in range(N):\n        B[i] = t_one(A[T[i]], U[i % 2], U[1])\n"
    ).tree
    with pytest.raises(ProgramError, match="its tables are T, U; U not given"):
        inlined(tree, {"A": "A", "B": "B"}, {"N": 2}, {"T": "T"}, "")
    made = inlined(tree, {"A": "A", "B": "B"}, {"N": 2}, {"T": "T", "U": "V"}, "")
    assert "t_one(A[T[i]], V[i % 2], 1)" in show_program(Program("p", (), made))


def test_statements_are_put_into_the_open_block() -> None:
    tree = TileProgram.from_source("def one(A: In, B: Out):\n    B[0] = t_one(A[0])\n").tree
    b = ProgramBuilder("p")
    a, o, n = b.input("A"), b.output("O"), b.size("N")
    with b.loop("i", n) as i:
        b.extend(inlined(tree, {"A": "A", "B": "S"}, {}, {}, "x"))
        b.call("t_one", [o[i]], [a[i]])
    b.temp("S")
    with pytest.raises(ProgramError, match=r"S\[0\] is written twice"):
        b.build()


# ---- the part that is wanted -------------------------------------------------------


def needed(trace: oracle.Trace, wanted: set[str]) -> set[Any]:
    """Tasks that the wanted arrays need, tile by tile."""
    found = {task for tile, task in trace.writer.items() if tile[0] in wanted}
    waiting = list(found)
    while waiting:
        for parent in trace.parents[waiting.pop()]:
            if parent not in found:
                found.add(parent)
                waiting.append(parent)
    return found


@pytest.mark.slow
@examples(60)
@given(programs(wild=False), st.data())
def test_the_live_part_holds_all_that_is_needed(sample: Sample, data: st.DataObject) -> None:
    program = TileProgram.from_source(sample.source, constants=sample.constants)
    outputs = list(program.tree.roles(Out))
    wanted = data.draw(st.sets(st.sampled_from(outputs))) if outputs else set()
    part = TileProgram(live(program.tree, wanted), verify=False)
    assert {n for n in part.arrays if isinstance(part.arrays[n], Out)} >= wanted
    assert part.sizes == program.sizes
    for n in (1, 3):
        sizes: dict[str, Any] = dict.fromkeys(sample.sizes, n)
        try:
            trace = oracle.run(sample.source, {**sizes, **sample.tables}, sample.constants)
        except (AssertionError, oracle.TooLongError, oracle.UndefinedError):
            continue
        tables = {name: values for name, values in sample.tables.items() if name in part.tables}
        found = calls(part.bind(**sizes, **tables))
        every = expected(trace, {name: name for name in program.arrays})
        must = {trace.order.index(task) for task in needed(trace, wanted)}
        rest = iter(enumerate(every))
        kept = {next(number for number, call in rest if call == made) for made in found}  # in order
        assert must <= kept


FACTORS = """
def factors(A: In, D: In, Q: Out, R: Out(fill=0), E: Out, S: Temp("A"), U: Temp("D"), T: Table, K: Table, N: int):
    W = (1, 0)
    for i in range(N):
        shift = i + 1
        twice = shift * 2
        S[shift, i], E[i] = t_two(S[i, T[i]])
        R[i] = t_one(S[shift, i])
        if i > 0:
            Q[i, W[0]] = t_one(D[K[i]], R[i - 1], twice)
            U[1, i] = t_one(D[i])
        else:
            R[2 * N + i] = t_one(D[i])
"""


def test_what_nobody_needs_is_gone() -> None:
    tree = TileProgram.from_source(FACTORS).tree
    assert live(tree, {"Q", "R", "E"}).roles(Temp) == {"S": Temp("A")}
    part = live(tree, {"E"})
    assert show_program(part) == "\n".join(
        [
            "@ln.tile_program",
            'def factors(A: ln.In, E: ln.Out, S: ln.Temp("A"), T: ln.Table, N: int):',
            "    for i in range(N):",
            "        shift = i + 1",
            "        S[shift, i], E[i] = t_two(S[i, T[i]])",
        ]
    )
    assert live(tree, {"Q"}).roles(Out, Temp) == {
        "Q": Out(),
        "R": Temp(fill=0),
        "E": Temp(),
        "S": Temp("A"),
    }
    text = show_program(live(tree, {"R"}))
    assert "E: ln.Temp" in text
    assert "if not i > 0" in text or "if i <= 0" in text
    assert "twice" not in text
    assert live(tree, set()).body == ()


def test_a_version_array_that_is_only_written_needs_no_version_0() -> None:
    tree = TileProgram.from_source(
        'def p(A: In, D: In, O: Out, Z: Out, S: Temp("A"), N: int):\n    for i in range(N):\n'
        "        S[1, i], O[i] = t_two(D[i])\n        Z[i] = t_one(S[1, i], S[0, i])\n"
    ).tree
    part = live(tree, {"O"})
    assert part.roles(In, Out, Temp) == {"D": In(), "O": Out(), "S": Temp()}
    assert TileProgram(part).bind(N=2).count() == 2
    assert part.roles(Size, Table).keys() == {"N"}


def test_wanting_what_is_no_output_is_refused() -> None:
    tree = TileProgram.from_source(FACTORS).tree
    with pytest.raises(ProgramError, match="'factors' has no output 'S'; its outputs are Q, R, E"):
        live(tree, {"S"})
