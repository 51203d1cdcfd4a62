"""Other shapes of the same elements: reshaping, other orders of axes, new axes, broadcasting."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import (
    NUMPY,
    ArrayBase,
    as_node,
    axes_of,
    axis_of,
    chunked,
    listed,
    recut_as,
    wrap,
)
from linnet.arrays.elements.reshape import new_shape, reshaped, reshaped_by_tile
from linnet.arrays.expression import chunking
from linnet.arrays.expression.argument_names import named_as
from linnet.arrays.expression.builders import permuted
from linnet.arrays.expression.nodes import Node, Source
from linnet.arrays.expression.traced import traceable

if TYPE_CHECKING:
    from linnet.arrays.array import Array


@chunked(np.reshape, times=chunking.LINEAR)
def reshape(a: Any, shape: Any, order: str = "C", *, copy: Any = None) -> Array:
    """The elements in row-major order (or column-major, with order "F") under another shape.

    Parameters
    ----------
    a : array_like
    shape : int or tuple of int; one of them may be -1, and is then found from the others
    order : "C" (row-major), "F" (column-major) or "A"
    copy : bool, optional; False: refuse where elements must move

    Returns
    -------
    Array

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> reshape(asarray(np.arange(6), chunks=2), (2, -1)).compute()
    array([[0, 1, 2],
           [3, 4, 5]])
    """
    if order not in ("C", "F", "A"):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    node = as_node(a)
    wanted = new_shape(np.asarray(shape).tolist() if isinstance(shape, ArrayBase) else shape, node.shape)
    if copy and isinstance(node, Source):
        node = Source(node.data.copy(), node._layout)
    if order != "F":
        return wrap(reshaped(node, wanted))
    return wrap(_reversed(reshaped(_reversed(node), wanted[::-1])))


def _reversed(node: Node) -> Node:
    return permuted(node, tuple(reversed(range(node.ndim))))


@chunked(np.ravel, times=chunking.LINEAR)
def ravel(a: Any, order: str = "C") -> Array:
    """The elements, one after another.

    Parameters
    ----------
    a : array_like
    order : "C" (row-major), "F" (column-major), "A" or "K"

    Returns
    -------
    Array with one axis

    Examples
    --------
    >>> import linnet as ln
    >>> ln.ravel([[1, 2], [3, 4]]).compute()
    array([1, 2, 3, 4])
    """
    return reshape(wrap(as_node(a)), (-1,), "C" if order == "K" else order)


def reshape_blockwise(x: Any, shape: Any, chunks: Any = None) -> Array:
    """Every tile by itself under another shape. Nothing moves, but the order is another than NumPy's.

    Axes are merged, or split; where one is split, `chunks` says how the result is cut.

    Parameters
    ----------
    x : Array
    shape : tuple of int
    chunks : optional; the tiles of the result, where more axes than one are possible

    Returns
    -------
    Array

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> x = asarray(np.arange(6).reshape(2, 3), chunks=(2, (2, 1)))
    >>> reshape_blockwise(x, 6).compute()
    array([0, 1, 3, 4, 2, 5])
    """
    node = as_node(x)
    return wrap(reshaped_by_tile(node, new_shape(shape, node.shape), chunks))


# ---- the order of axes


@chunked(np.transpose, times=chunking.LINEAR)
def transpose(a: Any, axes: Any = None) -> Array:
    """The axes in another order; reversed, if none is given.

    Parameters
    ----------
    a : array_like
    axes : sequence of int, optional; the order of the axes; None: reversed

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.transpose([[1, 2], [3, 4]]).compute()
    array([[1, 3],
           [2, 4]])
    """
    node = as_node(a)
    if axes is None:
        return wrap(_reversed(node))
    found = tuple(axis_of(axis, node.ndim) for axis in axes)
    if len(found) != node.ndim:
        raise ValueError(f"axes don't match array: {tuple(axes)} for an array of shape {node.shape}")
    if len(set(found)) != node.ndim:
        raise ValueError(f"repeated axis in transpose: {tuple(axes)}")
    return wrap(permuted(node, found))


@named_as(np.permute_dims)
def permute_dims(x: Any, /, axes: Any = None) -> Array:
    """The axes in another order.

    Parameters
    ----------
    x : array_like
    axes : sequence of int, optional; the order of the axes; None: reversed

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.permute_dims(ln.ones((2, 3, 4)), (1, 0, 2)).shape
    (3, 2, 4)
    """
    return transpose(x, axes)


@chunked(np.matrix_transpose, times=chunking.LINEAR)
def matrix_transpose(x: Any, /) -> Array:
    """The last two axes swapped.

    Parameters
    ----------
    x : array_like with at least two axes

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.matrix_transpose(ln.ones((5, 2, 3))).shape
    (5, 3, 2)
    """
    node = as_node(x)
    if node.ndim < 2:
        raise ValueError(f"Input array must be at least 2-dimensional, but it is {node.ndim}")
    return swapaxes(wrap(node), -1, -2)


@chunked(np.swapaxes, times=chunking.LINEAR)
def swapaxes(a: Any, axis1: int, axis2: int) -> Array:
    """Two axes swapped.

    Parameters
    ----------
    a : array_like
    axis1, axis2 : int

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.swapaxes(ln.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    node = as_node(a)
    order = list(range(node.ndim))
    one, other = axis_of(axis1, node.ndim), axis_of(axis2, node.ndim)
    order[one], order[other] = order[other], order[one]
    return wrap(permuted(node, tuple(order)))


@chunked(np.moveaxis, times=chunking.LINEAR)
def moveaxis(a: Any, source: Any, destination: Any) -> Array:
    """Axes moved to other places, the others in their order.

    Parameters
    ----------
    a : array_like
    source : int or sequence of int; the axes that move
    destination : int or sequence of int; where they are in the result

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.moveaxis(ln.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    node = as_node(a)
    places: list[list[int]] = []
    for given in (source, destination):
        found = [axis_of(axis, node.ndim) for axis in listed(given)]
        if len(set(found)) != len(found):
            raise ValueError(f"repeated axis in {given}")
        places.append(found)
    if len(places[0]) != len(places[1]):
        raise ValueError("`source` and `destination` arguments must have the same number of elements")
    order = [axis for axis in range(node.ndim) if axis not in places[0]]
    for where, axis in sorted(zip(places[1], places[0], strict=True)):
        order.insert(where, axis)
    return wrap(permuted(node, tuple(order)))


@chunked(np.rollaxis, times=chunking.LINEAR)
def rollaxis(a: Any, axis: int, start: int = 0) -> Array:
    """An axis moved to before another one.

    Parameters
    ----------
    a : array_like
    axis : int; the axis that moves
    start : int; the axis before which it goes

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.rollaxis(ln.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    node = as_node(a)
    count = node.ndim
    axis = axis_of(axis, count)
    start = start + count if start < 0 else start
    if not 0 <= start <= count:
        raise np.exceptions.AxisError(start, count + 1)
    order = [each for each in range(count) if each != axis]
    order.insert(start - 1 if axis < start else start, axis)
    return wrap(permuted(node, tuple(order)))


# ---- new axes, and axes of length 1


@chunked(np.expand_dims, times=chunking.LINEAR)
def expand_dims(a: Any, axis: Any = 0) -> Array:
    """New axes of length 1 at these places of the result.

    Parameters
    ----------
    a : array_like
    axis : int or tuple of int; where the new axes are in the result

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.expand_dims([1, 2], 1).shape
    (2, 1)
    """
    node = as_node(a)
    count = node.ndim + (len(axis) if isinstance(axis, tuple | list) else 1)
    new = axes_of(axis if isinstance(axis, tuple | list) else (axis,), count)
    old = iter(range(node.ndim))
    return wrap(permuted(node, tuple(-1 if place in new else next(old) for place in range(count))))


@chunked(np.squeeze, times=chunking.LINEAR)
def squeeze(a: Any, axis: Any = None) -> Array:
    """Without axes of length 1; only without these, if some are named.

    Parameters
    ----------
    a : array_like
    axis : int or tuple of int, optional; axes of length 1; None: all of them

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.squeeze(ln.ones((1, 3, 1)), axis=0).shape
    (3, 1)
    """
    node = as_node(a)
    gone = [k for k, n in enumerate(node.shape) if n == 1] if axis is None else axes_of(axis, node.ndim)
    for each in gone:
        if node.shape[each] != 1:
            raise ValueError(
                "cannot select an axis to squeeze out which has size not equal to one: "
                f"axis {each} of shape {node.shape}"
            )
    return wrap(permuted(node, tuple(k for k in range(node.ndim) if k not in gone)))


# ---- broadcasting


@traceable
def rechunk(x: Any, chunks: Any = "auto") -> Array:
    """The same array in other tiles.

    Parameters
    ----------
    x : Array
    chunks : length of the tiles: a number, one for each axis, or "auto"

    Returns
    -------
    Array of the same elements

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> rechunk(asarray(np.arange(6)), 4).chunks
    ((4, 2),)
    """
    return wrap(recut_as(as_node(x), chunks))


# ---- methods


def _reshape(self: Any, *shape: Any, order: str = "C", copy: Any = None) -> Array:
    """The elements in row-major order under another shape."""
    keywords: dict[str, Any] = {} if copy is None else {"copy": copy}
    return reshape(self, shape[0] if len(shape) == 1 else shape, order, **keywords)


def _transpose(self: Any, *axes: Any) -> Array:
    """The axes in another order; reversed, if none is given."""
    if len(axes) == 1 and (axes[0] is None or not hasattr(axes[0], "__index__")):
        return transpose(self, axes[0])
    return transpose(self, tuple(map(operator.index, axes)) or None)


def _flatten(self: Any, order: str = "C") -> Array:
    """The elements, one after another, with memory of their own."""
    return ravel(wrap(self.__node__), order)


METHODS: dict[str, Any] = {
    "flatten": _flatten,
    "ravel": ravel,
    "reshape": _reshape,
    "squeeze": squeeze,
    "swapaxes": swapaxes,
    "transpose": _transpose,
}
__all__ = [
    "expand_dims",
    "matrix_transpose",
    "moveaxis",
    "permute_dims",
    "ravel",
    "rechunk",
    "reshape",
    "reshape_blockwise",
    "rollaxis",
    "squeeze",
    "swapaxes",
    "transpose",
]
if hasattr(np, "permute_dims"):
    NUMPY.setdefault(np.permute_dims, transpose)
