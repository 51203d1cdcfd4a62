"""The bulge chase and the blocks of its reflectors, against products of the reflectors one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linnet.errors import LinAlgError
from linnet.kernels.bulge import Band, chase
from linnet.kernels.diamonds import apply_sweeps, grouped

DTYPES = ["f4", "f8", "c8", "c16"]


def random_band(seed, n, width, dtype, hermitian):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((n, n))
    if dtype.startswith("c"):
        a = a + 1j * rng.standard_normal((n, n))
    a = np.triu(np.tril(a, width)).astype(dtype)
    if hermitian:
        np.fill_diagonal(a, a.diagonal().real)
    band = Band(n, width, np.dtype(dtype))
    for offset in range(min(width + 1, n)):
        band.block((0, offset), (1, 1), n - offset, 1)[:, 0, 0] = np.diag(a, offset)
    if hermitian:
        band.mirror()
        a = a + np.triu(a, 1).conj().T
    return a, band


def product(sweeps):
    """The product of all reflectors, one after the other."""
    count, steps, width = sweeps.v.shape
    q = np.eye(sweeps.size + width, dtype=sweeps.v.dtype)
    for sweep in reversed(range(count)):
        for step in reversed(range(steps)):
            at = sweeps.first + sweep + step * width
            v = sweeps.v[sweep, step]
            rows = q[at : at + width]
            if at < sweeps.size:
                rows -= sweeps.tau[sweep, step] * np.outer(v, v.conj() @ rows)
    return q[: sweeps.size, : sweeps.size]


def in_blocks(sweeps, size):
    q = np.eye(sweeps.size, dtype=sweeps.v.dtype, order="F")
    groups = list(zip(*grouped(sweeps.v, sweeps.tau, size), strict=True))
    for at, (v, weights) in reversed(list(enumerate(groups))):
        q = apply_sweeps(v, weights, q, sweeps.first + at * size)
    return q.T


@settings(max_examples=60)
@given(
    st.integers(1, 30), st.integers(1, 9), st.sampled_from(DTYPES), st.booleans(), st.integers(1, 8),
    st.integers(0, 9),
)  # fmt: skip
def test_chase(n, width, dtype, hermitian, size, seed):
    a, band = random_band(seed, n, width, dtype, hermitian)
    done = chase(band, hermitian=hermitian)
    small = np.diag(done.diagonal) + np.diag(done.beside, 1)
    if hermitian:
        small = small + np.diag(done.beside, -1)
    left, right = product(done.left), product(done.right)
    allowed = 30 * n**0.5 * np.finfo(dtype).eps
    assert np.abs(left.conj().T @ left - np.eye(n)).max() <= allowed
    assert np.abs(left @ small @ right.conj().T - a).max() <= allowed * max(1, np.abs(a).max())
    assert np.abs(in_blocks(done.left, size) - left).max() <= allowed
    assert np.abs(in_blocks(done.right, size) - right).max() <= allowed


@pytest.mark.parametrize("factor", [1e-300, 1e-160, 1e160, 1e300])
def test_numbers_of_any_size(factor):
    a, band = random_band(0, 20, 4, "f8", False)
    band.flat *= factor
    done = chase(band, hermitian=False)
    small = (np.diag(done.diagonal) + np.diag(done.beside, 1)) / factor
    assert np.allclose(product(done.left) @ small @ product(done.right).T, a)


def test_as_lapack_stores_it():
    a, band = random_band(0, 5, 2, "f8", False)
    stored = band.stored(0)
    for i in range(5):
        for j in range(i, min(i + 3, 5)):
            assert stored[2 + i - j, j] == a[i, j]


def test_what_is_not_finite_is_refused():
    _, band = random_band(0, 5, 2, "f8", False)
    band.flat[band.origin] = np.nan
    with pytest.raises(LinAlgError, match="not finite"):
        chase(band, hermitian=False)
