"""Kernels of LU with row exchanges.

Which rows become pivots is known only when numbers are there, but which tiles take part in an
exchange is not: every tile of a column may give rows to the top and get rows of the top in
return. So exchanges are tasks on tiles like all others, and what they move is data:

    by_rows    a copy of a tile, laid out for exchanges
    nominate   the pivots of a few tiles among themselves, with their row numbers
    elect      the pivots of the whole column among the nominated, and the exchanges they mean
    panel      both at once, and the factors below too: partial pivoting of a whole column of tiles
    pick       the rows a tile gives to the top
    top        the picked rows in their new order, solved with the factor on the diagonal
    update     the rows of the old top that a tile gets, and the product it loses
    ratio      the same for a tile of the column itself: its part of L
    corner     the diagonal tile itself
    arrange    rows of a column of L as later exchanges have left them

Rows go by their number in the whole matrix. An exchange, as one tile sees it, is an array of
integers with a line for each pivot in the tile: its row in the tile, its row in the new top,
and the row of the old top that comes in its place (-1 if the place is in the top itself).

Tiles whose rows move are kept in C order: a row is then one piece of memory, where in Fortran
order each of its elements would cost a line of the cache. Only the column that is factored is
laid out for LAPACK. None of the kernels holds the interpreter lock while LAPACK computes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.kernels.linalg.dense_factors import extent, misfit
from linnet.kernels.linalg.substitution import solve_triangle
from linnet.kernels.registry import kernel
from linnet.machine.fortran import (
    Matrix,
    address,
    blas_dtype,
    integer,
    leading,
    multiply_into,
    operand,
    owned,
    placed,
    promote,
    routine,
    stacked,
)

Rows = NDArray[np.int64]
Shape = tuple[int, ...]

_INT = np.dtype(np.int64)


def getrf_flops(m: int, n: int) -> float:
    """Floating-point operations of an LU factorisation with partial pivoting."""
    k = min(m, n)
    return float(m * n * k - (m + n) * k**2 / 2 + k**3 / 3)


def factor(packed: Matrix) -> tuple[Rows, int]:
    """Overwrite a Fortran-ordered matrix with `L` and `U`.

    Returns the order of its rows, and the first column (from 1) without a pivot, or 0.
    """
    m, n = packed.shape
    order = np.arange(m)
    if not (m and n):
        return order, 0
    pivots = np.empty(min(m, n), np.int32)
    info = ctypes.c_int(0)
    routine("getrf", packed.dtype.char)(
        integer(m), integer(n), address(packed), leading(packed), address(pivots), ctypes.byref(info)
    )
    for position, pivot in enumerate((pivots - 1).tolist()):
        if pivot != position:
            order[position], order[pivot] = order[pivot], order[position]
    return order, info.value


@kernel("by_rows", shape=lambda tile: tile, dtype=promote, flops=lambda tile: 0.0)
def by_rows(tile: Matrix) -> Matrix:
    """A copy of a tile, C-ordered, in a dtype that BLAS knows.

    >>> by_rows(np.array([[1, 2], [3, 4]]).T)
    array([[1., 3.],
           [2., 4.]])
    """
    return np.array(tile, blas_dtype(tile), order="C")


def _in_rows(tile: Matrix, dtype: np.dtype[Any], mine: bool) -> Matrix:
    """The tile as a C-ordered matrix that may be overwritten: itself if `mine`, else a copy."""
    return owned(tile.T, dtype, mine).T


@kernel(
    "nominate",
    outputs=2,
    shape=lambda tiles, rows: ((n := min(_height(tiles), tiles[0][1]), tiles[0][1]), (n,)),
    dtype=lambda tiles, rows: (promote(*tiles), _INT),
    flops=lambda tiles, rows: getrf_flops(_height(tiles), tiles[0][1]),
)
def nominate(tiles: list[Matrix], rows: list[Rows]) -> tuple[Matrix, Rows]:
    """The rows that partial pivoting of these tiles takes, in its order, and their numbers.

    >>> c, v = nominate([np.array([[1.0, 2.0], [4.0, 1.0]])], [np.array([7, 8])])
    >>> v
    array([8, 7])
    """
    whole = stacked(tiles, blas_dtype(*tiles))
    packed = whole.copy(order="F")
    order, _ = factor(packed)
    winners = order[: min(whole.shape)]
    return np.take(whole, winners, axis=0), np.concatenate(rows)[winners]


@kernel(
    "elect",
    outputs=4,
    shape=lambda tiles, winners, rows: (
        (n := min(_height(tiles), tiles[0][1]), tiles[0][1]),
        rows[0],
        list(rows[1:]),
        [(min(n, each[0]), 3) for each in rows],
    ),
    dtype=lambda tiles, winners, rows: (promote(*tiles), _INT, _INT, _INT),
    flops=lambda tiles, winners, rows: getrf_flops(_height(tiles), tiles[0][1]),
)
def elect(
    tiles: list[Matrix], winners: list[Rows], rows: list[Rows]
) -> tuple[Matrix, Rows, list[Rows], list[Rows]]:
    """The pivots of a column of tiles among the nominated, and what the exchange means for each tile.

    `rows` are the numbers of the rows in each tile. Returns the factors of the pivots, `L` below
    `U`; the row numbers of the first tile after the exchange, and those of the others; and the
    exchange as each tile sees it.

    >>> d, first, rest, moves = elect([np.array([[8.0], [2.0]])], [np.array([1, 0])], [np.array([0, 1])])
    >>> d, first
    (array([[8.]]), array([1, 0]))
    >>> moves
    [array([[1, 0, 0]])]
    """
    packed = stacked(tiles, blas_dtype(*tiles))
    order, _ = factor(packed)
    count = min(packed.shape)
    numbers = np.concatenate(rows)
    by_number = np.argsort(numbers)
    elected = np.concatenate(winners)[order[:count]]
    exchanged = np.arange(len(numbers))
    pivots = by_number[np.searchsorted(numbers, elected, sorter=by_number)]
    exchanged[:count] = pivots
    stays = np.zeros(count, bool)
    stays[pivots[pivots < count]] = True
    exchanged[pivots[pivots >= count]] = np.flatnonzero(~stays)
    first, rest, moves = _moved(exchanged, count, rows)
    return packed[:count].copy(order="F"), first, rest, moves


@kernel(
    "panel",
    outputs=5,
    shape=lambda tiles, rows: (
        tiles[0],
        list(tiles[1:]),
        rows[0],
        list(rows[1:]),
        [(min(tiles[0][1], each[0]), 3) for each in rows],
    ),
    dtype=lambda tiles, rows: (promote(*tiles), promote(*tiles), _INT, _INT, _INT),
    flops=lambda tiles, rows: getrf_flops(_height(tiles), tiles[0][1]),
)
def panel(tiles: list[Matrix], rows: list[Rows]) -> tuple[Matrix, list[Matrix], Rows, list[Rows], list[Rows]]:
    """Partial pivoting of a column of tiles, all at once.

    Returns the factored tile on the diagonal, the tiles of `L` below it, and the exchange as
    `elect` does.

    >>> u, l, *_ = panel([np.array([[1.0]]), np.array([[4.0]])], [np.array([0]), np.array([1])])
    >>> u, l
    (array([[4.]]), [array([[0.25]])])
    """
    packed = stacked(tiles, blas_dtype(*tiles))
    order, _ = factor(packed)
    count = min(packed.shape)
    pieces = [each.copy(order="C") for each in _cut(packed, [len(tile) for tile in tiles])]
    return (pieces[0], pieces[1:], *_moved(order, count, rows))


def _moved(order: Rows, count: int, rows: list[Rows]) -> tuple[Rows, list[Rows], list[Rows]]:
    """Row numbers after an exchange that brings `order[:count]` to the top, and each tile's part in it."""
    heights = [len(each) for each in rows]
    numbers = _cut(np.concatenate(rows)[order], heights)
    pivots = order[:count]
    comes = np.where(pivots >= count, order[pivots], -1)
    starts = np.cumsum([0, *heights])
    home = np.searchsorted(starts, pivots, side="right") - 1
    moves: list[Rows] = []
    for tile, start in enumerate(starts[:-1].tolist()):
        slots = np.flatnonzero(home == tile)
        moves.append(np.column_stack([pivots[slots] - start, slots, comes[slots]]))
    return numbers[0], numbers[1:], moves


