"""What is refused before anything runs: indices beyond arrays, cells assigned twice, recurrences.

isl answers with steps that show it, and these are put into the message.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

from linnet.loopnests.affine import affine, as_text, condition_text
from linnet.loopnests.dependences import Dependence, before, common, domain, meeting, witness
from linnet.loopnests.integer_sets import first_point, is_empty
from linnet.loopnests.language import Choose, Expr, Load, Logic, children
from linnet.loopnests.ordering import Recurrence
from linnet.loopnests.refusing import Origin
from linnet.loopnests.statements import Nest, Statement


def check(origin: Origin, nest: Nest, found: list[Dependence]) -> None:
    """Refuse a nest that has no meaning, or one that is not meant."""
    for statement in nest.statements:
        for load, conditions in accesses(statement):
            if load.array in nest.arrays:
                in_bounds(origin, nest, statement, load, conditions)
    for statement in nest.statements:
        keyed(origin, nest, statement)
    for each in found:
        if each.kind == "output":
            assigned_once(origin, nest, each, found)


# ---- bounds

Conditions = tuple[tuple[Expr, bool], ...]


def accesses(statement: Statement) -> Iterator[tuple[Load, Conditions]]:
    """All elements a statement touches, with the conditions inside its expressions that protect them."""
    for each in statement.writes:
        yield from _inside(each, ())
    yield from _inside(statement.value, ())
    if statement.label is not None:
        yield from _inside(statement.label, ())


def _inside(node: Expr, conditions: Conditions) -> Iterator[tuple[Load, Conditions]]:
    if isinstance(node, Load):
        yield node, conditions
    if isinstance(node, Choose):
        yield from _inside(node.condition, conditions)
        yield from _inside(node.yes, (*conditions, (node.condition, True)))
        yield from _inside(node.no, (*conditions, (node.condition, False)))
    elif isinstance(node, Logic):
        yield from _inside(node.left, conditions)
        yield from _inside(node.right, (*conditions, (node.left, node.op == "and")))
    else:
        for each in children(node):
            yield from _inside(each, conditions)


def in_bounds(origin: Origin, nest: Nest, statement: Statement, load: Load, conditions: Conditions) -> None:
    """Refuse an index that is beyond its array in some step."""
    shape = nest.arrays[load.array]
    box: dict[str, tuple[int, int]] = {}
    for axis in statement.axes:
        run = axis.run(box, {})
        if not run:
            return
        box[axis.name] = (min(run[0], run[-1]), max(run[0], run[-1]))
    for axis, (index, length) in enumerate(zip(load.indices, shape, strict=True)):
        found = affine(index)
        if found is not None:
            low, high = found.ends(box)
            if low >= 0 and high < length:
                continue
        _prove_bounds(origin, nest, statement, load, conditions, axis, index, length)


def _prove_bounds(
    origin: Origin, nest: Nest, statement: Statement, load: Load, conditions: Conditions, axis: int,
    index: Expr, length: int,
) -> None:  # fmt: skip
    names = {each.name: f"s{number}" for number, each in enumerate(statement.axes)}
    text = as_text(index, names)
    if text is None:
        return
    texts = domain(statement, names)
    for condition, holds in conditions:
        inner = condition_text(condition, names)
        if inner is not None:
            texts.append(inner if holds else f"not {inner}")
    array = nest.written[load.array]
    variables = list(names.values())
    for beyond in (f"{text} < 0", f"{text} >= {length}"):
        answer = is_empty(variables, [*texts, beyond])
        if answer:
            continue
        point = first_point([*variables, "index"], [*texts, beyond, f"index = {text}"])
        if answer is None or point is None:
            origin.refuse(
                f"nobody could show that the index of axis {axis} of {array} is below its length {length}",
                "write simpler bounds or a simpler index",
                load.at or statement.at,
            )
        steps = shown({each.written: point[names[each.name]] for each in statement.axes})
        if beyond.endswith("< 0"):
            origin.refuse(
                f"the index of axis {axis} of {array} is {point['index']} at {steps}: "
                "negative indices count from the end",
                "start the loop later, guard the statement with `if`, or write the index "
                f"`% {length}` to wrap around",
                load.at or statement.at,
            )
        origin.refuse(
            f"the index of axis {axis} of {array} is {point['index']} at {steps}, "
            f"but the axis has length {length}",
            "end the loop earlier, or guard the statement with `if`",
            load.at or statement.at,
        )


def shown(steps: dict[str, int]) -> str:
    """A step in words.

    >>> shown({"i": 3, "j": 0})
    'i = 3, j = 0'
    """
    return ", ".join(f"{name} = {value}" for name, value in steps.items()) or "its only step"


# ---- writes that meet


def assigned_once(origin: Origin, nest: Nest, each: Dependence, found: list[Dependence]) -> None:
    """Refuse two assignments of a cell with no read of it between."""
    if each.first.array in nest.scalars:
        return
    between = [
        other for other in found
        if other.kind == "anti" and other.sink == each.sink and other.first.array == each.first.array
    ]  # fmt: skip
    if each.level and any(other.level >= each.level or other.level == 0 for other in between):
        return
    if not each.level and any(_is_between(nest, other, each) for other in between):
        return
    one, two = nest.statements[each.source], nest.statements[each.sink]
    shared = common(one, two)
    order = before(one.axes, each.level) if each.level else [f"s{k} = t{k}" for k in range(shared)]
    first, second = witness(meeting(one, each.first.indices, two, each.second.indices, order), one, two)
    array = nest.written[each.first.array]
    cell = f"{array}[...]"
    steps = f"at {shown(first)} and at {shown(second)}" if first != second else f"twice at {shown(first)}"
    earlier = "" if one is two or one.at is None else f" (first by line {one.at.line})"
    origin.refuse(
        f"the same cell of {cell} is assigned {steps}{earlier}, and nothing reads it between",
        "combine the values: use += or min(...), or give each step a cell of its own",
        two.at,
    )


def _is_between(nest: Nest, anti: Dependence, output: Dependence) -> bool:
    """Whether a reader comes after the first of two writes and before the second."""
    return output.source <= anti.source <= output.sink or anti.level > 0


def keyed(origin: Origin, nest: Nest, statement: Statement) -> None:
    """Refuse an assignment to a cell whose index is read from an array: two steps may write one cell."""
    if statement.monoid is not None:
        return
    names = {each.name: each.name for each in statement.axes}
    for index in statement.target.indices:
        if as_text(index, names) is None and statement.axes:
            origin.refuse(
                f"{nest.written.get(statement.target.array, 'the array')} is assigned at a computed index: "
                "two steps may write the same cell",
                "combine the values with += or min(...), or use an index made of loop variables",
                statement.target.at or statement.at,
            )


# ---- recurrences


def refuse_recurrence(origin: Origin, nest: Nest, recurrence: Recurrence) -> NoReturn:
    """Say which step needs the result of which other."""
    flows = [each for each in recurrence.dependences if each.kind == "flow"] or recurrence.dependences
    each = max(flows, key=lambda one: one.level)
    one, two = nest.statements[each.source], nest.statements[each.sink]
    first, second = witness(
        meeting(one, each.first.indices, two, each.second.indices, before(one.axes, each.level)), one, two
    )
    distance = tuple(second[axis.written] - first[axis.written] for axis in one.axes[: common(one, two)])
    array = nest.written.get(each.first.array, each.first.array[1:])
    vector = f"({', '.join(map(str, distance))})"
    what = {"flow": "reads what", "anti": "overwrites what", "output": "overwrites what"}[each.kind]
    done = "wrote" if each.kind != "anti" else "still reads"
    origin.refuse(
        f"a recurrence in {array}: the step {shown(second)} {what} the step {shown(first)} {done}, "
        f"distance {vector}, so every step has to wait for another one",
        "use ln.cumulative_sum or a function of ln.linalg, write ln.wavefront(...) for recurrences in two "
        "indices, or write to another array",
        two.at,
    )
