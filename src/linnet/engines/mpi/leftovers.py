"""What jobs that were killed have left in shared memory.

Ranks of one host talk through files that the MPI library puts into shared memory, and deletes at the end of
the job. Where all ranks are killed at once nobody does, and they take memory until the host is restarted.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_FOLDER = Path("/dev/shm")
_NAMES = ("mpich_shm_*", "mpich_shar_tmp*", "vader_segment.*", "sm_segment.*")
"""How MPICH and those that came from it, and Open MPI, call such files."""
_AGE = 10.0
"""Seconds that a file is left alone: a job that starts may not yet use what it has made."""


def clear_leftovers(folder: Path = _FOLDER, processes: Path = Path("/proc")) -> list[str]:
    """Delete the files of jobs that are gone: the user's own, which no process uses. Returns their names."""
    found = [path for name in _NAMES for path in folder.glob(name) if _is_old(path)]
    if not found or not (processes / "self" / "maps").exists():
        return []
    used = set(_used(processes))
    removed: list[str] = []
    for path in found:
        if str(path) not in used:
            with suppress(OSError):  # another rank was faster
                path.unlink()
                removed.append(path.name)
    return removed


def _is_old(path: Path) -> bool:
    """Whether it is the user's own, and no job that just starts has made it."""
    try:
        told = path.stat()
    except OSError:
        return False
    return told.st_uid == os.getuid() and time.time() - told.st_mtime > _AGE


def _used(processes: Path) -> Iterator[str]:
    """Files that processes have in their memory; those of other users, and those that end, do not tell."""
    for maps in processes.glob("[0-9]*/maps"):
        with suppress(OSError), maps.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                place = line.find("/")
                if place >= 0:
                    yield line[place:].rstrip("\n").removesuffix(" (deleted)")
