"""Folds: what a reduction keeps of a tile, and how two such states become one.

A fold is associative, so tiles can be folded one by one, anywhere, and their states joined as a
balanced tree in order: the bits depend on the tiles alone, and a sum of many tiles loses no more
than a pairwise sum. A state keeps every axis of the tile, the folded ones with length 1. Mean and
moments need several numbers for each element; their states have one more axis, in front:

    mean       count, sum
    moments    count, sum, sum of squared distances from the mean
    product    a factor near 1, an exponent of 2: of floats, see `scaled`

They are kept in double precision (or wider, as the data): counts of more than 2**24 elements do
not fit float32. The moments of two parts are those of Chan, Golub and LeVeque, "Updating formulae
and a pairwise algorithm for computing sample variances" (1979).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.kernels.arrays.operations import cast
from linnet.kernels.arrays.scaled_products import as_numbers, joined_products, product
from linnet.kernels.registry import kernel
from linnet.machine.float_errors import quietly
from linnet.records import record

Tile = NDArray[Any]

_WIDE = {"f": np.float64, "c": np.complex128}


@record(eq=False)
class Fold:
    """A reduction of tiles to states, and of states to one."""

    kind: str
    """The name programs call it by."""
    fold: Callable[[Tile, tuple[int, ...], Any], Tile]
    """From a tile, the axes to fold and the dtype to work in (None: NumPy's choice) to a state in
    memory of its own."""
    combine: Callable[[Tile, Tile, Tile | None], Tile]
    """From the states of two neighbours to that of both; into the third, if given, which may be one of
    them."""
    leading: tuple[int, ...] = ()
    """The axes a state has in front of those of the tile."""
    passes: int = 1
    """How often it reads a tile."""


_UFUNCS: dict[str, np.ufunc] = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "fmax": np.fmax,
    "fmin": np.fmin,
    "any": np.logical_or,
    "all": np.logical_and,
    "logical_xor": np.logical_xor,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "logaddexp": np.logaddexp,
    "logaddexp2": np.logaddexp2,
    "hypot": np.hypot,
    "gcd": np.gcd,
}
"""Universal functions that are associative: others (subtract, power, ...) have no fold."""


def fold(kind: str) -> Fold:
    """The fold of that kind.

    >>> fold("max").fold(np.array([[1, 5], [4, 2]]), (1,), None)
    array([[5],
           [4]])
    """
    try:
        return FOLDS[kind]
    except KeyError:
        raise ValueError(f"no fold is of kind {kind!r}; expected one of {', '.join(FOLDS)}") from None


def _of_ufunc(kind: str, ufunc: np.ufunc) -> Fold:
    def reduce(x: Tile, axes: tuple[int, ...], dtype: Any) -> Tile:
        if dtype is not None and dtype.kind in "mM":  # ufuncs take no dtype with a unit
            x, dtype = x.astype(dtype, copy=False), None
        return np.asarray(ufunc.reduce(x, axis=axes, dtype=dtype, keepdims=True))

    def combine(left: Tile, right: Tile, out: Tile | None = None) -> Tile:
        return np.asarray(ufunc(left, right, out=out))

    return Fold(kind, reduce, combine)


def _count(x: Tile, axes: tuple[int, ...], dtype: Any) -> Tile:
    return np.asarray(
        np.add.reduce(x.astype(bool, copy=False), axis=axes, dtype=dtype or np.intp, keepdims=True)
    )


def _numbers(x: Tile, dtype: Any) -> Tile:
    """The tile in a dtype that sums and distances can be worked out in."""
    if dtype is None:
        if x.dtype.kind not in "biufc":
            raise TypeError(
                f"a mean or variance of {x.dtype} has no state; fold its sum, or convert it to numbers before"
            )
        small = x.dtype.kind == "f" and x.dtype.itemsize < 4
        dtype = np.float32 if small else x.dtype if x.dtype.kind in "fc" else np.float64
    elif np.dtype(dtype) == np.float16:
        dtype = np.float32
    return x.astype(dtype, copy=False)


def _state(parts: Sequence[Any], like: Tile) -> Tile:
    wide = np.result_type(like.dtype, _WIDE[like.dtype.kind])
    state = np.empty((len(parts), *like.shape), wide)
    for place, part in enumerate(parts):
        state[place] = part
    return state


def _length(x: Tile, axes: tuple[int, ...]) -> int:
    return math.prod(x.shape[axis] for axis in axes)


def _mean(x: Tile, axes: tuple[int, ...], dtype: Any) -> Tile:
    x = _numbers(x, dtype)
    total = np.asarray(np.add.reduce(x, axis=axes, keepdims=True))
    return _state((_length(x, axes), total), total)


def _moments(x: Tile, axes: tuple[int, ...], dtype: Any) -> Tile:
    x = _numbers(x, dtype)
    length = _length(x, axes)
    total = np.asarray(np.add.reduce(x, axis=axes, keepdims=True))
    away = np.asarray(np.subtract(x, total / max(length, 1), dtype=x.dtype))
    squares = _squares(away)
    return _state((length, total, np.add.reduce(squares, axis=axes, keepdims=True)), total)


def _squares(x: Any) -> Tile:
    """The squared distances from zero; may overwrite `x`."""
    if x.dtype.kind == "c":
        return x.real**2 + x.imag**2
    return np.multiply(x, x, out=x)


def _combine_moments(left: Tile, right: Tile, out: Tile | None = None) -> Tile:
    n, m = left[0].real, right[0].real
    apart = _squares(np.asarray(right[1] / np.maximum(m, 1) - left[1] / np.maximum(n, 1)))
    apart *= n * m / np.maximum(n + m, 1)
    joined = np.asarray(np.add(left, right, out=out))
    joined[2] += apart
    return joined


FOLDS: dict[str, Fold] = {kind: _of_ufunc(kind, ufunc) for kind, ufunc in _UFUNCS.items()}
"""The folds known by name."""
FOLDS["count"] = Fold("count", _count, FOLDS["sum"].combine)
FOLDS["mean"] = Fold("mean", _mean, FOLDS["sum"].combine, (2,))
FOLDS["moments"] = Fold("moments", _moments, _combine_moments, (3,), 3)
FOLDS["product"] = Fold("product", product, joined_products, (2,))


class Pairwise:
    """States that arrive one after another, joined as a balanced tree; it keeps as many as the tree is
    high, and takes them over.

    >>> tree = Pairwise(fold("sum"))
    >>> for x in (1.0, 2.0, 3.0):
    ...     tree.push(np.array([x]))
    >>> tree.total()
    array([6.])
    """

    __slots__ = ("_combine", "_waiting")

    def __init__(self, fold: Fold) -> None:
        self._combine = fold.combine
        self._waiting: list[tuple[int, Tile]] = []

    def push(self, state: Tile) -> None:
        """Add the state of the next piece."""
        waiting, height = self._waiting, 0
        while waiting and waiting[-1][0] == height:
            _, left = waiting.pop()
            state = self._combine(left, state, left)
            height += 1
        waiting.append((height, state))

    def total(self) -> Tile:
        """The state of all pieces so far, at least one."""
        _, state = self._waiting.pop()
        while self._waiting:
            _, left = self._waiting.pop()
            state = self._combine(left, state, left)
        return state


def _first(tiles: Any) -> Any:
    while isinstance(tiles, list):
        tiles = tiles[0]
    return tiles


def _leaves(tiles: Any) -> int:
    return sum(map(_leaves, tiles)) if isinstance(tiles, list) else 1


def _dropped(shape: Sequence[int], drop: Sequence[int]) -> tuple[int, ...]:
    axes = {axis % len(shape) for axis in drop} if shape else set()
    long = [axis for axis in sorted(axes) if shape[axis] != 1]
    if long:
        raise ValueError(
            f"axes {tuple(long)} of a state of shape {tuple(shape)} cannot be dropped: "
            "only axes of length 1 can"
        )
    return tuple(length for axis, length in enumerate(shape) if axis not in axes)


def _join_shape(
    tiles: Any,
    *,
    kind: str,
    final: bool = False,
    drop: Sequence[int] = (),
    of: str | None = None,
    **_: Any,
) -> tuple[int, ...]:
    state = tuple(_first(tiles))[0 if of is None else len(fold(of).leading) :]
    if not final:
        return state
    return _dropped(state[len(fold(kind).leading) :], drop)


def _join_flops(tiles: Any, **_: Any) -> float:
    return float(math.prod(_first(tiles))) * (_leaves(tiles) - 1)


def _join_dtype(
    tiles: Any, *, dtype: str | None = None, final: bool = False, kind: str = "", **_: Any
) -> Any:
    """The dtype of a joined state; like the shape, it takes the attributes."""
    if final and dtype is not None:
        return np.dtype(dtype)
    state = np.dtype(_first(tiles))
    return np.real(np.zeros(1, state)).dtype if final and kind == "moments" else state


@kernel("fold_join", shape=_join_shape, dtype=_join_dtype, flops=_join_flops)
def fold_join(
    tiles: Any,
    *,
    kind: str,
    axes: Sequence[int] = (),
    final: bool = False,
    drop: Sequence[int] = (),
    ddof: float = 0.0,
    root: bool = False,
    dtype: str | None = None,
    of: str | None = None,
) -> Tile:
    """The states of many tiles as one: a balanced tree, in order.

    `tiles` is a state, a list of states (one level for the axis in `axes`), a list of lists, and so
    on. With `final`, the state becomes what was asked for: a mean, for "moments" the variance (sum of
    squared distances over count - `ddof`) or, with `root`, the standard deviation, and otherwise the
    state itself; then the axes in `drop` go, and it is converted to `dtype`.
    The mean can also be taken of the states of moments; the sum too, if they are said to be `of` these.

    >>> states = [fold("moments").fold(np.array(x), (0,), None) for x in ([1.0, 2.0], [3.0, 6.0])]
    >>> fold_join(states, kind="moments", axes=(0,), final=True, drop=(0,))
    array(3.5)
    >>> fold_join(states, kind="mean", axes=(0,), final=True)
    array([3.])
    >>> fold_join(states, kind="sum", axes=(0,), of="moments")
    array([12.])
    """
    _check_levels("fold_join", tiles, len(axes))
    if of is not None:
        if (kind, of) != ("sum", "moments"):
            raise ValueError(f"fold_join finds no {kind} in states of {of}; only a sum in those of moments")
        tiles = _sums(tiles)
    joined = quietly(_tree, tiles, fold(kind).combine)
    if final:
        joined = quietly(_finished, joined, kind, ddof, root, dtype)
        joined = joined.reshape(_dropped(joined.shape, drop))
    return np.array(joined) if np.may_share_memory(joined, _first(tiles)) else joined


def _sums(states: Any) -> Any:
    """The sums in states of moments."""
    return [_sums(each) for each in states] if isinstance(states, list) else states[1]


def _finished(joined: Tile, kind: str, ddof: float, root: bool, dtype: str | None) -> Tile:
    """What was asked for, from the state of everything."""
    if kind == "mean":
        # 0 / 0 is NaN, as NumPy has it for a mean of nothing.
        joined = joined[1] / joined[0].real
    elif kind == "product":
        joined = as_numbers(joined)
    elif kind == "moments":
        joined = joined[2].real / np.maximum(joined[0].real - ddof, 0)
        joined = np.sqrt(joined) if root else joined
    result = np.asarray(joined)
    return result if dtype is None or result.dtype == dtype else cast(dtype).function(result)


def _check_levels(name: str, tiles: Any, levels: int) -> None:
    depth, inner = 0, tiles
    while isinstance(inner, list):
        if not inner:
            raise ValueError(f"{name} got an empty range of tiles; there is nothing to join")
        depth, inner = depth + 1, inner[0]
    if depth != levels:
        raise ValueError(
            f"{name} got tiles nested {depth} deep for {levels} axes; give one axis for each range of tiles"
        )


def _tree(tiles: Any, combine: Callable[[Tile, Tile, Tile | None], Tile]) -> Tile:
    """The join of a nested list, each list as a balanced tree. Given states are only read."""
    if not isinstance(tiles, list):
        return tiles
    if len(tiles) == 1:
        return _tree(tiles[0], combine)
    half = len(tiles) // 2
    left = _tree(tiles[:half], combine)
    right = _tree(tiles[half:], combine)
    # Writable memory on the left is that of a join below.
    own = half > 1 or _leaves(tiles[0]) > 1
    return combine(left, right, left if own else None)
