"""Memory that this process has, for those who watch it."""

from __future__ import annotations

import os
from pathlib import Path

_STATUS = Path("/proc/self/statm")


def resident() -> int:
    """Bytes of this process that are in memory now; 0 where the system does not say.

    >>> resident() >= 0
    True
    """
    try:
        pages = int(_STATUS.read_text(encoding="ascii").split()[1])
    except (OSError, IndexError, ValueError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
