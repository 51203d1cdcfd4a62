"""Workers as threads of this process: for tests, and for jobs so small that a process would cost more."""

from __future__ import annotations

import os
import threading
from collections import deque

from linnet.workers.launcher import Order
from linnet.workers.serving import serve
from linnet.workers.worker import Worker


class WorkerThreads:
    """Starts workers in threads; they end with the process."""

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []
        self._failed: deque[str] = deque()
        self._problem: str | None = None
        self.workers: dict[str, Worker] = {}
        """Those that were started, by name."""

    def start(self, order: Order) -> None:
        os.environ.update(order.secrets)
        for name in order.names:
            thread = threading.Thread(target=self._serve, args=(order, name), name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, order: Order, name: str) -> None:
        def started(worker: Worker) -> None:
            self.workers[name] = worker

        try:
            serve(order.address, name, order.limits, order.imports, files=order.files, started=started)
        except Exception as error:
            self._problem = f"worker {name}: {type(error).__name__}: {error}"
            self._failed.append(name)

    def coming(self) -> list[str]:
        return [each.name for each in self._threads if each.is_alive() and each.name not in self.workers]

    def ended(self) -> list[str]:
        # A thread that ends in order says so itself.
        return [self._failed.popleft() for _ in range(len(self._failed))]

    def problem(self) -> str | None:
        return self._problem

    def close(self) -> None:
        for thread in self._threads:
            thread.join(timeout=10)

    def __repr__(self) -> str:
        return "WorkerThreads()"
