"""What a queue of ready tasks is: at least once, by priority, under leases.

A task that was leased is invisible until its lease ends; whoever holds the lease renews it, and takes
the task out when it is done. Expiry is judged by the queue's own clock, never by a worker's. A receipt
names one lease: what is done with an old one has no effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol


class Entry(NamedTuple):
    """A task to put into a queue."""

    name: str
    """Of the task."""
    priority: int = 0
    """Higher ones first, as far as the queue can tell them apart."""


class Lease(NamedTuple):
    """A task in the hands of one worker, for a time."""

    name: str
    """Of the task."""
    receipt: str
    """Names this lease; a later lease of the same task has another."""
    deliveries: int
    """How many times the task was leased, this one included."""


class QueueSize(NamedTuple):
    """How much is in a queue; queues of cloud services tell it roughly."""

    ready: int
    """Tasks that can be leased."""
    leased: int
    """Tasks under a lease that has not ended."""
    dead: int
    """Tasks that were delivered too often and are set aside."""


class Queue(Protocol):
    """Ready tasks of one job."""

    url: str
    """Where it is; never with a secret."""

    def put(self, entries: Sequence[Entry], *, claim: int = 0, seconds: float = 0) -> list[Lease]:
        """Add tasks; one that is there already, leased or not, stays as it is or is there twice.

        The first `claim` of them are leased to the caller at once, for `seconds`, where the queue can
        do that: their leases are returned. A task that somebody else holds is not among them.
        """
        ...

    def lease(self, limit: int, seconds: float) -> list[Lease]:
        """Up to `limit` of the tasks that come first; an empty list if there are none now."""
        ...

    def renew(self, leases: Sequence[Lease], seconds: float) -> list[bool]:
        """Let leases last `seconds` from now; False for each that has ended and is held by another."""
        ...

    def release(self, leases: Sequence[Lease]) -> None:
        """Give tasks back: they can be leased at once, and this delivery does not count."""
        ...

    def remove(self, leases: Sequence[Lease]) -> None:
        """Take tasks out of the queue, each only if its lease is still the current one."""
        ...

    def size(self) -> QueueSize:
        """How many tasks are in it."""
        ...

    def dead(self) -> list[str]:
        """Names of tasks that were delivered more often than the queue allows."""
        ...

    def clear(self) -> None:
        """Take everything out, dead letters included; leases that are held are worth nothing after it."""
        ...

    def drop(self) -> None:
        """Forget the queue altogether: nothing of it is left where it was. Dropping it again is no error."""
        ...

    def grouped(self) -> AbstractContextManager[object]:
        """What is done inside is made durable at once, where the queue can; otherwise step by step."""
        ...

    def close(self) -> None:
        """Let go of connections and files."""
        ...
