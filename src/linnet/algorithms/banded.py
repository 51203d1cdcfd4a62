"""Reduction to a band: block bidiagonal, by QR of a column of tiles and LQ of a row in turn.

The band has the singular values of the matrix, so it is the first stage of an SVD. `V`, `T`,
`D`, `U` are as in QR; `X`, `Y`, `E`, `H` are the same for LQ, from the right; `Z` is the matrix
between the QR and the LQ of step `k`.
"""
# pyright: reportInvalidTypeForm=false, reportIndexIssue=false

from __future__ import annotations

from linnet.kernels import copy, gelqt, gemlqt, gemqrt, geqrt, tplqt, tpmlqt, tpmqrt, tpqrt
from linnet.programs import In, Out, Temp, tile_program


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
