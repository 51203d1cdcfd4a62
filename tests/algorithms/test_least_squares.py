"""Least squares and the pseudo-inverse against NumPy: all shapes, full and deficient rank, four dtypes."""

from __future__ import annotations

import numpy as np
import pytest
from hard_matrices import DTYPES, random
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits
from ways import ENGINE, WAYS
from ways import run as run_in

from linnet.algorithms.tsqr import tsqr_project
from linnet.errors import LinAlgError
from linnet.events import Events, Metrics
from linnet.linalg import lstsq
from linnet.tiles import TiledArray

pytestmark = pytest.mark.slow  # left to `make test`


@pytest.fixture(autouse=True, scope="module")
def one_blas_thread():
    """LAPACK, the oracle, loses time to its own threads on matrices this small."""
    with threadpool_limits(1, user_api="blas"):
        yield


def of_rank(rng, m, n, rank, dtype):
    """A matrix of that rank whose other singular values are all 1 to 3."""
    u = np.linalg.qr(random(rng, (m, rank), dtype))[0]
    v = np.linalg.qr(random(rng, (n, rank), dtype))[0]
    return (u * np.linspace(3, 1, rank) @ v.conj().T).astype(dtype)


def agree(found, expected, dtype, size):
    near = 500 * size * np.finfo(dtype).eps
    assert found.rank == expected[2]
    assert found.x.shape == expected[0].shape
    assert found.x.dtype == dtype
    assert np.allclose(found.x, expected[0], rtol=near, atol=near)
    assert found.residuals.shape == expected[1].shape
    assert np.allclose(found.residuals, expected[1], rtol=near, atol=near)
    assert np.allclose(found.singular_values, expected[3], rtol=near, atol=near)


@settings(max_examples=45)
@given(
    st.integers(1, 40),
    st.integers(1, 12),
    st.integers(0, 3),
    st.integers(1, 9),
    st.sampled_from(DTYPES),
    st.booleans(),
    st.integers(0, 9),
    st.sampled_from(WAYS),
)
def test_any_shape_and_rank(m, n, missing, tile, dtype, turned, seed, way):
    rng = np.random.default_rng(seed)
    m, n = (n, m) if turned else (m, n)
    rank = max(1, min(m, n) - missing)
    a = of_rank(rng, m, n, rank, dtype)
    for b in (random(rng, (m, 3), dtype), random(rng, m, dtype)):
        expected = np.linalg.lstsq(a, b, rcond=1e-4)
        agree(run_in(way, "lstsq", a, b, rcond=1e-4, tile=tile), expected, dtype, max(m, n))


@pytest.mark.parametrize(
    ("shape", "tile", "kernel"),
    [
        ((120_000, 9), None, "project_leaf"),
        ((9, 120_000), None, "tall_qr"),
        ((500, 300), 64, "panel_qr"),
        ((300, 500), 64, "slab_qr"),
    ],
)
@pytest.mark.parametrize("deficient", [False, True])
def test_large_matrices_are_tiled(shape, tile, kernel, deficient):
    rng = np.random.default_rng(0)
    metrics, events = Metrics(), Events()
    metrics.listen(events)
    a, b = random(rng, shape), random(rng, (shape[0], 2))
    if deficient:
        a[:, -1] = a[:, 0]
        a[-1] = a[0]
    found = lstsq(a, b, tile=tile, engine=ENGINE, events=events)
    assert kernel in metrics.kernels
    assert found.rank == min(shape) - (deficient and 1)
    # What is left is orthogonal to A, and the solution lies in the rows of A.
    assert np.abs(a.T @ (b - a @ found.x)).max() <= 1e-9 * np.abs(b).sum()
    if shape[0] < shape[1] or deficient:
        inside = np.linalg.lstsq(a.T, found.x, rcond=None)[0]
        assert np.allclose(a.T @ inside, found.x, atol=1e-10)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
@pytest.mark.parametrize(("m", "n"), [(60, 5), (20, 15), (15, 20), (5, 60)])
def test_scaled_matrices(scale, m, n, run):
    rng = np.random.default_rng(m)
    a, b = random(rng, (m, n)), random(rng, m)
    found = run("lstsq", a * scale, b, tile=7)
    assert found.rank == min(m, n)
    assert np.allclose(found.x * scale, np.linalg.lstsq(a, b)[0])


def test_the_tolerance_decides_the_rank(run):
    a = np.diag([1.0, 1e-3, 1e-18])
    b = np.ones(3)
    for tile in (None, 2):
        assert run("lstsq", a, b, tile=tile).rank == 2
        assert run("lstsq", a, b, rcond=1e-2, tile=tile).rank == 1
        assert run("lstsq", a, b, rcond=0.0, tile=tile).rank == 2
        assert np.allclose(run("lstsq", a, b, rcond=1e-2, tile=tile).x, [1, 0, 0])


def test_zero_empty_integer_and_tiled(run):
    assert run("lstsq", np.zeros((30, 2)), np.ones(30), tile=4).rank == 0
    assert run("lstsq", np.zeros((0, 2)), np.zeros(0)).x.tolist() == [0, 0]
    assert run("lstsq", np.eye(3, dtype=int), np.arange(3), tile=2).x.dtype == np.float64
    a = random(np.random.default_rng(0), (9, 4))
    tiled, b = TiledArray.from_numpy(a, 3), np.arange(9.0)
    assert np.allclose(lstsq(tiled, b, engine=ENGINE).x, np.linalg.lstsq(a, b)[0])
    assert np.allclose(
        lstsq(TiledArray.from_numpy(a.T, 3), b[:4], engine=ENGINE).x, np.linalg.lstsq(a.T, b[:4])[0]
    )


def test_what_is_refused():
    with pytest.raises(LinAlgError, match=r"least squares take a matrix, got an array of shape \(3,\)"):
        lstsq(np.ones(3), np.ones(3))
    with pytest.raises(
        LinAlgError, match=r"b must be a vector or a matrix with as many rows as a, 3; got .*\(2,\)"
    ):
        lstsq(np.ones((3, 2)), np.ones(2))


def test_the_program_is_checked_when_it_runs():
    assert not tsqr_project.proven  # 16**level
    tsqr_project.bind(N=20, K=2).verify()
