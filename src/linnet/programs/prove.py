"""Proofs for all sizes at once: each tile is written once, and before it is read.

For affine programs these are questions about integer sets, which isl answers exactly; a
violation comes with the smallest sizes that show it. What is not affine is left for
enumeration, and the program is called unproven.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import islpy as isl

from linnet.programs.dependences import Dependences, Edge
from linnet.programs.diagnostics import Findings
from linnet.programs.grammar import At, In, Int, Out, Program, Temp, fill_of
from linnet.programs.integer_sets import IN, OUT, PARAM, SET, NotAffine, Sets, first_point
from linnet.programs.statements import Access, Statement


@dataclass(frozen=True, slots=True)
class Proof:
    """What is known of a program for all sizes."""

    dependences: Dependences
    sets: Sets
    unproven: tuple[str, ...]
    """Why parts of the program could not be proved; empty when everything is."""


def prove(program: Program, statements: Sequence[Statement], findings: Findings | None) -> Proof:
    """Find the dependences; with `findings`, also prove single assignment and write-before-read."""
    return _Prover(program, statements, findings).run()


class _Prover:
    def __init__(self, program: Program, statements: Sequence[Statement], findings: Findings | None) -> None:
        self.program = program
        self.statements = statements
        self.findings = findings
        self.sets = Sets(program, statements)
        self.arrays = program.roles(In, Out, Temp)
        self._writers: dict[str, list[tuple[Statement, int]]] = {}
        for statement in statements:
            for slot, write in enumerate(statement.writes):
                self._writers.setdefault(write.array, []).append((statement, slot))
        self.reasons: dict[str, None] = {}
        self.relations: dict[Edge, Any] = {}
        self.exact = self.sets.assumptions_are_affine
        """Whether a violation found is one: an assumption that is not affine may exclude it."""

    def run(self) -> Proof:
        if self.findings is not None:
            for array, role in self.arrays.items():
                self.written_once(array)
                if isinstance(role, Temp) and role.of:
                    self.version_zero(array, role.of)
        edges = self.edges()
        if self.findings is not None:
            for edge in edges:
                with self.noted(edge.reader):
                    self.in_order(edge)
            for statement in self.statements:
                for slot, access in enumerate(statement.reads):
                    with self.noted(statement.number):
                        self.is_written(statement, slot, access)
        dependences = Dependences(self.statements, edges, self.overlap)
        return Proof(dependences, self.sets, tuple(self.reasons))

    @contextmanager
    def noted(self, statement: int) -> Generator[None]:
        """Where isl gives up, the program is unproven: it is checked when its tasks are listed."""
        try:
            yield
        except isl.Error as error:
            self.note(statement, error)

    def access(self, statement: int, kind: str, slot: int) -> Any | None:
        """The map of an access, or None (with the reason noted) when it is not affine."""
        try:
            return self.sets.access(statement, kind, slot)
        except (NotAffine, isl.Error) as error:
            self.note(statement, error)
            return None

    def note(self, statement: int, error: Exception) -> None:
        at = self.statements[statement].run.at
        line = f"line {at.line}: " if at else f"statement {statement}: "
        why = str(error) if isinstance(error, NotAffine) else "too complex to decide"
        self.reasons[line + why] = None

    def writers(self, array: str) -> list[tuple[Statement, int]]:
        return self._writers.get(array, [])

    def excluded(self, statement: Statement) -> bool:
        """Whether a violation may be excluded by an assumption; if so, it is left to enumeration."""
        if not self.exact:
            self.note(statement.number, NotAffine("an `assert` that is not affine"))
        return not self.exact

    def add(self, message: str, hint: str, at: At | None) -> None:
        assert self.findings is not None
        self.findings.add(message, hint, at)

    # -- single assignment

    def written_once(self, array: str) -> None:
        writers = self.writers(array)
        for statement, slot in writers:
            writes = self.access(statement.number, "writes", slot)
            if writes is not None and not self.holds(statement, lambda m=writes: m.is_injective()):
                same = isl.Map.identity(writes.get_space().domain().map_from_set())
                clash = writes.apply_range(writes.reverse()).subtract(same)
                self.twice(array, clash, writes, (statement, slot), (statement, slot))
        for (one, a), (other, b) in combinations(writers, 2):
            first = self.access(one.number, "writes", a)
            second = self.access(other.number, "writes", b)
            if first is None or second is None:
                continue
            shared = first.range().intersect(second.range())
            if not self.holds(other, lambda s=shared: s.is_empty()):
                self.twice(array, first.apply_range(second.reverse()), first, (one, a), (other, b))

    def holds(self, statement: Statement, question: Any) -> bool:
        """Ask isl; a question it gives up on counts as answered, and the program as unproven."""
        try:
            return bool(question())
        except isl.Error as error:
            self.note(statement.number, error)
            return True

    def twice(
        self,
        array: str,
        clash: Any,
        tiles: Any,
        first: tuple[Statement, int],
        second: tuple[Statement, int],
    ) -> None:
        if self.excluded(second[0]):
            return
        sizes, x, y = self.smallest(clash)
        point = self.tile_of(tiles, sizes, x)
        one, other = first[0], second[0]
        here = other.writes[second[1]].at
        line = one.writes[first[1]].at
        where = f" on line {line.line}" if one is not other and line else ""
        self.add(
            f"{array}{point} is written twice{_when(self.sets.sizes, sizes)}: "
            f"by {_iteration(one, x)}{where} and by {_iteration(other, y)}",
            "each tile is written once: add an index (a version), or narrow the loops; "
            "if such sizes cannot occur, say so with `assert` before the first loop",
            here,
        )

    def version_zero(self, array: str, base: str) -> None:
        for statement, slot in self.writers(array):
            writes = self.access(statement.number, "writes", slot)
            if writes is None:
                continue
            touched = writes.fix_val(OUT, 0, 0)
            if not self.holds(statement, lambda t=touched: t.is_empty()) and not self.excluded(statement):
                sizes, x, _ = self.smallest(touched)
                self.add(
                    f"version 0 of {array!r} is {base!r} and is not written, but "
                    f"{_iteration(statement, x)} writes it{_when(self.sets.sizes, sizes)}",
                    f"let the first index of {array} start at 1, as in {array}[i + 1, ...] = ...",
                    statement.writes[slot].at,
                )

    # -- reads

    def edges(self) -> list[Edge]:
        edges: list[Edge] = []
        for reader in self.statements:
            for operand, access in enumerate(reader.reads):
                for writer, output in self.writers(access.array):
                    edge = Edge(writer.number, output, reader.number, operand)
                    if self.feasible(edge):
                        edges.append(edge)
        return edges

    def feasible(self, edge: Edge) -> bool:
        read = self.access(edge.reader, "reads", edge.operand)
        write = self.access(edge.writer, "writes", edge.output)
        if read is None or write is None:
            return True
        try:
            relation = read.apply_range(write.reverse())
            if relation.is_empty():
                return False
            self.relations[edge] = relation
        except isl.Error as error:
            self.note(edge.reader, error)
        return True

    def overlap(self, one: Edge, other: Edge) -> bool:
        a, b = self.relations.get(one), self.relations.get(other)
        if a is None or b is None:
            return True
        try:
            return not a.intersect(b).is_empty()
        except isl.Error:
            return True

    def in_order(self, edge: Edge) -> None:
        """The writer comes before the reader in the order of the program."""
        relation = self.relations.get(edge)
        if relation is None:
            return None
        reader, writer = self.statements[edge.reader], self.statements[edge.writer]
        shared = 0
        while (
            shared < min(len(reader.loops), len(writer.loops))
            and reader.place[shared] == writer.place[shared]
        ):
            shared += 1
        for k in range(shared):
            late = relation
            for j in range(k):
                late = late.equate(IN, j, OUT, j)
            match reader.loops[k].step:
                case Int(step) if step < 0:
                    late = late.order_gt(IN, k, OUT, k)
                case _:
                    late = late.order_lt(IN, k, OUT, k)
            if not self.holds(reader, lambda m=late: m.is_empty()):
                return self.too_early(edge, late)
        if writer.place[shared] >= reader.place[shared]:
            late = relation
            for j in range(shared):
                late = late.equate(IN, j, OUT, j)
            if not self.holds(reader, lambda m=late: m.is_empty()):
                return self.too_early(edge, late)
        return None

    def too_early(self, edge: Edge, late: Any) -> None:
        reader, writer = self.statements[edge.reader], self.statements[edge.writer]
        if self.excluded(reader):
            return
        sizes, x, y = self.smallest(late)
        access = reader.reads[edge.operand]
        array = writer.writes[edge.output].array
        tiles = self.sets.access(edge.writer, "writes", edge.output)
        who = "itself" if (reader is writer and x == y) else _iteration(writer, y)
        self.add(
            f"{array}{self.tile_of(tiles, sizes, y)} is read by {_iteration(reader, x)} before it is "
            f"written, by {who}{_when(self.sets.sizes, sizes)}",
            "read an earlier version, or put the write before the read",
            access.at,
        )

    def is_written(self, statement: Statement, slot: int, access: Access) -> None:
        """Every tile read from an array that is no input has a writer."""
        role = self.arrays[access.array]
        if isinstance(role, In) or fill_of(role) is not None:
            return
        missing = self.access(statement.number, "reads", slot)
        if missing is None:
            return
        if isinstance(role, Temp) and role.of:
            missing = missing.subtract(missing.fix_val(OUT, 0, 0))
        for writer, output in self.writers(access.array):
            written = self.access(writer.number, "writes", output)
            if written is None:
                return
            missing = missing.subtract_range(written.range())
        if not self.holds(statement, lambda m=missing: m.is_empty()) and not self.excluded(statement):
            sizes, x, tile = self.smallest(missing)
            self.add(
                f"{access.array}[{', '.join(map(str, tile))}] is read by {_iteration(statement, x)}"
                f"{_when(self.sets.sizes, sizes)}, but no task writes it and it is no input",
                _unwritten_hint(access.array, role),
                access.at,
            )

    # -- examples for messages

    def smallest(self, relation: Any) -> tuple[list[int], list[int], list[int]]:
        """Sizes and one pair of points of a relation, smallest sizes first."""
        count, inside, outside = len(self.sets.sizes), relation.dim(IN), relation.dim(OUT)
        points = relation.wrap().flatten() if outside else relation.domain()
        values = first_point(points.move_dims(SET, 0, PARAM, 0, count))
        return values[:count], values[count : count + inside], values[count + inside :]

    def tile_of(self, tiles: Any, sizes: Sequence[int], x: Sequence[int]) -> list[int]:
        """A tile that iteration `x` names."""
        one = tiles
        for k, value in enumerate(sizes):
            one = one.fix_val(PARAM, k, value)
        for k, value in enumerate(x):
            one = one.fix_val(IN, k, value)
        return first_point(one.range().project_out(PARAM, 0, len(sizes)))


def _iteration(statement: Statement, point: Sequence[int]) -> str:
    pairs = ", ".join(f"{v}={p}" for v, p in zip(statement.variables, point, strict=True))
    return f"{statement.kernel} ({pairs})" if pairs else statement.kernel


def _when(names: Sequence[str], sizes: Sequence[int]) -> str:
    return f" when {', '.join(f'{n} = {s}' for n, s in zip(names, sizes, strict=True))}" if names else ""


def _unwritten_hint(array: str, role: Out | Temp) -> str:
    if isinstance(role, Out):
        return f"write it, narrow the loop, or declare {array}: ln.Out(fill=0)"
    if role.of:
        return "write it, or narrow the loop"
    return (
        f"write it, narrow the loop, declare {array}: ln.Temp(fill=0), or give it a base: "
        'ln.Temp("A") makes version 0 the input A'
    )
