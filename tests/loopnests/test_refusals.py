"""Each kind of refusal: its words, its line, its witness, and nothing has changed."""

from __future__ import annotations

import re

import numpy as np
import pytest

import linnet as ln
from linnet.errors import ProgramError


def refused(function, *args, words: tuple[str, ...], line: str):
    """Call it (defining it may be refused as well); compare the words, and the text of the line shown."""
    before = [np.array(each) if isinstance(each, np.ndarray) else each for each in args]
    with pytest.raises(ln.LoopError) as caught:
        ln.loops(function)(*args)
    error = caught.value
    assert isinstance(error, ProgramError)
    text = str(error)
    for each in words:
        assert each in text, text
    assert line in text
    assert re.search(r"\n +\^+", text), "no caret"
    with open(__file__) as file:
        assert line in file.read().splitlines()[error.line - 1]
    for old, new in zip(before, args, strict=True):
        if isinstance(new, np.ndarray):
            np.testing.assert_array_equal(old, new)


def test_a_cell_assigned_by_two_steps():
    def last_one_wins(A, v):
        for i in range(3):
            v[i] = 1.0
        for i, j in ln.grid(3, 4):
            v[i] = A[i, j]

    refused(
        last_one_wins, np.ones((3, 4)), np.zeros(3), line="v[i] = A[i, j]",
        words=("the same cell of v[...] is assigned at i = 0, j = 0 and at i = 0, j = 1", "use += or min(...)"),
    )  # fmt: skip


def test_a_cell_assigned_by_two_statements():
    def twice(v):
        for i in range(3):
            v[i] = 1.0
            v[i] = 2.0

    refused(
        twice,
        np.zeros(3),
        line="v[i] = 2.0",
        words=("is assigned twice at i = 0", "nothing reads it between"),
    )


def test_writes_that_meet_on_a_diagonal():
    def meeting(v):
        for i, j in ln.grid(3, 4):
            v[i + j] = i

    refused(
        meeting, np.zeros(9), line="v[i + j] = i", words=("assigned at i = 0, j = 1 and at i = 1, j = 0",)
    )


def test_a_recurrence_has_its_distance():
    def linear(v):
        for i in range(2, 6):
            v[i] = 0.5 * v[i - 2] + v[i]

    refused(
        linear, np.ones(6), line="v[i] = 0.5 * v[i - 2] + v[i]",
        words=("a recurrence in v", "the step i = 4 reads what the step i = 2 wrote", "distance (2)"),
    )  # fmt: skip


def test_a_carried_scalar():
    def carried(v):
        t = 0.0
        for i in range(4):
            v[i] = t
            t = v[i] * 2 + 1

    refused(carried, np.ones(4), line="v[i] = t", words=("a recurrence in", "distance (1)"))


def test_an_index_beyond_the_end():
    def beyond(v, w):
        for i in range(4):
            w[i] = v[i + 1]

    refused(
        beyond,
        np.ones(4),
        np.ones(4),
        line="w[i] = v[i + 1]",
        words=("axis 0 of v is 4 at i = 3", "length 4", "guard"),
    )


def test_an_index_before_the_beginning():
    def wraps(v, w):
        for i in range(4):
            w[i] = v[i - 1]

    refused(wraps, np.ones(4), np.ones(4), line="w[i] = v[i - 1]", words=("is -1 at i = 0", "% 4"))


def test_a_triangle_that_is_too_wide():
    def wide(A, v):
        for i in range(4):
            for j in range(i + 2):
                v[i] += A[i, j]

    refused(
        wide, np.ones((4, 4)), np.ones(4), line="v[i] += A[i, j]", words=("axis 1 of A is 4 at i = 3, j = 4",)
    )


def test_break():
    def early(v):
        for i in range(4):
            if v[i] > 3:
                break
            v[i] = 0.0

    refused(early, np.ones(4), line="break", words=("`break` ends a loop early", "`if`"))


def test_return_inside_a_loop():
    def early(v):
        for i in range(4):
            return v[i]

    refused(early, np.ones(4), line="return v[i]", words=("`return` inside a loop",))


def test_side_effects():
    def prints(v):
        for i in range(4):
            print(v[i])

    refused(
        prints, np.ones(4), line="print(v[i])", words=("side effect", "outside" if False else "move it out")
    )

    def appends(v):
        found = []
        found.append(v)
        return found

    refused(appends, np.ones(4), line="found.append(v)", words=("side effect",))


def test_bounds_that_depend_on_values():
    def ragged(A, n, v):
        for i in range(3):
            for j in range(n[i]):
                v[i] += A[i, j]

    refused(
        ragged, np.ones((3, 4)), np.array([1, 2, 3]), np.zeros(3), line="for j in range(n[i]):",
        words=("the bounds of the loop over 'j' depend on values", "`if`"),
    )  # fmt: skip


