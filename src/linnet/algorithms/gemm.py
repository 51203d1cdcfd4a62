"""Matrix product: each tile of C is one task that reads a row of tiles of A and a column of tiles of B."""
# pyright: reportInvalidTypeForm=false, reportIndexIssue=false

from __future__ import annotations

import functools
import heapq

import numpy as np

from linnet.kernels import gemm as multiply
from linnet.kernels import gemm_add, gemm_block
from linnet.programs import In, Out, Temp, TileProgram, tile_program
from linnet.tiles import Boundaries

_BLOCKS = [(2, 8), (4, 4), (2, 4), (1, 4), (1, 2), (1, 1)]
"""Rows and columns of tiles that one task computes: the first that gives all workers about as much."""
_UNEVEN = 1.15
"""How much more than its share a worker may get."""
_EVEN = 64
"""Where all tiles end at multiples of this, BLAS rounds alike whatever is computed together."""
_ANYWHERE = (2, 4)
"""What one task computes where they do not: its bits must not depend on the number of workers."""


@tile_program(verify=False)
def gemm(A: In, B: In, C: Out, M: int, N: int, K: int):
    assert K >= 1
    for i in range(M):
        for j in range(N):
            C[i, j] = multiply(A[i, 0:K], B[0:K, j])


@functools.cache
def block_gemm(rows: int, columns: int) -> TileProgram:
    """The same product, so many tiles a task: for arrays in one piece, of which tiles are only views."""

    @tile_program(verify=False)
    def block_gemm(A: In, B: In, C: Out, M: int, N: int, K: int):
        assert K >= 1
        for i in range(0, M, rows):
            for j in range(0, N, columns):
                C[i : min(i + rows, M), j : min(j + columns, N)] = gemm_block(
                    A[i : min(i + rows, M), 0:K], B[0:K, j : min(j + columns, N)]
                )

    return block_gemm


@tile_program(verify=False)
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


def together(rows: Boundaries, columns: Boundaries, workers: int) -> tuple[int, int]:
    """How many rows and columns of tiles one task computes where all lie in memory.

    The number of workers may change the speed, and no bit.

    >>> together((0, 64, 128), (0, 64, 128), workers=2)
    (1, 4)
    """
    if any(edge % _EVEN for edge in (*rows, *columns)):
        return _ANYWHERE
    fair = (block for block in _BLOCKS if _share(rows, columns, block, workers) <= _UNEVEN / workers)
    return next(fair, _BLOCKS[-1])


def _share(rows: Boundaries, columns: Boundaries, block: tuple[int, int], workers: int) -> float:
    """What part of the product the worker with the most to do gets, if each takes the next largest block.

    >>> _share((0, 64, 128, 192), (0, 64), (2, 1), workers=2)
    0.6666666666666666
    """
    heights, widths = (
        np.diff([*edges[:-1:step], edges[-1]]) for edges, step in zip((rows, columns), block, strict=True)
    )
    loads = [0.0] * workers
    for area in sorted(np.outer(heights, widths).ravel().tolist(), reverse=True):
        heapq.heapreplace(loads, loads[0] + area)
    return max(loads) / max(1, rows[-1] * columns[-1])
