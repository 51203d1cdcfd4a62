"""Systems of lazy arrays: triangles, solutions, inverses, determinants, powers of matrices."""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from linnet.algorithms import lu as lu_programs
from linnet.algorithms import triangular as triangular_programs
from linnet.algorithms.recipe import Recipe
from linnet.algorithms.whole import giving
from linnet.arrays.elements.core import as_node, wrap
from linnet.arrays.elements.elementwise import apply
from linnet.arrays.expression.builders import recut
from linnet.arrays.functions import contractions
from linnet.arrays.functions.positions_in_grids import eye
from linnet.arrays.linalg.factorisations import exchanged
from linnet.arrays.linalg.matrices import (
    by_lapack,
    cut,
    cut_like_rows,
    factored,
    floating,
    is_whole,
    linear,
    made,
    matrices,
    need_square,
    number,
    operand,
    over_stack,
)
from linnet.errors import InputError, LinAlgError
from linnet.kernels.linalg.whole_matrices import probes
from linnet.tiles import Layout
from linnet.workers.result_types import arranged_in

T = TypeVar("T")
"""Arrays of either kind."""


@arranged_in
class SlogdetResult(NamedTuple, Generic[T]):
    """What `slogdet` returns."""

    sign: T
    """A number of modulus 1, or 0 for a singular matrix."""
    logabsdet: T
    """The logarithm of the modulus; minus infinity for a singular matrix."""


# ---- triangles


@linear()
def solve_triangular(
    a: Any,
    b: Any,
    *,
    lower: bool = False,
    trans: int | str = 0,
    unit_diagonal: bool = False,
    side: str = "left",
    tile: int | None = None,
) -> Any:
    """`X` with `op(A)·X = B` (side="left") or `X·op(A) = B` (side="right"), for a triangular `A`.

    `op` is nothing (trans=0 or "N"), the transpose (1 or "T") or its conjugate (2 or "C"). Only
    the triangle is read; with `unit_diagonal` not even its diagonal. `b` may be a vector.

    Parameters
    ----------
    a : triangle
    b : right-hand sides
    lower : which half of `a` is read
    trans : 0 or "N", 1 or "T", 2 or "C"; what is done with it before
    unit_diagonal : whether its diagonal counts as ones
    side : "left" or "right"; where the triangle is
    tile : int, optional; length of the tiles to compute with; by default it is chosen

    Returns
    -------
    array of the shape of `b`

    Examples
    --------
    >>> solve_triangular([[2.0, 0.0], [1.0, 4.0]], [2.0, 9.0], lower=True)
    array([1., 2.])
    >>> solve_triangular([[2.0, 1.0], [0.0, 4.0]], [[2.0, 9.0]], side="right")
    array([[1., 2.]])
    """
    if side not in ("left", "right"):
        raise InputError(f"side {side!r} is not known; use 'left' or 'right'")
    return _triangular(a, b, lower, trans, unit_diagonal, side, tile)


def _triangular(
    a: Any, b: Any, lower: bool, trans: int | str, unit: bool, side: str, tile: int | None
) -> Any:
    matrix, given = matrices(a), operand(b)
    need_square(matrix, "solve_triangular")
    operation = operation_of(trans)
    if given.ndim == 0:
        raise LinAlgError("b must be a vector or a matrix, got a number")
    if given.ndim == 1:
        line = given[:, None] if side == "left" else given[None, :]
        found = _triangular(matrix, line, lower, trans, unit, side, tile)
        return number(found if side == "left" else found.mT)
    needed = given.shape[-2 if side == "left" else -1]
    if needed != matrix.shape[-1]:
        raise LinAlgError(
            f"the triangle is {matrix.shape[-1]}×{matrix.shape[-1]} but b has {needed} "
            f"{'rows' if side == 'left' else 'columns'}; they must be as many"
        )
    # X·A = B is Aᵀ·Xᵀ = Bᵀ.
    if side == "right":
        given = given.mT
    if (operation != "N") != (side == "right"):
        matrix, lower = matrix.mT, not lower
    if operation == "C" and matrix.dtype.kind == "c":
        matrix = apply(np.conjugate, matrix)
    matrix, given = floating(matrix, given), floating(given, matrix)
    found = _substituted(matrix, given, lower, unit, tile)
    return found.mT if side == "right" else found


