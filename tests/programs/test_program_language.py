"""Spec rows T1 and T2: every construct of the language means what Python means by it.

Each program here is one construct in its plainest use, compared with the oracle at
several sizes. Exactness beyond what the oracle can enumerate is tested by value.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import oracle
import pytest
from agreement import compare

from linnet.programs import In, Out, Task, TileProgram, tile_program
from linnet.tiles import TileKey

CONSTRUCTS: dict[str, str] = {
    "one call": """
def p(A: In, O: Out, N: int):
    O[0] = t_one(A[N])
""",
    "loop": """
def p(A: In, O: Out, N: int):
    for i in range(N):
        O[i] = t_one(A[i])
""",
    "nested loops": """
def p(A: In, O: Out, N: int, M: int):
    for i in range(N):
        for j in range(i, M):
            for k in range(j - 1, i + 2):
                O[k + 1, j, i] = t_one(A[i, j])
""",
    "steps": """
def p(A: In, O: Out, P: Out(fill=0), N: int):
    for i in range(1, N, 3):
        O[i] = t_one(A[i])
    for j in range(N):
        P[j] = t_one(P[j + N], A[j])
""",
    "downwards": """
def p(A: In, O: Out(fill=0), N: int):
    for i in range(N - 1, -1, -1):
        O[i] = t_one(O[i + 1], O[i + 2], A[i])
""",
    "steps from outer loops": """
def p(A: In, O: Out(fill=0), N: int):
    for level in range(ceil(log2(N + 1))):
        for i in range(0, N, 2**level):
            O[level + 1, i] = t_one(O[level, i], O[level, i + 2**level])
""",
    "if": """
def p(A: In, O: Out(fill=0), P: Out, N: int):
    for i in range(N):
        if i % 3 != 1:
            O[i] = t_one(A[i])
    for j in range(N):
        P[j] = t_one(O[j])
""",
    "if, elif, else": """
def p(A: In, O: Out, P: Out, N: int):
    for i in range(N):
        for j in range(N):
            if i == j:
                O[i, j] = t_one(A[i, j])
            elif i < j and (i + j) % 2 == 0:
                O[i, j] = t_uno(A[i, j])
            else:
                O[i, j] = t_one(A[j, i])
    for k in range(N):
        P[k] = t_one(O[k, N - 1 - k], O[k, 0])
""",
    "guards around loops": """
def p(A: In, O: Out, N: int, M: int):
    if N > 2 or not (M > 1):
        for i in range(M):
            if i != 1:
                O[i] = t_one(A[i])
""",
    "chained comparisons": """
def p(A: In, O: Out, N: int):
    for i in range(2 * N):
        if 1 <= i < N != 3:
            O[i] = t_one(A[i])
""",
    "scalars": """
def p(A: In, O: Out(fill=0), N: int):
    last = N - 1
    for i in range(N):
        back = last - i
        twice = 2 * back
        O[twice + 1] = t_one(A[back], O[twice + 3])
""",
    "a scalar assigned again": """
def p(A: In, O: Out, N: int):
    for i in range(N):
        x = i
        x = x + 1
        O[x] = t_one(A[i])
        x = 2 * x
        O[x + N] = t_uno(O[i + 1])
""",
    "a scalar assigned in both branches": """
def p(A: In, O: Out, P: Out, N: int):
    for i in range(N):
        if i % 2 == 0:
            x = i
        else:
            x = N + i
        O[x] = t_one(A[x])
        P[i] = t_one(O[x])
""",
    "choice": """
def p(A: In, O: Out, P: Out, N: int):
    for i in range(N):
        O[i if i < 2 else 3 * i] = t_one(A[i])
        P[i] = t_one(O[i if i <= 1 else i + 2 * i])
""",
    "min and max": """
def p(A: In, O: Out, P: Out, N: int):
    for i in range(N):
        for j in range(max(0, i - 1), min(N, i + 2)):
            O[i, j] = t_one(A[min(i, j), max(i, j, 1)])
    for k in range(N):
        P[k] = t_one(O[k, min(k + 1, N - 1)], O[max(0, k - 1), k])
""",
    "floor division and remainder": """
