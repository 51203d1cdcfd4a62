"""What is made of singular values: rank, condition, least squares, the inverse of Moore and Penrose.

How many singular values count is decided inside the program: those that do not are masked, not cut off.
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from linnet.algorithms import qr as qr_programs
from linnet.algorithms.whole import giving
from linnet.arrays.elements.core import NUMPY, ArrayBase
from linnet.arrays.elements.undecided_arrays import Either, late
from linnet.arrays.expression.argument_names import named_as
from linnet.arrays.linalg.eigen_and_singular import eigh_of, eigvalsh_of, svd_of, svdvals_of
from linnet.arrays.linalg.factorisations import in_leaves, is_short, qr
from linnet.arrays.linalg.linear_systems import inverse_or_flag
from linnet.arrays.linalg.matrices import (
    adjoint,
    by_lapack,
    cut,
    floating,
    in_tiles,
    is_whole,
    linear,
    made,
    matrices,
    need_square,
    number,
    operand,
    over_stack,
)
from linnet.engines import Engine
from linnet.errors import InputError, LinAlgError
from linnet.events import Sink
from linnet.kernels.linalg.pivots import real
from linnet.kernels.linalg.whole_matrices import condition_from, counting, inverted
from linnet.tiles import Layout
from linnet.workers.result_types import arranged_in

T = TypeVar("T")
"""Arrays of either kind."""


@arranged_in
class LstsqResult(NamedTuple, Generic[T]):
    """What `lstsq` returns."""

    x: T
    """The solution of least norm."""
    residuals: T
    """Sums of squares of b - A·x, one for each column of b; empty unless m > n = rank. Of lazy arrays, its
    shape depends on values: asking for it computes the rank."""
    rank: T
    """How many singular values count."""
    singular_values: T
    """Of A, descending."""


# ---- rank and condition


@linear(np.linalg.matrix_rank)
@named_as(np.linalg.matrix_rank)
def matrix_rank(
    a: Any, /, tol: Any = None, hermitian: bool = False, *, rtol: Any = None, tile: int | None = None
) -> Any:
    """How many singular values are above the tolerance.

    `tol` is absolute; `rtol` is relative to the largest singular value, and by default max(M, N) times
    the rounding of the dtype.

    Parameters
    ----------
    a : matrix, or a stack of them
    tol : number, optional; singular values above it count
    hermitian : whether `a` is Hermitian
    rtol : number, optional; the tolerance as a part of the largest singular value
    tile : int, optional; length of the tiles to compute with; by default it is chosen

    Returns
    -------
    number, or an array of them for a stack

    Examples
    --------
    >>> int(matrix_rank(np.outer([1.0, 2.0], [3.0, 4.0])))
    1
    """
    if tol is not None and rtol is not None:
        raise InputError("tol and rtol are both given; give one of them")
    if operand(a).ndim < 2:
        return np.any(operand(a)).astype(np.int64)
    stack = matrices(a)
    if hermitian:
        need_square(stack, "matrix_rank with hermitian=True")
    relative = _rounding(stack) if rtol is None else rtol
    if is_whole(stack, tile) and isinstance(relative, float | int) and isinstance(tol, float | int | None):
        like = giving(("O", (1,), np.dtype(np.int64)))
        options = {"tol": tol, "relative": relative, "hermitian": bool(hermitian)}
        return number(by_lapack("rank", like, stack, **options)["O"])
    values = abs(eigvalsh_of(stack, tile)) if hermitian else svdvals_of(stack, tile)
    if tol is None:
        return counting(values, _for_each(relative)).sum(axis=-1)
    return (values > _for_each(tol)).sum(axis=-1)


def _rounding(stack: Any) -> float:
    """The share of the largest singular value up to which others count as zero, if nobody says."""
    return float(np.finfo(stack.dtype).eps) * max(stack.shape[-2:])


def _for_each(limit: Any) -> Any:
    """A limit, or one for each matrix of a stack, beside their values."""
    return limit if isinstance(limit, float | int) else operand(limit)[..., None]


@linear(np.linalg.cond)
def cond(x: Any, p: float | str | None = None, *, tile: int | None = None) -> Any:
    """The condition number of a matrix in the norm `p`; infinite for a singular one.

    `None` and 2 (and -2, its inverse) go by singular values, for matrices of any shape; other
    norms by the inverse, for square ones.

    Parameters
    ----------
    x : matrix, or a stack of them
    p : None (2), 1, -1, 2, -2, inf, -inf or "fro"; the norm
    tile : int, optional; length of the tiles to compute with; by default it is chosen

    Returns
    -------
    number, or an array of them for a stack

    Examples
    --------
    >>> float(cond([[1.0, 0.0], [0.0, 1e-3]])), float(cond([[1.0, 1.0], [1.0, 1.0]], 1))
    (1000.0, inf)
    """
    from linnet.arrays.linalg.norms import norm

    stack = matrices(x, "x")
    if p in (None, 2, -2):
        if 0 in stack.shape[-2:]:
            raise LinAlgError("cond is not defined on empty arrays")
        if is_whole(stack, tile):
            like = giving(("O", (1,), real(stack.dtype)))
            return number(by_lapack("cond", like, stack, smallest=p == -2)["O"])
        return number(condition_from(svdvals_of(stack, tile), p == -2))
    need_square(stack, f"cond with p={p!r}")
    if stack.ndim > 2:
        return over_stack(lambda a: cond(a, p, tile=tile), stack)
    inverse, singular = inverse_or_flag(stack, tile)
    found = norm(stack, p) * norm(inverse, p)
    return np.where(singular, found.dtype.type(np.inf), found)


# ---- least squares


def lstsq(
    a: Any,
    b: Any,
    rcond: float | None = None,
    *,
    tile: int | None = None,
    engine: Engine | None = None,
    events: Sink | None = None,
) -> LstsqResult[Any]:
    """`x` that minimises ‖A·x − b‖, and of these the shortest; `b` is a vector or a matrix.

    Singular values below `rcond` times the largest count as zero; by default that is the rounding
    of the dtype times max(m, n). As in LAPACK, 0 or less, and 1 or more, mean the rounding alone.

    Parameters
    ----------
    a : matrix of any shape
    b : right-hand sides: a vector or a matrix
    rcond : float, optional; singular values smaller than this part of the largest count as zero
    tile : int, optional; length of the tiles to compute with; by default it is chosen
    engine, events : optional; what runs it, and who is told

    Returns
    -------
    LstsqResult with `x`, `residuals`, `rank` and `singular_values`

    Examples
    --------
    >>> a = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> x, residuals, rank, s = lstsq(a, np.array([1.0, 3.0, 5.0]))
    >>> x.round(12), rank
    (array([1., 2.]), np.int64(2))
    """
    given = {"engine": engine, "events": events}
    x, sums, rank, values = _least_squares(a, b, rcond, tile=tile, **given)
    m, n = a.shape if hasattr(a, "shape") else operand(a).shape
    if not isinstance(x, ArrayBase):
        return LstsqResult(x, sums if rank == n < m else np.empty(0, values.dtype), rank, values)
    return LstsqResult(x, late(Either(rank, n if m > n else None, sums)), rank, values)


NUMPY[np.linalg.lstsq] = lstsq


@linear(called="lstsq")
def _least_squares(a: Any, b: Any, rcond: float | None, tile: int | None) -> tuple[Any, Any, Any, Any]:
    """The solution, the sums of squares of what it leaves, the rank, and the singular values."""
    left, right = operand(a), operand(b)
    if left.ndim != 2:
        raise LinAlgError(f"least squares take a matrix, got an array of shape {left.shape}")
    if right.ndim not in (1, 2) or right.shape[0] != left.shape[0]:
        raise LinAlgError(
            f"b must be a vector or a matrix with as many rows as a, {left.shape[0]}; "
            f"got an array of shape {right.shape}"
        )
    left, right = floating(left, right), floating(right, left)
    m, n = left.shape
    sides = right[:, None] if right.ndim == 1 else right
    eps = float(np.finfo(left.dtype).eps)
    relative = _rounding(left) if rcond is None else float(rcond) if 0 < rcond < 1 else eps
    if is_whole(left, tile):
        k, dtype = sides.shape[1], left.dtype
        like = giving(
            ("X", (n, k), dtype),
            ("sums", (k,), real(dtype)),
            ("rank", (1,), np.dtype(np.int64)),
            ("values", (min(m, n),), real(dtype)),
        )
        found = by_lapack("lstsq", like, left, sides, relative=relative)
        x, sums, rank, values = (found[name] for name in ("X", "sums", "rank", "values"))
    else:
        x, values = (_shortest if m < n else _closest)(left, sides, relative, tile)
        sums = (abs(sides - left @ x) ** 2).sum(axis=0)
        rank = counting(values, relative).sum(keepdims=True)
    return number(x) if right.ndim == 1 else x, sums, number(rank), values


def _closest(a: Any, b: Any, relative: float, tile: int | None) -> tuple[Any, Any]:
    """The solution for a matrix at least as tall as wide, and its singular values."""
    n = a.shape[1]
    r, projected = _projected(a, b, tile)
    u, values, vh = svd_of(r, False, None)
    inverse = inverted(values, counting(values, relative))
    return adjoint(vh) @ (inverse[:, None] * (adjoint(u) @ projected[:n])), values


def _shortest(a: Any, b: Any, relative: float, tile: int | None) -> tuple[Any, Any]:
    """The same for a matrix that is wider than tall: its adjoint is `Q·R`."""
    q, r = qr(adjoint(a), tile=tile)
    u, values, vh = svd_of(r, False, None)
    inverse = inverted(values, counting(values, relative))
    return q @ (u @ (inverse[:, None] * (vh @ b))), values


def _projected(a: Any, b: Any, tile: int | None) -> tuple[Any, Any]:
    """`R` and `Qᴴ·B` of `A = Q·R`; Q is applied, never formed."""
    if is_short(a, tile):
        q, r = qr(a)
        return r, adjoint(q) @ b
    skinny = qr_programs.is_skinny(a.shape)
    matrix = in_leaves(a, tile) if skinny else cut(a, "qr", tile)
    rows = matrix.layout.boundaries[0]
    width = 1024 if skinny else max(1, rows[1])
    columns = Layout.regular((b.shape[1],), width).boundaries[0]
    right = in_tiles(b.__node__, Layout((rows, columns)))
    found = made(qr_programs.projection(matrix.layout, right.layout, a.dtype, skinny=skinny), matrix, right)
    return found["R"], found["X"]


@linear(np.linalg.pinv)
def pinv(
    a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None, tile: int | None = None
) -> Any:
    """The Moore-Penrose inverse `A⁺`, n×m.

    Singular values below `rtol` (or `rcond`, the same) times the largest count as zero; by default that is
    the rounding of the dtype times max(m, n). For a stack of matrices it may be one number for each. With
    `hermitian`, the matrix is taken for Hermitian, its lower triangle is read, and eigenvalues
    stand for singular values.

    Parameters
    ----------
    a : matrix, or a stack of them
    rcond, rtol : number, optional; singular values smaller than this part of the largest count as zero
    hermitian : whether `a` is Hermitian
    tile : int, optional; length of the tiles to compute with; by default it is chosen

    Returns
    -------
    array

    Examples
    --------
    >>> pinv(np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])).round(12)
    array([[1. , 0. , 0. ],
           [0. , 0.5, 0. ]])
    """
    if rcond is not None and rtol is not None:
        raise InputError("rcond and rtol are both given; give one of them")
    rtol = rcond if rtol is None else rtol
    stack = matrices(a)
    if hermitian:
        need_square(stack, "pinv with hermitian=True")
    if 0 in stack.shape:
        return np.broadcast_to(operand(np.zeros((), stack.dtype)), (*stack.shape[:-2], *stack.shape[:-3:-1]))
    relative = _rounding(stack) if rtol is None else rtol
    if is_whole(stack, tile) and isinstance(relative, float | int):
        like = giving(("X", stack.shape[:-3:-1], stack.dtype))
        return by_lapack("pinv", like, stack, relative=relative, hermitian=bool(hermitian))["X"]
    relative = _for_each(relative)
    if hermitian:
        values, vectors = eigh_of(stack, tile)
        inverse = inverted(values, counting(abs(values), relative))
        return (vectors * inverse[..., None, :]) @ adjoint(vectors)
    u, values, vh = svd_of(stack, False, tile)
    inverse = inverted(values, counting(values, relative))
    return adjoint(vh) @ (inverse[..., :, None] * adjoint(u))
