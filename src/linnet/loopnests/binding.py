"""From a nest as written to one on arrays and numbers: names become what they are at the call.

Names that are known outside the nest are replaced, each loop gets a name of its own, and `sum(...)` and
conditions on values become statements. `flattening` makes a list of the result.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from linnet.arrays.elements.core import ArrayBase
from linnet.futures.source import SourceError, source_of
from linnet.loopnests.affine import affine
from linnet.loopnests.language import (
    Assign,
    Binary,
    Branch,
    Call,
    Choose,
    Compare,
    Const,
    Expr,
    Fold,
    Index,
    Load,
    Logic,
    Loop,
    Name,
    Pick,
    Size,
    Stmt,
    Unary,
    Update,
    Viewed,
    walk,
)
from linnet.loopnests.monoids import MONOIDS
from linnet.loopnests.reading import Reader, WholeArrays
from linnet.loopnests.refusing import Origin
from linnet.loopnests.scalar_functions import known_function
from linnet.loopnests.storages import StoredArray

MISSING = object()
NUMBERS = (bool, int, float, complex, np.generic)


def assigned_names(body: tuple[Stmt, ...]) -> set[str]:
    """Scalars that statements assign."""
    found: set[str] = set()
    for each in body:
        match each:
            case Assign(target) | Update(target):
                found |= {target.name} if isinstance(target, Name) else set()
            case Pick(best, arg):
                found |= {one.name for one in (best, arg) if isinstance(one, Name)}
            case Branch(_, then, otherwise):
                found |= assigned_names(then) | assigned_names(otherwise)
            case Loop():
                found |= assigned_names(each.body)
    return found


class Resolver:
    """Replaces names by what they are when the function is called."""

    def __init__(self, origin: Origin, lookup: Callable[..., Any], scalars: set[str]) -> None:
        self.origin: Origin = origin
        self.lookup = lookup
        self.scalars: set[str] = scalars
        self.objects: dict[str, Any] = {}
        """Arrays by key."""
        self.written: dict[str, str] = {}
        self.functions: dict[str, Any] = {"$bool": bool}
        self._keys: dict[int, str] = {}
        self._loops = self._temporaries = 0

    def key(self, name: str, at: Any) -> str:
        """The key of an array; the same for two names of one array."""
        found = self.lookup(name)
        if found is MISSING:
            self.origin.refuse(
                f"{name!r} is not defined before the loops", "make the array before the loops", at
            )
        if not isinstance(found, ArrayBase):
            raise WholeArrays
        key = self._keys.setdefault(id(found), f"a{len(self._keys)}")
        self.objects[key] = found
        self.written.setdefault(key, name)
        return key

    # ---- statements

    def block(self, body: tuple[Stmt, ...], names: dict[str, str]) -> tuple[Stmt, ...]:
        """Statements, with what has to be computed before each."""
        made: list[Stmt] = []
        for each in body:
            made.extend(self.statement(each, names))
        return tuple(made)

    def statement(self, node: Stmt, names: dict[str, str]) -> list[Stmt]:
        """One statement."""
        before: list[Stmt] = []

        def expr(one: Expr) -> Expr:
            return self.expression(one, names, before)

        def cell(one: Load | Name) -> Load | Name:
            made = expr(one) if isinstance(one, Load) else one
            if isinstance(made, Viewed):
                self.origin.refuse(
                    f"elements of {self.written[made.cell.array]} cannot be assigned: it is in a storage",
                    "assign to a plain array, and store that in the end",
                    one.at,
                )
            assert isinstance(made, Load | Name)
            return made

        match node:
            case Assign(target, Call(word, (old, value))) if old == target and self._monoid(word) is not None:
                made: Stmt = Update(cell(target), self._monoid(word) or "", expr(value), at=node.at)
            case Assign(target, value):
                made = Assign(cell(target), expr(value), at=node.at)
            case Update(target, monoid, value):
                made = Update(cell(target), monoid, expr(value), at=node.at)
            case Pick(best, arg, monoid, value, label):
                made = Pick(cell(best), cell(arg), monoid, expr(value), expr(label), at=node.at)
            case Branch(condition, then, otherwise):
                test = self._condition(expr(condition), before)
                made = Branch(test, self.block(then, names), self.block(otherwise, names), at=node.at)
            case Loop():
                bounds = [expr(each) for each in (node.start, node.stop, node.step)]
                inner = self.renamed(node.variable)
                start, stop, step = bounds
                inside = self.block(node.body, names | {node.variable: inner})
                made = Loop(inner, start, stop, step, inside, node.wave, at=node.at)
        return [*before, made]

    def _monoid(self, word: str) -> str | None:
        """The monoid that a function of the user's is registered as."""
        function = self.lookup(word)
        found = [name for name, each in MONOIDS.items() if each.combine is function and function is not None]
        return found[0] if found else None

    def renamed(self, variable: str) -> str:
        """A name for a loop that no other has."""
        self._loops += 1
        return f"{variable}.{self._loops}"

    def _condition(self, test: Expr, before: list[Stmt]) -> Expr:
        """A condition on indices stays; one on values is computed once, before what it guards."""
        if not any(isinstance(each, Load | Name) for each in walk(test)):
            return test
        temporary = self.temporary("condition", test.at)
        before.append(Assign(temporary, Call("$bool", (test,), at=test.at), at=test.at))
        return temporary

    def temporary(self, what: str, at: Any) -> Name:
        """A scalar of our own."""
        self._temporaries += 1
        name = f"${what}{self._temporaries}"
        self.scalars.add(name)
        return Name(name, at=at)

    # ---- expressions

    def expression(self, node: Expr, names: dict[str, str], before: list[Stmt]) -> Expr:
        """An expression; statements it needs go to `before`."""

        def again(one: Expr) -> Expr:
            return self.expression(one, names, before)

        match node:
            case Const():
                return node
            case Index(name):
                return Index(names[name], at=node.at)
            case Name(name):
                return self._name(node)
            case Size():
                return self._size(node)
            case Load(array, indices):
                key = self.key(array, node.at)
                found = self.objects[key]
                if len(indices) < found.ndim:
                    raise WholeArrays
                if len(indices) > found.ndim:
                    self.origin.refuse(
                        f"{array} has {found.ndim} axes and gets {len(indices)} indices",
                        "give one index for each axis",
                        node.at,
                    )
                made = tuple(again(each) for each in indices)
                cell = Load(key, tuple(map(self._wrapped, made, found.shape)), at=node.at)
                return self._viewed(cell, found) if isinstance(found, StoredArray) else cell
            case Fold():
                return self._fold(node, names, before)
            case Call(_, arguments):
                return self._call(node, tuple(again(each) for each in arguments))
            case Unary(op, operand):
                return simplified(Unary(op, again(operand), at=node.at))
            case Binary(op, left, right):
                return simplified(Binary(op, again(left), again(right), at=node.at))
            case Compare(op, left, right):
                return Compare(op, again(left), again(right), at=node.at)
            case Logic(op, left, right):
                return Logic(op, again(left), again(right), at=node.at)
            case Choose(condition, yes, no):
                return Choose(again(condition), again(yes), again(no), at=node.at)
            case Viewed():
                return node

    @staticmethod
    def _wrapped(index: Expr, length: int) -> Expr:
        """A constant index from the end counted from the front."""
        if isinstance(index, Const) and isinstance(index.value, int | np.integer):
            value = int(index.value)
            return Const(value + length if -length <= value < 0 else value, at=index.at)
        return index

    def _name(self, node: Name) -> Expr:
        if node.name in self.scalars:
            return node
        found = self.lookup(node.name)
        if found is MISSING:
            self.origin.refuse(f"{node.name!r} is not defined", "define it before the loops", node.at)
        if isinstance(found, np.ndarray) and not found.ndim:
            found = found[()]
        if isinstance(found, NUMBERS):
            return Const(found, at=node.at)
        if isinstance(found, ArrayBase):
            if found.ndim:  # type: ignore[attr-defined]
                raise WholeArrays
            return Load(self.key(node.name, node.at), (), at=node.at)
        raise WholeArrays

    def _size(self, node: Size) -> Expr:
        found = self.lookup(node.array)
        if not hasattr(found, "shape"):
            if node.axis == 0 and hasattr(found, "__len__"):
                return Const(len(found), at=node.at)
            raise WholeArrays
        if not -len(found.shape) <= node.axis < len(found.shape):
            self.origin.refuse(
                f"{node.array} has {len(found.shape)} axes; there is no axis {node.axis}",
                "name an axis that it has",
                node.at,
            )
        return Const(int(found.shape[node.axis]), at=node.at)

    def _call(self, node: Call, arguments: tuple[Expr, ...]) -> Expr:
        function = self.lookup(node.function)
        if function is MISSING:
            self.origin.refuse(
                f"{node.function!r} is not defined", "define the function before the loops", node.at
            )
        if known_function(function, len(arguments)) is not None:
            self.functions[node.function] = function
            return Call(node.function, arguments, at=node.at)
        if inspect.isfunction(function) and not function.__module__.startswith("linnet."):
            return self._inlined(node, function, arguments)
        raise WholeArrays

    def _viewed(self, cell: Load, array: Any) -> Expr:
        """An element of an array in a storage of the user's own."""
        view = array.held.storage.view
        node = Call(getattr(view, "__name__", "view"), cell.indices, at=cell.at)
        return Viewed(cell, self._inlined(node, view, cell.indices, array.kept), at=cell.at)

    def _inlined(self, node: Call, function: Any, arguments: tuple[Expr, ...], kept: Any = None) -> Expr:
        """A function of the user's that returns one expression of its arguments; `kept`: of an array, too."""
        try:
            tree = source_of(function).tree
        except SourceError as error:
            self.origin.refuse(
                f"the function {node.function!r} cannot be looked into: {error}",
                "write the expression itself",
                node.at,
            )
        body = [each for each in tree.body if not _is_text(each)]
        names = [each.arg for each in tree.args.args]
        first, names = (names[:1], names[1:]) if kept is not None else ([], names)
        if len(body) != 1 or not hasattr(body[0], "value") or type(body[0]).__name__ != "Return":
            self.origin.refuse(
                f"the function {node.function!r} does more than return an expression",
                "write `def f(x): return ...`, or its statements in the loop",
                node.at,
            )
        if len(names) != len(arguments) or tree.args.vararg or tree.args.kwonlyargs or tree.args.kwarg:
            self.origin.refuse(
                f"{node.function!r} takes {len(names)} arguments and gets {len(arguments)}",
                "call it with one value for each argument",
                node.at,
            )
        outside = inspect.getclosurevars(function)
        around = {**outside.builtins, **outside.globals, **outside.nonlocals}
        if kept is not None:
            around[first[0]] = kept
        read = Reader(self.origin).expression(body[0].value, frozenset(names))  # type: ignore[attr-defined]
        inner = Resolver(self.origin, lambda name: self.lookup(name, around=around), set())
        inner.functions, inner.objects = self.functions, self.objects
        inner.written, inner._keys = self.written, self._keys
        values = dict(zip(names, arguments, strict=True))
        return _substituted(inner.expression(read, {name: name for name in names}, []), values, node.at, self)

    def _fold(self, node: Fold, names: dict[str, str], before: list[Stmt]) -> Expr:
        """`sum(...)` as a scalar that is updated in loops before the statement."""
        monoid = MONOIDS[node.monoid]
        result = self.temporary("fold", node.at)
        inner = dict(names)
        loops: list[Loop] = []
        for loop in node.loops:
            bounds = [self.expression(each, inner, before) for each in (loop.start, loop.stop, loop.step)]
            name = self.renamed(loop.variable)
            inner[loop.variable] = name
            start_, stop, step = bounds
            loops.append(Loop(name, start_, stop, step, at=loop.at))
        body: list[Stmt] = []
        tests = [self._condition(self.expression(each, inner, body), body) for each in node.conditions]
        if node.monoid in ("min", "max"):
            self._never_empty(node, loops, tests)
            first = {
                name: loop.start for name, loop in zip((each.variable for each in loops), loops, strict=True)
            }
            start: list[Stmt] = []
            value = self.expression(node.value, inner, start)
            if start:
                self.origin.refuse(
                    f"a fold inside {node.monoid}(...)",
                    "assign the inner value to a scalar in a loop first",
                    node.at,
                )
            before.append(Assign(result, _substituted(value, first, node.at, self), at=node.at))
        else:
            before.append(Assign(result, Const(monoid.start), at=node.at))
        value = self.expression(node.value, inner, body)
        if node.monoid in ("or", "and"):
            value = Call("$bool", (value,), at=node.at)
        inside: tuple[Stmt, ...] = (*body, Update(result, node.monoid, value, at=node.at))
        if tests:
            inside = (*body, _branches(tests, Update(result, node.monoid, value, at=node.at)))
        for loop in reversed(loops):
            inside = (dataclasses.replace(loop, body=inside),)
        before.extend(inside)
        return result

    def _never_empty(self, node: Fold, loops: list[Loop], tests: list[Expr]) -> None:
        sizes = [affine(Binary("-", loop.stop, loop.start)) for loop in loops]
        known = all(each is not None and not each.terms for each in sizes)
        if tests or not known:
            self.origin.refuse(
                f"{node.monoid}(...) of a part that may be empty has no value",
                f"start from a number: `x = ln.inf`, then `x = {node.monoid}(x, ...)` in a loop",
                node.at,
            )
        if not all(_count(loop) for loop in loops):
            self.origin.refuse(
                f"{node.monoid}() of an empty sequence",
                "give the loop a step at least, or write a number instead",
                node.at,
            )


