"""Functions that take elements by position, and put them there: take, choose, compress, diagonals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linnet.arrays.elements.along_axis import looked_up, taken_along
from linnet.arrays.elements.assignment import setitem
from linnet.arrays.elements.computed_indices import known, settled
from linnet.arrays.elements.core import NUMPY, ArrayBase, as_node, axis_of, chunked, wrap, wrapped
from linnet.arrays.elements.cumulative import cumsum as cumulated
from linnet.arrays.elements.elementwise import apply, cast, placed
from linnet.arrays.elements.gather import gathered
from linnet.arrays.elements.indexing import indexed
from linnet.arrays.elements.reductions import sum as summed
from linnet.arrays.elements.roll_and_flip import resize
from linnet.arrays.elements.shapes import ravel, reshape
from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import filled, mapped, permuted
from linnet.arrays.expression.nodes import Node, Source

if TYPE_CHECKING:
    from linnet.arrays.array import Array


def stored_in(result: Any, out: Any, name: str) -> Any:
    return result if out is None else placed(result, out, True, name)


def flat_picked(node: Node, flat: NDArray[np.intp]) -> Node:
    """Elements at positions in row-major order."""
    if not node.ndim:
        return mapped("fill", [node], node.dtype, shape=flat.shape)
    return gathered(node, range(node.ndim), list(np.unravel_index(flat, node.shape)))


@chunked(np.take, times=chunking.LINEAR)
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Array:
    """Elements at positions along an axis; without one, in row-major order.

    Parameters
    ----------
    a : array_like
    indices : array_like of integers
    axis : int, optional; None: positions in row-major order
    out : array, optional; where the result goes
    mode : "raise", "wrap" or "clip"; what becomes of positions outside

    Returns
    -------
    Array

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> take(asarray(np.arange(6).reshape(2, 3), chunks=1), [2, 0], axis=1).compute()
    array([[2, 0],
           [5, 3]])
    """
    node = as_node(a)
    lazily = looked_up(node, indices) if mode == "raise" and axis in (None, 0, -1) else None
    if lazily is not None:
        return stored_in(wrap(lazily), out, "take")
    if axis is None:
        return stored_in(wrap(flat_picked(node, settled(indices, math.prod(node.shape), mode))), out, "take")
    if not node.ndim:
        node = permuted(node, (-1,))
    axis = axis_of(axis, node.ndim)
    # Where nothing comes out NumPy looks at no index, unless it goes through them first.
    if 0 in node.shape[:axis] or (0 in node.shape[axis + 1 :] and mode != "raise"):
        shape = (*node.shape[:axis], *np.shape(known(indices)), *node.shape[axis + 1 :])
        return stored_in(wrap(filled(shape, 0, node.dtype)), out, "take")
    positions = settled(indices, node.shape[axis], mode, axis)
    return stored_in(wrap(gathered(node, [axis], [positions], axis)), out, "take")


@chunked(np.take_along_axis, times=chunking.LINEAR)
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Array:
    """Elements of each line along an axis, at the positions in the line of `indices`.

    Parameters
    ----------
    arr : array_like
    indices : array_like of integers
    axis : int or None

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.take_along_axis(ln.asarray([[3, 1, 2]]), ln.asarray([[1, 2, 0]]), axis=1).compute()
    array([[1, 2, 3]])
    """
    node, index = as_node(arr), as_node(indices)
    if index.dtype.kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    if axis is None:
        if index.ndim != 1:
            raise ValueError("when axis=None, `indices` must have a single dimension.")
        return take(wrap(node), indices)
    if index.ndim != node.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    axis = axis_of(axis, node.ndim)
    if not isinstance(indices, ArrayBase):
        # What is known beforehand says which elements of lines are read at all.
        index = Source(settled(indices, node.shape[axis], "raise", axis))
        positions, places = np.unique(index.data, return_inverse=True)
        if 2 * len(positions) <= node.shape[axis] and node.grid[axis] > 1 and len(positions):
            node = gathered(node, [axis], [positions], axis)
            index = Source(places.reshape(index.shape))
    if node.ndim == 1:
        return wrap(indexed(node, wrap(index)))
    return wrap(taken_along(node, index, axis))


# ---- putting


def _own(a: Any, function: str) -> Any:
    if not isinstance(a, ArrayBase):
        raise TypeError(f"{function} writes into an array of linnet's, not into {type(a).__name__}")
    return a


def _put_flat(a: Any, flat: NDArray[np.intp], values: NDArray[Any]) -> None:
    """Values, again and again from the beginning, at positions in row-major order."""
    if flat.size and values.size:
        key = np.unravel_index(flat.reshape(-1), a.shape) if a.shape else ()
        repeated = np.resize(values, flat.size)
        setitem(a, key, repeated if a.shape else repeated[-1])


def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """Put values at positions in row-major order.

    Parameters
    ----------
    a : Array, which is changed
    ind : array_like of integers; positions
    v : array_like; repeated if there are fewer
    mode : "raise", "wrap" or "clip"; what becomes of positions outside

    Returns
    -------
    None

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> x = asarray(np.zeros(4), chunks=2)
    >>> put(x, [3, 0], [7, 8])
    >>> x.compute()
    array([8., 0., 0., 7.])
    """
    _put_flat(_own(a, "put"), settled(ind, math.prod(a.shape), mode), known(v))


def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    """Put values into each line along an axis, at the positions in the line of `indices`.

    Parameters
    ----------
    arr : Array, which is changed
    indices : array_like of integers
    values : array_like
    axis : int or None

    Returns
    -------
    None

    Examples
    --------
    >>> import linnet as ln
    >>> x = ln.asarray([[1, 2], [3, 4]])
    >>> ln.put_along_axis(x, [[1], [0]], 9, axis=1)
    >>> x.compute()
    array([[1, 9],
           [9, 4]])
    """
    _own(arr, "put_along_axis")
    index = known(indices)
    if index.dtype.kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    if axis is None:
        if index.ndim != 1:
            raise ValueError("when axis=None, `indices` must have a single dimension.")
        key: Any = np.unravel_index(settled(index, math.prod(arr.shape), "raise"), arr.shape)
    else:
        if index.ndim != arr.ndim:
            raise ValueError("`indices` and `arr` must have the same number of dimensions")
        axis = axis_of(axis, arr.ndim)
        lines = np.ogrid[tuple(slice(n) for n in arr.shape)]
        key = tuple(index if a == axis else line for a, line in enumerate(lines))
    setitem(arr, key, values)


def putmask(a: Any, mask: Any, values: Any) -> None:
    """Replace elements under a mask; values shorter than the array are repeated over all of it.

    Parameters
    ----------
    a : Array, which is changed
    mask : array_like of bool
    values : array_like; repeated over all of `a`

    Returns
    -------
    None

    Examples
    --------
    >>> import linnet as ln
    >>> x = ln.asarray([1, 2, 3, 4])
    >>> ln.putmask(x, x > 2, [7, 8])
    >>> x.compute()
    array([1, 2, 7, 8])
    """
    _own(a, "putmask")
    condition = cast(as_node(mask), bool)
    if math.prod(condition.shape) != math.prod(a.shape):
        raise ValueError(
            f"putmask: mask of shape {condition.shape} and data of shape {a.shape} must be the same size"
        )
    value = as_node(values)
    if not np.can_cast(value.dtype, a.dtype, "same_kind") and isinstance(values, ArrayBase | np.ndarray):
        raise TypeError(f"putmask: values of dtype {value.dtype} cannot be cast to {a.dtype}")
    if math.prod(value.shape):
        repeated = wrap(value) if value.shape == a.shape else resize(wrap(value), a.shape)
        _where(a, condition, repeated.__node__)


def _where(a: Any, condition: Node, values: Node) -> None:
    """Replace elements under a mask of as many elements, tile by tile."""
    mask = reshape(wrap(condition), a.shape).__node__
    a._node = mapped("where", [mask, cast(values, a.dtype), a.__node__], a.dtype, layout=a.__node__.layout)


def place(arr: Any, mask: Any, vals: Any) -> None:
    """Replace elements under a mask by values, one after the other and again from the beginning.

    Parameters
    ----------
    arr : Array, which is changed
    mask : array_like of bool
    vals : array_like

    Returns
    -------
    None

    Examples
    --------
    >>> import linnet as ln
    >>> x = ln.asarray([1, 2, 3, 4])
    >>> ln.place(x, x > 2, [8, 9])
    >>> x.compute()
    array([1, 2, 8, 9])
    """
    _own(arr, "place")
    condition = cast(as_node(mask), bool)
    values = known(vals).reshape(-1)
    if math.prod(condition.shape) != math.prod(arr.shape):
        raise ValueError(
            f"place: mask of shape {condition.shape} and array of shape {arr.shape} must be the same size"
        )
    if not values.size:
        if NUMPY[np.any](wrap(condition)).compute():
            raise ValueError("Cannot insert from an empty array!")
        return
    # The how-manieth under the mask each element is says which value it gets.
    number = cumulated(ravel(wrap(condition)), dtype=np.int64)
    turn = apply(np.remainder, apply(np.subtract, number, 1), len(values))
    found = taken_along(as_node(values), turn.__node__, 0)
    _where(arr, condition, reshape(wrap(found), arr.shape).__node__)


# NumPy's own would write into memory that others may share, so there is no straight path to them.
NUMPY.update({np.put: put, np.put_along_axis: put_along_axis, np.putmask: putmask, np.place: place})


# ---- choosing


# ---- diagonals


@chunked(np.diagonal, times=chunking.LINEAR)
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The diagonal of the matrices in two axes, as the last axis.

    Parameters
    ----------
    a : array_like with at least two axes
    offset : int; which diagonal
    axis1, axis2 : int; the axes of the matrices

    Returns
    -------
    Array

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> diagonal(asarray(np.arange(9).reshape(3, 3), chunks=2), offset=1).compute()
    array([1, 5])
    """
    node = as_node(a)
    if node.ndim < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    first, second = axis_of(axis1, node.ndim, "axis1"), axis_of(axis2, node.ndim, "axis2")
    if first == second:
        raise ValueError("axis1 and axis2 cannot be the same")
    down, right = max(0, -offset), max(0, offset)
    length = max(0, min(node.shape[first] - down, node.shape[second] - right))
    lines = {first: np.arange(down, down + length), second: np.arange(right, right + length)}
    axes = sorted(lines)
    return wrap(gathered(node, axes, [lines[axis] for axis in axes], node.ndim - 2))


