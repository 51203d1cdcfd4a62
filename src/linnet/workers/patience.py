"""How long a store may fail before the job is given up."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Literal

Act = Literal["read", "write"]


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
