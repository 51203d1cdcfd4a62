"""LU with row exchanges, right-looking, with pivots by tournament.

At step `k` the tiles of column `k` go in groups of 16. One group alone is factored as a whole,
with partial pivoting, exactly as LAPACK does. If there are several, each nominates as many rows
as the column is wide, and the pivots are elected among the nominated: two rounds, whatever the
height, and the tiles of the column are never brought together. Then each tile of each column to
the right gives its pivots to the top and gets rows of the old top in return (see
`linnet.kernels.lu`), and is updated. The next column is ready for its own pivots as soon as its
tiles are updated, long before the rest: the scheduler needs no more to look ahead. Tiles are
copied at first, not when they are first updated: while the first pivots are looked for, nothing
else can be done.

Pivots of a tournament are nearly as good as those of partial pivoting: elements of `L` of 2 or 3
in place of 1. But where the columns of a panel depend on one another the elected rows can fail
the others. `E`, the largest elements of `L`, tells; then the matrix is factored again by
`partial`, where a whole column of tiles, however high, is one group.

`S` is what is left of the matrix before step `k`; `Z` the numbers of its rows, tile by tile; `C`
and `V` the nominated rows and their numbers; `D` the factors of the elected; `W` the exchanges;
`G` the pivots on their way to the top; `R` the columns of `L` with their rows as they were when
they were made; `O` the permutation.
"""
# pyright: reportInvalidTypeForm=false, reportIndexIssue=false

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from linnet.algorithms.running import need_square_tiles, room, run, sized
from linnet.algorithms.stacks import Array, as_stack, cut, is_small, over_stack
from linnet.engines import Engine, Outputs
from linnet.errors import InputError
from linnet.events import Sink
from linnet.kernels import copy
from linnet.kernels.fortran import promote
from linnet.kernels.lu import (
    arrange,
    by_rows,
    corner,
    elect,
    factor,
    nominate,
    panel,
    pick,
    ratio,
    top,
    update,
)
from linnet.programs import In, Out, Temp, tile_program
from linnet.session import current_engine
from linnet.tiles import Index, Layout, Tile, TiledArray

LARGEST = 16.0
"""An element of L beyond this and the pivots of the tournament are not trusted."""


@tile_program(verify=False)
def tournament(
    A: In, I: In, U: Out, R: Out, O: Out, Z: Out, E: Out,
    S: Temp, C: Temp, V: Temp, D: Temp, W: Temp, G: Temp, P: int, Q: int, K: int,
):  # fmt: skip
    assert K <= P
    assert K <= Q
    for m in range(P):
        Z[0, m] = copy(I[m])
        for n in range(Q):
            S[0, m, n] = by_rows(A[m, n])
    for k in range(K):
        if P - k <= 16:
            U[k, k], R[k + 1 : P, k], O[k], Z[k + 1, k + 1 : P], W[k, k:P] = panel(S[k, k:P, k], Z[k, k:P])
        else:
            groups = (P - k + 15) // 16
            for g in range(groups):
                first = k + 16 * g
                C[k, g], V[k, g] = nominate(
                    S[k, first : min(first + 16, P), k], Z[k, first : min(first + 16, P)]
                )
            D[k], O[k], Z[k + 1, k + 1 : P], W[k, k:P] = elect(C[k, 0:groups], V[k, 0:groups], Z[k, k:P])
            U[k, k], E[k, k] = corner(S[k, k, k], W[k, k], D[k])
            for m in range(k + 1, P):
                R[m, k], E[m, k] = ratio(S[k, m, k], S[k, k, k], W[k, m], D[k])
        for n in range(k + 1, Q):
            for m in range(k, P):
                G[k, m, n] = pick(S[k, m, n], W[k, m])
            U[k, n] = top(G[k, k:P, n], W[k, k:P], U[k, k])
            for m in range(k + 1, P):
                S[k + 1, m, n] = update(S[k, m, n], S[k, k, n], W[k, m], R[m, k], U[k, n])
    for m in range(K, P):
        O[m] = copy(Z[K, m])


