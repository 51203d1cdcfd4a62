"""Directories of one host that stay as long as somebody uses them.

Who uses one holds a shared lock on the file `alive` in it, which the system takes back when a process ends in
whatever way. A directory whose lock nobody holds is removed by the next one who makes another beside it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from pathlib import Path

from linnet.errors import StoreError

ABANDONED_SECONDS = 60
"""What is unfinished for longer has lost its maker."""


def attached(bases: list[Path], own: str) -> tuple[Path, int]:
    """The directory of this name in the first base that takes it, and a file that says that we are alive."""
    reasons: list[str] = []
    for base in bases:
        try:
            return base / own, _alive(base / own)
        except OSError as error:
            reasons.append(f"{base}: {error.strerror or error}")
    raise StoreError(f"there is no place for a cache of tiles ({'; '.join(reasons)}); give one with base=")


def _alive(path: Path) -> int:
    """A file in the directory with a lock shared by all that are alive; the directory is made if need be."""
    while True:
        try:
            with contextlib.suppress(FileExistsError):
                os.makedirs(path.parent)
            with contextlib.suppress(FileExistsError):
                os.mkdir(path, 0o700)
            found = os.lstat(path)
        except FileNotFoundError:  # removed by whoever was last
            continue
        if found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise PermissionError(f"{path} belongs to somebody else")
        try:
            file = os.open(path / "alive", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except FileNotFoundError:  # removed by whoever was last
            continue
        fcntl.flock(file, fcntl.LOCK_SH)
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.stat(path / "alive"), os.fstat(file)):
                return file
        os.close(file)


def remove_abandoned(own: Path) -> None:
    """Removes the caches beside ours that nobody uses any more."""
    for path in own.parent.glob(f"linnet-{os.getuid()}-*"):
        if path == own:
            continue
        with contextlib.suppress(OSError):
            if not (path / "alive").exists() and time.time() - path.stat().st_mtime < ABANDONED_SECONDS:
                continue
            file = os.open(path / "alive", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            os.close(file)
