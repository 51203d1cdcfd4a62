"""Kernels of dense factorisations and products, on BLAS and LAPACK.

Tiles are matrices of float32, float64, complex64 or complex128, of any shape that
fits, in any memory order; results are Fortran-ordered. None holds the interpreter
lock while it computes. `Xᴴ` is the conjugate transpose (the transpose, if real).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from linnet.errors import LinAlgError
from linnet.kernels.fortran import (
    Matrix,
    address,
    adjoint_operand,
    blas_dtype,
    integer,
    leading,
    operand,
    owned,
    promote,
    readable,
    routine,
    scalar,
)
from linnet.kernels.registry import kernel

Shape = tuple[int, int]


@kernel("chol", shape=lambda s: s, dtype=promote, flops=lambda s: s[0] ** 3 / 3, inplace=0)
def chol(s: Matrix, *, overwrite: Sequence[int] = ()) -> Matrix:
    """The lower triangular `L` with `L·Lᴴ = S`. Only the lower triangle of `S` is read.

    >>> chol(np.array([[4.0, 0.0], [2.0, 2.0]]))
    array([[2., 0.],
           [1., 1.]])
    """
    if not (s.shape[0] == s.shape[1]):
        raise misfit("chol", f"a square tile, got one of {extent(s)}")
    factor = owned(s, blas_dtype(s), 0 in overwrite)
    n = factor.shape[0]
    code = factor.dtype.char
    info = ctypes.c_int(0)
    routine("potrf", code)(b"L", integer(n), address(factor), leading(factor), ctypes.byref(info))
    if info.value > 0:
        raise LinAlgError(f"the leading minor of order {info.value} of the tile is not positive definite")
    if n > 1:
        zero = scalar(0.0, code)
        above = factor[:, 1:]
        routine("laset", code)(
            b"U", integer(n - 1), integer(n - 1), zero, zero, address(above), leading(factor)
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
    triangle = readable(lower, dtype)
    solution = owned(s, dtype, 1 in overwrite)
    rows, columns = solution.shape
    code = dtype.char
    routine("trsm", code)(
        b"R", b"L", b"C", b"N", integer(rows), integer(columns), scalar(1.0, code),
        address(triangle), leading(triangle), address(solution), leading(solution),
    )  # fmt: skip
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
    result = owned(s, dtype, 0 in overwrite)
    multiply_into(result, operand(a, dtype), adjoint_operand(b, dtype), a.shape[1], -1.0, 1.0)
    return result


@kernel(
    "gemm",
    shape=lambda a, b: (rows_of(a), columns_of(b)),
    dtype=lambda a, b: promote(*flat(a), *flat(b)),
    flops=lambda a, b: 2.0 * sum(x[0] * x[1] * y[1] for x, y in zip(pairs(a), pairs(b), strict=True)),
)
def gemm(a: Matrix | list[Matrix], b: Matrix | list[Matrix]) -> Matrix:
    """`A·B`; for two ranges of tiles, such as `A[i, 0:K]` and `B[0:K, j]`, `Σ A[i, k]·B[k, j]`.

    >>> gemm([np.array([[1.0]]), np.array([[2.0]])], [np.array([[3.0]]), np.array([[4.0]])])
    array([[11.]])
    """
    left = a if isinstance(a, list) else [a]
    right = b if isinstance(b, list) else [b]
    if not (len(left) == len(right) > 0):
        raise misfit(
            "gemm", f"as many tiles left as right, and at least one; got {len(left)} and {len(right)}"
        )
    dtype = blas_dtype(*left, *right)
    result = np.empty((left[0].shape[0], right[0].shape[1]), dtype, order="F")
    for position, (x, y) in enumerate(zip(left, right, strict=True)):
        if not (x.shape[1] == y.shape[0] and result.shape == (x.shape[0], y.shape[1])):
            raise misfit("gemm", f"tiles for a product of {extent(result)}, got {extent(x)} and {extent(y)}")
        beta = 1.0 if position else 0.0
        multiply_into(result, operand(x, dtype), operand(y, dtype), x.shape[1], 1.0, beta)
    return result


@kernel(
    "gemm_add",
    shape=lambda c, a, b: c,
    dtype=promote,
    flops=lambda c, a, b: 2.0 * c[0] * c[1] * a[1],
    inplace=0,
)
def gemm_add(c: Matrix, a: Matrix, b: Matrix, *, overwrite: Sequence[int] = ()) -> Matrix:
    """`C + A·B`.

    >>> gemm_add(np.array([[1.0]]), np.array([[2.0]]), np.array([[3.0]]))
    array([[7.]])
    """
    if not (c.shape == (a.shape[0], b.shape[1]) and a.shape[1] == b.shape[0]):
        raise misfit("gemm_add", f"tiles for C + A·B, got {extent(c)}, {extent(a)} and {extent(b)}")
    dtype = blas_dtype(c, a, b)
    result = owned(c, dtype, 0 in overwrite)
    multiply_into(result, operand(a, dtype), operand(b, dtype), a.shape[1], 1.0, 1.0)
    return result


def multiply_into(
    result: Matrix,
    left: tuple[bytes, Matrix],
    right: tuple[bytes, Matrix],
    inner: int,
    alpha: float,
    beta: float,
) -> None:
    """`result ← alpha·op(left)·op(right) + beta·result`, where `result` is Fortran-ordered."""
    rows, columns = result.shape
    code = result.dtype.char
    (op_a, a), (op_b, b) = left, right
    routine("gemm", code)(
        op_a, op_b, integer(rows), integer(columns), integer(inner), scalar(alpha, code),
        address(a), leading(a), address(b), leading(b), scalar(beta, code), address(result), leading(result),
    )  # fmt: skip


def misfit(name: str, expected: str) -> ValueError:
    """What to raise on tiles that do not fit: BLAS would read past their ends."""
    return ValueError(f"{name} expects {expected}")


def extent(tile: Matrix) -> str:
    """The shape of a tile, for messages."""
    return "×".join(map(str, tile.shape))


def flat(item: Any) -> list[Any]:
    """What a range operand stands for in a declaration, as a list."""
    return item if isinstance(item, list) else [item]


def pairs(item: Any) -> list[Shape]:
    """The shapes behind an operand: several for a range of tiles."""
    return flat(item)


def rows_of(item: Any) -> int:
    """Rows of the first tile of an operand."""
    return flat(item)[0][0]


def columns_of(item: Any) -> int:
    """Columns of the first tile of an operand."""
    return flat(item)[0][1]