def test_bounds_that_are_no_sums():
    def products(A, v):
        for i in range(3):
            for j in range(i * i):
                v[i] += A[i, j]

    refused(
        products,
        np.ones((3, 4)),
        np.zeros(3),
        line="for j in range(i * i):",
        words=("no sums of the loop variables",),
    )


def test_an_assignment_at_a_computed_index():
    def scatter(v, key, out):
        for i in range(4):
            out[key[i]] = v[i]

    refused(
        scatter, np.ones(4), np.array([0, 1, 1, 2]), np.zeros(4), line="out[key[i]] = v[i]",
        words=("assigned at a computed index", "two steps may write the same cell"),
    )  # fmt: skip


def test_a_narrowing_store():
    def narrow(v, n):
        for i in range(4):
            n[i] = v[i] * 0.5

    refused(
        narrow, np.ones(4), np.zeros(4, dtype=np.int32), line="n[i] = v[i] * 0.5",
        words=("values of dtype float64 are stored in n, which has dtype int32",),
    )  # fmt: skip


def test_or_of_numbers_is_no_monoid():
    def either(A, v):
        for i, j in ln.grid(3, 4):
            v[i] = v[i] or A[i, j]

    refused(
        either, np.ones((3, 4)), np.zeros(3), line="v[i] = v[i] or A[i, j]", words=("so the order matters",)
    )


def test_arguments_in_the_same_memory():
    def shift(a, b):
        for i in range(3):
            a[i] = b[i]

    v = np.arange(4.0)
    with pytest.raises(ln.LoopError, match="two arguments lie in the same memory"):
        ln.loops(shift)(v[:3], v[1:])
    np.testing.assert_array_equal(v, np.arange(4.0))


def test_one_array_under_two_names_is_one_array():
    def both(a, b):
        for i in range(3):
            a[i] = b[i] + 1
            b[i] *= 2

    v, w = np.arange(3.0), np.arange(3.0)
    ln.loops(both)(v, v)
    both(w, w)
    np.testing.assert_array_equal(v, w)


def test_an_array_that_is_not_there():
    def missing(v):
        for i in range(3):
            v[i] = nowhere[i]

    refused(missing, np.ones(3), line="v[i] = nowhere[i]", words=("'nowhere' is not defined",))


def test_a_loop_variable_that_is_assigned():
    def moved(v):
        for i in range(3):
            i = i + 1
            v[i] = 0.0

    refused(moved, np.ones(3), line="i = i + 1", words=("the loop variable 'i' is assigned",))


def test_a_minimum_of_what_may_be_empty():
    def least(v, m):
        return min(v[i] for i in range(3) if m[i])

    refused(least, np.ones(3), np.zeros(3, bool), line="min(v[i] for i in range(3)", words=("may be empty",))


def test_whole_numbers_that_are_too_long():
    def powers(v):
        for i in range(100):
            v[i] = v[i] + (i + 1) ** 30

    refused(powers, np.ones(100), line="v[i] = v[i] + (i + 1) ** 30", words=("do not fit 64 bits",))


def test_division_of_loop_variables_by_zero():
    def inverse(v):
        for i in range(3):
            v[i] = 1 / i

    refused(inverse, np.ones(3), line="v[i] = 1 / i", words=("divided by zero",))


def test_a_loop_over_an_array():
    def rows(A):
        s = 0
        for row in A:
            s = s + row
        return s

    with pytest.raises(ln.LoopError, match="runs through its elements one by one"):
        ln.loops(rows)(np.ones((2, 2)))


def test_an_own_function_that_does_more():
    def helper(x):
        y = x + 1
        return y

    def uses(v):
        for i in range(3):
            v[i] = helper(v[i])

    refused(uses, np.ones(3), line="v[i] = helper(v[i])", words=("does more than return an expression",))


def test_a_scalar_of_an_unknown_last_step():
    def last(v):
        t = 0.0
        for i in range(3):
            if v[i] > 0:
                t = v[i]
        return t

    with pytest.raises(ln.LoopError):
        ln.loops(last)(np.ones(3))


def test_monoids_are_tried():
    with pytest.raises(ValueError, match="is not associative"):
        ln.monoid("minus", lambda a, b: a - b, 0.0)
    with pytest.raises(ValueError, match="is no identity"):
        ln.monoid("larger", np.maximum, 1.0)


def test_a_lambda_has_no_source():
    with pytest.raises(ln.LoopError, match=re.escape("use ln.einop or ln.tensor")):
        ln.loops(lambda v: v)
