"""QR of a tall and skinny matrix: a QR of each tile, then a binary tree that joins two R at a time."""
# pyright: reportInvalidTypeForm=false, reportIndexIssue=false

from __future__ import annotations

from math import ceil, log2
from typing import Any

from numpy.typing import NDArray

from linnet.algorithms.running import as_matrix, run
from linnet.engines import Engine
from linnet.errors import InputError
from linnet.events import Sink
from linnet.kernels import copy, geqrt, tpqrt
from linnet.programs import In, Out, Temp, tile_program
from linnet.tiles import TiledArray


@tile_program
def tsqr(A: In, R: Out, V: Temp, T: Temp, W: Temp, N: int):
    assert N >= 1
    for i in range(N):
        V[i, 0], T[i, 0], W[i, 0] = geqrt(A[i, 0], 32)
    for level in range(ceil(log2(N))):
        for i in range(0, N, 2 ** (level + 1)):
            if i + 2**level < N:
                V[i, level + 1], T[i, level + 1], W[i, level + 1] = tpqrt(
                    W[i, level], W[i + 2**level, level], 32, triangular=True
                )
            else:
                W[i, level + 1] = copy(W[i, level])
    R[0, 0] = copy(W[0, ceil(log2(N))])


def tall_skinny_r(
    a: NDArray[Any] | TiledArray,
    *,
    tile: int = 8192,
    engine: Engine | None = None,
    events: Sink | None = None,
) -> TiledArray:
    """The triangular factor `R` of `A = Q·R`, for a matrix with many more rows than columns.

    `tile` is how many rows go into a tile; a tile has all columns, and never fewer rows than
    columns. The signs of the rows of `R` are LAPACK's.

    >>> import numpy as np
    >>> r = tall_skinny_r(np.ones((9, 1)), tile=2).to_numpy()
    >>> bool(np.allclose(abs(r), 3.0))
    True
    """
    columns = a.shape[1] if len(a.shape) == 2 else 0
    matrix = as_matrix(a, (max(tile, columns), max(columns, 1)))
    edges = matrix.layout.boundaries[0]
    short = [i for i in range(matrix.grid[0] - 1) if edges[i + 1] - edges[i] < columns]
    if matrix.grid[1] != 1 or short:
        raise InputError(
            f"TSQR takes a matrix in one column of tiles, each but the last with at least as many rows as "
            f"columns; got {matrix}"
        )
    return run(tsqr.bind(N=matrix.grid[0]), {"A": matrix}, engine, events)["R"]
