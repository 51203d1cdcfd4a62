"""One BLAS thread per worker while tasks run side by side.

For some libraries (OpenBLAS on its own threads) the number of threads belongs to the process,
for others to the calling thread. So both are set: the former by one thread that does nothing
else, because threadpoolctl lets only the thread that set a limit take it back, and runs that
overlap in time share one limit; the latter by each worker for itself.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class _Holder:
    """A thread that limits BLAS in this process for as long as it lives."""

    controller: Any
    set: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None

    def start(self) -> None:
        self.thread = threading.Thread(target=self._hold, name="linnet-blas-limit", daemon=True)
        self.thread.start()
        self.set.wait()

    def stop(self) -> None:
        assert self.thread is not None
        self.over.set()
        self.thread.join()

    def _hold(self) -> None:
        try:
            with self.controller.limit(limits=1, user_api="blas"):
                self.set.set()
                self.over.wait()
        finally:
            self.set.set()


_lock = threading.Lock()
_depth = 0
_holder: _Holder | None = None


@contextmanager
def one_blas_thread() -> Iterator[Callable[[], None]]:
    """Let every BLAS in this process use one thread, until the last such context ends.

    Gives a function that each worker calls once, in its own thread.
    """
    global _depth, _holder
    # A library loaded later would not be limited, and kernels load SciPy's at their first call.
    importlib.import_module("scipy.linalg.cython_lapack")
    threadpoolctl = importlib.import_module("threadpoolctl")
    with _lock:
        if _holder is None:
            _holder = _Holder(threadpoolctl.ThreadpoolController())
            _holder.start()
        _depth += 1
        controller = _holder.controller
    try:
        # Never undone: what is set here for the thread ends with the thread.
        yield lambda: controller.limit(limits=1, user_api="blas")
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                _holder.stop()
                _holder = None
