"""What the statements of a parallel function call while they run.

The function runs statement by statement on its caller's thread. Calls and operators that are known to have no
effect become tasks (see `order`), everything else waits for all tasks before it.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from linnet.futures import purity
from linnet.futures.operations import (
    Bound,
    Guard,
    Named,
    Pairs,
    formatted,
    has_functions,
    is_iterable,
    joined,
    method_of,
    packed,
    reads_plainly,
    unpacked_into,
)
from linnet.futures.order import Order
from linnet.futures.plain import ATOMS, INSIDE, NUMBERS, Survey, is_plain, registered, surveyed
from linnet.futures.pure_names import CHANGING, CREATION, LOOPING, METHODS, SLEEP, may_write
from linnet.futures.scheduler import DONE, MAY_TRAVEL, Task

_DEEP = 100
"""After so many functions inside, each called by the one before, another thread takes over, for its stack."""
_SMALL = 1 << 16
"""NumPy's functions on so many bytes are called at once."""


class Activation(Order):
    """One run of a parallel function."""

    # ------------------------------------------------------------------ operators

    def operate(
        self,
        line: int,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        keywords: dict[str, Any] | None = None,
        *,
        light: bool = True,
        fresh: bool = False,
    ) -> Any:
        """Something that is pure on plain values: done at once if they are there, else by itself."""
        found = Survey()
        found.look(args)
        if keywords:
            found.look(keywords.values())
        if not found.plain:
            return self.in_order(function, args, keywords or {})
        if not found.pending and not self._is_long(args, light):
            self._settle(found)
            values = [each.value if type(each) is Task else each for each in args]
            named = {name: self.value(each) for name, each in keywords.items()} if keywords else {}
            return function(*values, **named)
        task = Task(function, args, keywords)
        task.light, task.fresh, task.plain = light, fresh, found.known
        return self.issue(task, found, line)

    def _is_long(self, args: tuple[Any, ...], light: bool) -> bool:
        """Whether arrays are so long that another thread should work on them."""
        if self.at_once:
            return False
        limit = 1 << 17 if light else _SMALL
        for each in args:
            value = each.value if type(each) is Task else each
            if type(value) is np.ndarray and value.nbytes > limit:
                return True
        return False

    def binary(self, line: int, function: Callable[..., Any], a: Any, b: Any) -> Any:
        """`a + b` and the like."""
        if type(a) in NUMBERS and type(b) in NUMBERS:
            return function(a, b)
        return self.operate(line, function, (a, b), fresh=True)

    def unary(self, line: int, function: Callable[..., Any], a: Any) -> Any:
        """`-a` and the like."""
        return function(a) if type(a) in NUMBERS else self.operate(line, function, (a,))

    def compare(self, line: int, function: Callable[..., Any], a: Any, b: Any) -> Any:
        """`a < b` and the like, `in` too."""
        if type(a) in NUMBERS and type(b) in NUMBERS:
            return function(a, b)
        return self.operate(line, function, (a, b))

    def identical(self, line: int, function: Callable[..., Any], a: Any, b: Any) -> Any:
        """`a is b`: of whatever kind they are, nothing of theirs is called."""
        if type(a) is not Task and type(b) is not Task:
            return function(a, b)
        return function(self.value(a), self.value(b))

    def inplace(self, line: int, change: Callable[..., Any], a: Any, b: Any, alone: bool) -> Any:
        """`a += b`; `alone`: the variable is read by operators and conditions only."""
        if type(a) is Task:
            if alone and a.fresh and not a.uses and a.state != DONE:
                return self.operate(line, change, (a, b), fresh=True)
            a = self.value(a)
        if type(a) in ATOMS:
            return self.binary(line, change, a, b)  # what goes wrong is told as of `+=`
        if type(a) is list and change is operator.iadd and self._is_mine(a):
            b = self.value(b)
            if type(b) in (list, tuple, range):
                return change(a, b)
        return self.in_order(change, (a, b), {})

    def tuple(self, line: int, parts: tuple[Any, ...]) -> Any:
        """A tuple that is written down: a task if it has one in it."""
        for each in parts:
            if type(each) is Task:
                break
        else:
            return parts
        found = surveyed(*parts)
        task = Task(packed, parts)
        task.light, task.plain = True, found.known and found.plain
        task.parts = parts
        return self.issue(task, found, line)

    def slice(self, line: int, *parts: Any) -> Any:
        """`a:b:c`."""
        return self.operate(line, slice, parts)

    def formatted(self, line: int, x: Any, conversion: str, form: Any) -> Any:
        """One value in an f-string."""
        return self.operate(line, formatted, (x, conversion, form))

    def joined(self, line: int, parts: tuple[Any, ...]) -> Any:
        """An f-string."""
        return self.operate(line, joined, parts)

    # ------------------------------------------------------------------ items and attributes

    def item(self, line: int, x: Any, index: Any) -> Any:
        """`x[index]`."""
        if type(x) is Task and x.state == DONE:
            x = self.value(x)
        if type(index) is Task and index.state == DONE:
            index = self.value(index)
        kind = type(x)
        if type(index) in ATOMS and kind in (list, tuple, dict, str):
            return x[index]  # type: ignore[index]
        return self.operate(line, operator.getitem, (x, index))

    def set_item(self, x: Any, index: Any, value: Any) -> None:
        """`x[index] = value`."""
        x = self.value(x)
        index = self.settled(index)
        kind = type(x)
        plainly = type(index) in ATOMS and not (kind is list and type(index) is slice)
        if plainly and kind in (list, dict) and self._is_mine(x):
            x[index] = value
            return
        self.in_order(operator.setitem, (x, index, value), {})

    def delete_item(self, x: Any, index: Any) -> None:
        """`del x[index]`."""
        x = self.value(x)
        index = self.settled(index)
        if type(index) in ATOMS and type(x) in (list, dict) and self._is_mine(x):
            del x[index]
            return
        self.in_order(operator.delitem, (x, index), {})

    def attribute(self, line: int, x: Any, name: str) -> Any:
        """`x.name`."""
        if type(x) is Task:
            if x.state != DONE:
                return self.operate(line, getattr, (x, name))
            x = self.value(x)
        if isinstance(x, ModuleType) or type(x) in ATOMS or type(x) in registered or reads_plainly(x, name):
            return getattr(x, name)
        return self.in_order(getattr, (x, name), {})

    def set_attribute(self, x: Any, name: str, value: Any) -> None:
        """`x.name = value`."""
        self.in_order(setattr, (x, name, value), {})

    # ------------------------------------------------------------------ calls

    def in_order(self, function: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Call what may have effects: after everything before it."""
        self.drain()
        values = [self.value(each) for each in args]
        named = {name: self.value(each) for name, each in keywords.items()}
        self._given_away(*values, *named.values())
        return function(*values, **named)

    def receiver(self, x: Any, name: str, calls: bool) -> Any:
        """The object whose method is about to be called; `calls`: its arguments hold calls themselves."""
        if type(x) is Task and (x.state == DONE or calls or not x.plain or name not in METHODS):
            x = self.value(x)
        if type(x) is Task:
            return x
        kind = type(x)
        if kind in ATOMS or kind in (list, dict, set, frozenset, tuple, np.ndarray) or kind in registered:
            getattr(x, name)  # an error comes before the arguments are evaluated
            return x
        return Bound(self.attribute(0, x, name))

    def method(self, line: int, x: Any, name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """`x.name(...)`, of what `receiver` gave."""
        kind = type(x)
        if kind is Bound:
            return self.call(line, x.method, args, keywords)
        if name in CHANGING.get(kind, ()) and self._is_mine(x):
            return self._change(x, name, args, keywords)
        pure = name in METHODS or name in registered.get(kind, ())
        if pure and "out" not in keywords and not has_functions(args, keywords):
            if kind is dict and name in ("items", "values"):
                self.settled(x)
                self.made.pop(id(x), None)  # a view shows what is stored later
            return self.operate(line, method_of, (x, name, *args), keywords, light=kind is not np.ndarray)
        self.settled(x)
        return self.in_order(method_of, (x, name, *args), keywords)

    def _change(self, x: Any, name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Change a container that nobody else has."""
        stored = {"append": 0, "insert": 1, "setdefault": 1}.get(name, -1)
        values = [each if at == stored else self.value(each) for at, each in enumerate(args)]
        if name in ("extend", "update") and not all(
            type(each) in (list, tuple, dict, range) for each in values
        ):
            return self.in_order(method_of, (x, name, *values), keywords)
        keys = values if name in ("add", "discard") else values[:1] if type(x) is dict else []
        if any(type(each) not in ATOMS and not is_plain(each) for each in keys) or type(x) is set:
            self.drain()
            values = [self.settled(each) for each in values]
        if type(x) is list and name == "append" and len(x) & 1023 == 0:
            self._fill_behind(x)
        return getattr(x, name)(*values, **keywords)

    def _fill_behind(self, values: list[Any]) -> None:
        """Tasks far back in a list that grows are done: they take more memory than what they made."""
        for at in range(max(0, len(values) - 3072), len(values) - 1024):
            each = values[at]
            if type(each) is Task and each.state == DONE and each.error is None:
                values[at] = each.value

    def call(self, line: int, f: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """`f(...)`."""
        if type(f) is Task:
            f = self.value(f)
        if type(f) is FunctionType and f.__code__ in INSIDE:
            self.inlining = True
            self.inside += 1
            try:
                if self.inside % _DEEP == 0:
                    return self.further(f, args, keywords)
                return f(*args, **keywords)
            finally:
                self.inlining = False
                self.inside -= 1
        kind = purity.kind_of(f)
        if kind == purity.ORDERED:
            return self.in_order(f, args, keywords)
        if kind == purity.BUILTIN:
            if f is len and len(args) == 1 and type(args[0]) in (list, dict, tuple, str):
                return len(args[0])
            if has_functions(args, keywords) and f not in (isinstance, issubclass, callable):
                return self.in_order(f, args, keywords)
            return self.operate(line, f, args, keywords)
        if kind == purity.MATH:
            return self.operate(line, f, args, keywords)
        if kind == purity.NUMPY:
            if may_write(f, len(args), keywords) or has_functions(args, keywords):
                return self.in_order(f, args, keywords)
            at_once = isinstance(f, np.ufunc) or id(f) in CREATION
            return self.operate(line, f, args, keywords, light=at_once)
        return self._by_itself(line, f, args, keywords, kind == purity.DECLARED)

    def _by_itself(
        self, line: int, f: Any, args: tuple[Any, ...], keywords: dict[str, Any], declared: bool
    ) -> Any:
        """Let a call of a pure function run by itself."""
        found = Survey()
        found.look(args)
        if keywords:
            found.look(keywords.values())
        if not declared and not found.plain:
            return self.in_order(f, args, keywords)
        if declared and (found.functions or (self.exposed and not found.plain)):
            return self.in_order(f, args, keywords)  # it may call a function that reads variables of this one
        if self.depth + 1 >= sys.getrecursionlimit():
            raise RecursionError("maximum recursion depth exceeded")
        task = Task(f.run_inside if isinstance(f, purity.Parallel) else f, args, keywords)
        task.plain = not declared
        if not isinstance(f, purity.Parallel) and f is not SLEEP:
            task.travels = MAY_TRAVEL
        if not declared and not found.known:
            task.guard = Guard(f, line)
        return self.issue(task, found, line)

    # ------------------------------------------------------------------ loops and unpacking

    def iterate(self, x: Any, stores: bool = False) -> Any:
        """What a loop goes over; `stores`: elements are stored in variables, which somebody may see."""
        x = self.value(x)
        kind = type(x)
        if (kind in ATOMS or kind in (list, tuple, dict, set, frozenset, np.ndarray)) and not (
            stores and self.careful[-1]
        ):
            return iter(x)
        return self._one_by_one(x)

    def spread(self, x: Any) -> Any:
        """What stands behind `*` in a call, a list, a tuple or a set: Python itself goes through it."""
        x = self.value(x)
        if type(x) not in ATOMS and type(x) not in (list, tuple, dict, set, frozenset, np.ndarray):
            self.drain()
        return x

    def spread_alone(self, f: Any, name: str, x: Any) -> Any:
        """The same, if it is all that a function is given: an error names the function."""
        x = self.spread(x)
        if is_iterable(x):
            return x
        self.drain()
        told = Named(self._called(f, name))
        if told.__module__ not in (None, "builtins"):
            said = f"{told.__module__}.{told.__qualname__}"
        else:
            said = told.__qualname__
        raise TypeError(f"{said}() argument after * must be an iterable, not {type(x).__name__}")

    def named(self, f: Any, name: str) -> Named:
        """What collects the keywords of a call of `f`, or of its method, in which `**` stands."""
        return Named(self._called(f, name))

    def _called(self, f: Any, name: str) -> Any:
        f = self.value(f)
        return f.method if type(f) is Bound else getattr(f, name) if name else f

    def _one_by_one(self, x: Any) -> Iterator[Any]:
        """Elements of what may have effects: each comes after everything before it."""
        self.drain()
        elements = iter(x)
        while True:
            self.drain()
            try:
                element = next(elements)
            except StopIteration:
                return
            yield element

    def loop(
        self, line: int, f: Any, args: tuple[Any, ...], keywords: dict[str, Any], stores: bool = False
    ) -> Any:
        """What a loop goes over, if it is written as a call of `enumerate`, `zip`, `reversed` or `range`."""
        f = self.value(f)
        if id(f) not in LOOPING:
            return self.iterate(self.call(line, f, args, keywords), stores)
        values = [self.value(each) for each in args]
        if f is range:
            return self.iterate(range(*values, **keywords), stores)
        kinds = (list, tuple, dict, str, range, np.ndarray, Pairs)
        plain = all(type(each) in kinds or type(each) in ATOMS for each in values)
        if not plain:
            return self._one_by_one(self.in_order(f, tuple(values), keywords))
        named = {name: self.value(each) for name, each in keywords.items()}
        made = f(*values, **named) if f is reversed else Pairs(self, f(*values, **named), line)
        return self._one_by_one(made) if stores and self.careful[-1] else made

    def pairs(self, x: Any, count: int) -> Iterator[Any]:
        """Elements that are unpacked into so many names; -1: into something else."""
        for each in x:
            yield self.settled(each) if count < 0 else self.unpacked(0, each, count)

    def unpacked(self, line: int, x: Any, count: int) -> Any:
        """What is unpacked into so many names."""
        if type(x) is Task:
            if x.parts is not None:
                return x.parts
            if x.state != DONE:
                whole = self.operate(line, unpacked_into, (x, count))
                return tuple(self.operate(line, operator.getitem, (whole, at)) for at in range(count))
            x = self.value(x)
        if type(x) not in (list, tuple, str, dict, range, np.ndarray):
            self.drain()
        return x

    def mapping(self, x: Any) -> Any:
        """What stands behind `**`."""
        x = self.value(x)
        if type(x) is not dict:
            self.drain()
        return x

    # ------------------------------------------------------------------ functions inside

    def entering(self) -> bool:
        """Whether a function inside was called by a statement, which knows tasks."""
        inlining, self.inlining = self.inlining, False
        return inlining

    def give(self, inlined: bool, x: Any) -> Any:
        """What a function inside returns: to a statement perhaps a task, to others a value."""
        if inlined:
            return x
        x = self.leave(x)
        self._given_away(x)
        return x

    def evaluate(self, expression: Callable[[Activation], Any]) -> Any:
        """The body of a lambda."""
        inlined = self.entering()
        self.begin(not inlined)
        try:
            return self.give(inlined, expression(self))
        except BaseException as error:
            if self.first(error):
                raise
        finally:
            self.end()
        return self.surface()
