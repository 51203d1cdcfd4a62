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
from collections.abc import Mapping

import numpy as np

from linnet.algorithms.panels import GROUP, PANELS, SLABS, panel_width, slab_edges
from linnet.algorithms.recipe import Output, Recipe
from linnet.kernels import copy
from linnet.kernels.linalg.chase_reflectors import apply_sweeps
from linnet.kernels.linalg.pivots import real
from linnet.kernels.linalg.reduce_to_band import (
    apply_panel,
    project_columns,
    project_rows,
    reflect_columns,
    reflect_rows,
    subtract_product,
)
from linnet.kernels.linalg.small_spectra import (
    bidiagonal_vectors,
    chase_upper,
    conjugated,
    turned,
    upper_band_values,
)
from linnet.programs import In, Out, Temp, TileProgram, tile_program
from linnet.session.work import Setting
from linnet.tiles import Layout


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
        N[c, 0] = conjugated(W[K + PANELS * Q, c])


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


def recipe(layout: Layout, dtype: np.dtype[np.generic], *, full: bool) -> Recipe:
    """`U`, left singular vectors as rows, `O`, the values, and `N`, which is Vh, of a matrix `A`.

    It is at least as tall as wide. With `full` there are as many left vectors as rows.
    """
    m, n = layout.shape
    columns = m if full else n
    outputs = (
        ("U", Output(Layout((slab_edges(columns, n), (0, m))), dtype)),
        ("O", Output(Layout(((0, n),)), real(dtype))),
        ("N", Output(Layout((slab_edges(n, n), (0, n))), dtype)),
    )
    sizes = {
        "P": layout.grid[0], "Q": layout.grid[1], "B": panel_width(layout), "K": -(-n // GROUP),
        "C": min(n, SLABS), "rows": m, "columns": columns,
    }  # fmt: skip
    return Recipe("svd", ("A",), outputs, _choose, tuple(sizes.items()))


def _choose(setting: Setting, wanted: frozenset[str], sizes: Mapping[str, int]) -> TileProgram:
    return values_only() if wanted == {"O"} else with_vectors()
