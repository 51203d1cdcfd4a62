"""The files of a cache: how large they are, when they were used, and whether they were changed.

Reading a file through a mapping leaves no trace, so who uses one says so by its time of access. The time of
change is left to those who write: by it, and by which file it is, a change is noticed.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from linnet.workers.host_folders import ABANDONED_SECONDS

_PAGE = mmap.PAGESIZE

_AT_CWD = -100
_OMIT = (1 << 30) - 2
"""As `utimensat` of Linux knows them: paths from the working directory; a time that is left as it is."""
_utimensat: Any = ctypes.CDLL(None).utimensat if sys.platform.startswith("linux") else None

Stamp = tuple[int, int, int, int]
"""Which file it is, its size, and when it was changed."""
Seen = tuple[str, Stamp]
"""A file, and what it was like."""


def touch(path: str) -> None:
    """Say that a file is used now; when it was changed stays as it is, where the system can do that."""
    now = time.time_ns()  # the time the system would take stands still for milliseconds
    if _utimensat is not None:
        seconds, rest = divmod(now, 10**9)
        _utimensat(_AT_CWD, os.fsencode(path), (ctypes.c_long * 4)(seconds, rest, 0, _OMIT), 0)
        return
    with contextlib.suppress(OSError):
        os.utime(path, ns=(now, now))


def stamp(found: os.stat_result) -> Stamp:
    """What is another if the file is, or was changed."""
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def stamp_of(path: str) -> Stamp | None:
    """The stamp of the file of that name; None if there is none."""
    try:
        return stamp(os.stat(path))
    except OSError:
        return None


def was_changed(path: str, before: Stamp) -> bool:
    """Whether the file that had this stamp was changed in its place; not, if it is gone or another is there.

    Who maps it sees such a change. Where `touch` sets the time of change, nobody can tell.
    """
    now = stamp_of(path) if _utimensat is not None else None
    return now is not None and now[:2] == before[:2] and now != before


def created(path: str, size: int) -> int:
    """A new file that whoever counts from now on sees in its full size."""
    file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        os.ftruncate(file, size)
    except OSError:
        os.close(file)
        os.unlink(path)
        raise
    return file


def pages_of(size: int) -> int:
    """What a file of this size takes."""
    return -(-size // _PAGE) * _PAGE


class CachedFile(NamedTuple):
    """A file of a cache."""

    when: int
    """It was last used."""
    size: int
    growing: bool
    """Somebody is writing it."""
    path: str


def found_in(entries: Iterable[os.DirEntry[str]]) -> Iterator[CachedFile]:
    """The files among these, as long as they are there."""
    young = time.time_ns() - ABANDONED_SECONDS * 10**9
    for entry in entries:
        with contextlib.suppress(OSError):
            found = entry.stat(follow_symlinks=False)
            growing = entry.name.startswith(".") and found.st_mtime_ns > young
            yield CachedFile(found.st_atime_ns, pages_of(found.st_size), growing, entry.path)
