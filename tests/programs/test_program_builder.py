"""Programs made by calls and programs made of programs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import oracle
import pytest
from agreement import compare
from hypothesis import given
from hypothesis import strategies as st
from random_programs import Sample, examples, programs

from linnet.errors import BindError, ProgramError
from linnet.programs import ProgramBuilder, TileProgram


def cholesky() -> TileProgram:
    b = ProgramBuilder("cholesky")
    b.input("A")
    o, s, n = b.output("O", fill=0), b.temp("S", of="A"), b.size("N")
    with b.loop("i", n) as i:
        b.call("t_one", [o[i, i]], [s[i, i, i]])
        with b.loop("j", i + 1, n) as j:
            b.call("t_one", [o[j, i]], [o[i, i], s[i, j, i]])
            with b.loop("k", i + 1, j + 1) as k:
                b.call("t_one", [s[i + 1, j, k]], [s[i, j, k], o[j, i], o[k, i]])
    return b.build()


def everything() -> TileProgram:
    b = ProgramBuilder("everything")
    a, o, p, q = b.input("A"), b.output("O"), b.output("P", fill=0), b.temp("Q")
    n, m, t = b.size("N"), b.size("M"), b.constant_table("T", (0, 2, 5))
    with b.loop("i", 0, n, 2) as i:
        with b.when((i % 3 == 0) & ~(i > m)):
            b.call("t_two", [o[i, 0], o[i, 1]], [a[i, 0:n], i + m], axis=1, how="sum")
        with b.otherwise():
            b.call("t_two", [o[i, 0], o[i, 1]], [a[i // 2, t[i % 3] : n : 2], i - 1])
        b.call("t_one", [q[i, 2**i]], [o[i, 1]])
    with b.loop("j", n - 1, -1, -1) as j:
        b.call("t_uno", [p[j]], [p[j + 1], a[j, -j + n]])
    return b.build()


SOURCES = {
    cholesky: """
def cholesky(A: In, O: Out(fill=0), S: Temp("A"), N: int):
    for i in range(N):
        O[i, i] = t_one(S[i, i, i])
        for j in range(i + 1, N):
            O[j, i] = t_one(O[i, i], S[i, j, i])
            for k in range(i + 1, j + 1):
                S[i + 1, j, k] = t_one(S[i, j, k], O[j, i], O[k, i])
""",
    everything: """
