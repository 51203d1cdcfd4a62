"""Which tasks wait for a task or a seed, by name, from the program alone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from linnet.programs import BoundProgram, Task
from linnet.programs.roots import outermost, roots_of
from linnet.workers.ledger import Child
from linnet.workers.names import Seed, name_of

_RANGE = 4096
"""Tasks of a statement above which the search for its roots is shared out by ranges."""
_PARTS = 64
"""Ranges it is shared out in, at most."""


def children_of(bound: BoundProgram, task: Task | Seed, statements: int | None = None) -> Iterator[Child]:
    """The tasks that wait for this one, each with how many it waits for.

    A seed counts as the one task that a root waits for. `@` leads to the first so many `statements`.
    """
    if isinstance(task, Task):
        for child in bound.children(task):
            yield Child(name_of(child), bound.in_degree(child))
    elif task.statement is None:
        for statement in bound.program.statements[:statements]:
            yield Child(name_of(Seed(statement.number)), 1)
    elif task.low is None and (cuts := _cuts(bound, task.statement)):
        for low, high in pairwise(cuts):
            yield Child(name_of(Seed(task.statement, low, high)), 1)
    else:
        for root in roots_of(bound, task.statement, task.low, task.high):
            yield Child(name_of(root), 1)


def has_seed(bound: BoundProgram, seed: Seed) -> bool:
    """Whether a seed is one that `children_of` leads to: names come from outside.

    A range must be one of those that the search is shared out in: nobody waits for any other.
    """
    if seed.statement is None:
        return True
    if seed.statement >= len(bound.program.statements):
        return False
    ranges = pairwise(_cuts(bound, seed.statement))
    return seed.low is None or any((seed.low, seed.high) == each for each in ranges)


def _cuts(bound: BoundProgram, statement: int) -> list[int]:
    """Where to cut the outermost loop of a statement with many tasks; empty: nowhere."""
    if bound.counts[statement] <= _RANGE:
        return []
    extent = outermost(bound, statement)
    if extent is None or extent[1] - extent[0] < 2:
        return []
    low, high = extent
    step = -(-(high - low) // _PARTS)
    return [*range(low, high, step), high]
