"""How long a store may fail before the job is given up, and how long somebody waits for an answer."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

Act = Literal["read", "write"]

ANSWER = 10.0
"""Seconds that a server gets to answer a client, where nobody said how long to wait."""

_deadline: ContextVar[float] = ContextVar("linnet_deadline", default=math.inf)


@contextmanager
def within(seconds: float) -> Generator[None]:
    """What servers are asked inside is answered in so many seconds, or given up.

    >>> with within(5.0), within(60.0):
    ...     seconds_left(30.0) <= 5.0
    True
    """
    before = _deadline.set(min(_deadline.get(), time.monotonic() + seconds))
    try:
        yield
    finally:
        _deadline.reset(before)


def seconds_left(most: float) -> float:
    """How long to wait for an answer, if nobody would wait longer than that."""
    return max(0.0, min(most, _deadline.get() - time.monotonic()))


def is_limited() -> bool:
    """Whether somebody waits for so many seconds only."""
    return _deadline.get() != math.inf


class Patience:
    """Counts from the first failure after a success, for reading and writing apart.

    A full disk can be read, and a store that lost its index written: what works of one kind says nothing
    of the other.

    >>> times = iter([0.0, 20.0, 40.0, 41.0, 60.0])
    >>> patience = Patience(30.0, clock=lambda: next(times))
    >>> patience.failed("write"), patience.failed("write")
    (False, False)
    >>> patience.worked("read")
    >>> patience.failed("write")
    True
    >>> patience.worked("write")
    >>> patience.failed("write"), patience.failed("write")
    (False, False)
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._since: dict[Act, float] = {}
        self._lock = threading.Lock()

    def failed(self, act: Act) -> bool:
        """Note a failure; tells whether there were only failures for too long."""
        with self._lock:
            now = self._clock()
            return now - self._since.setdefault(act, now) > self._seconds

    def worked(self, act: Act) -> None:
        """Note a success."""
        if act in self._since:
            with self._lock:
                self._since.pop(act, None)
