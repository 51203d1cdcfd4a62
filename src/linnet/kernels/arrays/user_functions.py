"""Functions of the user's on tiles: one kernel calls them all, by names that live while somebody holds them.

A function cannot travel in a program; its name can. `held` gives a function a name, a string that
also keeps the function: while the name is held by a node or a program, the kernel finds the function
under it, and when it is let go of, the function goes too.

A function that can be imported has its import name (`module:function`). Another process finds it under that
name if it was told to `allow` the module, never otherwise; other functions stay in their process.

What we put around a function of the user's is a `Wrapper`, never a closure: it is data with a function in it,
and so can be pickled where the function can.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import pickle
import sys
import threading
import types
from collections.abc import Callable, Iterable
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from linnet.errors import UnknownKernelError
from linnet.kernels.registry import kernel

Tile = NDArray[Any]


class Name(str):
    """The name of a function, and the function."""

    function: Callable[..., Any]

    def __reduce__(self) -> tuple[Any, ...]:
        return held, (self.function,)


@dataclasses.dataclass(frozen=True, eq=False)
class Wrapper:
    """A function with what goes around it; errors know it by the name of that function."""

    function: Callable[..., Any]

    def __getattr__(self, name: str) -> Any:
        if name in ("__name__", "__qualname__") and "function" in self.__dict__:
            return getattr(self.function, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")


_names: WeakValueDictionary[str, Name] = WeakValueDictionary()
_by_function: WeakValueDictionary[int, Name] = WeakValueDictionary()
_numbers = itertools.count()
_lock = threading.Lock()
_allowed: set[str] = set()


def held(function: Callable[..., Any]) -> Name:
    """A name for a function; the same one for the same function, as long as it is held.

    >>> name = held(len)
    >>> held(len) is name
    True
    """
    with _lock:
        known = _by_function.get(id(function))
        if known is not None:
            return known
        own = getattr(function, "__qualname__", type(function).__name__)  # what its errors are known by
        made = Name(import_name(function) or f"{own} #{next(_numbers)}")
        made.function = function
        _names[str(made)] = _by_function[id(function)] = made
        return made


def adopt(name: str, function: Callable[..., Any]) -> Name:
    """A function that an engine which ships code brought along, under the name it has elsewhere."""
    with _lock:
        made = Name(name)
        made.function = function
        _names[name] = made
        return made


def import_name(function: Callable[..., Any]) -> str | None:
    """The name another process can import a function by; None if it has none.

    >>> import math
    >>> import_name(math.sqrt), import_name(lambda x: x)
    ('math:sqrt', None)
    """
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if not module or module == "__main__" or not name.isidentifier():
        return None
    return f"{module}:{name}" if getattr(sys.modules.get(module), name, None) is function else None


def check_portable(function: Any) -> None:
    """Refuse to pickle a function, or what is made of one, that no other process could find by its name.

    >>> check_portable(functools.partial(len))
    >>> check_portable(functools.partial(lambda x: x))
    Traceback (most recent call last):
    _pickle.PicklingError: the function <lambda> (<doctest ...>, line 1) has no name that another ...
    """
    if isinstance(function, types.FunctionType):
        if not _is_importable(function):
            code = function.__code__
            raise pickle.PicklingError(
                f"the function {function.__qualname__} ({code.co_filename}, line {code.co_firstlineno}) has "
                "no name that another process could import it by, and arrays are pickled with the names of "
                "functions alone; define it with def at the top of a module, or compute() the array first"
            )
        return
    for each in _ingredients(function):
        check_portable(each)


def _is_importable(function: types.FunctionType) -> bool:
    found: Any = sys.modules.get(function.__module__)
    for name in function.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is function


def _ingredients(given: Any) -> Iterable[Any]:
    """What may hold a function in something that is called."""
    if isinstance(given, functools.partial):
        return (given.func, *given.args, *given.keywords.values())
    if isinstance(given, np.vectorize):
        return (given.pyfunc,)  # pyright: ignore[reportAttributeAccessIssue]
    if dataclasses.is_dataclass(given) and not isinstance(given, type):
        return tuple(getattr(given, field.name) for field in dataclasses.fields(given))
    if isinstance(given, tuple | list):
        return given
    return given.values() if isinstance(given, dict) else ()


def allow(module: str) -> None:
    """Let the functions of a module, which is imported, be called by programs from elsewhere."""
    _allowed.add(module)


def found_by_name(name: str) -> Callable[..., Any]:
    """The function of a name: one that is held here, or one of a module that was allowed."""
    held_here = _names.get(name)
    if held_here is not None:
        return held_here.function
    module, _, attribute = name.partition(":")
    if module in _allowed and attribute.isidentifier():
        function = getattr(sys.modules.get(module), attribute, None)
        if callable(function) and import_name(function) == name:
            return function
    raise UnknownKernelError(
        f"the function named {name!r} is not in this process; functions run elsewhere if they "
        "stand at the top of a module that workers have and allow"
    )


def _expected_shapes(*arguments: Any, rank: int, dtype: Any, **_: Any) -> Any:
    if isinstance(dtype, str):
        return tuple(arguments[len(arguments) - rank :])
    lengths = arguments[len(arguments) - rank * len(dtype) :]
    return [tuple(lengths[place : place + rank]) for place in range(0, len(lengths), rank)]


def _expected_dtypes(*_: Any, dtype: Any, **__: Any) -> Any:
    return np.dtype(dtype) if isinstance(dtype, str) else [np.dtype(each) for each in dtype]


@kernel("call", shape=_expected_shapes, dtype=_expected_dtypes)
def call(*arguments: Any, function: str, rank: int, dtype: str | tuple[str, ...]) -> Any:
    """A function of the user's on tiles; the last `rank` arguments are the lengths its result must have.

    With several dtypes the function returns so many arrays, and there are lengths for each.

    >>> double = held(lambda x: 2 * x)
    >>> call(np.arange(3), 3, function=double, rank=1, dtype="int64")
    array([0, 2, 4])
    """
    known = found_by_name(function)
    if isinstance(dtype, str):
        tiles, lengths = arguments[: len(arguments) - rank], arguments[len(arguments) - rank :]
        return _fitting(known, known(*tiles), tiles, lengths, dtype)
    count = len(dtype) * rank
    tiles, lengths = arguments[: len(arguments) - count], arguments[len(arguments) - count :]
    made = known(*tiles)
    return [
        _fitting(known, each, tiles, lengths[place * rank : (place + 1) * rank], kind)
        for place, (each, kind) in enumerate(zip(made, dtype, strict=True))
    ]


def _fitting(
    function: Callable[..., Any], made: Any, tiles: tuple[Any, ...], lengths: tuple[int, ...], dtype: str
) -> Tile:
    result = np.asarray(made)
    if result.shape != tuple(lengths):
        raise ValueError(
            f"{getattr(function, '__name__', 'the function')} returned shape {result.shape} for "
            f"tiles of shapes {[np.shape(tile) for tile in tiles]}; expected {tuple(lengths)}: "
            "say chunks= if it returns other shapes than it is given"
        )
    return result.astype(np.dtype(dtype), copy=False)
