"""Making arrays of other objects, and of one value: a number spread over a shape, that takes no memory."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import (
    FOREIGN,
    NUMPY,
    ArrayBase,
    as_node,
    at_hand,
    checked,
    is_future,
    recut_as,
    wrap,
)
from linnet.arrays.elements.elementwise import apply, cast
from linnet.arrays.expression import chunking
from linnet.arrays.expression.argument_names import named_as
from linnet.arrays.expression.builders import blocks, permuted
from linnet.arrays.expression.nodes import Entry, Node, Piece, Source
from linnet.arrays.expression.traced import traceable
from linnet.tiles import Layout
from linnet.tiles.layout import Boundaries

if TYPE_CHECKING:
    from linnet.arrays.array import Array

# ---- what the functions of this chapter share


def check_device(device: Any) -> None:
    """Refuse devices other than the one there is."""
    if device not in (None, "cpu"):
        raise ValueError(f'device {device!r} is not known; the only device is "cpu"')


def shape_of(shape: Any) -> tuple[int, ...]:
    """A shape as users write it: a number, or several."""
    if isinstance(shape, ArrayBase):
        shape = np.asarray(shape).tolist()
    lengths = (shape,) if hasattr(shape, "__index__") else tuple(shape)
    found = tuple(operator.index(length) for length in lengths)
    if found and min(found) < 0:
        raise ValueError(f"negative dimensions are not allowed, got shape {found}")
    return found


def made(
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    chunks: Any,
    small: Callable[[], Any],
    large: Callable[[Layout], Node],
) -> Any:
    """An array made in memory if it is small, else lazily with the layout that `chunks=` asks for."""
    checked(np.empty(0, dtype))
    size = math.prod(shape) * dtype.itemsize
    if size <= chunking.SMALL:
        return wrap(recut_as(Source(np.asarray(small())), None if chunks == "auto" else chunks))
    layout = chunking.normalized(chunks, shape, dtype)
    if size <= chunking.SMALL * chunking.LINEAR and max(layout.grid) == 1 and at_hand():
        return wrap(Source(np.asarray(small()), layout))
    return wrap(large(layout))


def positions(edges: Boundaries, start: int = 0) -> Node:
    """The integers from `start`, as many as the boundaries span, cut there."""
    starts = tuple(start + edge for edge in edges[:-1])
    lengths = tuple(b - a for a, b in itertools.pairwise(edges))
    piece = Piece("iota", (Entry(0, starts), Entry(0, lengths)))
    return blocks((), (piece,), Layout((edges,)), np.int64)


# ---- of other objects


@named_as(np.asarray)
def asarray(
    obj: Any,
    /,
    dtype: Any = None,
    order: Any = None,
    *,
    device: Any = None,
    copy: Any = None,
    chunks: Any = None,
) -> Array:
    """An array of anything NumPy can make one of; NumPy arrays share their memory unless `copy=True`.

    Arrays of Dask and Cubed, sparse ones, columns and tables of pandas, polars and Arrow stay as they
    are until tiles of them are asked for.

    Parameters
    ----------
    obj : array_like, or an array of another library
    dtype : optional; the type of the elements
    order : without meaning here; how elements lie in memory is not the user's concern
    device : optional; "cpu" is the only one
    copy : bool, optional; True: always copy; False: refuse where a copy is needed
    chunks : optional; length of the tiles: a number, or one for each axis

    Returns
    -------
    Array

    Examples
    --------
    >>> asarray([[1, 2], [3, 4]], chunks=1).grid
    (2, 2)
    """
    check_device(device)
    wanted = None if dtype is None else np.dtype(dtype)
    if wanted is not None:
        checked(np.empty(0, wanted))
    if is_future(obj):
        obj = obj.result()
    if isinstance(obj, ArrayBase):
        if copy is False and chunks is None and wanted in (None, obj._node.dtype):
            made: Any = obj
            return made  # itself: what is written into it later must show
        return wrap(recut_as(_converted(obj.__node__, wanted, copy), chunks))
    convert = FOREIGN.get(type(obj).__module__.partition(".")[0])
    if convert is not None and (made := convert(obj, chunks)) is not None:
        if copy is False and isinstance(made, ArrayBase):
            raise ValueError(f"a {type(obj).__name__} cannot become an array of tiles without a copy")
        return asarray(made, dtype, copy=copy, chunks=chunks)
    if isinstance(obj, list | tuple) and _holds_arrays(obj):
        if copy is False:
            raise ValueError("a sequence of arrays cannot become one array without a copy")
        return wrap(recut_as(cast(_nested(obj), wanted) if wanted is not None else _nested(obj), chunks))
    if (
        hasattr(obj, "__dlpack__")
        and not isinstance(obj, np.ndarray | np.generic)
        and not hasattr(obj, "__array__")
    ):
        obj = np.from_dlpack(obj)  # pyright: ignore[reportArgumentType]
    return wrap(recut_as(Source(checked(np.array(obj, dtype=wanted, copy=copy))), chunks))


def _converted(node: Node, dtype: np.dtype[Any] | None, copy: Any) -> Node:
    if dtype is not None and dtype != node.dtype:
        if copy is False:
            raise ValueError(f"an array of {node.dtype} cannot become one of {dtype} without a copy")
        return cast(node, dtype)
    if copy and isinstance(node, Source):
        return Source(node.data.copy(), node._layout)
    return node


def _holds_arrays(obj: Any) -> bool:
    return any(
        isinstance(each, ArrayBase) or (isinstance(each, list | tuple) and _holds_arrays(each))
        for each in obj
    )


def _nested(obj: Any) -> Node:
    from linnet.arrays.elements.join_and_split import stack

    if not isinstance(obj, list | tuple):
        return as_node(obj)
    return stack([wrap(_nested(each)) for each in obj]).__node__


@named_as(np.array)
def array(
    obj: Any,
    dtype: Any = None,
    *,
    copy: Any = True,
    order: Any = "K",
    subok: bool = False,
    ndmin: int = 0,
    device: Any = None,
    chunks: Any = None,
) -> Array:
    """An array of anything NumPy can make one of, with memory of its own unless `copy` is False or None.

    Parameters
    ----------
    obj : array_like
    dtype : optional; the type of the elements
    copy : whether the array has memory of its own; False: refuse where it must have
    order : without meaning here; how elements lie in memory is not the user's concern
    subok : without meaning here; there are no subclasses
    ndmin : int; at least so many axes; new ones come first
    device : optional; "cpu" is the only one
    chunks : optional; length of the tiles

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.array([1, 2], ndmin=2).shape
    (1, 2)
    """
    result = asarray(obj, dtype, device=device, copy=copy, chunks=chunks)
    missing = ndmin - result.ndim
    if missing <= 0:
        return result
    return wrap(permuted(result.__node__, (*(-1,) * missing, *range(result.ndim))))


@named_as(np.asanyarray)
def asanyarray(obj: Any, dtype: Any = None, order: Any = None, **keywords: Any) -> Array:
    """The same as `asarray`: there are no subclasses.

    Parameters
    ----------
    obj : array_like
    dtype : optional; the type of the elements
    order : without meaning here; how elements lie in memory is not the user's concern

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.asanyarray([1, 2]).compute()
    array([1, 2])
    """
    return asarray(obj, dtype, order, **keywords)


@named_as(np.ascontiguousarray)
def ascontiguousarray(obj: Any, dtype: Any = None) -> Array:
    """The same as `asarray`, with at least one axis: how elements lie in memory is not the user's concern.

    Parameters
    ----------
    obj : array_like
    dtype : optional; the type of the elements

    Returns
    -------
    Array with at least one axis

    Examples
    --------
    >>> import linnet as ln
    >>> ln.ascontiguousarray(3.0).shape
    (1,)
    """
    return array(obj, dtype, copy=None, ndmin=1)


@named_as(np.asfortranarray)
def asfortranarray(obj: Any, dtype: Any = None) -> Array:
    """The same as `asarray`: how elements lie in memory is not the user's concern.

    Parameters
    ----------
    obj : array_like
    dtype : optional; the type of the elements

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.asfortranarray([[1, 2], [3, 4]]).compute()
    array([[1, 2],
           [3, 4]])
    """
    return asarray(obj, dtype)


@named_as(np.asarray_chkfinite)
def asarray_chkfinite(obj: Any, dtype: Any = None, order: Any = None) -> Array:
    """The array, computed to make sure that it holds neither NaN nor infinity.

    Parameters
    ----------
    obj : array_like
    dtype : optional; the type of the elements
    order : without meaning here; how elements lie in memory is not the user's concern

    Returns
    -------
    Array; numbers that are not finite raise `ValueError`

    Examples
    --------
    >>> import linnet as ln
    >>> ln.asarray_chkfinite([1.0, 2.0]).compute()
    array([1., 2.])
    """
    result = asarray(obj, dtype)
    if result.dtype.kind in "fc" and not bool(NUMPY[np.all](apply(np.isfinite, result))):
        raise ValueError("array must not contain infs or NaNs")
    return result


@named_as(np.require)
def require(obj: Any, dtype: Any = None, requirements: Any = None) -> Array:
    """The same as `asarray`: how elements lie in memory is not the user's concern.

    Parameters
    ----------
    obj : array_like
    dtype : optional; the type of the elements
    requirements : without meaning here

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.require([1, 2], dtype=float).compute()
    array([1., 2.])
    """
    return asarray(obj, dtype)


def from_dlpack(x: Any, /, *, device: Any = None, copy: Any = None, chunks: Any = None) -> Array:
    """An array that shares the memory of another library's.

    Parameters
    ----------
    x : array of a library that knows DLPack
    device : optional; "cpu" is the only one
    copy : bool, optional; True: always copy
    chunks : optional; length of the tiles

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> import numpy as np
    >>> ln.from_dlpack(np.array([1.0, 2.0])).compute()
    array([1., 2.])
    """
    check_device(device)
    if isinstance(x, ArrayBase):
        return asarray(x, copy=copy, chunks=chunks)
    data = np.from_dlpack(x)
    return asarray(data.copy() if copy else data, chunks=chunks)


def frombuffer(
    buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0, *, chunks: Any = None
) -> Array:
    r"""The bytes of a buffer as an array; memory is shared.

    Parameters
    ----------
    buffer : bytes, or another object with a buffer
    dtype : optional; the type of the elements
    count : int; how many elements; -1: all
    offset : int; how many bytes are left out before
    chunks : optional; length of the tiles

    Returns
    -------
    Array with one axis

    Examples
    --------
    >>> import linnet as ln
    >>> ln.frombuffer(b"\x01\x02", dtype="u1").compute()
    array([1, 2], dtype=uint8)
    """
    return asarray(np.frombuffer(buffer, dtype, count, offset), chunks=chunks)


@named_as(np.fromiter)
def fromiter(iterable: Any, dtype: Any, count: int = -1, *, chunks: Any = None) -> Array:
    """An array of what an iterator gives, one after another; it lies in memory.

    Parameters
    ----------
    iterable : gives numbers
    dtype : the type of the elements
    count : int; how many; -1: all
    chunks : optional; length of the tiles

    Returns
    -------
    Array with one axis

    Examples
    --------
    >>> import linnet as ln
    >>> ln.fromiter(range(3), int).compute()
    array([0, 1, 2])
    """
    return asarray(np.fromiter(iterable, dtype, count), chunks=chunks)


@traceable
def copy(a: Any, order: Any = "K", subok: bool = False) -> Array:
    """An array that shares nothing with another one.

    Parameters
    ----------
    a : array_like
    order : without meaning here; how elements lie in memory is not the user's concern
    subok : without meaning here; there are no subclasses

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> x = ln.asarray([1, 2])
    >>> y = ln.copy(x)
    >>> y[0] = 9
    >>> x.compute()
    array([1, 2])
    """
    return asarray(a, copy=True)


# ---- of one value


__all__ = [
    "array",
    "asanyarray",
    "asarray",
    "asarray_chkfinite",
    "ascontiguousarray",
    "asfortranarray",
    "copy",
    "from_dlpack",
    "frombuffer",
    "fromiter",
    "require",
]
for _name in __all__:
    if hasattr(np, _name):
        NUMPY[getattr(np, _name)] = globals()[_name]

METHODS: dict[str, Any] = {}
