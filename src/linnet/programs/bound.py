"""A program at given sizes: what can be asked of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from operator import index
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.errors import BindError, ProgramError, SingleAssignmentError
from linnet.programs.diagnostics import Findings
from linnet.programs.enumeration import Enumerator, TaskArrays
from linnet.programs.expressions import TableValues, evaluate, names
from linnet.programs.generated import Call
from linnet.programs.grammar import Expr, In, Task, Temp
from linnet.programs.printing import show_expr, show_run
from linnet.programs.statements import Access, Statement
from linnet.tiles import TileKey

if TYPE_CHECKING:
    from linnet.programs.profile import Profile
    from linnet.programs.program import TileProgram

# What needs isl is imported when first used: `import linnet` alone should cost little.


class BoundProgram:
    """A program at given sizes: its tasks, and who depends on whom.

    Nothing of the size of the graph is stored; every question is answered from the program.
    """

    def __init__(self, program: TileProgram, given: Mapping[str, Any]) -> None:
        self.program = program
        values, tables = _bound_values(program, given)
        self.sizes: Mapping[str, int] = MappingProxyType(values)
        self.tables: Mapping[str, TableValues] = MappingProxyType(
            {**tables, **{n: TableValues(n, v) for n, v in program.tree.tables}}
        )
        _check_assumptions(program, self.sizes, self.tables)
        self._functions: dict[tuple[str, int | str], Callable[..., Any]] = {}
        count = len(program.statements)
        self._by_kind: dict[str, list[Callable[..., Any] | None]] = {
            kind: [None] * count for kind in ("children", "parents", "in_degree", "call")
        }

    def _function(self, kind: str, which: int | str) -> Callable[..., Any]:
        key = (kind, which)
        function = self._functions.get(key)
        if function is None:
            self._checked_statement(which)
            make = self.program.compiled.function(kind, which)
            function = self._functions[key] = make(*self.sizes.values(), *self.tables.values())
        return function

    def prepare(self) -> None:
        """Make what answers questions about tasks and tiles now, not when the first is asked."""
        for statement in self.program.statements:
            for kind in ("contains", *self._by_kind):
                self._function(kind, statement.number)
        for array in self.program.arrays:
            for kind in ("readers", "writer"):
                self._function(kind, array)

    def _checked_statement(self, which: int | str) -> None:
        if isinstance(which, int) and not 0 <= which < len(self.program.statements):
            raise ProgramError(
                f"{self.program.name!r} has statements 0 to {len(self.program.statements) - 1}; "
                f"statement {which} was asked for"
            )

    def children(self, task: Task) -> list[Task]:
        """Tasks that read what `task` writes, each once."""
        return self._ask("children", task)

    def parents(self, task: Task) -> list[Task]:
        """Tasks that write what `task` reads, each once."""
        return self._ask("parents", task)

    def in_degree(self, task: Task) -> int:
        """How many tasks `task` waits for."""
        return self._ask("in_degree", task)

    def call(self, task: Task) -> Call:
        """The kernel call that `task` makes, with its tiles and numbers."""
        return self._ask("call", task)

    def calls(self, arrays: TaskArrays) -> list[Callable[[int], Call]]:
        """For each statement, a function from the place of a task in `arrays.indices` to its call.

        For engines, which ask for every task: these tasks are known to exist, and need no look.
        """
        columns = [tuple(rows[:, axis].data for axis in range(rows.shape[1])) for rows in arrays.indices]
        return [self._function("call_at", number)(each) for number, each in enumerate(columns)]

    def _ask(self, kind: str, task: Task) -> Any:
        """Hand a task to the function generated for its statement."""
        try:
            statement, indices = task
            functions = self._by_kind[kind]
            function = functions[statement] if statement >= 0 else None
            if function is None:
                function = functions[statement] = self._function(kind, statement)
            return function(indices)
        except ZeroDivisionError as error:
            raise ProgramError(f"division by zero in {self.where(task)}") from error
        except (IndexError, ValueError, TypeError):
            self._refuse(task)
            raise

    def _refuse(self, task: Task) -> None:
        """Say what is wrong with a task that no generated function could take."""
        self._checked_statement(task[0])
        depth = len(self.program.statements[task[0]].loops)
        if len(task[1]) != depth:
            raise ProgramError(
                f"{task!r}: statement {task[0]} stands in {depth} loops, "
                f"but {len(task[1])} indices were given"
            )

    def __contains__(self, task: Task) -> bool:
        statement, indices = task
        if not 0 <= statement < len(self.program.statements):
            return False
        if len(indices) != len(self.program.statements[statement].loops):
            return False
        return bool(self._function("contains", statement)(indices))

    def readers(self, key: TileKey) -> list[Task]:
        """Tasks that read a tile."""
        return self._function("readers", self._array(key))(key.index)

    def writer(self, key: TileKey) -> Task | None:
        """The task that writes a tile, or None."""
        tasks = self._function("writer", self._array(key))(key.index)
        if len(tasks) > 1:
            raise SingleAssignmentError(f"{key!r} is written by {tasks[0]!r} and by {tasks[1]!r}")
        return tasks[0] if tasks else None

    def _array(self, key: TileKey) -> str:
        if key.array not in self.program.arrays:
            known = ", ".join(self.program.arrays)
            raise ProgramError(f"{self.program.name!r} has no array {key.array!r}; its arrays are {known}")
        return key.array

    def tasks(self) -> Iterator[Task]:
        """All tasks, in the order in which the program runs them one after another."""
        return self._listed("tasks", "")

    def _listed(self, kind: str, which: int | str) -> Iterator[Task]:
        try:
            yield from self._function(kind, which)(())
        except ZeroDivisionError as error:
            raise ProgramError(f"division by zero in the loops of {self!r}") from error

    def tasks_of(self, statement: int) -> Iterator[Task]:
        """All tasks of one statement."""
        return self._listed("domain", statement)

    def task_arrays(self) -> TaskArrays:
        """All tasks and dependences as NumPy arrays, for engines that want the whole graph."""
        return self.enumerator().arrays()

    def enumerator(self) -> Enumerator:
        """What lists tasks and tiles as columns."""
        program = self.program
        checked = not program.proven
        return Enumerator(program.tree, program.statements, self.sizes, self.tables, checked)

    def roots(self) -> Iterator[Task]:
        """Tasks that wait for nobody, statement by statement."""
        from linnet.programs.roots import roots

        return roots(self)

    def count(self) -> int:
        """Number of tasks, without listing them where the loops are affine."""
        return sum(self.counts)

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Number of tasks of each statement."""
        from linnet.programs.counting import count_tasks

        program = self.program
        return count_tasks(program.proof.sets, program.statements, self.sizes, self.enumerator())

    def profile(self, tile: int | tuple[int, ...] | None = None, dtype: Any = np.float64) -> Profile:
        """Tasks, work, and how parallelism and working set go over time; see Profile."""
        from linnet.programs.profile import profile

        return profile(self, tile, dtype)

    def grid(self, array: str) -> tuple[int, ...]:
        """How many tiles an array spans along each axis: those written, or for an input those read."""
        self._array(TileKey(array, ()))
        kind = "reads" if isinstance(self.program.arrays[array], In) else "writes"
        extents: list[tuple[int, ...]] = []
        for statement in self.program.statements:
            accesses: tuple[Access, ...] = getattr(statement, kind)
            for slot, access in enumerate(accesses):
                if access.array == array:
                    extents.append(self._extent(statement, kind, slot, access))
        return tuple(max(axis) for axis in zip(*extents, strict=True))

    def _extent(self, statement: Statement, kind: str, slot: int, access: Access) -> tuple[int, ...]:
        from linnet.programs.counting import extent

        lengths = extent(self.program.proof.sets, statement.number, kind, slot, self.sizes)
        if lengths is None:
            enumerator = self.enumerator()
            table = enumerator.columns(statement.loops, statement.guards)
            _, index = enumerator.tiles(table, access)
            lengths = tuple(int(c.max()) + 1 if len(c) else 0 for c in index[: len(access.index)])
        return lengths

    def verify(self, most: int | None = None) -> None:
        """Look at every task: each tile written once, before it is read, and none missing.

        TooManyRows where more than `most` tiles would have to be listed.
        """
        enumerator = replace(self.enumerator(), checked=True, most=most)
        enumerator.arrays()
        self._check_version_zero(enumerator)

    def _check_version_zero(self, enumerator: Enumerator) -> None:
        bases = {n: r.of for n, r in self.program.arrays.items() if isinstance(r, Temp) and r.of}
        for statement in self.program.statements:
            for access in statement.writes:
                if access.array not in bases:
                    continue
                _, index = enumerator.tiles(enumerator.columns(statement.loops, statement.guards), access)
                if (index[0] == 0).any():
                    findings = Findings(self.program.name, self.program.tree.file, self.program.tree.source)
                    findings.add(
                        f"version 0 of {access.array!r} is {bases[access.array]!r} and is not written, but "
                        f"{statement.kernel} writes it{enumerator.when()}",
                        f"let the first index of {access.array} start at 1",
                        access.at,
                    )
                    findings.raise_if_any(SingleAssignmentError)

    def where(self, task: Task) -> str:
        """Where a task stands in the source, and with which loop values, for messages."""
        statement = self.program.statements[task[0]]
        run = statement.run
        line = f":{run.at.line}" if run.at and run.at.line else ""
        values = ", ".join(f"{v}={x}" for v, x in zip(statement.variables, task[1], strict=True))
        return f"{self.program.tree.file}{line}: {show_run(run)}" + (f"  with {values}" if values else "")

    def __reduce__(self) -> tuple[Any, ...]:
        values = {**self.sizes, **{n: list(self.tables[n].values()) for n in self.program.tables}}
        return BoundProgram, (self.program, values)

    def __repr__(self) -> str:
        values = [f"{n}={v}" for n, v in self.sizes.items()]
        values += [f"{n}=<{len(self.tables[n])} entries>" for n in self.program.tables]
        return f"{self.program.name}.bind({', '.join(values)})"

    def _repr_html_(self) -> str:
        from linnet.reports.html_facts import facts_as_html

        told = {"sizes": ", ".join(f"{name} = {size:,}" for name, size in self.sizes.items())}
        return facts_as_html(f"Bound program {self.program.name}", {**told, "tasks": f"{self.count():,}"})


