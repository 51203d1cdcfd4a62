"""Kernels around the pivots of an elimination: which are zero, what they tell of the matrix, its determinant.

Rows of a matrix go by their numbers. Pivots come in pieces, one for each tile on the diagonal; the tiles of a
matrix are all as high as the first, but for the last.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.errors import MatrixError
from linnet.kernels.linalg.dense_factors import of_stack
from linnet.kernels.linalg.norms import Numbers, join_squares, squares
from linnet.kernels.registry import kernel
from linnet.machine.fortran import Matrix, blas_dtype, promote

Rows = NDArray[np.int64]
Array = NDArray[Any]

_INT = np.dtype(np.int64)
_FLOAT = np.dtype(np.float64)
_SCREEN = 1e-2
"""Share of 1/√eps below which the largest pivot times the inverse need not be looked into further: what
makes a matrix large beside its pivots makes its inverse as large."""
_DIGITS = 0.1
"""Share of 1/eps from which hardly a digit of a solution is right."""
_PIECE = 100
"""So many numbers of modulus 0.5 to 1.5 are multiplied at once: their product is far from out of range."""


@kernel("row_numbers", shape=lambda start, count: (count,), dtype=lambda start, count: _INT)
def row_numbers(start: int, count: int) -> Rows:
    """So many numbers from a first one on.

    >>> row_numbers(3, 2)
    array([3, 4])
    """
    return np.arange(start, start + count)


@kernel("diagonal_of", shape=lambda tile: (min(tile),), dtype=lambda tile: tile)
def diagonal_of(tile: Matrix) -> Array:
    """The diagonal of a tile.

    >>> diagonal_of(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([1., 4.])
    """
    return tile.diagonal().copy()


@kernel(
    "check_pivots",
    shape=lambda *_, **__: (1,),
    dtype=lambda *_, **__: _FLOAT,
    flops=lambda *_, **__: 0.0,
    refuses=True,
)
def check_pivots(
    pieces: list[Array], *, exchanges: bool = True, stack: tuple[int, ...] | None = None
) -> Numbers:
    """Refuse pivots of which one is zero; 0 says that none is.

    `exchanges` (were rows exchanged before?) and `stack` (which matrix of a stack is it?) are for the error.

    >>> check_pivots([np.ones(2)])
    array([0.])
    """
    start = 0
    for number, piece in enumerate(pieces):
        zeros = np.flatnonzero(piece == 0)
        if len(zeros):
            raise MatrixError(
                f"{of_stack(stack)}the matrix is singular: {'after row exchanges, ' if exchanges else ''}"
                f"its leading minor of order {start + zeros[0] + 1} is zero "
                f"(row {zeros[0]} of tile ({number}, {number}))"
            )
        start += len(piece)
    return np.zeros(1)


@kernel(
    "judge_pivots", shape=lambda *_, **__: (1,), dtype=lambda *_, **__: _FLOAT, flops=lambda *_, **__: 0.0
)
def judge_pivots(
    pieces: list[Array], refuse: int, doubted: Numbers, *, stack: tuple[int, ...] | None = None
) -> Numbers:
    """The same, but 1 says that one is zero if `refuse` is 0, or if they are `doubted`: others will be found.

    >>> judge_pivots([np.ones(2), np.zeros(1)], 0, np.zeros(1))
    array([1.])
    """
    if refuse and not doubted[0]:
        return check_pivots.function(pieces, stack=stack)
    return np.array([0.0 if all(piece.all() for piece in pieces) else 1.0])


@kernel("condition_of", shape=lambda *_: (1,), dtype=lambda *_: _FLOAT, flops=lambda *_: 0.0)
def condition_of(
    pieces: list[Array], solved: list[Matrix], sizes: list[list[Numbers]], singular: Numbers
) -> Numbers:
    """The condition of a matrix, if its solutions have hardly a correct digit, else 0.

    From its pivots, from what `probes` became when they were solved, from the `squares` of its tiles, and
    from whether it is `singular` altogether.

    >>> condition_of([np.ones(2)], [np.ones((2, 2))], [[np.array([1.0, 2.0])]], np.zeros(1))
    array([0.])
    """
    if singular[0]:
        return np.array([np.inf])
    pivots = np.concatenate(pieces)
    eps = float(np.finfo(pivots.dtype).eps)
    count = solved[0].shape[1]
    inverse = float(join_squares.function([[squares.function(each) for each in solved]])[0]) / math.sqrt(
        count
    )
    if float(np.abs(pivots).max(initial=0.0)) * inverse < _SCREEN / math.sqrt(eps):
        return np.zeros(1)
    condition = float(join_squares.function(sizes)[0]) * inverse / math.sqrt(len(pivots))
    # Where something is not a number, so is this, and nothing is said.
    return np.array([condition if condition >= _DIGITS / eps else 0.0])


_EPS = {char: float(np.finfo(char).eps) for char in "fdFD"}


def bad_condition(a: Matrix, solved: Matrix, others: int = 0) -> Numbers:
    """The same for a matrix in one piece, without a look at its pivots, from what is behind other columns."""
    square = float(np.vdot(a, a).real) * float(np.vdot(solved, solved).real)
    limit = _DIGITS / _EPS[solved.dtype.char]
    if 0 < square < limit * limit:  # with the other columns it is more
        return np.zeros(1)
    if not a.size:
        return np.zeros(1)
    if others:
        return bad_condition(a, solved[:, others:])
    if 0 < square < np.inf:
        condition = math.sqrt(square / (a.shape[0] * solved.shape[1]))
    else:  # squares are out of range where these are not
        parts = [float(join_squares.function([[squares.function(each)]])[0]) for each in (a, solved)]
        condition = parts[0] / math.sqrt(a.shape[0]) * (parts[1] / math.sqrt(solved.shape[1]))
    return np.array([condition if condition >= limit else 0.0])


@kernel(
    "doubtful", shape=lambda ratios, limit: (1,), dtype=lambda ratios, limit: _FLOAT, flops=lambda *_: 0.0
)
def doubtful(ratios: list[Numbers], limit: int) -> Numbers:
    """1 if an element of `L` is larger than the limit, or not a number; else 0.

    >>> doubtful([np.array([2.0]), np.array([np.nan])], 16)
    array([1.])
    """
    return np.array([0.0 if all(each[0] <= limit for each in ratios) else 1.0])


# ---- rows


@kernel(
    "exchanged",
    outputs=2,
    shape=lambda orders, count: (list(orders), (count,)),
    dtype=lambda orders, count: (_INT, _INT),
    flops=lambda *_: 0.0,
)
def exchanged(orders: list[Rows], count: int) -> tuple[list[Rows], Rows]:
    """An order of rows as exchanges, one for each of the first `count`; and the order that these lead to.

    It is the one given, but for the rows behind the first `count`, whose order is free.

    >>> exchanged([np.array([2, 0]), np.array([1])], 3)
    ([array([2, 0]), array([1])], array([2, 2, 2]))
    """
    order = np.concatenate(orders)
    holds = list(range(len(order)))
    place = list(range(len(order)))
    piv = np.empty(count, np.int64)
    for i, row in enumerate(order[:count].tolist()):
        j = place[row]
        piv[i] = j
        other = holds[i]
        holds[i], holds[j] = row, other
        place[row], place[other] = i, j
    reached = np.array(holds, np.int64)
    return np.split(reached, np.cumsum([len(each) for each in orders])[:-1]), piv


@kernel(
    "order_of",
    shape=lambda exchanges, rows, back: list(rows),
    dtype=lambda exchanges, rows, back: _INT,
    flops=lambda *_: 0.0,
)
def order_of(exchanges: Rows, rows: list[Array], back: int) -> list[Rows]:
    """The order of rows that exchanges amount to, or if `back` the one that undoes it, cut as `rows` are.

    >>> order_of(np.array([2, 2, 2]), [np.zeros(2), np.zeros(1)], 0)
    [array([2, 0]), array([1])]
    """
    heights = [len(each) for each in rows]
    order = np.arange(sum(heights))
    for i, j in enumerate(exchanges.tolist()):
        if i != j:
            order[i], order[j] = order[j], order[i]
    if back:
        order = np.argsort(order)
    return np.split(order, np.cumsum(heights)[:-1])


@kernel(
    "rows_beside",
    shape=lambda tile, other: (tile[0], tile[1] + other[1]),
    dtype=promote,
    flops=lambda *_: 0.0,
)
def rows_beside(tile: Matrix, other: Matrix) -> Matrix:
    """Two tiles side by side, C-ordered.

    >>> rows_beside(np.ones((1, 2)), np.zeros((1, 1)))
    array([[1., 1., 0.]])
    """
    whole = np.empty((len(tile), tile.shape[1] + other.shape[1]), blas_dtype(tile, other))
    whole[:, : tile.shape[1]] = tile
    whole[:, tile.shape[1] :] = other
    return whole


@kernel(
    "columns_of",
    shape=lambda tile, start, stop: (tile[0], _stop(stop, tile[1]) - _start(start, tile[1])),
    dtype=lambda tile, start, stop: tile,
    flops=lambda *_: 0.0,
    into=True,
)
def columns_of(tile: Matrix, start: int, stop: int, *, into: Matrix | None = None) -> Matrix:
    """Columns of a tile. Negative numbers count from its end, and 0 as `stop` is its end.

    >>> columns_of(np.array([[1.0, 2.0, 3.0]]), 0, -1)
    array([[1., 2.]])
    """
    width = tile.shape[1]
    part = tile[:, _start(start, width) : _stop(stop, width)]
    if into is None:
        return part.copy(order="K")
    np.copyto(into, part)
    return into


def _start(start: int, width: int) -> int:
    return start if start >= 0 else width + start


def _stop(stop: int, width: int) -> int:
    return stop if stop > 0 else width + stop


# ---- determinants


@kernel(
    "determinant",
    shape=lambda pieces, orders: (1,),
    dtype=lambda pieces, orders: promote(*pieces),
    flops=lambda *_: 0.0,
)
def determinant(pieces: list[Array], orders: list[Rows]) -> Array:
    """The determinant from the diagonal of U and the order of rows.

    >>> determinant([np.array([4.0, 2.0])], [np.array([1, 0])])
    array([-8.])
    """
    pivots = np.concatenate(pieces)
    first = -pivots[:1] if is_odd(np.concatenate(orders)) else pivots[:1]
    return np.array([product(first, pivots[1:])], pivots.dtype)


@kernel(
    "log_determinant",
    outputs=2,
    shape=lambda pieces, orders: ((1,), (1,)),
    dtype=lambda pieces, orders: (promote(*pieces), real(promote(*pieces))),
    flops=lambda *_: 0.0,
)
def log_determinant(pieces: list[Array], orders: list[Rows]) -> tuple[Array, Array]:
    """Sign and logarithm of the modulus of the determinant, from the diagonal of U and the order of rows.

    >>> log_determinant([np.array([1.0, -1.0])], [np.array([1, 0])])
    (array([1.]), array([0.]))
    """
    pivots = np.concatenate(pieces)
    sizes = np.abs(pivots)
    if not sizes.all():
        return np.zeros(1, pivots.dtype), np.full(1, -np.inf, sizes.dtype)
    sign = np.prod(pivots / sizes)
    odd = is_odd(np.concatenate(orders))
    return np.array([-sign if odd else sign], pivots.dtype), np.array([np.log(sizes).sum()], sizes.dtype)


def real(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of moduli.

    >>> real(np.dtype("c8"))
    dtype('float32')
    """
    return np.dtype(dtype.char.lower())


def is_odd(order: Array) -> bool:
    """Whether a permutation is made of an odd number of exchanges.

    >>> is_odd(np.array([1, 0, 2])), is_odd(np.array([1, 2, 0]))
    (True, False)
    """
    cycles = 0
    following = order.tolist()
    for start in range(len(following)):
        if following[start] < 0:
            continue
        cycles += 1
        place = start
        while following[place] >= 0:
            following[place], place = -1, following[place]
    return (len(following) - cycles) % 2 == 1


def product(*pieces: Array) -> Any:
    """The product of all numbers, which overflows or underflows only if the result does.

    >>> float(product(np.array([1e200, 1e200, 1e-200, 1e-200])))
    1.0
    """
    factors = np.concatenate(pieces)
    scaled, exponents = _halved(factors)
    total, exponent = factors.dtype.type(1), int(exponents.sum())
    for start in range(0, len(scaled), _PIECE):
        (total,), (shift,) = _halved(np.array([total * np.prod(scaled[start : start + _PIECE])]))
        exponent += int(shift)
    # ldexp takes a C integer, and a step beyond the range of the dtype says no more.
    return _shifted(np.array([total]), np.array([np.clip(exponent, -20_000, 20_000)], np.int32))[0]


def _halved(numbers: Array) -> tuple[Array, Array]:
    """Numbers with modulus about 1 (or 0, infinite, not a number), and the powers of 2 taken out of them."""
    if numbers.dtype.kind == "c":
        parts = numbers.view(real(numbers.dtype)).reshape(*numbers.shape, 2)
        exponents = np.frexp(np.abs(parts).max(axis=-1))[1]
        return _shifted(numbers, -exponents), exponents
    return np.frexp(numbers)


def _shifted(numbers: Array, exponents: Array) -> Array:
    """Numbers times powers of 2; out of range they become infinite or 0, without a warning."""
    width = 2 if numbers.dtype.kind == "c" else 1
    parts = numbers.view(real(numbers.dtype)).reshape(*numbers.shape, width)
    with np.errstate(over="ignore", under="ignore"):
        moved = np.ldexp(parts, exponents[..., None])
    return moved.view(numbers.dtype)[..., 0]


# ---- Hermitian tiles


@kernel("whole_tile", shape=lambda tile: tile, dtype=promote, flops=lambda *_: 0.0)
def whole_tile(tile: Matrix) -> Matrix:
    """A Hermitian tile of which only the lower triangle is read, whole.

    >>> whole_tile(np.array([[2.0, 9.0], [1.0, 3.0]]))
    array([[2., 1.],
           [1., 3.]])
    """
    below = np.tril(tile, -1)
    whole = np.asfortranarray(below + below.T.conj(), blas_dtype(tile))
    np.fill_diagonal(whole, np.real(np.diagonal(tile)))
    return whole
