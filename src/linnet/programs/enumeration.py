"""All tasks of a bound program at once, as NumPy arrays.

Engines with a driver take a program this way: columns of loop indices for every
statement, and the dependences as one sparse matrix. Tiles are joined by value (who wrote
the tile this task reads), not by solving, so this also is an independent check of the
solvers; on programs that could not be proved it checks single assignment as it goes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from linnet.errors import SingleAssignmentError, UnwrittenTileError
from linnet.programs.diagnostics import Findings
from linnet.programs.expressions import IntArray, TableValues
from linnet.programs.grammar import Expr, In, Out, Program, Task, Temp
from linnet.programs.statements import Access, Loop, Statement
from linnet.programs.vectors import vectorised

_DENSE = 1 << 22
"""A table of this many tiles is made without asking how many of them are used."""


@dataclass(frozen=True, slots=True)
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
        if not 0 <= number < len(self):
            raise IndexError(f"task number {number} of {len(self)} tasks")
        statement = int(np.searchsorted(self.offsets, number, side="right")) - 1
        row = self.indices[statement][number - self.offsets[statement]]
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
        before = np.cumsum(lengths) - lengths
        within = np.arange(total, dtype=np.int64)
        if count == 1:
            made = {name: np.repeat(column, total) for name, column in table.items()}
            made[loop.variable] = start[0] + step[0] * within
        else:
            within -= np.repeat(before, lengths)
            made = {name: np.repeat(column, lengths) for name, column in table.items()}
            if (step == 1).all():
                within += np.repeat(start, lengths)
            else:
                within = np.repeat(start, lengths) + np.repeat(step, lengths) * within
            made[loop.variable] = within
        for guard in loop.guards:
            made = self.filtered(made, guard)
        return made

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

    def arrays(self) -> TaskArrays:
        """Enumerate tasks and dependences."""
        tables = [self.columns(s.loops, s.guards) for s in self.statements]
        offsets = np.cumsum([0, *(len(t[""]) for t in tables)], dtype=np.int64)
        total = int(offsets[-1])
        number = np.int32 if total < 2**31 else np.int64
        sources: list[IntArray] = []
        targets: list[IntArray] = []
        for array in self.program.roles(In, Out, Temp):
            written = self.written(array, tables, offsets, number)
            for statement, table in zip(self.statements, tables, strict=True):
                for access in statement.reads:
                    if access.array == array and len(table[""]):
                        self.joined(written, statement, access, table, offsets, number, sources, targets)
        start, child = _compressed(sources, targets, total, number)
        indices = tuple(_matrix(s, t) for s, t in zip(self.statements, tables, strict=True))
        degree = np.bincount(child, minlength=total).astype(number)
        return TaskArrays(offsets, indices, start, child, degree)

    def written(
        self, array: str, tables: Sequence[dict[str, Any]], offsets: IntArray, number: Any
    ) -> _Written:
        parts: list[_Part] = []
        for statement, table in zip(self.statements, tables, strict=True):
            for access in statement.writes:
                if access.array != array:
                    continue
                row, index = self.tiles(table, access)
                base = np.arange(len(table[""]), dtype=number) if row is None else row.astype(number)
                parts.append(_Part(statement, access, base, base + number(offsets[statement.number]), index))
        made = _Written(array, parts)
        if made.twice is not None:
            self.refuse_second(made, tables)
        return made

    def refuse_second(self, written: _Written, tables: Sequence[dict[str, Any]]) -> None:
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
        self,
        written: _Written,
        statement: Statement,
        access: Access,
        table: dict[str, Any],
        offsets: IntArray,
        number: Any,
        sources: list[IntArray],
        targets: list[IntArray],
    ) -> None:
        """Add the dependences of one access of one statement."""
        if written.empty and not self.checked:
            return
        row, index = self.tiles(table, access)
        writer = written.find(index)
        found = writer >= 0
        if self.checked and not found.all():
            self.check_read(statement, access, index, found, table, row)
        reader = np.arange(len(table[""]), dtype=number) if row is None else row.astype(number)
        if not found.all():
            writer, reader = writer[found], reader[found]
        sources.append(writer.astype(number))
        targets.append(reader + number(offsets[statement.number]))

    def check_read(
        self, statement: Statement, access: Access, index: list[IntArray], found: Any, table: Any, row: Any
    ) -> None:
        role = self.program.roles(In, Out, Temp)[access.array]
        if isinstance(role, In) or (isinstance(role, Out) and role.fill is not None):
            return
        missing = ~found
        if isinstance(role, Temp) and role.of:
            missing &= index[0] != 0
        if not missing.any():
            return
        place = int(np.flatnonzero(missing)[0])
        tile = [int(column[place]) for column in index] if access.index else []
        task = _task_text(statement, table, place if row is None else int(row[place]))
        findings = Findings(self.program.name, self.program.file, self.program.source)
        findings.add(
            f"{access.array}{tile} is read by {task}{self.when()}, but no task writes it and it is no input",
            "write it, or narrow the loop that reads it",
            access.at,
        )
        findings.raise_if_any(UnwrittenTileError)


@dataclass(frozen=True, slots=True)
class _Part:
    """The tiles that one access writes."""

    statement: Statement
    access: Access
    rows: IntArray
    """Row of the statement's table that each write belongs to."""
    tasks: IntArray
    """Number of the task of each write."""
    index: list[IntArray]


