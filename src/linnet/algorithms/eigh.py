"""Eigenvalues and eigenvectors of a Hermitian matrix, in two stages, all of it tile programs.

1. `hermitian_band` makes the matrix a band, four panels to a tile: a QR of the panel below its
   diagonal block, then `S − V·Wᴴ − W·Vᴴ` on the lower half of the matrix; nearly all of it products.
2. `tridiagonal` turns the band (gathered: it is n × tile/4) into a tridiagonal matrix and that into
   eigenvalues and eigenvectors `Z`, and takes `Z` back through the reflectors of both reductions, a slab
   of columns (as rows) at a time. `band_eigenvalues` is all that is left of it without vectors.

`V`, `T` are the reflectors of a panel, `D` its diagonal block on its triangle, `S` the matrix before it.
"""
# pyright: reportInvalidTypeForm=false, reportIndexIssue=false

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linnet.algorithms.panels import GROUP, PANELS, SLABS, joined, panel_width
from linnet.algorithms.running import as_matrix, run, sized
from linnet.engines import Engine, Outputs
from linnet.errors import InputError, LinAlgError
from linnet.events import Sink
from linnet.kernels import copy
from linnet.kernels.band import (
    apply_panel,
    half_inner,
    hermitian_product,
    rank_two_factors,
    reflect_below,
    subtract_product,
)
from linnet.kernels.diamonds import apply_sweeps
from linnet.kernels.fortran import promote
from linnet.kernels.spectra import chase_hermitian, hermitian_band_values, tridiagonal_vectors, turned
from linnet.programs import In, Out, Temp, TileProgram, tile_program
from linnet.tiles import TiledArray

TILE = 320
"""Side of a tile: smaller ones have a narrower band, which is chased sooner, but products that are slower."""

Matrix = NDArray[Any] | TiledArray


class EighResult(NamedTuple):
    """As `numpy.linalg.eigh` returns it."""

    eigenvalues: NDArray[Any]
    eigenvectors: NDArray[Any]


@tile_program(verify=False)
def hermitian_band(
    A: In, V: Out, T: Out, D: Out, S: Temp("A"), Y: Temp, P: Temp, M: Temp, F: Temp, G: Temp,
    N: int, B: int,
):  # fmt: skip
    for b in range(N):
        for s in range(PANELS):
            k = PANELS * b + s
            V[k, b:N], T[k], D[k] = reflect_below(S[k, b:N, b], s, B)
            if k + 1 < PANELS * N:
                for i in range(b, N):
                    Y[k, i], P[k, i] = hermitian_product(S[k, i, b:i], S[k, i:N, i], V[k, b:N])
                M[k] = half_inner(P[k, b:N], T[k])
                for i in range(b, N):
                    F[k, i], G[k, i] = rank_two_factors(V[k, i], Y[k, i], T[k], M[k])
                for i in range(b, N):
                    for j in range(b, i + 1):
                        S[k + 1, i, j] = subtract_product(S[k, i, j], F[k, i], G[k, j], adjoint=True)


