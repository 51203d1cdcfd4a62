"""Time that passes, whatever the clock of the wall is set to."""

from __future__ import annotations

import time

_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def elapsed() -> float:
    """Seconds since some moment. Those of a machine that sleeps count, too, where they can be counted.

    >>> before = elapsed()
    >>> elapsed() >= before
    True
    """
    return time.clock_gettime(_CLOCK)
