"""Norms and condition numbers against NumPy, also where NumPy's overflow."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ways import ENGINE, WAYS
from ways import run as run_in

from linnet.errors import LinAlgError
from linnet.linalg import cond, norm
from linnet.tiles import TiledArray

MATRIX_ORDERS = [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf]
VECTOR_ORDERS = [None, 0, 1, 2, 3, 0.5, -1, -2, np.inf, -np.inf]


def random(seed, *shape, dtype="f8"):
    rng = np.random.default_rng(seed)
    real = rng.standard_normal(shape)
    return (real + 1j * rng.standard_normal(shape) if dtype.startswith("c") else real).astype(dtype)


@pytest.mark.slow
@pytest.mark.sample(36)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("order", MATRIX_ORDERS)
def test_matrix_norms(order, dtype, run):
    a = random(0, 9, 7, dtype=dtype)
    expected = np.linalg.norm(a, order)
    for given_array in (a, TiledArray.from_numpy(a, 4)):
        found = norm(given_array, order, engine=ENGINE)
        assert found.dtype == expected.dtype
        assert np.isclose(found, expected, rtol=1e-5)
    assert np.isclose(run("norm", a, order, tile=3), expected, rtol=1e-5)
    assert run("norm", a, order, keepdims=True, tile=3).shape == (1, 1)


def test_largest_element(run):
    a = random(0, 9, 7, dtype="c16")
    assert norm(a, "max") == np.abs(a).max()
    assert run("norm", a, "max", tile=4) == np.abs(a).max()


@pytest.mark.parametrize("order", VECTOR_ORDERS)
def test_vector_norms_along_axes(order):
    a = random(0, 4, 5, 6)
    assert np.isclose(norm(a[0, 0], order), np.linalg.norm(a[0, 0], order))
    for axis in (0, 1, -1):
        for keep in (False, True):
            expected = np.linalg.norm(a, order, axis, keep)
            found = norm(a, order, axis, keep)
            assert found.shape == expected.shape
            assert np.allclose(found, expected)
            for scale in (1e-200, 1e200) if order != 0 else ():
                assert np.allclose(norm(a * scale, order, axis, keep) / scale, expected)


@pytest.mark.parametrize("order", [*MATRIX_ORDERS, "max"])
@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200])
def test_norms_of_stacks_and_of_scaled_numbers(order, scale, run):
    a = random(0, 3, 6, 5)
    expected = np.abs(a).max(axis=(1, 2)) if order == "max" else np.linalg.norm(a, order, (1, 2))
    assert np.allclose(norm(a * scale, order, (1, 2)) / scale, expected)
    assert np.isclose(run("norm", a[0] * scale, order, tile=2) / scale, expected[0])


@pytest.mark.slow
@settings(max_examples=30)
@given(
    st.integers(1, 20),
    st.integers(1, 20),
    st.integers(1, 7),
    st.sampled_from([None, 1, np.inf]),
    st.integers(0, 9),
    st.sampled_from(WAYS),
)
def test_any_shape_any_tile(m, n, tile, order, seed, way):
    a = random(seed, m, n)
    assert np.isclose(run_in(way, "norm", a, order, tile=tile), np.linalg.norm(a, order))


def test_numbers_that_are_none_and_empty(run):
    a = random(0, 6, 6)
    a[4, 4] = np.nan
    for order in (None, 1, np.inf, "max"):
        assert np.isnan(run("norm", a, order, tile=4))
    a[4, 4] = np.inf
    for order in (None, 1, np.inf, "max"):
        assert run("norm", a, order, tile=4) == np.inf
    assert run("norm", np.zeros((0, 3))) == 0
    assert run("norm", np.zeros((5, 5)), tile=2) == 0
    assert run("norm", random(0, 2, 3, 4)).shape == ()
    assert norm([3, 4]) == 5.0


@pytest.mark.slow
@pytest.mark.parametrize("order", [None, 2, -2, 1, -1, np.inf, -np.inf, "fro"])
@pytest.mark.parametrize("tile", [None, 3])
def test_condition_numbers(order, tile, run):
    a = random(0, 8, 8)
    assert np.isclose(run("cond", a, order, tile=tile), np.linalg.cond(a, order))
    stack = random(1, 3, 5, 5)
    assert np.allclose(run("cond", stack, order), np.linalg.cond(stack, order))


def test_condition_of_singular_matrices_is_infinite(run):
    assert run("cond", np.zeros((3, 3)), 1, tile=2) == np.inf
    assert run("cond", np.zeros((3, 3))) == np.inf
    assert run("cond", np.zeros((3, 3)), 1) == np.inf
    assert cond(random(0, 4, 2)) >= 1
    assert np.isclose(cond(np.diag([1.0, 1e-10]), 1), 1e10)


def test_what_is_refused(run):
    with pytest.raises(ValueError, match="norm of order 3 of matrices; use 1, -1, 2, -2, inf"):
        run("norm", np.ones((2, 2)), 3)
    with pytest.raises(ValueError, match=r"norm of order 1 of an array of shape \(2, 2, 2\): give axis="):
        run("norm", np.ones((2, 2, 2)), 1)
    with pytest.raises(ValueError, match=r"axis=\(0, 1, 2\): norms are of vectors .* or matrices"):
        run("norm", np.ones((2, 2, 2)), 2, (0, 1, 2))
    with pytest.raises(LinAlgError, match="cond with p=1 takes a square matrix, got 2×3"):
        run("cond", np.ones((2, 3)), 1)
    with pytest.raises(TypeError, match="order"):
        run("norm", np.ones((2, 2)), order=1)
