"""Jobs whose program has a second part, which is run only if a tile of the first says so.

Some algorithms learn only as they run whether their results can be trusted. The program of such a job is
two programs, one after the other, that share nothing but inputs. One tile of the first decides. The task
that writes it is the *decider*: whoever completes it reads the tile, which is stored by then, and if it says
so gives the ledger the seeds of the second part as children of the decider. So the second part begins, or
does not, in the one step that makes the decider done, and a worker that dies before or after leaves what
any dead worker leaves. How many tasks the ledger counts in all tells ever after which part counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from linnet.errors import InputError
from linnet.programs import BoundProgram, Out, Task, TileProgram
from linnet.programs.statements import Statement
from linnet.tiles import Tile, TileKey
from linnet.workers.ledger import Child
from linnet.workers.names import Seed, name_of


@dataclass(frozen=True, slots=True)
class Gate:
    """Where the second part of a program begins, and what decides whether it is run.

    All tasks of the first part are run in any case, so its kernels must not fail where its results are in
    doubt.
    """

    statement: int
    """Number of the first statement of the second part."""
    tile: TileKey
    """Written by the first part, into an `Out` array: anything but zeros calls for the second."""
    instead: Mapping[str, str]
    """For each `Out` array of the first part that was asked for, the one of the second that takes its
    place."""

    def check(self, program: TileProgram) -> None:
        """Refuse parts that are not two parts of this program; InputError says why."""
        statements = program.statements
        if not 0 < self.statement < len(statements):
            raise InputError(
                f"the second part begins at statement {self.statement}, but {program.name} has "
                f"{len(statements)}: give a number from 1 to {len(statements) - 1}"
            )
        first, second = statements[: self.statement], statements[self.statement :]
        for one, other, words in ((first, second, "first"), (second, first, "second")):
            shared = sorted(_written(one) & {*_written(other), *_read(other)})
            if shared:
                raise InputError(
                    f"{', '.join(shared)} is written in the {words} part of {program.name} and used in the "
                    "other: the parts may share inputs only"
                )
        self._check_outputs(program, _written(first), _written(second))

    def _check_outputs(self, program: TileProgram, first: set[str], second: set[str]) -> None:
        outputs = {name for name, role in program.arrays.items() if isinstance(role, Out)}
        given = [(self.tile.array, first), *((name, first) for name in self.instead)]
        given += [(name, second) for name in self.instead.values()]
        for name, part in given:
            if name not in outputs & part:
                raise InputError(
                    f"{name} is no Out array that the {'first' if part is first else 'second'} part of "
                    f"{program.name} writes; those are {', '.join(sorted(outputs & part)) or 'none'}"
                )
        left = outputs - {self.tile.array, *self.instead, *self.instead.values()}
        if left or self.tile.array in self.instead:
            name = min(left, default=self.tile.array)
            raise InputError(
                f"{name} is an Out array of {program.name}, but neither {self.tile.array}, which decides, "
                "nor one of a pair: `instead` names for each Out array of the first part that of the second"
            )

    def check_sizes(self, bound: BoundProgram) -> None:
        """Refuse sizes at which nothing decides, or results of the two parts differ in their grids."""
        if bound.writer(self.tile) is None:
            raise InputError(f"{self.tile} decides whether the second part is run, but no task writes it")
        if not sum(bound.counts[self.statement :]):
            raise InputError(f"the second part of {bound.program.name} has no tasks at these sizes")
        for name, other in self.instead.items():
            if bound.grid(name) != bound.grid(other):
                raise InputError(
                    f"{other} takes the place of {name}, but has {_grid(bound, other)} tiles instead of "
                    f"{_grid(bound, name)}"
                )

    def decider(self, bound: BoundProgram) -> Task:
        """The task that writes the tile that decides."""
        task = bound.writer(self.tile)
        assert task is not None
        return task

    def seeds(self, bound: BoundProgram) -> list[Child]:
        """What leads to the tasks of the second part."""
        statements = bound.program.statements[self.statement :]
        return [Child(name_of(Seed(statement.number)), 1) for statement in statements]


def calls_for_more(tile: Tile) -> bool:
    """Whether the tile that decides calls for the second part; NaN does.

    >>> calls_for_more(np.zeros(1)), calls_for_more(np.array([0.0, np.nan]))
    (False, True)
    """
    return bool(np.any(tile))


def _written(statements: Sequence[Statement]) -> set[str]:
    return {access.array for statement in statements for access in statement.writes}


def _read(statements: Iterable[Statement]) -> set[str]:
    return {access.array for statement in statements for access in statement.reads}


def _grid(bound: BoundProgram, array: str) -> str:
    return "×".join(map(str, bound.grid(array)))
