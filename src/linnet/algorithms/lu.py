"""LU with row exchanges, right-looking, with pivots by tournament; and systems beside the matrix.

At step `k` the tiles of column `k` go in groups of 16. One group alone is factored as a whole,
with partial pivoting, exactly as LAPACK does. If there are several, each nominates as many rows
as the column is wide, and the pivots are elected among the nominated: two rounds, whatever the
height, and the tiles of the column are never brought together. Then each tile of each column to
the right gives its pivots to the top and gets rows of the old top in return (see
`linnet.kernels.linalg.lu`), and is updated. The next column is ready for its own pivots as soon as its
tiles are updated, long before the rest: the scheduler needs no more to look ahead. Tiles are
copied at first, not when they are first updated: while the first pivots are looked for, nothing
else can be done.

Pivots of a tournament are nearly as good as those of partial pivoting: elements of `L` of 2 or 3
in place of 1. But where the columns of a panel depend on one another the elected rows can fail
the others. `doubted` tells; then the matrix is factored again by `partial`, where a whole column of tiles,
however high, is one group.

`S` is what is left of the matrix before step `k`; `Z` the numbers of its rows, tile by tile; `C`
and `V` the nominated rows and their numbers; `D` the factors of the elected; `W` the exchanges;
`G` the pivots on their way to the top; `R` the columns of `L` with their rows as they were when
they were made, `E` their largest elements; `O` the permutation.

A system has its right sides as further columns of tiles, so that the forward substitution is part of the
factorisation and `L` is never put in order. Two columns more are solved, to judge its condition.
"""
# pyright: reportInvalidTypeForm=false, reportIndexIssue=false

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np

from linnet.algorithms.recipe import Choose, Output, Recipe
from linnet.kernels import copy
from linnet.kernels.linalg.lu import (
    arrange,
    by_rows,
    corner,
    elect,
    nominate,
    panel,
    pick,
    ratio,
    top,
    update,
)
from linnet.kernels.linalg.norms import join_largest, squares
from linnet.kernels.linalg.pivots import (
    columns_of,
    condition_of,
    determinant,
    diagonal_of,
    doubtful,
    exchanged,
    judge_pivots,
    log_determinant,
    real,
    row_numbers,
    rows_beside,
)
from linnet.kernels.linalg.triangular import substitute, take_away
from linnet.programs import In, Out, Temp, TileProgram, tile_program
from linnet.session.work import Setting
from linnet.tiles import Layout

LARGEST = 16
"""An element of L beyond this and the pivots of the tournament are not trusted."""
GROUP = 16
"""Tiles of a column that are factored together."""

_INT = np.dtype(np.int64)
_FLOAT = np.dtype(np.float64)
_ONE = Layout(((0, 1),))


@tile_program(verify=False)
def tournament(
    A: In, U: Out, R: Out, O: Out, Z: Out, doubted: Out,
    S: Temp("A"), C: Temp, V: Temp, D: Temp, W: Temp, G: Temp, E: Temp, F: Temp,
    P: int, Q: int, K: int, side: int, rows: int,
):  # fmt: skip
    assert K <= P
    assert K <= Q
    for m in range(P):
        Z[0, m] = row_numbers(side * m, min(side, rows - side * m))
    for k in range(K):
        if P - k <= GROUP:
            U[k, k], R[k + 1 : P, k], O[k], Z[k + 1, k + 1 : P], W[k, k:P] = panel(S[k, k:P, k], Z[k, k:P])
        else:
            groups = (P - k + GROUP - 1) // GROUP
            for g in range(groups):
                first = k + GROUP * g
                C[k, g], V[k, g] = nominate(
                    S[k, first : min(first + GROUP, P), k], Z[k, first : min(first + GROUP, P)]
                )
            D[k], O[k], Z[k + 1, k + 1 : P], W[k, k:P] = elect(C[k, 0:groups], V[k, 0:groups], Z[k, k:P])
            U[k, k], E[k, k] = corner(S[k, k, k], W[k, k], D[k])
            for m in range(k + 1, P):
                R[m, k], E[m, k] = ratio(S[k, m, k], S[k, k, k], W[k, m], D[k])
            F[k] = join_largest(E[k:P, k : k + 1])
        for n in range(k + 1, Q):
            for m in range(k, P):
                G[k, m, n] = pick(S[k, m, n], W[k, m])
            U[k, n] = top(G[k, k:P, n], W[k, k:P], U[k, k])
            for m in range(k + 1, P):
                S[k + 1, m, n] = update(S[k, m, n], S[k, k, n], W[k, m], R[m, k], U[k, n])
    for m in range(K, P):
        O[m] = copy(Z[K, m])
    doubted[0] = doubtful(F[0 : min(K, max(P - GROUP, 0))], LARGEST)


