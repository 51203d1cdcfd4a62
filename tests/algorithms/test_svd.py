"""Singular values and vectors by tiles, against LAPACK: shapes, tiles, dtypes, hard matrices."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from ways import ENGINE, WAYS
from ways import run as run_in

from linnet.algorithms.svd import svd_band, values_only, with_vectors
from linnet.engines import Threads
from linnet.errors import LinAlgError
from linnet.linalg import svd, svdvals
from linnet.tiles import TiledArray

pytestmark = pytest.mark.slow  # left to `make test`

DTYPES = ["f4", "f8", "c8", "c16"]
SHAPES = [
    (1, 1, 1), (1, 5, 2), (5, 1, 2), (3, 3, 8), (7, 7, 4), (4, 9, 4), (9, 4, 4), (13, 10, 3), (40, 33, 8),
    (33, 40, 16), (64, 64, 16), (70, 16, 16), (65, 65, 32),
]  # fmt: skip


def random(seed, m, n, dtype):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((m, n))
    return (x + 1j * rng.standard_normal((m, n)) if dtype.startswith("c") else x).astype(dtype)


def from_values(values, m, seed=0):
    rng = np.random.default_rng(seed)
    n = len(values)
    u, v = np.linalg.qr(rng.standard_normal((m, n)))[0], np.linalg.qr(rng.standard_normal((n, n)))[0]
    return (u * values) @ v.T


def errors(a, u, s, vh):
    """Residual and losses of orthogonality, in units of rounding."""
    eps = np.finfo(a.dtype).eps
    scale = max(float(s.max(initial=0)), np.finfo(a.dtype).tiny)
    k = len(s)
    residual = np.linalg.norm((u[:, :k] * (s / scale)) @ vh[:k] - a / scale, 1) / eps
    left = np.linalg.norm(u.conj().T @ u - np.eye(u.shape[1]), 1) / eps
    right = np.linalg.norm(vh @ vh.conj().T - np.eye(vh.shape[0]), 1) / eps
    return residual, left, right


def check(run, a, tile, full=False):
    before = a.copy()
    u, s, vh = run("svd", a, tile=tile, full_matrices=full)
    assert np.array_equal(a, before)
    # LAPACK in the precision of the matrix: NumPy takes float32 and complex64 through double.
    expected = scipy.linalg.svd(a, full_matrices=full)
    for ours, theirs in zip((u, s, vh), expected, strict=True):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
    assert (np.diff(s) <= 0).all()
    assert (s >= 0).all()
    floor = 2 * max(a.shape) ** 0.5 + 4
    for ours, theirs in zip(errors(a, u, s, vh), errors(a, *expected), strict=True):
        assert ours <= 10 * max(theirs, floor)
    allowed = 10 * floor * np.finfo(a.dtype).eps * expected[1].max(initial=0)
    assert np.abs(s - expected[1]).max(initial=0) <= allowed
    values = run("svdvals", a, tile=tile)
    assert values.dtype == s.dtype
    assert np.abs(values - expected[1]).max(initial=0) <= allowed


@pytest.mark.sample(26)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "n", "tile"), SHAPES)
def test_against_lapack(dtype, m, n, tile, run):
    a = random(m * n, m, n, dtype)
    check(run, a, tile)
    check(run, a, tile, full=True)


@settings(max_examples=15)
@given(
    st.integers(1, 20), st.integers(1, 20), st.integers(1, 12), st.sampled_from(DTYPES), st.booleans(),
    st.integers(0, 9), st.sampled_from(WAYS),
)  # fmt: skip
def test_any_shape_any_tile(m, n, tile, dtype, full, seed, way):
    check(functools.partial(run_in, way), random(seed, m, n, dtype), tile, full)


HARD = {
    "graded": from_values(10.0 ** -np.linspace(0, 15, 60), 60),
    "clustered": from_values(np.r_[np.ones(30), 1 + 1e-14 * np.arange(30)], 60),
    "rank one": from_values(np.r_[1.0, np.zeros(39)], 60),
    "hilbert": 1.0 / (np.arange(60)[:, None] + np.arange(50) + 1),
    "diagonal": np.diag(np.arange(60.0)),
    "identity": np.eye(60, 50),
    "orthogonal": from_values(np.ones(60), 60),
    "zero": np.zeros((60, 60)),
    "one column": np.eye(60, 60)[:, [7] * 60],
    "graded rows": np.diag(10.0 ** -np.arange(0.0, 150, 2.5)) @ random(0, 60, 60, "f8"),
    "graded columns": random(0, 60, 60, "f8") @ np.diag(10.0 ** np.arange(-150.0, 0, 2.5)),
}


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", HARD)
def test_hard_matrices(name, run):
    check(run, HARD[name], 32)


@pytest.mark.parametrize("name", ["graded", "hilbert"])
@pytest.mark.parametrize("factor", [1e-300, 1e-150, 1e150])
def test_matrices_of_any_size_of_number(name, factor, run):
    check(run, HARD[name] * factor, 32)


@pytest.mark.long
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "n"), [(600, 600), (900, 300), (300, 500)])
def test_larger_matrices(dtype, m, n, run):
    check(run, random(0, m, n, dtype), 128)


@pytest.mark.parametrize("shape", [(0, 0), (3, 0), (0, 4)])
@pytest.mark.parametrize("full", [False, True])
def test_empty_matrices(shape, full, run):
    a = np.zeros(shape, "c8")
    for ours, theirs in zip(
        run("svd", a, full_matrices=full), np.linalg.svd(a, full_matrices=full), strict=True
    ):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        assert np.allclose(ours, theirs)
    assert run("svdvals", a).shape == (0,)


def test_the_same_bits_on_any_number_of_workers():
    a = random(0, 60, 50, "f8")
    first = svd(a, False, tile=8, engine=Threads(1))
    for workers in (2, 3):
        for ours, theirs in zip(svd(a, False, tile=8, engine=Threads(workers)), first, strict=True):
            assert np.array_equal(ours, theirs)


def test_programs_are_proved():
    assert svd_band.proven
    assert with_vectors().proven
    assert values_only().proven


def test_what_is_refused(run):
    with pytest.raises(LinAlgError, match="a must be a matrix or a stack of matrices"):
        run("svd", np.ones(3))
    with pytest.raises(LinAlgError, match=r"not finite"):
        run("svd", np.full((6, 6), np.nan), tile=2)


def test_tiles_of_any_form_are_cut_anew():
    a = random(0, 9, 9, "f8")
    expected = np.linalg.svd(a, compute_uv=False)
    assert np.allclose(svdvals(TiledArray.from_numpy(a, (2, 3)), engine=ENGINE), expected)
    uneven = TiledArray.from_tiles(
        {
            (i, j): a[s:t, u:v].copy()
            for i, (s, t) in enumerate([(0, 2), (2, 5), (5, 9)])
            for j, (u, v) in enumerate([(0, 2), (2, 5), (5, 9)])
        }
    )
    assert np.allclose(svdvals(uneven, engine=ENGINE), expected)
