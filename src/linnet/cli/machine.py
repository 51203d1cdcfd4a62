"""What this machine has."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where a container's memory limit stands, in the two versions of control groups."""


def total_memory() -> int:
    """Bytes of memory this process may use: the machine's, or its container's if that is less."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *filter(None, map(_limit, _LIMITS))])


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


def _limit(path: str) -> int | None:
    try:
        text = Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