@tile_program(verify=False)
def partial(
    A: In, U: Out, R: Out, O: Out, Z: Out, doubted: Out, S: Temp("A"), W: Temp, G: Temp,
    P: int, Q: int, K: int, side: int, rows: int,
):  # fmt: skip
    assert K <= P
    assert K <= Q
    for m in range(P):
        Z[0, m] = row_numbers(side * m, min(side, rows - side * m))
    for k in range(K):
        U[k, k], R[k + 1 : P, k], O[k], Z[k + 1, k + 1 : P], W[k, k:P] = panel(S[k, k:P, k], Z[k, k:P])
        for n in range(k + 1, Q):
            for m in range(k, P):
                G[k, m, n] = pick(S[k, m, n], W[k, m])
            U[k, n] = top(G[k, k:P, n], W[k, k:P], U[k, k])
            for m in range(k + 1, P):
                S[k + 1, m, n] = update(S[k, m, n], S[k, k, n], W[k, m], R[m, k], U[k, n])
    for m in range(K, P):
        O[m] = copy(Z[K, m])
    doubted[0] = row_numbers(0, 1)  # that is 0: nothing is


# ---- before and after


@tile_program(verify=False)
def rows_of(A: In, M: Out, P: int, Q: int):
    """The matrix laid out for exchanges."""
    for m in range(P):
        for n in range(Q):
            M[m, n] = by_rows(A[m, n])


@tile_program(verify=False)
def system(A: In, B: In, Y: In, M: Out, H: Out, P: int, N: int):
    """The same with right sides, and the probes `Y`, beside it; `H` is how large its tiles are."""
    assert N >= 1
    for m in range(P):
        for n in range(P):
            M[m, n] = by_rows(A[m, n])
            H[m, n] = squares(A[m, n])
        for n in range(N - 1):
            M[m, P + n] = by_rows(B[m, n])
        M[m, P + N - 1] = rows_beside(B[m, N - 1], Y[m, 0])


@tile_program(verify=False)
def packed(U: In, R: In, Z: In, O: In, X: Out, piv: Out, p: Out, P: int, Q: int, K: int, count: int):
    """U with L below its diagonal, rows where all exchanges have brought them; exchanges, permutation."""
    assert K <= P
    assert K <= Q
    p[0:P], piv[0] = exchanged(O[0:P], count)
    for k in range(K):
        for n in range(k, Q):
            X[k, n] = copy(U[k, n])
        for m in range(k + 1, P):
            X[m, k] = arrange(R[k + 1 : P, k], Z[k + 1, k + 1 : P], p[m])


@tile_program(verify=False)
def determinants(U: In, O: In, det: Out, sign: Out, logabsdet: Out, D: Temp, P: int, K: int):
    for k in range(K):
        D[k] = diagonal_of(U[k, k])
    det[0] = determinant(D[0:K], O[0:P])
    sign[0], logabsdet[0] = log_determinant(D[0:K], O[0:P])


