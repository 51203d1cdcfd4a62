"""Frozen dataclasses that are quick to define.

`dataclasses.dataclass(frozen=True, slots=True)` compiles six methods for each class, a millisecond of
processor time, and importing Linnet defines over a hundred such classes. `record` puts that off: a method is
compiled when it is first called. From then on the class has the very functions that `dataclass` makes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field, FrozenInstanceError, dataclass, field, fields, make_dataclass
from functools import partial
from typing import Any, TypeVar, dataclass_transform, overload

T = TypeVar("T")


@overload
def record(cls: type[T], /) -> type[T]: ...
@overload
def record(cls: None = None, /, *, eq: bool = True) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[Any] | None = None, /, *, eq: bool = True) -> Any:
    """A class as `dataclass(frozen=True, slots=True)` makes it; `eq=False` leaves it equal to itself alone.

    >>> @record
    ... class Point:
    ...     "A place."
    ...
    ...     x: int
    ...     y: int = 0
    >>> Point(1)
    Point(x=1, y=0)
    >>> Point(1) == Point(1, 0), len({Point(1), Point(1, 0)})
    (True, 1)
    >>> Point(1).x = 2
    Traceback (most recent call last):
    dataclasses.FrozenInstanceError: cannot assign to field 'x'
    """
    if cls is None:
        return partial(_recorded, eq=eq)
    return _recorded(cls, eq)


def _recorded(cls: type[Any], eq: bool) -> type[Any]:
    if cls.__doc__ is None:
        cls.__doc__ = cls.__name__  # else `dataclass` writes a signature, which takes as long as all the rest
    own = vars(cls)
    compared = ("__eq__", "__hash__") if eq else ()
    methods = [name for name in ("__init__", "__repr__", *compared) if own.get(name) is None]
    shared = {name: function for name, function in _SHARED.items() if name not in own}
    defined = dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    for name in methods:
        setattr(defined, name, _compiled_later(defined, name, methods, eq))
    for name, function in shared.items():
        setattr(defined, name, function)
    return defined


def _compiled_later(cls: type[Any], name: str, methods: list[str], eq: bool) -> Callable[..., Any]:
    """A method that has the class get its real methods when it is first called."""

    def method(self: Any, *args: Any, **keywords: Any) -> Any:
        namespace = {"__post_init__": cls.__post_init__} if hasattr(cls, "__post_init__") else {}
        same = [(each.name, each.type, _as_declared(each)) for each in fields(cls)]
        twin = make_dataclass(cls.__name__, same, namespace=namespace, frozen=True, eq=eq)
        for each in methods:
            setattr(cls, each, vars(twin)[each])
        return getattr(cls, name)(self, *args, **keywords)

    return method


def _as_declared(declared: Field[Any]) -> Any:
    """A field for another class: those of a class know which one they belong to."""
    options: dict[str, Any] = {
        name: getattr(declared, name)
        for name in ("default", "default_factory", "init", "repr", "hash", "compare", "kw_only")
    }
    return field(**options)


def _refuse_setting(self: Any, name: str, value: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deleting(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for each, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)


_SHARED = {
    "__setattr__": _refuse_setting,
    "__delattr__": _refuse_deleting,
    "__getstate__": _state,
    "__setstate__": _set_state,
}
"""Methods that are the same for all: nothing is assigned to, and pickles hold the fields' values."""
