"""What every chapter needs: arrays as nodes, nodes as arrays, and the straight path for small ones.

A chapter's function is written for arrays in many tiles. `chunked` puts the other case before
it: where all arrays are small and in memory, NumPy's own function gives the result at once.
It also tells NumPy which of our functions stands for which of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from linnet.arrays import chunking
from linnet.arrays.building import recut
from linnet.arrays.expression import Node, Source
from linnet.errors import InputError

NUMPY: dict[Any, Callable[..., Any]] = {}
"""Our function for a function of NumPy's: what `np.f(x)` runs."""

FOREIGN: dict[str, Callable[[Any, Any], Any]] = {}
"""By the package of an object's type: what makes an array of it, given the object and `chunks=`; None if
it is no array. Rooms above put these in."""

SCALARS = (bool, int, float, complex)
F = TypeVar("F", bound=Callable[..., Any])


class ArrayBase:
    """A node in the user's hands. `x[i] = v` gives it another node: nodes themselves never change."""

    __slots__ = ("__weakref__", "_fresh", "_node")
    public: ClassVar[type[Any]]
    """The class of arrays that users see."""

    def __init_subclass__(cls) -> None:
        ArrayBase.public = cls

    def __init__(self, node: Node) -> None:
        self._node = node
        self._fresh = False
        """Whether the data of its source was copied for it and shown to nobody since."""

    @property
    def node(self) -> Node:
        """What it is made of. Whoever has seen it may hold on to its data."""
        self._fresh = False
        return self._node


def wrap(node: Node) -> Any:
    """The array users see of a node."""
    return ArrayBase.public(node)


def wrapped(data: NDArray[Any] | np.generic) -> Any:
    """An array around NumPy's result."""
    return ArrayBase.public(Source(np.asarray(data)))


def is_small(node: Node) -> bool:
    """Whether NumPy itself works on it: in memory, in one tile, and short."""
    return (
        type(node) is Source
        and node.data.nbytes <= chunking.SMALL
        and (node._layout is None or max(node._layout.grid, default=1) == 1)
    )


def as_node(obj: Any, dtype: Any = None) -> Node:
    """The node of an array, or of anything NumPy can make one of."""
    if isinstance(obj, ArrayBase):
        return obj.node
    return Source(checked(np.asarray(obj, dtype)))


def checked(data: NDArray[Any]) -> NDArray[Any]:
    """Refuse dtypes we do not work with."""
    if data.dtype.kind in "OVSUT":
        what = {"O": "objects", "V": "structures", "S": "bytes", "U": "text", "T": "text"}[data.dtype.kind]
        raise TypeError(
            f"arrays of {what} (dtype {data.dtype}) are not supported; "
            "use booleans, integers, floats, complex numbers, datetime64 or timedelta64"
        )
    return data


class _Large(Exception):
    """An array among the arguments is not small."""


def _plain(item: Any) -> Any:
    """An argument as NumPy takes it."""
    if isinstance(item, ArrayBase):
        node = item.node  # NumPy may give a view of its data back
        if not is_small(node):
            raise _Large
        return cast("Source", node).data
    kind = type(item)
    if kind is tuple or kind is list:
        return kind(map(_plain, item))
    if kind is np.ndarray and item.nbytes > chunking.SMALL:
        raise _Large
    return item


def direct(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """NumPy's result on small arrays as arrays again; NotImplemented if some array is not small."""
    try:
        args = tuple(map(_plain, args))
        if kwargs:
            kwargs = {name: _plain(value) for name, value in kwargs.items()}
    except _Large:
        return NotImplemented
    return wrapped_all(function(*args, **kwargs))


def wrapped_all(result: Any) -> Any:
    """NumPy's results as arrays: one, or several in the same tuple or list."""
    if isinstance(result, np.ndarray | np.generic):
        return wrapped(result)
    if isinstance(result, tuple):
        parts = [wrapped_all(part) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    if isinstance(result, list):
        return [wrapped_all(part) for part in result]
    return result


def chunked(*functions: Any, small: Callable[..., Any] | None = None) -> Callable[[F], F]:
    """Mark a function on arrays in tiles: it stands for these functions of NumPy's.

    `small` computes small arrays (default: the first function of NumPy's); it takes the same
    arguments. Without any, only the tiled way exists.
    """

    def mark(function: F) -> F:
        straight = small or (functions[0] if functions else None)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            result = NotImplemented if straight is None else direct(straight, args, kwargs)
            return function(*args, **kwargs) if result is NotImplemented else result

        for each in functions:
            NUMPY[each] = call
        return cast("F", call)

    return mark


def axis_of(axis: int, ndim: int, name: str = "axis") -> int:
    """An axis counted from the front; NumPy's error if there is none such."""
    index = axis.__index__() if hasattr(axis, "__index__") else None
    if index is None:
        raise TypeError(f"{name} must be an integer, not {type(axis).__name__}")
    if not -ndim <= index < ndim:
        raise np.exceptions.AxisError(index, ndim)
    return index % ndim


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes counted from the front, ascending; None: all of them."""
    if axis is None:
        return tuple(range(ndim))
    given = tuple(axis) if isinstance(axis, tuple | list) else (axis,)
    found = [axis_of(each, ndim) for each in given]
    if len(set(found)) != len(found):
        raise ValueError(f"axis {axis}: the same axis is named twice")
    return tuple(sorted(found))


def recut_as(node: Node, chunks: Any) -> Node:
    """A node cut as `chunks=` says; None: as it is."""
    if chunks is None:
        return node
    return recut(node, chunking.normalized(chunks, node.shape, node.dtype))


def refuse_keywords(function: str, **given: Any) -> None:
    """Refuse arguments of NumPy's that have no meaning for lazy arrays, unless they have their defaults."""
    for name, (value, default) in given.items():
        if value is not default and value != default:
            raise InputError(f"{function} does not take {name}={value!r} for arrays in tiles; leave it out")
