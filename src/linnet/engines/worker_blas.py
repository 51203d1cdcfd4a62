"""One BLAS thread per worker while tasks run side by side; all of them for a task that runs alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from linnet.kernels import get as get_kernel
from linnet.machine.blas_threads import Library, blas_holders, limit_this_thread, one_blas_thread
from linnet.programs import Call
from linnet.tiles import Tile, TileKey

_WORTHWHILE = 1e8
"""Operations a task must have to be spread: changing the number of threads takes microseconds, and
the first time tens of them."""


class BlasThreads:
    """How many threads BLAS takes in a run: one, unless a large task runs alone."""

    def __init__(self, libraries: list[Library], workers: int) -> None:
        self._libraries = libraries
        self._workers = workers

    def limit(self) -> None:
        """One thread, for the thread that calls this; for threads that do nothing but work for runs."""
        limit_this_thread()

    @contextmanager
    def widened(self) -> Iterator[None]:
        """All threads, for a task that runs alone."""
        for each in self._libraries:
            each.set(self._workers)
        try:
            yield
        finally:
            for each in self._libraries:
                each.set(1)

    def worthwhile(self, call: Call, stored: Callable[[TileKey], Tile | None], invariant_only: bool) -> bool:
        """Whether a task that runs alone is large enough to be spread over all cores.

        Not while another run goes on in this process, which has a use for them.
        """
        kernel = get_kernel(call.kernel)
        if self._workers == 1 or kernel.flops is None or blas_holders() > 1:
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
    with one_blas_thread() as libraries:
        yield BlasThreads(libraries, workers)
