"""Matrix product: each tile of C is one task that reads a row of tiles of A and a column of tiles of B."""
# pyright: reportInvalidTypeForm=false, reportIndexIssue=false

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from linnet.algorithms.running import as_matrix, run
from linnet.engines import Engine
from linnet.errors import InputError
from linnet.events import Sink
from linnet.kernels import gemm as multiply
from linnet.kernels import gemm_add
from linnet.programs import In, Out, Temp, tile_program
from linnet.tiles import TiledArray


@tile_program
def gemm(A: In, B: In, C: Out, M: int, N: int, K: int):
    assert K >= 1
    for i in range(M):
        for j in range(N):
            C[i, j] = multiply(A[i, 0:K], B[0:K, j])


@tile_program
def accumulated_gemm(A: In, B: In, C: Out, P: Temp, M: int, N: int, K: int):
    """The same product, one task for each pair of tiles: for engines where no worker can hold a row."""
    assert K >= 1
    for i in range(M):
        for j in range(N):
            if K == 1:
                C[i, j] = multiply(A[i, 0], B[0, j])
            else:
                P[1, i, j] = multiply(A[i, 0], B[0, j])
                for k in range(1, K - 1):
                    P[k + 1, i, j] = gemm_add(P[k, i, j], A[i, k], B[k, j])
                C[i, j] = gemm_add(P[K - 1, i, j], A[i, K - 1], B[K - 1, j])


def matmul(
    a: NDArray[Any] | TiledArray,
    b: NDArray[Any] | TiledArray,
    *,
    tile: int = 512,
    engine: Engine | None = None,
    events: Sink | None = None,
) -> TiledArray:
    """`A·B`.

    >>> import numpy as np
    >>> matmul(np.arange(6.0).reshape(2, 3), np.ones((3, 2)), tile=2).to_numpy()
    array([[ 3.,  3.],
           [12., 12.]])
    """
    left, right = as_matrix(a, tile), as_matrix(b, tile)
    if left.layout.boundaries[1] != right.layout.boundaries[0]:
        raise InputError(
            f"cannot multiply {left.shape[0]}×{left.shape[1]} by {right.shape[0]}×{right.shape[1]}: "
            "the columns of the first must be as many, and cut as, the rows of the second"
        )
    bound = gemm.bind(M=left.grid[0], N=right.grid[1], K=left.grid[1])
    return run(bound, {"A": left, "B": right}, engine, events)["C"]
