"""Other loops with the same meaning, for nests in which every loop would have to run step by step.

*Cutting*: where a step reads a row that another step of the loop writes (`D[k, j]` beside `D[i, j]`), the
loop is cut into the steps before that row, the row itself, and those after it. *Skewing*: two loops that both
carry a dependence run along diagonals, `t = f·i + j` step by step and all `i` at once. Whether that helps is
decided as for any nest: its dependences are worked out again.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from linnet.loopnests.affine import Affine, affine
from linnet.loopnests.binding import simplified
from linnet.loopnests.dependences import Dependence, before, common, meeting
from linnet.loopnests.integer_sets import is_empty
from linnet.loopnests.language import (
    Binary,
    Branch,
    Call,
    Compare,
    Const,
    Expr,
    Index,
    Logic,
    Loop,
    Stmt,
    Unary,
)
from linnet.loopnests.ordering import Recurrence
from linnet.loopnests.statements import Nest, Statement
from linnet.programs.grammar import At

FACTORS = (1, 2, 3)
"""How strongly loops are skewed, tried in this order."""


def reshaped(
    body: tuple[Stmt, ...], nest: Nest, found: list[Dependence], recurrence: Recurrence
) -> Iterator[tuple[Stmt, ...]]:
    """Bodies to try."""
    numbers = {each.number for each in recurrence.statements}
    among = [each for each in found if each.level and each.source in numbers and each.sink in numbers]
    depth = {axis.name: number for each in recurrence.statements for number, axis in enumerate(each.axes)}
    cuts = list(cutting_points(recurrence.statements, among))
    cuts.sort(key=lambda cut: -depth[cut[0]])  # inner loops first: cutting an outer one renames those
    if 0 < len(cuts) <= 3:
        made = body
        for variable, point in cuts:
            made = cut_all(made, variable, point)
        yield made
    names = [axis.name for axis in recurrence.statements[0].axes]
    for outer, inner in reversed(list(itertools.pairwise(names))):
        for factor in FACTORS:
            made = skewed_all(body, outer, inner, factor)
            if made is not None and keeps_order(nest, found, outer, inner, factor):
                yield made


# ---- cutting


def cutting_points(
    statements: tuple[Statement, ...], among: list[Dependence]
) -> Iterator[tuple[str, Affine]]:
    """Loop variables, and where to cut their loops: at indices that other accesses have in their place."""
    seen: set[tuple[str, Affine]] = set()
    order = {axis.name: number for each in statements for number, axis in enumerate(each.axes)}
    for each in among:
        for one, other in itertools.permutations((each.first, each.second)):
            for left, right in zip(one.indices, other.indices, strict=True):
                a, b = affine(left), affine(right)
                if a is None or b is None or len(a.terms) != 1 or a.terms[0][1] != 1:
                    continue
                name = a.terms[0][0]
                outer = all(order.get(v, 99) < order.get(name, -1) for v in b.names)
                point = b.plus(-a.constant)
                if outer and name in order and (name, point) not in seen:
                    seen.add((name, point))
                    yield name, point


def cut_all(body: tuple[Stmt, ...], variable: str, point: Affine) -> tuple[Stmt, ...]:
    """Statements with one loop cut in three, wherever copies of it are."""
    made: list[Stmt] = []
    for each in body:
        if isinstance(each, Loop) and _is(each, variable) and each.step == Const(1):
            made.extend(_cut(each, _expression(point)))
        elif isinstance(each, Loop):
            made.append(dataclasses.replace(each, body=cut_all(each.body, variable, point)))
        elif isinstance(each, Branch):
            then, otherwise = cut_all(each.then, variable, point), cut_all(each.otherwise, variable, point)
            made.append(Branch(each.condition, then, otherwise, at=each.at))
        else:
            made.append(each)
    return tuple(made)


def _is(loop: Loop, variable: str) -> bool:
    """Whether a loop is the one of that name, or a copy of it."""
    return loop.variable == variable or loop.variable.startswith(f"{variable}'")


def _cut(loop: Loop, point: Expr) -> list[Stmt]:
    after = simplified(Binary("+", point, Const(1)))
    start, stop = loop.start, loop.stop
    ends = [
        (start, Call("min", (stop, point))),
        (Call("max", (start, point)), Call("min", (stop, after))),
        (Call("max", (start, after)), stop),
    ]
    made: list[Stmt] = []
    for number, (first, last) in enumerate(ends):
        copy = renamed(dataclasses.replace(loop, start=first, stop=last), f"'{number}")
        made.append(copy)
    return made


def renamed(loop: Loop, mark: str) -> Loop:
    """A copy of loops whose variables have names of their own."""
    names = {name: Index(name + mark) for name in _variables(loop)}
    made = replaced(loop, names)
    assert isinstance(made, Loop)
    return made


def _variables(node: Stmt) -> Iterator[str]:
    if isinstance(node, Loop):
        yield node.variable
        for each in node.body:
            yield from _variables(each)
    if isinstance(node, Branch):
        for each in (*node.then, *node.otherwise):
            yield from _variables(each)


def _expression(one: Affine) -> Expr:
    made: Expr = Const(one.constant)
    for name, factor in one.terms:
        made = simplified(Binary("+", made, Binary("*", Const(factor), Index(name))))
    return made


def replaced(node: Any, values: Mapping[str, Expr]) -> Any:
    """A statement or expression with other expressions in the place of loop variables."""
    if isinstance(node, Index):
        return values.get(node.name, node)
    if isinstance(node, tuple):
        return tuple(replaced(each, values) for each in node)
    if isinstance(node, Loop):
        other = values.get(node.variable)
        name = other.name if isinstance(other, Index) else node.variable
        start, stop, step, body = (
            replaced(each, values) for each in (node.start, node.stop, node.step, node.body)
        )
        return Loop(name, start, stop, step, body, node.wave, at=node.at)
    if dataclasses.is_dataclass(node) and not isinstance(node, type | At):
        fields = {each.name: replaced(getattr(node, each.name), values) for each in dataclasses.fields(node)}
        made: Any = type(node)(**fields)
        return simplified(made)
    return node


# ---- skewing


def keeps_order(nest: Nest, found: list[Dependence], outer: str, inner: str, factor: int) -> bool:
    """Whether all steps that depend on each other come in the same order along diagonals."""
    for each in found:
        one, other = nest.statements[each.source], nest.statements[each.sink]
        names = [axis.name for axis in one.axes[: common(one, other)]]
        if not each.level or outer not in names or each.level <= names.index(outer):
            continue
        if inner not in names:
            return False
        i, j = names.index(outer), names.index(inner)
        signs = [1 if one.axes[k].step > 0 else -1 for k in (i, j)]
        across = f"({signs[0]}*t{i} - {signs[0]}*s{i})"
        time = f"({factor * signs[0]}*t{i} - {factor * signs[0]}*s{i} + {signs[1]}*t{j} - {signs[1]}*s{j})"
        wrong = f"({time} < 0 or ({time} = 0 and {across} < 0))"
        order = [*before(one.axes, each.level), wrong]
        if not is_empty(*meeting(one, each.first.indices, other, each.second.indices, order)):
            return False
    return True


def skewed_all(body: tuple[Stmt, ...], outer: str, inner: str, factor: int) -> tuple[Stmt, ...] | None:
    """Statements with two loops skewed; None if they are not directly inside each other."""
    for number, each in enumerate(body):
        if isinstance(each, Loop) and each.variable == outer:
            made = _skewed(each, inner, factor)
            return None if made is None else (*body[:number], made, *body[number + 1 :])
        if isinstance(each, Loop):
            found = skewed_all(each.body, outer, inner, factor)
            if found is not None:
                return (*body[:number], dataclasses.replace(each, body=found), *body[number + 1 :])
    return None


def _skewed(loop: Loop, inner: str, factor: int) -> Loop | None:
    second = loop.body[0] if len(loop.body) == 1 else None
    if not isinstance(second, Loop) or second.variable != inner:
        return None
    one, two = _upward(loop), _upward(second)
    if one is None or two is None:
        return None
    (i, first, last), (j, low, high) = one, two
    first_sum, last_sum, low_sum, high_sum = (affine(each) for each in (first, last, low, high))
    if (
        first_sum is None
        or last_sum is None
        or first_sum.terms
        or last_sum.terms
        or low_sum is None
        or high_sum is None
    ):
        return None
    name = loop.variable
    if set(low_sum.names) - {name} or set(high_sum.names) - {name}:
        return None
    ends = sorted((first_sum.constant, last_sum.constant - 1))
    sign = 1 if i == Index(name) else -1
    box = {name: (min(sign * ends[0], sign * ends[1]), max(sign * ends[0], sign * ends[1]))}
    least = low_sum.ends(box)[0] + min(factor * first_sum.constant, factor * (last_sum.constant - 1))
    most = high_sum.ends(box)[1] - 1 + max(factor * first_sum.constant, factor * (last_sum.constant - 1))
    time = f"{name}+{inner}"
    step = Binary("-", Index(time), Binary("*", Const(factor), Index(name)))
    # Downward loops count upward in the negative: i = -p.
    values: dict[str, Expr] = {}
    if sign < 0:
        values[name] = i
    where = replaced(step, {})
    inside = where if j == Index(inner) else Unary("-", where)
    bounds = Logic(
        "and", Compare("<=", replaced(low, values), where), Compare("<", where, replaced(high, values))
    )  # fmt: skip
    body = replaced(replaced(second.body, values), {inner: inside})
    guarded = Branch(bounds, body, at=second.at)
    across = Loop(name, Const(first_sum.constant), Const(last_sum.constant), Const(1), (guarded,), at=loop.at)
    return Loop(time, Const(least), Const(most + 1), Const(1), (across,), at=loop.at)


def _upward(loop: Loop) -> tuple[Expr, Expr, Expr] | None:
    """The value of a loop's variable, and the bounds of one that counts upward in its place."""
    own = Index(loop.variable)
    if loop.step == Const(1):
        return own, loop.start, loop.stop
    if loop.step == Const(-1):
        return Unary("-", own), simplified(Unary("-", loop.start)), simplified(Unary("-", loop.stop))
    return None
