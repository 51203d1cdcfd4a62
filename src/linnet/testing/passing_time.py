"""Time that passes for the shipped queues and ledgers without waiting for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import msgpack

from linnet.workers.embedded import Database


class TimedDatabase(Database):
    """A database whose host has a clock of the test's.

    >>> import tempfile
    >>> from linnet.testing.clock import Clock
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     database = TimedDatabase(f"{folder}/job.db", Clock(7.0))
    ...     database.now()
    ...     database.close()
    7.0
    """

    def __init__(self, path: str | os.PathLike[str], clock: Callable[[], float]) -> None:
        self.clock = clock
        super().__init__(path, create=True)

    def now(self) -> float:
        """What the test's clock says."""
        return self.clock()


def age_ledger(client: Any, job: str, seconds: float) -> None:
    """Make all that a ledger in Redis keeps of a job older, as if so many seconds had passed."""
    prefix = f"linnet:{{{job}}}:"
    for name in ("ready", "began", "garbage"):
        _age(client, prefix + name, seconds)
    for name, text in client.hgetall(prefix + "workers").items():
        started, beat, *more = msgpack.unpackb(text)
        client.hset(prefix + "workers", name, msgpack.packb([started - seconds, beat - seconds, *more]))


def age_queue(client: Any, job: str, seconds: float) -> None:
    """Let every lease of a queue in Redis end so many seconds earlier."""
    _age(client, f"linnet:{{{job}}}:queue:leased", seconds)


def _age(client: Any, key: str, seconds: float) -> None:
    for member in client.zrange(key, 0, -1):
        client.zincrby(key, -seconds, member)
