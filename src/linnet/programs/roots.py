"""Tasks that wait for nobody."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import islpy as isl

from linnet.programs.counting import fixed
from linnet.programs.grammar import Task
from linnet.programs.integer_sets import NotAffine
from linnet.programs.statements import Statement

if TYPE_CHECKING:
    from linnet.programs.bound import BoundProgram


def roots(bound: BoundProgram) -> Iterator[Task]:
    """All roots, statement by statement."""
    for statement in bound.program.statements:
        yield from roots_of(bound, statement.number)


def roots_of(
    bound: BoundProgram, statement: int, low: int | None = None, high: int | None = None
) -> Iterator[Task]:
    """The roots of one statement; those whose outermost loop value is in `low` … `high - 1`, if given."""
    points = _points(bound, bound.program.statements[statement])
    if points is None:
        for task in bound.tasks_of(statement):
            if (low is None or low <= task.indices[0] < high) and not bound.parents(task):  # type: ignore[operator]
                yield task
        return
    if low is not None:
        assert high is not None
        points = points.lower_bound_val(isl.dim_type.set, 0, low)
        points = points.upper_bound_val(isl.dim_type.set, 0, high - 1)
    for basic in points.get_basic_sets():
        yield from _scan(statement, basic, (), basic.dim(isl.dim_type.set))


def outermost(bound: BoundProgram, statement: int) -> tuple[int, int] | None:
    """Least outermost loop value of a statement's roots, and one beyond the greatest.

    None where there are none, where there is no loop, or where they can only be found by looking at
    every task.
    """
    points = _points(bound, bound.program.statements[statement])
    if points is None or points.is_empty() or not points.dim(isl.dim_type.set):
        return None
    return points.dim_min_val(0).to_python(), points.dim_max_val(0).to_python() + 1


def _points(bound: BoundProgram, statement: Statement) -> Any:
    """The roots of a statement as a set of points; None where isl cannot tell them."""
    proof = bound.program.proof
    try:
        free = proof.sets.domain(statement.number)
        for edge in proof.dependences.to_reader(statement.number):
            read = proof.sets.access(edge.reader, "reads", edge.operand)
            write = proof.sets.access(edge.writer, "writes", edge.output)
            free = free.subtract(read.intersect_range(write.range()).domain())
        return fixed(proof.sets, free, bound.sizes).make_disjoint()
    except (NotAffine, isl.Error):
        return None


def _scan(number: int, points: Any, before: tuple[int, ...], dims: int) -> Iterator[Task]:
    """The points of a bounded basic set: one axis after another between least and greatest value."""
    if points.is_empty():
        return
    axis = len(before)
    if axis == dims:
        yield Task(number, before)
        return
    whole = points.to_set()
    low = whole.dim_min_val(axis).to_python()
    high = whole.dim_max_val(axis).to_python()
    if axis + 1 == dims and not points.dim(isl.dim_type.div):
        # what is left is an interval: all its integers are points
        for value in range(low, high + 1):
            yield Task(number, (*before, value))
        return
    for value in range(low, high + 1):
        yield from _scan(number, points.fix_val(isl.dim_type.set, axis, value), (*before, value), dims)
