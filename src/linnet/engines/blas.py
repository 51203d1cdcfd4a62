"""One BLAS thread per worker while tasks run side by side; all of them for a task that runs alone.

For some libraries (OpenBLAS on its own threads) the number of threads belongs to the process,
for others to the calling thread. So both are set: the former by one thread that does nothing
else, because threadpoolctl lets only the thread that set a limit take it back, and runs that
overlap in time share one limit; the latter by each worker for itself.
"""

from __future__ import annotations

import importlib
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from linnet.kernels import get as get_kernel
from linnet.programs import Call
from linnet.tiles import Tile, TileKey


class _Holder:
    """A thread that limits BLAS in this process for as long as it lives."""

    def __init__(self, controller: Any) -> None:
        self.controller = controller
        self._orders: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._hold, name="linnet-blas-limit", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._done.get()

    def set(self, threads: int) -> None:
        """Allow BLAS so many threads, now."""
        self._orders.put(threads)
        self._done.get()

    def stop(self) -> None:
        self._orders.put(_OVER)
        self._thread.join()

    def _hold(self) -> None:
        try:
            with self.controller.limit(limits=1, user_api="blas"):
                self._done.put(None)
                while (threads := self._orders.get()) != _OVER:
                    self.controller.limit(limits=threads, user_api="blas")
                    self._done.put(None)
        finally:
            self._done.put(None)  # whoever waits must not wait for ever


_OVER = 0
_WORTHWHILE = 1e8
"""Operations a task must have to be spread: changing the number of threads takes tens of microseconds."""

_lock = threading.Lock()
_depth = 0
_holder: _Holder | None = None


class BlasThreads:
    """How many threads BLAS takes in a run: one, unless a large task runs alone."""

    def __init__(self, holder: _Holder, workers: int) -> None:
        self._holder = holder
        self._workers = workers

    def limit(self) -> None:
        """One thread, for the worker that calls this; it ends with the worker."""
        self._holder.controller.limit(limits=1, user_api="blas")

    @contextmanager
    def widened(self) -> Iterator[None]:
        """All threads, for a task that runs alone."""
        with self._holder.controller.limit(limits=self._workers, user_api="blas"):
            self._holder.set(self._workers)
            try:
                yield
            finally:
                self._holder.set(1)

    def worthwhile(self, call: Call, stored: Callable[[TileKey], Tile | None], invariant_only: bool) -> bool:
        """Whether a task that runs alone is large enough to be spread over all cores.

        Not while another run goes on in this process, which has a use for them.
        """
        kernel = get_kernel(call.kernel)
        if self._workers == 1 or kernel.flops is None or _depth > 1:
            return False
        if invariant_only and not kernel.thread_invariant:
            return False
        try:
            return kernel.flops(*_shapes(call.args, stored), **call.attributes) >= _WORTHWHILE
        except Exception:  # a declaration that is wrong must not stop a task that is right
            return False


def _shapes(item: Any, stored: Callable[[TileKey], Tile | None]) -> Any:
    if isinstance(item, TileKey):
        tile = stored(item)
        return () if tile is None else tile.shape
    if isinstance(item, tuple | list):
        return [_shapes(each, stored) for each in item]
    return item


@contextmanager
def blas_threads(workers: int) -> Iterator[BlasThreads]:
    """Let every BLAS in this process use one thread, until the last such context ends."""
    global _depth, _holder
    # A library loaded later would not be limited, and kernels load SciPy's at their first call.
    importlib.import_module("scipy.linalg.cython_lapack")
    threadpoolctl = importlib.import_module("threadpoolctl")
    with _lock:
        if _holder is None:
            _holder = _Holder(threadpoolctl.ThreadpoolController())
            _holder.start()
        _depth += 1
        holder = _holder
    try:
        yield BlasThreads(holder, workers)
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                holder.stop()
                _holder = None
