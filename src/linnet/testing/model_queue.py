"""A queue in plain Python: what others are compared with, and what models of the protocol run on.

It lives in one process and takes no locks, so it is of no use to workers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from linnet.workers.queue import Entry, Lease, QueueSize


@dataclass(slots=True)
class _Held:
    priority: int
    ends: float = 0.0
    """When its lease ends; 0: there is none."""
    receipt: str = ""
    deliveries: int = 0


class ModelQueue:
    """The rules of a queue, as directly as they can be written.

    >>> queue = ModelQueue()
    >>> queue.put([Entry("0.1"), Entry("0.2", priority=5)])
    []
    >>> [lease.name for lease in queue.lease(1, seconds=60)]
    ['0.2']
    """

    url = "model://queue"

    def __init__(self, now: Callable[[], float] = time.monotonic, *, most_deliveries: int = 50) -> None:
        self._now = now
        self._most = most_deliveries
        self._held: dict[str, _Held] = {}
        self._dead: set[str] = set()
        self._receipts = 0

    def put(self, entries: Sequence[Entry], *, claim: int = 0, seconds: float = 0) -> list[Lease]:
        for entry in entries:
            if entry.name not in self._held and entry.name not in self._dead:
                self._held[entry.name] = _Held(entry.priority)
        wanted = dict.fromkeys(entry.name for entry in entries[:claim])
        return self._leased([name for name in wanted if name in self._held], len(wanted), seconds)

    def lease(self, limit: int, seconds: float) -> list[Lease]:
        by_priority = sorted(self._held, key=lambda name: -self._held[name].priority)
        return self._leased(by_priority, limit, seconds)

    def _leased(self, names: Sequence[str], limit: int, seconds: float) -> list[Lease]:
        found: list[Lease] = []
        for name in names:
            held = self._held[name]
            if len(found) == limit or held.ends > self._now():
                continue
            if held.deliveries >= self._most:
                del self._held[name]
                self._dead.add(name)
                continue
            self._receipts += 1
            held.ends, held.receipt = self._now() + seconds, str(self._receipts)
            held.deliveries += 1
            found.append(Lease(name, held.receipt, held.deliveries))
        return found

    def _current(self, lease: Lease) -> _Held | None:
        held = self._held.get(lease.name)
        return held if held is not None and held.receipt == lease.receipt else None

    def renew(self, leases: Sequence[Lease], seconds: float) -> list[bool]:
        current = [self._current(lease) for lease in leases]
        for held in current:
            if held is not None:
                held.ends = self._now() + seconds
        return [held is not None for held in current]

    def release(self, leases: Sequence[Lease]) -> None:
        for lease in leases:
            held = self._current(lease)
            if held is not None:
                held.ends, held.receipt, held.deliveries = 0.0, "", held.deliveries - 1

    def remove(self, leases: Sequence[Lease]) -> None:
        for lease in leases:
            if self._current(lease) is not None:
                del self._held[lease.name]

    def size(self) -> QueueSize:
        leased = sum(held.ends > self._now() for held in self._held.values())
        return QueueSize(len(self._held) - leased, leased, len(self._dead))

    def dead(self) -> list[str]:
        return sorted(self._dead)

    def clear(self) -> None:
        self._held.clear()
        self._dead.clear()

    def drop(self) -> None:
        self.clear()

    def expire(self, name: str) -> None:
        """Let the lease of a task end now, as if its time had passed."""
        self._held[name].ends = 0.0

    def names(self) -> dict[str, bool]:
        """The tasks that are not dead, and whether each is under a lease."""
        return {name: held.ends > self._now() for name, held in self._held.items()}

    def is_current(self, lease: Lease) -> bool:
        """Whether nobody else has leased the task since."""
        return self._current(lease) is not None

    def __repr__(self) -> str:
        return f"ModelQueue({self.url})"

    def copy(self) -> ModelQueue:
        """Another one in the same state."""
        made = ModelQueue(self._now, most_deliveries=self._most)
        made._held = {name: replace(held) for name, held in self._held.items()}
        made._dead, made._receipts = set(self._dead), self._receipts
        return made

    def grouped(self) -> AbstractContextManager[object]:
        return nullcontext()

    def close(self) -> None:
        """Nothing is held."""
