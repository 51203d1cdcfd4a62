"""A clock that a test moves on."""

from __future__ import annotations


class Clock:
    """Seconds that pass only when told.

    >>> clock = Clock()
    >>> before = clock()
    >>> clock.later(30)
    >>> clock() - before
    30.0
    """

    def __init__(self, seconds: float = 1000.0) -> None:
        self.seconds: float = seconds

    def __call__(self) -> float:
        return self.seconds

    def later(self, seconds: float) -> None:
        """Let time pass."""
        self.seconds += seconds
