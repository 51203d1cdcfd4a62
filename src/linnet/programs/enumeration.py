"""All tasks of a bound program at once, as NumPy arrays.

Engines with a driver take a program this way: columns of loop indices for every
statement, and the dependences as one sparse matrix. Tiles are joined by value (who wrote
the tile this task reads), not by solving, so this also is an independent check of the
solvers; on programs that could not be proved it checks single assignment as it goes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from linnet.errors import SingleAssignmentError, UnwrittenTileError
from linnet.programs.columns import vectorised
from linnet.programs.diagnostics import Findings
from linnet.programs.expressions import IntArray, TableValues
from linnet.programs.grammar import Expr, In, Out, Program, Task, Temp, fill_of
from linnet.programs.statements import Access, Loop, Statement
from linnet.programs.writers import Part, Written
from linnet.records import record


class TooManyRows(Exception):
    """An enumeration would be longer than was allowed."""


@record
class TaskArrays:
    """Every task and every dependence of a bound program.

    Tasks are numbered statement by statement, within one in the order of its loops.
    """

    offsets: npt.NDArray[np.int64]
    """Number of the first task of each statement; the last entry is the number of tasks."""
    indices: tuple[npt.NDArray[np.int64], ...]
    """For each statement its tasks' loop indices, one row a task."""
    child_start: npt.NDArray[Any]
    """Children of task t are `child[child_start[t]:child_start[t + 1]]`."""
    child: npt.NDArray[Any]
    in_degree: npt.NDArray[Any]
    """How many tasks each task waits for."""

    def __len__(self) -> int:
        return int(self.offsets[-1])

    def task(self, number: int) -> Task:
        """The task with this number."""
        offsets = self.offsets.data  # a view that gives plain integers: this is asked for every task
        if not 0 <= number < offsets[-1]:
            raise IndexError(f"task number {number} of {len(self)} tasks")
        statement = bisect_right(offsets, number) - 1
        row = self.indices[statement][number - offsets[statement]]
        return Task(statement, tuple(row.tolist()))

    def number(self, task: Task) -> int:
        """The number of a task."""
        rows = self.indices[task.statement]
        low, high = 0, len(rows)
        for axis, value in enumerate(task.indices):
            column = rows[low:high, axis]
            down = len(column) > 1 and column[0] > column[-1]
            key, ordered = (-value, -column) if down else (value, column)
            low, high = (
                low + int(np.searchsorted(ordered, key, side="left")),
                low + int(np.searchsorted(ordered, key, side="right")),
            )
        if high - low != 1:
            raise KeyError(f"{task!r} is not a task of this program")
        return int(self.offsets[task.statement]) + low

    def children(self, number: int) -> npt.NDArray[Any]:
        """Numbers of the tasks that read what this task writes."""
        return self.child[self.child_start[number] : self.child_start[number + 1]]