@tile_program(verify=False)
def substituted(
    U: In, H: In, doubted: In, X: Out, condition: Out, singular: Out, doubt: Out,
    T: Temp, W: Temp, D: Temp, Y: Temp, P: int, N: int, refuse: int,
):  # fmt: skip
    """The solution, from the right sides beside U; those of the probes are the last two columns of `T`."""
    assert N >= 1
    for k in range(P):
        D[k] = diagonal_of(U[k, k])
    doubt[0] = copy(doubted[0])
    singular[0] = judge_pivots(D[0:P], refuse, doubted[0])
    for i in range(P - 1, -1, -1):
        for j in range(N):
            if i + 2 >= P:
                T[i, j] = substitute(U[i, i], U[i, P + j], U[i, i + 1 : P], T[i + 1 : P, j], 0, lower=False)
            else:
                W[i, j] = take_away(U[i, P + j], U[i, i + 2 : P], T[i + 2 : P, j])
                T[i, j] = substitute(
                    U[i, i], W[i, j], U[i, i + 1 : i + 2], T[i + 1 : i + 2, j], 0, lower=False
                )
            if j < N - 1:
                X[i, j] = copy(T[i, j])
        X[i, N - 1] = columns_of(T[i, N - 1], 0, -2)
        Y[i] = columns_of(T[i, N - 1], -2, 0)
    condition[0] = condition_of(D[0:P], Y[0:P], H[0:P, 0:P], singular[0])


# ---- recipes


def factors(layout: Layout, dtype: np.dtype[np.generic]) -> Recipe:
    """`X`, U with L below its diagonal; the exchanges `piv`; and the permutation `p`, of a matrix `A`."""
    count = min(layout.shape)
    outputs = (
        ("X", Output(layout, dtype)),
        ("piv", Output(Layout(((0, count),)), _INT)),
        ("p", Output(Layout(layout.boundaries[:1]), _INT)),
    )
    return _recipe("lu", ("A",), outputs, _factored, layout, count=count)


def determinant_of(layout: Layout, dtype: np.dtype[np.generic]) -> Recipe:
    """`det` of a square matrix `A`."""
    return _recipe("det", ("A",), (("det", Output(_ONE, dtype)),), _valued, layout)


def log_determinant_of(layout: Layout, dtype: np.dtype[np.generic]) -> Recipe:
    """`sign` and `logabsdet` of the determinant of a square matrix `A`."""
    outputs = (("sign", Output(_ONE, dtype)), ("logabsdet", Output(_ONE, real(dtype))))
    return _recipe("slogdet", ("A",), outputs, _valued, layout)


def solution(layout: Layout, right: Layout, dtype: np.dtype[np.generic], *, refuse: bool = True) -> Recipe:
    """`X` with `A·X = B`; `Y` are `probes`, and `singular` says, without `refuse`, whether there is none."""
    outputs = (
        ("X", Output(right, dtype)),
        ("condition", Output(_ONE, _FLOAT)),
        ("singular", Output(_ONE, _FLOAT)),
    )
    made = {"N": right.grid[1], "refuse": int(refuse)}
    condition = "condition" if refuse else None
    return _recipe("solve", ("A", "B", "Y"), outputs, _solved, layout, condition, **made)


def _recipe(
    name: str,
    inputs: tuple[str, ...],
    outputs: tuple[tuple[str, Output], ...],
    choose: Choose,
    layout: Layout,
    condition: str | None = None,
    **more: int,
) -> Recipe:
    rows, columns = layout.grid
    side = layout.boundaries[0][1]
    sizes = {"P": rows, "Q": columns, "K": min(rows, columns), "side": side, "rows": layout.shape[0], **more}
    doubt = ("doubt" if name == "solve" else "doubted") if rows > GROUP else None
    return Recipe(name, inputs, outputs, choose, tuple(sizes.items()), condition, doubt)


def _factored(setting: Setting, wanted: frozenset[str], sizes: Mapping[str, int]) -> TileProgram:
    return _joined(setting.trusting, packed)


def _valued(setting: Setting, wanted: frozenset[str], sizes: Mapping[str, int]) -> TileProgram:
    return _joined(setting.trusting, determinants)


def _solved(setting: Setting, wanted: frozenset[str], sizes: Mapping[str, int]) -> TileProgram:
    return _with_system(setting.trusting)


@cache
def _joined(trusting: bool, after: TileProgram) -> TileProgram:
    """Elimination of a matrix, and what follows."""
    elimination = tournament if trusting else partial
    return rows_of.then(elimination, {"A": "M"}, keep=False).then(after, keep=False)


@cache
def _with_system(trusting: bool) -> TileProgram:
    """Elimination of a matrix and the right sides beside it, and the solution."""
    elimination = tournament if trusting else partial
    sizes = {"Q": "P + N", "K": "P"}
    return system.then(elimination, {"A": "M"}, sizes=sizes, keep=False).then(substituted, keep=False)
