"""Lines for the log of a page: what Python's `logging` says in this process, and what jobs wrote."""

from __future__ import annotations

import logging
import time
from collections import deque
from pathlib import Path

_LINES = 300
_TAIL = 2_000
"""Bytes of a file that are shown: its end."""


class LoggedLines(logging.Handler):
    """Keeps the latest lines that loggers hand on, from when it is made until it is closed."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: deque[tuple[float, str]] = deque(maxlen=_LINES)
        logging.getLogger().addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line."""
        try:
            said = record.getMessage()
        except Exception:  # arguments that do not fit the words; `logging` tells of it elsewhere
            said = str(record.msg)
        self._lines.append((record.created, f"{record.levelname.lower()} {record.name}: {said}"))

    def lines(self) -> list[list[str]]:
        """Time of day and text, the latest last."""
        return [[clock(at), text] for at, text in list(self._lines)]

    def close(self) -> None:
        """Keep nothing any more."""
        logging.getLogger().removeHandler(self)
        super().close()


def clock(at: float) -> str:
    """A time of day.

    >>> len(clock(0.0))
    8
    """
    return time.strftime("%H:%M:%S", time.localtime(at))


def tail(path: Path) -> str:
    """The end of a file; empty where there is none.

    >>> tail(Path("/no/such/file"))
    ''
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(size - _TAIL, 0))
            said = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return said if size <= _TAIL else "… " + said.split("\n", 1)[-1]
