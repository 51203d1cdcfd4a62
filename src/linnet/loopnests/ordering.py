"""In which order a nest runs: which statements at once, and which loops one step after another.

Statements that depend on each other in a circle stay together, and the outermost loop that carries a
dependence among them runs step by step; all other loops run at once, as axes of arrays (Allen and Kennedy's
way of making vector code, with loops that carry nothing moved inwards). A circle in which every loop has to
run step by step is a recurrence: nothing would be left to do at once.
"""

from __future__ import annotations

from dataclasses import dataclass

from linnet.loopnests.dependences import Dependence
from linnet.loopnests.statements import Axis, Statement


@dataclass(frozen=True, slots=True, eq=False)
class AtOnce:
    """A statement, for all steps of the loops that do not run step by step."""

    statement: Statement


@dataclass(frozen=True, slots=True, eq=False)
class StepByStep:
    """A loop around other parts."""

    axis: Axis
    body: tuple[Part, ...]


Part = AtOnce | StepByStep


class Recurrence(Exception):
    """Every loop around some statements has to run step by step."""

    def __init__(self, statements: tuple[Statement, ...], dependences: list[Dependence]) -> None:
        super().__init__("recurrence")
        self.statements: tuple[Statement, ...] = statements
        self.dependences: list[Dependence] = dependences


def ordered(
    statements: tuple[Statement, ...], dependences: list[Dependence], stepped: frozenset[str] = frozenset()
) -> tuple[Part, ...]:
    """The parts of a nest in the order in which they run."""
    inside = {each.number for each in statements}
    active = [each for each in dependences if each.source in inside and each.sink in inside]
    made: list[Part] = []
    for group in circles(statements, active):
        numbers = {each.number for each in group}
        among = [each for each in active if each.source in numbers and each.sink in numbers]
        carried = [each.level for each in among if each.level]
        # A statement that runs at once, with all loops that are left, reads everything before it writes.
        if all(each.kind == "anti" and each.source == each.sink for each in among if each.level):
            made.extend(AtOnce(each) for each in group)
            continue
        level = min(carried)
        axis = group[0].axes[level - 1]
        now = stepped | {axis.name}
        if all(axis.name in now for each in group for axis in each.axes):
            raise Recurrence(group, [each for each in among if each.level])
        left = [each for each in among if each.level != level]
        made.append(StepByStep(axis, ordered(group, left, now)))
    return tuple(made)


def circles(statements: tuple[Statement, ...], edges: list[Dependence]) -> list[tuple[Statement, ...]]:
    """Groups of statements that depend on each other, each after those it needs; otherwise in the order of
    the text (Tarjan's algorithm on the reversed graph, without recursion)."""
    after: dict[int, set[int]] = {each.number: set() for each in statements}
    for each in edges:
        after[each.source].add(each.sink)
    reach = {number: _reached(number, after) for number in after}
    found: list[tuple[Statement, ...]] = []
    left = sorted(statements, key=lambda each: each.number)
    while left:
        # The first statement whose predecessors are all in its own circle.
        for each in left:
            own = {
                o.number for o in left if o.number in reach[each.number] and each.number in reach[o.number]
            }
            own.add(each.number)
            blocked = any(
                each.number in reach[o.number] and o.number not in own
                for o in left
                if o.number != each.number
            )
            if not blocked:
                break
        else:
            raise AssertionError("no statement can come first")
        found.append(tuple(o for o in left if o.number in own))
        left = [o for o in left if o.number not in own]
    return found


def _reached(start: int, after: dict[int, set[int]]) -> set[int]:
    found: set[int] = set()
    stack = list(after[start])
    while stack:
        one = stack.pop()
        if one not in found:
            found.add(one)
            stack.extend(after[one])
    return found
