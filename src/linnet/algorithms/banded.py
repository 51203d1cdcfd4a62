"""Reduction to a band: block bidiagonal, by QR of a column of tiles and LQ of a row in turn.

The band has the singular values of the matrix, so it is the first stage of an SVD. `V`, `T`,
`D`, `U` are as in QR; `X`, `Y`, `E`, `H` are the same for LQ, from the right; `Z` is the matrix
between the QR and the LQ of step `k`.
"""
# pyright: reportInvalidTypeForm=false, reportIndexIssue=false

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from linnet.algorithms.running import as_matrix, need_square_tiles, run
from linnet.engines import Engine
from linnet.events import Sink
from linnet.kernels import copy, gelqt, gemlqt, gemqrt, geqrt, tplqt, tpmlqt, tpmqrt, tpqrt
from linnet.programs import In, Out, Temp, tile_program
from linnet.tiles import TiledArray


@tile_program(verify=False)
def banded(
    A: In, B: Out(fill=0), S: Temp("A"), Z: Temp,
    V: Temp, T: Temp, D: Temp, U: Temp, X: Temp, Y: Temp, E: Temp, H: Temp, P: int, Q: int,
):  # fmt: skip
    for k in range(min(P, Q)):
        # QR of column k: what is below the diagonal tile becomes zero.
        V[k, k], T[k, k], D[k, k] = geqrt(S[k, k, k], 32)
        for n in range(k + 1, Q):
            U[k, k, n] = gemqrt(V[k, k], T[k, k], S[k, k, n])
        for m in range(k + 1, P):
            V[m, k], T[m, k], D[m, k] = tpqrt(D[m - 1, k], S[k, m, k], 32)
            for n in range(k + 1, Q):
                U[m, k, n], Z[k, m, n] = tpmqrt(V[m, k], T[m, k], U[m - 1, k, n], S[k, m, n])
        B[k, k] = copy(D[P - 1, k])
        # LQ of row k: what is right of the tile beside the diagonal becomes zero.
        if k + 1 < Q:
            X[k, k + 1], Y[k, k + 1], E[k, k + 1] = gelqt(U[P - 1, k, k + 1], 32)
            for m in range(k + 1, P):
                H[k, m, k + 1] = gemlqt(X[k, k + 1], Y[k, k + 1], Z[k, m, k + 1])
            for n in range(k + 2, Q):
                X[k, n], Y[k, n], E[k, n] = tplqt(E[k, n - 1], U[P - 1, k, n], 32)
                for m in range(k + 1, P):
                    H[k, m, n], S[k + 1, m, n] = tpmlqt(X[k, n], Y[k, n], H[k, m, n - 1], Z[k, m, n])
            for m in range(k + 1, P):
                S[k + 1, m, k + 1] = copy(H[k, m, Q - 1])
            B[k, k + 1] = copy(E[k, Q - 1])


def band(
    a: NDArray[Any] | TiledArray, *, tile: int = 128, engine: Engine | None = None, events: Sink | None = None
) -> TiledArray:
    """An upper band matrix, no wider than two tiles, with the singular values of `A`.

    >>> import numpy as np
    >>> a = np.arange(12.0).reshape(4, 3) + np.eye(4, 3)
    >>> b = band(a, tile=1).to_numpy()
    >>> bool(np.allclose(np.linalg.svd(b)[1], np.linalg.svd(a)[1])), float(abs(b[0, 2]))
    (True, 0.0)
    """
    matrix = as_matrix(a, tile)
    need_square_tiles(matrix, "the reduction to a band")
    return run(banded.bind(P=matrix.grid[0], Q=matrix.grid[1]), {"A": matrix}, engine, events)["B"]