def _bound_values(
    program: TileProgram, given: Mapping[str, Any]
) -> tuple[dict[str, int], dict[str, TableValues]]:
    wanted = [*program.sizes, *program.tables]
    missing = [n for n in wanted if n not in given]
    unknown = [n for n in given if n not in wanted]
    if missing or unknown:
        parts = [f"missing: {', '.join(missing)}"] if missing else []
        parts += [f"unknown: {', '.join(unknown)}"] if unknown else []
        raise BindError(
            f"{program.name!r} is bound with {', '.join(wanted) or 'no sizes'}; {'; '.join(parts)}"
        )
    sizes: dict[str, int] = {}
    for name in program.sizes:
        value = given[name]
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise BindError(f"size {name} of {program.name!r} must be an integer, not {value!r}")
        sizes[name] = index(value)
        if not 0 <= sizes[name] < 2**62:
            raise BindError(f"size {name} of {program.name!r} must be 0 or more, not {value}")
    tables: dict[str, TableValues] = {}
    for name in program.tables:
        tables[name] = TableValues(name, _table_entries(program, name, given[name]))
    return sizes, tables


def _table_entries(program: TileProgram, name: str, value: Any) -> Sequence[int]:
    array = np.asarray(value)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise BindError(
            f"table {name} of {program.name!r} must be a flat sequence of integers, not {value!r}"
        )
    return [int(v) for v in array.tolist()]


def _check_assumptions(
    program: TileProgram, sizes: Mapping[str, int], tables: Mapping[str, TableValues]
) -> None:
    def value(expr: Expr) -> Any:
        try:
            return evaluate(expr, sizes, tables)
        except ZeroDivisionError as error:
            raise BindError(
                f"division by zero in {show_expr(expr)} of {program.name!r}{given(expr)}"
            ) from error

    def given(expr: Expr) -> str:
        values = ", ".join(f"{n} = {sizes[n]}" for n in sorted(names(expr)) if n in sizes)
        return f" with {values}" if values else ""

    for expr in program.tree.assumptions:
        if not value(expr):
            raise BindError(f"{program.name!r} needs {show_expr(expr)}, but was bound{given(expr)}")
    for loop in {loop for statement in program.statements for loop in statement.loops}:
        if names(loop.step) <= sizes.keys() and value(loop.step) == 0:
            raise BindError(
                f"the step {show_expr(loop.step)} of the loop over {loop.variable} in {program.name!r} is 0"
                f"{given(loop.step)}"
            )
