"""Products that never leave the range of floats on the way: a factor near 1, and a power of 2.

Tiles are multiplied one by one and their products joined in any order. Kept as plain floats, a product of
one tile could be infinite, that of another 0, and both together NaN, where the product of all is a number.
A state has the factor and the exponent behind one another, in one more axis in front.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.kernels.registry import kernel
from linnet.machine.float_errors import quietly

Tile = NDArray[Any]

_LARGEST = 1 << 20
"""Exponents beyond this are all the same: the number is infinite or 0."""


def product(x: Tile, axes: tuple[int, ...], dtype: Any) -> Tile:
    """The state of a tile: its product over axes, which stay with length 1.

    >>> product(np.array([1e200, 6.0]), (0,), None).round(2)
    array([[  0.98],
           [667.  ]])
    """
    x = x.astype(dtype or np.result_type(x.dtype, np.float16), copy=False)
    plain = np.asarray(np.multiply.reduce(x, axis=axes, keepdims=True, dtype=x.dtype))
    kind = np.real(np.zeros(0, plain.dtype)).dtype
    wide = np.result_type(plain.dtype, np.float64 if plain.dtype.kind == "f" else np.complex128)
    state = _state(plain.astype(wide))
    doubtful = ~np.isfinite(plain) | (np.abs(plain) < np.finfo(kind).tiny)
    if doubtful.any():  # some product on the way was perhaps beyond the range
        lines = np.moveaxis(x, axes, range(-len(axes), 0)) if axes else x[..., None]
        flat = lines.reshape((*lines.shape[: lines.ndim - max(len(axes), 1)], -1))
        chosen = doubtful.reshape(flat.shape[:-1])
        state.reshape(2, *chosen.shape)[:, chosen] = _multiplied(flat[chosen].astype(wide))
    return state


def _state(x: Any) -> Tile:
    """Numbers as factors and exponents."""
    largest = np.maximum(np.abs(x.real), np.abs(x.imag)) if x.dtype.kind == "c" else x
    _, power = np.frexp(largest)
    return np.stack([_times_power(x, -power), power.astype(x.dtype)])


def _times_power(x: Any, power: Tile) -> Tile:
    """`x * 2**power`, exact where it is a number."""
    if x.dtype.kind != "c":
        return np.ldexp(x, power)
    made: Any = np.empty(x.shape, x.dtype)
    made.real, made.imag = np.ldexp(x.real, power), np.ldexp(x.imag, power)
    return made


def _multiplied(lines: Tile) -> Tile:
    """The state of the product of each line along the last axis, pair by pair."""
    state = _state(lines)
    while state.shape[-1] > 1:
        pairs = state.shape[-1] // 2
        joined = joined_products(state[..., 0 : 2 * pairs : 2], state[..., 1 : 2 * pairs : 2])
        state = np.concatenate([joined, state[..., 2 * pairs :]], axis=-1)
    return state[..., 0] if state.shape[-1] else _state(np.ones(lines.shape[:-1], lines.dtype))


def joined_products(left: Tile, right: Tile, out: Tile | None = None) -> Tile:
    """The state of two products together."""
    made = _state(np.asarray(left[0] * right[0]))
    made[1] += left[1] + right[1]
    if out is None:
        return made
    out[...] = made
    return out


def as_numbers(state: Tile) -> Tile:
    """The products themselves."""
    power = np.clip(np.real(state[1]), -_LARGEST, _LARGEST).astype(np.int32)
    return _times_power(state[0], power)


@kernel(
    "product_tile",
    shape=lambda x, *, axis: (2, *(1 if a == axis else n for a, n in enumerate(x))),
    dtype=lambda x, **_: np.result_type(x, np.complex128 if np.dtype(x).kind == "c" else np.float64),
    flops=lambda x, **_: float(np.prod(x, dtype=float)),
)
def product_tile(x: Tile, *, axis: int) -> Tile:
    """The product of a tile along an axis, which stays with length 1, as a state.

    >>> product_tile(np.array([2.0, 3.0]), axis=0)
    array([[0.75],
           [3.  ]])
    """
    return quietly(product, x, (axis,), None)


@kernel(
    "running_products",
    shape=lambda states, **_: tuple(states[1:]),
    flops=lambda states, **_: float(np.prod(states, dtype=float)),
)
def running_products(states: Tile, *, axis: int, dtype: str) -> Tile:
    """The products of states up to each along an axis, as numbers.

    >>> running_products(np.array([[0.5, 0.75], [2.0, 3.0]]), axis=0, dtype="f8")
    array([ 2., 12.])
    """
    return quietly(_running, states, axis, dtype)


def _running(states: Tile, axis: int, dtype: str) -> Tile:
    along = np.moveaxis(states, axis + 1, 1)
    found = np.empty(along.shape[1:], dtype)
    current = along[:, 0]
    for place in range(along.shape[1]):
        current = current if place == 0 else joined_products(current, along[:, place])
        found[place] = as_numbers(current)
        # What has become 0 or infinite stays so, as in products one after another.
        lost = (found[place] == 0) | ~np.isfinite(found[place])
        if lost.any():
            current = np.where(lost, _state(found[place].astype(states.dtype)), current)
    return np.ascontiguousarray(np.moveaxis(found, 0, axis))
