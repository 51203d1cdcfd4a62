"""Which functions may run at any time.

Three kinds are known: those declared with `@ln.pure`, those listed in `pure_names`, and Python functions
whose source shows no effect. The last are pure on plain values only (see `plain`), and as long as the names
they read mean what they meant when they were read; both are looked at again at every call.
"""

from __future__ import annotations

import builtins
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CellType, FunctionType, ModuleType
from typing import Any, TypeVar

from linnet.errors import InputError
from linnet.futures import pure_names
from linnet.futures.plain import ATOMS, INERT, is_plain
from linnet.futures.reading import read
from linnet.futures.source import SourceError, source_of

F = TypeVar("F", bound=Callable[..., Any])

ORDERED, DECLARED, ANALYSED, NUMPY, MATH, BUILTIN = range(6)
"""Kinds of functions: not known to be pure, declared to be, shown to be by the source, and listed ones."""


class Parallel:
    """What `ln.parallel` makes; here only to be recognised."""

    function: FunctionType
    """The plain function."""

    def run_inside(self, *args: Any, **keywords: Any) -> Any:
        """Called by the worker that runs a task for it."""
        raise AssertionError


_declared: dict[int, Any] = {}
"""Callables that cannot hold a mark, by identity."""


def pure(f: F) -> F:
    """Say that a function may run at any time.

    Parallel functions then run calls of it side by side, in any order. It must depend on its arguments
    alone, change nothing that others see, and return a value: an object whose operators, items and attributes
    can be read without any effect, and whose arithmetic gives new objects. Reading files that nobody writes
    meanwhile is fine; drawing from a shared random generator is not.

    Parameters
    ----------
    f : callable
        The function.

    Returns
    -------
    callable
        The same function.

    Examples
    --------
    >>> @pure
    ... def load(station):
    ...     return len(station)
    >>> is_declared(load)
    True
    """
    if not callable(f):
        raise InputError(f"pure marks a function, and was given a {type(f).__name__}: {f!r}")
    try:
        f.__linnet_pure__ = True  # type: ignore[attr-defined]
    except (AttributeError, TypeError):
        _declared[id(f)] = f
    return f


def is_declared(f: Any) -> bool:
    """Whether somebody said that it is pure."""
    return "__linnet_pure__" in getattr(f, "__dict__", ()) or id(f) in _declared


@dataclass(slots=True)
class Verdict:
    """What is known of a function from its source."""

    reason: str = ""
    """Why it is not known to be pure; empty: it is."""
    reads: list[tuple[Any, str, Any]] = field(default_factory=list[tuple[Any, str, Any]])
    """Where names are looked up that it reads (a dict, or a cell), and what was there."""

    def holds(self) -> bool:
        """Whether the names still mean the same."""
        for place, name, value in self.reads:
            if type(place) is CellType:
                try:
                    if place.cell_contents is not value:
                        return False
                except ValueError:
                    return False
            elif place.get(name, MISSING) is not value:
                return False
        return True


MISSING: Any = object()
_verdicts: weakref.WeakKeyDictionary[FunctionType, Verdict] = weakref.WeakKeyDictionary()
_busy: set[FunctionType] = set()
_guessed: dict[FunctionType, Verdict] = {}
"""Verdicts that rest on what is being judged now."""
_lock = threading.RLock()


def kind_of(f: Any) -> int:
    """Which kind a callable is of."""
    if isinstance(f, Parallel):
        f = f.function
    if type(f) is FunctionType:
        if "__linnet_pure__" in f.__dict__:
            return DECLARED
        return ANALYSED if verdict(f).reason == "" else ORDERED
    name = id(f)
    if name in pure_names.NUMPY:
        return NUMPY
    if name in pure_names.MATH:
        return MATH
    if name in pure_names.BUILTINS:
        return BUILTIN
    if f is pure_names.SLEEP or is_declared(f):
        return DECLARED
    return ORDERED


def verdict(f: FunctionType) -> Verdict:
    """What the source of a function shows; kept until a name that it reads means something else."""
    known = _verdicts.get(f)
    if known is not None and known.holds():
        return known
    with _lock:
        if f in _busy:
            return Verdict()  # it calls itself: whether it is pure is decided by the rest
        if f in _guessed:
            return _guessed[f]
        _busy.add(f)
        try:
            made = _judged(f)
        finally:
            _busy.discard(f)
        if _busy:  # it may rest on a guess about one of these
            _guessed[f] = made
        else:
            _guessed.clear()
            _verdicts[f] = made
        return made


def _judged(f: FunctionType) -> Verdict:
    if any(not is_plain(each) for each in (*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values())):
        return Verdict("a default of its parameters is no plain value")
    try:
        source = source_of(f)
    except SourceError as error:
        return Verdict(str(error), [])
    names = Names(f)
    reason = read(source.tree, names)
    return Verdict(reason, names.reads)


class Names:
    """What the names mean that a function has from outside."""

    def __init__(self, f: FunctionType) -> None:
        self.reads: list[tuple[Any, str, Any]] = []
        self._globals = f.__globals__
        self._cells = dict(zip(f.__code__.co_freevars, f.__closure__ or (), strict=True))

    def meaning(self, name: str) -> Any:
        """The object behind a name; `MISSING` if there is none."""
        if name in self._cells:
            try:
                value = self._cells[name].cell_contents
            except ValueError:
                value = MISSING
            self.reads.append((self._cells[name], name, value))
            return value
        value = self._globals.get(name, MISSING)
        self.reads.append((self._globals, name, value))
        return getattr(builtins, name, MISSING) if value is MISSING else value

    def attribute(self, value: Any, name: str) -> Any:
        """What a module holds under a name."""
        if not isinstance(value, ModuleType):
            return MISSING
        found = vars(value).get(name, MISSING)
        if found is not MISSING:
            self.reads.append((vars(value), name, found))
        return found

    def is_missing(self, value: Any) -> bool:
        """Whether a name means nothing that is known."""
        return value is MISSING

    def may_call(self, value: Any) -> bool:
        """Whether calling this has no effect."""
        if isinstance(value, type) and issubclass(value, BaseException):
            return type(value.__init__) is type(object.__init__) and type(value.__new__) is type(
                object.__new__
            )
        found = kind_of(value)
        if found == ANALYSED:
            plain: Any = value.function if isinstance(value, Parallel) else value
            self.reads += verdict(plain).reads
        return found != ORDERED

    def may_read(self, value: Any) -> bool:
        """Whether this may be read, and used with operators."""
        return type(value) in ATOMS or is_plain(value) or isinstance(value, Parallel)

    def is_inert(self, value: Any) -> bool:
        """Whether this is a class, a function or a module, whose attributes are not looked at."""
        return isinstance(value, type) or type(value) in INERT

    def may_write(self, value: Any, positional: int, keywords: list[str | None]) -> bool:
        """Whether a call of NumPy's function may write into an array that it is given."""
        return pure_names.may_write(value, positional, keywords)
