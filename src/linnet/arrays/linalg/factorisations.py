"""Factorisations of lazy arrays: Cholesky, QR, LU.

Each function decides how its matrix is cut, and gives lazy results of a recipe; see `matrices` for what they
share. What is wrong with a shape is refused at the call, what is wrong with numbers when they are computed.
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from linnet.algorithms import cholesky as cholesky_programs
from linnet.algorithms import lu as lu_programs
from linnet.algorithms import qr as qr_programs
from linnet.algorithms import triangular as triangular_programs
from linnet.algorithms.tuning import SHORTCUT
from linnet.algorithms.whole import giving
from linnet.arrays.elements.core import as_node, wrap
from linnet.arrays.elements.join_and_split import concatenate
from linnet.arrays.expression.builders import recut
from linnet.arrays.expression.chunking import whole as whole_layout
from linnet.arrays.functions.positions_in_grids import eye
from linnet.arrays.linalg.matrices import (
    adjoint,
    by_lapack,
    cut,
    cut_like_rows,
    factored,
    floating,
    in_tiles,
    is_own,
    is_whole,
    linear,
    made,
    matrices,
    need_room_for_square,
    need_square,
    number,
    operand,
    over_stack,
)
from linnet.errors import InputError, LinAlgError
from linnet.kernels.linalg.pivots import real
from linnet.tiles import Layout
from linnet.workers.result_types import arranged_in

_INT = np.dtype(np.int64)


T = TypeVar("T")
"""Arrays of either kind."""


@arranged_in
class QRResult(NamedTuple, Generic[T]):
    """`A = Q·R`."""

    Q: T
    R: Any


@arranged_in
class LUResult(NamedTuple, Generic[T]):
    """What `lu` returns."""

    p: T
    """The permutation, as numbers of rows."""
    l: T
    """Lower triangular (trapezoidal), with ones on the diagonal."""
    u: T
    """Upper triangular (trapezoidal)."""


@arranged_in
class LUPermuted(NamedTuple, Generic[T]):
    """What `lu` returns with `permute_l`."""

    l: T
    """L with its rows in the order of those of the matrix."""
    u: T
    """Upper triangular (trapezoidal)."""


@arranged_in
class LUFactors(NamedTuple, Generic[T]):
    """A factorisation to keep, laid out as LAPACK and SciPy do."""

    lu: T
    """U, and L below its diagonal."""
    piv: T
    """Row i was exchanged with row piv[i], for i = 0, 1, ..."""


class CholeskyFactors(NamedTuple, Generic[T]):
    """A factorisation to keep, laid out as SciPy does."""

    c: T
    """The factor; what is in its other half is not to be read."""
    lower: bool
    """Whether it is the lower one, L with A = L·Lᴴ, or the upper one, U with A = Uᴴ·U."""


# ---- Cholesky


@linear(np.linalg.cholesky)
def cholesky(a: Any, *, upper: bool = False, lower: bool | None = None, tile: int | None = None) -> Any:
    """The Cholesky factor of a Hermitian positive definite matrix, or of each in a stack.

    It is the lower one, `L` with `L·Lᴴ = A`, or with `upper` its conjugate transpose. Only the lower
    triangle of `a` is read. SciPy's `lower=False` is `upper=True` for the upper triangle of `a`: only that is
    read then.

    Parameters
    ----------
    a : Hermitian positive definite matrix, or a stack of them
    upper : whether to give the upper factor, the adjoint of the lower one
    lower : the same, the other way round
    tile : int, optional; length of the tiles to compute with; by default it is chosen

    Returns
    -------
    array of the shape of `a`

    Examples
    --------
    >>> cholesky(np.array([[4.0, 2.0], [2.0, 5.0]]), upper=True)
    array([[2., 1.],
           [0., 2.]])
    """
    stack = matrices(a)
    if stack.shape[-1] != stack.shape[-2]:
        raise LinAlgError(f"Cholesky takes a square matrix; got {stack.shape[-2]}×{stack.shape[-1]}")
    if upper and lower is not None:
        raise InputError(f"upper=True (as in NumPy) and lower={lower} (as in SciPy) are given; leave one out")
    if lower is False:
        return cho_factor(stack, tile=tile).c
    factor = _cholesky(stack, tile)
    return adjoint(factor) if upper else factor


def _cholesky(stack: Any, tile: int | None) -> Any:
    return factored(stack, tile, "cholesky", cholesky_programs.recipe, "cholesky")["O"]


@linear()
def cho_factor(a: Any, *, lower: bool = False, tile: int | None = None) -> CholeskyFactors[Any]:
    """The Cholesky factorisation of a Hermitian positive definite matrix, to be used by `cho_solve`.

    Only one triangle of `a` is read: the lower one with `lower`, else the upper one.

    Parameters
    ----------
    a : Hermitian positive definite matrix
    lower : which triangle is kept
    tile : int, optional; length of the tiles to compute with; by default it is chosen

    Returns
    -------
    CholeskyFactors, for `cho_solve`

    Examples
    --------
    >>> cho_factor([[4.0, 2.0], [2.0, 5.0]], lower=True).c
    array([[2., 0.],
           [1., 2.]])
    """
    stack = matrices(a)
    need_square(stack, "cho_factor")
    # Aᵀ has the upper triangle of A as its lower one, and its factor is the transpose of U.
    return CholeskyFactors(_cholesky(stack, tile) if lower else _cholesky(stack.mT, tile).mT, lower)


# ---- QR


@linear(np.linalg.qr)
def qr(a: Any, mode: str = "reduced", *, tile: int | None = None) -> Any:
    """`Q` with orthonormal columns and upper triangular `R`, with `Q·R = A`.

    `mode` is "reduced" (`Q` is m×k and `R` k×n, k = min(m, n)), "complete" (`Q` is m×m and `R` m×n),
    or "r" (`R` alone, k×n). A stack of matrices (..., m, n) is factorised one by one. The signs of
    the rows of `R` are not determined.

    Parameters
    ----------
    a : matrix of any shape, or a stack of them
    mode : "reduced", "complete" or "r"
    tile : int, optional; length of the tiles to compute with; by default it is chosen

    Returns
    -------
    QRResult with `Q` and `R`; with mode "r" the triangle alone

    Examples
    --------
    >>> a = np.arange(12.0).reshape(4, 3) + np.eye(4, 3)
    >>> q, r = qr(a)
    >>> q.shape, r.shape, bool(np.allclose(q @ r, a))
    ((4, 3), (3, 3), True)
    >>> qr(a, "complete").Q.shape
    (4, 4)
    """
    if mode not in ("reduced", "complete", "r"):
        raise InputError(f"mode {mode!r} is not known; use 'reduced', 'complete' or 'r'")
    return _qr(matrices(a), mode, tile)


def _qr(stack: Any, mode: str, tile: int | None) -> Any:
    m, n = stack.shape[-2:]
    full = mode == "complete" and m > n
    if is_short(stack, tile):
        like = giving(("O", (m, m), stack.dtype), ("R", (m, n), stack.dtype))
        if not full:
            recipe = qr_programs.triangle if mode == "r" else qr_programs.factors
            like = recipe(whole_layout(stack.shape[-2:]), stack.dtype, skinny=False)
        found = by_lapack({"r": "qr_r"}.get(mode, "qr_complete" if full else "qr"), like, stack)
    elif stack.ndim > 2:
        if mode == "r":
            return over_stack(lambda each: _qr(each, mode, tile), stack)
        return QRResult(**over_stack(lambda each: _qr(each, mode, tile)._asdict(), stack))
    elif full:
        return _complete(stack, tile)
    else:
        skinny = qr_programs.is_skinny(stack.shape)
        matrix = in_leaves(stack, tile) if skinny else cut(stack, "qr", tile)
        recipe = qr_programs.triangle if mode == "r" else qr_programs.factors
        found = made(recipe(matrix.layout, stack.dtype, skinny=skinny), matrix)
    return found["R"] if mode == "r" else QRResult(found["O"], found["R"])


def is_short(stack: Any, tile: int | None) -> bool:
    """Whether LAPACK factors matrices whole because they have few elements, though perhaps many rows."""
    few = stack.shape[-1] * stack.shape[-2] < SHORTCUT**2
    return is_whole(stack, tile) or (tile is None and not is_own(stack.__node__) and few)


def in_leaves(a: Any, tile: int | None) -> Any:
    """A skinny matrix in one column of tiles."""
    return in_tiles(a.__node__, qr_programs.leaves(a.__node__.layout, tile=tile, own=is_own(a.__node__)))


def _complete(a: Any, tile: int | None) -> QRResult[Any]:
    """A square Q: its last columns are those of the identity, multiplied by it."""
    m, n = a.shape
    what = "the complete Q of a matrix of {:,} rows"
    need_room_for_square(m, a.itemsize, what, "use mode='reduced'")
    matrix = cut(a, "qr", tile)
    rest = cut_like_rows(eye(m, m - n, k=-n, dtype=a.dtype), matrix)
    found = made(qr_programs.complete(matrix.layout, rest.layout, a.dtype), matrix, rest)
    zeros = wrap(as_node(np.zeros((), a.dtype)))
    lower = np.broadcast_to(zeros, (m - n, n))
    return QRResult(concatenate([found["O"], found["X"]], axis=1), concatenate([found["R"], lower], axis=0))


# ---- LU


@linear()
def lu(
    a: Any, permute_l: bool = False, *, p_indices: bool | None = None, tile: int | None = None
) -> LUResult[Any] | LUPermuted[Any]:
    """`p`, `L`, `U` with `A[p] = L·U`, for a matrix of any shape or a stack of them.

    A singular matrix is factored too: U then has zeros on its diagonal.

    The other options are SciPy's. With `permute_l` the rows of `L` are back in their places: `L·U = A`, and
    there is no `p`. Where `p_indices` is given, `p` is as SciPy has it: with True row numbers for which
    `A = L[p]·U`, with False the matrix `P` with `A = P·L·U`.

    Parameters
    ----------
    a : matrix of any shape, or a stack of them
    permute_l : whether the rows of L are put back, and `p` is left out
    p_indices : bool, optional; whether `p` is positions, and not a matrix
    tile : int, optional; length of the tiles to compute with; by default it is chosen

    Returns
    -------
    LUResult with `p`, `l`, `u`; or LUPermuted with `l`, `u`

    Examples
    --------
    >>> p, l, u = lu([[0.0, 2.0], [4.0, 1.0]])
    >>> p, l, u
    (array([1, 0]), array([[1., 0.],
           [0., 1.]]), array([[4., 1.],
           [0., 2.]]))
    """
    stack = matrices(a)
    m, n = stack.shape[-2:]
    k, dtype = min(m, n), stack.dtype
    if is_whole(stack, tile) and not permute_l and p_indices is None:
        like = giving(("p", (m,), np.dtype(np.int64)), ("l", (m, k), dtype), ("u", (k, n), dtype))
        return LUResult(**by_lapack("lu_parts", like, stack))
    packed, piv, p = _packed(stack, tile)
    lower = np.tril(packed[..., :k], -1) + eye(m, k, dtype=dtype)
    upper = np.triu(packed[..., :k, :])
    if permute_l:
        return LUPermuted(_put_back(lower, piv, tile), upper)
    if p_indices is None:
        return LUResult(p, lower, upper)
    places = np.argsort(p, axis=-1)
    if p_indices:
        return LUResult(places, lower, upper)
    rows = operand(np.arange(m))
    return LUResult((places[..., :, None] == rows).astype(real(dtype)), lower, upper)


def _put_back(lower: Any, piv: Any, tile: int | None) -> Any:
    """L with its rows where they were before the exchanges."""
    if lower.ndim > 2:
        return over_stack(lambda l, exchanges: _put_back(l, exchanges[:, 0], tile), lower, piv[..., None])
    return lower if 0 in lower.shape else exchanged(lower, piv, True, tile)


@linear()
def lu_factor(a: Any, *, tile: int | None = None) -> LUFactors[Any]:
    """The LU factorisation of a matrix, to be used again and again by `lu_solve`.

    Laid out as by `scipy.linalg.lu_factor`: either library can use the other's.

    Parameters
    ----------
    a : square matrix, or a stack of them
    tile : int, optional; length of the tiles to compute with; by default it is chosen

    Returns
    -------
    LUFactors, for `lu_solve`

    Examples
    --------
    >>> factors = lu_factor([[0.0, 2.0], [4.0, 1.0]])
    >>> factors.piv
    array([1, 1])
    """
    packed, piv, _ = _packed(matrices(a), tile)
    return LUFactors(packed, piv)


def _packed(stack: Any, tile: int | None) -> tuple[Any, Any, Any]:
    """U with L below its diagonal, the exchanges of rows, and the permutation."""
    found = factored(stack, tile, "lu", lu_programs.factors, "lu")
    return found["X"], found["piv"], found["p"]


def exchanged(b: Any, piv: Any, back: bool, tile: int | None) -> Any:
    """The rows of a right side after the exchanges of a factorisation, or before them."""
    if b.ndim == 1:
        return number(exchanged(b[:, None], piv, back, tile))
    exchanges = recut(piv.__node__, Layout(((0, piv.shape[0]),)))
    node = cut(floating(b), "triangular", tile)
    return made(triangular_programs.exchanged_rows(node.layout, node.dtype, back=back), node, exchanges)["X"]