def _count(loop: Loop) -> int:
    numbers = [each.value for each in (loop.start, loop.stop, loop.step) if isinstance(each, Const)]
    return len(range(*numbers)) if len(numbers) == 3 else 1


def _branches(tests: list[Expr], inner: Stmt) -> Stmt:
    for each in reversed(tests):
        inner = Branch(each, (inner,), at=inner.at)
    return inner


def _is_text(node: Any) -> bool:
    return type(node).__name__ == "Expr" and isinstance(getattr(node.value, "value", None), str)


def dotted_value(words: str, around: dict[str, Any]) -> Any:
    """What `a.b.c` is; MISSING if there is none such."""
    first, *rest = words.split(".")
    if first not in around:
        return MISSING
    found = around[first]
    for each in rest:
        if not hasattr(found, each):
            return MISSING
        found = getattr(found, each)
    return found


def simplified(node: Expr) -> Expr:
    """Arithmetic on whole numbers that are known, done."""
    match node:
        case Binary(op, Const(a), Const(b)) if type(a) is int and type(b) is int:
            if op in ("//", "%") and b == 0:
                return node
            table: dict[str, Callable[[], int]] = {
                "+": lambda: a + b,
                "-": lambda: a - b,
                "*": lambda: a * b,
                "//": lambda: a // b,
                "%": lambda: a % b,
            }
            return Const(table[op](), at=node.at) if op in table else node
        case Unary("-", Const(a)) if type(a) is int:
            return Const(-a, at=node.at)
        case _:
            return node


