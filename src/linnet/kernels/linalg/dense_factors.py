"""Kernels of dense factorisations, on BLAS and LAPACK.

Tiles are matrices of float32, float64, complex64 or complex128, of any shape that
fits, in any memory order. A result lies as the tile it replaces: a tile with contiguous
rows is, to Fortran, its own transpose, and the transposed equation is solved where it
lies, so that tiles cut from C-ordered arrays are never turned around. None holds the
interpreter lock while it computes. `Xᴴ` is the conjugate transpose (the transpose, if real).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from linnet.errors import MatrixError, NotPositiveDefiniteError
from linnet.kernels.linalg.substitution import solve_triangle
from linnet.kernels.registry import kernel
from linnet.machine.fortran import (
    Matrix,
    address,
    adjoint_operand,
    blas_dtype,
    conjugate_operand,
    integer,
    is_fortran,
    leading,
    multiply_into,
    operand,
    promote,
    readable,
    routine,
    scalar,
    workspace,
)

Shape = tuple[int, int]


@kernel(
    "chol",
    shape=lambda s, *_, **__: s,
    dtype=lambda s, *_, **__: promote(s),
    flops=lambda s, *_, **__: s[0] ** 3 / 3,
    inplace=0,
    refuses=True,
)
def chol(
    s: Matrix,
    number: int | None = None,
    before: int = 0,
    *,
    stack: tuple[int, ...] | None = None,
    overwrite: Sequence[int] = (),
) -> Matrix:
    """The lower triangular `L` with `L·Lᴴ = S`. Only the lower triangle of `S` is read.

    The others are for the error: which tile on the diagonal it is, how many rows of the matrix come before
    it, and which matrix of a stack it is.

    >>> chol(np.array([[4.0, 0.0], [2.0, 2.0]]))
    array([[2., 0.],
           [1., 1.]])
    """
    if not (s.shape[0] == s.shape[1]):
        raise misfit("chol", f"a square tile, got one of {extent(s)}")
    factor = workspace(s, blas_dtype(s), 0 in overwrite)
    n = factor.shape[0]
    code = factor.dtype.char
    info = ctypes.c_int(0)
    # To Fortran, the lower triangle of a tile with contiguous rows is an upper one.
    by_columns = is_fortran(factor)
    stored, half = (factor, b"L") if by_columns else (factor.T, b"U")
    routine("potrf", code)(half, integer(n), address(stored), leading(stored), ctypes.byref(info))
    if info.value > 0 and number is None:
        raise NotPositiveDefiniteError(info.value)
    if info.value > 0:
        raise MatrixError(
            f"{of_stack(stack)}the matrix is not positive definite: its leading minor of order "
            f"{before + info.value} is not positive (tile L[{number}, {number}])"
        )
    if n > 1:
        zero = scalar(0.0, code)
        other, rest = (b"U", stored[:, 1:]) if by_columns else (b"L", stored[1:, :])
        routine("laset", code)(
            other, integer(n - 1), integer(n - 1), zero, zero, address(rest), leading(stored)
        )
    return factor


@kernel(
    "trsm",
    shape=lambda lower, s: s,
    dtype=promote,
    flops=lambda lower, s: s[0] * s[1] ** 2,
    inplace=1,
)
def trsm(lower: Matrix, s: Matrix, *, overwrite: Sequence[int] = ()) -> Matrix:
    """`S·L⁻ᴴ`, for a lower triangular `L`: the tile below the diagonal in a Cholesky factorisation.

    >>> trsm(np.array([[2.0, 0.0], [1.0, 1.0]]), np.array([[4.0, 3.0]]))
    array([[2., 1.]])
    """
    if not (lower.shape[0] == lower.shape[1] == s.shape[1]):
        raise misfit("trsm", f"a triangle as wide as the tile, got {extent(lower)} and {extent(s)}")
    dtype = blas_dtype(lower, s)
    solution = workspace(s, dtype, 1 in overwrite)
    if is_fortran(solution):
        side, half, stored = b"R", b"L", solution
        turned, triangle = _real_or_turned(lower, dtype)
    else:  # conj(L)·Xᵀ = Sᵀ
        side, half, stored = b"L", b"U", solution.T
        turned, triangle = _real_or_turned(lower.T, dtype)
    op = b"N" if turned else b"C"
    half = {b"L": b"U", b"U": b"L"}[half] if turned else half
    solve_triangle(side, half, op, b"N", triangle, stored)
    return solution


@kernel(
    "syrk",
    shape=lambda s, a, b: s,
    dtype=promote,
    flops=lambda s, a, b: 2.0 * s[0] * s[1] * a[1],
    inplace=0,
)
def syrk(s: Matrix, a: Matrix, b: Matrix, *, overwrite: Sequence[int] = ()) -> Matrix:
    """`S − A·Bᴴ`: the update of a trailing tile.

    >>> syrk(np.array([[9.0]]), np.array([[1.0, 2.0]]), np.array([[3.0, 1.0]]))
    array([[4.]])
    """
    if not (s.shape == (a.shape[0], b.shape[0]) and a.shape[1] == b.shape[1]):
        raise misfit("syrk", f"tiles for S - A·Bᴴ, got {extent(s)}, {extent(a)} and {extent(b)}")
    dtype = blas_dtype(s, a, b)
    result = workspace(s, dtype, 0 in overwrite)
    _subtract(result, a, b)
    return result


@kernel(
    "downdate",
    shape=lambda s, a, b: s,
    dtype=lambda s, a, b: promote(s, *a, *b),
    flops=lambda s, a, b: 2.0 * s[0] * s[1] * sum(x[1] for x in a),
    inplace=0,
)
def downdate(s: Matrix, a: list[Matrix], b: list[Matrix], *, overwrite: Sequence[int] = ()) -> Matrix:
    """`S − Σ A[k]·B[k]ᴴ` for two ranges of tiles, from left to right; `S` itself if they are empty.

    >>> downdate(np.array([[9.0]]), [np.array([[1.0, 2.0]])], [np.array([[3.0, 1.0]])])
    array([[4.]])
    """
    if len(a) != len(b):
        raise misfit("downdate", f"as many tiles left as right, got {len(a)} and {len(b)}")
    result = workspace(s, blas_dtype(s, *a, *b), 0 in overwrite)
    for x, y in zip(a, b, strict=True):
        if not (s.shape == (x.shape[0], y.shape[0]) and x.shape[1] == y.shape[1]):
            raise misfit("downdate", f"tiles for S - A·Bᴴ, got {extent(s)}, {extent(x)} and {extent(y)}")
        _subtract(result, x, y)
    return result


@kernel(
    "downdate_lower",
    shape=lambda s, a: s,
    dtype=lambda s, a: promote(s, *a),
    flops=lambda s, a: 1.0 * s[0] * s[1] * sum(x[1] for x in a),
    inplace=0,
)
def downdate_lower(s: Matrix, a: list[Matrix], *, overwrite: Sequence[int] = ()) -> Matrix:
    """The lower triangle of `S − Σ A[k]·A[k]ᴴ`; what is above the diagonal is that of `S`.

    >>> downdate_lower(np.array([[9.0, 7.0], [6.0, 9.0]]), [np.array([[1.0], [2.0]])])
    array([[8., 7.],
           [4., 5.]])
    """
    if s.shape[0] != s.shape[1]:
        raise misfit("downdate_lower", f"a square tile, got one of {extent(s)}")
    dtype = blas_dtype(s, *a)
    result = workspace(s, dtype, 0 in overwrite)
    code = dtype.char
    name = "syrk" if dtype.kind == "f" else "herk"
    real = code.lower()
    by_columns = is_fortran(result)
    stored, half = (result, b"L") if by_columns else (result.T, b"U")
    adjoint = b"T" if dtype.kind == "f" else b"C"
    for x in a:
        if x.shape[0] != s.shape[0]:
            raise misfit("downdate_lower", f"tiles of {s.shape[0]} rows, got one of {extent(x)}")
        # By rows it is the transpose that is updated: (A·Aᴴ)ᵀ = (Aᵀ)ᴴ·Aᵀ.
        turned, part = _real_or_turned(x if by_columns else x.T, dtype)
        op = b"N" if by_columns != turned else adjoint
        routine(name, code)(
            half, op, integer(s.shape[0]), integer(x.shape[1]), scalar(-1.0, real), address(part),
            leading(part), scalar(1.0, real), address(stored), leading(stored),
        )  # fmt: skip
    return result


@kernel("nothing", shape=lambda s: s, dtype=promote, flops=lambda s: 0.0, into=True)
def nothing(s: Matrix, *, into: Matrix | None = None) -> Matrix:
    """Zeros, as many as the tile has elements; these are not looked at.

    >>> nothing(np.array([[3.0, 4.0]]))
    array([[0., 0.]])
    """
    if into is None:
        return np.zeros(s.shape, blas_dtype(s))
    into.fill(0)
    return into


def _subtract(result: Matrix, a: Matrix, b: Matrix) -> None:
    """`result ← result − A·Bᴴ`, in whichever order `result` lies."""
    dtype = result.dtype
    if is_fortran(result):
        multiply_into(result, operand(a, dtype), adjoint_operand(b, dtype), a.shape[1], -1.0, 1.0)
    else:
        multiply_into(result.T, conjugate_operand(b, dtype), operand(a.T, dtype), a.shape[1], -1.0, 1.0)


def _real_or_turned(tile: Matrix, dtype: np.dtype[Any]) -> tuple[bool, Matrix]:
    """The tile by columns, or, if it is real, its transpose; and whether it is the transpose.

    A complex tile that lies the other way has to be copied: BLAS knows no conjugate without
    a transpose.
    """
    if dtype.kind == "f" and tile.dtype == dtype and not is_fortran(tile) and is_fortran(tile.T):
        return True, tile.T
    return False, readable(tile, dtype)


def of_stack(place: tuple[int, ...] | None) -> str:
    """Which matrix of a stack an error is about; nothing for one that is in none.

    >>> of_stack((1, 0))
    'matrix (1, 0) of the stack: '
    """
    return "" if place is None else f"matrix {tuple(place)} of the stack: "


def misfit(name: str, expected: str) -> ValueError:
    """What to raise on tiles that do not fit: BLAS would read past their ends."""
    return ValueError(f"{name} expects {expected}")


def extent(tile: Matrix) -> str:
    """The shape of a tile, for messages."""
    return "×".join(map(str, tile.shape))