@chunked(np.trace, times=chunking.LINEAR)
def trace(
    a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None
) -> Array:
    """The sum along the diagonal of the matrices in two axes.

    Parameters
    ----------
    a : array_like with at least two axes
    offset : int; which diagonal
    axis1, axis2 : int; the axes of the matrices
    dtype : optional; the type to add in
    out : array, optional; where the result goes

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.trace([[1, 2], [3, 4]]).compute()
    np.int64(5)
    """
    return summed(diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype, out=out)


def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """Replace the main diagonal; with `wrap`, that of a tall matrix goes on after a row.

    Parameters
    ----------
    a : Array, which is changed
    val : number, or array_like whose elements are repeated
    wrap : whether the diagonal of a tall matrix goes on after a row

    Returns
    -------
    None

    Examples
    --------
    >>> import linnet as ln
    >>> x = ln.zeros((2, 2))
    >>> ln.fill_diagonal(x, 5)
    >>> x.compute()
    array([[5., 0.],
           [0., 5.]])
    """
    _own(a, "fill_diagonal")
    shape = a.shape
    if len(shape) < 2:
        raise ValueError("array must be at least 2-d")
    size = math.prod(shape)
    if len(shape) == 2:
        step = shape[1] + 1
        end = size if wrap else min(size, shape[1] * shape[1])
    else:
        if len(set(shape)) != 1:
            raise ValueError("All dimensions of input must be of equal length")
        step, end = 1 + sum(math.prod(shape[k:]) for k in range(1, len(shape))), size
    _put_flat(a, np.arange(0, end, step), known(val).reshape(-1))


NUMPY[np.fill_diagonal] = fill_diagonal


@chunked(np.ix_)
def ix_(*args: Any) -> tuple[Array, ...]:
    """Index arrays for the rows and columns given, so that `x[ix_(rows, columns)]` is a box of `x`.

    Parameters
    ----------
    args : vectors of integers or booleans, one for each axis

    Returns
    -------
    tuple of Arrays

    Examples
    --------
    >>> import linnet as ln
    >>> x = ln.asarray([[1, 2, 3], [4, 5, 6]])
    >>> x[ln.ix_([0, 1], [0, 2])].compute()
    array([[1, 3],
           [4, 6]])
    """
    return tuple(wrapped(each) for each in np.ix_(*map(known, args)))


def _put_method(self: Any, indices: Any, values: Any, mode: str = "raise") -> None:
    """Put values at positions in row-major order."""
    put(self, indices, values, mode)


METHODS: dict[str, Any] = {
    "diagonal": diagonal,
    "put": _put_method,
    "take": take,
    "trace": trace,
}
__all__ = [
    "diagonal",
    "fill_diagonal",
    "ix_",
    "place",
    "put",
    "put_along_axis",
    "putmask",
    "take",
    "take_along_axis",
    "trace",
]
