"""Elements added and removed: `append`, `insert`, `delete`, `trim_zeros`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import NUMPY, ArrayBase, as_node, axes_of, axis_of, chunked, wrap
from linnet.arrays.elements.elementwise import cast, spread
from linnet.arrays.elements.join_and_split import concatenate, joined, part_of
from linnet.arrays.elements.shapes import ravel
from linnet.arrays.expression.builders import mapped, permuted, sliced
from linnet.arrays.expression.nodes import Node, Source
from linnet.arrays.lowering.evaluate import computed

if TYPE_CHECKING:
    from linnet.arrays.array import Array


@chunked(np.append)
def append(arr: Any, values: Any, axis: Any = None) -> Array:
    """Values behind an array, along an axis; both flattened, if there is none.

    Parameters
    ----------
    arr : array_like
    values : array_like; what comes behind it
    axis : int, optional; None: both are flattened

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.append([1, 2], [[3], [4]]).compute()
    array([1, 2, 3, 4])
    """
    return concatenate([arr, values], axis)


@chunked(np.delete)
def delete(arr: Any, obj: Any, axis: Any = None) -> Array:
    """The array without what an index names along an axis.

    Parameters
    ----------
    arr : array_like
    obj : int, slice, or array of integers or booleans; what goes
    axis : int, optional; None: the array is flattened

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.delete([1, 2, 3, 4], [0, 2]).compute()
    array([2, 4])
    """
    node = as_node(arr)
    if axis is None:
        node, axis = ravel(wrap(node)).__node__, 0
    place = axis_of(axis, node.ndim)
    length = node.shape[place]
    if isinstance(obj, slice):
        gone = range(*obj.indices(length))
        if not len(gone):
            return wrap(node)
        if abs(gone.step) == 1:
            low, high = min(gone[0], gone[-1]), max(gone[0], gone[-1]) + 1
            return wrap(_without(node, place, low, high))
        obj = np.arange(gone.start, gone.stop, gone.step)
    index = np.asarray(obj)
    if index.dtype != bool and index.size == 1:
        (position,) = _checked_index(index.reshape(1), length, place)
        return wrap(_without(node, place, int(position), int(position) + 1))
    if index.dtype == bool:
        if index.shape != (length,):
            raise ValueError(
                "boolean array argument obj to delete must be one dimensional "
                f"and match the axis length of {length}"
            )
        keep = ~index
    else:
        keep = np.ones(length, bool)
        keep[_checked_index(index if index.size else index.astype(np.intp), length, place)] = False
    return _taken(node, np.flatnonzero(keep), place)


def _taken(node: Node, index: Any, axis: int) -> Any:
    return wrap(node)[(*(slice(None),) * axis, index)]


def _without(node: Node, axis: int, low: int, high: int) -> Node:
    return joined([part_of(node, axis, 0, low), part_of(node, axis, high, None)], axis)


def _checked_index(index: Any, length: int, axis: int, *, end: bool = False) -> Any:
    """Positions from the front; NumPy's error for those that are not there."""
    if index.dtype.kind not in "iu":
        raise IndexError("arrays used as indices must be of integer (or boolean) type")
    for each in index[(index < -length) | (index >= length + end)]:
        raise IndexError(f"index {each} is out of bounds for axis {axis} with size {length}")
    return np.where(index < 0, index + length, index)


@chunked(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Array:
    """The array with values before what an index names along an axis.

    Parameters
    ----------
    arr : array_like
    obj : int, slice, or array of integers; before which elements
    values : array_like; what is put there
    axis : int, optional; None: the array is flattened

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.insert([1, 2, 3], 1, 9).compute()
    array([1, 9, 2, 3])
    """
    node = as_node(arr)
    if axis is None:
        node, axis = ravel(wrap(node)).__node__, 0
    place = axis_of(axis, node.ndim)
    length = node.shape[place]
    index = np.arange(*obj.indices(length)) if isinstance(obj, slice) else np.asarray(obj)
    if index.dtype == bool:
        index = np.flatnonzero(index)
    if index.ndim > 1:
        raise ValueError("index array argument obj to insert must be one dimensional or scalar")
    given = as_node(values) if isinstance(values, ArrayBase) else as_node(np.array(values, dtype=node.dtype))
    single = index.size == 1
    if single and index.ndim == 0:
        # NumPy's rule: a scalar index takes values with their first axis along the array's.
        given = NUMPY[np.moveaxis](wrap(_at_least(given, node.ndim)), 0, place).__node__
    index = _checked_index(index.reshape(-1) if index.size else np.empty(0, np.intp), length, place, end=True)
    given = cast(_at_least(given, node.ndim), node.dtype)
    count = given.shape[place] if single else len(index)
    given = spread(given, (*node.shape[:place], count, *node.shape[place + 1 :]))
    if single:
        at = int(index[0])
        return wrap(joined([part_of(node, place, 0, at), given, part_of(node, place, at, None)], place))
    both = joined([node, given], place)
    order = np.insert(np.arange(length), index, length + np.arange(count))
    return _taken(both, order, place)


def _at_least(node: Node, rank: int) -> Node:
    return permuted(node, (*(-1,) * (rank - node.ndim), *range(node.ndim)))


@chunked(np.trim_zeros)
def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Array:
    """The array without the zeros at its ends: where they end has to be computed.

    Parameters
    ----------
    filt : array_like
    trim : "f", "b" or "fb"; zeros at the front, at the back, or both
    axis : int or tuple of int, optional; None: all axes

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.trim_zeros(ln.asarray([0, 1, 0, 2, 0])).compute()
    array([1, 0, 2])
    """
    node = as_node(filt)
    sides = trim.lower()
    if sides not in ("fb", "bf", "f", "b"):
        raise ValueError(f"unexpected character(s) in `trim`: {trim!r}")
    parts = [slice(None)] * node.ndim
    axes = axes_of(axis, node.ndim)
    if not axes:
        return wrap(node)
    found = mapped("not_equal", [node, Source(np.zeros((), node.dtype))], bool)
    rest = [tuple(a for a in range(node.ndim) if a != axis) for axis in axes]
    lines = [NUMPY[np.any](wrap(found), axis=each) if each else wrap(found) for each in rest]
    for place, line in zip(axes, computed([each.__node__ for each in lines]), strict=True):
        there = np.flatnonzero(line)
        if len(there):
            parts[place] = slice(
                int(there[0]) if "f" in sides else None, int(there[-1]) + 1 if "b" in sides else None
            )
        else:
            parts[place] = slice(0, 0)
    return wrap(sliced(node, parts))


METHODS: dict[str, Any] = {}
__all__ = ["append", "delete", "insert", "trim_zeros"]