class _Written:
    """Who writes each tile of one array."""

    def __init__(self, array: str, parts: list[_Part]) -> None:
        self.array = array
        self.parts = parts
        self.twice: tuple[int, int] | None = None
        """Places of two writes of the same tile."""
        self.empty = not sum(len(p.tasks) for p in parts)
        if self.empty:
            return
        axes = range(len(parts[0].index))
        joined = [np.concatenate([p.index[k] for p in parts]) for k in axes]
        task = np.concatenate([p.tasks for p in parts])
        self.low = [int(c.min()) for c in joined]
        self.high = [int(c.max()) for c in joined]
        self.extent = [h - low + 1 for low, h in zip(self.low, self.high, strict=True)]
        volume = 1
        for extent in self.extent:
            volume *= extent
        if volume >= 2**62:
            raise OverflowError(
                f"array {array!r} spans {volume:.1e} tiles, more than can be numbered; use denser indices"
            )
        keys = self.keys(joined)
        if volume <= max(_DENSE, 16 * len(task)):
            self.table = np.full(volume, -1, dtype=task.dtype)
            self.table[keys] = task
            if np.count_nonzero(self.table >= 0) != len(keys):
                self.twice = _repeated(keys)
            self.sorted = None
        else:
            order = np.argsort(keys, kind="stable")
            self.table, self.sorted = task[order], keys[order]
            self.twice = _repeated(keys)

    def part(self, place: int) -> tuple[_Part, int]:
        """The access that made a write, and which of its writes it is."""
        for part in self.parts:
            if place < len(part.tasks):
                return part, place
            place -= len(part.tasks)
        raise IndexError(place)

    def keys(self, columns: list[IntArray]) -> IntArray:
        key = columns[0] - self.low[0]
        for column, low, extent in zip(columns[1:], self.low[1:], self.extent[1:], strict=True):
            key = key * extent + (column - low)
        return key

    def find(self, index: list[IntArray]) -> IntArray:
        """The number of the task that writes each tile, or -1."""
        count = len(index[0]) if index else 0
        if self.empty:
            return np.full(count, -1, dtype=np.int64)
        inside = np.ones(count, dtype=bool)
        for column, low, high in zip(index, self.low, self.high, strict=True):
            inside &= (column >= low) & (column <= high)
        everywhere = bool(inside.all())
        keys = self.keys(index if everywhere else [c[inside] for c in index])
        if self.sorted is None:
            writer = self.table[keys]
        else:
            place = np.minimum(np.searchsorted(self.sorted, keys), len(self.sorted) - 1)
            writer = np.where(self.sorted[place] == keys, self.table[place], -1)
        if everywhere:
            return writer
        found = np.full(count, -1, dtype=self.table.dtype)
        found[inside] = writer
        return found


def _repeated(keys: IntArray) -> tuple[int, int] | None:
    """Places of two equal keys, or None."""
    order = np.argsort(keys, kind="stable")
    same = np.flatnonzero(np.diff(keys[order]) == 0)
    return (int(order[same[0]]), int(order[same[0] + 1])) if len(same) else None


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
