"""Cholesky factorisation, right-looking: factor a diagonal tile, solve its column, update what is left."""
# pyright: reportInvalidTypeForm=false, reportIndexIssue=false

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from linnet.algorithms.running import as_matrix, run
from linnet.engines import Engine
from linnet.errors import InputError
from linnet.events import Sink
from linnet.kernels import chol, syrk, trsm
from linnet.programs import In, Out, Temp, tile_program
from linnet.tiles import TiledArray


@tile_program
def cholesky(A: In, O: Out(fill=0), S: Temp("A"), N: int):
    for i in range(N):
        O[i, i] = chol(S[i, i, i])
        for j in range(i + 1, N):
            O[j, i] = trsm(O[i, i], S[i, j, i])
            for k in range(i + 1, j + 1):
                S[i + 1, j, k] = syrk(S[i, j, k], O[j, i], O[k, i])


def cholesky_factor(
    a: NDArray[Any] | TiledArray, *, tile: int = 256, engine: Engine | None = None, events: Sink | None = None
) -> TiledArray:
    """The lower triangular `L` with `L·Lᴴ = A`, for a Hermitian positive definite matrix.

    Only the lower triangle of `A` is read.

    >>> import numpy as np
    >>> a = np.array([[4.0, 2.0, 0.0], [2.0, 5.0, 4.0], [0.0, 4.0, 13.0]])
    >>> cholesky_factor(a, tile=2).to_numpy()
    array([[2., 0., 0.],
           [1., 2., 0.],
           [0., 2., 3.]])
    """
    matrix = as_matrix(a, tile)
    boundaries = matrix.layout.boundaries
    if boundaries[0] != boundaries[1]:
        raise InputError(
            f"Cholesky takes a square matrix in square tiles; got {matrix.shape[0]}×{matrix.shape[1]} "
            f"in {matrix.grid[0]}×{matrix.grid[1]} tiles"
        )
    return run(cholesky.bind(N=matrix.grid[0]), {"A": matrix}, engine, events)["O"]
