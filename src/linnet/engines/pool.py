"""Threads that are kept: a run borrows them, and starting one costs a wake-up.

A worker that has nothing to do gives its thread back. Threads are made when all others are
busy, so a kernel that itself runs a program never waits for its own thread. They are daemons:
parked ones do not keep the interpreter from ending. A child process after `fork` has none of
its parent's threads, and starts anew.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable

_KEPT = 2 * (os.cpu_count() or 1)
"""Parked threads beyond these end."""

_numbers = itertools.count(1)


class Pool:
    """Threads, parked or at work.

    >>> pool, done = Pool(), threading.Event()
    >>> pool.start(done.set)
    >>> done.wait(10)
    True
    """

    def __init__(self, kept: int = _KEPT) -> None:
        self._kept = kept
        self._lock = threading.Lock()
        self._parked: list[_Worker] = []

    def start(self, work: Callable[[], object]) -> None:
        """Do this on a thread of the pool; what it raises is shown and otherwise lost."""
        with self._lock:
            worker = self._parked.pop() if self._parked else None
        if worker is None:
            _Worker(self, work).start()
        else:
            worker.wake(work)

    def park(self, worker: _Worker) -> bool:
        """A thread has nothing to do; False: it is not needed any more."""
        with self._lock:
            if len(self._parked) >= self._kept:
                return False
            self._parked.append(worker)
            return True

    def forget(self) -> None:
        """This is another process now, without these threads."""
        self._lock = threading.Lock()
        self._parked.clear()


class _Worker(threading.Thread):
    """One thread, and the lock it is parked at."""

    def __init__(self, pool: Pool, work: Callable[[], object]) -> None:
        super().__init__(name=f"linnet-{next(_numbers)}", daemon=True)
        self._pool = pool
        self._work: Callable[[], object] | None = work
        self._gate = threading.Lock()
        self._gate.acquire()

    def wake(self, work: Callable[[], object]) -> None:
        self._work = work
        self._gate.release()

    def run(self) -> None:
        while self._work is not None:
            self._work()
            self._work = None  # what it holds must not outlive it here
            if not self._pool.park(self):
                break
            self._gate.acquire()


POOL = Pool()
"""The threads of this process, for all runs."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=POOL.forget)
