"""Arrays of one value: `full`, `zeros`, `ones`, `empty`, and those shaped like another array."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import (
    NUMPY,
    ArrayBase,
    as_node,
    checked,
    wrap,
)
from linnet.arrays.elements.elementwise import cast, spread
from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import filled, recut
from linnet.arrays.expression.traced import traceable

if TYPE_CHECKING:
    from linnet.arrays.array import Array
from linnet.arrays.elements.creation import check_device, made, shape_of


@traceable
def full(
    shape: Any,
    fill_value: Any,
    dtype: Any = None,
    order: Any = "C",
    *,
    device: Any = None,
    chunks: Any = "auto",
) -> Array:
    """One value everywhere; a value with axes is broadcast.

    Parameters
    ----------
    shape : int or tuple of int
    fill_value : number, or array_like that is broadcast
    dtype : optional; the type of the elements
    order : without meaning here; how elements lie in memory is not the user's concern
    device : optional; "cpu" is the only one
    chunks : length of the tiles: a number, one for each axis, or "auto"

    Returns
    -------
    Array

    Examples
    --------
    >>> full((2, 3), 7).compute()
    array([[7, 7, 7],
           [7, 7, 7]])
    """
    check_device(device)
    lengths = shape_of(shape)
    if isinstance(fill_value, ArrayBase) or np.ndim(fill_value):
        value = as_node(fill_value)
        kind = value.dtype if dtype is None else np.dtype(dtype)
        layout = chunking.normalized(chunks, lengths, kind)
        return wrap(recut(spread(cast(value, kind), lengths, layout), layout))
    number = np.empty((), np.asarray(fill_value).dtype if dtype is None else dtype)
    np.copyto(number, fill_value, casting="unsafe")
    return made(
        lengths,
        checked(number).dtype,
        chunks,
        lambda: np.full(lengths, number, number.dtype),
        lambda layout: filled(lengths, number, number.dtype, layout),
    )


def zeros(
    shape: Any, dtype: Any = float, order: Any = "C", *, device: Any = None, chunks: Any = "auto"
) -> Array:
    """Zeros everywhere.

    Parameters
    ----------
    shape : int or tuple of int
    dtype : optional; the type of the elements
    order : without meaning here; how elements lie in memory is not the user's concern
    device : optional; "cpu" is the only one
    chunks : length of the tiles: a number, one for each axis, or "auto"

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.zeros(2).compute()
    array([0., 0.])
    """
    return full(shape, np.zeros((), float if dtype is None else dtype), device=device, chunks=chunks)


def ones(
    shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, chunks: Any = "auto"
) -> Array:
    """Ones everywhere.

    Parameters
    ----------
    shape : int or tuple of int
    dtype : optional; the type of the elements
    order : without meaning here; how elements lie in memory is not the user's concern
    device : optional; "cpu" is the only one
    chunks : length of the tiles: a number, one for each axis, or "auto"

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.ones(2).compute()
    array([1., 1.])
    """
    return full(shape, np.ones((), dtype), device=device, chunks=chunks)


def empty(
    shape: Any, dtype: Any = float, order: Any = "C", *, device: Any = None, chunks: Any = "auto"
) -> Array:
    """The same as `zeros`: tiles are never shown before something is in them.

    Parameters
    ----------
    shape : int or tuple of int
    dtype : optional; the type of the elements
    order : without meaning here; how elements lie in memory is not the user's concern
    device : optional; "cpu" is the only one
    chunks : length of the tiles: a number, one for each axis, or "auto"

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.empty(2).compute()
    array([0., 0.])
    """
    return zeros(shape, dtype, device=device, chunks=chunks)


@traceable
def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
    chunks: Any = None,
) -> Array:
    """One value everywhere, in the shape, the dtype and the tiles of another array.

    Parameters
    ----------
    a : array_like
    fill_value : number, or array_like that is broadcast
    dtype : optional; the type of the elements
    order : without meaning here; how elements lie in memory is not the user's concern
    subok : without meaning here; there are no subclasses
    shape : int or tuple of int, optional; another shape
    device : optional; "cpu" is the only one
    chunks : optional; other tiles

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.full_like([5, 6], 7).compute()
    array([7, 7])
    """
    like = as_node(a)
    lengths = like.shape if shape is None else shape_of(shape)
    kind = like.dtype if dtype is None else np.dtype(dtype)
    if chunks is None:
        chunks = chunking.sizes(like.layout) if lengths == like.shape and math.prod(like.grid) > 1 else "auto"
    return full(lengths, fill_value, kind, device=device, chunks=chunks)


@traceable
def zeros_like(
    a: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
    chunks: Any = None,
) -> Array:
    """Zeros in the shape, the dtype and the tiles of another array.

    Parameters
    ----------
    a : array_like
    dtype : optional; the type of the elements
    order : without meaning here; how elements lie in memory is not the user's concern
    subok : without meaning here; there are no subclasses
    shape : int or tuple of int, optional; another shape
    device : optional; "cpu" is the only one
    chunks : optional; other tiles

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.zeros_like([1, 2]).compute()
    array([0, 0])
    """
    zero = np.zeros((), as_node(a).dtype if dtype is None else dtype)
    return full_like(a, zero, dtype, shape=shape, device=device, chunks=chunks)


@traceable
def ones_like(
    a: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
    chunks: Any = None,
) -> Array:
    """Ones in the shape, the dtype and the tiles of another array.

    Parameters
    ----------
    a : array_like
    dtype : optional; the type of the elements
    order : without meaning here; how elements lie in memory is not the user's concern
    subok : without meaning here; there are no subclasses
    shape : int or tuple of int, optional; another shape
    device : optional; "cpu" is the only one
    chunks : optional; other tiles

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.ones_like([5, 6]).compute()
    array([1, 1])
    """
    return full_like(a, 1, dtype, shape=shape, device=device, chunks=chunks)


@traceable
def empty_like(
    prototype: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
    chunks: Any = None,
) -> Array:
    """The same as `zeros_like`: tiles are never shown before something is in them.

    Parameters
    ----------
    prototype : array_like
    dtype : optional; the type of the elements
    order : without meaning here; how elements lie in memory is not the user's concern
    subok : without meaning here; there are no subclasses
    shape : int or tuple of int, optional; another shape
    device : optional; "cpu" is the only one
    chunks : optional; other tiles

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.empty_like([1, 2]).compute()
    array([0, 0])
    """
    return zeros_like(prototype, dtype, shape=shape, device=device, chunks=chunks)


METHODS: dict[str, Any] = {}
__all__ = ["empty", "empty_like", "full", "full_like", "ones", "ones_like", "zeros", "zeros_like"]
for _name in __all__:
    if hasattr(np, _name):
        NUMPY[getattr(np, _name)] = globals()[_name]