@tile_program(verify=False)
def partial(
    A: In, I: In, U: Out, R: Out, O: Out, Z: Out,
    S: Temp, W: Temp, G: Temp, P: int, Q: int, K: int,
):  # fmt: skip
    assert K <= P
    assert K <= Q
    for m in range(P):
        Z[0, m] = copy(I[m])
        for n in range(Q):
            S[0, m, n] = by_rows(A[m, n])
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


@tile_program(verify=False)
def arranged(R: In, Z: In, O: In, L: Out, B: Out, P: int, K: int):
    """The columns of L with their rows where all exchanges have brought them; B is O, to keep."""
    assert K <= P
    for m in range(P):
        B[m] = copy(O[m])
    for j in range(K):
        for m in range(j + 1, P):
            L[m, j] = arrange(R[j + 1 : P, j], Z[j + 1, j + 1 : P], O[m])


tournament_lu = tournament.then(arranged, keep=False)
partial_lu = partial.then(arranged, keep=False)


class LUResult(NamedTuple):
    """What `lu` returns."""

    p: Array
    """The permutation, as numbers of rows."""
    l: Array
    """Lower triangular (trapezoidal), with ones on the diagonal."""
    u: Array
    """Upper triangular (trapezoidal)."""


class LUFactors(NamedTuple):
    """A factorisation to keep, laid out as LAPACK and SciPy do."""

    lu: Array
    """U, and L below its diagonal."""
    piv: Array
    """Row i was exchanged with row piv[i], for i = 0, 1, ..."""


@dataclass(frozen=True, slots=True)
class Elimination:
    """A matrix after elimination: the tiles of its factors, and its permutation."""

    layout: Layout
    """How the factors are cut: as the matrix is."""
    upper: Mapping[Index, Tile]
    """Tiles on the diagonal, with U and L, and tiles of U right of it."""
    order: Array
    """The permutation, as numbers of rows."""

    def diagonal(self) -> Array:
        """The diagonal of U."""
        steps = [self.upper[k, k].diagonal() for k in range(min(self.layout.grid)) if (k, k) in self.upper]
        return np.concatenate(steps)


def eliminate(
    matrix: TiledArray,
    *,
    steps: int | None = None,
    engine: Engine | None = None,
    events: Sink | None = None,
) -> Elimination:
    """Factor the first `steps` columns of tiles (all, by default) and update those beyond."""
    outputs, order = eliminated(matrix, steps=steps, engine=engine, events=events)
    return Elimination(matrix.layout, outputs.tiles("U"), order)


def eliminated(
    matrix: TiledArray,
    *,
    steps: int | None = None,
    lower: bool = False,
    into: TiledArray | None = None,
    engine: Engine | None = None,
    events: Sink | None = None,
) -> tuple[Outputs, Array]:
    """The same, with the tiles of U (and L) where the run has left them, and the permutation.

    Both go `into` an array that is cut as the matrix is, if there is one.
    """
    rows, columns = matrix.grid
    steps = min(rows, columns) if steps is None else steps
    _need_room(matrix, steps)
    edges = matrix.layout.boundaries[0]
    numbers = {(i,): np.arange(edges[i], edges[i + 1]) for i in range(rows)}
    inputs = {"A": matrix, "I": TiledArray(Layout((edges,)), np.dtype(np.int64), numbers)}
    sizes = {"P": rows, "Q": columns, "K": steps}
    out = None if into is None else dict.fromkeys("UL" if lower else "U", into)
    program = tournament_lu if lower else tournament
    outputs = run(sized(program, **sizes), inputs, engine, events, out)
    if not _trusted(outputs):
        program = partial_lu if lower else partial
        outputs = run(sized(program, **sizes), inputs, engine, events, out)
    return outputs, outputs["B" if lower else "O"].to_numpy()


def _trusted(outputs: Outputs) -> bool:
    """Whether no element of L is too large; one that is not a number is."""
    return all(each[0] <= LARGEST for each in outputs.tiles("E").values())