@tile_program(verify=False)
def tridiagonal(
    V: In, T: In, D: In, L: Out, Z: Out, P: Temp, E: Temp, X: Temp, U: Temp, M: Temp, S: Temp,
    N: int, K: int, C: int,
):  # fmt: skip
    assert N >= 1
    P[0], E[0], X[0:K], U[0:K] = chase_hermitian(D[0 : PANELS * N], GROUP)
    L[0], M[0:C] = tridiagonal_vectors(P[0], E[0], C)
    for c in range(C):
        S[0, c] = turned(M[c])
        for k in range(K):
            S[k + 1, c] = apply_sweeps(X[K - 1 - k], U[K - 1 - k], S[k, c], 1 + GROUP * (K - 1 - k))
        for k in range(PANELS * N):
            p = PANELS * N - 1 - k
            S[K + k + 1, c] = apply_panel(V[p, p // PANELS : N], T[p], S[K + k, c])
        Z[c, 0] = copy(S[K + PANELS * N, c])


@tile_program(verify=False)
def band_eigenvalues(V: In, T: In, D: In, L: Out, N: int):
    assert N >= 1
    L[0] = hermitian_band_values(D[0 : PANELS * N])


@functools.cache
def with_vectors() -> TileProgram:
    """Both stages; joined, and proved, when first used."""
    return hermitian_band.then(tridiagonal, keep=False)


@functools.cache
def values_only() -> TileProgram:
    """The first stage and what is left of the second without vectors."""
    return hermitian_band.then(band_eigenvalues, keep=False)


def eigh_tiled(
    a: Matrix,
    *,
    lower: bool = True,
    tile: int | None = None,
    engine: Engine | None = None,
    events: Sink | None = None,
) -> EighResult:
    """The eigenvalues of a Hermitian matrix, ascending, and its eigenvectors as columns.

    Only one triangle is read: the lower, or with `lower=False` the upper.

    >>> w, z = eigh_tiled(np.array([[2.0, 0.0], [1.0, 2.0]]), tile=1)
    >>> bool(np.allclose(w, [1.0, 3.0])), bool(np.allclose(abs(z), 0.5**0.5))
    (True, True)
    """
    matrix, flipped = _half(a, lower, TILE if tile is None else tile)
    n = matrix.shape[0]
    if n == 0:
        return EighResult(np.zeros(0, _real(matrix.dtype)), np.zeros((0, 0), promote(matrix.dtype)))
    out = decompose(matrix, engine, events)
    z = joined(out["Z"], "F").T
    return EighResult(out["L"].to_numpy(), z.conj() if flipped and z.dtype.kind == "c" else z)


def eigvalsh_tiled(
    a: Matrix,
    *,
    lower: bool = True,
    tile: int | None = None,
    engine: Engine | None = None,
    events: Sink | None = None,
) -> NDArray[Any]:
    """The eigenvalues of a Hermitian matrix, ascending, from one of its triangles.

    >>> eigvalsh_tiled(np.array([[2.0, 0.0], [1.0, 2.0]]), tile=1).round(12)
    array([1., 3.])
    """
    matrix, _ = _half(a, lower, TILE if tile is None else tile)
    if matrix.shape[0] == 0:
        return np.zeros(0, _real(matrix.dtype))
    return eigenvalues(matrix, engine, events)


def decompose(matrix: TiledArray, engine: Engine | None, events: Sink | None) -> Outputs:
    """A run on a Hermitian matrix, tiles on its diagonal whole: `Z` is vectors as rows, `L` the values."""
    n = matrix.shape[0]
    bound = sized(
        with_vectors(), N=matrix.grid[0], B=panel_width(matrix), K=-(-(n - 1) // GROUP), C=min(n, SLABS)
    )
    return run(bound, {"A": matrix}, engine, events)


def eigenvalues(matrix: TiledArray, engine: Engine | None, events: Sink | None) -> NDArray[Any]:
    """Those of a Hermitian matrix, tiles on its diagonal whole."""
    bound = sized(values_only(), N=matrix.grid[0], B=panel_width(matrix))
    return run(bound, {"A": matrix}, engine, events)["L"].to_numpy()


def _half(a: Matrix, lower: bool, tile: int) -> tuple[TiledArray, bool]:
    """The lower half of a matrix in tiles, diagonal tiles whole; and whether it is the conjugate's."""
    matrix = as_matrix(a, tile)
    rows, columns = matrix.layout.boundaries
    if matrix.shape[0] != matrix.shape[1]:
        raise LinAlgError(
            f"eigenvalues of a Hermitian matrix need a square matrix; got {matrix.shape[0]}×{matrix.shape[1]}"
        )
    if rows != columns:
        raise InputError(f"eigenvalues of a Hermitian matrix need square tiles on the diagonal; got {matrix}")
    dtype = promote(matrix.dtype)
    tiles: dict[tuple[int, ...], NDArray[Any]] = {}
    for i in range(matrix.grid[0]):
        for j in range(i):
            # The upper half, turned over, is the lower half of the conjugate.
            tiles[i, j] = matrix.tile((i, j)) if lower else matrix.tile((j, i)).T
        diagonal = matrix.tile((i, i)) if lower else matrix.tile((i, i)).T
        below = np.tril(diagonal, -1)
        whole = np.asfortranarray(below + below.T.conj(), dtype)
        np.fill_diagonal(whole, np.real(np.diagonal(diagonal)))
        tiles[i, i] = whole
    return TiledArray(matrix.layout, dtype, tiles, 0), not lower


def _real(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.real(np.zeros(0, promote(dtype))).dtype
