"""Singular values and vectors of a matrix, in two stages, all of it tile programs.

1. `svd_band` makes the matrix an upper band, four panels to a tile: a QR of the panel's columns, the
   product of its reflectors with what is right of it, an LQ of the panel's rows, and their product
   from the other side.
2. `bidiagonal` turns the band (gathered: it is n × tile/2) into a bidiagonal matrix and that into
   singular values and vectors, and takes the vectors back through the reflectors of both reductions,
   a slab of columns (as rows) at a time. `band_singular_values` is all that is left of it without vectors.

A matrix that is wider than tall is taken by its conjugate transpose. `V`, `T`, `R` are the reflectors
and the triangle of a panel's columns; `X`, `Y`, `L` those of its rows; `S` the matrix in between.
"""
# pyright: reportInvalidTypeForm=false, reportIndexIssue=false

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linnet.algorithms.panels import GROUP, PANELS, SLABS, joined, panel_width
from linnet.algorithms.running import as_matrix, need_square_tiles, run, sized
from linnet.engines import Engine, Outputs
from linnet.events import Sink
from linnet.kernels import copy
from linnet.kernels.band import (
    apply_panel,
    project_columns,
    project_rows,
    reflect_columns,
    reflect_rows,
    subtract_product,
)
from linnet.kernels.diamonds import apply_sweeps
from linnet.kernels.fortran import promote
from linnet.kernels.spectra import bidiagonal_vectors, chase_upper, turned, upper_band_values
from linnet.programs import In, Out, Temp, TileProgram, tile_program
from linnet.tiles import TiledArray
from linnet.tiles.layout import Layout

TILE = 256
"""Side of a tile: smaller ones have a narrower band, which is chased sooner, but products that are slower."""

Matrix = NDArray[Any] | TiledArray


class SVDResult(NamedTuple):
    """As `numpy.linalg.svd` returns it."""

    U: NDArray[Any]
    S: NDArray[Any]
    Vh: NDArray[Any]


@tile_program(verify=False)
def svd_band(
    A: In,
    V: Out,
    T: Out,
    R: Out,
    X: Out,
    Y: Out,
    L: Out,
    S: Temp("A"),
    W: Temp,
    Z: Temp,
    P: int,
    Q: int,
    B: int,
):
    assert P >= Q
    for b in range(Q):
        for s in range(PANELS):
            k = PANELS * b + s
            V[k, b:P], T[k], R[k] = reflect_columns(S[2 * k, b:P, b], s, B)
            for j in range(b, Q):
                W[k, j] = project_columns(V[k, b:P], T[k], S[2 * k, b:P, j], s + 1 if j == b else 0, B)
                for i in range(b, P):
                    S[2 * k + 1, i, j] = subtract_product(S[2 * k, i, j], V[k, i], W[k, j])
            X[k, b:Q], Y[k], L[k] = reflect_rows(S[2 * k + 1, b, b:Q], s, B)
            if k + 1 < PANELS * Q:
                for i in range(b, P):
                    Z[k, i] = project_rows(X[k, b:Q], Y[k], S[2 * k + 1, i, b:Q], s + 1 if i == b else 0, B)
                    for j in range(b, Q):
                        S[2 * k + 2, i, j] = subtract_product(
                            S[2 * k + 1, i, j], Z[k, i], X[k, j], adjoint=True
                        )


