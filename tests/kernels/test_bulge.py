"""The bulge chase and the blocks of its reflectors, against products of the reflectors one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from linnet.errors import LinAlgError
from linnet.kernels import compiled
from linnet.kernels.linalg import small_spectra
from linnet.kernels.linalg.bulge_chase import Band, chase
from linnet.kernels.linalg.chase_reflectors import apply_sweeps, grouped

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


@pytest.fixture(params=[pytest.param("compiled", marks=pytest.mark.needs("cc")), "python"])
def core(request, monkeypatch):
    """Each test runs twice: with the compiled core, and as if there were none."""
    if request.param == "python":
        monkeypatch.setattr(compiled, "library", lambda: None)
    else:
        assert compiled.library(), "a compiler is here, but the compiled core was not built"


@pytest.mark.usefixtures("core")
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
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


@pytest.mark.usefixtures("core")
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


@pytest.mark.needs("cc")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("hermitian", [False, True])
def test_the_same_bits_on_any_number_of_threads(monkeypatch, dtype, hermitian):
    found = []
    for threads in (1, 2, 5):
        monkeypatch.setattr(compiled, "allowed_threads", lambda threads=threads: threads)
        _, band = random_band(0, 150, 7, dtype, hermitian)
        done = chase(band, hermitian=hermitian)
        found.append([done.diagonal, done.beside, done.left.v, done.left.tau, done.right.v, done.right.tau])
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            assert one.tobytes() == other.tobytes()


@pytest.mark.usefixtures("core")
@pytest.mark.parametrize("dtype", DTYPES)
def test_values_without_vectors(dtype):
    n, width = 41, 6
    blocks = [slice(at, min(at + width, n)) for at in range(0, n, width)]
    a, _ = random_band(1, n, width, dtype, True)
    below = [a[own.start : min(own.stop + width, n), own] for own in blocks]
    # A column block is a whole diagonal block on the upper triangle that the band leaves below it.
    allowed = 100 * np.finfo(dtype).eps
    assert np.allclose(small_spectra.hermitian_band_values(below), np.linalg.eigvalsh(a), atol=allowed)
    a, _ = random_band(1, n, width, dtype, False)
    beside = [a[own, own.stop : own.stop + width] for own in blocks]
    values = small_spectra.upper_band_values([a[own, own] for own in blocks], beside)
    assert np.allclose(values, np.linalg.svd(a)[1], atol=allowed)


@pytest.mark.needs("cc")
@pytest.mark.parametrize("vectors", [1, 11, 12, 24, 25, 60])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_compiled_reflectors_as_blas_applies_them(monkeypatch, vectors, dtype):
    _, band = random_band(2, 90, 8, dtype, False)
    kept = chase(band, hermitian=False).left
    s = np.random.default_rng(3).standard_normal((vectors, 90)).astype(dtype)
    (v,), (tau,) = grouped(kept.v, kept.tau, 90)
    ours = apply_sweeps(v, tau, s, 0)
    monkeypatch.setattr(compiled, "library", lambda: None)
    allowed = 200 * np.finfo(dtype).eps
    assert np.abs(ours - apply_sweeps(v, tau, s, 0)).max() <= allowed, "sent to where there is no core"
    (v,), (weights,) = grouped(kept.v, kept.tau, 90)
    assert v.ndim == 4
    assert np.abs(ours - apply_sweeps(v, weights, s, 0)).max() <= allowed
