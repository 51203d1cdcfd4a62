"""Least squares of any shape and rank, on QR.

A tall matrix is `Q·R`, and what is left is a problem with the small `R`; a wide one is the adjoint
of a tall one. `Q` is applied, never formed, except to expand what a tree has reduced. Full rank
ends in a triangular solve; otherwise the singular vectors of `R` give the solution of least norm.

In `tsqr_project`, as in `tsqr_with_q`, `B[l, c]` belongs to child `c` of a join at level `l`;
`X[l, c]` is what the tree below `c` makes of the right-hand sides.
"""
# pyright: reportInvalidTypeForm=false, reportIndexIssue=false

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, log2
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linnet.algorithms.gemm import matmul
from linnet.algorithms.householder import factorise
from linnet.algorithms.qr import at_once, is_skinny, square_tiles
from linnet.algorithms.stacks import as_floating
from linnet.algorithms.svd import svd_tiled, svdvals_tiled
from linnet.algorithms.triangular import solve_triangular
from linnet.algorithms.tsqr import leaves, tall_skinny_qr
from linnet.algorithms.tuning import SHORTCUT
from linnet.engines import Engine
from linnet.errors import LinAlgError
from linnet.events import Sink
from linnet.kernels import copy
from linnet.kernels.fortran import promote
from linnet.kernels.tall import project_leaf, project_stack, stack_qr, tall_qr
from linnet.programs import In, Out, Temp, tile_program
from linnet.session import current_engine
from linnet.tiles import Layout, TiledArray

Matrix = NDArray[Any]


@tile_program(verify=False)
def tsqr_project(A: In, C: In, R: Out, O: Out, Y: Temp, Z: Temp, W: Temp, B: Temp, X: Temp, N: int, K: int):
    assert N >= 1
    L = max(1, ceil(ceil(log2(N)) / 4))
    for i in range(N):
        Y[i, 0], Z[i, 0], W[0, i] = tall_qr(A[i, 0])
        for k in range(K):
            X[0, i, k] = project_leaf(A[i, 0], Y[i, 0], Z[i, 0], C[i, k])
    for l in range(L):
        for j in range(ceil(N / 16 ** (l + 1))):
            first = 16 * j
            last = min(16 * j + 16, ceil(N / 16**l))
            B[l, first:last], W[l + 1, j] = stack_qr(W[l, first:last])
            for k in range(K):
                X[l + 1, j, k] = project_stack(B[l, first:last], X[l, first:last, k])
    R[0, 0] = copy(W[L, 0])
    for k in range(K):
        O[0, k] = copy(X[L, 0, k])


class LstsqResult(NamedTuple):
    """What `least_squares` returns."""

    x: Matrix
    """The solution of least norm."""
    residuals: Matrix
    """Sums of squares of b - A·x, one for each column of b; empty unless m > n = rank."""
    rank: int
    """How many singular values count."""
    singular_values: Matrix
    """Of A, descending."""


def least_squares(
    a: Matrix | TiledArray,
    b: Matrix | TiledArray,
    rcond: float | None = None,
    *,
    tile: int | None = None,
    engine: Engine | None = None,
    events: Sink | None = None,
) -> LstsqResult:
    """`x` that minimises ‖A·x − b‖, and of these the shortest; `b` is a vector or a matrix.

    Singular values below `rcond` times the largest count as zero; by default that is the rounding
    of the dtype times max(m, n). As in LAPACK, 0 or less, and 1 or more, mean the rounding alone.

    >>> a = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> x, residuals, rank, s = least_squares(a, np.array([1.0, 3.0, 5.0]))
    >>> x.round(12), rank
    (array([1., 2.]), 2)
    """
    left, right = _checked(a), b if isinstance(b, TiledArray) else np.asarray(b)
    if right.ndim not in (1, 2) or right.shape[0] != left.shape[0]:
        raise LinAlgError(
            f"b must be a vector or a matrix with as many rows as a, {left.shape[0]}; "
            f"got an array of shape {right.shape}"
        )
    dtype = promote(left.dtype, right.dtype)
    cut = relative_cut(rcond, left.shape, dtype)
    if at_once(left, tile):
        x, residuals, rank, values = np.linalg.lstsq(_as(left, dtype), _as(right, dtype), rcond=cut)
        return LstsqResult(x, residuals, int(rank), values)
    sides = _as(right, dtype)
    chosen = current_engine() if engine is None else engine
    solve = _tall if left.shape[0] >= left.shape[1] else _wide
    found = solve(left, sides.reshape(sides.shape[0], -1), cut, dtype, tile, chosen, events)
    if sides.ndim == 1:
        return found._replace(x=found.x[:, 0])
    return found


