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

from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from linnet.algorithms.running import run
from linnet.engines import Engine
from linnet.errors import InputError
from linnet.events import Sink
from linnet.kernels import copy
from linnet.kernels.panels import (
    column_of_q,
    panel_qr,
    reflect,
    reflect_lower,
    reflect_slab,
    reflect_unit,
    slab_qr,
)
from linnet.programs import In, Out, Temp, TileProgram, tile_program
from linnet.tiles import Layout, TiledArray


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


householder = _keeping(qr, "V", "T")
"""As `qr`, but the reflectors are results too."""

qr_with_q = householder.then(form_q, {"V": "V", "T": "T"}, sizes={"K": "min(P, Q)"}, keep=False)
"""`qr`, then `form_q`: the results are `R` and `O`, which is Q."""


@dataclass(frozen=True, slots=True)
class Reflectors:
    """The `Q` of a factorisation, m×m, kept as reflectors and never formed unless asked for."""

    V: TiledArray
    """The reflectors, a tile for each tile of the matrix on and below the diagonal."""
    T: TiledArray
    """Their triangular factors, one for each panel."""

    def form(self, *, engine: Engine | None = None, events: Sink | None = None) -> TiledArray:
        """The first min(m, n) columns of `Q`."""
        bound = form_q.bind(P=self.V.grid[0], K=self.V.grid[1])
        return run(bound, {"V": self.V, "T": self.T}, engine, events)["O"]

    def apply(
        self,
        b: TiledArray,
        *,
        adjoint: bool = False,
        engine: Engine | None = None,
        events: Sink | None = None,
    ) -> TiledArray:
        """`Q·B`, or `Qᴴ·B`, for a matrix whose rows are cut like those of the factorised one."""
        if b.ndim != 2 or b.layout.boundaries[0] != self.V.layout.boundaries[0]:
            raise InputError(
                f"Q can be applied to a matrix of {self.V.shape[0]} rows cut at "
                f"{list(self.V.layout.boundaries[0])}; got {b} cut at {list(b.layout.boundaries[0])}"
            )
        program = apply_q_adjoint if adjoint else apply_q
        bound = program.bind(P=self.V.grid[0], K=self.V.grid[1], N=b.grid[1])
        return run(bound, {"V": self.V, "T": self.T, "B": b}, engine, events)["X"]


def factorise(
    matrix: TiledArray, *, engine: Engine | None = None, events: Sink | None = None
) -> tuple[Reflectors, TiledArray]:
    """`Q` as reflectors, and `R`, of a matrix in tiles that are square on the diagonal.

    >>> import numpy as np
    >>> a = np.arange(12.0).reshape(4, 3) + np.eye(4, 3)
    >>> q, r = factorise(TiledArray.from_numpy(a, 2))
    >>> x = q.apply(TiledArray.from_numpy(a, 2), adjoint=True).to_numpy()
    >>> bool(np.allclose(x[:3], r.to_numpy())), bool(np.allclose(x[3:], 0))
    (True, True)
    """
    P, Q = matrix.grid
    out = run(householder.bind(P=P, Q=Q), {"A": matrix}, engine, events)
    v, t = out.tiles("V"), out.tiles("T")
    widths = tuple(accumulate((t[0, k].shape[0] for k in range(min(P, Q))), initial=0))
    widest = max(b - a for a, b in pairwise(widths))
    dtype = t[0, 0].dtype
    # Above the diagonal V has no tiles, and T is as wide as it is long: neither is ever put together.
    reflectors = Reflectors(
        TiledArray(Layout((matrix.layout.boundaries[0], widths)), dtype, v),
        TiledArray(Layout(((0, widest), widths)), dtype, t),
    )
    return reflectors, out["R"]
