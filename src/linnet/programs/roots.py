"""Tasks that wait for nobody."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import islpy as isl

from linnet.programs.counting import fixed
from linnet.programs.grammar import Task
from linnet.programs.sets import NotAffine
from linnet.programs.statements import Statement

if TYPE_CHECKING:
    from linnet.programs.bound import BoundProgram


def roots(bound: BoundProgram) -> Iterator[Task]:
    """All roots, statement by statement."""
    for statement in bound.program.statements:
        yield from _of(bound, statement)


def _of(bound: BoundProgram, statement: Statement) -> Iterator[Task]:
    proof = bound.program.proof
    edges = proof.dependences.to_reader(statement.number)
    if not edges:
        yield from bound.tasks_of(statement.number)
        return
    try:
        free = proof.sets.domain(statement.number)
        for edge in edges:
            read = proof.sets.access(edge.reader, "reads", edge.operand)
            write = proof.sets.access(edge.writer, "writes", edge.output)
            free = free.subtract(read.intersect_range(write.range()).domain())
        points = fixed(proof.sets, free, bound.sizes).make_disjoint()
    except (NotAffine, isl.Error):
        for task in bound.tasks_of(statement.number):
            if not bound.parents(task):
                yield task
        return
    for basic in points.get_basic_sets():
        yield from _scan(statement.number, basic, (), basic.dim(isl.dim_type.set))


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
