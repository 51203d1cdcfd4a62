"""Spec rows T4, T5 and T6: the paper's two worked examples, flat answers, constant size."""

from __future__ import annotations

import oracle
import pytest
from agreement import compare

from linnet.programs import Task, TileProgram
from linnet.tiles import TileKey

CHOLESKY = """
def cholesky(A: In, O: Out(fill=0), S: Temp("A"), N: int):
    for i in range(N):
        O[i, i] = t_one(S[i, i, i])
        for j in range(i + 1, N):
            O[j, i] = t_one(O[i, i], S[i, j, i])
            for k in range(i + 1, j + 1):
                S[i + 1, j, k] = t_one(S[i, j, k], O[j, i], O[k, i])
"""
TSQR = """
def tsqr(A: In, R: Out, N: int):
    assert N >= 1
    for i in range(N):
        R[i, 0] = t_one(A[i])
    for level in range(ceil(log2(N))):
        for i in range(0, N, 2**(level + 1)):
            if i + 2**level < N:
                R[i, level + 1] = t_one(R[i, level], R[i + 2**level, level])
            else:
                R[i, level + 1] = t_uno(R[i, level])
"""
QR = """
def qr(A: In, R: Out(fill=0), V: Temp, T: Temp, P: Temp, W: Temp, S: Temp("A"), M: int, N: int):
    assert M >= N
    for k in range(N):
        V[k, k], T[k, k], P[k, k] = t_three(S[k, k, k])
        for j in range(k + 1, N):
            W[k, k, j] = t_one(V[k, k], T[k, k], S[k, k, j])
        for i in range(k + 1, M):
            V[i, k], T[i, k], P[i, k] = t_three(P[i - 1, k], S[k, i, k])
            for j in range(k + 1, N):
                W[i, k, j], S[k + 1, i, j] = t_two(V[i, k], T[i, k], W[i - 1, k, j], S[k, i, j])
        R[k, k] = t_uno(P[M - 1, k])
        for j in range(k + 1, N):
            R[k, j] = t_uno(W[M - 1, k, j])
"""

SIDES = (8, 64, 512, 4096, 10**6)


@pytest.fixture(scope="module")
def cholesky() -> TileProgram:
    return TileProgram.from_source(CHOLESKY)


@pytest.fixture(scope="module")
def tsqr() -> TileProgram:
    return TileProgram.from_source(TSQR)


@pytest.mark.parametrize("n", [2, 8, 256])
def test_the_linear_example(cholesky: TileProgram, n: int) -> None:
    """The task that writes S[1, 1, 1] has one child: chol at i = 1."""
    bound = cholesky.bind(N=n)
    task = Task(2, (0, 1, 1))
    assert bound.call(task).outputs == (TileKey("S", (1, 1, 1)),)
    assert bound.children(task) == [Task(0, (1,))]


def test_the_nonlinear_example(tsqr: TileProgram) -> None:
    """R[6, 1], written at level 0 by i = 6, is read at level 1 by i = 4."""
    bound = tsqr.bind(N=8)
    task = Task(1, (0, 6))
    assert bound.call(task).outputs == (TileKey("R", (6, 1)),)
    assert bound.children(task) == [Task(1, (1, 4))]
    assert bound.readers(TileKey("R", (6, 1))) == [Task(1, (1, 4))]
    assert bound.parents(Task(1, (1, 4))) == [Task(1, (0, 4)), Task(1, (0, 6))]


@pytest.mark.slow
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 7])
def test_cholesky_and_qr_agree_with_the_oracle(cholesky: TileProgram, n: int) -> None:
    compare(cholesky.bind(N=n), oracle.run(CHOLESKY, {"N": n}))
    qr = TileProgram.from_source(QR)
    for m in (n, n + 2):
        compare(qr.bind(M=m, N=n), oracle.run(QR, {"M": m, "N": n}))


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 13])
def test_tsqr_agrees_with_the_oracle_at_any_number_of_tiles(tsqr: TileProgram, n: int) -> None:
    compare(tsqr.bind(N=n), oracle.run(TSQR, {"N": n}))


def test_what_is_affine_is_proved(cholesky: TileProgram, tsqr: TileProgram) -> None:
    assert cholesky.proven
    assert not tsqr.proven


@pytest.mark.parametrize("n", SIDES)
def test_the_program_is_as_small_at_every_size(cholesky: TileProgram, n: int) -> None:
    bound = cholesky.bind(N=n)
    assert bound.count() == n * (n + 1) * (n + 2) // 6
    assert len(bound.program.to_bytes()) == len(cholesky.to_bytes()) <= 1024


@pytest.mark.parametrize("n", SIDES)
def test_bounded_fan_out_stays_bounded(cholesky: TileProgram, tsqr: TileProgram, n: int) -> None:
    """The number of answers does not depend on the size; nor, by their reach, does the work."""
    bound = cholesky.bind(N=n)
    middle, last = n // 2, n - 1
    assert bound.children(Task(2, (0, last, middle))) == [Task(2, (1, last, middle))]
    assert bound.in_degree(Task(2, (middle - 1, last, middle))) == 3
    assert len(bound.parents(Task(1, (1, last)))) == 2
    assert next(iter(bound.roots())) == Task(0, (0,))
    tree = tsqr.bind(N=n)
    assert tree.children(Task(0, (last,))) == [Task(1, (0, last - 1)) if n % 2 == 0 else Task(2, (0, last))]
    assert len(tree.parents(Task(1, (2, 0)))) == 2


@pytest.mark.parametrize("query", ["children", "parents", "in_degree"])
def test_the_work_of_a_query_does_not_grow_with_the_size(cholesky: TileProgram, query: str) -> None:
    """Bytecode steps, counted, of queries with bounded fan-out: the same at 8 and at a million tiles."""
    import gc
    import sys

    def steps(n: int) -> int:
        bound = cholesky.bind(N=n)
        task = Task(2, (1, n - 1, n - 2))
        ask = getattr(bound, query)
        ask(task)  # what is compiled at the first question is not counted
        count = 0

        def trace(frame: object, event: str, argument: object) -> object:
            nonlocal count
            frame.f_trace_opcodes = True  # type: ignore[attr-defined]
            count += event == "opcode"
            return trace

        before = sys.gettrace()
        gc.disable()  # what it would call meanwhile would be counted
        sys.settrace(trace)
        try:
            ask(task)
        finally:
            sys.settrace(before)
            gc.enable()
        return count

    assert steps(8) == steps(4096) == steps(10**6) < 2000


def test_roots_are_found_without_listing_the_tasks(cholesky: TileProgram) -> None:
    assert list(cholesky.bind(N=10**4).roots()) == [Task(0, (0,))]


def test_a_wide_task_lists_each_child_once(cholesky: TileProgram) -> None:
    bound = cholesky.bind(N=4096)
    children = bound.children(Task(0, (0,)))
    assert len(children) == len(set(children)) == 4095
    panel = bound.children(Task(1, (0, 2000)))
    assert len(panel) == len(set(panel)) == 4095
