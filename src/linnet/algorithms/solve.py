"""Linear systems: elimination of the matrix and its right side together, then substitution.

`solve` puts the right side beside the matrix as further columns of tiles, so the forward
substitution is part of the factorisation and L is never put in order. `lu_solve` and
`cho_solve` use factors made before.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from linnet.algorithms.cholesky import cholesky
from linnet.algorithms.condition import PROBES, length, probes, warn_if_singular, with_probes, without_probes
from linnet.algorithms.lu import eliminate, order_of
from linnet.algorithms.running import run
from linnet.algorithms.stacks import (
    Array,
    as_floating,
    as_stack,
    cut,
    cut_like_rows,
    is_small,
    need_square,
    over_stack,
    transposed,
)
from linnet.algorithms.triangular import (
    broadcast_stacks,
    check_diagonal,
    solve_triangular,
    substituted,
    upper_tiles,
)
from linnet.engines import Engine
from linnet.errors import InputError, LinAlgError
from linnet.events import Sink
from linnet.kernels import chol
from linnet.kernels.fortran import promote
from linnet.kernels.lu import factor
from linnet.kernels.triangular import solve_with
from linnet.tiles import Layout, TiledArray

SINGULAR = "the matrix is singular: after exchanges of rows"


class CholeskyFactors(NamedTuple):
    """A factorisation to keep, laid out as SciPy does."""

    c: Array
    """The factor; what is in its other half is not to be read."""
    lower: bool
    """Whether it is the lower one, L with A = L·Lᴴ, or the upper one, U with A = Uᴴ·U."""


def solve(
    a: Any, b: Any, *, tile: int | None = None, engine: Engine | None = None, events: Sink | None = None
) -> Array:
    """`X` with `A·X = B`, for a matrix or a stack of them; `b` with one axis is a vector.

    A singular matrix is an error; one that is singular to working precision, by an estimate of its
    condition, gives a `ConditionWarning` (small matrices in stacks are not judged).

    The system is solved in its own dtype, as LAPACK does. NumPy solves float32 in float64 and
    rounds the result: for its digits, at twice the time, give float64.

    >>> solve([[0.0, 2.0], [4.0, 1.0]], [2.0, 9.0])
    array([2., 1.])
    """
    matrix = as_stack(a)
    need_square(matrix, "solve")
    given = b if isinstance(b, TiledArray) else as_floating(np.asarray(b))
    options: dict[str, Any] = {"tile": tile, "engine": engine, "events": events}
    if given.ndim == 0:
        raise LinAlgError("b must be a vector or a matrix, got a number")
    if given.shape[-1 if given.ndim == 1 else -2] != matrix.shape[-1]:
        raise LinAlgError(
            f"a is {matrix.shape[-2]}×{matrix.shape[-1]} but b has the shape {given.shape}; "
            f"b needs {matrix.shape[-1]} rows"
        )
    if matrix.ndim > 2 or given.ndim > 2:
        if not (isinstance(matrix, np.ndarray) and isinstance(given, np.ndarray)):
            raise InputError("a tiled matrix and a stack cannot be solved together; give both as arrays")
        solution = _solved_stacks(*broadcast_stacks(matrix, given), options)
        return solution[..., 0] if given.ndim == 1 else solution
    if given.ndim == 1:
        assert isinstance(given, np.ndarray)
        return solve(matrix, given[:, None], **options)[:, 0]
    if is_small(matrix, tile) or 0 in given.shape:
        return _solved_at_once(np.asarray(matrix), np.asarray(given))
    left = cut(matrix, tile, "lu", engine)
    return solved(left, cut_like_rows(given, left), engine, events).to_numpy()


def _solved_stacks(left: Array, right: Array, options: dict[str, Any]) -> Array:
    if is_small(left, options["tile"]):
        try:
            return np.linalg.solve(left, right)
        except np.linalg.LinAlgError:  # one by one, to say which
            return over_stack(_solved_at_once, left, right)
    return over_stack(lambda x, y: solve(x, y, **options), left, right)


def solved(left: TiledArray, right: TiledArray, engine: Engine | None, events: Sink | None) -> TiledArray:
    """`A⁻¹·B`, all in tiles."""
    if left.layout.boundaries[0] != left.layout.boundaries[1]:
        raise InputError(f"solve takes a matrix in square tiles on the diagonal; got {left}")
    size = left.grid[0]
    wider = with_probes(right, promote(left.dtype, right.dtype))
    done = eliminate(beside(left, wider), steps=size, engine=engine, events=events)
    dtype = done.upper[0, 0].dtype
    pivots = [done.upper[k, k].diagonal() for k in range(size)]
    check_diagonal(pivots, SINGULAR)
    triangle = upper_tiles(done.layout, done.upper, size, dtype)
    reduced = {(i, j - size): tile for (i, j), tile in done.upper.items() if j >= size}
    whole = substituted(
        triangle, TiledArray(wider.layout, dtype, reduced), lower=False, engine=engine, events=events
    )
    solution, inverse = without_probes(whole)
    warn_if_singular(np.concatenate(pivots), inverse, map(left.tile, left.layout.indices()), dtype)
    return solution


def beside(left: TiledArray, right: TiledArray) -> TiledArray:
    """Two matrices with rows cut alike, as one."""
    rows, columns = left.layout.boundaries
    width = left.grid[1]
    wider = (*columns, *(columns[-1] + edge for edge in right.layout.boundaries[1][1:]))
    tiles = {index: left.tile(index) for index in left.layout.indices()}
    tiles |= {(i, j + width): right.tile((i, j)) for i, j in right.layout.indices()}
    return TiledArray(Layout((rows, wider)), np.result_type(left.dtype, right.dtype), tiles)


def _solved_at_once(matrix: Array, right: Array) -> Array:
    dtype = np.result_type(matrix, right)
    packed = np.array(matrix, dtype=dtype, order="F")
    order, _ = factor(packed)
    check_diagonal([packed.diagonal()], SINGULAR)
    wider = np.hstack([right, probes(len(right), dtype)])
    solution = np.array(wider[order], dtype=dtype, order="F")
    solve_with(packed, solution, True, True)
    solve_with(packed, solution, False, False)
    if packed.size:
        inverse = length([solution[:, -PROBES:]]) / PROBES**0.5
        warn_if_singular(packed.diagonal(), inverse, [matrix], dtype)
    return np.ascontiguousarray(solution[:, :-PROBES])


def lu_solve(
    factors: tuple[Any, Any],
    b: Any,
    *,
    trans: int | str = 0,
    tile: int | None = None,
    engine: Engine | None = None,
    events: Sink | None = None,
) -> Array:
    """`X` with `op(A)·X = B`, from `lu_factor(A)`; `op` as in `solve_triangular`.

    >>> from linnet.algorithms.lu import lu_factor
    >>> lu_solve(lu_factor([[0.0, 2.0], [4.0, 1.0]]), [2.0, 9.0])
    array([2., 1.])
    """
    packed, piv = as_stack(factors[0], "lu"), np.asarray(factors[1])
    need_square(packed, "lu_solve")
    given = as_floating(np.asarray(b))
    if packed.ndim > 2:
        assert isinstance(packed, np.ndarray)
        return _over_factors(
            lambda x, p, y: lu_solve((x, p), y, trans=trans, tile=tile, engine=engine, events=events),
            packed, piv, given,
        )  # fmt: skip
    options: dict[str, Any] = {"tile": tile, "engine": engine, "events": events}
    order = order_of(piv, packed.shape[0])
    if trans in (0, "N"):
        half = solve_triangular(packed, given[..., order, :] if given.ndim > 1 else given[order],
                                lower=True, unit_diagonal=True, **options)  # fmt: skip
        return solve_triangular(packed, half, lower=False, **options)
    half = solve_triangular(packed, given, lower=False, trans=trans, **options)
    half = solve_triangular(packed, half, lower=True, trans=trans, unit_diagonal=True, **options)
    solution = np.empty_like(half)
    solution[(..., order) if half.ndim == 1 else (..., order, slice(None))] = half
    return solution


def _over_factors(function: Any, packed: Array, piv: Array, given: Array) -> Array:
    matrices, sides = broadcast_stacks(packed, given)
    batch = matrices.shape[:-2]
    pivots = np.broadcast_to(piv, (*batch, piv.shape[-1]))
    solution = over_stack(lambda x, p, y: function(x, p[:, 0], y), matrices, pivots[..., None], sides)
    return solution[..., 0] if given.ndim == 1 else solution


def cho_factor(
    a: Any,
    *,
    lower: bool = False,
    tile: int | None = None,
    engine: Engine | None = None,
    events: Sink | None = None,
) -> CholeskyFactors:
    """The Cholesky factorisation of a Hermitian positive definite matrix, to be used by `cho_solve`.

    Only one triangle of `a` is read: the lower one with `lower`, else the upper one.

    >>> cho_factor([[4.0, 2.0], [2.0, 5.0]], lower=True).c
    array([[2., 0.],
           [1., 2.]])
    """
    stack = as_stack(a)
    need_square(stack, "cho_factor")
    if stack.ndim > 2:
        assert isinstance(stack, np.ndarray)
        each = over_stack(
            lambda x: cho_factor(x, lower=lower, tile=tile, engine=engine, events=events).c, stack
        )
        return CholeskyFactors(each, lower)
    if is_small(stack, tile):
        array = np.asarray(stack)
        made = chol(array if lower else array.T)
        return CholeskyFactors(made if lower else made.T, lower)
    # Aᵀ has the upper triangle of A as its lower one, and its factor is the transpose of U.
    matrix = cut(stack, tile, "cholesky", engine)
    matrix = matrix if lower else transposed(matrix)
    if matrix.layout.boundaries[0] != matrix.layout.boundaries[1]:
        raise InputError(f"cho_factor takes a matrix in square tiles on the diagonal; got {matrix}")
    made = run(cholesky.bind(N=matrix.grid[0]), {"A": matrix}, engine, events)["O"]
    return CholeskyFactors((made if lower else transposed(made)).to_numpy(), lower)


def cho_solve(
    factors: tuple[Any, bool],
    b: Any,
    *,
    tile: int | None = None,
    engine: Engine | None = None,
    events: Sink | None = None,
) -> Array:
    """`X` with `A·X = B`, from `cho_factor(A)`.

    >>> cho_solve(cho_factor([[4.0, 2.0], [2.0, 5.0]]), [8.0, 8.0])
    array([1.5, 1. ])
    """
    c, lower = factors
    options: dict[str, Any] = {"lower": lower, "tile": tile, "engine": engine, "events": events}
    half = solve_triangular(c, b, trans="N" if lower else "C", **options)
    return solve_triangular(c, half, trans="C" if lower else "N", **options)