def everything(A: In, O: Out, P: Out(fill=0), Q: Temp, N: int, M: int):
    T = (0, 2, 5)
    for i in range(0, N, 2):
        if i % 3 == 0 and not i > M:
            O[i, 0], O[i, 1] = t_two(A[i, 0:N], i + M, axis=1, how="sum")
        else:
            O[i, 0], O[i, 1] = t_two(A[i // 2, T[i % 3]:N:2], i - 1)
        Q[i, 2**i] = t_one(O[i, 1])
    for j in range(N - 1, -1, -1):
        P[j] = t_uno(P[j + 1], A[j, -j + N])
""",
}


@pytest.mark.parametrize("build", SOURCES)
def test_a_built_program_is_the_one_written_as_source(build: Callable[[], TileProgram]) -> None:
    built, written = build(), TileProgram.from_source(SOURCES[build])
    assert repr(built) == repr(written)
    assert built == written
    assert built.proven == written.proven


@pytest.mark.slow
def test_a_built_program_is_analysed_like_any_other() -> None:
    for n in (0, 1, 2, 5):
        sizes = {"N": n, "M": 3}
        compare(everything().bind(**sizes), oracle.run(SOURCES[everything], sizes))


def test_helpers_of_expressions() -> None:
    from linnet.programs.build import ceil_log2, floor_log2, maximum, minimum

    b = ProgramBuilder("p")
    a, o, n = b.input("A"), b.output("O"), b.size("N")
    with b.loop("i", 1, n) as i:
        b.call("t_one", [o[i]], [a[minimum(i, 3), maximum(i, n - i), ceil_log2(i), floor_log2(i + n)]])
    source = """
def p(A: In, O: Out, N: int):
    for i in range(1, N):
        O[i] = t_one(A[min(i, 3), max(i, N - i), ceil(log2(i)), floor(log2(i + N))])
"""
    assert b.build() == TileProgram.from_source(source)


def test_a_table_given_later() -> None:
    b = ProgramBuilder("p")
    a, o, n, t = b.input("A"), b.output("O"), b.size("N"), b.table("T")
    with b.loop("i", n) as i, b.loop("j", t[i], t[i + 1]) as j:
        b.call("t_one", [o[i, j]], [a[j]])
    source = """
def p(A: In, O: Out, N: int, T: Table):
    for i in range(N):
        for j in range(T[i], T[i + 1]):
            O[i, j] = t_one(A[j])
"""
    sizes = {"N": 2, "T": [0, 3, 4]}
    compare(b.build().bind(**sizes), oracle.run(source, sizes))


def test_a_wrong_built_program_is_refused_with_words() -> None:
    b = ProgramBuilder("p")
    a, o, n = b.input("A"), b.output("O"), b.size("N")
    with b.loop("i", n) as i:
        b.call("t_one", [o[0]], [a[i]])
    with pytest.raises(ProgramError, match=r"O\[0\] is written twice"):
        b.build()
    b = ProgramBuilder("p")
    a, o = b.input("A"), b.output("O")
    b.call("t_twoo", [o[0]], [a[0]])
    with pytest.raises(ProgramError, match="no kernel named 't_twoo'"):
        b.build()


# ---- composition -------------------------------------------------------------------

DOUBLE = """
def double(A: In, B: Out, N: int):
    for i in range(N):
        for j in range(i, N):
            B[i, j] = t_one(A[i, j])
"""
SUM = """
def total(A: In, C: Out(fill=0), N: int):
    for i in range(N):
        C[i + 1] = t_uno(C[i], A[i, i:N])
"""


def composed_by_hand(first: str, second: str) -> str:
    """What composing means: one body after the other, the input of the second renamed."""
    head = "def composed(A: In, B: Out, C: Out(fill=0), N: int):\n"
    one = "\n".join(first.strip().splitlines()[1:])
    two = "\n".join(second.strip().splitlines()[1:]).replace("A[", "B[")
    return head + one + "\n" + two + "\n"


def test_one_program_after_another() -> None:
    first, second = TileProgram.from_source(DOUBLE), TileProgram.from_source(SUM)
    both = first.then(second, A="B")
    assert both.proven
    assert set(both.sizes) == {"N"}
    by_hand = composed_by_hand(DOUBLE, SUM)
    for n in (0, 1, 2, 4):
        agree_up_to_names(both, {"N": n}, oracle.run(by_hand, {"N": n}))


def agree_up_to_names(program: TileProgram, sizes: dict[str, Any], trace: oracle.Trace) -> None:
    """Composition may rename arrays; tasks, their order and their dependences it may not change."""
    bound = program.bind(**sizes)
    assert list(bound.tasks()) == trace.order
    assert bound.count() == len(trace.order)
    for task in trace.order:
        assert sorted(bound.children(task)) == sorted(trace.children[task])
        assert sorted(bound.parents(task)) == sorted(trace.parents[task])
        assert bound.call(task).kernel == trace.calls[task].kernel


def test_sizes_can_be_renamed_and_computed() -> None:
    shift = (
        "def shift(X: In, Y: Out, M: int):\n    for i in range(M - 1):\n        Y[i] = t_one(X[i + 1, 0:i])\n"
    )
    first = TileProgram.from_source(
        "def fill(A: In, B: Out(fill=0), N: int):\n    for i in range(N):\n        B[i, i] = t_uno(A[i])\n"
    )
    second = TileProgram.from_source(shift)
    by_hand = (
        "def composed(A: In, B: Out(fill=0), Y: Out, N: int):\n    for i in range(N):\n        B[i, i] = t_uno(A[i])\n"
        "    for i in range({m} - 1):\n        Y[i] = t_one(B[i + 1, 0:i])\n"
    )
    for text in ("N", "N + 1"):
        both = first.then(second, X="B", sizes={"M": text})
        assert both.sizes == ("N",)
        for n in (0, 1, 4):
            agree_up_to_names(both, {"N": n}, oracle.run(by_hand.format(m=f"({text})"), {"N": n}))


def test_names_that_clash_are_kept_apart() -> None:
    """Both programs have loops i, arrays A and B, and a temporary T of their own."""
    first = TileProgram.from_source(
        "def f(A: In, T: Temp, B: Out, N: int):\n    for i in range(N):\n        T[i] = t_one(A[i])\n        B[i] = t_one(T[i])\n"
    )
    second = TileProgram.from_source(
        "def g(B: In, T: Temp, A: Out, N: int):\n    for i in range(N):\n        T[i, 0] = t_uno(B[i])\n        A[i] = t_uno(T[i, 0])\n"
    )
    both = first.then(second, B="B")
    by_hand = (
        "def h(A: In, T: Temp, B: Out, U: Temp, C: Out, N: int):\n"
        "    for i in range(N):\n        T[i] = t_one(A[i])\n        B[i] = t_one(T[i])\n"
        "    for i in range(N):\n        U[i, 0] = t_uno(B[i])\n        C[i] = t_uno(U[i, 0])\n"
    )
    for n in (0, 1, 3):
        agree_up_to_names(both, {"N": n}, oracle.run(by_hand, {"N": n}))


@pytest.mark.slow
@examples(25)
@given(programs(wild=False), st.data())
def test_random_programs_composed(sample: Sample, data: st.DataObject) -> None:
    """Any program, then one that reads a result of it: the same as both texts one after the other."""
    results = re.findall(r"(O\d+): Out\(fill=0\)", sample.source)
    if "N" not in sample.sizes or not results:
        return
    result = data.draw(st.sampled_from(results))
    (first_use, *_) = re.findall(rf"\b{result}\[((?:[^\[\]]|\[[^\[\]]*\])*)\]", sample.source)
    rank = len(split_axes(first_use))
    axes = [
        data.draw(st.sampled_from(("i", "i + 1", "2 * i", "0", "0:N", "1", "i // 2"))) for _ in range(rank)
    ]
    loop = "    for i in range(N):\n        {out}[i] = t_one({array}[{axes}], D[i])\n"
    tail = loop.format(out="Y", array="X", axes=", ".join(axes))
    second = TileProgram.from_source(f"def second(X: In, D: In, Y: Out, N: int):\n{tail}")
    first = TileProgram.from_source(sample.source, constants=sample.constants)
    both = first.then(second, X=result)
    by_hand = sample.source.replace("N: int", "D: In, Y: Out, N: int", 1)
    by_hand += loop.format(out="Y", array=result, axes=", ".join(axes))
    for n in (0, 1, 3):
        sizes: dict[str, Any] = dict.fromkeys(sample.sizes, n) | sample.tables
        try:
            trace = oracle.run(by_hand, sizes, sample.constants)
        except (AssertionError, oracle.TooLongError):
            continue
        assert trace.valid
        agree_up_to_names(both, sizes, trace)


def split_axes(index: str) -> list[str]:
    """The axes of an index, split at commas that are not inside brackets."""
    parts, depth = [""], 0
    for letter in index:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def test_three_programs_and_the_wire() -> None:
    first, second = TileProgram.from_source(DOUBLE), TileProgram.from_source(SUM)
    third = TileProgram.from_source(
        "def last(V: In, W: Out, N: int):\n    for i in range(N):\n        W[i] = t_one(V[i + 1], V[0])\n"
    )
    both = first.then(second, A="B").then(third, V="C")
    assert TileProgram.from_bytes(both.to_bytes()).to_bytes() == both.to_bytes()
    assert both.bind(N=3).count() == 6 + 3 + 3
    assert len(both.statements) == 3


def test_a_composition_that_reads_what_is_not_there_is_refused() -> None:
    first = TileProgram.from_source(
        "def f(A: In, B: Out, N: int):\n    for i in range(N):\n        B[i] = t_one(A[i])\n"
    )
    second = TileProgram.from_source(
        "def g(X: In, Y: Out, N: int):\n    for i in range(N):\n        Y[i] = t_one(X[i + 1])\n"
    )
    with pytest.raises(ProgramError, match="no task writes it"):
        first.then(second, X="B")


@pytest.mark.parametrize("links", [{"X": "Z"}, {"Q": "B"}, {"X": "A"}, {"Y": "B"}])
def test_a_link_that_cannot_be_made_is_named(links: dict[str, str]) -> None:
    first = TileProgram.from_source(
        "def f(A: In, B: Out, N: int):\n    for i in range(N):\n        B[i] = t_one(A[i])\n"
    )
    second = TileProgram.from_source(
        "def g(X: In, Y: Out, N: int):\n    for i in range(N):\n        Y[i] = t_one(X[i])\n"
    )
    if links == {"X": "A"}:
        # An input of the first is no output, yet both may read it.
        try:
            assert first.then(second, **links).bind(N=1).count() == 2
        except (ProgramError, BindError) as error:
            assert "A" in str(error)
        return
    with pytest.raises((ProgramError, BindError)) as caught:
        first.then(second, **links)
    assert any(name in str(caught.value) for pair in links.items() for name in pair)


def test_an_assumption_of_a_builder_is_the_assert_of_a_source():
    b = ProgramBuilder("halves")
    A, O, N, M = b.input("A"), b.output("O"), b.size("N"), b.size("M")
    b.assume(M >= N)
    with b.loop("i", N) as i:
        b.call("t_one", [O[i]], [A[i]])
    program = b.build()
    text = "def halves(A: In, O: Out, N: int, M: int):\n    assert M >= N\n    for i in range(N):\n        O[i] = t_one(A[i])"
    assert program == TileProgram.from_source(text)
    with pytest.raises(BindError, match="needs M >= N"):
        program.bind(N=3, M=2)
