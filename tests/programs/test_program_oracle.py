"""The oracle itself, against programs small enough to work out by hand."""

from __future__ import annotations

from itertools import product

import oracle
import pytest
from hypothesis import given
from random_programs import Sample, examples, programs

CHOLESKY = """
def cholesky(A: In, O: Out(fill=0), S: Temp("A"), N: int):
    for i in range(N):
        O[i, i] = chol(S[i, i, i])
        for j in range(i + 1, N):
            O[j, i] = trsm(O[i, i], S[i, j, i])
            for k in range(i + 1, j + 1):
                S[i + 1, j, k] = syrk(S[i, j, k], O[j, i], O[k, i])
"""


def program(body: str, head: str = "A: In, O: Out, N: int") -> str:
    lines = body.strip("\n").splitlines()
    return f"def p({head}):\n" + "".join(f"    {line}\n" for line in lines)


def test_cholesky_of_two_tiles() -> None:
    trace = oracle.run(CHOLESKY, {"N": 2})
    assert trace.order == [(0, (0,)), (1, (0, 1)), (2, (0, 1, 1)), (0, (1,))]
    assert trace.children[0, (0,)] == [(1, (0, 1))]
    assert trace.parents[2, (0, 1, 1)] == [(1, (0, 1))]
    assert trace.calls[2, (0, 1, 1)].args == (("A", (1, 1)), ("O", (1, 0)), ("O", (1, 0)))
    assert trace.roots == [(0, (0,))]
    assert trace.parallelism() == [1, 1, 1, 1]
    assert trace.valid


@pytest.mark.parametrize("n", range(6))
def test_cholesky_counts(n: int) -> None:
    trace = oracle.run(CHOLESKY, {"N": n})
    assert len(trace.order) == n * (n + 1) * (n + 2) // 6
    assert trace.valid


def test_order_is_that_of_the_loops() -> None:
    source = program("""
for i in range(2):
    O[i, 9] = first(A[i])
    for j in range(2, 0, -1):
        O[i, j] = second(A[j])
O[5, 5] = third(A[0])
""")
    trace = oracle.run(source, {"N": 0})
    assert trace.order == [
        (0, (0,)), (1, (0, 2)), (1, (0, 1)), (0, (1,)), (1, (1, 2)), (1, (1, 1)), (2, ()),
    ]  # fmt: skip


def test_ranges_and_several_outputs() -> None:
    source = program(
        """
for i in range(2):
    O[i, 0:3:2], P[i] = two(A[0:i, 1:3], A[i, 1:4:2], i + 1, axis=0)
""",
        "A: In, O: Out, P: Out, N: int",
    )
    call = oracle.run(source, {"N": 0}).calls[0, (1,)]
    assert call.args == ([[("A", (0, 1)), ("A", (0, 2))]], [("A", (1, 1)), ("A", (1, 3))], 2)
    assert call.attributes == {"axis": 0}
    assert call.outputs == [[("O", (1, 0)), ("O", (1, 2))], ("P", (1,))]


def test_it_sees_a_double_write() -> None:
    trace = oracle.run(program("for i in range(N):\n    O[i // 2] = one(A[i])"), {"N": 3})
    assert trace.double_writes == [("O", (0,))]


def test_it_sees_a_read_of_what_comes_later() -> None:
    trace = oracle.run(
        program("for i in range(N):\n    O[i] = one(O[i + 1])", "O: Out(fill=0), N: int"), {"N": 2}
    )
    assert trace.early_reads == [((0, (0,)), ("O", (1,)))]
    assert not trace.unwritten_reads  # O[2] is the fill


def test_it_sees_a_read_of_itself() -> None:
    trace = oracle.run(program("for i in range(N):\n    O[i] = one(O[i])"), {"N": 1})
    assert trace.early_reads == [((0, (0,)), ("O", (0,)))]


def test_it_sees_a_tile_nobody_writes() -> None:
    trace = oracle.run(program("for i in range(N):\n    O[i + 1] = one(O[i])"), {"N": 2})
    assert trace.unwritten_reads == [((0, (0,)), ("O", (0,)))]


def test_it_sees_a_write_over_an_input() -> None:
    trace = oracle.run(program("S[0, 0] = one(A[0])", 'A: In, S: Temp("A"), N: int'), {"N": 0})
    assert trace.double_writes == [("A", (0,))]


def test_it_refuses_what_python_cannot_do() -> None:
    with pytest.raises(oracle.UndefinedError):
        oracle.run(program("O[0] = one(A[0 // N])"), {"N": 0})
    with pytest.raises(oracle.UndefinedError):
        oracle.run(program("O[2**(N - 1)] = one(A[0])"), {"N": 0})


@pytest.mark.slow
@examples(25)
@given(programs(wild=False))
def test_careful_programs_are_valid(sample: Sample) -> None:
    """What the generator promises: otherwise valid programs would be too rare to test with."""
    for sizes in product((0, 1, 2, 4), repeat=len(sample.sizes)):
        bound = dict(zip(sample.sizes, sizes, strict=True))
        try:
            trace = oracle.run(sample.source, bound | sample.tables, sample.constants)
        except (AssertionError, oracle.TooLongError):
            continue
        assert trace.valid, f"{sample.source}\nat {bound}: {trace.problems()}"
