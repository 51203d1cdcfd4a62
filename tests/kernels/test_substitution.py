"""Triangular systems: every side, half and operation, compiled and not, against SciPy."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import solve_triangular

from linnet.kernels import compiled
from linnet.kernels.linalg.substitution import solve_triangle

WAYS = list(itertools.product((b"L", b"R"), (b"L", b"U"), (b"N", b"T", b"C"), (b"N", b"U")))


def padded(matrix):
    """In Fortran order, with room between the columns and trash in it."""
    whole = np.full((matrix.shape[0] + 3, matrix.shape[1]), np.nan, matrix.dtype, order="F")
    whole[1:-2] = matrix
    return whole[1:-2]


def expected(side, half, operation, diagonal, t, x):
    trans = {b"N": 0, b"T": 1, b"C": 2}[operation]
    if side == b"L":
        return solve_triangular(t, x, trans, half == b"L", diagonal == b"U")
    turned = {0: t.T, 1: t, 2: t.conj()}[trans]
    lower = (half == b"L") != (trans == 0)
    return solve_triangular(turned, x.T, 0, lower, diagonal == b"U").T


def check(way, unknowns, sides, code, seed):
    rng = np.random.default_rng(seed)
    side, half, _, diagonal = way
    t = rng.standard_normal((unknowns, unknowns)) / unknowns
    x = rng.standard_normal((unknowns, sides) if side == b"L" else (sides, unknowns))
    if code in "FD":
        t, x = t + 1j * rng.standard_normal(t.shape) / unknowns, x + 1j * rng.standard_normal(x.shape)
    t, x = t.astype(code), x.astype(code)
    np.fill_diagonal(t, np.sign(t.diagonal().real) + t.diagonal())
    wanted = expected(*way, t, x)
    trash = np.triu(np.full_like(t, np.nan), 1)  # of the triangle the other half is not read
    found, given_t = padded(x), padded(t + (trash if half == b"L" else trash.T))
    if diagonal == b"U":
        np.fill_diagonal(given_t, np.nan)
    solve_triangle(*way, given_t, found)
    tolerance = 1e-4 if code in "fF" else 1e-12
    assert np.allclose(found, wanted, rtol=tolerance, atol=tolerance), way
    assert np.isnan(found.base[0]).all()
    assert np.isnan(found.base[-2:]).all()


@pytest.fixture(params=["compiled", "BLAS alone"])
def leaves(request, monkeypatch):
    if request.param == "BLAS alone":
        monkeypatch.setattr(compiled, "substitutes", lambda: None)
    elif compiled.substitutes() is None:
        pytest.skip("no C compiler was there when the package was built")


@pytest.mark.parametrize("code", "fdFD")
@pytest.mark.parametrize(("unknowns", "sides"), [(1, 64), (7, 65), (64, 100), (65, 64), (200, 97), (300, 70)])
def test_all_ways(leaves, unknowns, sides, code):
    for number, way in enumerate(WAYS):
        check(way, unknowns, sides, code, number)


@given(
    way=st.sampled_from(WAYS),
    unknowns=st.integers(1, 290),
    sides=st.integers(1, 140),
    code=st.sampled_from("fdFD"),
    seed=st.integers(0, 99),
)
def test_any_shape(way, unknowns, sides, code, seed):
    check(way, unknowns, sides, code, seed)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
def test_nothing_to_solve(shape):
    x = np.zeros(shape, order="F")
    solve_triangle(b"L", b"L", b"N", b"N", np.eye(max(1, shape[0]), order="F"), x)
    assert x.shape == shape


def test_zeros_on_the_diagonal_give_infinities(leaves):
    t = np.asfortranarray(np.diag([2.0, 0.0]))
    x = np.ones((2, 80), order="F")
    solve_triangle(b"L", b"L", b"N", b"N", t, x)
    assert np.array_equal(x, [[0.5] * 80, [np.inf] * 80])


def test_extreme_scales(leaves):
    rng = np.random.default_rng(0)
    scale = 10.0 ** np.linspace(-150, 150, 200)
    t = np.tril(rng.standard_normal((200, 200)), -1) / 200 + np.eye(200)
    graded = np.asfortranarray(scale[:, None] * t)
    x = rng.standard_normal((200, 100))
    found = np.asfortranarray(scale[:, None] * (t @ x))
    solve_triangle(b"L", b"L", b"N", b"N", graded, found)
    assert np.allclose(found, x, rtol=1e-10, atol=1e-11)
