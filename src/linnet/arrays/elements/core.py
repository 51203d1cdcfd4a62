"""What every chapter needs: arrays as nodes, nodes as arrays, and the straight path for small ones.

A chapter's function is written for arrays in many tiles. `chunked` puts the other case before
it: where all arrays are small and in memory, NumPy's own function gives the result at once.
It also tells NumPy which of our functions stands for which of its own.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from linnet.arrays.expression import chunking
from linnet.arrays.expression.argument_names import Names
from linnet.arrays.expression.builders import recut
from linnet.arrays.expression.nodes import Node, Source
from linnet.arrays.expression.operands import as_read, copied, is_fixed
from linnet.arrays.expression.traced import Traced
from linnet.errors import InputError
from linnet.session import current_engine

NUMPY: dict[Any, Callable[..., Any]] = {}
"""Our function for a function of NumPy's: what `np.f(x)` runs."""

FOREIGN: dict[str, Callable[[Any, Any], Any]] = {}
"""By the package of an object's type: what makes an array of it, given the object and `chunks=`; None if
it is no array. Rooms above put these in."""

LAZY = ("cubed", "dask")
"""Packages whose arrays become operands without being computed."""

SCALARS = (bool, int, float, complex)
NUMBERS = frozenset([*SCALARS, np.bool, *(np.dtype(code).type for code in "bhilqBHILQefdgFDG")])
"""Types of numbers: Python's, and NumPy's."""
F = TypeVar("F", bound=Callable[..., Any])
_new, _ndarray = object.__new__, np.ndarray


def is_future(obj: Any) -> bool:
    """Whether it is a future of ours; there is none before the module of futures was imported."""
    futures = sys.modules.get("linnet.futures.future")
    return futures is not None and isinstance(obj, futures.Future)


class ArrayBase:
    """A node in the user's hands. `x[i] = v` gives it another node: nodes themselves never change."""

    __slots__ = ("__weakref__", "_fresh", "_node")
    _public: ClassVar[type[Any]]
    """The class of arrays that users see."""

    def __init_subclass__(cls, register: bool = True) -> None:
        if register:
            ArrayBase._public = cls

    def __init__(self, node: Node) -> None:
        self._node = node

    @property
    def __node__(self) -> Node:
        """What it is made of. Whoever has seen it may hold on to its tiles: they are not fresh any more."""
        self._fresh = False
        return self._node


def wrap(node: Node) -> Any:
    """The array users see of a node."""
    return ArrayBase._public(node)


def wrapped(data: NDArray[Any] | np.generic) -> Any:
    """An array around NumPy's result, in one tile if it is longer than small ones are."""
    # Without `__init__`: it takes as long as NumPy does for a few numbers.
    node: Any = _new(Source)
    node.data = array = data if type(data) is _ndarray else np.asarray(data)
    node._layout = None if array.nbytes <= chunking.SMALL else chunking.whole(array.shape)
    made = _new(ArrayBase._public)
    made._node = node
    return made


def is_small(node: Node, times: int = 1) -> bool:
    """Whether NumPy itself works on it: in memory, in one tile, and short, or so many times longer.

    Longer ones only where memory has no limit, and no other machine would work on them.
    """
    if type(node) is not Source:
        return False
    size = node.data.nbytes
    if size > chunking.SMALL and not (size <= chunking.SMALL * times and at_hand()):
        return False
    return node.in_one_tile


def at_hand() -> bool:
    """Whether arrays of this process are computed in this process, and memory has no limit."""
    engine = current_engine()
    return engine.shares_memory and engine.memory is None


def as_node(obj: Any, dtype: Any = None) -> Node:
    """The node of an array, or of anything NumPy can make one of, as it is now."""
    if isinstance(obj, ArrayBase):
        return obj.__node__
    if is_future(obj):
        return as_node(obj.result(), dtype)
    if (lazy := from_lazy(obj)) is not None:
        return lazy.__node__
    if is_masked(obj):
        raise TypeError(
            "arrays with masked elements are not supported; fill them (x.filled(value)), or give ~x.mask as "
            "where= to a function that takes it"
        )
    return Source(checked(as_read(obj, dtype)))


def from_lazy(obj: Any) -> Any:
    """Our array of one of another lazy library's, which is not computed for it; None of anything else."""
    package = type(obj).__module__.partition(".")[0]
    return FOREIGN[package](obj, None) if package in LAZY and package in FOREIGN else None


def is_masked(obj: Any) -> bool:
    """Whether it is one of NumPy's masked arrays, and some element of it is masked."""
    return type(obj) is not np.ndarray and isinstance(obj, np.ma.MaskedArray) and bool(np.ma.is_masked(obj))


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


