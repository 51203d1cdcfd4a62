"""Matrices on which a careless factorisation fails, and how well LAPACK does on them."""

from __future__ import annotations

import numpy as np

DTYPES = ["f4", "f8", "c8", "c16"]


def random(rng, shape, dtype="f8"):
    real = rng.standard_normal(shape)
    return (real + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else real).astype(dtype)


def hard_matrices(m, n, dtype):
    """Name and matrix: those on which a careless QR fails."""
    rng = np.random.default_rng(m + n)
    widest = 15 if np.dtype(dtype).itemsize // (2 if np.dtype(dtype).kind == "c" else 1) == 4 else 150
    tiny = 1e-30 if widest == 15 else 1e-200
    a = random(rng, (m, n), dtype)
    k = max(1, min(m, n) // 2)
    grades = 10.0 ** np.linspace(-widest, widest, max(m, n))
    rows, columns = np.arange(m)[:, None], np.arange(n)
    yield "random", a
    yield "graded columns", (a * rng.permutation(grades)[:n]).astype(dtype)
    yield "graded rows", (a * rng.permutation(grades)[:m, None]).astype(dtype)
    yield "Hilbert", (1.0 / (rows + columns + 1)).astype(dtype)
    yield "rank-deficient", (random(rng, (m, k), dtype) @ random(rng, (k, n), dtype)).astype(dtype)
    yield "equal columns", np.repeat(a[:, :1], n, axis=1)
    yield "orthogonal", np.linalg.qr(random(rng, (max(m, n),) * 2, dtype))[0][:m, :n].astype(dtype)
    yield "nearly dependent", (a[:, :1] + 1e-5 * a).astype(dtype)
    yield "zero", np.zeros_like(a)
    yield "tiny", (a * tiny).astype(dtype)
    yield "huge", (a / tiny).astype(dtype)


def errors(a, q, r):
    """Backward error, of each column by itself, and loss of orthogonality: in units of rounding."""
    wide = np.longdouble if a.dtype.kind == "f" else np.clongdouble
    exact = a.astype(wide)
    scale = np.abs(exact).max(axis=0, initial=0)
    scale = np.where(scale == 0, 1, scale)
    residual = exact / scale - q.astype(wide) @ (r.astype(wide) / scale)
    lengths = np.sqrt((np.abs(exact / scale) ** 2).sum(axis=0))
    backward = np.sqrt((np.abs(residual) ** 2).sum(axis=0)) / np.where(lengths == 0, 1, lengths)
    orthogonality = np.abs(q.conj().T @ q - np.eye(q.shape[1])).max(initial=0)
    unit = np.finfo(a.dtype).eps
    return float(backward.max(initial=0) / unit), float(orthogonality / unit)


def as_good_as_lapack(a, q, r, name=""):
    expected = errors(a, *np.linalg.qr(a))
    found = errors(a, q, r)
    for mine, theirs in zip(found, expected, strict=True):
        assert mine <= 10 * max(theirs, 2.0), f"{name}: {found}, LAPACK {expected}"
    assert not np.tril(r, -1).any()
