"""Running sums and their kin, tile by tile: totals first, then each tile goes on from those before it.

The kernels run a universal function of NumPy's by its name, so `maximum.accumulate` is the same
as `cumsum`; a function that is not associative runs on tiles that hold the axis whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.kernels.quiet import quietly
from linnet.kernels.registry import kernel

Tile = NDArray[Any]


def binary(name: str) -> np.ufunc:
    """NumPy's function of two operands and one result with that name."""
    found = getattr(np, name, None)
    if not isinstance(found, np.ufunc) or found.nin != 2 or found.nout != 1:
        raise ValueError(f"{name!r} is no universal function of two operands and one result")
    return found


def _short(shape: Sequence[int], *, axis: int, **_: Any) -> tuple[int, ...]:
    return tuple(1 if a == axis else n for a, n in enumerate(shape))


def _work(shape: Sequence[int], *_: Any, **__: Any) -> float:
    return float(math.prod(shape))


@kernel("reduce_tile", shape=_short, flops=_work)
def reduce_tile(x: Tile, *, ufunc: str, axis: int) -> Tile:
    """`ufunc.reduce` along an axis, which stays with length 1.

    >>> reduce_tile(np.array([[1, 2], [3, 4]]), ufunc="subtract", axis=1)
    array([[-1],
           [-1]])
    """
    return np.asarray(quietly(_reduce, binary(ufunc), x, axis))


def _reduce(ufunc: np.ufunc, x: Tile, axis: int) -> Any:
    # The dtype has been settled before: a sum of int8 that is asked for stays int8.
    dtype = x.dtype if ufunc in (np.add, np.multiply) else None
    return ufunc.reduce(x, axis=axis, dtype=dtype, keepdims=True)


def _accumulate(ufunc: np.ufunc, x: Tile, axis: int) -> Any:
    dtype = x.dtype if ufunc in (np.add, np.multiply) else None
    return ufunc.accumulate(x, axis=axis, dtype=dtype)


@kernel("accumulate_tile", shape=lambda shape, **_: tuple(shape), flops=_work)
def accumulate_tile(x: Tile, *, ufunc: str, axis: int) -> Tile:
    """`ufunc.accumulate` along an axis.

    >>> accumulate_tile(np.array([1, 5, 3]), ufunc="maximum", axis=0)
    array([1, 5, 5])
    """
    return np.asarray(quietly(_accumulate, binary(ufunc), x, axis))


@kernel("accumulate_from", shape=lambda shape, *_, **__: tuple(shape), flops=_work)
def accumulate_from(x: Tile, before: Tile, place: int, *, ufunc: str, axis: int) -> Tile:
    """The same, going on from the element at `place` of `before`.

    >>> accumulate_from(np.array([1, 5, 3]), np.array([10, 20]), 1, ufunc="add", axis=0)
    array([21, 26, 29])
    """
    return quietly(_accumulate_from, binary(ufunc), x, before, place, axis)


def _accumulate_from(ufunc: np.ufunc, x: Tile, before: Tile, place: int, axis: int) -> Tile:
    made = np.asarray(_accumulate(ufunc, x, axis))
    start = before[(*(slice(None),) * axis, slice(place, place + 1))]
    return np.asarray(ufunc(start, made, out=made))
