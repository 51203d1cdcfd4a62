"""Singular values from a random sketch, and QR of tall matrices by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.arrays.strategies import tiled

import linnet as ln
from linnet.errors import InputError, LinAlgError

rng = np.random.default_rng(7)


def falling(m: int, n: int, base: float, dtype: Any = float) -> Any:
    """A matrix whose singular values are 1, base, base²…"""
    k = min(m, n)
    real = rng.standard_normal((2, max(m, n), k))
    kind = real[0] + 1j * real[1] if np.dtype(dtype).kind == "c" else real[0]
    u, v = np.linalg.qr(kind[:m])[0], np.linalg.qr(kind[::-1][:n])[0]
    return ((u * base ** np.arange(k)) @ v.conj().T).astype(dtype)


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "dtype"), [((300, 40), "f4"), ((40, 300), "f8"), ((90, 80), "c16")])
def test_svd_compressed(shape: Any, dtype: str) -> None:
    a = falling(*shape, 0.5, dtype)
    for iterator, passes in (("power", 0), ("power", 1), ("QR", 2)):
        u, s, vh = ln.linalg.svd_compressed(
            tiled(a, (64, 30)), 5, iterator=iterator, n_power_iter=passes, seed=1
        )
        assert (u.shape, s.shape, vh.shape) == ((shape[0], 5), (5,), (5, shape[1]))
        assert (u.dtype, s.dtype) == (a.dtype, a.real.dtype)
        u, s, vh = ln.compute(u, s, vh)
        close = 1e-3 if dtype == "f4" else 1e-4
        np.testing.assert_allclose(s, 0.5 ** np.arange(5), rtol=close)
        np.testing.assert_allclose(u.conj().T @ u, np.eye(5), atol=close)
        np.testing.assert_allclose(vh @ vh.conj().T, np.eye(5), atol=close)
        np.testing.assert_allclose((u * s) @ vh, a, atol=0.5**5 * 1.2)
        assert (u.sum(0).real >= 0).all()


@pytest.mark.slow
def test_svd_compressed_passes_help_where_values_fall_slowly() -> None:
    a = falling(200, 60, 0.97)
    exact = np.linalg.svd(a, compute_uv=False)[:5]
    errors = [
        np.abs(ln.linalg.svd_compressed(tiled(a, 50), 5, "QR", passes, 5, seed=3).S.compute() - exact).max()
        for passes in (0, 4)
    ]
    assert errors[1] < errors[0] / 3
    full = ln.linalg.svd_compressed(tiled(a, 50), 60, seed=3).S.compute()
    np.testing.assert_allclose(full, 0.97 ** np.arange(60), rtol=1e-8)


def test_svd_compressed_is_lazy_and_the_same_for_the_same_seed() -> None:
    a = falling(100, 30, 0.6)
    one, other = (ln.linalg.svd_compressed(tiled(a, (30, 11)), 3, seed=11) for _ in range(2))
    np.testing.assert_array_equal(one.U.compute(), other.U.compute())
    plain = ln.linalg.svd_compressed(a, 3, seed=11)
    assert isinstance(plain.S, np.ndarray)
    with pytest.raises(InputError, match="1 to 30 singular values"):
        ln.linalg.svd_compressed(a, 31)
    with pytest.raises(InputError, match="iterator='svd' is not known"):
        ln.linalg.svd_compressed(a, 3, "svd")


@pytest.mark.parametrize(
    ("shape", "chunks"), [((500, 6), (77, 6)), ((40, 30), (9, 7)), ((8, 8), 3), ((5, 0), 2)]
)
def test_tsqr(shape: Any, chunks: Any) -> None:
    a = rng.standard_normal(shape)
    q, r = ln.compute(*ln.linalg.tsqr(tiled(a, chunks)))
    np.testing.assert_allclose(q @ r, a, atol=1e-12)
    np.testing.assert_allclose(q.T @ q, np.eye(shape[1]), atol=1e-12)
    np.testing.assert_array_equal(r, np.triu(r))
    u, s, vh = ln.compute(*ln.linalg.tsqr(tiled(a, chunks), compute_svd=True))
    np.testing.assert_allclose(s, np.linalg.svd(a, compute_uv=False), atol=1e-12)
    np.testing.assert_allclose((u * s) @ vh, a, atol=1e-12)


def test_tsqr_of_wide_matrices_is_refused() -> None:
    with pytest.raises(LinAlgError, match=r"not shape \(2, 3\); use qr"):
        ln.linalg.tsqr(np.zeros((2, 3)))
