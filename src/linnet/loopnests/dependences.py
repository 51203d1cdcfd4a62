"""Which steps of a nest must come before which: accesses of the same cell, found with isl.

A dependence is *carried* by a loop if the two steps differ in that loop first; it is independent of the loops
if they are one step of all loops that the statements share. Sizes are numbers here, so answers are exact
wherever indices, bounds and guards are sums of loop variables with `//` and `%` by numbers; what is not
(an index read from an array) may be any cell, a guard on values may hold or not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from linnet.loopnests.affine import affine, as_text, condition_text
from linnet.loopnests.integer_sets import first_point, is_empty
from linnet.loopnests.language import Expr, Load
from linnet.loopnests.statements import Axis, Statement


@dataclass(frozen=True, slots=True)
class Dependence:
    """A step of `source` must come before a step of `sink`."""

    source: int
    sink: int
    level: int
    """The loop that carries it, counted from 1; 0: no loop."""
    kind: str
    """"flow" (write, read), "anti" (read, write) or "output" (write, write)."""
    first: Load
    second: Load


def common(one: Statement, other: Statement) -> int:
    """How many loops two statements share."""
    count = 0
    for a, b in zip(one.axes, other.axes, strict=False):
        if a is not b:
            break
        count += 1
    return count


def domain(statement: Statement, names: dict[str, str]) -> list[str]:
    """The steps of a statement, as conditions for isl; guards on values are left out."""
    found = [text for axis in statement.axes for text in axis.text(names)]
    for guard, holds in statement.guards:
        text = condition_text(guard, names)
        if text is not None:
            found.append(text if holds else f"not {text}")
    return found


def _names(statement: Statement, letter: str) -> dict[str, str]:
    return {axis.name: f"{letter}{number}" for number, axis in enumerate(statement.axes)}


Question = tuple[list[str], list[str]]
"""Variables and conditions, as isl reads them."""


def meeting(
    one: Statement, a: tuple[Expr, ...], other: Statement, b: tuple[Expr, ...], order: Iterable[str]
) -> Question:
    """Pairs of steps that touch the same cell, with conditions on their order."""
    s, t = _names(one, "s"), _names(other, "t")
    texts = [*domain(one, s), *domain(other, t), *order]
    for left, right in zip(a, b, strict=True):
        l, r = as_text(left, s), as_text(right, t)
        if l is not None and r is not None:
            texts.append(f"{l} = {r}")
    return [*s.values(), *t.values()], texts


def before(axes: tuple[Axis, ...], level: int) -> list[str]:
    """Step s comes before step t because of the loop at a level, from 1."""
    equal = [f"s{k} = t{k}" for k in range(level - 1)]
    sign = "<" if axes[level - 1].step > 0 else ">"
    return [*equal, f"s{level - 1} {sign} t{level - 1}"]


def witness(question: Question, one: Statement, other: Statement) -> tuple[dict[str, int], dict[str, int]]:
    """Two steps that answer a question: those that come first in the order of numbers."""
    point = first_point(*question) or {}
    first = {axis.written: point.get(f"s{k}", 0) for k, axis in enumerate(one.axes)}
    second = {axis.written: point.get(f"t{k}", 0) for k, axis in enumerate(other.axes)}
    return first, second


def plain_index(node: Expr) -> tuple[str, int] | None:
    """The variable and offset of an index that is one variable and a number."""
    found = affine(node)
    if found is None or len(found.terms) != 1 or found.terms[0][1] != 1:
        return None
    return found.terms[0][0], found.constant


def _quick(one: Statement, a: Load, other: Statement, b: Load, shared: int) -> list[int] | None:
    """Levels of equal accesses by plain variables of shared loops, without isl; None if it must be asked."""
    if a.indices != b.indices or _limited(one) or _limited(other):
        return None
    found = [plain_index(each) for each in a.indices]
    fixed: set[str] = set()
    names = {axis.name for axis in one.axes[:shared]}
    for index, each in zip(found, a.indices, strict=True):
        if index is None:
            number = affine(each)
            if number is None or number.terms:
                return None
            continue
        if index[0] not in names:
            return None
        fixed.add(index[0])
    if any(
        len(axis.at_least) + len(axis.at_most) > 2 or _longer_than_one(axis) is None
        for axis in one.axes[:shared]
    ):
        return None
    levels = [0]
    for level, axis in enumerate(one.axes[:shared], 1):
        if axis.name not in fixed and _longer_than_one(axis):
            levels.append(level)
    return levels


def _limited(statement: Statement) -> bool:
    """Whether a guard on loop variables leaves out steps."""
    names = {axis.name: "x" for axis in statement.axes}
    return any(condition_text(guard, names) is not None for guard, _ in statement.guards)


def _longer_than_one(axis: Axis) -> bool | None:
    """Whether a loop has more than one step; None if that depends on loops around it."""
    least, most = axis.at_least[0], axis.at_most[0]
    if least.terms or most.terms:
        return None
    return (most.constant - least.constant) // abs(axis.step) >= 1


def levels(one: Statement, a: Load, other: Statement, b: Load) -> list[int]:
    """The levels at which an access of `one` comes before an access of the same cell by `other`."""
    shared = common(one, other)
    found = _quick(one, a, other, b, shared)
    if found is None:
        found = []
        for level in range(1, shared + 1):
            if not is_empty(*meeting(one, a.indices, other, b.indices, before(one.axes, level))):
                found.append(level)
        equal = [f"s{k} = t{k}" for k in range(shared)]
        if one.number < other.number and not is_empty(*meeting(one, a.indices, other, b.indices, equal)):
            found.append(0)
    if one.number >= other.number or exclusive(one, other):
        found = [level for level in found if level]
    return found


def exclusive(one: Statement, other: Statement) -> bool:
    """Whether a guard lets only one of two statements run in a step."""
    return any(
        guard == test and holds != value for guard, holds in one.guards for test, value in other.guards
    )


def dependences(statements: tuple[Statement, ...]) -> list[Dependence]:
    """All dependences but those between updates of one cell by one monoid: these may come in any order."""
    made: list[Dependence] = []
    seen: set[tuple[object, ...]] = set()
    for one in statements:
        for other in statements:
            for kind, a, b in _pairs(one, other):
                key = (one.number, other.number, kind, a, b)
                if a.array != b.array or key in seen:
                    continue
                seen.add(key)
                made.extend(
                    Dependence(one.number, other.number, level, kind, a, b)
                    for level in levels(one, a, other, b)
                )
    return made


def _pairs(one: Statement, other: Statement) -> Iterable[tuple[str, Load, Load]]:
    together = one.monoid is not None and one.monoid == other.monoid
    for a in one.writes:
        for b in other.reads:
            yield "flow", a, b
        for b in other.writes:
            if not together:
                yield "flow" if other.monoid is not None else "output", a, b
    for a in one.reads:
        for b in other.writes:
            yield "anti", a, b
    if not together:
        for a in one.own:
            for b in other.writes:
                yield "anti", a, b