def _need_room(matrix: TiledArray, steps: int) -> None:
    """Refuse tiles on the diagonal that are not square, or lower than wide with tiles below them."""
    need_square_tiles(matrix, "LU")
    rows, columns = (np.diff(edges) for edges in matrix.layout.boundaries)
    last = steps - 1
    if steps < matrix.grid[0] and rows[last] < columns[last]:
        raise InputError(
            f"LU takes tiles on the diagonal at least as high as wide where there are tiles below; "
            f"got {rows[last]}×{columns[last]} in row {last}; cut the rows otherwise"
        )


def lu(
    a: Any, *, tile: int | None = None, engine: Engine | None = None, events: Sink | None = None
) -> LUResult:
    """`p`, `L`, `U` with `A[p] = L·U`, for a matrix of any shape or a stack of them.

    A singular matrix is factored too: U then has zeros on its diagonal.

    >>> p, l, u = lu([[0.0, 2.0], [4.0, 1.0]])
    >>> p, l, u
    (array([1, 0]), array([[1., 0.],
           [0., 1.]]), array([[4., 1.],
           [0., 2.]]))
    """
    stack = as_stack(a)
    if stack.ndim > 2:
        assert isinstance(stack, np.ndarray)
        return LUResult(
            *over_stack(lambda x: lu(x, tile=tile, engine=engine, events=events), stack, outputs=3)
        )
    packed, order = packed_factors(stack, tile, engine, events)
    k = min(packed.shape)
    lower = np.tril(packed[:, :k], -1)
    np.fill_diagonal(lower, 1)
    return LUResult(order, lower, np.triu(packed[:k]))


def lu_factor(
    a: Any, *, tile: int | None = None, engine: Engine | None = None, events: Sink | None = None
) -> LUFactors:
    """The LU factorisation of a matrix, to be used again and again by `lu_solve`.

    Laid out as by `scipy.linalg.lu_factor`: either library can use the other's.

    >>> factors = lu_factor([[0.0, 2.0], [4.0, 1.0]])
    >>> factors.piv
    array([1, 1])
    """
    stack = as_stack(a)
    if stack.ndim > 2:
        assert isinstance(stack, np.ndarray)
        made = over_stack(lambda x: lu_factor(x, tile=tile, engine=engine, events=events), stack, outputs=2)
        return LUFactors(*made)
    packed, order = packed_factors(stack, tile, engine, events)
    piv, reached = exchanges(order, min(packed.shape))
    if not np.array_equal(reached, order):  # below the last pivot, the order of rows is free
        packed = packed[np.argsort(order)[reached]]
    return LUFactors(packed, piv)


def packed_factors(
    a: Array | TiledArray, tile: int | None, engine: Engine | None, events: Sink | None
) -> tuple[Array, Array]:
    """U with L below its diagonal, in one array, and the permutation."""
    if is_small(a, tile):
        packed = np.array(a, order="F")
        order, _ = factor(packed)
        return packed, order
    matrix = cut(a, tile, "lu", engine)
    packed = room(engine or current_engine(), matrix.shape, promote(matrix.dtype))
    place = TiledArray.over(packed, matrix.layout)
    _, order = eliminated(matrix, lower=True, into=place, engine=engine, events=events)
    return packed, order


def exchanges(order: Array, count: int) -> tuple[Array, Array]:
    """The exchanges, one for each of the first `count` rows, that bring them there; and the order reached.

    >>> exchanges(np.array([2, 0, 1]), 3)
    (array([2, 2, 2]), array([2, 0, 1]))
    """
    holds = list(range(len(order)))
    place = list(range(len(order)))
    piv = np.empty(count, np.int64)
    for i, row in enumerate(order[:count].tolist()):
        j = place[row]
        piv[i] = j
        other = holds[i]
        holds[i], holds[j] = row, other
        place[row], place[other] = i, j
    return piv, np.array(holds, np.int64)


def order_of(piv: Array, rows: int) -> Array:
    """The permutation that exchanges of rows amount to.

    >>> order_of(np.array([2, 2, 2]), 3)
    array([2, 0, 1])
    """
    order = np.arange(rows)
    for i, j in enumerate(np.asarray(piv).tolist()):
        if i != j:
            order[i], order[j] = order[j], order[i]
    return order
