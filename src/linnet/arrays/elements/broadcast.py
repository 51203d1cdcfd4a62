"""Arrays stretched to a common shape, and with axes added in front."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import (
    as_node,
    chunked,
    wrap,
)
from linnet.arrays.elements.creation import shape_of
from linnet.arrays.elements.elementwise import spread
from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import permuted

if TYPE_CHECKING:
    from linnet.arrays.array import Array


def _with_axes(arys: tuple[Any, ...], widen: Any) -> Any:
    found = tuple(wrap(permuted(node, widen(node.ndim))) for node in map(as_node, arys))
    return found[0] if len(found) == 1 else found


@chunked(np.atleast_1d, times=chunking.LINEAR)
def atleast_1d(*arys: Any) -> Any:
    """Arrays with at least one axis.

    Parameters
    ----------
    arys : array_like, one or several

    Returns
    -------
    Array, or a tuple of them if several were given

    Examples
    --------
    >>> import linnet as ln
    >>> ln.atleast_1d(3.0).shape
    (1,)
    """
    return _with_axes(arys, lambda rank: tuple(range(rank)) or (-1,))


@chunked(np.atleast_2d, times=chunking.LINEAR)
def atleast_2d(*arys: Any) -> Any:
    """Arrays with at least two axes; new ones come first.

    Parameters
    ----------
    arys : array_like, one or several

    Returns
    -------
    Array, or a tuple of them if several were given

    Examples
    --------
    >>> import linnet as ln
    >>> ln.atleast_2d([1, 2, 3]).shape
    (1, 3)
    """
    return _with_axes(arys, lambda rank: (*(-1,) * (2 - rank), *range(rank)))


@chunked(np.atleast_3d, times=chunking.LINEAR)
def atleast_3d(*arys: Any) -> Any:
    """Arrays with at least three axes: a vector becomes a row, a matrix gets a last axis.

    Parameters
    ----------
    arys : array_like, one or several

    Returns
    -------
    Array, or a tuple of them if several were given

    Examples
    --------
    >>> import linnet as ln
    >>> ln.atleast_3d([[1, 2, 3]]).shape
    (1, 3, 1)
    """
    orders = {0: (-1, -1, -1), 1: (-1, 0, -1), 2: (0, 1, -1)}
    return _with_axes(arys, lambda rank: orders.get(rank, tuple(range(rank))))


@chunked(np.broadcast_to, times=chunking.LINEAR)
def broadcast_to(x: Any, /, shape: Any, subok: bool = False) -> Array:
    """The array spread over a shape, as in arithmetic.

    Parameters
    ----------
    x : array_like
    shape : int or tuple of int
    subok : without meaning here; there are no subclasses

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.broadcast_to([1, 2], (2, 2)).compute()
    array([[1, 2],
           [1, 2]])
    """
    lengths = shape_of(shape)
    node = as_node(x)
    try:
        fits = np.broadcast_shapes(node.shape, lengths) == lengths
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"an array of shape {node.shape} cannot be broadcast to shape {lengths}")
    return wrap(spread(node, lengths))


@chunked(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Array, ...]:
    """Arrays spread over the shape they have in common.

    Parameters
    ----------
    args : array_like, several
    subok : without meaning here; there are no subclasses

    Returns
    -------
    tuple of Arrays of one shape

    Examples
    --------
    >>> import linnet as ln
    >>> [each.shape for each in ln.broadcast_arrays([1, 2, 3], [[1], [2]])]
    [(2, 3), (2, 3)]
    """
    nodes = [as_node(each) for each in args]
    shape = np.broadcast_shapes(*(node.shape for node in nodes))
    return tuple(wrap(spread(node, shape)) for node in nodes)


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that arrays of these shapes have in common.

    Parameters
    ----------
    shapes : tuples of int

    Returns
    -------
    tuple of int

    Examples
    --------
    >>> import linnet as ln
    >>> ln.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    return np.broadcast_shapes(*shapes)


METHODS: dict[str, Any] = {}
__all__ = ["atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_shapes", "broadcast_to"]