@dataclass(slots=True)
class Enumerator:
    """Enumerates the tasks of a program bound to sizes and tables."""

    program: Program
    statements: Sequence[Statement]
    sizes: Mapping[str, int]
    tables: Mapping[str, TableValues]
    checked: bool
    """Whether to look for tiles written twice or never: programs that are proved need no look."""

    most: int | None = None
    """TooManyRows where a list would be longer than this."""

    roles: dict[str, Any] = field(init=False)
    """Of the arrays."""

    def __post_init__(self) -> None:
        self.roles = self.program.roles(In, Out, Temp)

    def columns(self, loops: Sequence[Loop], guards: Sequence[Expr]) -> dict[str, Any]:
        """Values of every loop variable, a column each, in the order of the loops."""
        table: dict[str, Any] = {"": np.zeros(1, dtype=np.int64)}
        for guard in guards:
            table = self.filtered(table, guard)
        for loop in loops:
            table = self.expanded(table, loop)
        return table

    def expanded(self, table: dict[str, Any], loop: Loop) -> dict[str, Any]:
        """One more loop: each row is repeated for the values of the loop's variable."""
        count = len(table[""])
        values = {**self.sizes, **table}
        start, stop, step = (
            np.broadcast_to(np.asarray(vectorised(e, values, self.tables), dtype=np.int64), (count,))
            for e in (loop.start, loop.stop, loop.step)
        )
        if (step == 0).any():
            raise ValueError("the step of a loop is 0")
        lengths = np.maximum(0, -((start - stop) // step))
        total = int(lengths.sum())
        if self.most is not None and total > self.most:
            raise TooManyRows(f"{total:,} rows, at most {self.most:,}")
        before = np.cumsum(lengths) - lengths
        within = np.arange(total, dtype=np.int64)
        if count == 1:
            longer = {name: np.repeat(column, total) for name, column in table.items()}
            longer[loop.variable] = start[0] + step[0] * within
        else:
            within -= np.repeat(before, lengths)
            longer = {name: np.repeat(column, lengths) for name, column in table.items()}
            if (step == 1).all():
                within += np.repeat(start, lengths)
            else:
                within = np.repeat(start, lengths) + np.repeat(step, lengths) * within
            longer[loop.variable] = within
        for guard in loop.guards:
            longer = self.filtered(longer, guard)
        return longer

    def filtered(self, table: dict[str, Any], guard: Expr) -> dict[str, Any]:
        if not len(table[""]):
            return table
        keep = np.asarray(vectorised(guard, {**self.sizes, **table}, self.tables), dtype=bool)
        if keep.ndim == 0:
            keep = np.full(len(table[""]), bool(keep))
        if keep.all():
            return table
        return {name: column[keep] for name, column in table.items()}

    def tiles(self, table: dict[str, Any], access: Access) -> tuple[Any, list[Any]]:
        """Rows of `table`, and for each the index of a tile that `access` names there."""
        rows = {"row": np.arange(len(table[""])), **table} if (access.locals or access.guards) else table
        for guard in access.guards:
            rows = self.filtered(rows, guard)
        for loop in access.locals:
            rows = self.expanded(rows, loop)
        count = len(rows[""])
        values = {**self.sizes, **rows}
        if not count:
            return np.zeros(0, dtype=np.int64), [np.zeros(0, dtype=np.int64) for _ in access.index or (0,)]
        if not access.index:  # an array without axes has one tile, kept at 0
            return rows.get("row"), [np.zeros(count, dtype=np.int64)]
        index = [
            np.broadcast_to(np.asarray(vectorised(e, values, self.tables), dtype=np.int64), (count,))
            for e in access.index
        ]
        return rows.get("row"), index

    def listed(self) -> list[dict[str, Any]]:
        """The columns of every statement."""
        return [self.columns(s.loops, s.guards) for s in self.statements]

    def arrays(self, known: Sequence[dict[str, Any]] | None = None) -> TaskArrays:
        """Enumerate tasks and dependences; `known` are the columns, where they were listed before."""
        tables = self.listed() if known is None else [dict(table) for table in known]
        offsets = np.cumsum([0, *(len(t[""]) for t in tables)], dtype=np.int64)
        total = int(offsets[-1])
        number = np.int32 if total < 2**31 else np.int64
        sources: list[IntArray] = []
        targets: list[IntArray] = []
        writes, reads = _by_array(self.statements, "writes"), _by_array(self.statements, "reads")
        for array in self.roles:
            written = self.written(array, writes.get(array, ()), tables, offsets, number)
            for statement, access in reads.get(array, ()):
                table = tables[statement.number]
                if not len(table[""]):
                    continue
                writer, reader = self.joined(written, statement, access, table, number)
                if self.checked:
                    self.check_order(statement, access, writer, reader, tables, offsets)
                sources.append(writer)
                targets.append(reader + number(offsets[statement.number]))
        start, child = _compressed(sources, targets, total, number)
        indices = tuple(_matrix(s, t) for s, t in zip(self.statements, tables, strict=True))
        degree = np.bincount(child, minlength=total).astype(number)
        return TaskArrays(offsets, indices, start, child, degree)

    def written(
        self,
        array: str,
        writes: Sequence[tuple[Statement, Access]],
        tables: Sequence[dict[str, Any]],
        offsets: IntArray,
        number: Any,
    ) -> Written:
        parts: list[Part] = []
        for statement, access in writes:
            table = tables[statement.number]
            row, index = self.tiles(table, access)
            base = np.arange(len(table[""]), dtype=number) if row is None else row.astype(number)
            parts.append(Part(statement, access, base, base + number(offsets[statement.number]), index))
        written = Written(array, parts)
        if written.twice is not None:
            self.refuse_second(written, tables)
        return written

    def refuse_second(self, written: Written, tables: Sequence[dict[str, Any]]) -> None:
        """Two writes of one tile: say which tasks they are."""
        assert written.twice is not None
        (one, first), (other, second) = (written.part(place) for place in written.twice)
        tile = [int(column[second]) for column in other.index] if other.access.index else []
        here = _task_text(other.statement, tables[other.statement.number], int(other.rows[second]))
        there = _task_text(one.statement, tables[one.statement.number], int(one.rows[first]))
        findings = Findings(self.program.name, self.program.file, self.program.source)
        findings.add(
            f"{written.array}{tile} is written twice{self.when()}: by {there} and by {here}",
            "each tile is written once: add an index (a version), or narrow the loops",
            other.access.at,
        )
        findings.raise_if_any(SingleAssignmentError)

    def when(self) -> str:
        return f" when {', '.join(f'{n} = {v}' for n, v in self.sizes.items())}" if self.sizes else ""

    def joined(
        self, written: Written, statement: Statement, access: Access, table: dict[str, Any], number: Any
    ) -> tuple[IntArray, IntArray]:
        """The dependences of one access: numbers of writers, and rows of the reading statement."""
        if written.empty and not (self.checked and self.must_be_written(access)):
            return written.nobody(number), written.nobody(number)
        row, index = self.tiles(table, access)
        writer = written.find(index)
        written_by_a_task = writer >= 0
        reader = np.arange(len(table[""]), dtype=number) if row is None else row.astype(number)
        if not written_by_a_task.all():
            if self.checked:
                self.check_read(statement, access, index, written_by_a_task, table, reader)
            writer, reader = writer[written_by_a_task], reader[written_by_a_task]
        return writer.astype(number), reader

    def check_order(
        self,
        reader: Statement,
        access: Access,
        writers: IntArray,
        rows: IntArray,
        tables: Sequence[dict[str, Any]],
        offsets: IntArray,
    ) -> None:
        """Every writer runs before its reader when the loops run one after another."""
        table = tables[reader.number]
        owners: IntArray = np.searchsorted(offsets, writers, side="right") - 1
        present: set[int] = set(owners.tolist())
        for owner in sorted(present):
            writer, mine = self.statements[owner], owners == owner
            source, target = writers[mine] - offsets[writer.number], rows[mine]
            late = np.zeros(len(source), dtype=bool)
            equal = np.ones(len(source), dtype=bool)
            shared = _shared_loops(writer, reader)
            for k in range(shared):
                values = {**self.sizes, **{n: c[target] for n, c in table.items()}}
                sign = np.sign(vectorised(reader.loops[k].step, values, self.tables))
                a = tables[writer.number][writer.loops[k].variable][source] * sign
                b = table[reader.loops[k].variable][target] * sign
                late |= equal & (a > b)
                equal &= a == b
            if writer.place[shared] >= reader.place[shared]:
                late |= equal
            if late.any():
                self.refuse_early(reader, writer, access, int(target[late][0]), int(source[late][0]), tables)

    def refuse_early(
        self,
        reader: Statement,
        writer: Statement,
        access: Access,
        row: int,
        writer_row: int,
        tables: Sequence[dict[str, Any]],
    ) -> None:
        findings = Findings(self.program.name, self.program.file, self.program.source)
        findings.add(
            f"a tile of {access.array!r} is read by {_task_text(reader, tables[reader.number], row)} "
            f"before it is written, by {_task_text(writer, tables[writer.number], writer_row)}{self.when()}",
            "read an earlier version, or put the write before the read",
            access.at,
        )
        findings.raise_if_any(UnwrittenTileError)

    def must_be_written(self, access: Access) -> bool:
        """Whether a tile of this array that is read must have a writer (or be version 0)."""
        role = self.roles[access.array]
        return not isinstance(role, In) and fill_of(role) is None

    def check_read(
        self, statement: Statement, access: Access, index: list[IntArray], found: Any, table: Any, rows: Any
    ) -> None:
        if not self.must_be_written(access):
            return
        role = self.roles[access.array]
        missing = ~found
        if isinstance(role, Temp) and role.of:
            missing &= index[0] != 0
        if not missing.any():
            return
        place = int(np.flatnonzero(missing)[0])
        tile = [int(column[place]) for column in index] if access.index else []
        task = _task_text(statement, table, int(rows[place]))
        findings = Findings(self.program.name, self.program.file, self.program.source)
        findings.add(
            f"{access.array}{tile} is read by {task}{self.when()}, but no task writes it and it is no input",
            "write it, or narrow the loop that reads it",
            access.at,
        )
        findings.raise_if_any(UnwrittenTileError)


def _by_array(statements: Sequence[Statement], kind: str) -> dict[str, list[tuple[Statement, Access]]]:
    """The accesses of all statements, by the array they name."""
    accesses: dict[str, list[tuple[Statement, Access]]] = {}
    for statement in statements:
        for access in getattr(statement, kind):
            accesses.setdefault(access.array, []).append((statement, access))
    return accesses


def _shared_loops(one: Statement, other: Statement) -> int:
    """How many loops two statements stand in together."""
    depth = min(len(one.loops), len(other.loops))
    return next((k for k in range(depth) if one.place[k] != other.place[k]), depth)


def _task_text(statement: Statement, table: dict[str, Any], row: int) -> str:
    """A task in words: its kernel and loop values."""
    pairs = ", ".join(f"{v}={int(table[v][row])}" for v in statement.variables)
    return f"{statement.kernel} ({pairs})" if pairs else statement.kernel


def _matrix(statement: Statement, table: dict[str, Any]) -> npt.NDArray[np.int64]:
    rows = np.empty((len(table[""]), len(statement.loops)), dtype=np.int64)
    for axis, variable in enumerate(statement.variables):
        rows[:, axis] = table.pop(variable)
    return rows


def _compressed(sources: list[Any], targets: list[Any], total: int, number: Any) -> tuple[Any, Any]:
    """Edges as compressed rows, each edge once."""
    from scipy.sparse import coo_array

    if not sources:
        return np.zeros(total + 1, dtype=number), np.zeros(0, dtype=number)
    source = np.concatenate(sources)
    sources.clear()
    target = np.concatenate(targets)
    targets.clear()
    edges = coo_array((np.ones(len(source), dtype=np.int8), (source, target)), shape=(total, total)).tocsr()
    edges.sum_duplicates()
    return edges.indptr, edges.indices