def _cut(whole: NDArray[Any], heights: list[int]) -> list[NDArray[Any]]:
    return np.split(whole, np.cumsum(heights)[:-1])


def _height(tiles: Sequence[Shape]) -> int:
    return sum(tile[0] for tile in tiles)


@kernel(
    "pick",
    shape=lambda s, move: (min(s[0], move[0]), s[1]),  # at most
    dtype=lambda s, move: promote(s),
    flops=lambda s, move: 0.0,
)
def pick(s: Matrix, move: Rows) -> Matrix:
    """The rows of a tile that become pivots.

    >>> pick(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1, 0, 0]]))
    array([[3., 4.]])
    """
    return np.take(s, move[:, 0], axis=0).astype(blas_dtype(s), copy=False)


@kernel(
    "top",
    shape=lambda picked, moves, d: (d[0], picked[0][1]),
    dtype=lambda picked, moves, d: promote(d, *picked),
    flops=lambda picked, moves, d: float(d[0] ** 2 * picked[0][1]),
    into=True,
)
def top(picked: list[Matrix], moves: list[Rows], d: Matrix, *, into: Matrix | None = None) -> Matrix:
    """A tile of `U` right of the diagonal: the picked rows of its column in order, solved with `L`.

    >>> top([np.array([[3.0, 4.0]])], [np.array([[1, 0, 0]])], np.array([[2.0]]))
    array([[3., 4.]])
    """
    count = sum(len(move) for move in moves)
    if count != len(d):
        raise misfit("top", f"{len(d)} picked rows, as many as pivots; got {count}")
    result = placed((count, picked[0].shape[1]), blas_dtype(d, *picked), into)
    for rows, move in zip(picked, moves, strict=True):
        result[move[:, 1]] = rows
    _solve(b"L", b"L", b"U", d, result)
    return result


