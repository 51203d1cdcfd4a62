"""What stands between the brackets of `x[...]`, in one form, checked as NumPy checks it.

Indices that are lazy arrays of integers are computed here: which tiles are read depends on them.
Masks may stay lazy.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from linnet.arrays.elements.computed_indices import known, known_nodes
from linnet.arrays.elements.core import ArrayBase
from linnet.arrays.expression.builders import filled
from linnet.arrays.expression.nodes import Node, Source
from linnet.arrays.expression.operands import as_read
from linnet.records import record


@record
class Take:
    """One element along an axis; the axis goes."""

    axis: int
    position: int


@record
class Range:
    """A slice along an axis."""

    axis: int
    part: slice


@record
class New:
    """A new axis of length 1."""


@record
class Points:
    """Positions along an axis, not negative."""

    axis: int
    positions: NDArray[np.intp]


@record
class Mask:
    """A mask over some axes, from `axis` on; over none if it is a single truth value."""

    axis: int
    node: Node


@record
class Gap:
    """An ellipsis that stands for no axis: it still parts index arrays."""


Item = Take | Range | New | Points | Mask | Gap


def parsed(key: Any, shape: tuple[int, ...]) -> list[Item]:
    """The items of a key, for an array of this shape; axes that it does not name get full slices."""
    given = list(key) if isinstance(key, tuple) else [key]
    settled = [_settled(each) for each in given]
    named = sum(_consumed(each) for each in settled)
    if sum(each is Ellipsis for each in settled) > 1 or named > len(shape):
        _refuse(settled, shape)
    explicit = any(each is Ellipsis for each in settled)
    if not explicit:
        settled.append(Ellipsis)
    items: list[Item] = []
    axis = 0
    for each in settled:
        if each is Ellipsis:
            open_axes = len(shape) - named
            items += [Range(axis + k, slice(None)) for k in range(open_axes)]
            if not open_axes and explicit:
                items.append(Gap())
            axis += open_axes
            continue
        items.append(_item(each, axis, shape))
        axis += _consumed(each)
    if any(isinstance(item, Points) for item in items):
        _check_bounds(items, shape)
    return [_wrapped(item, shape) if isinstance(item, Points) else item for item in items]


def _settled(each: Any) -> Any:
    """An entry of a key as an int, a slice, None, an ellipsis, an array of integers, or a mask (a node)."""
    if each is None or each is Ellipsis:
        return each
    if isinstance(each, slice):
        return slice(*(_bound(b) for b in (each.start, each.stop, each.step)))
    if isinstance(each, ArrayBase):
        node = each.__node__
        if node.dtype.kind == "b":
            return node
        return _integers(known(each))
    if isinstance(each, bool | np.bool_):
        return Source(np.asarray(each))
    if not isinstance(each, np.ndarray | list | tuple):
        try:
            return operator.index(each)
        except TypeError:
            pass
    array = np.asarray(each)
    if not isinstance(each, np.ndarray) and array.size == 0 and array.ndim:
        array = array.astype(np.intp)  # an empty list
    return Source(as_read(array)) if array.dtype.kind == "b" else _integers(array)


def _bound(value: Any) -> int | None:
    if value is None:
        return None
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError("slice indices must be integers or None or have an __index__ method") from None


def _integers(array: NDArray[Any]) -> Any:
    if array.dtype.kind not in "iu":
        if array.ndim:
            raise IndexError("arrays used as indices must be of integer (or boolean) type")
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean "
            f"arrays are valid indices, not a number of dtype {array.dtype}"
        )
    return array.astype(np.intp, copy=False) if array.ndim else int(array[()])


def _consumed(each: Any) -> int:
    """How many axes an entry stands for; an ellipsis is counted by others."""
    if each is None or each is Ellipsis:
        return 0
    return each.ndim if isinstance(each, Node) else 1


def _item(each: Any, axis: int, shape: tuple[int, ...]) -> Item:
    if each is None:
        return New()
    if isinstance(each, slice):
        if each.step == 0:
            raise ValueError("slice step cannot be zero")
        return Range(axis, each)
    if isinstance(each, int):
        if not -shape[axis] <= each < shape[axis]:
            raise IndexError(f"index {each} is out of bounds for axis {axis} with size {shape[axis]}")
        return Take(axis, each % shape[axis])
    if isinstance(each, Node):
        for offset, length in enumerate(each.shape):
            if length not in (0, shape[axis + offset]):
                raise IndexError(
                    f"boolean index did not match indexed array along axis {axis + offset}; size of axis is "
                    f"{shape[axis + offset]} but size of corresponding boolean axis is {length}"
                )
        masked = shape[axis : axis + each.ndim]
        return Mask(axis, each if each.shape == masked else filled(masked, False, bool))
    return Points(axis, each)


def _check_bounds(items: list[Item], shape: tuple[int, ...]) -> None:
    points = [item for item in items if isinstance(item, Points)]
    nothing = any(item.positions.size == 0 for item in points)  # then NumPy lets any position pass
    for item in points:
        length = shape[item.axis]
        wrong = (item.positions < -length) | (item.positions >= length)
        if wrong.any() and not nothing and not _chooses_nothing(items):
            raise IndexError(
                f"index {item.positions[wrong][0]} is out of bounds for axis {item.axis} with size {length}"
            )


def _chooses_nothing(items: list[Item]) -> bool:
    """Whether one of several masks and positions is a mask without a true element; it has to be looked at."""
    return any(isinstance(item, Mask) and not known_nodes([item.node])[0].any() for item in items)


def _wrapped(item: Points, shape: tuple[int, ...]) -> Points:
    positions = item.positions
    if positions.size and positions.min() < 0:
        positions = np.where(positions < 0, positions + shape[item.axis], positions)
    return Points(item.axis, positions)


def _refuse(key: list[Any], shape: tuple[int, ...]) -> NoReturn:
    """NumPy's own error for a key that does not fit, asked on an array that takes no memory."""
    dummy = np.broadcast_to(np.zeros((), np.int8), shape)
    dummy[tuple(np.broadcast_to(False, k.shape) if isinstance(k, Node) else k for k in key)]
    raise IndexError(f"the index {key} does not fit an array of shape {shape}")


def common_shape(points: Sequence[NDArray[np.intp]]) -> tuple[int, ...]:
    """The common shape of index arrays."""
    try:
        return np.broadcast_shapes(*(p.shape for p in points))
    except ValueError:
        shapes = " ".join(str(p.shape) for p in points)
        raise IndexError(
            f"shape mismatch: indexing arrays could not be broadcast together with shapes {shapes}"
        ) from None
