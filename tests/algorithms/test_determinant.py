"""Determinants against NumPy, and beyond the range in which NumPy has them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ways import WAYS
from ways import run as run_in

from linnet.errors import LinAlgError
from linnet.kernels.linalg.pivots import is_odd, product
from linnet.linalg import det, slogdet


def random(seed, *shape, dtype="f8"):
    rng = np.random.default_rng(seed)
    real = rng.standard_normal(shape)
    return (real + 1j * rng.standard_normal(shape) if dtype.startswith("c") else real).astype(dtype)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("n", [0, 1, 2, 9])
@pytest.mark.parametrize("tile", [None, 4])
def test_agrees_with_numpy(n, dtype, tile, run):
    a = random(n, n, n, dtype=dtype)
    found, expected = run("det", a, tile=tile), np.linalg.det(a)
    assert (found.dtype, np.shape(found)) == (expected.dtype, ())
    assert np.isclose(found, expected, rtol=1e-3)
    for mine, theirs in zip(run("slogdet", a, tile=tile), np.linalg.slogdet(a), strict=True):
        assert mine.dtype == theirs.dtype
        assert np.isclose(mine, theirs, rtol=1e-3, atol=1e-3)


@pytest.mark.slow
@settings(max_examples=30)
@given(st.permutations(range(9)), st.sampled_from(WAYS))
def test_determinants_of_permutations(order, way):
    a = np.eye(9)[list(order)]
    found = run_in(way, "det", a, tile=4)
    assert found == round(np.linalg.det(a)) == (-1 if is_odd(np.array(order)) else 1)


def test_nothing_overflows(run):
    a = random(0, 40, 40)
    sign, log = np.linalg.slogdet(a)
    for scale in (1e-200, 1e200):
        found = run("slogdet", a * scale, tile=16)
        assert found.sign == sign
        assert np.isclose(found.logabsdet, log + 40 * np.log(scale))
    assert run("det", np.eye(40) * 1e200) == np.inf
    assert run("det", np.eye(40) * 1e-200) == 0
    d = np.array([1e300, 1e300, 1e-300, 1e-300] * 10)
    assert np.isclose(run("det", np.diag(d), tile=16), 1.0)


@settings(max_examples=40)
@given(
    st.lists(st.floats(-1e300, 1e300).filter(lambda x: x == 0 or abs(x) > 1e-300), min_size=1, max_size=300)
)
def test_products_against_exact_ones(numbers):
    exact = np.prod([Fraction(x) for x in numbers], dtype=object)
    found = product(np.array(numbers))
    try:
        expected = float(exact)
    except OverflowError:
        expected = np.inf if exact > 0 else -np.inf
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-310)


@pytest.mark.parametrize("tile", [None, 2])
def test_singular_and_not_a_number(tile, run):
    a = np.arange(16.0).reshape(4, 4)
    a[1] = a[0]
    assert run("det", a, tile=tile) == 0
    assert run("slogdet", a, tile=tile) == (0.0, -np.inf)
    assert np.isnan(run("det", np.full((4, 4), np.nan), tile=tile))


@pytest.mark.slow
def test_stacks(run):
    a = random(0, 2, 3, 5, 5)
    assert np.allclose(det(a), np.linalg.det(a))
    assert slogdet(a).logabsdet.shape == (2, 3)
    assert det(np.zeros((0, 3, 3))).shape == (0,)
    wild = np.stack([np.diag([1e200, 1e200, 1e-200, 1e-200]), np.eye(4), np.zeros((4, 4))])
    assert np.allclose(det(wild), [1, 1, 0])
    assert np.allclose(run("det", a, tile=2), np.linalg.det(a))
    assert np.allclose(run("slogdet", a, tile=2).logabsdet, np.linalg.slogdet(a).logabsdet)


def test_what_is_refused():
    with pytest.raises(LinAlgError, match="det takes a square matrix, got 2×3"):
        det(np.ones((2, 3)))
    with pytest.raises(LinAlgError, match="slogdet takes a square matrix, got 2×3"):
        slogdet(np.ones((2, 3)))
