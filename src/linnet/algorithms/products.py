"""Products with structure: of a matrix with its adjoint, with a Hermitian matrix, with a triangle.

All are left-looking: each tile of the result is one task. What is symmetric is computed, and
triangles and Hermitian matrices are read, by half.
"""
# pyright: reportInvalidTypeForm=false, reportIndexIssue=false

from __future__ import annotations

from typing import Any

import numpy as np

from linnet.algorithms.running import run
from linnet.algorithms.stacks import (
    Array,
    as_stack,
    cut,
    cut_like_rows,
    need_square,
    transposed,
)
from linnet.engines import Engine
from linnet.errors import InputError, LinAlgError
from linnet.events import Sink
from linnet.kernels.triangular import gram, herk
from linnet.kernels.triangular import symm as symmetric_row
from linnet.kernels.triangular import trmm as triangular_row
from linnet.programs import In, Out, tile_program
from linnet.tiles import Layout, TiledArray


@tile_program(verify=False)
def lower_gram(A: In, C: Out, P: int, Q: int):
    assert Q >= 1
    for i in range(P):
        C[i, i] = herk(A[i, 0:Q])
        for j in range(i):
            C[i, j] = gram(A[i, 0:Q], A[j, 0:Q])


@tile_program(verify=False)
def hermitian_times(A: In, B: In, X: Out, P: int, Q: int):
    for i in range(P):
        for j in range(Q):
            X[i, j] = symmetric_row(A[i, i], B[i, j], A[i, 0:i], B[0:i, j], A[i + 1 : P, i], B[i + 1 : P, j])


@tile_program(verify=False)
def lower_times(T: In, B: In, X: Out, P: int, Q: int, unit: int):
    for i in range(P):
        for j in range(Q):
            X[i, j] = triangular_row(T[i, i], B[i, j], T[i, 0:i], B[0:i, j], unit, lower=True)


@tile_program(verify=False)
def upper_times(T: In, B: In, X: Out, P: int, Q: int, unit: int):
    for i in range(P):
        for j in range(Q):
            X[i, j] = triangular_row(T[i, i], B[i, j], T[i, i + 1 : P], B[i + 1 : P, j], unit, lower=False)


def syrk(
    a: Any, *, adjoint: bool = False, tile: int | None = None, engine: Engine | None = None,
    events: Sink | None = None,
) -> Array:  # fmt: skip
    """`A·Aᴴ`, or `Aᴴ·A` with `adjoint`: a Hermitian matrix, of which one half is computed.

    >>> syrk([[1.0, 2.0], [0.0, 1.0]])
    array([[5., 2.],
           [2., 1.]])
    """
    given = _matrix(a, "a")
    if adjoint:  # Aᴴ·A is the conjugate of Aᵀ·(Aᵀ)ᴴ
        return syrk(given.T if isinstance(given, np.ndarray) else transposed(given),
                    tile=tile, engine=engine, events=events).conj()  # fmt: skip
    matrix = cut(given, tile, "gemm", engine)
    bound = lower_gram.bind(P=matrix.grid[0], Q=matrix.grid[1])
    made = run(bound, {"A": matrix}, engine, events).tiles("C")
    other = {(j, i): tile.conj().T for (i, j), tile in made.items() if i > j}
    edges = matrix.layout.boundaries[0]
    return TiledArray(Layout((edges, edges)), made[0, 0].dtype, {**made, **other}).to_numpy()


def symm(
    a: Any, b: Any, *, lower: bool = True, side: str = "left", tile: int | None = None,
    engine: Engine | None = None, events: Sink | None = None,
) -> Array:  # fmt: skip
    """`A·B` (side="left") or `B·A` (side="right"), for a Hermitian `A` of which one triangle is read.

    >>> symm([[1.0, 0.0], [2.0, 3.0]], [[1.0], [1.0]])
    array([[3.],
           [5.]])
    """
    matrix, right = _square_and_other(a, b, side, tile, engine, "symm")
    # The lower triangle of Aᵀ, which is conj(A), is the upper one of A; and (B·A)ᵀ = conj(A)·Bᵀ.
    turned = matrix if lower else transposed(matrix)
    conjugated = lower != (side == "left")
    bound = hermitian_times.bind(P=turned.grid[0], Q=right.grid[1])
    inputs = {"A": turned, "B": _conjugate(right) if conjugated else right}
    made = run(bound, inputs, engine, events)["X"].to_numpy()
    made = made.conj() if conjugated else made
    return made if side == "left" else np.ascontiguousarray(made.T)


def trmm(
    t: Any, b: Any, *, lower: bool = True, unit_diagonal: bool = False, side: str = "left",
    tile: int | None = None, engine: Engine | None = None, events: Sink | None = None,
) -> Array:  # fmt: skip
    """`T·B` (side="left") or `B·T` (side="right"), for a triangle `T`; its other half is not read.

    >>> trmm([[1.0, 9.0], [2.0, 3.0]], [[1.0], [1.0]])
    array([[1.],
           [5.]])
    """
    matrix, right = _square_and_other(t, b, side, tile, engine, "trmm")
    turned = matrix if side == "left" else transposed(matrix)
    program = lower_times if lower == (side == "left") else upper_times
    bound = program.bind(P=turned.grid[0], Q=right.grid[1], unit=int(unit_diagonal))
    made = run(bound, {"T": turned, "B": right}, engine, events)["X"].to_numpy()
    return made if side == "left" else np.ascontiguousarray(made.T)


def _matrix(a: Any, name: str) -> Array | TiledArray:
    matrix = as_stack(a, name)
    if matrix.ndim != 2:
        raise LinAlgError(f"{name} must be a matrix, got an array of shape {matrix.shape}")
    return matrix


def _square_and_other(
    a: Any, b: Any, side: str, tile: int | None, engine: Engine | None, what: str
) -> tuple[TiledArray, TiledArray]:
    """The square matrix in tiles, and the other one, transposed if it stands on the left, cut to suit."""
    if side not in ("left", "right"):
        raise InputError(f"side {side!r} is not known; use 'left' or 'right'")
    given, other = _matrix(a, "a"), _matrix(b, "b")
    need_square(given, what)
    length = other.shape[-2 if side == "left" else -1]
    if length != given.shape[-1]:
        raise LinAlgError(
            f"{what}: the square matrix is {given.shape[-2]}×{given.shape[-1]} but b has {length} "
            f"{'rows' if side == 'left' else 'columns'}; they must be as many"
        )
    matrix = cut(given, tile, "gemm", engine)
    if matrix.layout.boundaries[0] != matrix.layout.boundaries[1]:
        raise InputError(f"{what} takes a matrix in square tiles on the diagonal; got {matrix}")
    if side == "right":
        other = other.T if isinstance(other, np.ndarray) else transposed(other)
    return matrix, cut_like_rows(other, matrix)


def _conjugate(matrix: TiledArray) -> TiledArray:
    tiles = {index: tile.conj() for index, tile in matrix.tiles.items()}
    return TiledArray(matrix.layout, matrix.dtype, tiles)
