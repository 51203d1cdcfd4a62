"""Spec row T3: each tile is written once, and before it is read; what violates that is refused.

Affine programs are judged for all sizes when they are defined; others at small sizes
then, and again when their tasks are listed.
"""

from __future__ import annotations

import pytest
from refusals import refused, underlined

from linnet.errors import BindError, SingleAssignmentError, UnwrittenTileError
from linnet.programs import TileProgram

VIOLATIONS: dict[str, tuple[str, str]] = {
    "a tile written in every iteration": (
        "def p(A: In, O: Out, N: int):\n    for i in range(N):\n        O[0] = t_one(A[i])\n",
        "is written twice when N = ",
    ),
    "two statements": (
        "def p(A: In, O: Out, N: int):\n    for i in range(N):\n        O[i] = t_one(A[i])\n"
        "    for j in range(N):\n        O[2 * j] = t_one(A[j])\n",
        "is written twice when N = ",
    ),
    "a sum that is not injective": (
        "def p(A: In, O: Out, N: int):\n    for i in range(N):\n        for j in range(N):\n"
        "            O[i + j] = t_one(A[i, j])\n",
        "is written twice when N = ",
    ),
    "only from seven tiles on": (
        "def p(A: In, O: Out, N: int):\n    for i in range(N):\n        O[i] = t_one(A[i])\n"
        "    if N >= 7:\n        O[6] = t_one(A[0])\n",
        "is written twice when N = ",
    ),
    "overlapping ranges": (
        "def p(A: In, O: Out, N: int):\n    for i in range(N):\n        O[i:i + 2] = t_one(A[i])\n",
        "is written twice when N = ",
    ),
    "two outputs of one call": (
        "def p(A: In, O: Out, N: int):\n    for i in range(N):\n        O[i], O[N - 1 - i] = t_two(A[i])\n",
        "is written twice when N = ",
    ),
    "version 0": (
        'def p(A: In, S: Temp("A"), O: Out, N: int):\n    for i in range(N):\n        S[i, i] = t_one(A[i])\n'
        "        O[i] = t_one(S[i, i])\n",
        "version 0 of 'S' is 'A' and is not written",
    ),
    "a tile nobody writes": (
        "def p(A: In, O: Out, N: int):\n    for i in range(N):\n        O[i + 1] = t_one(A[i], O[i])\n",
        "no task writes it and it is no input",
    ),
    "a tile written later": (
        "def p(A: In, O: Out, N: int):\n    for i in range(N):\n        O[N - i] = t_one(A[i], O[N - i - 1])\n"
        "    O[0] = t_one(A[0])\n",
        "before it is written, by ",
    ),
    "a tile that reads itself": (
        "def p(A: In, O: Out(fill=0), N: int):\n    for i in range(N):\n        O[i] = t_one(O[i])\n",
        "before it is written, by ",
    ),
    "a guard too narrow": (
        "def p(A: In, O: Out, P: Out, N: int):\n    for i in range(N):\n        if i != 5:\n"
        "            O[i] = t_one(A[i])\n    for j in range(N):\n        P[j] = t_one(O[j])\n",
        "no task writes it and it is no input",
    ),
}


@pytest.mark.parametrize("name", VIOLATIONS)
def test_violations_are_found_when_the_program_is_defined(name: str) -> None:
    source, words = VIOLATIONS[name]
    error = refused(source)
    assert words in str(error), str(error)
    assert "<source>:" in str(error)
    assert underlined(error), str(error)


@pytest.mark.parametrize("name", VIOLATIONS)
def test_an_assumption_can_exclude_the_violation(name: str) -> None:
    """With N at most 1 (or 5) most of these are fine: an assumption is part of the proof."""
    limit = {"only from seven tiles on": 6, "a guard too narrow": 5}.get(name, 0)
    source = VIOLATIONS[name][0].replace("int):\n", f"int):\n    assert N <= {limit}\n")
    if name == "a tile written later":
        source = source.replace("    O[0] = t_one(A[0])\n", "")
    program = TileProgram.from_source(source)
    assert program.proven
    assert program.bind(N=limit).count() >= 0
    with pytest.raises(BindError, match=f"N <= {limit}"):
        program.bind(N=limit + 1)


UNPROVEN: dict[str, tuple[str, str]] = {
    "a product that can be zero": (
        "def p(A: In, O: Out, N: int, M: int):\n    for i in range(N):\n        O[i * M] = t_one(A[i])\n",
        "O[0]",
    ),
    "two outputs of one call": (
        "def p(A: In, O: Out, N: int):\n    for i in range(0, N, 2):\n        O[2**i], O[i * 2**i + 1] = t_two(A[i])\n",
        "O[1]",
    ),
    "a tree without its odd tile": (
        "def p(A: In, R: Out, N: int):\n    for j in range(N):\n        R[j, 0] = t_one(A[j])\n"
        "    for level in range(ceil(log2(N + 1))):\n        for i in range(0, N, 2**(level + 1)):\n"
        "            R[i, level + 1] = t_one(R[i, level], R[i + 2**level, level])\n",
        "R[",
    ),
    "a power read before it is written": (
        "def p(A: In, O: Out(fill=0), N: int):\n    for i in range(N):\n        O[2**i] = t_one(A[i], O[2**(i + 1)])\n",
        "before it is written",
    ),
}


@pytest.mark.parametrize("name", UNPROVEN)
def test_violations_that_cannot_be_proved_are_found_at_small_sizes(name: str) -> None:
    source, words = UNPROVEN[name]
    error = refused(source)
    assert words in str(error), str(error)
    assert "<source>:" in str(error)
    assert underlined(error), str(error)
    assert "N" in str(error)  # the sizes at which it happens


def test_a_violation_beyond_the_small_sizes_is_found_when_tasks_are_listed() -> None:
    program = TileProgram.from_source(
        "def p(A: In, O: Out, N: int):\n    for i in range(N):\n        O[i * (i - 20) + 400] = t_one(A[i])\n"
    )
    assert not program.proven
    assert program.unproven
    assert program.bind(N=10).task_arrays()
    with pytest.raises(SingleAssignmentError, match=r"O\[\d+\] is written twice when N = 20"):
        program.bind(N=20).task_arrays()


def test_a_tile_missing_beyond_the_small_sizes_is_found_when_tasks_are_listed() -> None:
    program = TileProgram.from_source(
        "def p(A: In, O: Out, P: Out, N: int):\n    for i in range(min(N, 11)):\n        O[i**2] = t_one(A[i])\n"
        "    for j in range(N):\n        P[j] = t_one(O[j**2])\n"
    )
    assert len(program.bind(N=11).task_arrays()) == 22
    with pytest.raises(UnwrittenTileError, match=r"O\[121\]"):
        program.bind(N=12).task_arrays()


def test_an_assumption_that_is_not_affine_counts_too() -> None:
    program = TileProgram.from_source(
        "def p(A: In, O: Out, N: int, M: int):\n    assert N * M <= 4\n    for i in range(min(N, M)):\n"
        "        O[i] = t_one(A[i])\n        if i > 2:\n            O[0] = t_one(A[i])\n"
    )
    assert program.bind(N=2, M=2).count() == 2
    with pytest.raises(BindError, match=r"N \* M <= 4"):
        program.bind(N=5, M=5)
