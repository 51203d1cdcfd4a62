"""The pseudo-inverse: the four equations that define it, and NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hard_matrices import DTYPES, random
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits
from ways import ENGINE, WAYS
from ways import run as run_in

from linnet.errors import LinAlgError
from linnet.linalg import pinv

pytestmark = pytest.mark.slow  # left to `make test`


@pytest.fixture(autouse=True, scope="module")
def one_blas_thread():
    """LAPACK, the oracle, loses time to its own threads on matrices this small."""
    with threadpool_limits(1, user_api="blas"):
        yield


def check(a, inverse, near):
    assert inverse.shape == (a.shape[1], a.shape[0])
    assert inverse.dtype == a.dtype
    for left, right in (
        (a @ inverse @ a, a),
        (inverse @ a @ inverse, inverse),
        ((a @ inverse).conj().T, a @ inverse),
        ((inverse @ a).conj().T, inverse @ a),
    ):
        assert np.abs(left - right).max(initial=0) <= near * max(1.0, np.abs(right).max(initial=0))


@settings(max_examples=45)
@given(
    st.integers(1, 30), st.integers(1, 9), st.integers(0, 3), st.integers(1, 9), st.sampled_from(DTYPES),
    st.booleans(), st.integers(0, 9), st.sampled_from(WAYS),
)  # fmt: skip
def test_any_shape_and_rank(m, n, missing, tile, dtype, turned, seed, way):
    rng = np.random.default_rng(seed)
    m, n = (n, m) if turned else (m, n)
    rank = max(1, min(m, n) - missing)
    u, v = (np.linalg.qr(random(rng, (size, rank), dtype))[0] for size in (m, n))
    a = (u * np.linspace(3, 1, rank) @ v.conj().T).astype(dtype)
    check(a, run_in(way, "pinv", a, rtol=1e-4, tile=tile), 300 * max(m, n) * np.finfo(dtype).eps)


@pytest.mark.parametrize("shape", [(150_000, 8), (8, 150_000), (1100, 1000)])
def test_large_matrices(shape):
    a = random(np.random.default_rng(1), shape)
    inverse = pinv(a, engine=ENGINE)
    small = inverse @ a if shape[0] >= shape[1] else a @ inverse
    assert np.abs(small - np.eye(min(shape))).max() <= 1e-9


@pytest.mark.parametrize("tile", [None, 2])
def test_stacks_and_tolerances(tile, run):
    a = random(np.random.default_rng(2), (3, 5, 4))
    assert np.allclose(run("pinv", a, tile=tile), np.linalg.pinv(a))
    cuts = np.array([0.0, 0.5, 0.9])
    assert np.allclose(run("pinv", a, rtol=cuts, tile=tile), np.linalg.pinv(a, rcond=cuts))
    assert run("pinv", np.zeros((3, 0)), tile=tile).shape == (0, 3)


def test_what_is_refused():
    with pytest.raises(LinAlgError, match="must be a matrix or a stack of matrices"):
        pinv(np.ones(3))


@settings(max_examples=22)
@given(
    st.integers(1, 20), st.integers(0, 3), st.integers(1, 9), st.sampled_from(DTYPES), st.integers(0, 9),
    st.sampled_from(WAYS),
)  # fmt: skip
def test_hermitian_matrices_of_any_rank(n, missing, tile, dtype, seed, way):
    rng = np.random.default_rng(seed)
    rank = max(1, n - missing)
    u = np.linalg.qr(random(rng, (n, rank), dtype))[0]
    a = (u * np.linspace(3, 1, rank) * rng.choice([-1, 1], rank) @ u.conj().T).astype(dtype)
    inverse = run_in(way, "pinv", np.tril(a), rtol=1e-4, hermitian=True, tile=tile)
    check(a, inverse, 300 * n * np.finfo(dtype).eps)


def test_hermitian_stacks_and_refusals(run):
    a = random(np.random.default_rng(3), (3, 5, 5))
    a = a + a.swapaxes(-1, -2)
    for tile in (None, 2):
        found = run("pinv", a, hermitian=True, tile=tile)
        assert np.allclose(found, np.linalg.pinv(a, hermitian=True))
    with pytest.raises(LinAlgError, match="pinv with hermitian=True takes a square matrix, got 2×3"):
        pinv(np.ones((2, 3)), hermitian=True)
