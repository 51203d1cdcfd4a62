"""What tasks of parallel functions call, and questions about values."""

from __future__ import annotations

from typing import Any

import numpy as np

from linnet.errors import ParallelError
from linnet.futures.plain import Survey, is_iterator, is_plain
from linnet.futures.scheduler import Task


class Bound:
    """A method of an object that is not plain, looked up before its arguments are evaluated."""

    __slots__ = ("method",)

    def __init__(self, method: Any) -> None:
        self.method: Any = method


class Pairs:
    """What `enumerate` and `zip` give of plain values; tuples with tasks in them become tasks."""

    def __init__(self, owner: Any, elements: Any, line: int) -> None:
        self._owner, self._elements, self._line = owner, elements, line

    def __iter__(self) -> Pairs:
        return self

    def __next__(self) -> Any:
        element = next(self._elements)
        try:
            return self._owner.tuple(self._line, element)
        except StopIteration as error:  # of a call before: it must not end the loop
            raise RuntimeError("a call raised StopIteration") from error


class Guard:
    """Looks at what calls made before a function is called with it."""

    __slots__ = ("f", "line")

    def __init__(self, f: Any, line: int) -> None:
        self.f: Any = f
        self.line: int = line

    def __call__(self, task: Task) -> None:
        found = Survey()
        found.look(task.args)
        found.look((task.keywords or {}).values())
        if found.known and found.plain:
            return
        name = getattr(self.f, "__name__", repr(self.f))
        kinds = sorted(
            {
                type(each.value).__name__
                for each in (*task.args, *(task.keywords or {}).values())
                if type(each) is Task and not is_plain(each.value)
            }
        )
        raise ParallelError(
            f"line {self.line}: {name} was given the result of a call, of type {', '.join(kinds)}, "
            f"before it was known; what {name} does with it is not known to have no effect. "
            f"If it has none, say so: put @ln.pure above the definition of {name}."
        )


def reads_plainly(x: Any, name: str) -> bool:
    """Whether reading an attribute runs nothing of the user's: it is the object's, or a method."""
    kind = type(x)
    if isinstance(x, type):
        return (type(x) is type and not hasattr(type(_static(x, name)), "__get__")) or callable(
            _static(x, name)
        )
    if kind.__getattribute__ is not object.__getattribute__:
        return kind is np.ndarray
    found = _static(kind, name)
    if found is not None and hasattr(type(found), "__set__"):
        return type(found).__name__ in ("member_descriptor", "getset_descriptor")
    if name in getattr(x, "__dict__", ()):
        return True
    return found is not None and (not hasattr(type(found), "__get__") or type(found).__name__ == "function")


def _static(kind: type, name: str) -> Any:
    for each in kind.__mro__:
        if name in each.__dict__:
            return each.__dict__[name]
    return None


def has_functions(args: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    """Whether something that is called may be among arguments."""
    for each in (*args, *keywords.values()):
        if type(each) is not Task and ((callable(each) and not isinstance(each, type)) or is_iterator(each)):
            return True
    return False


def method_of(x: Any, name: str, /, *args: Any, **keywords: Any) -> Any:
    return getattr(x, name)(*args, **keywords)


def is_iterable(x: Any) -> bool:
    """Whether Python would begin to loop over it."""
    return hasattr(type(x), "__iter__") or hasattr(type(x), "__getitem__")


class Named:
    """Keywords of a call in which `**` stands; Python tells what is wrong with them as of the function."""

    def __init__(self, f: Any) -> None:
        self.__module__: Any = getattr(f, "__module__", None)
        if hasattr(f, "__qualname__"):
            self.__qualname__ = f.__qualname__
        self._text = str(f)

    def __call__(self, /, **keywords: Any) -> dict[str, Any]:
        return keywords

    def __str__(self) -> str:
        return self._text


def packed(*parts: Any) -> tuple[Any, ...]:
    return parts


def unpacked_into(x: Any, count: int) -> tuple[Any, ...]:
    """So many elements, or the error that Python raises."""
    if not is_iterable(x):
        raise TypeError(f"cannot unpack non-iterable {type(x).__name__} object")
    elements = tuple(x)
    if len(elements) < count:
        raise ValueError(f"not enough values to unpack (expected {count}, got {len(elements)})")
    if len(elements) > count:
        raise ValueError(f"too many values to unpack (expected {count})")
    return elements


def formatted(x: Any, conversion: str, form: str) -> str:
    if conversion:
        x = {"s": str, "r": repr, "a": ascii}[conversion](x)
    return format(x, form)


def joined(*parts: str) -> str:
    return "".join(parts)
