"""Group-by-joins found in a program: statements that pair tiles of two operands and sum over what they share.

`C[i, j] = gemm(A[i, 0:K], B[0:K, j])`, `P[k + 1, i, j] = gemm_add(P[k, i, j], A[i, k], B[k, j])` and the
update of a factorisation are such statements: one operand has loop variables that another has not, and the
other way round. Each of their tasks is given three coordinates: along the rows that only the first operand
has, the columns that only the second has, and the layer, what else the first is indexed with (the summed
index, or that of a stack of products). They are indices of tiles, so that they mean the same in statements
that begin, continue and end a sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.planning.workload import Workload
from linnet.programs.columns import vectorised
from linnet.programs.expressions import names, substitute
from linnet.programs.grammar import Expr
from linnet.programs.statements import Access, Statement

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Join:
    """A statement that joins two operands, and the coordinates of its tasks."""

    statement: int
    tasks: Numbers
    left: str
    """The array of the first operand: it has the rows."""
    right: str
    """The array of the second: it has the columns."""
    row: Numbers
    column: Numbers
    layer: Numbers
    layers: int
    """Values that the layer can take in the whole program."""


def joins(work: Workload) -> list[Join]:
    """The group-by-joins of a program, heaviest first."""
    weighed: list[tuple[float, Join]] = []
    flops = np.bincount(work.statement, work.flops, len(work.bound.program.statements))
    for statement in work.bound.program.statements:
        pair = _pair(statement)
        first, last = work.tasks.offsets[statement.number : statement.number + 2].tolist()
        tasks = np.arange(first, last, dtype=np.int64)
        if pair is not None and len(tasks):
            weighed.append((float(flops[statement.number]), _join(work, statement, tasks, *pair)))
    ranked = [join for _, join in sorted(weighed, key=lambda item: -item[0])]
    rows, columns = (_values(ranked, name) for name in ("row", "column"))
    return [
        replace(join, row=np.searchsorted(rows, join.row), column=np.searchsorted(columns, join.column))
        for join in ranked
    ]


def _values(found: list[Join], name: str) -> Numbers:
    """The different values of a coordinate: loops with steps leave some out."""
    return (
        np.unique(np.concatenate([getattr(join, name) for join in found])) if found else np.zeros(0, np.int64)
    )


def _pair(statement: Statement) -> tuple[Access, Access] | None:
    """Two operands, each with a loop variable that the other has not."""
    loops = frozenset(statement.variables)
    whole = [access for access in statement.reads if not access.guards and access.index]
    for left, right in permutations(whole, 2):
        ours, theirs = _variables(left, loops), _variables(right, loops)
        if ours - theirs and theirs - ours:
            return left, right
    return None


def _variables(access: Access, loops: frozenset[str]) -> frozenset[str]:
    return frozenset[str]().union(*(names(expr) & loops for expr in _starts(access)))


def _starts(access: Access) -> list[Expr]:
    """The indices of the first tile that an access names."""
    first: dict[str, Expr] = {loop.variable: loop.start for loop in access.locals}
    return [substitute(expr, first) for expr in access.index]


def _join(work: Workload, statement: Statement, tasks: Numbers, left: Access, right: Access) -> Join:
    loops = frozenset(statement.variables)
    ours, theirs = _variables(left, loops), _variables(right, loops)
    values: dict[str, Any] = dict(work.bound.sizes)
    for axis, variable in enumerate(statement.variables):
        values[variable] = work.tasks.indices[statement.number][:, axis]
    rows = [axis for axis, expr in enumerate(_starts(left)) if names(expr) & (ours - theirs)]
    columns = [axis for axis, expr in enumerate(_starts(right)) if names(expr) & (theirs - ours)]
    others = [axis for axis in range(len(left.index)) if axis not in rows]
    row, _ = _coordinate(work, left, rows, values, len(tasks))
    column, _ = _coordinate(work, right, columns, values, len(tasks))
    layer, layers = _coordinate(work, left, others, values, len(tasks))
    return Join(statement.number, tasks, left.array, right.array, row, column, layer, layers)


def _coordinate(
    work: Workload, access: Access, axes: Sequence[int], values: Mapping[str, Any], count: int
) -> tuple[Numbers, int]:
    """A number for the indices along some axes, and how many there can be; of a range it takes the start."""
    starts = _starts(access)
    number = work.names.index(access.array) if access.array in work.names else None
    coordinate, size = np.zeros(count, np.int64), 1
    for axis in axes:
        index = vectorised(starts[axis], values, work.bound.tables)
        column = np.broadcast_to(np.asarray(index, np.int64), (count,))
        extent = int(column.max()) + 1
        if number is not None:
            extent = max(extent, int(work.tile_index[number][:, axis].max()) + 1)
        coordinate, size = coordinate * extent + column, size * extent
    return coordinate, size
