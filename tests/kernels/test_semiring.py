"""Products over min, max and their like: compiled, in NumPy, and as users write them."""

from __future__ import annotations

import numpy as np
import pytest

import linnet as ln
from linnet.arrays.expression.nodes import Blocks
from linnet.kernels.arrays import semiring

DTYPES = (np.float64, np.float32, np.int64, np.int32, np.uint8, np.int8)


def _matrices(dtype, m, k, n, skip):
    rng = np.random.default_rng(m + n)
    a, b = (rng.standard_normal(shape) * 50 for shape in ((m, k), (n, k)))
    a, b = a.astype(dtype), b.astype(dtype).T
    if np.dtype(dtype).kind == "f":
        a[rng.random(a.shape) < 0.1], b[rng.random(b.shape) < 0.1] = np.inf, -np.inf
        if skip:
            a[rng.random(a.shape) < 0.1] = b[rng.random(b.shape) < 0.1] = np.nan
    return a, b


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("skip", [True, False])
def test_compiled_and_numpy_agree(dtype, skip):
    for m, k, n in ((1, 1, 1), (3, 5, 7), (17, 300, 33), (5, 257, 65), (4, 0, 3)):
        a, b = _matrices(dtype, m, k, n, skip)
        for plus, times in semiring.OPERATIONS:
            got = semiring.semiring_product(a, b, plus=plus, times=times, skip=skip)
            total = np.full((m, n), semiring.identity(plus, np.dtype(dtype)))
            semiring.in_numpy(total, a, b, plus, times, skip)
            np.testing.assert_array_equal(got, total)
            if k and not skip:
                with np.errstate(all="ignore"):
                    pairs = getattr(np, times)(a[:, :, None], b[None])
                np.testing.assert_array_equal(got, getattr(np, plus)(pairs, axis=1))


EXPRESSIONS = {
    "min of sums": lambda a, b: (a[:, :, None] + b[None]).min(axis=1),
    "max of minima": lambda a, b: np.minimum(a[:, :, None], b[None]).max(axis=1),
    "columns first": lambda a, b: (b.T[:, :, None] + a.T[None]).max(axis=1),
    "any of both": lambda a, b: ((a > 0.7)[:, :, None] & (b > 0.7)[None]).any(axis=1),
    "along the first axis": lambda a, b: (a.T[:, :, None] + b[:, None, :]).min(axis=0),
    "along the last axis": lambda a, b: (a[:, None, :] + b.T[None]).max(axis=-1),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_a_reduction_of_pairs_is_a_product(name):
    rng = np.random.default_rng(0)
    a, b = rng.random((50, 60)), rng.random((60, 70))
    a[3, 4] = np.nan
    made = EXPRESSIONS[name](ln.asarray(a, chunks=32), ln.asarray(b, chunks=32))
    assert isinstance(made.__node__, Blocks) or "columns" in name
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(made.compute(), EXPRESSIONS[name](a, b))


def test_what_is_no_product_stays_a_reduction():
    rng = np.random.default_rng(0)
    a, b = rng.random((50, 60)), rng.random((60, 70))
    A, B = ln.asarray(a, chunks=32), ln.asarray(b, chunks=32)
    for axis in (0, 2, (0, 1), None):
        got = (A[:, :, None] + B[None]).min(axis=axis)
        np.testing.assert_array_equal(got.compute(), (a[:, :, None] + b[None]).min(axis=axis))
    got = (A[:, :, None] + B[None]).min(axis=1, keepdims=True)
    np.testing.assert_array_equal(got.compute(), (a[:, :, None] + b[None]).min(axis=1, keepdims=True))
