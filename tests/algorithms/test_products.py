"""Products with structure and powers, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ways import ENGINE, WAYS
from ways import run as run_in

from linnet.algorithms.products import gram_matrix, hermitian_times, lower_times, upper_times
from linnet.errors import InputError, LinAlgError
from linnet.linalg import matrix_power, symm, syrk, trmm
from linnet.tiles import TiledArray

DTYPES = ["f4", "f8", "c8", "c16"]
SHAPES = st.tuples(
    st.integers(1, 20), st.integers(1, 20), st.integers(1, 7), st.sampled_from(DTYPES), st.integers(0, 9)
)


def random(seed, *shape, dtype="f8"):
    rng = np.random.default_rng(seed)
    real = rng.standard_normal(shape)
    return (real + 1j * rng.standard_normal(shape) if dtype.startswith("c") else real).astype(dtype)


def near(found, expected, dtype):
    assert (found.shape, found.dtype) == (expected.shape, dtype)
    assert np.abs(found - expected).max(initial=0) <= 100 * max(1, *expected.shape) * np.finfo(dtype).eps


@pytest.mark.slow
@settings(max_examples=30)
@given(SHAPES, st.sampled_from(WAYS))
def test_product_with_its_own_adjoint(case, way):
    m, n, tile, dtype, seed = case
    a = random(seed, m, n, dtype=dtype)
    made = run_in(way, "syrk", a, tile=tile)
    near(made, a @ a.conj().T, dtype)
    assert np.array_equal(made, made.conj().T)
    near(run_in(way, "syrk", a, adjoint=True, tile=tile), a.conj().T @ a, dtype)


@pytest.mark.slow
@settings(max_examples=30)
@given(SHAPES, st.booleans(), st.sampled_from(["left", "right"]), st.sampled_from(WAYS))
def test_product_with_a_hermitian_matrix(case, lower, side, way):
    n, columns, tile, dtype, seed = case
    x = random(seed, n, n, dtype=dtype)
    a = x + x.conj().T
    stored = a.copy()
    stored[np.triu_indices(n, 1) if lower else np.tril_indices(n, -1)] = 1e6  # not to be read
    b = random(seed + 1, *((n, columns) if side == "left" else (columns, n)), dtype=dtype)
    near(
        run_in(way, "symm", stored, b, lower=lower, side=side, tile=tile),
        a @ b if side == "left" else b @ a,
        dtype,
    )


@pytest.mark.slow
@settings(max_examples=30)
@given(SHAPES, st.booleans(), st.booleans(), st.sampled_from(["left", "right"]), st.sampled_from(WAYS))
def test_product_with_a_triangle(case, lower, unit, side, way):
    n, columns, tile, dtype, seed = case
    stored = random(seed, n, n, dtype=dtype)
    t = np.tril(stored) if lower else np.triu(stored)
    if unit:
        np.fill_diagonal(t, 1)
    b = random(seed + 1, *((n, columns) if side == "left" else (columns, n)), dtype=dtype)
    found = run_in(way, "trmm", stored, b, lower=lower, unit_diagonal=unit, side=side, tile=tile)
    near(found, t @ b if side == "left" else b @ t, dtype)


def test_tiled_input():
    a, b = random(0, 9, 9), random(1, 9, 5)
    a = a + a.T
    tiled, right = TiledArray.from_numpy(a, 4), TiledArray.from_numpy(b, (4, 3))
    near(symm(tiled, right, engine=ENGINE), a @ b, "f8")
    near(trmm(tiled, right, engine=ENGINE), np.tril(a) @ b, "f8")
    near(syrk(right, engine=ENGINE), b @ b.T, "f8")
    near(syrk(right, adjoint=True, engine=ENGINE), b.T @ b, "f8")


@pytest.mark.parametrize("power", [-3, -1, 0, 1, 2, 3, 7])
@pytest.mark.parametrize("tile", [None, 4])
@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_powers(power, tile, dtype, run):
    a = np.eye(9) + random(0, 9, 9, dtype=dtype) / 20
    found = run("matrix_power", a, power, tile=tile)
    assert found.dtype == dtype
    assert np.allclose(found, np.linalg.matrix_power(a, power))


def test_powers_of_integers_stacks_and_tiles(run):
    a = np.array([[1, 1], [1, 0]])
    for tile in (None, 1):
        assert run("matrix_power", a, 50, tile=tile)[0, 1] == 12586269025
        assert run("matrix_power", a, 50, tile=tile).dtype == a.dtype
    stack = np.eye(5) + random(0, 3, 5, 5) / 9
    assert np.allclose(run("matrix_power", stack, 5, tile=2), np.linalg.matrix_power(stack, 5))
    assert np.allclose(
        matrix_power(TiledArray.from_numpy(stack[0], 2), 3), np.linalg.matrix_power(stack[0], 3)
    )


def test_programs_are_proved():
    for program in (gram_matrix, hermitian_times, lower_times, upper_times):
        assert program.proven


def test_what_is_refused(run):
    with pytest.raises(InputError, match="a power of a matrix is a whole number, got 0.5"):
        run("matrix_power", np.eye(2), 0.5)
    with pytest.raises(LinAlgError, match="matrix_power takes a square matrix, got 2×3"):
        run("matrix_power", np.ones((2, 3)), 2)
    with pytest.raises(
        LinAlgError, match="trmm: the square matrix is 3×3 but b has 2 rows; they must be as many"
    ):
        run("trmm", np.eye(3), np.ones((2, 2)))
    with pytest.raises(InputError, match="side 'top' is not known"):
        run("symm", np.eye(3), np.ones((3, 2)), side="top")
    with pytest.raises(LinAlgError, match=r"a must be a matrix, got an array of shape \(2, 3, 3\)"):
        run("syrk", np.ones((2, 3, 3)))
