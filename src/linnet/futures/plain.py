"""Plain values: those whose operators, items and methods are known to have no effect.

A function that is pure on plain values may do anything on others: `x + 1` calls what the class of x
says, and a loop over an iterator uses it up. So calls that are not declared pure run by themselves on plain
values only.
The types here are closed: what NumPy's functions and Python's operators make of them is plain again.
"""

from __future__ import annotations

import datetime
import decimal
import fractions
import pathlib
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from linnet.futures.scheduler import DONE, Task

ATOMS: set[type] = {
    int, float, complex, bool, str, bytes, type(None), type(...), type(NotImplemented), range, slice,
    decimal.Decimal, fractions.Fraction, pathlib.PurePosixPath, pathlib.PureWindowsPath,
    datetime.date, datetime.datetime, datetime.time, datetime.timedelta,
    *(kind for kind in np.sctypeDict.values() if kind is not np.object_),
}  # fmt: skip
"""Types of values that nothing can change."""

NUMBERS: frozenset[type] = frozenset({int, float, complex, bool, str, bytes, type(None)})
"""Those on which an operator is done at once."""

INERT: set[type] = {
    types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType, type, np.ufunc,
}  # fmt: skip
"""Values that do nothing unless they are called, and a pure function never calls what it is given."""

VIEWS: set[type] = {type({}.keys()), type({}.values()), type({}.items())}

registered: dict[type, frozenset[str]] = {}
"""Further plain types that can be written to, as arrays can, and their methods without effect."""


forms: dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {}
"""How values of such types are told by simpler ones, and made of these again, for what travels as data."""


def register(
    kind: type,
    methods: Iterable[str] = (),
    told: Callable[[Any], Any] | None = None,
    made: Callable[[Any], Any] | None = None,
) -> None:
    """Say that a type is plain, and which methods of it have no effect besides those of NumPy's names.

    `told` gives what a value is made of, and `made` makes it, where it travels as data.
    """
    registered[kind] = frozenset(methods)
    if told is not None and made is not None:
        forms[kind.__qualname__] = kind, told, made


INSIDE: set[Any] = set()
"""Codes of functions that are written inside parallel functions."""


class Survey:
    """What is in some values, however deep."""

    __slots__ = ("containers", "fills", "functions", "known", "pending", "plain", "seen")

    def __init__(self) -> None:
        self.plain = True
        """Whether everything is plain that was not made by a call."""
        self.known = True
        """Whether what calls made is plain, as far as one knows."""
        self.pending: list[Task] = []
        """Tasks that are not done."""
        self.fills: list[Any] = []
        """Lists and dicts that hold tasks."""
        self.containers: list[Any] = []
        """All lists, dicts and sets."""
        self.functions = False
        """Whether there is a function that is written inside a parallel one."""
        self.seen: set[int] = set()

    def look(self, values: Iterable[Any], made: bool = False) -> None:
        """Walk through values; `made`: they come from a call."""
        for each in values:
            kind = type(each)
            if kind in ATOMS:
                continue
            if kind is Task:
                if each.state != DONE:
                    self.pending.append(each)
                    self.known = self.known and each.plain
                elif each.error is not None:
                    self.pending.append(each)
                else:
                    self.look((each.value,), True)
            elif kind in (list, tuple, dict, set, frozenset):
                self._look_inside(each, kind, made)
            elif kind is np.ndarray:
                if each.dtype.hasobject:
                    self._other(made)
            elif kind is types.FunctionType:
                self.functions: bool = self.functions or each.__code__ in INSIDE
            elif kind not in INERT and kind not in registered and kind not in VIEWS:
                self._other(made)

    def _other(self, made: bool) -> None:
        if made:
            self.known: bool = False
        else:
            self.plain: bool = False

    def _look_inside(self, container: Any, kind: type, made: bool) -> None:
        if id(container) in self.seen:
            return
        self.seen.add(id(container))
        if kind is not tuple and kind is not frozenset:
            self.containers.append(container)
        if kind is dict:
            if not ATOMS.issuperset(map(type, container)):
                self.look(container, made)
            inside: Any = container.values()
        else:
            inside = container
        kinds = set(map(type, inside))
        if kinds <= ATOMS:
            return
        if Task in kinds:
            self.fills.append(container)
        self.look(inside, made)


def surveyed(*values: Any) -> Survey:
    """What is in these values.

    >>> surveyed([1, (2.0, "x")]).plain, surveyed(iter([])).plain
    (True, False)
    """
    found = Survey()
    found.look(values)
    return found


def is_plain(value: Any) -> bool:
    """Whether a value, in which there are no tasks, is plain all through."""
    return surveyed(value).plain


def is_iterator(value: Any) -> bool:
    """Whether looping over it uses it up."""
    return hasattr(type(value), "__next__")
