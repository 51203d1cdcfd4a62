"""QR of a tall and skinny matrix: a QR of each leaf of many rows, then a tree that joins the triangles.

For `R` alone the tree is binary. With `Q` sixteen triangles are joined at a time: each leaf of `Q`
is multiplied once, by a product of one small matrix for each level, so few levels are better, and
sixteen triangles are still a small matrix.

`A[i] = Y[i]·Z[i]·W[0, i]` is the factorisation of a leaf (`A[i]` itself may stand for `Y[i]`),
`B[l, c]` are the rows of the join at level `l` that belong to its child `c`, and `G[l, c]` the product
of these from the root down to `c`. In `tsqr_project`, `G` stands for `B`,
and `C[l, c]` is what the tree below `c` makes of the right sides `B`.
"""
# pyright: reportInvalidTypeForm=false, reportIndexIssue=false

from __future__ import annotations

from math import ceil, log2

from linnet.kernels import copy, gemm, tpqrt
from linnet.kernels.linalg.tall_qr import combine, project_leaf, project_stack, stack_qr, tall_qr, tall_r
from linnet.programs import In, Out, Temp, tile_program

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


@tile_program(verify=False)
def tsqr_project(A: In, B: In, R: Out, X: Out, Y: Temp, Z: Temp, W: Temp, G: Temp, C: Temp, N: int, K: int):
    assert N >= 1
    L = max(1, ceil(ceil(log2(N)) / 4))
    for i in range(N):
        Y[i, 0], Z[i, 0], W[0, i] = tall_qr(A[i, 0])
        for k in range(K):
            C[0, i, k] = project_leaf(A[i, 0], Y[i, 0], Z[i, 0], B[i, k])
    for l in range(L):
        for j in range(ceil(N / 16 ** (l + 1))):
            first = 16 * j
            last = min(16 * j + 16, ceil(N / 16**l))
            G[l, first:last], W[l + 1, j] = stack_qr(W[l, first:last])
            for k in range(K):
                C[l + 1, j, k] = project_stack(G[l, first:last], C[l, first:last, k])
    R[0, 0] = copy(W[L, 0])
    for k in range(K):
        X[0, k] = copy(C[L, 0, k])


def leaf_rows(columns: int) -> int:
    """How many rows go into a leaf when nobody says: enough to make the joins cheap.

    >>> leaf_rows(64), leaf_rows(1000)
    (8192, 4000)
    """
    return max(_LEAF // max(columns, 1), 4 * columns, 1)
