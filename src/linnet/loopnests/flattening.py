"""From a resolved nest to a list of statements on cells.

A scalar that is assigned at the beginning of a loop's body has a cell for each step of that loop: no step
sees what another left there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from linnet.loopnests.affine import Affine, affine
from linnet.loopnests.binding import Resolver
from linnet.loopnests.language import (
    Assign,
    Binary,
    Branch,
    Call,
    Choose,
    Compare,
    Const,
    Expr,
    Index,
    Load,
    Logic,
    Loop,
    Name,
    Pick,
    Stmt,
    Unary,
    Update,
    Viewed,
    walk,
)
from linnet.loopnests.refusing import Origin
from linnet.loopnests.statements import Axis, Nest, Statement
from linnet.programs.grammar import At


def assigned_first(body: tuple[Stmt, ...], name: str) -> tuple[bool, bool]:
    """Whether a scalar is never read before it is assigned, and whether it is assigned for certain.

    A branch or a loop may assign it or not: what reads it afterwards may see what was there before.
    """
    perhaps = False
    for each in body:
        match each:
            case Assign(target, value):
                if _reads(value, name) or (isinstance(target, Load) and _reads(target, name)):
                    return False, perhaps
                if isinstance(target, Name) and target.name == name:
                    return True, True
            case Update() | Pick():
                if any(_reads(one, name) for one in _expressions(each)):
                    return False, perhaps
            case Branch(condition, then, otherwise):
                one, other = assigned_first(then, name), assigned_first(otherwise, name)
                if _reads(condition, name) or not (one[0] and other[0]):
                    return False, perhaps
                if one[1] and other[1]:
                    return True, True
            case Loop():
                bounds = any(_reads(one, name) for one in (each.start, each.stop, each.step))
                if bounds or not assigned_first(each.body, name)[0]:
                    return False, perhaps
    return True, perhaps


def _expressions(node: Stmt) -> Iterator[Expr]:
    match node:
        case Assign(target, value) | Update(target, _, value):
            yield from (target, value)
        case Pick(best, arg, _, value, label):
            yield from (best, arg, value, label)
        case _:
            return


def _reads(node: Expr, name: str) -> bool:
    return any(isinstance(each, Name) and each.name == name for each in walk(node))


def mentions(body: tuple[Stmt, ...], name: str) -> bool:
    """Whether statements mention a scalar."""
    for each in body:
        if any(_reads(one, name) for one in _expressions(each)):
            return True
        if isinstance(each, Loop) and (
            any(_reads(one, name) for one in (each.start, each.stop, each.step)) or mentions(each.body, name)
        ):
            return True
        if isinstance(each, Branch) and (
            _reads(each.condition, name) or mentions(each.then, name) or mentions(each.otherwise, name)
        ):
            return True
    return False


def private_to(loop: Loop, name: str) -> int:
    """How many of the outermost loops have a cell each for a scalar: down to the last loop whose body
    mentions it alone and assigns it first."""
    depth, found, body = 1, 0, loop.body
    while True:
        if assigned_first(body, name)[0]:
            found = depth
        places = [each for each in body if mentions((each,), name)]
        while len(places) == 1 and isinstance(places[0], Branch):
            inner = (*places[0].then, *places[0].otherwise)
            places = [each for each in inner if mentions((each,), name)]
        if len(places) != 1 or not isinstance(places[0], Loop):
            return found
        body, depth = places[0].body, depth + 1


Guards = tuple[tuple[Expr, bool], ...]


class Flattener:
    """Lists the statements of a resolved nest."""

    def __init__(self, origin: Origin, resolver: Resolver, body: tuple[Stmt, ...]) -> None:
        self.origin: Origin = origin
        self.resolver: Resolver = resolver
        self.body: tuple[Stmt, ...] = body
        self.depths: dict[str, int] = {}
        for name in resolver.scalars:
            places = [each for each in body if mentions((each,), name)]
            alone = places[0] if len(places) == 1 else None
            self.depths[name] = private_to(alone, name) if isinstance(alone, Loop) else 0
        self.statements: list[Statement] = []
        self.scalars: dict[str, tuple[str, ...]] = {}

    def nest(self) -> Nest:
        """The whole nest."""
        self._block(self.body, (), ())
        shapes = {key: tuple(found.shape) for key, found in self.resolver.objects.items()}
        return Nest(tuple(self.statements), shapes, self.resolver.written, self.scalars)

    def _block(
        self, body: tuple[Stmt, ...], axes: tuple[Axis, ...], guards: tuple[tuple[Expr, bool], ...]
    ) -> None:
        for each in body:
            match each:
                case Loop():
                    self._block(each.body, (*axes, self._axis(each, axes)), guards)
                case Branch(condition, then, otherwise):
                    test = self._cells(condition, axes)
                    self._block(then, axes, (*guards, (test, True)))
                    self._block(otherwise, axes, (*guards, (test, False)))
                case Assign(target, value):
                    self._add(axes, guards, target, None, value, each.at)
                case Update(target, monoid, value):
                    self._add(axes, guards, target, monoid, value, each.at)
                case Pick(best, arg, monoid, value, label):
                    self._add(axes, guards, best, f"arg{monoid}", value, each.at, label, arg)

    def _add(
        self, axes: tuple[Axis, ...], guards: Guards, target: Load | Name, monoid: str | None, value: Expr,
        at: Any, label: Expr | None = None, second: Load | Name | None = None,
    ) -> None:  # fmt: skip
        cell = self._cells(target, axes)
        other = None if second is None else self._cells(second, axes)
        assert isinstance(cell, Load)
        assert other is None or isinstance(other, Load)
        made = Statement(
            len(self.statements), axes, guards, cell, monoid, self._cells(value, axes), at,
            None if label is None else self._cells(label, axes), other,
        )  # fmt: skip
        self.statements.append(made)

    def _cells(self, node: Expr, axes: tuple[Axis, ...]) -> Expr:
        """An expression with the cells of scalars in the place of names."""
        match node:
            case Name(name):
                own = tuple(axis.name for axis in axes[: self.depths[name]])
                self.scalars.setdefault(f"${name}", own)
                return Load(f"${name}", tuple(Index(each, at=node.at) for each in own), at=node.at)
            case Load(array, indices):
                return Load(array, tuple(self._cells(each, axes) for each in indices), at=node.at)
            case Unary(op, operand):
                return Unary(op, self._cells(operand, axes), at=node.at)
            case Binary(op, a, b):
                return Binary(op, self._cells(a, axes), self._cells(b, axes), at=node.at)
            case Compare(op, a, b):
                return Compare(op, self._cells(a, axes), self._cells(b, axes), at=node.at)
            case Logic(op, a, b):
                return Logic(op, self._cells(a, axes), self._cells(b, axes), at=node.at)
            case Choose(c, a, b):
                return Choose(*(self._cells(each, axes) for each in (c, a, b)), at=node.at)
            case Call(function, arguments):
                return Call(function, tuple(self._cells(each, axes) for each in arguments), at=node.at)
            case Viewed(cell, value):
                where = self._cells(cell, axes)
                assert isinstance(where, Load)
                return Viewed(where, self._cells(value, axes), at=node.at)
            case _:
                return node

    def _axis(self, loop: Loop, axes: tuple[Axis, ...]) -> Axis:
        """A loop with its bounds as sums of the variables around it."""
        step = loop.step.value if isinstance(loop.step, Const) else None
        written = loop.variable.rsplit(".", 1)[0]
        if not isinstance(step, int) or not step:
            self.origin.refuse(
                f"the step of the loop over {written!r} is not a whole number that is known, or 0",
                "use a step such as 1 or -2",
                loop.at,
            )
        upward = step > 0
        first = self._bounds(loop.start, "max" if upward else "min", loop, written)
        last = [
            each.plus(-1 if upward else 1)
            for each in self._bounds(loop.stop, "min" if upward else "max", loop, written)
        ]
        if len(first) > 1 and abs(step) > 1:
            self.origin.refuse(
                f"the loop over {written!r} has a step of {step} from one of several numbers",
                "use a step of 1, or a single start",
                loop.at,
            )
        least, most = (first, last) if upward else (last, first)
        return Axis(loop.variable, written, tuple(least), tuple(most), first[0], step, loop.wave, loop.at)

    def _bounds(self, node: Expr, word: str, loop: Loop, written: str) -> list[Affine]:
        """The parts of a bound: one, or those of `min` or `max`."""
        if isinstance(node, Call) and node.function == word and len(node.arguments) == 2:
            return [one for each in node.arguments for one in self._bounds(each, word, loop, written)]
        if isinstance(node, Const) and isinstance(node.value, np.integer):
            node = Const(int(node.value))
        if isinstance(node, Load) and not node.indices and node.array in self.resolver.objects:
            return [Affine((), int(self.resolver.objects[node.array]))]  # a number computed before the nest
        found = affine(node)
        if found is None:
            depends = any(isinstance(each, Load | Name) for each in walk(node))
            self.origin.refuse(
                f"the bounds of the loop over {written!r} "
                + (
                    "depend on values of arrays" if depends else "are no sums of the loop variables around it"
                ),
                "use bounds such as i + 1, n - 2*i, min(n, i + 3); put a condition on values into an `if`",
                loop.at,
            )
        return [found]


def flattened(origin: Origin, body: tuple[Stmt, ...], resolver: Resolver) -> Nest:
    """Resolved statements as a list."""
    return Flattener(origin, resolver, apart(body, resolver)).nest()


def apart(body: tuple[Stmt, ...], resolver: Resolver) -> tuple[Stmt, ...]:
    """One name used by several loops beside each other, each of which assigns it first, as several names."""
    for name in sorted(resolver.scalars):
        places = [each for each in body if mentions((each,), name)]
        alone = all(isinstance(each, Loop) and assigned_first(each.body, name)[0] for each in places)
        if len(places) > 1 and alone:
            last = places[-1]
            others = [each for each in places if each is not last]
            body = tuple(
                _renamed(each, name, resolver.temporary(name, each.at).name) if each in others else each
                for each in body
            )
    made: list[Stmt] = []
    for each in body:
        if isinstance(each, Loop):
            made.append(dataclasses.replace(each, body=apart(each.body, resolver)))
        else:
            made.append(each)
    return tuple(made)


def _renamed(node: Any, old: str, new: str) -> Any:
    """A node of the language with another name for a scalar."""
    if isinstance(node, Name):
        return Name(new, at=node.at) if node.name == old else node
    if isinstance(node, tuple):
        return tuple(_renamed(each, old, new) for each in node)
    if dataclasses.is_dataclass(node) and not isinstance(node, type | At):
        found = {each.name: _renamed(getattr(node, each.name), old, new) for each in dataclasses.fields(node)}
        return type(node)(**found)
    return node
