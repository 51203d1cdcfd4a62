"""What this machine has."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from linnet.tiles.amounts import total_memory


def free_memory() -> int:
    """Bytes of memory that could be taken without swapping."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        kilobytes = next(line.split()[1] for line in lines if line.startswith("MemAvailable:"))
        return min(int(kilobytes) * 1024, total_memory())
    except (OSError, StopIteration, ValueError):
        return total_memory() // 2


def peak_memory() -> int:
    """The most bytes this process has held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
