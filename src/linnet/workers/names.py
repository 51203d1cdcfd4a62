"""Names of tasks, as queues and ledgers hold them: short text, the same wherever it is made.

A task's name is its statement and its loop values: `2.0.1.1`. Names that start with `@` stand for
*seeds*: pieces of the work of finding the tasks that wait for nobody. `@` is all of it, `@2` that of
statement 2, `@2:0:64` that of its tasks whose outermost loop value is in 0 … 63.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from linnet.errors import WireError
from linnet.programs import Task

# Each task has one name: one that could be written otherwise, 00.1, would be done twice, and counted twice.
_STATEMENT, _VALUE = r"(?:0|[1-9][0-9]{0,5})", r"(?:0|-?[1-9][0-9]{0,18})"
_TASK = re.compile(rf"{_STATEMENT}(?:\.{_VALUE}){{0,32}}")
_SEED = re.compile(rf"@(?:({_STATEMENT})(?::({_VALUE}):({_VALUE}))?)?")


class Seed(NamedTuple):
    """A part of the tasks that wait for nobody."""

    statement: int | None = None
    """Of this statement; None: of all."""
    low: int | None = None
    """Those whose outermost loop value is at least this, and below `high`; None: all."""
    high: int | None = None


def name_of(task: Task | Seed) -> str:
    """The name of a task or seed.

    >>> name_of(Task(2, (0, 1, 1))), name_of(Seed()), name_of(Seed(2, 0, 64))
    ('2.0.1.1', '@', '@2:0:64')
    """
    if isinstance(task, Task):
        return ".".join(map(str, (task[0], *task[1])))
    if task.statement is None:
        return "@"
    return f"@{task.statement}" if task.low is None else f"@{task.statement}:{task.low}:{task.high}"


@lru_cache(maxsize=2**15)
def named(name: str) -> Task | Seed:
    """The task or seed of a name; anything else is refused, since names come from outside.

    >>> named("2.0.1.1"), named("@2")
    (Task(statement=2, indices=(0, 1, 1)), Seed(statement=2, low=None, high=None))
    """
    if _TASK.fullmatch(name):
        statement, *indices = map(int, name.split("."))
        return Task(statement, tuple(indices))
    found = _SEED.fullmatch(name)
    if found is None:
        raise WireError(f"{name[:80]!r} names no task; a task is written like '2.0.1', a seed like '@2'")
    return Seed(*(None if part is None else int(part) for part in found.groups()))