def relative_cut(rcond: float | None, shape: tuple[int, ...], dtype: np.dtype[Any]) -> float:
    """The share of the largest singular value up to which others count as zero."""
    eps = float(np.finfo(dtype).eps)
    return eps * max(shape) if rcond is None else rcond if 0 < rcond < 1 else eps


def _tall(
    a: Matrix | TiledArray, b: Matrix, cut: float, dtype: Any, tile: int | None, engine: Engine,
    events: Sink | None,
) -> LstsqResult:  # fmt: skip
    m, n = a.shape
    factors = orthogonal_factor(a, dtype, tile, engine, events)
    r, z = factors.project(b)
    values, rank = _rank(r, cut, engine, events)
    if rank == n:
        x = solve_triangular(r, z, engine=engine, events=events)
    else:
        x = truncated(r, rank, z, engine, events)
    residuals = np.empty(0, values.dtype)
    if rank == n < m:
        fitted = matmul(factors.tiles, _one_column(x, factors.tiles), engine=engine, events=events)
        residuals = np.sum(np.abs(b - fitted.to_numpy()) ** 2, axis=0)
    return LstsqResult(x, residuals, rank, values)


def _wide(
    a: Matrix | TiledArray, b: Matrix, cut: float, dtype: Any, tile: int | None, engine: Engine,
    events: Sink | None,
) -> LstsqResult:  # fmt: skip
    factors = orthogonal_factor(adjoint(a), dtype, tile, engine, events)
    r, _ = factors.project(None)
    values, rank = _rank(r, cut, engine, events)
    if rank == a.shape[0]:
        y = solve_triangular(r, b, trans="C", engine=engine, events=events)
    else:
        y = truncated(r, rank, b, engine, events, transposed=True)
    return LstsqResult(factors.expand(y), np.empty(0, values.dtype), rank, values)


# ---- Q, in whichever form it is kept


@dataclass(frozen=True, slots=True)
class OrthogonalFactor:
    """`A = Q·R` of a tall matrix, with `Q` at hand to multiply with."""

    tiles: TiledArray
    """The matrix A."""
    project: Callable[[Matrix | None], tuple[Matrix, Matrix]]
    """`R` and `Qᴴ·B`; with None, `R` alone matters."""
    expand: Callable[[Matrix], Matrix]
    """`Q·Y`."""


def orthogonal_factor(
    a: Matrix | TiledArray, dtype: np.dtype[Any], tile: int | None, engine: Engine, events: Sink | None
) -> OrthogonalFactor:
    """By a tree if the matrix is skinny, else by panels."""
    given = a if isinstance(a, TiledArray) else a.astype(dtype, copy=False)
    make = _by_tree if is_skinny(given) else _by_panels
    return make(given, dtype, tile, engine, events)


def _by_tree(
    a: Matrix | TiledArray, dtype: np.dtype[Any], tile: int | None, engine: Engine, events: Sink | None
) -> OrthogonalFactor:
    matrix = leaves(a, tile)
    rows = matrix.layout.boundaries[0]

    @functools.cache
    def formed() -> tuple[TiledArray, TiledArray]:
        return tall_skinny_qr(matrix, engine=engine, events=events)

    def project(b: Matrix | None) -> tuple[Matrix, Matrix]:
        if b is None:
            return formed()[1].to_numpy(), np.zeros((matrix.shape[1], 0), dtype)
        sides = _cut(b, rows, SHORTCUT)
        bound = tsqr_project.bind(N=matrix.grid[0], K=sides.grid[1])
        out = engine.run(bound, {"A": matrix, "C": sides}, events=events)
        return out["R"].to_numpy(), out["O"].to_numpy()

    def expand(y: Matrix) -> Matrix:
        q, _ = formed()
        return matmul(q, _one_column(y, q), engine=engine, events=events).to_numpy()

    return OrthogonalFactor(matrix, project, expand)