def _substituted(matrix: Any, given: Any, lower: bool, unit: bool, tile: int | None) -> Any:
    if matrix.ndim > 2 or given.ndim > 2:
        matrix, given = broadcast_stacks(matrix, given)
    if is_whole(matrix, tile) or 0 in given.shape:
        like = giving(("X", given.shape[-2:], given.dtype))
        return by_lapack("solve_triangular", like, matrix, given, lower=bool(lower), unit=bool(unit))["X"]
    if matrix.ndim > 2:
        return over_stack(lambda x, y: _substituted(x, y, lower, unit, tile), matrix, given)
    triangle = cut(matrix, "triangular", tile)
    right = cut_like_rows(given, triangle)
    recipe = triangular_programs.solution(triangle.layout, right.layout, right.dtype, lower=lower, unit=unit)
    return made(recipe, triangle, right)["X"]


def operation_of(trans: int | str) -> str:
    """N, T or C, from what callers write."""
    known = {0: "N", 1: "T", 2: "C", "N": "N", "T": "T", "C": "C"}
    if trans not in known:
        raise InputError(f"trans {trans!r} is not known; use 0 or 'N', 1 or 'T', 2 or 'C'")
    return known[trans]


def broadcast_stacks(a: Any, b: Any) -> tuple[Any, Any]:
    """Two stacks of matrices of one length, as NumPy broadcasts their leading axes."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return np.broadcast_to(a, (*batch, *a.shape[-2:])), np.broadcast_to(b, (*batch, *b.shape[-2:]))


# ---- from a factorisation


@linear()
def cho_solve(factors: tuple[Any, bool], b: Any, *, tile: int | None = None) -> Any:
    """`X` with `A·X = B`, from `cho_factor(A)`.

    Parameters
    ----------
    factors : what `cho_factor` gives
    b : right-hand sides
    tile : int, optional; length of the tiles to compute with; by default it is chosen

    Returns
    -------
    array of the shape of `b`

    Examples
    --------
    >>> from linnet.arrays.linalg.factorisations import cho_factor
    >>> cho_solve(cho_factor([[4.0, 2.0], [2.0, 5.0]]), [8.0, 8.0])
    array([1.5, 1. ])
    """
    c, lower = factors
    half = _triangular(c, b, lower, "N" if lower else "C", False, "left", tile)
    return _triangular(c, half, lower, "C" if lower else "N", False, "left", tile)


@linear()
def lu_solve(factors: tuple[Any, Any], b: Any, *, trans: int | str = 0, tile: int | None = None) -> Any:
    """`X` with `op(A)·X = B`, from `lu_factor(A)`; `op` as in `solve_triangular`.

    Parameters
    ----------
    factors : what `lu_factor` gives
    b : right-hand sides
    trans : 0 or "N", 1 or "T", 2 or "C"; what is done with the matrix before
    tile : int, optional; length of the tiles to compute with; by default it is chosen

    Returns
    -------
    array of the shape of `b`

    Examples
    --------
    >>> from linnet.arrays.linalg.factorisations import lu_factor
    >>> lu_solve(lu_factor([[0.0, 2.0], [4.0, 1.0]]), [2.0, 9.0])
    array([2., 1.])
    """
    packed, piv = matrices(factors[0], "lu"), operand(factors[1])
    need_square(packed, "lu_solve")
    given = operand(b)
    if packed.ndim > 2:
        return _over_factors(packed, piv, given, trans, tile)
    plain = operation_of(trans) == "N"
    half = exchanged(given, piv, False, tile) if plain else given
    for lower in (True, False) if plain else (False, True):
        half = _triangular(packed, half, lower, trans, lower, "left", tile)
    return half if plain else exchanged(half, piv, True, tile)


def _over_factors(packed: Any, piv: Any, given: Any, trans: int | str, tile: int | None) -> Any:
    sides = given[:, None] if given.ndim == 1 else given
    batch = np.broadcast_shapes(packed.shape[:-2], sides.shape[:-2])
    found = over_stack(
        lambda x, p, y: lu_solve((x, p[:, 0]), y, trans=trans, tile=tile),
        np.broadcast_to(packed, (*batch, *packed.shape[-2:])),
        np.broadcast_to(piv[..., None], (*batch, piv.shape[-1], 1)),
        np.broadcast_to(sides, (*batch, *sides.shape[-2:])),
    )
    return number(found) if given.ndim == 1 else found


# ---- systems


@linear(np.linalg.solve)
def solve(a: Any, b: Any, *, tile: int | None = None) -> Any:
    """`X` with `A·X = B`, for a matrix or a stack of them; `b` with one axis is a vector.

    A singular matrix is an error; one that is singular to working precision, by an estimate of its
    condition, gives a `ConditionWarning` (small matrices in stacks are not judged).

    The system is solved in its own dtype, as LAPACK does. NumPy solves float32 in float64 and
    rounds the result: for its digits, at twice the time, give float64.

    Parameters
    ----------
    a : square matrix, or a stack of them
    b : right-hand sides: a vector, a matrix, or a stack
    tile : int, optional; length of the tiles to compute with; by default it is chosen

    Returns
    -------
    array of the shape of `b`; a singular matrix raises `LinAlgError`

    Examples
    --------
    >>> solve([[0.0, 2.0], [4.0, 1.0]], [2.0, 9.0])
    array([2., 1.])
    """
    matrix, given = matrices(a), operand(b)
    need_square(matrix, "solve")
    if given.ndim == 0:
        raise LinAlgError("b must be a vector or a matrix, got a number")
    if given.shape[-1 if given.ndim == 1 else -2] != matrix.shape[-1]:
        raise LinAlgError(
            f"a is {matrix.shape[-2]}×{matrix.shape[-1]} but b has the shape {given.shape}; "
            f"b needs {matrix.shape[-1]} rows"
        )
    if given.ndim == 1:
        return number(_solved(matrix, given[:, None], tile))
    return _solved(matrix, given, tile)


def _solved(matrix: Any, given: Any, tile: int | None) -> Any:
    matrix, given = floating(matrix, given), floating(given, matrix)
    if matrix.ndim > 2 or given.ndim > 2:
        matrix, given = broadcast_stacks(matrix, given)
    if is_whole(matrix, tile) or 0 in given.shape:
        return by_lapack("solve", _judged(given), matrix, given)["X"]
    if matrix.ndim > 2:
        return over_stack(lambda x, y: _solved(x, y, tile), matrix, given)
    return _by_elimination(matrix, given, tile)["X"]


def _by_elimination(matrix: Any, given: Any, tile: int | None, *, refuse: bool = True) -> dict[str, Any]:
    left = cut(matrix, "lu", tile)
    right = cut_like_rows(given, left)
    rows = left.layout.boundaries[0]
    judges = recut(as_node(probes(rows[-1], left.dtype)), Layout((rows, (0, 2))))
    recipe = lu_programs.solution(left.layout, right.layout, right.dtype, refuse=refuse)
    return made(recipe, left, right, judges)


@linear(np.linalg.inv)
def inv(a: Any, *, tile: int | None = None) -> Any:
    """The inverse of a matrix, or of each in a stack; a singular matrix is an error.

    Parameters
    ----------
    a : square matrix, or a stack of them
    tile : int, optional; length of the tiles to compute with; by default it is chosen

    Returns
    -------
    array of the shape of `a`; a singular matrix raises `LinAlgError`

    Examples
    --------
    >>> inv([[0.0, 2.0], [4.0, 0.0]])
    array([[0.  , 0.25],
           [0.5 , 0.  ]])
    """
    matrix = matrices(a)
    need_square(matrix, "inv")
    return _inverse(matrix, tile)


def _inverse(matrix: Any, tile: int | None) -> Any:
    if is_whole(matrix, tile):
        return by_lapack("inv", _judged(matrix), matrix)["X"]
    return _solved(matrix, eye(matrix.shape[-1], dtype=matrix.dtype), tile)


def _judged(like: Any) -> Recipe:
    """Solutions of a system, and its condition."""
    made = giving(("X", like.shape[-2:], like.dtype), ("condition", (1,), np.dtype(np.float64)))
    return replace(made, condition="condition")


def inverse_or_flag(matrix: Any, tile: int | None) -> tuple[Any, Any]:
    """The inverse of a matrix, and whether it has none: then it is anything."""
    found = _by_elimination(matrix, eye(matrix.shape[-1], dtype=matrix.dtype), tile, refuse=False)
    return found["X"], number(found["singular"]) != 0


# ---- determinants


@linear(np.linalg.det)
def det(a: Any, *, tile: int | None = None) -> Any:
    """The determinant of a matrix, or of each in a stack; 0 for a singular one.

    Nothing overflows on the way: only a determinant that is itself out of range is infinite.

    Parameters
    ----------
    a : square matrix, or a stack of them
    tile : int, optional; length of the tiles to compute with; by default it is chosen

    Returns
    -------
    number, or an array of them for a stack

    Examples
    --------
    >>> round(float(det([[0.0, 2.0], [4.0, 1.0]])), 12)
    -8.0
    """
    stack = matrices(a)
    need_square(stack, "det")
    return number(factored(stack, tile, "lu", lu_programs.determinant_of, "det")["det"])


@linear(np.linalg.slogdet)
def slogdet(a: Any, *, tile: int | None = None) -> SlogdetResult[Any]:
    """The sign of the determinant and the logarithm of its modulus, which never overflow.

    Parameters
    ----------
    a : square matrix, or a stack of them
    tile : int, optional; length of the tiles to compute with; by default it is chosen

    Returns
    -------
    SlogdetResult with `sign` and `logabsdet`

    Examples
    --------
    >>> sign, logabsdet = slogdet(np.eye(400) * 1e-5)
    >>> float(sign), float(round(logabsdet, 3))
    (1.0, -4605.17)
    """
    stack = matrices(a)
    need_square(stack, "slogdet")
    found = factored(stack, tile, "lu", lu_programs.log_determinant_of, "slogdet")
    return SlogdetResult(number(found["sign"]), number(found["logabsdet"]))


# ---- powers


@linear(np.linalg.matrix_power)
def matrix_power(a: Any, n: int, *, tile: int | None = None) -> Any:
    """`Aⁿ` for a whole number `n`; of the inverse if `n` is negative. Integers stay integers.

    Parameters
    ----------
    a : square matrix, or a stack of them
    n : int
    tile : int, optional; length of the tiles to compute with; by default it is chosen

    Returns
    -------
    array of the shape of `a`

    Examples
    --------
    >>> matrix_power([[1, 1], [1, 0]], 10)
    array([[89, 55],
           [55, 34]])
    """
    try:
        n = operator.index(n)
    except TypeError:
        raise InputError(f"a power of a matrix is a whole number, got {n!r}") from None
    array = operand(a)
    if array.ndim < 2 or array.dtype.kind not in "biu" or n < 0:
        array = matrices(a)
    need_square(array, "matrix_power")
    if n < 0:
        array, n = _inverse(array, tile), -n
    if is_whole(array, tile):
        return by_lapack("power", giving(("X", array.shape[-2:], array.dtype)), array, n=n)["X"]
    if n == 0:
        return np.broadcast_to(eye(array.shape[-1], dtype=array.dtype), array.shape)
    base = wrap(cut(array, "gemm", tile)) if array.ndim == 2 else array
    power = None
    while n:
        if n % 2:
            power = base if power is None else contractions.matmul(power, base)
        n //= 2
        if n:
            base = contractions.matmul(base, base)
    return power
