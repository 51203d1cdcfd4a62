"""Cholesky, QR and triangular systems on nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from linnet.algorithms.cholesky import cholesky as cholesky_program
from linnet.algorithms.cholesky import naming_the_minor
from linnet.algorithms.householder import qr as qr_program
from linnet.algorithms.householder import qr_with_q
from linnet.algorithms.qr import QRResult, is_skinny
from linnet.algorithms.running import sized
from linnet.algorithms.solve import CholeskyFactors
from linnet.algorithms.triangular import backward, check_diagonal, forward, operation_of
from linnet.algorithms.tsqr import tsqr, tsqr_with_q
from linnet.arrays.clustered.placing import is_large, leaves, left, placed, square
from linnet.arrays.core import as_node, wrap
from linnet.arrays.elementwise import apply
from linnet.arrays.evaluation import computed
from linnet.engines import Engine
from linnet.errors import LinAlgError
from linnet.events import Sink
from linnet.kernels.fortran import promote
from linnet.tiles import Boundaries, Layout


def cholesky(
    engine: Engine, a: Any, *, tile: int | None = None, events: Sink | None = None, **others: Any
) -> Any:
    """The lower Cholesky factor."""
    if others or not is_large(a, tile):
        return NotImplemented
    if a.shape[0] != a.shape[1]:
        raise LinAlgError(f"Cholesky takes a square matrix; got {a.shape[0]}×{a.shape[1]}")
    matrix = placed(engine, a, square(a, tile, "cholesky"))
    with naming_the_minor(matrix.layout):
        made = engine.run(sized(cholesky_program, N=matrix.grid[0]), {"A": matrix}, events=events)
    return left(made, "O", matrix.layout, matrix.dtype)


def cho_factor(
    engine: Engine,
    a: Any,
    *,
    lower: bool = False,
    tile: int | None = None,
    events: Sink | None = None,
    **others: Any,
) -> Any:
    """A Cholesky factorisation to keep."""
    if others or not is_large(a, tile):
        return NotImplemented
    # Aᵀ has the upper triangle of A as its lower one, and its factor is the transpose of U.
    factor = cholesky(engine, a if lower else a.mT, tile=tile, events=events)
    return CholeskyFactors(factor if lower else factor.mT, lower)


def qr(
    engine: Engine,
    a: Any,
    mode: str = "reduced",
    *,
    tile: int | None = None,
    events: Sink | None = None,
    **others: Any,
) -> Any:
    """`Q` and `R`, or `R` alone."""
    complete = mode == "complete" and len(a.shape) == 2 and a.shape[0] > a.shape[1]
    if others or complete or mode not in ("reduced", "complete", "r") or not is_large(a, tile):
        return NotImplemented
    skinny = is_skinny(a)
    matrix = placed(engine, a, leaves(a, tile) if skinny else square(a, tile, "qr"))
    (rows, columns), (P, Q) = matrix.layout.boundaries, matrix.grid
    edges: Boundaries = (*columns[: min(P, Q)], min(a.shape))
    program = (tsqr if mode == "r" else tsqr_with_q) if skinny else (qr_program if mode == "r" else qr_with_q)
    bound = sized(program, N=P) if skinny else sized(program, P=P, Q=Q)
    made = engine.run(bound, {"A": matrix}, events=events)
    r = left(made, "R", Layout((edges, columns)), matrix.dtype)
    return r if mode == "r" else QRResult(left(made, "O", Layout((rows, edges)), matrix.dtype), r)


def solve_triangular(
    engine: Engine,
    a: Any,
    b: Any,
    *,
    lower: bool = False,
    trans: int | str = 0,
    unit_diagonal: bool = False,
    side: str = "left",
    tile: int | None = None,
    events: Sink | None = None,
    **others: Any,
) -> Any:
    """`X` with `op(A)·X = B`, or `X·op(A) = B`."""
    if others or not is_large(a, tile) or len(np.shape(b)) not in (1, 2) or side not in ("left", "right"):
        return NotImplemented
    options: dict[str, Any] = {"unit_diagonal": unit_diagonal, "tile": tile, "events": events}
    given = wrap(as_node(b))
    if given.ndim == 1:
        line = given[:, None] if side == "left" else given[None, :]
        made = solve_triangular(engine, a, line, lower=lower, trans=trans, side=side, **options)
        return made[:, 0] if side == "left" else made[0]
    operation = operation_of(trans)
    matrix = wrap(as_node(a))
    if operation != "N":
        turned = apply(np.conjugate, matrix.mT) if operation == "C" else matrix.mT
        return solve_triangular(engine, turned, given, lower=not lower, side=side, **options)
    if side == "right":  # X·A = B is Aᵀ·Xᵀ = Bᵀ
        return solve_triangular(engine, matrix.mT, given.mT, lower=not lower, **options).mT
    if matrix.shape[0] != matrix.shape[1] or given.shape[0] != matrix.shape[0]:
        raise LinAlgError(
            f"the triangle is {matrix.shape[0]}×{matrix.shape[1]} and b has {given.shape[0]} rows; "
            "they must be as many"
        )
    if not unit_diagonal:
        line: Any = np.diagonal(matrix)
        check_diagonal(computed([line.node], engine=engine))
    dtype = promote(matrix.dtype, given.dtype)
    cut = square(matrix, tile, "triangular")
    triangle = placed(engine, matrix, cut, dtype)
    width = cut.boundaries[0][1]
    columns = Layout.regular((given.shape[1],), width).boundaries[0]
    right = placed(engine, given, Layout((cut.boundaries[0], columns)), dtype)
    program = forward if lower else backward
    bound = sized(program, P=triangle.grid[0], Q=right.grid[1], unit=int(unit_diagonal))
    made = engine.run(bound, {"T": triangle, "B": right}, events=events)
    return left(made, "X", right.layout, dtype)


def cho_solve(engine: Engine, factors: Any, b: Any, **options: Any) -> Any:
    """`X` with `A·X = B`, from `cho_factor(A)`."""
    c, lower = factors
    half = solve_triangular(engine, c, b, lower=lower, trans="N" if lower else "C", **options)
    if half is NotImplemented:
        return half
    return solve_triangular(engine, c, half, lower=lower, trans="C" if lower else "N", **options)
