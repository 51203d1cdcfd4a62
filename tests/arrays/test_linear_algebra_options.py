"""Square factors of tall matrices, generalised eigenproblems, and the options of SciPy's functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import linnet as ln

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(0)
N = 37
DTYPES = ["f4", "f8", "c16"]


def random(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    made = RNG.standard_normal(shape)
    return (made + 1j * RNG.standard_normal(shape) if dtype[0] == "c" else made).astype(dtype)


def pair(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """A Hermitian matrix, and a positive definite one."""
    a, b = random((N, N), dtype), random((N, N), dtype)
    return a + a.conj().T, b @ b.conj().T + N * np.eye(N, dtype=dtype)


def near(found: Any, expected: Any) -> None:
    tolerance = 1e-3 if np.asarray(expected).dtype.char in "fF" else 1e-10
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())


# ---- square factors of tall matrices


def test_a_square_factor_that_does_not_fit_is_refused_at_the_call() -> None:
    tall = ln.zeros((500_000, 64))
    words = (
        r"the square U of a matrix of 500,000 rows is 500,000×500,000: 2.0 TB, and there is room for 400.0 MB; "
        r"use full_matrices=False, or svdvals"
    )
    with ln.init(workers=1, memory="200 MB"):
        for svd in (ln.linalg.svd, np.linalg.svd):
            with pytest.raises(ln.LinAlgError, match=words):
                svd(tall)
        with pytest.raises(ln.LinAlgError, match=r"the square Vh of a matrix of 500,000 columns"):
            ln.linalg.svd(tall.T)
        assert ln.linalg.svd(tall, full_matrices=False).U.shape == tall.shape


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(300, 9), (9, 300)])
def test_a_square_factor_that_fits_is_made(shape: tuple[int, int], dtype: str) -> None:
    a = random(shape, dtype)
    u, s, vh = ln.compute(ln.linalg.svd(ln.asarray(a, chunks=40)))
    assert (u.shape, s.shape, vh.shape) == ((shape[0],) * 2, (9,), (shape[1],) * 2)
    near(u.conj().T @ u, np.eye(shape[0], dtype=dtype))
    near(vh @ vh.conj().T, np.eye(shape[1], dtype=dtype))
    near(u[:, :9] * s @ vh[:9], a)
    near(s, np.linalg.svd(a)[1])


# ---- two matrices


@pytest.mark.sample(8)
@pytest.mark.parametrize("tile", [None, 11])
@pytest.mark.parametrize("kind", [1, 2, 3])
@pytest.mark.parametrize("dtype", DTYPES)
def test_eigenvalues_of_two_matrices(dtype: str, kind: int, tile: int | None) -> None:
    a, b = pair(dtype)
    w, z = ln.compute(
        ln.linalg.eigh(ln.asarray(a, chunks=10), ln.asarray(b, chunks=13), type=kind, tile=tile)
    )
    near(w, scipy.linalg.eigh(a, b, type=kind)[0])
    near(*{1: (a @ z, b @ z * w), 2: (a @ (b @ z), z * w), 3: (b @ (a @ z), z * w)}[kind])
    near(z.conj().T @ (np.linalg.inv(b) if kind == 3 else b) @ z, np.eye(N, dtype=dtype))
    near(ln.linalg.eigvalsh(a, b, type=kind, tile=tile), w)


def test_one_triangle_of_two_matrices_is_read() -> None:
    a, b = pair("c16")
    hidden = np.tril(np.full((N, N), np.nan), -1)
    expected = scipy.linalg.eigh(a, b)[0]
    near(ln.linalg.eigh(np.triu(a) + hidden, np.triu(b) + hidden, "U").eigenvalues, expected)
    near(ln.linalg.eigvalsh(np.tril(a) + hidden.T, np.tril(b) + hidden.T), expected)


def test_the_triangle_may_stand_where_numpy_has_it() -> None:
    a, _ = pair("f8")
    upper = np.triu(a) + np.tril(np.full((N, N), np.nan), -1)
    expected = np.linalg.eigvalsh(a)
    near(ln.linalg.eigh(upper, "U").eigenvalues, expected)
    near(np.linalg.eigh(ln.asarray(upper, chunks=10), "U").eigenvalues.compute(), expected)
    near(np.linalg.eigvalsh(ln.asarray(upper, chunks=10), UPLO="U").compute(), expected)


def test_stacks_of_two_matrices() -> None:
    several = [pair("f8") for _ in range(3)]
    a, b = (np.stack(each) for each in zip(*several, strict=True))
    near(ln.linalg.eigh(a, b).eigenvalues, np.stack([scipy.linalg.eigh(*each)[0] for each in several]))


def test_what_two_matrices_cannot_be() -> None:
    with pytest.raises(ln.LinAlgError, match=r"the same shape, got \(3, 3\) and \(4, 4\)"):
        ln.linalg.eigh(np.eye(3), np.eye(4))
    with pytest.raises(ln.LinAlgError, match="not positive definite"):
        ln.linalg.eigh(np.eye(3), -np.eye(3))
    with pytest.raises(ln.InputError, match=r"type=4 is not known; 1 is a·z = λ·b·z"):
        ln.linalg.eigh(np.eye(3), np.eye(3), type=4)


# ---- options of SciPy


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_cholesky_of_the_triangle_that_scipy_reads(dtype: str, lower: bool) -> None:
    _, b = pair(dtype)
    read = (np.tril if lower else np.triu)(b)
    near(
        ln.linalg.cholesky(ln.asarray(read, chunks=10), lower=lower).compute(),
        scipy.linalg.cholesky(b, lower),
    )
    with pytest.raises(ln.InputError, match=r"upper=True \(as in NumPy\) and lower="):
        ln.linalg.cholesky(b, upper=True, lower=lower)


@pytest.mark.parametrize("tile", [None, 8])
@pytest.mark.parametrize("shape", [(30, 30), (41, 18), (18, 41), (0, 3)])
def test_lu_as_scipy_has_it(shape: tuple[int, int], tile: int | None) -> None:
    a = random(shape, "f8")
    x = ln.asarray(a, chunks=7)
    for given, expected in (
        ({"permute_l": True}, scipy.linalg.lu(a, permute_l=True)),
        ({"p_indices": True}, scipy.linalg.lu(a, p_indices=True)),
        ({"p_indices": False}, scipy.linalg.lu(a)),
    ):
        found = ln.compute(ln.linalg.lu(x, **given, tile=tile))
        assert [each.shape for each in found] == [each.shape for each in expected]
        assert [each.dtype.kind for each in found] == [each.dtype.kind for each in expected]
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-12)


def test_lu_of_stacks_as_scipy_has_it() -> None:
    a = random((2, 3, 9, 5), "f8")
    lower, upper = ln.linalg.lu(a, permute_l=True)
    near(lower @ upper, a)
    p, lower, upper = ln.linalg.lu(a, p_indices=False)
    near(p @ lower @ upper, a)
