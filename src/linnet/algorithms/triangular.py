"""Triangular systems by substitution, left-looking: two tasks for each tile of the solution.

The first, `W`, takes away what all known tiles contribute but the newest, so that it can run while that
one is solved: with few right sides, nothing else could run side by side.

Forward for a lower triangle, backward for an upper one; everything else (a triangle on the
right, transposed, conjugated) is one of the two seen from another side.
"""
# pyright: reportInvalidTypeForm=false, reportIndexIssue=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from linnet.algorithms.running import run, sized
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
from linnet.engines import Engine
from linnet.errors import InputError, LinAlgError
from linnet.events import Sink
from linnet.kernels.triangular import solve_with, substitute, take_away
from linnet.programs import In, Out, Temp, tile_program
from linnet.tiles import Index, Layout, Tile, TiledArray


@tile_program(verify=False)
def forward(T: In, B: In, X: Out, W: Temp, P: int, Q: int, unit: int):
    for i in range(P):
        for j in range(Q):
            if i < 2:
                X[i, j] = substitute(T[i, i], B[i, j], T[i, 0:i], X[0:i, j], unit, lower=True)
            else:
                W[i, j] = take_away(B[i, j], T[i, 0 : i - 1], X[0 : i - 1, j])
                X[i, j] = substitute(T[i, i], W[i, j], T[i, i - 1 : i], X[i - 1 : i, j], unit, lower=True)


@tile_program(verify=False)
def backward(T: In, B: In, X: Out, W: Temp, P: int, Q: int, unit: int):
    for i in range(P - 1, -1, -1):
        for j in range(Q):
            if i + 2 >= P:
                X[i, j] = substitute(T[i, i], B[i, j], T[i, i + 1 : P], X[i + 1 : P, j], unit, lower=False)
            else:
                W[i, j] = take_away(B[i, j], T[i, i + 2 : P], X[i + 2 : P, j])
                X[i, j] = substitute(
                    T[i, i], W[i, j], T[i, i + 1 : i + 2], X[i + 1 : i + 2, j], unit, lower=False
                )


def substituted(
    triangle: TiledArray,
    right: TiledArray,
    *,
    lower: bool,
    unit: bool = False,
    engine: Engine | None = None,
    events: Sink | None = None,
) -> TiledArray:
    """`T⁻¹·B`, all in tiles. Tiles of the other half of `T` are not read, and need not be there."""
    program = forward if lower else backward
    bound = sized(program, P=triangle.grid[0], Q=right.grid[1], unit=int(unit))
    return run(bound, {"T": triangle, "B": right}, engine, events)["X"]


def solve_triangular(
    a: Any,
    b: Any,
    *,
    lower: bool = False,
    trans: int | str = 0,
    unit_diagonal: bool = False,
    side: str = "left",
    tile: int | None = None,
    engine: Engine | None = None,
    events: Sink | None = None,
) -> Array:
    """`X` with `op(A)·X = B` (side="left") or `X·op(A) = B` (side="right"), for a triangular `A`.

    `op` is nothing (trans=0 or "N"), the transpose (1 or "T") or its conjugate (2 or "C"). Only
    the triangle is read; with `unit_diagonal` not even its diagonal. `b` may be a vector.

    >>> solve_triangular([[2.0, 0.0], [1.0, 4.0]], [2.0, 9.0], lower=True)
    array([1., 2.])
    >>> solve_triangular([[2.0, 1.0], [0.0, 4.0]], [[2.0, 9.0]], side="right")
    array([[1., 2.]])
    """
    matrix = as_stack(a)
    need_square(matrix, "solve_triangular")
    operation = operation_of(trans)
    if side not in ("left", "right"):
        raise InputError(f"side {side!r} is not known; use 'left' or 'right'")
    given = b if isinstance(b, TiledArray) else as_floating(np.asarray(b))
    options: dict[str, Any] = {
        "lower": lower, "trans": trans, "unit_diagonal": unit_diagonal, "side": side,
        "tile": tile, "engine": engine, "events": events,
    }  # fmt: skip
    if given.ndim == 1:
        assert isinstance(given, np.ndarray)
        line = given[:, None] if side == "left" else given[None, :]
        return solve_triangular(matrix, line, **options)[
            (..., 0) if side == "left" else (..., 0, slice(None))
        ]
    if matrix.ndim > 2 or given.ndim > 2:
        if not (isinstance(matrix, np.ndarray) and isinstance(given, np.ndarray)):
            raise InputError("a tiled matrix and a stack cannot be solved together; give both as arrays")
        return over_stack(lambda x, y: solve_triangular(x, y, **options), *broadcast_stacks(matrix, given))
    needed = given.shape[0 if side == "left" else 1]
    if needed != matrix.shape[0]:
        raise LinAlgError(
            f"the triangle is {matrix.shape[0]}×{matrix.shape[0]} but b has {needed} "
            f"{'rows' if side == 'left' else 'columns'}; they must be as many"
        )
    # X·A = B is Aᵀ·Xᵀ = Bᵀ, and conj(A)·X = B is A·conj(X) = conj(B).
    flip = (operation != "N") != (side == "right")
    return _solved(matrix, given, lower != flip, flip, operation == "C", side, unit_diagonal, options)


