"""What stands beside an array in an expression: lists, numbers, text, None, arrays of others."""

from __future__ import annotations

import operator
from enum import IntEnum
from fractions import Fraction

import numpy as np
import pytest
from against_numpy import Pair, same, tiles_only
from strategies import tiled

OPERATORS = [
    operator.add,
    operator.mul,
    operator.and_,
    operator.lt,
    operator.eq,
    operator.ne,
    operator.matmul,
    divmod,
]


class Colour(IntEnum):
    RED = 1


OTHERS = [
    [1, 0, 3],
    (1, 2, 3),
    range(3),
    [[1], [2]],
    [1.5, 2, 3],
    [1, 2],
    [],
    "a",
    ["a", "b", "c"],
    ["a", "b"],
    Colour.RED,
    np.timedelta64(2, "s"),
]
ARRAYS = [
    np.array([1, 2, 3]),
    np.array([1.0, np.nan, 3]),
    np.array([True, False, True]),
    np.array([1, 2, 3], "M8[s]"),
]


@pytest.mark.slow
@pytest.mark.parametrize("apply", OPERATORS)
def test_operands_that_are_no_arrays(apply):
    for array, chunks in zip([*ARRAYS, ARRAYS[0]], [2, 1, 2, 2, -1], strict=True):
        pair = Pair(array, chunks)
        for other in OTHERS:
            same(apply, pair, other)
            same(apply, other, pair)


@pytest.mark.parametrize("chunks", [2, -1])
@pytest.mark.parametrize("other", [None, object(), [None, 2, 3], [2.5, "a", True]])
def test_what_no_number_equals(chunks, other):
    for array in (ARRAYS[0], ARRAYS[1], ARRAYS[3]):
        pair = Pair(array, chunks)
        same(operator.eq, pair, other)
        same(operator.ne, other, pair)


def test_a_comparison_with_a_list_is_an_index():
    x = tiled(np.array([1, 2, 3]), 2)
    assert x[x == [1, 0, 3]].compute().tolist() == [1, 3]


def test_none_in_arithmetic_is_refused():
    x = tiled(np.array([1, 2, 3]), 2)
    for other in (None, [None, 1, 2], Fraction(1, 2)):
        with pytest.raises(TypeError):
            x + other
        with pytest.raises(TypeError):
            other < x  # noqa: B015 - the comparison raises
    with pytest.raises(TypeError, match="objects"):
        x == Fraction(1, 2)  # noqa: B015


def test_the_square_of_booleans():
    same(lambda x: x**2, Pair([True, False, True], 2))


class Marked:
    """An object with ufuncs of its own."""

    __array_ufunc__ = None

    def __radd__(self, other):
        return "mine"

    def __eq__(self, other):
        return "equal"

    __hash__ = None


@pytest.mark.parametrize("chunks", [2, -1])
def test_objects_with_ufuncs_of_their_own_do_the_work(chunks):
    x = tiled(np.array([1, 2, 3]), chunks)
    assert x + Marked() == "mine"
    assert (x == Marked()) == "equal"


@pytest.mark.parametrize("chunks", [2, -1])
def test_masked_elements_are_never_read_through_the_mask(chunks):
    x = tiled(np.array([1.0, 2, 3]), chunks)
    masked = np.ma.masked_array([1.0, 2, 3], [False, True, False])
    assert np.ma.is_masked((x + masked)[1])
    for make in (lambda: np.hypot(x, masked), lambda: np.concatenate([x, masked])):
        with pytest.raises(TypeError, match="masked"):
            make()
    assert (x + np.ma.masked_array([1.0, 2, 3])).tolist() == [2, 4, 6]


def test_small_arrays_take_the_same_way():
    with tiles_only():
        same(operator.eq, Pair([1, 2, 3], -1), [1, 0, 3])
        same(operator.eq, Pair([1, 2, 3], -1), "a")
