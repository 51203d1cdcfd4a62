"""QR of any matrix by tiles, with a flat tree: each panel folds the tiles below the diagonal one by one.

`V` and `T` are the reflectors, `D` the triangle on the diagonal and `U` the row of tiles beside
it while the rows below are folded into them, `S` what is left of the matrix before panel `k`.
"""
# pyright: reportInvalidTypeForm=false, reportIndexIssue=false

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from linnet.algorithms.running import as_matrix, need_square_tiles, run
from linnet.engines import Engine
from linnet.events import Sink
from linnet.kernels import copy, gemqrt, geqrt, tpmqrt, tpqrt
from linnet.programs import In, Out, Temp, tile_program
from linnet.tiles import TiledArray


@tile_program
def qr(A: In, R: Out(fill=0), S: Temp("A"), V: Temp, T: Temp, D: Temp, U: Temp, P: int, Q: int):
    for k in range(min(P, Q)):
        V[k, k], T[k, k], D[k, k] = geqrt(S[k, k, k], 32)
        for n in range(k + 1, Q):
            U[k, k, n] = gemqrt(V[k, k], T[k, k], S[k, k, n])
        for m in range(k + 1, P):
            V[m, k], T[m, k], D[m, k] = tpqrt(D[m - 1, k], S[k, m, k], 32)
            for n in range(k + 1, Q):
                U[m, k, n], S[k + 1, m, n] = tpmqrt(V[m, k], T[m, k], U[m - 1, k, n], S[k, m, n])
        R[k, k] = copy(D[P - 1, k])
        for n in range(k + 1, Q):
            R[k, n] = copy(U[P - 1, k, n])


def qr_r(
    a: NDArray[Any] | TiledArray, *, tile: int = 256, engine: Engine | None = None, events: Sink | None = None
) -> TiledArray:
    """The upper triangular (trapezoidal) factor `R` of `A = Q·R`, with min(m, n) rows.

    The signs of the rows of `R` are LAPACK's.

    >>> import numpy as np
    >>> a = np.arange(12.0).reshape(4, 3) + np.eye(4, 3)
    >>> r = qr_r(a, tile=2).to_numpy()
    >>> bool(np.allclose(r.T @ r, a.T @ a)), r.shape
    (True, (3, 3))
    """
    matrix = as_matrix(a, tile)
    need_square_tiles(matrix, "QR")
    return run(qr.bind(P=matrix.grid[0], Q=matrix.grid[1]), {"A": matrix}, engine, events)["R"]
