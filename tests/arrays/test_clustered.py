"""Linear algebra of arrays on an engine with nodes: the same factors, which stay in tiles."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import linnet as ln
from linnet.arrays.expression import Stored
from linnet.engines.simulated import Simulated
from linnet.planning.cluster import Cluster


@pytest.fixture(autouse=True)
def nodes():
    with ln.init(engine=Simulated(cluster=Cluster(3))):
        yield


def random(*shape, dtype="f8", seed=0):
    rng = np.random.default_rng(seed)
    made = rng.standard_normal(shape)
    return (made + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else made).astype(dtype)


def definite(n, dtype="f8"):
    a = random(n, n, dtype=dtype)
    return (a @ a.conj().T + n * np.eye(n)).astype(dtype)


def ours(x, chunks=30):
    """An array that has yet to be computed."""
    return ln.asarray(x, chunks=chunks) * np.ones((), x.dtype)


DTYPES = ["f4", "f8", "c8", "c16"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [70, 100])
def test_cholesky(dtype, n):
    a = definite(n, dtype)
    made = ln.linalg.cholesky(ours(a), tile=32)
    assert isinstance(made.node, Stored)
    assert made.dtype == dtype
    np.testing.assert_allclose(np.asarray(made), np.linalg.cholesky(a), rtol=1e-3, atol=1e-3)
    upper = ln.linalg.cholesky(ours(a), upper=True, tile=32)
    np.testing.assert_allclose(np.asarray(upper), np.linalg.cholesky(a).conj().T, rtol=1e-3, atol=1e-3)


def test_matrices_without_a_factor():
    a = definite(100)
    a[80, 80] = -1.0
    with pytest.raises(ln.LinAlgError, match="its leading minor of order 81 is not positive"):
        ln.linalg.cholesky(ours(a), tile=32)
    with pytest.raises(ln.LinAlgError, match="Cholesky takes a square matrix; got 100×90"):
        ln.linalg.cholesky(ours(a[:, :90]), tile=32)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lower", [True, False])
def test_factors_are_used_again(dtype, lower):
    a, b = definite(90, dtype), random(90, 4, dtype=dtype, seed=1)
    factors = ln.linalg.cho_factor(ours(a), lower=lower, tile=32)
    for right in (b, b[:, 0]):
        x = ln.linalg.cho_solve(factors, ours(right, 20), tile=32)
        assert isinstance(x, ln.Array)
        np.testing.assert_allclose(a @ np.asarray(x), right, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("dtype", ["f8", "c16"])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("trans", ["N", "T", "C"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_triangles(dtype, lower, trans, side):
    a = random(75, 75, dtype=dtype) + 40 * np.eye(75)
    triangle = np.tril(a) if lower else np.triu(a)
    turned = {"N": triangle, "T": triangle.T, "C": triangle.conj().T}[trans]
    b = random(75, 6, dtype=dtype, seed=2)
    b = b if side == "left" else b.T
    x = ln.linalg.solve_triangular(ours(a), ours(b), lower=lower, trans=trans, side=side, tile=32)
    found = np.asarray(x)
    np.testing.assert_allclose(turned @ found if side == "left" else found @ turned, b, atol=1e-10)


def test_triangles_that_cannot_be_solved():
    a = np.tril(random(80, 80)) / 20
    a[50, 50] = 0
    with pytest.raises(ln.LinAlgError, match="its leading minor of order 51 is zero"):
        ln.linalg.solve_triangular(ours(a), np.ones(80), lower=True, tile=32)
    with pytest.raises(ln.LinAlgError, match="the triangle is 80×80 and b has 70 rows"):
        ln.linalg.solve_triangular(ours(a), np.ones(70), lower=True, tile=32)
    x = ln.linalg.solve_triangular(ours(a), np.ones(80), lower=True, unit_diagonal=True, tile=32)
    unit = np.tril(a, -1) + np.eye(80)
    np.testing.assert_allclose(unit @ np.asarray(x), np.ones(80), rtol=1e-6)


@given(st.integers(20, 150), st.integers(20, 150), st.sampled_from([16, 33, 64]), st.sampled_from(DTYPES))
def test_orthogonal_factors(m, n, tile, dtype):
    a = random(m, n, dtype=dtype)
    q, r = ln.linalg.qr(ours(a, 41), tile=tile)
    assert isinstance(q.node, Stored)
    assert isinstance(r.node, Stored)
    one, other = np.asarray(q), np.asarray(r)
    k, close = min(m, n), 2000 * np.finfo(dtype).eps
    assert one.shape == (m, k)
    assert other.shape == (k, n)
    np.testing.assert_allclose(one @ other, a, atol=close)
    np.testing.assert_allclose(one.conj().T @ one, np.eye(k), atol=close)
    assert not np.tril(other, -1).any()
    alone = ln.linalg.qr(ours(a, 41), mode="r", tile=tile)
    np.testing.assert_allclose(np.abs(np.asarray(alone)), np.abs(other), atol=100 * close)


def test_tall_matrices_are_factored_by_a_tree():
    a = random(4000, 12)
    q, r = ln.linalg.qr(ours(a, (500, 5)))
    assert q.chunks[1] == (12,)
    np.testing.assert_allclose(np.asarray(q @ r), a, atol=1e-12)
    np.testing.assert_allclose(np.asarray(q.T @ q), np.eye(12), atol=1e-12)


def test_a_good_cut_is_kept():
    a = definite(1030)
    made = ln.linalg.cholesky(ours(a, 150))
    assert made.chunks == ((150,) * 6 + (130,),) * 2
    np.testing.assert_allclose(np.asarray(made), np.linalg.cholesky(a), atol=1e-10)


def test_results_are_arrays_like_others():
    a = definite(100)
    made = ln.linalg.cholesky(ours(a), tile=32)
    np.testing.assert_allclose(np.asarray(made @ made.T), a, atol=1e-10)
    np.testing.assert_allclose(np.asarray(made[:, 40:].sum(axis=0)), np.linalg.cholesky(a)[:, 40:].sum(0))


def test_numbers_that_are_no_floats():
    made = ln.linalg.cholesky(ours(np.eye(70, dtype=int) * 9), tile=32)
    assert made.dtype == np.float64
    assert np.array_equal(np.asarray(made), np.eye(70) * 3)


def test_small_matrices_and_stacks_come_here():
    a = definite(20)
    np.testing.assert_allclose(np.asarray(ln.linalg.cholesky(ours(a))), np.linalg.cholesky(a))
    stack = np.stack([a, 2 * a])
    np.testing.assert_allclose(np.asarray(ln.linalg.cholesky(ours(stack, 10))), np.linalg.cholesky(stack))
