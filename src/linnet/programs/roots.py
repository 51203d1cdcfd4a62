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
    from linnet.programs.program import BoundProgram


def roots(bound: BoundProgram) -> Iterator[Task]:
    """All roots, statement by statement."""
    for statement in bound.program.statements:
        yield from _of(bound, statement)


def _of(bound: BoundProgram, statement: Statement) -> Iterator[Task]:
    proof = bound.program._proof
    edges = proof.dependences.to_reader(statement.number)
    try:
        free = proof.sets.domain(statement.number)
        for edge in edges:
            read = proof.sets.access(edge.reader, "reads", edge.operand)
            write = proof.sets.access(edge.writer, "writes", edge.output)
            free = free.subtract(read.intersect_range(write.range()).domain())
        yield from _points(statement.number, fixed(proof.sets, free, bound.sizes))
    except (NotAffine, isl.Error):
        yield from _tested(bound, statement, bool(edges))


def _tested(bound: BoundProgram, statement: Statement, waits: bool) -> Iterator[Task]:
    """Every task of the statement, asked for its parents."""
    rows: Any = bound._enumerator().columns(statement.loops, statement.guards)
    columns = [rows[v].tolist() for v in statement.variables]
    tuples = zip(*columns, strict=True) if columns else iter([()] * len(rows[""]))
    for indices in tuples:
        task = Task(statement.number, indices)
        if not (waits and bound.parents(task)):
            yield task


def _points(number: int, points: Any) -> Iterator[Task]:
    """The points of a bounded set, one after another."""
    dims = points.dim(isl.dim_type.set)
    if dims == 0:
        if not points.is_empty():
            yield Task(number, ())
        return
    for basic in points.make_disjoint().get_basic_sets():
        yield from _scan(number, basic.to_set(), (), dims)


def _scan(number: int, points: Any, before: tuple[int, ...], dims: int) -> Iterator[Task]:
    """Fix one axis after another between its least and greatest value."""
    if points.is_empty():
        return
    axis = len(before)
    low = points.dim_min_val(axis).to_python()
    high = points.dim_max_val(axis).to_python()
    for value in range(low, high + 1):
        if axis + 1 == dims:
            if low == high or not points.fix_val(isl.dim_type.set, axis, value).is_empty():
                yield Task(number, (*before, value))
        else:
            yield from _scan(number, points.fix_val(isl.dim_type.set, axis, value), (*before, value), dims)