def _plain(item: Any, times: int, given: list[NDArray[Any]]) -> Any:
    """An argument as NumPy takes it; arrays of NumPy's that may change are noted."""
    kind = type(item)
    if kind in NUMBERS:
        return item
    if isinstance(item, ArrayBase):
        node = item._node
        if not is_small(node, times):
            raise _Large
        return cast("Source", node).data
    if kind is tuple or kind is list:
        return kind([_plain(each, times, given) for each in item])
    if isinstance(item, np.ndarray):
        long = item.nbytes > chunking.SMALL and not (item.nbytes <= chunking.SMALL * times and at_hand())
        if long or is_masked(item):
            raise _Large
        if not is_fixed(item):
            given.append(item)
    elif kind.__module__.partition(".")[0] in LAZY:
        raise _Large
    return item


def direct(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], times: int = 1
) -> Any:
    """NumPy's result on small arrays as arrays again; NotImplemented if some array is not small.

    Arrays `times` as long as small ones are taken as well.
    """
    given: list[NDArray[Any]] = []
    try:
        args = tuple([_plain(each, times, given) for each in args])
        if kwargs:
            kwargs = {name: _plain(value, times, given) for name, value in kwargs.items()}
    except _Large:
        return NotImplemented
    result = function(*args, **kwargs)
    return wrapped_all(result, given) if given or type(result) is not _ndarray else wrapped(result)


def wrapped_all(result: Any, given: Sequence[NDArray[Any]] = ()) -> Any:
    """NumPy's results as arrays: one, or several in the same tuple or list.

    What lies in memory of an array that was given is copied.
    """
    if isinstance(result, np.ndarray | np.generic):
        if given and any(np.may_share_memory(result, each) for each in given):
            result = copied(np.asarray(result))
        return wrapped(result)
    if isinstance(result, tuple):
        parts = [wrapped_all(part, given) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    if isinstance(result, list):
        return [wrapped_all(part, given) for part in result]
    return result


def chunked(*functions: Any, small: Callable[..., Any] | None = None, times: int = 1) -> Callable[[F], F]:
    """Mark a function on arrays in tiles: it stands for these functions of NumPy's.

    `small` computes small arrays (default: the first function of NumPy's); it takes the same
    arguments. Without any, only the tiled way exists. Arrays `times` as long count as small.
    """

    def mark(function: F) -> F:
        straight = small or (functions[0] if functions else None)
        names = Names(function, functions[0] if functions else straight)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if kwargs:
                args, kwargs = names.placed(args, kwargs)
            try:
                result = NotImplemented if straight is None else direct(straight, args, kwargs, times)
                return function(*args, **kwargs) if result is NotImplemented else result
            except Traced as found:
                traced = found
            return traced.apply(call, args, kwargs)

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


def listed(given: Any) -> tuple[Any, ...]:
    """One integer, or several in anything that has them, as a tuple; NumPy's arrays of integers too.

    >>> listed(3), listed(np.array([0, 1]))
    ((3,), (np.int64(0), np.int64(1)))
    """
    one = hasattr(given, "__index__") and not getattr(given, "ndim", 0)
    return (given,) if one or not hasattr(given, "__iter__") else tuple(given)


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes counted from the front, ascending; None: all of them."""
    if axis is None:
        return tuple(range(ndim))
    found = [axis_of(each, ndim) for each in listed(axis)]
    if len(set(found)) != len(found):
        raise ValueError(f"axis {axis}: the same axis is named twice")
    return tuple(sorted(found))


def names_nothing(axis: Any, ndim: int) -> bool:
    """Whether the first or last axis is named of an array that has none, as NumPy's folds let one do."""
    return not ndim and isinstance(axis, int | np.integer) and axis in (0, -1)


def recut_as(node: Node, chunks: Any) -> Node:
    """A node cut as `chunks=` says; None: as it is. Axes that a dict does not name stay as they are."""
    if chunks is None:
        return node
    if isinstance(chunks, dict) and not (isinstance(node, Source) and node._layout is None):
        named = {axis % node.ndim if -node.ndim <= axis < node.ndim else axis for axis in chunks}
        cut = chunking.sizes(node.layout)
        chunks = chunks | {axis: cut[axis] for axis in range(node.ndim) if axis not in named}
    return recut(node, chunking.normalized(chunks, node.shape, node.dtype))


def refuse_keywords(function: str, **given: Any) -> None:
    """Refuse arguments of NumPy's that have no meaning for lazy arrays, unless they have their defaults."""
    for name, (value, default) in given.items():
        if value is not default and value != default:
            raise InputError(f"{function} does not take {name}={value!r} for arrays in tiles; leave it out")
