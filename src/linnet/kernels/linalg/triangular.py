"""Kernels on triangular matrices in tiles: substitution and products, left-looking.

Each takes the tile on the diagonal, of which only one triangle is read, and ranges of tiles
beside it, so that every tile of a result is written once. None holds the interpreter lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linnet.kernels.linalg.dense_factors import extent, misfit
from linnet.kernels.linalg.substitution import solve_triangle
from linnet.kernels.registry import kernel
from linnet.machine.fortran import (
    Matrix,
    address,
    blas_dtype,
    integer,
    is_fortran,
    leading,
    multiply_into,
    operand,
    owned,
    promote,
    readable,
    routine,
    scalar,
)


def triangle(t: Matrix, lower: bool, dtype: np.dtype[Any]) -> tuple[bytes, bytes, Matrix]:
    """The tile for `trsm`: which triangle, which operation, and the matrix as it lies in memory."""
    if t.dtype == dtype and not is_fortran(t) and is_fortran(t.T):
        return b"U" if lower else b"L", b"T", t.T
    return b"L" if lower else b"U", b"N", readable(t, dtype)


def solve_with(t: Matrix, result: Matrix, lower: bool, unit: bool) -> None:
    """Overwrite a Fortran-ordered matrix with `T⁻¹` times it."""
    half, operation, matrix = triangle(t, lower, result.dtype)
    solve_triangle(b"L", half, operation, b"U" if unit else b"N", matrix, result)


@kernel(
    "substitute",
    shape=lambda t, b, beside, known, unit, **_: b,
    dtype=lambda t, b, beside, known, unit: promote(t, b, *beside, *known),
    flops=lambda t, b, beside, known, unit, **_: (
        float(t[0] ** 2 * b[1]) + sum(2.0 * each[0] * each[1] * b[1] for each in beside)
    ),
    inplace=1,
)
def substitute(
    t: Matrix,
    b: Matrix,
    beside: list[Matrix],
    known: list[Matrix],
    unit: int,
    *,
    lower: bool,
    overwrite: Sequence[int] = (),
) -> Matrix:
    """`T⁻¹·(B − Σ T[k]·X[k])`: a tile of the solution, from those known before it.

    `unit`: whether the diagonal counts as ones. A zero on the diagonal gives infinities.

    >>> substitute(
    ...     np.array([[2.0]]), np.array([[8.0]]), [np.array([[3.0]])], [np.array([[2.0]])], 0, lower=True
    ... )
    array([[1.]])
    """
    if not (t.shape[0] == t.shape[1] == b.shape[0]):
        raise misfit(
            "substitute", f"a square tile as high as the right side, got {extent(t)} and {extent(b)}"
        )
    dtype = blas_dtype(t, b, *beside, *known)
    result = owned(b, dtype, 1 in overwrite)
    accumulate("substitute", result, beside, known, -1.0)
    solve_with(t, result, lower, bool(unit))
    return result


@kernel(
    "take_away",
    shape=lambda b, beside, known: b,
    dtype=lambda b, beside, known: promote(b, *beside, *known),
    flops=lambda b, beside, known: sum(2.0 * each[0] * each[1] * b[1] for each in beside),
)
def take_away(b: Matrix, beside: list[Matrix], known: list[Matrix]) -> Matrix:
    """`B − Σ T[k]·X[k]`: the first part of `substitute`, from all known tiles but the newest.

    >>> take_away(np.array([[8.0]]), [np.array([[3.0]])], [np.array([[2.0]])])
    array([[2.]])
    """
    result = owned(b, blas_dtype(b, *beside, *known), False)
    accumulate("take_away", result, beside, known, -1.0)
    return result


@kernel(
    "trmm",
    shape=lambda t, b, beside, others, unit, **_: b,
    dtype=lambda t, b, beside, others, unit: promote(t, b, *beside, *others),
    flops=lambda t, b, beside, others, unit, **_: (
        float(t[0] ** 2 * b[1]) + sum(2.0 * each[0] * each[1] * b[1] for each in beside)
    ),
)
def trmm(
    t: Matrix, b: Matrix, beside: list[Matrix], others: list[Matrix], unit: int, *, lower: bool
) -> Matrix:
    """`T·B + Σ T[k]·B[k]`, of the first `T` one triangle only.

    >>> trmm(np.array([[2.0, 9.0], [1.0, 1.0]]), np.ones((2, 1)), [], [], 0, lower=True)
    array([[2.],
           [2.]])
    """
    if not (t.shape[0] == t.shape[1] == b.shape[0]):
        raise misfit("trmm", f"a square tile as high as the other, got {extent(t)} and {extent(b)}")
    dtype = blas_dtype(t, b, *beside, *others)
    result = owned(b, dtype, False)
    rows, columns = result.shape
    code = dtype.char
    uplo, operation, matrix = triangle(t, lower, dtype)
    if rows and columns:
        routine("trmm", code)(
            b"L", uplo, operation, b"U" if unit else b"N", integer(rows), integer(columns), scalar(1.0, code),
            address(matrix), leading(matrix), address(result), leading(result),
        )  # fmt: skip
    accumulate("trmm", result, beside, others, 1.0)
    return result


@kernel(
    "symm",
    shape=lambda d, b, left, before, below, after, **_: b,
    dtype=lambda d, b, left, before, below, after: promote(d, b, *left, *before, *below, *after),
    flops=lambda d, b, left, before, below, after, **_: sum(
        2.0 * each[0] * each[1] * b[1] for each in (d, *left, *below)
    ),
)
def symm(
    d: Matrix,
    b: Matrix,
    left: list[Matrix],
    before: list[Matrix],
    below: list[Matrix],
    after: list[Matrix],
) -> Matrix:
    """`D·B + Σ A[k]·B[k] + Σ A[l]ᴴ·B[l]`: a row of tiles of a Hermitian matrix stored by its lower half.

    `left` are the tiles of the row up to the diagonal and `below` those of the column under it;
    of the tile on the diagonal, only the lower triangle is read.

    >>> symm(np.array([[2.0]]), np.array([[1.0]]), [], [], [np.array([[5.0]])], [np.array([[3.0]])])
    array([[17.]])
    """
    if not (d.shape[0] == d.shape[1] == b.shape[0]):
        raise misfit("symm", f"a square tile as high as the other, got {extent(d)} and {extent(b)}")
    dtype = blas_dtype(d, b, *left, *before, *below, *after)
    half = np.tril(d)
    whole = half + np.tril(d, -1).conj().T
    if dtype.kind == "c":  # the diagonal of a Hermitian matrix is real, whatever is stored
        np.fill_diagonal(whole, np.real(d.diagonal()))
    result = np.empty(b.shape, dtype, order="F")
    multiply_into(result, operand(whole, dtype), operand(b, dtype), len(b), 1.0, 0.0)
    accumulate("symm", result, left, before, 1.0)
    accumulate("symm", result, [each.conj().T for each in below], after, 1.0)
    return result


def accumulate(name: str, result: Matrix, left: list[Matrix], right: list[Matrix], sign: float) -> None:
    """Add to a Fortran-ordered matrix the products of two ranges of tiles, or take them away."""
    if len(left) != len(right):
        raise misfit(name, f"as many tiles left as right, got {len(left)} and {len(right)}")
    for x, y in zip(left, right, strict=True):
        if not (x.shape[1] == y.shape[0] and result.shape == (x.shape[0], y.shape[1])):
            raise misfit(name, f"tiles for a product of {extent(result)}, got {extent(x)} and {extent(y)}")
        multiply_into(result, operand(x, result.dtype), operand(y, result.dtype), x.shape[1], sign, 1.0)


@kernel(
    "gram",
    shape=lambda a, b: (a[0][0], b[0][0]),
    dtype=lambda a, b: promote(*a, *b),
    flops=lambda a, b: 2.0 * sum(x[0] * x[1] * y[0] for x, y in zip(a, b, strict=True)),
)
def gram(a: list[Matrix], b: list[Matrix]) -> Matrix:
    """`Σ A[k]·B[k]ᴴ`: a tile of the product of a matrix with its own adjoint, off the diagonal.

    >>> gram([np.array([[1j]])], [np.array([[2j]])])
    array([[2.+0.j]])
    """
    dtype = blas_dtype(*a, *b)
    result = np.zeros((len(a[0]), len(b[0])), dtype, order="F")
    accumulate("gram", result, a, [each.conj().T for each in b], 1.0)
    return result


@kernel(
    "herk",
    shape=lambda a: (a[0][0], a[0][0]),
    dtype=lambda a: promote(*a),
    flops=lambda a: sum(float(x[0] ** 2 * x[1]) for x in a),
)
def herk(a: list[Matrix]) -> Matrix:
    """`Σ A[k]·A[k]ᴴ`: the same on the diagonal, one half computed and the other its mirror.

    >>> herk([np.array([[1j], [2.0]])])
    array([[1.+0.j, 0.+2.j],
           [0.-2.j, 4.+0.j]])
    """
    dtype = blas_dtype(*a)
    n = len(a[0])
    result = np.zeros((n, n), dtype, order="F")
    code = dtype.char
    for position, tile in enumerate(a):
        matrix = readable(tile, dtype)
        if n and tile.shape[1]:
            routine("herk" if dtype.kind == "c" else "syrk", code)(
                b"L", b"N", integer(n), integer(tile.shape[1]), scalar(1.0, code), address(matrix),
                leading(matrix), scalar(1.0 if position else 0.0, code), address(result), leading(result),
            )  # fmt: skip
    return np.tril(result) + np.tril(result, -1).conj().T


@kernel("adjoint_of", shape=lambda x: (x[1], x[0]), dtype=promote, flops=lambda x: 0.0)
def adjoint_of(x: Matrix) -> Matrix:
    """The conjugate transpose of a tile.

    >>> adjoint_of(np.array([[1j, 2.0]]))
    array([[0.-1.j],
           [2.-0.j]])
    """
    return np.array(x.conj().T, blas_dtype(x))
