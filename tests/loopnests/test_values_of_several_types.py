"""A conditional expression, `min` or a guarded scalar may give values of several types: each is computed with
as what it is. Elements of narrow integers wrap around, Python's numbers do not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from comparing import same

import linnet as ln

NARROW = np.array([1, 2, 100, 20], np.int8)
WHOLE = np.array([1, 0, 1, 0])


@ln.loops
def branch_or_number(x, c, out):
    for i in range(x.shape[0]):
        out[i] = (x[i] if c[i] > 0 else 7) * 100


@ln.loops
def least_or_number(x, c, out):
    for i in range(x.shape[0]):
        out[i] = min(x[i], 7) * 100 + c[i]


@ln.loops
def two_dtypes(x, c, out):
    for i in range(x.shape[0]):
        out[i] = (x[i] if c[i] > 0 else c[i]) * x[i]


@ln.loops
def three_types(x, c, out):
    for i in range(x.shape[0]):
        out[i] = abs(x[i] if c[i] > 0 else -(300 if i > 1 else c[i])) * 2


@ln.loops
def sums_of_products(x, c, out):
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            out[i] += (x[j] if c[j] > 0 else c[i]) * x[j]


@pytest.mark.parametrize(
    "function", [branch_or_number, least_or_number, two_dtypes, three_types, sums_of_products]
)
def test_each_value_is_of_its_own_type(function):
    same(function, NARROW, WHOLE, np.zeros(4, np.int64), exact=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint8])
def test_numbers_beside_elements_that_are_narrower_than_what_follows(dtype):
    @ln.loops
    def mixed(x, y, out):
        for i in range(x.shape[0]):
            out[i] = (x[i] if y[i] > 0.5 else 0.1) * y[i]

    same(mixed, np.arange(4).astype(dtype), np.array([0.1, 0.9, 0.2, 0.8]), np.zeros(4), exact=True)


@pytest.mark.parametrize("start", [math.inf, -1.5, 7, 0, -300])
@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.int8])
def test_the_least_of_a_number_and_elements_keeps_its_type(start, dtype):
    @ln.loops
    def extremes(x):
        least = most = start
        for i in range(x.shape[0]):
            least = min(least, x[i])
            if x[i] > 3:
                most = max(most, x[i])
        return least, most

    same(extremes, np.array([5, 3, 9]).astype(dtype), exact=True)
    same(extremes, np.array([1, 3, 2]).astype(dtype), exact=True)


def test_long_integers_beside_infinity_stay_exact():
    @ln.loops
    def least(x):
        s = ln.inf
        for i in range(x.shape[0]):
            s = min(s, x[i])
        return s

    same(least, np.array([2**60 + 1, 2**60 + 3]), exact=True)


def test_a_scalar_of_several_types_for_each_step_is_refused():
    @ln.loops
    def guarded(x, c, out):
        for i in range(x.shape[0]):
            t = 7
            if c[i] > 0:
                t = x[i]
            out[i] = t * 100

    with pytest.raises(ln.LoopError, match="one of several types, and results depend on which"):
        guarded(NARROW, WHOLE, np.zeros(4, np.int64))

    @ln.loops
    def summed(x, c):
        s = 0
        for i in range(x.shape[0]):
            s += x[i] if c[i] > 0 else c[i]
        return s

    with pytest.raises(ln.LoopError, match="values of several types are combined in a scalar"):
        summed(NARROW, WHOLE)


def test_a_scalar_of_elements_and_numbers_of_their_kind_is_not_refused():
    @ln.loops
    def guarded(x, c, out):
        for i in range(x.shape[0]):
            t = 0
            if c[i] > 0:
                t = x[i]
            out[i] = t * 100

    same(guarded, np.array([1.5, 2, 3, 4]), WHOLE, np.zeros(4))
    same(guarded, WHOLE * 3, WHOLE, np.zeros(4, np.int64), exact=True)


def test_whole_parts_of_what_is_chosen_alone():
    @ln.loops
    def parts(x, c, out):
        for i in range(x.shape[0]):
            out[i] = int(x[i] if c[i] > 0 else 0.5) + math.floor(x[i] if c[i] > 0 else 2)

    same(parts, np.array([1.5, np.inf, -2.5, np.nan]), WHOLE, np.zeros(4, np.int64), exact=True)