def _substituted(node: Expr, values: dict[str, Expr], at: Any, resolver: Resolver) -> Expr:
    """An expression with other expressions in the place of indices."""

    def again(one: Expr) -> Expr:
        return _substituted(one, values, at, resolver)

    match node:
        case Index(name) if name in values:
            return values[name]
        case Load(array, indices):
            return Load(array, tuple(map(again, indices)), at=at)
        case Unary(op, operand):
            return simplified(Unary(op, again(operand), at=at))
        case Binary(op, left, right):
            return simplified(Binary(op, again(left), again(right), at=at))
        case Compare(op, left, right):
            return Compare(op, again(left), again(right), at=at)
        case Logic(op, left, right):
            return Logic(op, again(left), again(right), at=at)
        case Choose(condition, yes, no):
            return Choose(again(condition), again(yes), again(no), at=at)
        case Call(function, arguments):
            return Call(function, tuple(map(again, arguments)), at=at)
        case Viewed(cell, value):
            return Viewed(Load(cell.array, tuple(map(again, cell.indices)), at=at), again(value), at=at)
        case _:
            return node


def resolved(
    origin: Origin, body: tuple[Stmt, ...], lookup: Callable[..., Any]
) -> tuple[tuple[Stmt, ...], Resolver]:
    """Statements with names as they are now. WholeArrays if they are no nest after all."""
    resolver = Resolver(origin, lookup, assigned_names(body))
    for name in sorted(resolver.scalars):
        if isinstance(lookup(name, True), ArrayBase) and lookup(name, True).ndim:
            raise WholeArrays
    return resolver.block(body, {}), resolver