def _solved(
    matrix: Array | TiledArray,
    given: Array | TiledArray,
    lower: bool,
    flip: bool,
    conjugate: bool,
    side: str,
    unit: bool,
    options: dict[str, Any],
) -> Array:
    right = _turned(given, side, conjugate)
    if is_small(matrix, options["tile"]) or 0 in right.shape:
        square = np.asarray(matrix)
        square = square.T if flip else square
        right = np.asarray(right)
        solution = np.array(right, dtype=np.result_type(square, right), order="F")
        if not unit:
            check_diagonal([square.diagonal()])
        solve_with(square, solution, lower, unit)
    else:
        cut_matrix = cut(matrix, options["tile"], "triangular", options["engine"])
        cut_matrix = transposed(cut_matrix) if flip else cut_matrix
        if cut_matrix.layout.boundaries[0] != cut_matrix.layout.boundaries[1]:
            raise InputError(f"solve_triangular takes square tiles on the diagonal; got {cut_matrix}")
        if not unit:
            check_diagonal([cut_matrix.tile((k, k)).diagonal() for k in range(cut_matrix.grid[0])])
        solution = substituted(
            cut_matrix, cut_like_rows(right, cut_matrix), lower=lower, unit=unit,
            engine=options["engine"], events=options["events"],
        ).to_numpy()  # fmt: skip
    solution = solution.conj() if conjugate else solution
    return np.ascontiguousarray(solution.T if side == "right" else solution)


def _turned(given: Array | TiledArray, side: str, conjugate: bool) -> Array | TiledArray:
    """The right side as the left-sided, unconjugated problem needs it."""
    if isinstance(given, TiledArray):
        turned = transposed(given) if side == "right" else given
        if not conjugate:
            return turned
        tiles = {index: tile.conj() for index, tile in turned.tiles.items()}
        return TiledArray(turned.layout, turned.dtype, tiles)
    array = given.T if side == "right" else given
    return array.conj() if conjugate else array


def check_diagonal(pieces: list[Array], what: str = "the matrix is singular") -> None:
    """Refuse a triangle with a zero on its diagonal, given tile by tile."""
    start = 0
    for number, piece in enumerate(pieces):
        zeros = np.flatnonzero(piece == 0)
        if len(zeros):
            raise LinAlgError(
                f"{what}: its leading minor of order {start + zeros[0] + 1} is zero "
                f"(row {zeros[0]} of tile ({number}, {number}))"
            )
        start += len(piece)


def broadcast_stacks(a: Array, b: Array) -> tuple[Array, Array]:
    """Two stacks of matrices of one length, as NumPy broadcasts their leading axes."""
    if b.ndim == 1:
        b = b[:, None]
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return np.broadcast_to(a, (*batch, *a.shape[-2:])), np.broadcast_to(b, (*batch, *b.shape[-2:]))


def upper_tiles(layout: Layout, tiles: Mapping[Index, Tile], size: int, dtype: Any) -> TiledArray:
    """The first `size` rows and columns of tiles of a factorisation, as a triangle to solve with."""
    rows = layout.boundaries[0][: size + 1]
    square = {index: tile for index, tile in tiles.items() if max(index) < size}
    return TiledArray(Layout((rows, rows)), np.dtype(dtype), square)


def operation_of(trans: int | str) -> str:
    """N, T or C, from what callers write."""
    known = {0: "N", 1: "T", 2: "C", "N": "N", "T": "T", "C": "C"}
    if trans not in known:
        raise InputError(f"trans {trans!r} is not known; use 0 or 'N', 1 or 'T', 2 or 'C'")
    return known[trans]
