"""Which statement's tiles another statement reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

from linnet.programs.statements import Statement


class Edge(NamedTuple):
    """One result of one statement may be one operand of another."""

    writer: int
    output: int
    """Which of the writer's results."""
    reader: int
    operand: int
    """Which of the reader's accesses."""


class Dependences:
    """All edges of a program."""

    def __init__(
        self,
        statements: Sequence[Statement],
        edges: Sequence[Edge],
        overlap: Callable[[Edge, Edge], bool],
    ) -> None:
        """`overlap` says whether two edges may join the same two tasks."""
        self.statements = statements
        self.edges: tuple[Edge, ...] = tuple(edges)
        self.overlap = overlap

    def from_writer(self, statement: int) -> list[Edge]:
        """Edges out of a statement, those that join the same tasks once."""
        return self.distinct([e for e in self.edges if e.writer == statement])

    def to_reader(self, statement: int) -> list[Edge]:
        """Edges into a statement, those that join the same tasks once."""
        return self.distinct([e for e in self.edges if e.reader == statement])

    def distinct(self, edges: Sequence[Edge]) -> list[Edge]:
        """Two results with one index, read by two operands with one index, join the same tasks."""
        kept: dict[object, Edge] = {}
        for edge in edges:
            write = self.statements[edge.writer].writes[edge.output]
            read = self.statements[edge.reader].reads[edge.operand]
            if write.locals or read.locals:
                kept[edge] = edge
            else:
                key = (edge.writer, edge.reader, write.index, write.guards, read.index, read.guards)
                kept.setdefault(key, edge)
        return list(kept.values())

    def exclusive(self, edges: Sequence[Edge], side: str) -> bool:
        """Whether no two of `edges`, nor one of them twice, can lead to the same task."""
        for edge in edges:
            write = self.statements[edge.writer].writes[edge.output]
            read = self.statements[edge.reader].reads[edge.operand]
            if write.locals and read.locals:
                return False
        for one, other in combinations(edges, 2):
            same = one.reader == other.reader if side == "children" else one.writer == other.writer
            if same and self.overlap(one, other):
                return False
        return True