@tile_program(verify=False)
def bidiagonal(
    V: In, T: In, R: In, X: In, Y: In, L: In, O: Out, U: Out, N: Out,
    D: Temp, E: Temp, A: Temp, B: Temp, F: Temp, G: Temp, S: Temp, W: Temp, Z: Temp,
    P: int, Q: int, K: int, C: int, rows: int, columns: int,
):  # fmt: skip
    assert Q >= 1
    D[0], E[0], A[0:K], B[0:K], F[0:K], G[0:K] = chase_upper(R[0 : PANELS * Q], L[0 : PANELS * Q], GROUP)
    O[0], Z[0:C], W[0, 0:C] = bidiagonal_vectors(D[0], E[0], rows, columns, C)
    for c in range(C):
        S[0, c] = turned(Z[c])
        for k in range(K):
            S[k + 1, c] = apply_sweeps(A[K - 1 - k], B[K - 1 - k], S[k, c], GROUP * (K - 1 - k))
            W[k + 1, c] = apply_sweeps(F[K - 1 - k], G[K - 1 - k], W[k, c], GROUP * (K - 1 - k))
        for k in range(PANELS * Q):
            p = PANELS * Q - 1 - k
            S[K + k + 1, c] = apply_panel(V[p, p // PANELS : P], T[p], S[K + k, c])
            W[K + k + 1, c] = apply_panel(X[p, p // PANELS : Q], Y[p], W[K + k, c])
        U[c, 0] = copy(S[K + PANELS * Q, c])
        N[c, 0] = copy(W[K + PANELS * Q, c])


@tile_program(verify=False)
def band_singular_values(V: In, T: In, R: In, X: In, Y: In, L: In, O: Out, Q: int):
    assert Q >= 1
    O[0] = upper_band_values(R[0 : PANELS * Q], L[0 : PANELS * Q])


@functools.cache
def with_vectors() -> TileProgram:
    """Both stages; joined, and proved, when first used."""
    return svd_band.then(bidiagonal, keep=False)


@functools.cache
def values_only() -> TileProgram:
    """The first stage and what is left of the second without vectors."""
    return svd_band.then(band_singular_values, keep=False)


def svd_tiled(
    a: Matrix,
    *,
    full_matrices: bool = False,
    tile: int | None = None,
    engine: Engine | None = None,
    events: Sink | None = None,
) -> SVDResult:
    """`A = U·diag(S)·Vh`, singular values descending.

    With `full_matrices`, `U` and `Vh` are square; else they have min(m, n) columns and rows.

    >>> u, s, vh = svd_tiled(np.array([[3.0, 0.0], [0.0, 4.0], [0.0, 0.0]]), tile=1)
    >>> s.round(12), u.shape
    (array([4., 3.]), (3, 2))
    """
    matrix, adjoint = _tall(a, TILE if tile is None else tile)
    m, n = matrix.shape
    columns = m if full_matrices else n
    if n == 0:
        dtype = promote(matrix.dtype)
        left, right = np.eye(columns, m, dtype=dtype), np.zeros((0, 0), dtype)
        values = np.zeros(0, np.real(left).dtype)
    else:
        out = decompose(matrix, columns, engine, events)
        # The programs leave vectors as rows; these orders make both results lie by rows.
        left, right = joined(out["U"], "C" if adjoint else "F"), joined(out["N"], "F" if adjoint else "C")
        values = out["O"].to_numpy()
    if adjoint:
        left, right = right, left
    return SVDResult(left.T, values, right.conj() if right.dtype.kind == "c" else right)


def svdvals_tiled(
    a: Matrix, *, tile: int | None = None, engine: Engine | None = None, events: Sink | None = None
) -> NDArray[Any]:
    """The singular values of `A`, descending.

    >>> svdvals_tiled(np.array([[3.0, 0.0], [0.0, 4.0], [0.0, 0.0]]), tile=1).round(12)
    array([4., 3.])
    """
    matrix, _ = _tall(a, TILE if tile is None else tile)
    if matrix.shape[1] == 0:
        return np.zeros(0, np.real(np.zeros(0, promote(matrix.dtype))).dtype)
    return singular_values(matrix, engine, events)


def decompose(matrix: TiledArray, columns: int, engine: Engine | None, events: Sink | None) -> Outputs:
    """A run on a matrix at least as tall as wide: `U` and `N` are vectors as rows, `O` the values."""
    m, n = matrix.shape
    bound = sized(
        with_vectors(), P=matrix.grid[0], Q=matrix.grid[1], B=panel_width(matrix), K=-(-n // GROUP),
        C=min(n, SLABS), rows=m, columns=columns,
    )  # fmt: skip
    return run(bound, {"A": matrix}, engine, events)


def singular_values(matrix: TiledArray, engine: Engine | None, events: Sink | None) -> NDArray[Any]:
    """Those of a matrix at least as tall as wide."""
    bound = sized(values_only(), P=matrix.grid[0], Q=matrix.grid[1], B=panel_width(matrix))
    return run(bound, {"A": matrix}, engine, events)["O"].to_numpy()


def _tall(a: Matrix, tile: int) -> tuple[TiledArray, bool]:
    """The matrix in tiles, or its conjugate transpose if it is wider than tall; and which of the two."""
    matrix = as_matrix(a, tile)
    need_square_tiles(matrix, "the SVD")
    if matrix.shape[0] >= matrix.shape[1]:
        return matrix, False
    rows, columns = matrix.layout.boundaries
    tiles = {(j, i): tile.T.conj() for (i, j), tile in matrix.tiles.items()}
    return TiledArray(Layout((columns, rows)), matrix.dtype, tiles, matrix.fill), True