def _by_panels(
    a: Matrix | TiledArray, dtype: np.dtype[Any], tile: int | None, engine: Engine, events: Sink | None
) -> OrthogonalFactor:
    matrix = square_tiles(a, tile, engine)
    m, n = matrix.shape
    rows = matrix.layout.boundaries[0]
    reflectors, r = factorise(matrix, engine=engine, events=events)
    widest = max(1, rows[1])

    def project(b: Matrix | None) -> tuple[Matrix, Matrix]:
        if b is None:
            return r.to_numpy(), np.zeros((n, 0), dtype)
        turned = reflectors.apply(_cut(b, rows, widest), adjoint=True, engine=engine, events=events)
        return r.to_numpy(), turned.to_numpy()[:n]

    def expand(y: Matrix) -> Matrix:
        padded = np.zeros((m, y.shape[1]), dtype)
        padded[:n] = y
        return reflectors.apply(_cut(padded, rows, widest), engine=engine, events=events).to_numpy()

    return OrthogonalFactor(matrix, project, expand)


# ---- the small problem


def _rank(r: Matrix, cut: float, engine: Engine, events: Sink | None) -> tuple[Matrix, int]:
    """The singular values of `R`, and how many of them count."""
    if max(r.shape) < SHORTCUT:
        values = np.linalg.svd(r, compute_uv=False)
    else:
        values = svdvals_tiled(r, engine=engine, events=events)
    return values, rank_of(values, cut)


def rank_of(values: Matrix, cut: float) -> int:
    """How many singular values are above a share of the largest."""
    return int(np.count_nonzero(values > cut * values.max(initial=0)))


def truncated(
    r: Matrix, rank: int, z: Matrix, engine: Engine, events: Sink | None, *, transposed: bool = False
) -> Matrix:
    """`R⁺·Z`, or `(Rᴴ)⁺·Z`, with all but the first singular values of `R` taken for zero."""
    u, values, vh = _decomposed(r, engine, events)
    first, second = u[:, :rank], vh[:rank].conj().T
    if transposed:
        first, second = second, first
    return second @ ((first.conj().T @ z) / values[:rank, None])


def inverted(r: Matrix, cut: float, engine: Engine, events: Sink | None) -> Matrix:
    """`R⁺`, with singular values up to `cut` times the largest taken for zero."""
    u, values, vh = _decomposed(r, engine, events)
    rank = rank_of(values, cut)
    return vh[:rank].conj().T @ (u[:, :rank].conj().T / values[:rank, None])


def _decomposed(r: Matrix, engine: Engine, events: Sink | None) -> tuple[Matrix, Matrix, Matrix]:
    if max(r.shape) < SHORTCUT:
        return np.linalg.svd(r)
    return svd_tiled(r, engine=engine, events=events)


# ---- arrays


def _checked(a: Matrix | TiledArray) -> Matrix | TiledArray:
    matrix = a if isinstance(a, TiledArray) else np.asarray(a)
    if matrix.ndim != 2:
        raise LinAlgError(f"least squares take a matrix, got an array of shape {matrix.shape}")
    return matrix if isinstance(matrix, TiledArray) else as_floating(matrix)


def _as(a: Matrix | TiledArray, dtype: np.dtype[Any]) -> Matrix:
    return np.asarray(a).astype(dtype, copy=False)


def adjoint(a: Matrix | TiledArray) -> Matrix | TiledArray:
    """The conjugate transpose; of real arrays a view."""
    if not isinstance(a, TiledArray):
        return a.T if a.dtype.kind == "f" else a.conj().T
    rows, columns = a.layout.boundaries
    tiles = {(j, i): adjoint(tile) for (i, j), tile in a.tiles.items()}
    return TiledArray(Layout((columns, rows)), a.dtype, tiles, a.fill)  # pyright: ignore[reportArgumentType]


def _cut(b: Matrix, rows: tuple[int, ...], width: int) -> TiledArray:
    """Views of an array, its rows cut where another's are."""
    columns = Layout.regular((b.shape[1],), width).boundaries[0]
    return TiledArray.over(b, Layout((rows, columns)))


def _one_column(x: Matrix, like: TiledArray) -> TiledArray:
    """A factor for the right of `like`: its rows cut as the columns there, its columns not at all."""
    return TiledArray.over(x, Layout((like.layout.boundaries[1], (0, x.shape[1]))))
