"""Hermitian eigenvalues and eigenvectors by tiles, against LAPACK: shapes, tiles, dtypes, hard matrices."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from ways import ENGINE, WAYS
from ways import run as run_in

from linnet.algorithms.eigh import hermitian_band, values_only, with_vectors
from linnet.engines import Threads
from linnet.errors import LinAlgError
from linnet.linalg import eigh, eigvalsh
from linnet.tiles import TiledArray

pytestmark = pytest.mark.slow  # left to `make test`

DTYPES = ["f4", "f8", "c8", "c16"]


def hermitian(seed, n, dtype):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, n))
    if dtype.startswith("c"):
        x = x + 1j * rng.standard_normal((n, n))
    return (x + x.conj().T).astype(dtype)


def orthogonal(seed, n):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]


def from_values(values, seed=0):
    q = orthogonal(seed, len(values))
    a = (q * values) @ q.T
    return (a + a.T) / 2


def errors(a, w, z):
    """Residual and loss of orthogonality, in units of rounding."""
    eps = np.finfo(a.dtype).eps
    scale = max(float(np.abs(w).max(initial=0)), np.finfo(a.dtype).tiny)
    residual = np.linalg.norm((a / scale) @ z - z * (w / scale), 1) / eps
    return residual, np.linalg.norm(z.conj().T @ z - np.eye(len(w)), 1) / eps


def check(run, a, tile, lower=True):
    half = np.tril(a) if lower else np.triu(a)
    before = half.copy()
    uplo = "L" if lower else "U"
    w, z = run("eigh", half, UPLO=uplo, tile=tile)
    assert np.array_equal(half, before)
    assert (w.dtype, z.dtype) == (a.real.dtype, a.dtype)
    assert (np.diff(w) >= 0).all()
    # LAPACK in the precision of the matrix: NumPy takes float32 and complex64 through double.
    expected, vectors = scipy.linalg.eigh(a, driver="evd")
    ours, theirs = errors(a, w, z), errors(a, expected, vectors)
    floor = 2 * len(w) ** 0.5 + 4
    assert ours[0] <= 10 * max(theirs[0], floor)
    assert ours[1] <= 10 * max(theirs[1], floor)
    eps, scale = np.finfo(a.dtype).eps, np.abs(expected).max(initial=0)
    assert np.abs(w - expected).max(initial=0) <= 10 * floor * eps * scale
    values = run("eigvalsh", half, UPLO=uplo, tile=tile)
    assert values.dtype == a.real.dtype
    assert np.abs(values - expected).max(initial=0) <= 10 * floor * eps * scale


@pytest.mark.sample(24)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("n", "tile"), [(1, 1), (2, 1), (3, 8), (7, 4), (12, 4), (23, 5), (64, 16), (70, 16), (65, 32)]
)
def test_against_lapack(dtype, n, tile, run):
    check(run, hermitian(n, n, dtype), tile)
    check(run, hermitian(n, n, dtype), tile, lower=False)


@settings(max_examples=15)
@given(
    st.integers(1, 24), st.integers(1, 12), st.sampled_from(DTYPES), st.booleans(), st.integers(0, 9),
    st.sampled_from(WAYS),
)  # fmt: skip
def test_any_size_any_tile(n, tile, dtype, lower, seed, way):
    check(functools.partial(run_in, way), hermitian(seed, n, dtype), tile, lower)


HARD = {
    "graded": from_values(10.0 ** -np.linspace(0, 15, 60)),
    "clustered": from_values(np.r_[np.ones(30), 1 + 1e-14 * np.arange(30)]),
    "rank one": from_values(np.r_[1.0, np.zeros(59)]),
    "hilbert": 1.0 / (np.arange(60)[:, None] + np.arange(60) + 1),
    "diagonal": np.diag(np.arange(60.0)),
    "identity": np.eye(60),
    "zero": np.zeros((60, 60)),
    "wilkinson": np.diag(np.abs(np.arange(60.0) - 30)) + np.eye(60, k=1) + np.eye(60, k=-1),
    "graded rows": np.diag(10.0 ** -np.arange(0.0, 150, 2.5)) @ hermitian(0, 60, "f8") @ np.diag(10.0 ** -np.arange(0.0, 150, 2.5)),
}  # fmt: skip


@pytest.mark.parametrize("name", HARD)
def test_hard_matrices(name, run):
    check(run, HARD[name], 32)


@pytest.mark.parametrize("name", ["graded", "hilbert"])
@pytest.mark.parametrize("factor", [1e-300, 1e-150, 1e150])
def test_matrices_of_any_size_of_number(name, factor, run):
    check(run, HARD[name] * factor, 32)


@pytest.mark.long
@pytest.mark.parametrize("dtype", DTYPES)
def test_larger_matrices(dtype, run):
    check(run, hermitian(0, 700, dtype), 128)


def test_empty_matrices_and_integers():
    w, z = eigh(np.zeros((0, 0), "c8"))
    assert (w.shape, w.dtype, z.shape, z.dtype) == ((0,), np.float32, (0, 0), np.complex64)
    assert eigvalsh(np.zeros((0, 0))).shape == (0,)
    assert np.allclose(eigvalsh(np.array([[2, 1], [1, 2]]), tile=1), [1, 3])


def test_the_same_bits_on_any_number_of_workers():
    a = hermitian(0, 60, "f8")
    first = eigh(a, tile=8, engine=Threads(1))
    for workers in (2, 3):
        again = eigh(a, tile=8, engine=Threads(workers))
        assert np.array_equal(again.eigenvalues, first.eigenvalues)
        assert np.array_equal(again.eigenvectors, first.eigenvectors)


def test_programs_are_proved():
    assert hermitian_band.proven
    assert with_vectors().proven
    assert values_only().proven


def test_what_is_refused(run):
    with pytest.raises(LinAlgError, match="eigh takes a square matrix, got 2×3"):
        run("eigh", np.ones((2, 3)))
    with pytest.raises(LinAlgError, match="a must be a matrix or a stack of matrices"):
        run("eigvalsh", np.ones(3))
    with pytest.raises(LinAlgError, match=r"not finite"):
        run("eigh", np.full((6, 6), np.nan), tile=2)


def test_tiles_of_any_form_are_cut_anew():
    a = hermitian(0, 12, "f8")
    w, z = eigh(TiledArray.from_numpy(a, (2, 3)), engine=ENGINE)
    assert np.allclose(a @ z, z * w)
