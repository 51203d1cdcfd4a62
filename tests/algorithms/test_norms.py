"""Norms and condition numbers against NumPy, also where NumPy's overflow."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linnet.algorithms.norms import cond, frobenius, greatest_column, greatest_element, norm
from linnet.engines import Threads
from linnet.errors import InputError, LinAlgError
from linnet.tiles import TiledArray

ENGINE = Threads(2)
MATRIX_ORDERS = [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf]
VECTOR_ORDERS = [None, 0, 1, 2, 3, 0.5, -1, -2, np.inf, -np.inf]


def random(seed, *shape, dtype="f8"):
    rng = np.random.default_rng(seed)
    real = rng.standard_normal(shape)
    return (real + 1j * rng.standard_normal(shape) if dtype.startswith("c") else real).astype(dtype)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("order", MATRIX_ORDERS)
def test_matrix_norms(order, dtype):
    a = random(0, 9, 7, dtype=dtype)
    expected = np.linalg.norm(a, order)
    for given_array in (a, TiledArray.from_numpy(a, 4)):
        found = norm(given_array, order, engine=ENGINE)
        assert found.dtype == expected.dtype
        assert np.isclose(found, expected, rtol=1e-5)
    assert np.isclose(norm(a, order, tile=3, engine=ENGINE), expected, rtol=1e-5)
    assert norm(a, order, keepdims=True, tile=3, engine=ENGINE).shape == (1, 1)


def test_largest_element():
    a = random(0, 9, 7, dtype="c16")
    assert norm(a, "max") == np.abs(a).max()
    assert norm(a, "max", tile=4, engine=ENGINE) == np.abs(a).max()


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
def test_norms_of_stacks_and_of_scaled_numbers(order, scale):
    a = random(0, 3, 6, 5)
    expected = np.abs(a).max(axis=(1, 2)) if order == "max" else np.linalg.norm(a, order, (1, 2))
    assert np.allclose(norm(a * scale, order, (1, 2)) / scale, expected)
    assert np.isclose(norm(a[0] * scale, order, tile=2, engine=ENGINE) / scale, expected[0])


@settings(max_examples=15)
@given(
    st.integers(1, 20),
    st.integers(1, 20),
    st.integers(1, 7),
    st.sampled_from([None, 1, np.inf]),
    st.integers(0, 9),
)
def test_any_shape_any_tile(m, n, tile, order, seed):
    a = random(seed, m, n)
    assert np.isclose(norm(a, order, tile=tile, engine=ENGINE), np.linalg.norm(a, order))


def test_numbers_that_are_none_and_empty():
    a = random(0, 6, 6)
    a[4, 4] = np.nan
    for order in (None, 1, np.inf, "max"):
        assert np.isnan(norm(a, order, tile=4, engine=ENGINE))
    a[4, 4] = np.inf
    for order in (None, 1, np.inf, "max"):
        assert norm(a, order, tile=4, engine=ENGINE) == np.inf
    assert norm(np.zeros((0, 3))) == 0
    assert norm(np.zeros((5, 5)), tile=2, engine=ENGINE) == 0
    assert norm(random(0, 2, 3, 4)).shape == ()
    assert norm([3, 4]) == 5.0


@pytest.mark.parametrize("order", [None, 2, -2, 1, -1, np.inf, -np.inf, "fro"])
@pytest.mark.parametrize("tile", [None, 3])
def test_condition_numbers(order, tile):
    a = random(0, 8, 8)
    assert np.isclose(cond(a, order, tile=tile, engine=ENGINE), np.linalg.cond(a, order))
    stack = random(1, 3, 5, 5)
    assert np.allclose(cond(stack, order), np.linalg.cond(stack, order))


def test_condition_of_singular_matrices_is_infinite():
    assert cond(np.zeros((3, 3)), 1, tile=2) == np.inf
    assert cond(np.zeros((3, 3))) == np.inf
    assert cond(random(0, 4, 2)) >= 1
    assert np.isclose(cond(np.diag([1.0, 1e-10]), 1), 1e10)


def test_programs_are_proved():
    for program in (frobenius, greatest_column, greatest_element):
        assert program.proven


def test_what_is_refused():
    with pytest.raises(InputError, match="no norm of order 3 for an array of shape"):
        norm(np.ones((2, 2)), 3)
    with pytest.raises(
        LinAlgError, match="a norm of order 1 is of a vector or a matrix, got an array of shape"
    ):
        norm(np.ones((2, 2, 2)), 1)
    with pytest.raises(LinAlgError, match="a norm is along one axis or two"):
        norm(np.ones((2, 2, 2)), 2, (0, 1, 2))
    with pytest.raises(LinAlgError, match="cond with p=1 takes a square matrix, got 2×3"):
        cond(np.ones((2, 3)), 1)