def p(A: In, O: Out, P: Out, N: int):
    for i in range(N):
        O[i // 3, i % 3] = t_one(A[i])
    for j in range(N):
        P[j] = t_one(O[j // 3, j % 3], O[j // 6, 0])
""",
    "negative operands": """
def p(A: In, O: Out, N: int):
    for i in range(N):
        for j in range(N):
            if (i - j) // 2 >= -1 and (i - j) % 3 == 2 and (j - i) % -2 != 0:
                O[i, j] = t_one(A[-(j - i) * 2 + 2 * N, (i - j) // -2 + N])
""",
    "products and powers": """
def p(A: In, O: Out, P: Out(fill=0), N: int):
    for i in range(N):
        for j in range(3):
            O[3 * i + j, i * j] = t_one(A[i**2])
    for k in range(N):
        P[2**k] = t_one(O[3 * k, 0], P[2**(k + 1) // 4])
""",
    "logarithms": """
def p(A: In, O: Out, N: int):
    for i in range(1, N):
        O[i, ceil(log2(i)), floor(log2(i))] = t_one(A[ceil(i / 3), floor(i / 2)])
""",
    "several outputs": """
def p(A: In, O: Out, P: Out, Q: Temp, N: int):
    for i in range(N):
        O[i, 0], O[i, 1] = t_two(A[i])
        P[i], Q[i], Q[i + N] = t_three(O[i, 1], O[i, 0], A[i])
    for j in range(N):
        O[j, 2] = t_one(Q[2 * j])
""",
    "scalar arguments": """
def p(A: In, O: Out, N: int):
    for i in range(N):
        O[i] = t_one(A[i], i, N - 2 * i, i / 2, log(i + 1) + 0.5, -1.5, 1 if i > 1 else 0)
""",
    "attributes": """
def p(A: In, O: Out, N: int):
    for i in range(N):
        O[i] = t_one(A[i], axis=0, how="sum", keep=True, shape=(1, -2), power=2.5, nothing=None, offset=i + N)
""",
    "a range as operand": """
def p(A: In, O: Out, P: Out, N: int, M: int):
    for i in range(N):
        O[i] = t_one(A[i, 0:M], A[0:i, i], A[i + 1 : N, 1:M:2])
    P[0] = t_one(O[0:N])
    P[1] = t_one(O[1:N:2], O[max(0, N - 1) : N])
""",
    "a range in a recurrence": """
def p(A: In, O: Out, N: int):
    for i in range(N):
        for j in range(i + 1):
            O[i, j] = t_one(A[i, j], O[i, 0:j], O[j, 0 : min(i, j)])
""",
    "a range as result": """
def p(A: In, O: Out, P: Out, N: int, M: int):
    for i in range(N):
        O[i, 0:M] = t_one(A[i])
    for j in range(M):
        P[j, 0:N:2], P[j, 1:N:2] = t_two(O[0:N, j])
""",
    "two ranged axes": """
def p(A: In, O: Out, N: int, M: int):
    for i in range(N):
        O[i, 0:2, 0:M] = t_one(A[0:i, i:N])
    O[N, 0, 0] = t_uno(O[0:N, 0, 0:M])
""",
    "versions": """
def p(A: In, S: Temp("A"), O: Out, N: int):
    for i in range(N):
        for j in range(i, N):
            S[i + 1, j] = t_one(S[i, j], A[j])
    for k in range(N):
        O[k] = t_one(S[k, k], S[k + 1, k])
""",
    "versions of a result": """
def p(A: In, R: Out, S: Temp("R"), N: int):
    for j in range(N):
        R[j] = t_one(A[j])
    for i in range(2):
        for k in range(N):
            S[i + 1, k] = t_one(S[i, k])
""",
    "fill": """
def p(A: In, O: Out(fill=0), P: Out, N: int):
    for i in range(N):
        for j in range(i + 1):
            O[i, j] = t_one(A[i, j])
    for k in range(N):
        P[k] = t_one(O[0:N, k])
""",
    "fill of an intermediate array": """
def p(A: In, O: Out, P: Out, Q: Temp(fill=-2.5), S: Temp("Q"), N: int):
    for i in range(N):
        for j in range(i + 1):
            Q[i, j] = t_one(A[i, j])
    for k in range(N):
        P[k] = t_one(Q[0:N, k])
        for m in range(N):
            S[k + 1, k, m] = t_one(S[0, k, m], Q[k, N - 1 - m])
            O[k, m] = t_one(S[k + 1, k, m])
""",
    "a constant table": """
def p(A: In, O: Out, P: Out(fill=0), N: int):
    T = (0, 2, 3, 7)
    for i in range(3):
        for j in range(T[i], T[i + 1]):
            O[i, j] = t_one(A[j])
    for k in range(4):
        P[T[k]] = t_one(A[k])
    for m in range(N):
        P[m + 20] = t_one(P[m])
""",
    "an inner loop known before its outer one": """
def p(A: In, O: Out(fill=0), P: Out, Q: Out, N: int):
    T = (3, 1, 2)
    for i in range(N):
        O[i] = t_one(A[i, 0])
    for i in range(N):
        for j in range(2**i, N):
            if 4 % j == 0:
                P[i, j] = t_one(O[j], A[N - 1 - j, ceil(log2(j))])
        for k in range(i * i, min(3, N)):
            Q[i, k] = t_one(O[T[k]], A[N - 1 - k, 2**k : 8 // (k + 1)])
""",
    "rank 0": """
def p(A: In, O: Out, P: Out, N: int):
    O[()] = t_one(A[()])
    for i in range(N):
        P[i] = t_one(O[()])
""",
    "rank 4 and 5": """
def p(A: In, O: Out, P: Out, N: int):
    for i in range(N):
        O[i, 0, i, 1, i] = t_one(A[i, i, i, i])
        P[i] = t_one(O[i, 0, i, 1, i])
""",
    "loops one after another with one name": """
def p(A: In, O: Out, P: Out, N: int):
    for i in range(N):
        O[i] = t_one(A[i])
    for i in range(N):
        P[i] = t_one(O[N - 1 - i])
""",
    "an assumption": """
def p(A: In, O: Out, P: Out, N: int, M: int):
    assert M >= N
    for i in range(M):
        O[i] = t_one(A[i])
    for j in range(N):
        P[j] = t_one(O[j])
""",
}


def bind_all(source: str, values: tuple[int, ...]) -> Any:
    program = TileProgram.from_source(source)
    for sizes in product(values, repeat=len(program.sizes)):
        yield program, dict(zip(program.sizes, sizes, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", CONSTRUCTS)
def test_each_construct_means_what_python_means(name: str) -> None:
    for program, sizes in bind_all(CONSTRUCTS[name], (0, 1, 2, 3, 6)):
        try:
            trace = oracle.run(CONSTRUCTS[name], sizes)
        except AssertionError:
            continue
        assert trace.valid, trace.problems()
        compare(program.bind(**sizes), trace)


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_each_construct_survives_printing_and_sending(name: str) -> None:
    program = TileProgram.from_source(CONSTRUCTS[name])
    assert TileProgram.from_source(repr(program)) == program
    assert TileProgram.from_bytes(program.to_bytes()).to_bytes() == program.to_bytes()
    assert repr(TileProgram.from_bytes(program.to_bytes())) == repr(program)


def test_a_table_given_when_bound() -> None:
    source = """
def p(A: In, O: Out(fill=0), P: Out, N: int, T: Table):
    for i in range(N):
        for j in range(T[i], T[i + 1]):
            O[j, T[i]] = t_one(A[i])
    for k in range(T[N]):
        P[k] = t_one(O[k, 0:k])
"""
    program = TileProgram.from_source(source)
    for table in ([0, 2, 3, 7], [0, 0, 4, 4], (1, 2, 3, 4)):
        compare(program.bind(N=3, T=table), oracle.run(source, {"N": 3, "T": table}))


SHIFT = 2
TABLE = (5, 7, 9)


@tile_program
def decorated(A: In, O: Out(fill=0), N: int):
    """A decorated function, with a docstring and a comment."""
    for i in range(N):  # comments are nothing to the language
        O[i + SHIFT] = t_one(A[TABLE[i % 3]], O[i + SHIFT - 1])


def test_a_decorated_function_sees_constants_around_it() -> None:
    assert isinstance(decorated, TileProgram)
    assert decorated.name == "decorated"
    assert decorated.sizes == ("N",)
    bound = decorated.bind(N=4)
    assert bound.call(Task(0, (1,))).args == (TileKey("A", (7,)), TileKey("O", (2,)))
    assert bound.children(Task(0, (1,))) == [Task(0, (2,))]


def test_a_program_defined_inside_a_function_sees_its_constants() -> None:
    width = 4

    @tile_program
    def local(A: In, O: Out, N: int):
        for i in range(0, N, width):
            O[i] = t_one(A[i + width])

    assert list(local.bind(N=9).tasks()) == [Task(0, (0,)), Task(0, (4,)), Task(0, (8,))]


def test_kernels_are_found_by_object_and_by_name() -> None:
    from sample_kernels import t_two as renamed

    assert renamed.name == "t_two"

    @tile_program
    def by_object(A: In, O: Out, N: int):
        for i in range(N):
            O[i, 0], O[i, 1] = renamed(A[i])

    assert by_object.statements[0].kernel == "t_two"


@pytest.mark.parametrize("exponent", [1, 10, 31, 49, 53, 60])
@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_logarithms_are_exact_where_floats_are_not(exponent: int, offset: int) -> None:
    n = 2**exponent + offset
    program = TileProgram.from_source(
        "def p(A: In, O: Out, N: int):\n    O[ceil(log2(N)), floor(log2(N))] = t_one(A[N])\n"
    )
    outputs = program.bind(N=n).call(Task(0, ())).outputs
    assert outputs == (TileKey("O", ((n - 1).bit_length(), n.bit_length() - 1)),)


def test_integers_are_exact_at_large_sizes() -> None:
    program = TileProgram.from_source(
        "def p(A: In, O: Out(fill=0), N: int):\n"
        "    for i in range(1, N + 1):\n"
        "        O[3 * i + 1] = t_one(A[i], O[3 * i - 2])\n"
    )
    bound = program.bind(N=10**15)
    middle = 10**15 // 3
    assert bound.children(Task(0, (middle,))) == [Task(0, (middle + 1,))]
    assert bound.parents(Task(0, (middle,))) == [Task(0, (middle - 1,))]
    assert bound.writer(TileKey("O", (3 * middle + 2,))) is None
    assert bound.count() == 10**15
