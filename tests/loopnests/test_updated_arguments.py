"""Arguments of NumPy's that are updated, and what is returned of them; sums that are divided."""

from __future__ import annotations

import numpy as np
import pytest
from comparing import same

import linnet as ln

RNG = np.random.default_rng(3)


@ln.loops
def scaled(w, c):
    s = ln.zeros(w.shape[0])
    for i in range(w.shape[0]):
        w[i] *= c
    for i in range(w.shape[0]):
        s[i] = w[i] + 1
    return w, s, ln.zeros((4000, 4000), chunks=1000) + 1


def test_what_is_made_of_updated_arguments_is_computed_with_them():
    w = np.arange(5.0)
    new, more, other = scaled(w, 2.0)
    assert not new.__node__.operands
    assert not more.__node__.operands
    assert other.__node__.operands  # it has nothing to do with the update: it stays lazy
    w[:] = 7  # the results are arrays of their own
    np.testing.assert_array_equal(new, 2 * np.arange(5.0))
    np.testing.assert_array_equal(more, 2 * np.arange(5.0) + 1)
    assert other.shape == (4000, 4000)


@ln.loops
def divided(A, B, c):
    D = ln.zeros((A.shape[1], B.shape[1]), dtype=A.dtype)
    for i, j, k in ln.grid(A.shape[0], A.shape[1], B.shape[1]):
        D[j, k] += A[i, j] * B[i, k] / c
    return D


@pytest.mark.parametrize("by", [3, -2.5, np.float64(7), np.int32(4), np.inf, np.nan])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_of_products_that_are_divided(by, dtype):
    if dtype is np.float32 and isinstance(by, np.float64):
        by = np.float32(by)
    if dtype is np.float32 and isinstance(by, np.int32):
        by = np.int16(by)
    A, B = (RNG.standard_normal((7, n)).astype(dtype) for n in (3, 4))
    same(divided, A, B, by, rtol=1e-5 if dtype is np.float32 else 1e-12)


def test_they_are_contractions():
    A, B = RNG.standard_normal((500, 300)), RNG.standard_normal((500, 200))
    made = divided(ln.asarray(A), ln.asarray(B), 10)
    nodes = [made.__node__]
    for each in nodes:
        nodes += each.operands
    assert all(each.ndim <= 2 for each in nodes)  # no array of all products
    np.testing.assert_allclose(made, A.T @ B / 10)


def test_a_sum_that_would_be_too_large_is_divided_first():
    A = np.full((200, 1), 30, np.float16)
    same(divided, A, A, np.float16(100), rtol=1e-2)


def test_zero_divides_each_product():
    A, B = np.array([[1.0], [-1.0]]), np.ones((2, 1))
    same(divided, A, B, np.float64(0))
