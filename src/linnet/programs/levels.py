"""When each task can run at the earliest: its level, the length of the longest chain before it.

For affine programs the level of a statement's task often is itself affine in the loop
variables and sizes (Cholesky: 3i, 3i + 1, 3i + 2). Such a formula is guessed from small
sizes and then proved for all sizes, as a schedule (every task later than its parents) that
is tight (every task right after one of them, or at level 0). Nothing of the size of the
graph is listed. Where no such formula exists, levels are computed from the listed tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import islpy as isl
import numpy as np
import numpy.typing as npt

from linnet.errors import BindError, ProgramError
from linnet.programs.dependences import Edge
from linnet.programs.enumeration import TaskArrays, TooManyRows
from linnet.programs.integer_sets import SET, NotAffine, Sets
from linnet.programs.statements import Statement

if TYPE_CHECKING:
    from linnet.programs.program import TileProgram

_SAMPLE = (4, 6)
_SAMPLE_TASKS = 20_000
_SAMPLE_TILES = 400_000

Formula = tuple[int, ...]
"""Coefficients of the loop variables, then of the sizes, then the constant."""


def asap_levels(arrays: TaskArrays) -> npt.NDArray[np.int64]:
    """Level of every task, by peeling off tasks that wait for nobody."""
    waiting = arrays.in_degree.astype(np.int64)
    level = np.full(len(arrays), -1, dtype=np.int64)
    frontier = np.flatnonzero(waiting == 0)
    step = 0
    while len(frontier):
        level[frontier] = step
        starts, stops = arrays.child_start[frontier], arrays.child_start[frontier + 1]
        lengths = stops - starts
        places = np.arange(int(lengths.sum())) + np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
        touched, times = np.unique(arrays.child[places], return_counts=True)
        waiting[touched] -= times
        frontier = touched[waiting[touched] == 0]
        step += 1
    if (level < 0).any():
        stuck = arrays.task(int(np.flatnonzero(level < 0)[0]))
        raise ProgramError(f"tasks wait for each other in a circle; {stuck!r} is one of them")
    return level


def affine_levels(program: TileProgram) -> list[Formula] | None:
    """A formula for the level of each statement's tasks, proved for all sizes; None when there is none."""
    if program.unproven or program.tables:
        return None
    try:
        guess = _guess(program)
        if guess is not None and _is_tight_schedule(program, guess):
            return guess
    except (NotAffine, isl.Error, TooManyRows):
        pass
    return None


def _guess(program: TileProgram) -> list[Formula] | None:
    """Fit the levels seen at small sizes."""
    rows: list[list[Any]] = [[] for _ in program.statements]
    seen: list[list[Any]] = [[] for _ in program.statements]
    for values in product(_SAMPLE, repeat=len(program.sizes)):
        try:
            bound = program.bind(**dict(zip(program.sizes, values, strict=True)))
        except BindError:
            continue
        if bound.count() > _SAMPLE_TASKS:
            continue
        arrays = replace(bound.enumerator(), most=_SAMPLE_TILES).arrays()
        level = asap_levels(arrays)
        for s, indices in enumerate(arrays.indices):
            ones = np.ones((len(indices), 1))
            rows[s].append(np.hstack([indices, *(ones * v for v in values), ones]))
            seen[s].append(level[arrays.offsets[s] : arrays.offsets[s + 1]])
    formulas: list[Formula] = []
    for matrix, levels in zip(rows, seen, strict=True):
        if not matrix or not sum(map(len, levels)):
            return None
        known, wanted = np.vstack(matrix), np.concatenate(levels)
        solution = np.linalg.lstsq(known, wanted, rcond=None)[0]
        whole = np.rint(solution)
        if not np.array_equal(known @ whole, wanted):
            return None
        formulas.append(tuple(int(v) for v in whole))
    return formulas


def level_function(sets: Sets, statement: Statement, formula: Formula, dims: int, first: int = 0) -> Any:
    """The level of a task as a function on a space whose axes from `first` are its loop variables."""
    zero, sizes, variables = sets.space(dims)
    depth = len(statement.loops)
    level = zero.add_constant_val(isl.Val.int_from_si(sets.context, formula[-1]))
    terms = [*variables[first : first + depth], *sizes]
    for factor, term in zip(formula[:-1], terms, strict=True):
        if factor:
            level = level.add(term.scale_val(isl.Val.int_from_si(sets.context, factor)))
    return level


def _is_tight_schedule(program: TileProgram, formulas: Sequence[Formula]) -> bool:
    sets, edges = program.proof.sets, program.proof.dependences.edges
    for statement in program.statements:
        depth = len(statement.loops)
        level = level_function(sets, statement, formulas[statement.number], depth)
        zero = sets.space(depth)[0]
        loose = sets.domain(statement.number)
        if not loose.intersect(level.lt_set(zero)).is_empty():
            return False
        loose = loose.subtract(level.eq_set(zero))
        for edge in [e for e in edges if e.reader == statement.number]:
            pairs, gap = _gap(program, formulas, edge)
            one = sets.space(pairs.dim(SET))[0].add_constant_val(isl.Val.int_from_si(sets.context, 1))
            if not pairs.intersect(gap.lt_set(one)).is_empty():
                return False
            right_after = pairs.intersect(gap.eq_set(one))
            loose = loose.subtract(right_after.project_out(SET, depth, pairs.dim(SET) - depth))
        if not loose.is_empty():
            return False
    return True


def _gap(program: TileProgram, formulas: Sequence[Formula], edge: Edge) -> tuple[Any, Any]:
    """Pairs (reader, writer) of an edge as one set, and how many levels lie between them."""
    sets = program.proof.sets
    read = sets.access(edge.reader, "reads", edge.operand)
    write = sets.access(edge.writer, "writes", edge.output)
    reader, writer = program.statements[edge.reader], program.statements[edge.writer]
    depth = len(reader.loops)
    dims = depth + len(writer.loops)
    pairs = read.apply_range(write.reverse()).wrap().flatten()
    late = level_function(sets, reader, formulas[edge.reader], dims)
    early = level_function(sets, writer, formulas[edge.writer], dims, depth)
    return pairs, late.sub(early)