@kernel(
    "update",
    shape=lambda s, old, move, l, u: s,
    dtype=lambda s, old, move, l, u: promote(s, old, l, u),
    flops=lambda s, old, move, l, u: 2.0 * s[0] * s[1] * l[1],
    inplace=0,
)
def update(
    s: Matrix, old: Matrix, move: Rows, l: Matrix, u: Matrix, *, overwrite: Sequence[int] = ()
) -> Matrix:
    """`S − L·U`, after the pivots in `S` have been replaced by rows of the old top.

    >>> one = np.ones((1, 1))
    >>> update(8 * one, 5 * one, np.array([[0, 0, 0]]), 2 * one, one)
    array([[3.]])
    """
    if not (s.shape == (l.shape[0], u.shape[1]) and l.shape[1] == u.shape[0]):
        raise misfit("update", f"tiles for S - L·U, got {extent(s)}, {extent(l)} and {extent(u)}")
    dtype = blas_dtype(s, old, l, u)
    result = _in_rows(s, dtype, 0 in overwrite)
    _fill(result, old, move)
    multiply_into(result.T, operand(u.T, dtype), operand(l.T, dtype), l.shape[1], -1.0, 1.0)
    return result


@kernel(
    "ratio",
    outputs=2,
    shape=lambda s, old, move, d: (s, (1,)),
    dtype=lambda s, old, move, d: (promote(s, old, d), np.dtype(np.float64)),
    flops=lambda s, old, move, d: float(s[0] * s[1] ** 2),
    inplace=0,
)
def ratio(
    s: Matrix, old: Matrix, move: Rows, d: Matrix, *, overwrite: Sequence[int] = ()
) -> tuple[Matrix, NDArray[np.float64]]:
    """A tile of `L`, `S·U⁻¹` after the exchange, and its largest element in modulus.

    >>> one = np.ones((1, 1))
    >>> ratio(8 * one, 2 * one, np.array([[0, 0, 0]]), 8 * one)
    (array([[0.25]]), array([0.25]))
    """
    if not (s.shape[1] == d.shape[0] == d.shape[1]):
        raise misfit("ratio", f"a square factor as wide as the tile, got {extent(d)} and {extent(s)}")
    dtype = blas_dtype(s, old, d)
    result = _in_rows(s, dtype, 0 in overwrite)
    _fill(result, old, move)
    _solve(b"R", b"U", b"N", d, result)
    return result, _largest(result)


