"""Determinants from the pivots of an elimination."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from linnet.algorithms.lu import eliminate
from linnet.algorithms.stacks import Array, as_stack, cut, is_small, need_square, over_stack
from linnet.engines import Engine
from linnet.events import Sink
from linnet.kernels.lu import factor

_PIECE = 100
"""So many numbers of modulus 0.5 to 1.5 are multiplied at once: their product is far from out of range."""


class SlogdetResult(NamedTuple):
    """What `slogdet` returns."""

    sign: Array
    """A number of modulus 1, or 0 for a singular matrix."""
    logabsdet: Array
    """The logarithm of the modulus; minus infinity for a singular matrix."""


def det(a: Any, *, tile: int | None = None, engine: Engine | None = None, events: Sink | None = None) -> Any:
    """The determinant of a matrix, or of each in a stack; 0 for a singular one.

    Nothing overflows on the way: only a determinant that is itself out of range is infinite.

    >>> float(det([[0.0, 2.0], [4.0, 1.0]]))
    -8.0
    """
    matrix = as_stack(a)
    need_square(matrix, "det")
    if matrix.ndim > 2:
        assert isinstance(matrix, np.ndarray)
        if is_small(matrix, tile):
            return _det_of_small(matrix)
        return over_stack(lambda x: det(x, tile=tile, engine=engine, events=events), matrix)
    pivots, odd = _pivots(matrix, tile, engine, events)
    return det_of(pivots, odd)


def det_of(pivots: Array, odd: bool) -> Any:
    """The determinant from the diagonal of U and whether the permutation is odd."""
    return pivots.dtype.type(product(-pivots[:1] if odd else pivots[:1], pivots[1:]))


def _det_of_small(stack: Array) -> Array:
    with np.errstate(all="ignore"):
        values = np.asarray(np.linalg.det(stack))
    # What is out of range may have gone out of range on the way only.
    sizes = np.abs(values)
    doubtful = ~np.isfinite(sizes) | (sizes < np.finfo(stack.dtype).tiny)
    for index in zip(*np.nonzero(doubtful), strict=True):
        values[index] = det(stack[index])
    return values


def slogdet(
    a: Any, *, tile: int | None = None, engine: Engine | None = None, events: Sink | None = None
) -> SlogdetResult:
    """The sign of the determinant and the logarithm of its modulus, which never overflow.

    >>> sign, logabsdet = slogdet(np.eye(400) * 1e-5)
    >>> float(sign), float(round(logabsdet, 3))
    (1.0, -4605.17)
    """
    matrix = as_stack(a)
    need_square(matrix, "slogdet")
    if matrix.ndim > 2:
        assert isinstance(matrix, np.ndarray)
        if is_small(matrix, tile):
            return SlogdetResult(*np.linalg.slogdet(matrix))
        pairs = over_stack(lambda x: slogdet(x, tile=tile, engine=engine, events=events), matrix, outputs=2)
        return SlogdetResult(*pairs)
    return slogdet_of(*_pivots(matrix, tile, engine, events))


def slogdet_of(pivots: Array, odd: bool) -> SlogdetResult:
    """Sign and logarithm from the diagonal of U and whether the permutation is odd."""
    sizes = np.abs(pivots)
    if not sizes.all():
        return SlogdetResult(pivots.dtype.type(0), sizes.dtype.type(-np.inf))
    sign = np.prod(pivots / sizes)
    return SlogdetResult(pivots.dtype.type(-sign if odd else sign), sizes.dtype.type(np.log(sizes).sum()))


def _pivots(matrix: Any, tile: int | None, engine: Engine | None, events: Sink | None) -> tuple[Array, bool]:
    """The diagonal of U, and whether the permutation is odd."""
    if is_small(matrix, tile):
        packed = np.array(matrix, order="F")
        order, _ = factor(packed)
        return packed.diagonal(), is_odd(order)
    done = eliminate(cut(matrix, tile, "lu", engine), engine=engine, events=events)
    return done.diagonal(), is_odd(done.order)


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
    scaled, exponents = halved(factors)
    total, exponent = factors.dtype.type(1), int(exponents.sum())
    for start in range(0, len(scaled), _PIECE):
        (total,), (shift,) = halved(np.array([total * np.prod(scaled[start : start + _PIECE])]))
        exponent += int(shift)
    # ldexp takes a C integer, and a step beyond the range of the dtype says no more.
    return _shifted(np.array([total]), np.array([np.clip(exponent, -20_000, 20_000)], np.int32))[0]


def halved(numbers: Array) -> tuple[Array, Array]:
    """Numbers with modulus about 1 (or 0, infinite, not a number), and the powers of 2 taken out of them."""
    if numbers.dtype.kind == "c":
        parts = numbers.view(numbers.dtype.char.lower()).reshape(*numbers.shape, 2)
        exponents = np.frexp(np.abs(parts).max(axis=-1))[1]
        return _shifted(numbers, -exponents), exponents
    return np.frexp(numbers)


def _shifted(numbers: Array, exponents: Array) -> Array:
    """Numbers times powers of 2; out of range they become infinite or 0, without a warning."""
    parts = numbers.view(numbers.dtype.char.lower()).reshape(
        *numbers.shape, 2 if numbers.dtype.kind == "c" else 1
    )
    with np.errstate(over="ignore", under="ignore"):
        moved = np.ldexp(parts, exponents[..., None])
    return moved.view(numbers.dtype)[..., 0]
