"""The tasks a worker has under lease, seen by all its threads."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable

from linnet.workers.queue import Lease


class Holding:
    """Leases of tasks in hand, and of tasks claimed for later."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[str, Lease] = {}
        self._claimed: deque[Lease] = deque()

    def hold(self, leases: Iterable[Lease]) -> None:
        """These tasks are in hand now."""
        with self._lock:
            self._held.update((lease.name, lease) for lease in leases)

    def drop(self, names: Iterable[str]) -> None:
        """These tasks are not in hand any more."""
        with self._lock:
            for name in names:
                self._held.pop(name, None)

    def claim(self, leases: Iterable[Lease]) -> None:
        """These are to be begun next."""
        with self._lock:
            self._claimed.extend(leases)

    def claimed(self, most: int) -> list[Lease]:
        """Some of those claimed, in hand from now on."""
        with self._lock:
            found = [self._claimed.popleft() for _ in range(min(most, len(self._claimed)))]
            self._held.update((lease.name, lease) for lease in found)
            return found

    def has_claims(self) -> bool:
        """Whether there are tasks to be begun next."""
        return bool(self._claimed)

    def leases(self) -> list[Lease]:
        """All of them."""
        with self._lock:
            return [*self._held.values(), *self._claimed]
