"""QR by panels, as tile programs: factorise, form Q, apply Q.

A panel is a column of tiles from the diagonal down; it is factorised in one piece, and its
reflectors are stored in tiles. What is right of it is updated column by column, so that the next panel
starts as soon as its own column is ready. `Q` is then formed in the same way, by plain products of tiles:
measured on tiles of 256, 40 GFLOP/s a core against 31 for kernels on pairs of tiles.

For `R` alone the choice is not settled. Processor time of a flat tree over the tiles, panels being 1,
on a busy machine: 1.0 at 2048 columns, 1.06 at 3072 (BLAS kept to one thread), 0.74 at 4096 (BLAS
widened while a panel runs alone). A binary tree: 1.6 at 2048, 1.07 at 4096.

Where workers share memory, `qr_at_hand` does both: the tiles of a column lie together and by columns, and
BLAS, which is the faster the longer its results are, multiplies all of them at once.

`V` and `T` are the reflectors, `S` what is left of the matrix before panel `k`, and `C` a column of
`Q` on its way: `C[k, m, n]` has been through the reflectors of panel `k` and those after it.
"""
# pyright: reportInvalidTypeForm=false, reportIndexIssue=false

from __future__ import annotations

from dataclasses import replace

from linnet.kernels import copy
from linnet.kernels.linalg.panel_qr import (
    column_of_q,
    panel_qr,
    reflect,
    reflect_lower,
    reflect_slab,
    reflect_unit,
    slab_qr,
)
from linnet.programs import In, Out, Temp, TileProgram, tile_program


@tile_program(verify=False)
def qr(A: In, R: Out(fill=0), S: Temp("A"), V: Temp, T: Temp, P: int, Q: int):
    for k in range(min(P, Q)):
        V[k:P, k], T[0, k], R[k, k] = panel_qr(S[k, k:P, k])
        for n in range(k + 1, Q):
            R[k, n], S[k + 1, k + 1 : P, n] = reflect(V[k:P, k], T[0, k], S[k, k:P, n])


@tile_program(verify=False)
def form_q(V: In, T: In, O: Out, C: Temp, P: int, K: int):
    assert P >= K
    for n in range(K):
        if n == 0:
            O[0:P, 0] = reflect_unit(V[0:P, 0], T[0, 0])
        else:
            C[n, n:P, n] = reflect_unit(V[n:P, n], T[0, n])
            for k in range(n - 1, 0, -1):
                # Row k of the column is still zero.
                C[k, k, n], C[k, k + 1 : P, n] = reflect_lower(V[k:P, k], T[0, k], C[k + 1, k + 1 : P, n])
            O[0, n], O[1:P, n] = reflect_lower(V[0:P, 0], T[0, 0], C[1, 1:P, n])


@tile_program(verify=False)
def qr_at_hand(
    A: In, R: Out(fill=0), O: Out, S: Temp("A"), V: Temp, T: Temp, E: Temp, P: int, Q: int, K: int
):
    """Both, where workers share memory: panels of `V` are in one piece, and so is a column of `Q`."""
    assert K <= P
    assert K <= Q
    for k in range(K):
        V[k], T[k], R[k, k], E[k] = slab_qr(S[k, k:P, k])
        for n in range(k + 1, Q):
            R[k, n], S[k + 1, k + 1 : P, n] = reflect_slab(V[k], T[k], S[k, k:P, n])
    for n in range(K - 1, -1, -1):
        O[0:P, n] = column_of_q(V[0 : n + 1], T[0 : n + 1], E[0])


@tile_program(verify=False)
def apply_q(V: In, T: In, B: In, X: Out, C: Temp, P: int, K: int, N: int):
    assert K >= 1
    assert P >= K
    for n in range(N):
        for m in range(P):
            C[min(m + 1, K), m, n] = copy(B[m, n])
        for k in range(K - 1, 0, -1):
            C[k, k, n], C[k, k + 1 : P, n] = reflect(V[k:P, k], T[0, k], C[k + 1, k:P, n], adjoint=False)
        X[0, n], X[1:P, n] = reflect(V[0:P, 0], T[0, 0], C[1, 0:P, n], adjoint=False)


@tile_program(verify=False)
def apply_q_adjoint(V: In, T: In, B: In, X: Out, C: Temp("B"), P: int, K: int, N: int):
    assert P >= K
    for n in range(N):
        for k in range(K):
            X[k, n], C[k + 1, k + 1 : P, n] = reflect(V[k:P, k], T[0, k], C[k, k:P, n])
        for m in range(K, P):
            X[m, n] = copy(C[K, m, n])


def _keeping(program: TileProgram, *names: str) -> TileProgram:
    """The program with these intermediate arrays among its results."""
    tree = program.tree
    parameters = tuple(replace(each, role=Out()) if each.name in names else each for each in tree.parameters)
    return TileProgram(replace(tree, parameters=parameters))


householder: TileProgram = _keeping(qr, "V", "T")
"""As `qr`, but the reflectors are results too."""

qr_with_q: TileProgram = householder.then(form_q, {"V": "V", "T": "T"}, sizes={"K": "min(P, Q)"}, keep=False)
"""`qr`, then `form_q`: the results are `R` and `O`, which is Q."""

projected: TileProgram = householder.then(
    apply_q_adjoint, {"V": "V", "T": "T"}, sizes={"K": "min(P, Q)"}, keep=False
)
"""`qr`, then `apply_q_adjoint`: the results are `R` and `X`, which is Qᴴ·B."""

completed: TileProgram = householder.then(form_q, sizes={"K": "min(P, Q)"}).then(
    apply_q, sizes={"K": "min(P, Q)"}, keep=False
)
"""`qr`, then `form_q` and `apply_q`: the results are `R`, the first columns `O` of Q, and `X`, Q·B."""
