"""QR by single tiles with a flat tree: the program whose panel tasks the targets speak of.

It stands here, and not in `linnet.algorithms`, because it is what is measured: the
library's own QR may be written otherwise without changing the benchmark.
"""

from __future__ import annotations

import linnet.kernels  # noqa: F401  registers geqrt and the others
from linnet.programs import TileProgram

tiled_qr = TileProgram.from_source("""
def tiled_qr(A: In, R: Out(fill=0), S: Temp("A"), V: Temp, T: Temp, D: Temp, U: Temp, P: int, Q: int):
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
""")
