"""What a kernel finds around it: which engine runs what a function of the user's computes while it runs.

Sessions and engines meet here, below both. A `with` block of a session adds the session to what is chosen
in this context; an engine whose workers are elsewhere says that its tasks run in a worker, where no session
of the caller's counts.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final


class _InAWorker:
    """Stands among the sessions for the worker that runs a task."""

    def __repr__(self) -> str:
        return "IN_A_WORKER"


IN_A_WORKER: Final = _InAWorker()
"""Chosen while a worker runs a task: what the task computes itself runs on the worker's own core."""

chosen: ContextVar[tuple[object, ...]] = ContextVar("linnet_chosen", default=())
"""What was chosen in this context, the latest last: sessions, and `IN_A_WORKER`."""


@contextmanager
def in_a_worker() -> Generator[None]:
    """Around kernels that run for an engine whose workers are elsewhere.

    >>> with in_a_worker():
    ...     chosen.get()
    (IN_A_WORKER,)
    """
    before = chosen.set((IN_A_WORKER,))
    try:
        yield
    finally:
        chosen.reset(before)
