"""Intel's MKL on the cores of this machine, for comparison: the package `mkl` (requirements.txt), by ctypes.

Each function takes C-ordered NumPy arrays, leaves them as they are, and gives C-ordered ones. A C-ordered
matrix is the transpose of one in Fortran's order, so that most routines are asked for what belongs to the
transpose and nothing has to be turned; where MKL is faster on a matrix that was turned, its own function
turns it.

Must run in a process that uses no other BLAS; `MKL_NUM_THREADS` says how many threads there are.
"""

from __future__ import annotations

import ctypes
from functools import cache
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

import numpy as np

_ROWS, _COLUMNS = 101, 102
"""Orders of elements, as CBLAS and LAPACKE number them."""
_PLAIN = 111
"""A factor as it is, for CBLAS."""


def library() -> Path | None:
    """Where the library is; None: the package is not installed."""
    try:
        found = [each for each in files("mkl") or () if each.name.startswith("libmkl_rt.so")]
    except PackageNotFoundError:
        return None
    return Path(str(found[0].locate())).resolve() if found else None


@cache
def _mkl() -> ctypes.CDLL:
    path = library()
    if path is None:
        raise SystemExit("MKL is not here: pip install -r benchmarks/requirements.txt")
    threads = path.with_name("libiomp5.so")
    if threads.exists():
        ctypes.CDLL(str(threads), mode=ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)


def _call(name: str, *arguments: Any) -> None:
    """A function of LAPACKE, on matrices in Fortran's order; text is a character, integers are lengths."""
    made = [
        ctypes.c_char(each.encode()) if isinstance(each, str)
        else each.ctypes.data_as(ctypes.c_void_p) if isinstance(each, np.ndarray)
        else ctypes.c_int(each)
        for each in arguments
    ]  # fmt: skip
    info = getattr(_mkl(), f"LAPACKE_{name}")(ctypes.c_int(_COLUMNS), *made)
    if info != 0:
        raise SystemExit(f"MKL's {name} says {info}")


def matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    (m, k), n = a.shape, b.shape[1]
    c = np.empty((m, n))
    pointers = [ctypes.c_void_p(each.ctypes.data) for each in (a, b, c)]
    integer, number = ctypes.c_int, ctypes.c_double
    _mkl().cblas_dgemm(
        integer(_ROWS), integer(_PLAIN), integer(_PLAIN), integer(m), integer(n), integer(k), number(1.0),
        pointers[0], integer(k), pointers[1], integer(n), number(0.0), pointers[2], integer(n),
    )  # fmt: skip
    return c


def cholesky(a: np.ndarray) -> np.ndarray:
    n = len(a)
    factor = np.zeros((n, n))
    _call("dlacpy", "U", n, n, a, n, factor, n)  # our lower triangle
    _call("dpotrf", "U", n, factor, n)
    return factor


def solve(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    n, sides = b.shape
    left, right, pivots = a.copy(), b.T.copy(), np.empty(n, np.int32)
    _call("dgetrf", n, n, left, n, pivots)
    _call("dgetrs", "T", n, sides, left, n, pivots, right, n)
    return right.T.copy()


def qr(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    m, n = a.shape  # not wider than tall
    turned, scales = _turned(a), np.empty(n)  # by rows of its transpose MKL takes longer than turning does
    _call("dgeqrf", m, n, turned, m, scales)
    r = np.triu(turned.T[:n])
    _call("dorgqr", m, n, n, turned, m, scales)
    return _turned(turned), r


def svd(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    m, n = a.shape
    k = min(m, n)
    u, values, vh = np.empty((m, k)), np.empty(k), np.empty((k, n))
    _call("dgesdd", "S", n, m, a.copy(), n, values, vh, n, u, k)  # Aᵀ = V·S·Uᵀ
    return u, values, vh


def eigh(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    n = len(a)
    vectors, values = a.copy(), np.empty(n)
    _call("dsyevd", "V", "U", n, vectors, n, values)
    return values, _turned(vectors)


def _turned(a: np.ndarray) -> np.ndarray:
    """The transpose of a matrix, as an array of its own."""
    rows, columns = a.shape
    made, size = np.empty((columns, rows)), ctypes.c_size_t
    _mkl().MKL_Domatcopy(
        ctypes.c_char(b"R"), ctypes.c_char(b"T"), size(rows), size(columns), ctypes.c_double(1.0),
        ctypes.c_void_p(a.ctypes.data), size(columns), ctypes.c_void_p(made.ctypes.data), size(rows),
    )  # fmt: skip
    return made
