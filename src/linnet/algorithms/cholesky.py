"""Cholesky factorisation, in two orders, one of them also with a look ahead.

Right-looking, as in the textbook: factor a diagonal tile, solve its column, update what is
left. Left-looking: bring a column up to date with all columns to its left, in one task a
tile, then factor and solve it; every tile is written once and the rest of the matrix is not
touched, so nothing but the factor is kept. Where a matrix lies in memory in one piece, that is done
in two steps: with all columns but the last, which workers do ahead while that one is not ready.
"""
# pyright: reportInvalidTypeForm=false, reportIndexIssue=false

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.algorithms.running import as_matrix, at_hand, budget, run, sized
from linnet.algorithms.tuning import SHORTCUT, tile_size
from linnet.engines import Engine
from linnet.errors import InputError, LinAlgError, NotPositiveDefiniteError
from linnet.events import Sink
from linnet.kernels import chol, downdate, downdate_lower, nothing, storage, syrk, trsm
from linnet.kernels.fortran import promote
from linnet.programs import In, Out, Temp, tile_program
from linnet.session import current_engine
from linnet.tiles import Layout, TiledArray


@tile_program(verify=False)
def cholesky(A: In, O: Out(fill=0), S: Temp("A"), N: int):
    for i in range(N):
        O[i, i] = chol(S[i, i, i])
        for j in range(i + 1, N):
            O[j, i] = trsm(O[i, i], S[i, j, i])
            for k in range(i + 1, j + 1):
                S[i + 1, j, k] = syrk(S[i, j, k], O[j, i], O[k, i])


@tile_program(verify=False)
def left_looking(A: In, L: Out(fill=0), U: Temp, N: int):
    for i in range(N):
        U[i, i] = downdate_lower(A[i, i], L[i, 0:i])
        L[i, i] = chol(U[i, i])
        for j in range(i + 1, N):
            U[j, i] = downdate(A[j, i], L[j, 0:i], L[i, 0:i])
            L[j, i] = trsm(L[i, i], U[j, i])


@tile_program(verify=False)
def looking_ahead(A: In, L: Out(fill=0), E: Temp, U: Temp, N: int, used: int):
    """Left-looking, in two steps. Where L was `used` before, what is above its diagonal is made zero."""
    for i in range(N):
        E[i, i] = downdate_lower(A[i, i], L[i, 0 : max(i - 1, 0)])
        U[i, i] = downdate_lower(E[i, i], L[i, max(i - 1, 0) : i])
        L[i, i] = chol(U[i, i])
        for j in range(i + 1, N):
            E[j, i] = downdate(A[j, i], L[j, 0 : max(i - 1, 0)], L[i, 0 : max(i - 1, 0)])
            U[j, i] = downdate(E[j, i], L[j, max(i - 1, 0) : i], L[i, max(i - 1, 0) : i])
            L[j, i] = trsm(L[i, i], U[j, i])
        if used == 1:
            for j in range(i):
                L[j, i] = nothing(A[j, i])


def cholesky_factor(
    a: NDArray[Any] | TiledArray,
    *,
    tile: int | None = None,
    engine: Engine | None = None,
    events: Sink | None = None,
) -> TiledArray:
    """The lower triangular `L` with `L·Lᴴ = A` in tiles, for a Hermitian positive definite matrix.

    Only the lower triangle of `A` is read, and only that of `L` is stored.

    >>> a = np.array([[4.0, 2.0, 0.0], [2.0, 5.0, 4.0], [0.0, 4.0, 13.0]])
    >>> cholesky_factor(a, tile=2).to_numpy()
    array([[2., 0., 0.],
           [1., 2., 0.],
           [0., 2., 3.]])
    """
    matrix = _in_square_tiles(a, tile, engine)
    bound = sized(left_looking, N=matrix.grid[0])
    with naming_the_minor(matrix.layout):
        return run(bound, {"A": matrix}, engine, events)["L"]


def factor(
    a: NDArray[Any] | TiledArray,
    *,
    tile: int | None = None,
    engine: Engine | None = None,
    events: Sink | None = None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """The lower triangular `L` with `L·Lᴴ = A` as one array, for a Hermitian positive definite matrix.

    Only the lower triangle of `A` is read. The factor is made in place in the array that is
    returned (or in `out`, which must hold zeros above its diagonal, and may be an `np.memmap`).
    A matrix smaller than 1024 goes straight to LAPACK, unless `tile` is given.

    >>> a = np.array([[4.0, 2.0, 0.0], [2.0, 5.0, 4.0], [0.0, 4.0, 13.0]])
    >>> factor(a)
    array([[2., 0., 0.],
           [1., 2., 0.],
           [0., 2., 3.]])
    """
    if len(a.shape) == 2 and a.shape[0] != a.shape[1]:
        raise LinAlgError(f"Cholesky takes a square matrix; got {a.shape[0]}×{a.shape[1]}")
    if tile is None and out is None and isinstance(a, np.ndarray) and a.ndim == 2 and len(a) < SHORTCUT:
        return np.ascontiguousarray(chol(np.asarray(a))) if a.size else np.zeros(a.shape, promote(a.dtype))
    matrix = _in_square_tiles(a, tile, engine)
    chosen = engine or current_engine()
    dtype = promote(matrix.dtype)
    ahead = at_hand(chosen)
    if out is not None:
        whole, clean = out, True
    elif ahead:
        whole, clean = storage.blank(matrix.shape, dtype)
    else:
        whole, clean = chosen.zeros(matrix.shape, dtype), True
    if whole.shape != matrix.shape or whole.dtype != dtype:
        raise InputError(
            f"the factor is {matrix.shape[0]}×{matrix.shape[1]} of {dtype}; out has shape {whole.shape} "
            f"and dtype {whole.dtype}"
        )
    place = TiledArray.over(whole, Layout(matrix.layout.boundaries))
    tiles = matrix.grid[0]
    bound = sized(looking_ahead, N=tiles, used=int(not clean)) if ahead else sized(left_looking, N=tiles)
    with naming_the_minor(matrix.layout):
        chosen.run(bound, {"A": matrix}, out={"L": place}, events=events)
    return whole


def _in_square_tiles(a: NDArray[Any] | TiledArray, tile: int | None, engine: Engine | None) -> TiledArray:
    matrix = as_matrix(a, tile or tile_size(np.shape(a), a.dtype, "cholesky", budget(engine)))
    boundaries = matrix.layout.boundaries
    if boundaries[0] != boundaries[1]:
        raise InputError(
            f"Cholesky takes a square matrix in square tiles; got {matrix.shape[0]}×{matrix.shape[1]} "
            f"in {matrix.grid[0]}×{matrix.grid[1]} tiles"
        )
    return matrix


@contextmanager
def naming_the_minor(layout: Layout) -> Iterator[None]:
    """Say which leading minor of the matrix, not only of a tile, is not positive definite."""
    try:
        yield
    except LinAlgError as error:
        cause = error.__cause__
        if not isinstance(cause, NotPositiveDefiniteError) or not isinstance(error.task, tuple):
            raise
        i = error.task[1][0]
        order = layout.boundaries[0][i] + cause.minor
        raise LinAlgError(
            f"the matrix is not positive definite: its leading minor of order {order} is not positive "
            f"(tile L[{i}, {i}])\n  in {error.where}",
            task=error.task,
            tiles=error.tiles,
            where=error.where,
        ) from error
