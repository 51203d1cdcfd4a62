"""Faults that random nests found, each as a program of its own."""

from __future__ import annotations

import numpy as np
import pytest
from test_random_nests import compared

import linnet as ln

HEAD = "def program(A, B, M, v, w, k):\n    s = 0.0\n"


@pytest.mark.parametrize(
    "text",
    [
        # several steps update one cell through a quotient
        "    for i0 in range(5):\n        t = A[0, 0]\n        v[i0 // 2] += t\n",
        # a Python number that two loops leave behind
        "    for i0 in range(1, 5):\n        t = A[0, 0]\n        v[0] += t\n"
        "    for i0 in range(1, 5):\n        t = 2\n        A[0, 0] += t\n",
        # a scalar that one loop makes, and another loop over the same steps reads
        "    for i0 in range(1, 5):\n        for i1 in range(1, 5):\n            A[i1, 0] += w[i0]\n"
        "            t = abs(B[i0, i0])\n            B[i1, 5 - i0] += t\n            w[5 - i0] += t\n",
        # diagonals would turn the order of two steps around
        "    for i0 in range(1, 5):\n        for i1 in range(1, 5):\n            w[i0] = A[0, i1]\n"
        "            t = w[i1]\n            v[0] += t\n",
        "    for i0 in range(1, 5):\n        for i1 in range(1, 5):\n            if i1 % 2 == 0:\n"
        "                A[i0 + 1, 3] = 1.5\n            t = w[i0]\n            A[i1, 3] += t\n",
        # reads ahead of writes, with a loop inside that runs step by step
        "    for i0 in range(1, 5):\n        B[i0, i0 + 1] -= v[1]\n        for i1 in range(1, 5):\n"
        "            for i2 in range(1, 5):\n                A[5 - i0, i1] = (B[i0, 2] * A[i1, 6 - i2])\n",
        # a remainder as index, where a guard leaves steps out
        "    for i0 in range(1, 5):\n        for i1 in range(i0, 5):\n            s += A[i0, (i1 + 2) % 7]\n",
    ],
)
def test_a_program_that_was_wrong(text):
    assert compared(HEAD + text + "    return s\n", 0) in ("same", "refused")


@pytest.mark.slow
def test_positions_of_long_diagonals_stay_inside():
    """From 2¹⁶ steps on, values of loop variables are made in tiles; positions are not."""
    from comparing import same
    from test_programs import smith_waterman

    rng = np.random.default_rng(0)
    got, best = smith_waterman(rng.integers(0, 4, 200), rng.integers(0, 4, 220))
    assert got.shape == (201, 221)
    assert best.compute() == got.compute().max()
    same(smith_waterman, rng.integers(0, 4, 9), rng.integers(0, 4, 5))


def test_turns_of_while_are_computed_once():
    calls: list[int] = []

    def halved(tile):
        calls.append(1)
        return tile / 2

    @ln.loops
    def below_one(x):
        turns = 0
        while ln.max(x) > 1:
            x = ln.map_blocks(halved, x, dtype=float)
            turns += 1
        return x, turns

    with ln.init(workers=1):
        result, turns = below_one(ln.asarray(np.array([16.0, 3.0, 9.0]), chunks=1))
        assert (result.compute().tolist(), turns) == ([1.0, 0.1875, 0.5625], 4)
    assert len(calls) == 4 * 3


TABLE, VECTOR = ln.asarray(np.array([10.0, 20.0])), np.array([10.0, 20.0])


def first_times(x):
    return x * TABLE[0]


def second_times(x):
    return x * VECTOR[1]


@ln.loops
def through_functions(a):
    r = ln.zeros(a.shape[0])
    for i in range(a.shape[0]):
        r[i] = first_times(a[i]) + second_times(a[i])
    return r


@ln.loops
def shifted(a):
    for i in range(1, a.shape[0]):
        a[i] = TABLE[i - 1] + 1


def test_arrays_that_functions_read_are_those_they_name():
    """They were taken for the nest's own arrays."""
    assert through_functions(np.array([1.0, 2, 3])).compute().tolist() == [30, 60, 90]


def test_an_argument_is_also_what_the_function_knows_by_another_name():
    global TABLE
    kept, TABLE = TABLE, ln.asarray(np.array([5.0, 0, 0, 0]))
    try:
        with pytest.raises(ln.LoopError, match="a recurrence in a"):  # and not [5, 6, 1, 1]
            shifted(TABLE)
        assert TABLE.compute().tolist() == [5, 0, 0, 0]
    finally:
        TABLE = kept


@pytest.mark.parametrize("size", [0, 1, 5])
def test_loops_that_do_nothing(size):
    @ln.loops
    def nothing(a):
        for i in range(a.shape[0]):
            if i % 2 == 0:
                continue
        return a

    assert nothing(np.arange(size)).compute().tolist() == list(range(size))


def test_extremes_of_nothing_are_refused_where_they_stand():
    @ln.loops
    def empty(a):
        for i in range(a.shape[0]):
            if a[i] > 9:
                a[i] = max(a[q] for q in range(0))

    with pytest.raises(ln.LoopError, match=r"max\(\) of an empty sequence"):
        empty(np.arange(4.0))


@ln.loops
def every_other(w, a):
    for i in range(w.shape[0]):
        if i % 2 == 1:
            continue
        w[i // 2] = a[i]


@ln.loops
def doubled_indices(w, a):
    for i in range(w.shape[0]):
        if i == 0 or a[i] > -9:
            if i % 2 == 0 or i > 2:
                continue
            w[2 * i] = a[i]


@ln.loops
def one_column(w, a):
    for i in range(w.shape[0]):
        for j in range(w.shape[0]):
            if j == 1:  # noqa: SIM102 - a guard on values inside one on loop variables
                if a[i] > -9:
                    w[(i + 1) % 4] = a[i] + j


@pytest.mark.parametrize("function", [every_other, doubled_indices, one_column])
def test_steps_that_do_not_run_write_nothing_over_others(function):
    from comparing import same

    same(function, np.arange(10.0, 14), np.array([3.0, -1, 5, 7]))
