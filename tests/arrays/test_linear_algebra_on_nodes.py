"""Linear algebra of arrays on an engine with nodes: lazy, and as accurate as on one node."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import linnet as ln
from linnet.arrays.expression.nodes import Source, Stored
from linnet.engines.simulated import Simulated
from linnet.planning.cluster import Cluster

pytestmark = pytest.mark.slow


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


def is_lazy(*arrays):
    """Whether nothing has been computed for these arrays."""
    return all(
        isinstance(each, ln.Array) and not isinstance(each.__node__, Source | Stored) for each in arrays
    )


def unit(dtype, *sizes):
    """The rounding of a dtype, so many times as a computation on arrays of these sizes may be off by."""
    return 100 * max(sizes) * float(np.finfo(dtype).eps)


DTYPES = ["f4", "f8", "c8", "c16"]
EACH = [
    "f8",
    pytest.param("c16", marks=pytest.mark.slow),
    *(pytest.param(dtype, marks=pytest.mark.long) for dtype in ("f4", "c8")),
]


@pytest.mark.parametrize("dtype", EACH)
@pytest.mark.parametrize("n", [70, 100])
def test_cholesky(dtype, n):
    a = definite(n, dtype)
    made = ln.linalg.cholesky(ours(a), tile=32)
    assert is_lazy(made)
    assert (made.shape, made.dtype) == ((n, n), dtype)
    near = unit(dtype, n)
    np.testing.assert_allclose(np.asarray(made), np.linalg.cholesky(a), rtol=near, atol=near)
    upper = ln.linalg.cholesky(ours(a), upper=True, tile=32)
    np.testing.assert_allclose(np.asarray(upper), np.linalg.cholesky(a).conj().T, rtol=near, atol=near)


def test_matrices_without_a_factor():
    a = definite(100)
    a[80, 80] = -1.0
    with pytest.raises(ln.LinAlgError, match="its leading minor of order 81 is not positive"):
        ln.linalg.cholesky(ours(a), tile=32).compute()
    with pytest.raises(ln.LinAlgError, match="Cholesky takes a square matrix; got 100×90"):
        ln.linalg.cholesky(ours(a[:, :90]), tile=32)


@pytest.mark.parametrize("dtype", EACH)
@pytest.mark.parametrize("lower", [True, False])
def test_factors_are_used_again(dtype, lower):
    a, b = definite(90, dtype), random(90, 4, dtype=dtype, seed=1)
    factors = ln.linalg.cho_factor(ours(a), lower=lower, tile=32)
    for right in (b, b[:, 0]):
        x = ln.linalg.cho_solve(factors, ours(right, 20), tile=32)
        assert is_lazy(x)
        np.testing.assert_allclose(a @ np.asarray(x), right, rtol=0, atol=unit(dtype, 90))


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
    np.testing.assert_allclose(turned @ found if side == "left" else found @ turned, b, atol=unit(dtype, 75))


def test_triangles_that_cannot_be_solved():
    a = np.tril(random(80, 80)) / 20
    a[50, 50] = 0
    with pytest.raises(ln.LinAlgError, match="its leading minor of order 51 is zero"):
        ln.linalg.solve_triangular(ours(a), np.ones(80), lower=True, tile=32).compute()
    with pytest.raises(ln.LinAlgError, match="the triangle is 80×80 but b has 70 rows"):
        ln.linalg.solve_triangular(ours(a), np.ones(70), lower=True, tile=32)
    x = ln.linalg.solve_triangular(ours(a), np.ones(80), lower=True, unit_diagonal=True, tile=32)
    triangle = np.tril(a, -1) + np.eye(80)
    np.testing.assert_allclose(triangle @ np.asarray(x), np.ones(80), rtol=1e-10)


@given(st.integers(20, 150), st.integers(20, 150), st.sampled_from([16, 33, 64]), st.sampled_from(DTYPES))
def test_orthogonal_factors(m, n, tile, dtype):
    a = random(m, n, dtype=dtype)
    q, r = ln.linalg.qr(ours(a, 41), tile=tile)
    assert is_lazy(q, r)
    one, other = ln.compute(q, r)
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
    assert is_lazy(q, r)
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


# ---- systems


def close(dtype):
    """What may be lost by a system or a spectrum of matrices of these tests."""
    return 1e5 * float(np.finfo(dtype).eps)


SHAPES = [(100, 100), *(pytest.param(shape, marks=pytest.mark.slow) for shape in ((130, 70), (70, 130)))]
TALL, FLAT = (pytest.param(shape, marks=pytest.mark.slow) for shape in ((3000, 12), (12, 3000)))


@pytest.mark.slow
@given(st.integers(10, 140), st.integers(10, 140), st.sampled_from([16, 33, 64]), st.sampled_from(DTYPES))
def test_elimination(m, n, tile, dtype):
    a = random(m, n, dtype=dtype)
    p, lower, upper = ln.linalg.lu(ours(a, 41), tile=tile)
    assert (lower.shape, upper.shape) == ((m, min(m, n)), (min(m, n), n))
    assert lower.dtype == upper.dtype == dtype
    assert is_lazy(p, lower, upper)
    order, one, other = ln.compute(p, lower, upper)
    np.testing.assert_allclose(one @ other, a[order], atol=unit(dtype, m, n))
    assert np.array_equal(one.diagonal(), np.ones(min(m, n)))
    packed, piv = ln.linalg.lu_factor(ours(a, 41), tile=tile)
    order = np.arange(m)
    for i, j in enumerate(np.asarray(piv)):
        order[[i, j]] = order[[j, i]]
    whole = np.asarray(packed)
    below = np.tril(whole[:, : min(m, n)], -1) + np.eye(m, min(m, n))
    np.testing.assert_allclose(below @ np.triu(whole[: min(m, n)]), a[order], atol=unit(dtype, m, n))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", EACH)
def test_systems(dtype):
    a, b = random(100, 100, dtype=dtype), random(100, 4, dtype=dtype, seed=1)
    factors = ln.linalg.lu_factor(ours(a), tile=32)
    for right in (b, b[:, 0], ours(b, 20)):
        x = ln.linalg.solve(ours(a), right, tile=32)
        assert is_lazy(x)
        assert x.dtype == dtype
        np.testing.assert_allclose(a @ np.asarray(x), np.asarray(right), atol=10 * close(dtype))
        for trans, turned in ((0, a), ("T", a.T), ("C", a.conj().T)):
            x = ln.linalg.lu_solve(factors, right, trans=trans, tile=32)
            np.testing.assert_allclose(turned @ np.asarray(x), np.asarray(right), atol=10 * close(dtype))
    found = np.asarray(ln.linalg.inv(ours(a), tile=32) @ a)
    np.testing.assert_allclose(found, np.eye(100), atol=10 * close(dtype))


def test_systems_that_cannot_be_solved():
    a = random(100, 100)
    with pytest.raises(ln.LinAlgError, match=r"a is 100×100 but b has the shape \(90,\); b needs 100 rows"):
        ln.linalg.solve(ours(a), np.ones(90), tile=32)
    with pytest.raises(ln.LinAlgError, match="inv takes a square matrix, got 100×90"):
        ln.linalg.inv(ours(a)[:, :90], tile=32)
    with pytest.raises(ln.LinAlgError, match="det takes a square matrix, got 90×100"):
        ln.linalg.det(ours(a)[:90], tile=32)
    a[:, 50] = a[:, 51]
    with pytest.warns(ln.linalg.ConditionWarning, match="singular to working precision"):
        ln.linalg.solve(ours(a), np.ones(100), tile=32).compute()
    a[:, 50] = 0
    with pytest.raises(ln.LinAlgError, match=r"minor of order 51 is zero \(row 18 of tile \(1, 1\)\)"):
        ln.linalg.inv(ours(a), tile=32).compute()
    assert float(ln.linalg.det(ours(a), tile=32)) == 0
    assert float(ln.linalg.slogdet(ours(a), tile=32).logabsdet) == -np.inf


@pytest.mark.parametrize("dtype", EACH)
def test_determinants(dtype):
    a = random(90, 90, dtype=dtype) / 8
    found, expected = ln.linalg.slogdet(ours(a), tile=32), np.linalg.slogdet(a)
    near = 10 * unit(dtype, 90)
    np.testing.assert_allclose(np.asarray(found.sign), expected.sign, rtol=near)
    np.testing.assert_allclose(np.asarray(found.logabsdet), expected.logabsdet, rtol=near)
    np.testing.assert_allclose(np.asarray(ln.linalg.det(ours(a), tile=32)), np.linalg.det(a), rtol=near)


@pytest.mark.parametrize("power", [0, 1, 2, 5, -2])
def test_powers(power):
    a = random(70, 70) / 8
    found = np.asarray(ln.linalg.matrix_power(ours(a), power, tile=32))
    np.testing.assert_allclose(found, np.linalg.matrix_power(a, power), rtol=1e-9, atol=1e-9)
    whole = np.random.default_rng(0).integers(-2, 3, (70, 70))
    exact = ln.linalg.matrix_power(ours(whole), abs(power), tile=32)
    assert exact.dtype == whole.dtype
    assert np.array_equal(np.asarray(exact), np.linalg.matrix_power(whole, abs(power)))


@pytest.mark.slow
@pytest.mark.sample(6)
@pytest.mark.parametrize("dtype", EACH)
@pytest.mark.parametrize("shape", [*SHAPES, TALL])
@pytest.mark.parametrize("full", [True, False])
def test_least_squares(dtype, shape, full):
    a, b = random(*shape, dtype=dtype), random(shape[0], 3, dtype=dtype, seed=1)
    if not full:
        a[:, 5] = a[:, 4]
        a[6] = a[7]
    for right in (b, b[:, 0]):
        found = ln.linalg.lstsq(ours(a, 41), ours(right, 41), tile=32)
        expected = np.linalg.lstsq(a, right, rcond=None)
        assert is_lazy(found.x, found.rank, found.singular_values)
        assert int(found.rank) == expected[2]
        np.testing.assert_allclose(np.asarray(found.x), expected[0], atol=close(dtype))
        np.testing.assert_allclose(np.asarray(found.residuals), expected[1], rtol=close(dtype))
        np.testing.assert_allclose(np.asarray(found.singular_values), expected[3], atol=close(dtype))


# ---- spectra


@pytest.mark.slow
@pytest.mark.sample(5)
@pytest.mark.parametrize("dtype", EACH)
@pytest.mark.parametrize("shape", [*SHAPES, TALL, FLAT])
def test_singular_values(dtype, shape):
    a = random(*shape, dtype=dtype)
    k = min(shape)
    expected = np.linalg.svd(a, compute_uv=False)
    for full in [False] if max(shape) > 1000 else [False, True]:
        u, s, vh = ln.linalg.svd(ours(a, 41), full_matrices=full, tile=32)
        assert is_lazy(u, s, vh)
        assert u.shape == (shape[0], shape[0] if full else k)
        assert vh.shape == (shape[1] if full else k, shape[1])
        np.testing.assert_allclose(np.asarray((u[:, :k] * s) @ vh[:k]), a, atol=close(dtype))
        for vectors in (np.asarray(u), np.asarray(vh).conj().T):
            gram = vectors.conj().T @ vectors
            np.testing.assert_allclose(gram, np.eye(len(gram)), atol=close(dtype))
        np.testing.assert_allclose(np.asarray(s), expected, atol=close(dtype))
    np.testing.assert_allclose(
        np.asarray(ln.linalg.svdvals(ours(a, 41), tile=32)), expected, atol=close(dtype)
    )
    np.testing.assert_allclose(
        float(ln.linalg.cond(ours(a, 41), tile=32)), np.linalg.cond(a), rtol=close(dtype)
    )
    a[3] = a[4]
    a[:, 3] = a[:, 4]
    assert int(ln.linalg.matrix_rank(ours(a, 41), tile=32)) == np.linalg.matrix_rank(a)
    inverse = np.asarray(ln.linalg.pinv(ours(a, 41), tile=32))
    np.testing.assert_allclose(inverse, np.linalg.pinv(a), atol=close(dtype))


@pytest.mark.parametrize("dtype", EACH)
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_eigenvalues(dtype, uplo):
    a = random(100, 100, dtype=dtype)
    half = np.tril(a, -1) if uplo == "L" else np.triu(a, 1)
    whole = half + half.conj().T + np.diag(a.diagonal().real)
    a[half == 0] = np.nan  # the other triangle is not read
    np.fill_diagonal(a, whole.diagonal())
    w, z = ln.linalg.eigh(ours(a), uplo, tile=32)
    assert is_lazy(w, z)
    found, vectors = ln.compute(w, z)
    np.testing.assert_allclose(found, np.linalg.eigvalsh(whole), atol=close(dtype))
    np.testing.assert_allclose(whole @ vectors, vectors * found, atol=close(dtype))
    np.testing.assert_allclose(
        np.asarray(ln.linalg.eigvalsh(ours(a), uplo, tile=32)), found, atol=close(dtype)
    )
    if uplo == "L":
        inverse = np.asarray(ln.linalg.pinv(ours(a), hermitian=True, tile=32))
        np.testing.assert_allclose(inverse @ whole, np.eye(100), atol=10 * close(dtype))
        assert int(ln.linalg.matrix_rank(ours(a), hermitian=True, tile=32)) == 100
    with pytest.raises(ln.LinAlgError, match="eigh takes a square matrix, got 100×90"):
        ln.linalg.eigh(ours(a)[:, :90], tile=32)
