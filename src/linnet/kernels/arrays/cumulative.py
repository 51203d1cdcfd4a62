"""Running sums and products, tile by tile: totals first, then each tile goes on from those before it.

The kernels run a universal function of NumPy's by its name, so `maximum.accumulate` is the same
as `cumsum`; a function that is not associative runs on tiles that hold the axis whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.kernels.registry import kernel
from linnet.machine.float_errors import quietly

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
def reduce_tile(x: Tile, *others: Tile, ufunc: str, axis: int, begins: bool = False) -> Tile:
    """`ufunc.reduce` along an axis, which stays with length 1.

    What it begins with follows the tile, if `begins`; then a mask of elements that count, if there is one.

    >>> reduce_tile(np.array([[1, 2], [3, 4]]), ufunc="subtract", axis=1)
    array([[-1],
           [-1]])
    >>> mask = np.array([True, False])
    >>> reduce_tile(np.array([1, 2]), np.array(9), mask, ufunc="subtract", axis=0, begins=True)
    array([8])
    """
    return np.asarray(quietly(_reduce, binary(ufunc), x, others, axis, begins))


def _reduce(ufunc: np.ufunc, x: Tile, others: Sequence[Tile], axis: int, begins: bool) -> Any:
    keywords: dict[str, Any] = {"initial": others[0][()]} if begins else {}
    if len(others) > begins:
        keywords["where"] = others[-1]
    return ufunc.reduce(x, axis=axis, dtype=_own_dtype(ufunc, x), keepdims=True, **keywords)


def _accumulate(ufunc: np.ufunc, x: Tile, axis: int) -> Any:
    return ufunc.accumulate(x, axis=axis, dtype=_own_dtype(ufunc, x))


def _own_dtype(ufunc: np.ufunc, x: Tile) -> np.dtype[Any] | None:
    """The dtype to ask for, so that a sum of int8 stays int8: it has been settled before.

    Ufuncs take no dtype with a unit; sums of such keep theirs anyway.
    """
    return x.dtype if ufunc in (np.add, np.multiply) and x.dtype.kind not in "mM" else None


@kernel(
    "reduceat_tile",
    shape=lambda x, starts, *, axis, **_: tuple(starts[0] if a == axis else n for a, n in enumerate(x)),
    dtype=lambda x, starts, **_: x,
    flops=_work,
)
def reduceat_tile(x: Tile, starts: Tile, *, ufunc: str, axis: int) -> Tile:
    """`ufunc.reduce` of the parts of an axis that begin at these ascending positions.

    >>> reduceat_tile(np.array([1, 2, 3, 4]), np.array([0, 3]), ufunc="add", axis=0)
    array([6, 4])
    """
    return quietly(_reduceat, binary(ufunc), x, starts, axis)


def _reduceat(ufunc: np.ufunc, x: Tile, starts: Tile, axis: int) -> Tile:
    return np.asarray(ufunc.reduceat(x, starts, axis=axis, dtype=_own_dtype(ufunc, x)))


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
    lead = (slice(None),) * axis
    started = np.array(x)
    # Started before it goes on: what a tile makes alone may be beyond the range where all together is not.
    first = started[(*lead, slice(0, 1))]
    ufunc(before[(*lead, slice(place, place + 1))], first, out=first)
    return np.asarray(_accumulate(ufunc, started, axis))
