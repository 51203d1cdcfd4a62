"""QR of a tall and skinny matrix: a QR of each leaf of many rows, then a tree that joins the triangles.

For `R` alone the tree is binary. With `Q` sixteen triangles are joined at a time: each leaf of `Q`
is multiplied once, by a product of one small matrix for each level, so few levels are better, and
sixteen triangles are still a small matrix.

`A[i] = Y[i]·Z[i]·W[0, i]` is the factorisation of a leaf (`A[i]` itself may stand for `Y[i]`),
`B[l, c]` are the rows of the join at level `l` that belong to its child `c`, and `G[l, c]` the product
of these from the root down to `c`.
"""
# pyright: reportInvalidTypeForm=false, reportIndexIssue=false

from __future__ import annotations

from math import ceil, log2
from typing import Any

from numpy.typing import NDArray

from linnet.algorithms.running import as_matrix, run
from linnet.engines import Engine
from linnet.errors import InputError
from linnet.events import Sink
from linnet.kernels import copy, gemm, tpqrt
from linnet.kernels.tall import combine, stack_qr, tall_qr, tall_r
from linnet.programs import In, Out, Temp, tile_program
from linnet.tiles import TiledArray

_LEAF = 2**19
"""Elements in a leaf: two of them with their Q stay in the last cache."""


@tile_program(verify=False)
def tsqr(A: In, R: Out, V: Temp, T: Temp, W: Temp, N: int):
    assert N >= 1
    for i in range(N):
        W[i, 0] = tall_r(A[i, 0])
    for level in range(ceil(log2(N))):
        for i in range(0, N, 2 ** (level + 1)):
            if i + 2**level < N:
                V[i, level + 1], T[i, level + 1], W[i, level + 1] = tpqrt(
                    W[i, level], W[i + 2**level, level], 32, triangular=True
                )
            else:
                W[i, level + 1] = copy(W[i, level])
    R[0, 0] = copy(W[0, ceil(log2(N))])


@tile_program(verify=False)
def tsqr_with_q(A: In, R: Out, O: Out, Y: Temp, Z: Temp, W: Temp, B: Temp, G: Temp, N: int):
    assert N >= 1
    L = max(1, ceil(ceil(log2(N)) / 4))
    for i in range(N):
        Y[i, 0], Z[i, 0], W[0, i] = tall_qr(A[i, 0])
    for l in range(L):
        for j in range(ceil(N / 16 ** (l + 1))):
            first = 16 * j
            last = min(16 * j + 16, ceil(N / 16**l))
            B[l, first:last], W[l + 1, j] = stack_qr(W[l, first:last])
    R[0, 0] = copy(W[L, 0])
    for l in range(L - 1, -1, -1):
        for c in range(ceil(N / 16**l)):
            if l == L - 1:
                G[l, c] = copy(B[l, c])
            else:
                G[l, c] = gemm(B[l, c], G[l + 1, c // 16])
    for i in range(N):
        O[i, 0] = combine(A[i, 0], Y[i, 0], Z[i, 0], G[0, i])


def tall_skinny_r(
    a: NDArray[Any] | TiledArray,
    *,
    tile: int | None = None,
    engine: Engine | None = None,
    events: Sink | None = None,
) -> TiledArray:
    """The triangular factor `R` of `A = Q·R`, for a matrix with many more rows than columns.

    `tile` is how many rows go into a leaf; a leaf has all columns, and never fewer rows than
    columns. The signs of the rows of `R` are not determined.

    >>> import numpy as np
    >>> r = tall_skinny_r(np.ones((9, 1)), tile=2).to_numpy()
    >>> bool(np.allclose(abs(r), 3.0))
    True
    """
    matrix = leaves(a, tile)
    return run(tsqr.bind(N=matrix.grid[0]), {"A": matrix}, engine, events)["R"]


def tall_skinny_qr(
    a: NDArray[Any] | TiledArray,
    *,
    tile: int | None = None,
    engine: Engine | None = None,
    events: Sink | None = None,
) -> tuple[TiledArray, TiledArray]:
    """`Q`, with orthonormal columns, and `R` of `A = Q·R`; `tile` as in `tall_skinny_r`.

    >>> import numpy as np
    >>> a = np.arange(18.0).reshape(9, 2)
    >>> q, r = tall_skinny_qr(a, tile=2)
    >>> q.grid, bool(np.allclose(q.to_numpy() @ r.to_numpy(), a))
    ((5, 1), True)
    """
    matrix = leaves(a, tile)
    out = run(tsqr_with_q.bind(N=matrix.grid[0]), {"A": matrix}, engine, events)
    return out["O"], out["R"]


def leaf_rows(columns: int) -> int:
    """How many rows go into a leaf when nobody says: enough to make the joins cheap.

    >>> leaf_rows(64), leaf_rows(1000)
    (8192, 4000)
    """
    return max(_LEAF // max(columns, 1), 4 * columns, 1)


def leaves(a: NDArray[Any] | TiledArray, tile: int | None) -> TiledArray:
    """The matrix in one column of tiles, each but the last with at least as many rows as columns."""
    columns = a.shape[1] if len(a.shape) == 2 else 0
    rows = leaf_rows(columns) if tile is None else tile
    matrix = as_matrix(a, (max(rows, columns), max(columns, 1)))
    edges = matrix.layout.boundaries[0]
    short = [i for i in range(matrix.grid[0] - 1) if edges[i + 1] - edges[i] < columns]
    if matrix.grid[1] != 1 or short:
        raise InputError(
            f"TSQR takes a matrix in one column of tiles, each but the last with at least as many rows as "
            f"columns; got {matrix}"
        )
    return matrix
