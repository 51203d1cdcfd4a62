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
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from linnet.algorithms.panels import GROUP, PANELS, SLABS, panel_width, slab_edges
from linnet.algorithms.recipe import Output, Recipe
from linnet.kernels import copy
from linnet.kernels.linalg.chase_reflectors import apply_sweeps
from linnet.kernels.linalg.pivots import real, whole_tile
from linnet.kernels.linalg.reduce_to_band import (
    apply_panel,
    half_inner,
    hermitian_product,
    rank_two_factors,
    reflect_below,
    subtract_product,
)
from linnet.kernels.linalg.small_spectra import (
    chase_hermitian,
    hermitian_band_values,
    tridiagonal_vectors,
    turned,
)
from linnet.programs import In, Out, Temp, TileProgram, tile_program
from linnet.session.work import Setting
from linnet.tiles import Layout


@tile_program(verify=False)
def lower_half(A: In, M: Out, N: int):
    """The lower half of a Hermitian matrix, the tiles on its diagonal whole."""
    for i in range(N):
        M[i, i] = whole_tile(A[i, i])
        for j in range(i):
            M[i, j] = copy(A[i, j])


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
    return lower_half.then(hermitian_band, {"A": "M"}, keep=False).then(tridiagonal, keep=False)


@functools.cache
def values_only() -> TileProgram:
    """The first stage and what is left of the second without vectors."""
    return lower_half.then(hermitian_band, {"A": "M"}, keep=False).then(band_eigenvalues, keep=False)


def recipe(layout: Layout, dtype: np.dtype[np.generic]) -> Recipe:
    """`L`, the eigenvalues, and `Z`, eigenvectors as rows, of a Hermitian `A`; its lower triangle is read."""
    n = layout.shape[0]
    outputs = (
        ("L", Output(Layout(((0, n),)), real(dtype))),
        ("Z", Output(Layout((slab_edges(n, n), (0, n))), dtype)),
    )
    sizes = {"N": layout.grid[0], "B": panel_width(layout), "K": -(-(n - 1) // GROUP), "C": min(n, SLABS)}
    return Recipe("eigh", ("A",), outputs, _choose, tuple(sizes.items()), halves=(("A", "lower"),))


def values_of(layout: Layout, dtype: np.dtype[np.generic]) -> Recipe:
    """`L` alone."""
    both = recipe(layout, dtype)
    return replace(both, outputs=both.outputs[:1])


def _choose(setting: Setting, wanted: frozenset[str], sizes: Mapping[str, int]) -> TileProgram:
    return values_only() if wanted == {"L"} else with_vectors()
