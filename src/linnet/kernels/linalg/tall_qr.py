"""Kernels of QR of tall and skinny matrices: a leaf of many rows, and the triangles of leaves joined.

Reflectors on a leaf run at a fifth of the speed of matrix products. So a leaf is factorised in one
of three ways, the cheapest that is as accurate as reflectors on it; what decides is computed from
the leaf, never assumed:

1. `AᴴA = RᴴR` by Cholesky, and `Q = A·R⁻¹`. The error is that of reflectors times the square of
   the condition of `A` with columns scaled to length 1, so this is for columns far from dependent.
2. The same twice: `Y = A·R₁⁻¹`, `YᴴY = R₂ᴴR₂`, `R = R₂·R₁`. By substitution, `Y·R₁ = A` holds to
   rounding whatever `R₁` is; so if `YᴴY`, which is at hand, is near the identity, all is well.
3. By reflectors: columns nearly dependent, squares that overflow or underflow, fewer rows than columns.

`Q` of a leaf is kept as `Y·Z` (the first way: `A·Z`), so that the many rows are multiplied only once,
by all that comes from the tree. Leaves are used as they lie in a C-ordered array: to Fortran they
are transposed, and `Aᵀ = Rᵀ·Qᵀ` is computed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from linnet.kernels.linalg.dense_factors import extent, misfit
from linnet.kernels.linalg.qr import Shape, apply, factor, geqrt_flops, upper
from linnet.kernels.linalg.substitution import solve_triangle
from linnet.kernels.registry import kernel
from linnet.machine.fortran import (
    Matrix,
    address,
    adjoint_operand,
    blas_dtype,
    integer,
    is_fortran,
    leading,
    multiply_into,
    operand,
    promote,
    routine,
    scalar,
)

_NEAR = 0.25
"""How far YᴴY may be from the identity, in the Frobenius norm: its condition is then below 2."""
_GROWTH = 8.0
"""What the square of the norm of the inverse, columns scaled, may be for the first way."""
_INNER = 32
_ROWS = 1024
"""Rows that are multiplied at a time where the result takes the place of an operand."""


def _leaf_shapes(a: Shape) -> tuple[Shape, Shape, Shape]:
    k = min(a)
    return (a[0], k), (k, k), (k, a[1])


@kernel(
    "tall_qr",
    outputs=3,
    shape=_leaf_shapes,
    dtype=lambda a: (promote(a),) * 3,
    flops=lambda a: 2 * geqrt_flops(a),
)
def tall_qr(a: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """`Q·R = A` with `Q = Y·Z`; where `A` can stand for `Y`, `Y` is an empty tile and `Q = A·Z`.

    >>> a = np.array([[3.0], [4.0]])
    >>> y, z, r = tall_qr(a)
    >>> y.size, bool(np.allclose(a @ z, [[0.6], [0.8]])), bool(np.allclose(r, 5.0))
    (0, True, True)
    """
    return _once(a) or _twice(a) or _by_reflectors(a)


@kernel("tall_r", shape=lambda a: (min(a), a[1]), dtype=promote, flops=geqrt_flops)
def tall_r(a: Matrix) -> Matrix:
    """The `R` of `tall_qr` alone.

    >>> bool(np.allclose(tall_r(np.array([[3.0], [4.0]])), 5.0))
    True
    """
    factors = _once(a) or _twice(a)
    if factors is not None:
        return factors[2]
    packed = np.array(a, dtype=blas_dtype(a), order="F")
    factor(packed, _INNER)
    return upper(packed, min(packed.shape))


def _once(a: Matrix) -> tuple[Matrix, Matrix, Matrix] | None:
    """An empty `Y`, `Z`, `R`, for columns far from dependent; None for others."""
    if not _tall(a):
        return None
    square = _squared(by_rows(a))
    lengths = _lengths(square)
    lower = None if lengths is None else _cholesky(square)
    if lengths is None or lower is None:
        return None
    inverse = _inverse(lower)
    scaled = np.abs(inverse) * lengths
    # The product of the greatest sums of columns and of rows bounds the square of the norm.
    if not scaled.sum(axis=0).max() * scaled.sum(axis=1).max() <= _GROWTH:  # NaN is too much
        return None
    return np.empty((0, a.shape[1]), lower.dtype), inverse.T, lower.T


def _twice(a: Matrix) -> tuple[Matrix, Matrix, Matrix] | None:
    """`Y`, `Z`, `R` where `Y` comes out near orthonormal; else None."""
    if not _tall(a):
        return None
    y = np.array(a, dtype=blas_dtype(a), order="C").T
    square = _squared(y)
    first = None if _lengths(square) is None else _cholesky(square)
    if first is None:
        return None
    _solve_lower(first, y)
    square = _squared(y)
    apart = np.abs(np.real(np.diagonal(square)) - 1)
    if not apart.max() <= _NEAR:  # NaN is far
        return None
    below = np.tril(square, -1)
    if np.vdot(apart, apart) + 2 * np.vdot(below, below).real > _NEAR**2:
        return None
    second = _cholesky(square)
    if second is None:
        return None
    n = a.shape[1]
    lower = np.empty((n, n), y.dtype, order="F")
    multiply_into(lower, operand(first, y.dtype), operand(second, y.dtype), n, 1.0, 0.0)
    return y.T, _inverse(second).T, lower.T


def _lengths(square: Matrix) -> Matrix | None:
    """Lengths of the columns of `A`, from `AᴴA`; None if squares overflowed, or lost digits to underflow."""
    squares = np.real(np.diagonal(square))
    limits = np.finfo(square.dtype)
    if not (squares.min() >= limits.tiny / limits.eps**2 and squares.max() <= limits.max):
        return None
    return np.sqrt(squares)


def _tall(a: Matrix) -> bool:
    return a.shape[0] >= a.shape[1] > 0


def by_rows(a: Matrix) -> Matrix:
    """The transpose as a Fortran-ordered matrix; no copy if the rows of `A` are contiguous."""
    dtype = blas_dtype(a)
    return a.T if a.dtype == dtype and is_fortran(a.T) else np.array(a, dtype=dtype, order="C").T


def _squared(rows: Matrix) -> Matrix:
    """`X·Xᴴ` of a Fortran-ordered matrix; only the lower triangle is meant."""
    n, m = rows.shape
    code = rows.dtype.char
    real = code.lower() if rows.dtype.kind == "f" else {"F": "f", "D": "d"}[code]
    square = np.zeros((n, n), rows.dtype, order="F")
    routine("syrk" if rows.dtype.kind == "f" else "herk", code)(
        b"L", b"N", integer(n), integer(m), scalar(1.0, real), address(rows), leading(rows),
        scalar(0.0, real), address(square), leading(square),
    )  # fmt: skip
    return square


def _cholesky(square: Matrix) -> Matrix | None:
    """The lower factor in place of the lower triangle; None if it is not positive definite."""
    info = ctypes.c_int(0)
    n = square.shape[0]
    routine("potrf", square.dtype.char)(
        b"L", integer(n), address(square), leading(square), ctypes.byref(info)
    )
    if info.value:
        return None
    if n > 1:
        zero = scalar(0.0, square.dtype.char)
        routine("laset", square.dtype.char)(
            b"U", integer(n - 1), integer(n - 1), zero, zero, address(square[:, 1:]), leading(square)
        )
    return square


def _inverse(lower: Matrix) -> Matrix:
    inverse = np.eye(lower.shape[0], dtype=lower.dtype, order="F")
    _solve_lower(lower, inverse)
    return inverse


def _solve_lower(lower: Matrix, x: Matrix) -> None:
    """Overwrite `X` with `L⁻¹·X`."""
    solve_triangle(b"L", b"L", b"N", b"N", lower, x)


def _by_reflectors(a: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    q, r = explicit_qr(np.array(a, dtype=blas_dtype(a), order="F"))
    return np.ascontiguousarray(q), np.eye(r.shape[0], dtype=r.dtype), r


def explicit_qr(packed: Matrix) -> tuple[Matrix, Matrix]:
    """`Q` and `R` of a Fortran-ordered matrix, which is overwritten."""
    t = factor(packed, _INNER)
    k = t.shape[1]
    r = upper(packed, k)
    q = np.zeros((packed.shape[0], k), packed.dtype, order="F")
    np.fill_diagonal(q, 1)
    apply(b"L", False, packed[:, :k], t, q)
    return q, r


def _stacked(tiles: list[Shape]) -> Shape:
    return sum(tile[0] for tile in tiles), tiles[0][1]


def _stack_shapes(tiles: list[Shape]) -> tuple[list[Shape], Shape]:
    k = min(_stacked(tiles))
    return [(tile[0], k) for tile in tiles], (k, tiles[0][1])


@kernel(
    "stack_qr",
    outputs=2,
    shape=_stack_shapes,
    dtype=lambda tiles: (promote(*tiles),) * 2,
    flops=lambda tiles: 2 * geqrt_flops(_stacked(tiles)),
)
def stack_qr(tiles: list[Matrix]) -> tuple[list[Matrix], Matrix]:
    """QR of triangles on top of each other: the rows of `Q` that belong to each of them, and `R`.

    >>> (q0, q1), r = stack_qr([np.array([[3.0]]), np.array([[4.0]])])
    >>> bool(np.allclose(q0 @ r, 3.0)), bool(np.allclose(q1 @ r, 4.0))
    (True, True)
    """
    columns = tiles[0].shape[1]
    if any(tile.shape[1] != columns for tile in tiles):
        raise misfit("stack_qr", f"tiles of one width, got {', '.join(map(extent, tiles))}")
    q, r = explicit_qr(np.asfortranarray(np.concatenate(tiles), dtype=blas_dtype(*tiles)))
    edges = np.cumsum([tile.shape[0] for tile in tiles])[:-1]
    return [np.array(part, order="F") for part in np.split(q, edges)], r


@kernel(
    "combine",
    shape=lambda a, y, z, b: (a[0], b[1]),
    dtype=promote,
    flops=lambda a, y, z, b: 2.0 * a[0] * z[0] * b[1],
    inplace=1,
)
def combine(a: Matrix, y: Matrix, z: Matrix, b: Matrix, *, overwrite: Sequence[int] = ()) -> Matrix:
    """`Y·(Z·B)`, or `A·(Z·B)` if `Y` is empty: the rows of `Q` that belong to a leaf.

    >>> none = np.empty((0, 1))
    >>> combine(np.array([[1.0], [2.0]]), none, np.array([[3.0]]), np.array([[4.0]]))
    array([[12.],
           [24.]])
    """
    rows = y if y.shape[0] == a.shape[0] else a
    if not (rows.shape[1] == z.shape[0] and z.shape[1] == b.shape[0]):
        raise misfit("combine", f"tiles for Y·(Z·B), got {extent(rows)}, {extent(z)} and {extent(b)}")
    dtype = blas_dtype(a, z, b)
    right = np.empty((z.shape[0], b.shape[1]), dtype, order="F")
    multiply_into(right, operand(z, dtype), operand(b, dtype), z.shape[1], 1.0, 0.0)
    return _times(rows, right, dtype, rows is y and 1 in overwrite)


def _times(y: Matrix, square: Matrix, dtype: np.dtype[Any], mine: bool) -> Matrix:
    """`Y·X`, with contiguous rows; in place of `Y` if it is `mine` and fits."""
    m, n = y.shape[0], square.shape[1]
    left = operand(square.T, dtype)
    if not (mine and y.shape == (m, n) and y.dtype == dtype and y.flags.writeable and is_fortran(y.T)):
        result = np.empty((m, n), dtype)
        multiply_into(result.T, left, operand(y.T, dtype), y.shape[1], 1.0, 0.0)
        return result
    for start in range(0, m, _ROWS):
        rows = y[start : start + _ROWS]
        multiply_into(rows.T, left, operand(rows.T.copy(order="F"), dtype), n, 1.0, 0.0)
    return y


@kernel(
    "project_leaf",
    shape=lambda a, y, z, c: (z[1], c[1]),
    dtype=promote,
    flops=lambda a, y, z, c: 2.0 * a[0] * z[0] * c[1],
)
def project_leaf(a: Matrix, y: Matrix, z: Matrix, c: Matrix) -> Matrix:
    """`Zᴴ·(Yᴴ·C)`, or `Zᴴ·(Aᴴ·C)` if `Y` is empty: `Qᴴ·C` of a leaf.

    >>> a = np.array([[3.0], [4.0]])
    >>> y, z, r = tall_qr(a)
    >>> bool(np.allclose(project_leaf(a, y, z, a), r))
    True
    """
    rows = y if y.shape[0] == a.shape[0] else a
    if not (rows.shape[0] == c.shape[0] and rows.shape[1] == z.shape[0]):
        raise misfit("project_leaf", f"tiles for Zᴴ·(Yᴴ·C), got {extent(rows)}, {extent(z)} and {extent(c)}")
    dtype = blas_dtype(a, z, c)
    inner = np.empty((z.shape[0], c.shape[1]), dtype, order="F")
    multiply_into(inner, adjoint_operand(rows, dtype), operand(c, dtype), c.shape[0], 1.0, 0.0)
    result = np.empty((z.shape[1], c.shape[1]), dtype, order="F")
    multiply_into(result, adjoint_operand(z, dtype), operand(inner, dtype), z.shape[0], 1.0, 0.0)
    return result


@kernel(
    "project_stack",
    shape=lambda b, x: (b[0][1], x[0][1]),
    dtype=lambda b, x: promote(*b, *x),
    flops=lambda b, x: 2.0 * x[0][1] * b[0][1] * sum(tile[0] for tile in b),
)
def project_stack(b: list[Matrix], x: list[Matrix]) -> Matrix:
    """`Σ Bᴴ·X` over the triangles joined by `stack_qr`: `Qᴴ·X` of the join.

    >>> tiles = [np.array([[3.0]]), np.array([[4.0]])]
    >>> b, r = stack_qr(tiles)
    >>> bool(np.allclose(project_stack(b, tiles), r))
    True
    """
    if len(b) != len(x) or any(p.shape[0] != q.shape[0] for p, q in zip(b, x, strict=True)):
        raise misfit("project_stack", "as many tiles of B as of X, of equal heights")
    dtype = blas_dtype(*b, *x)
    result = np.zeros((b[0].shape[1], x[0].shape[1]), dtype, order="F")
    for left, right in zip(b, x, strict=True):
        multiply_into(result, adjoint_operand(left, dtype), operand(right, dtype), left.shape[0], 1.0, 1.0)
    return result