@kernel(
    "corner",
    outputs=2,
    shape=lambda s, move, d: (s, (1,)),
    dtype=lambda s, move, d: (promote(s, d), np.dtype(np.float64)),
    flops=lambda s, move, d: float((s[0] - d[0]) * s[1] ** 2),
)
def corner(s: Matrix, move: Rows, d: Matrix) -> tuple[Matrix, NDArray[np.float64]]:
    """The factored tile on the diagonal, and the largest element of its `L` in modulus.

    The factors of the pivots, on top of the tile's part of `L` where it has more rows than columns.

    >>> corner(np.array([[1.0], [4.0]]), np.array([[1, 0, 0]]), np.array([[4.0]]))
    (array([[4.  ],
           [0.25]]), array([1.]))
    """
    if not (s.shape[1] == d.shape[1] and len(s) >= len(d)):
        raise misfit(
            "corner", f"a tile as wide as the factors and not lower, got {extent(s)} and {extent(d)}"
        )
    dtype = blas_dtype(s, d)
    whole = np.array(s, dtype, order="C")
    _fill(whole, s, move)
    count = len(d)
    whole[:count] = d
    rest = whole[count:]
    _solve(b"R", b"U", b"N", d, rest)
    return whole, np.maximum(_largest(rest), 1.0)


@kernel(
    "arrange",
    shape=lambda tiles, rows, wanted: (wanted[0], tiles[0][1]),
    dtype=lambda tiles, rows, wanted: promote(*tiles),
    flops=lambda tiles, rows, wanted: 0.0,
    into=True,
)
def arrange(tiles: list[Matrix], rows: list[Rows], wanted: Rows, *, into: Matrix | None = None) -> Matrix:
    """The rows of these numbers, out of a column of tiles.

    >>> arrange(
    ...     [np.array([[1.0], [2.0]]), np.array([[3.0]])], [np.array([5, 6]), np.array([7])], np.array([7, 5])
    ... )
    array([[3.],
           [1.]])
    """
    numbers = np.concatenate(rows)
    by_number = np.argsort(numbers)
    places = by_number[np.searchsorted(numbers, wanted, sorter=by_number)]
    starts = np.cumsum([0, *map(len, rows)])
    home = np.searchsorted(starts, places, side="right") - 1
    result = placed((len(wanted), tiles[0].shape[1]), blas_dtype(*tiles), into)
    for tile in np.unique(home).tolist():
        here = np.flatnonzero(home == tile)
        result[here] = np.take(tiles[tile], places[here] - starts[tile], axis=0)
    return result


def _fill(tile: Matrix, old: Matrix, move: Rows) -> None:
    """Put rows of the old top where a tile's pivots were."""
    rows = move[move[:, 2] >= 0]
    if len(rows):
        tile[rows[:, 0]] = np.take(old, rows[:, 2], axis=0)


def _solve(side: bytes, uplo: bytes, diagonal: bytes, packed: Matrix, result: Matrix) -> None:
    """Solve a C-ordered matrix in place with a triangle of the leading square of a packed factor.

    What is C-ordered is its transpose to LAPACK, so the side is the other one; and so is the
    triangle of a factor that is C-ordered itself.
    """
    operation, stored = operand(packed.T, result.dtype)
    if operation == b"N":
        uplo = b"U" if uplo == b"L" else b"L"
    solve_triangle(b"R" if side == b"L" else b"L", uplo, operation, diagonal, stored, result.T)


def _largest(tile: Matrix) -> NDArray[np.float64]:
    """The largest modulus in a tile, not a number if there is one that is not."""
    if not tile.size:
        return np.zeros(1)
    if tile.dtype.kind == "c":
        tile = tile.view(tile.dtype.char.lower())  # real and imaginary parts: within a factor of 1.42
    return np.array([max(float(tile.max()), -float(tile.min()))])
