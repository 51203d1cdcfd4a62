"""What of this user can be watched: sessions, jobs and bags, as files in a folder that only he can read."""

from __future__ import annotations

import json
import os
import stat
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from linnet.errors import StoreError

_KEPT = 30 * 86400.0
"""Seconds after which a job or a bag that nobody removed is no longer listed."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that can be watched."""

    kind: str
    """session, job or bag."""
    name: str
    address: str
    """Of a session the address of its page, of a job its address, of a bag its folder."""
    pid: int
    begun: float


def runtime_folder() -> Path:
    """The folder, made if it is not there: of mode 0700, and of this user."""
    base = os.environ.get("LINNET_RUNTIME_DIR") or os.environ.get("XDG_RUNTIME_DIR")
    folder = Path(base) / "linnet" if base else Path(tempfile.gettempdir()) / f"linnet-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise StoreError(f"{folder} is not a folder of this user; remove it, or set LINNET_RUNTIME_DIR")
    if stat.S_IMODE(status.st_mode) != 0o700:
        folder.chmod(0o700)
    return folder


def register(kind: str, name: str, address: str) -> Path | None:
    """List something; returns the file that lists it. None if there is no place for it: nothing fails."""
    entry = Entry(kind, name, address, os.getpid(), time.time())
    file = f"{kind}-{sha256(address.encode()).hexdigest()[:24]}.json"
    with suppress(OSError, StoreError):
        folder = runtime_folder()
        partial = folder / f".{file}.{os.getpid()}"
        partial.write_text(json.dumps(asdict(entry)), encoding="utf-8")
        partial.replace(folder / file)
        return folder / file
    return None


def forget(address: str) -> None:
    """List something no longer."""
    with suppress(OSError, StoreError):
        for path in runtime_folder().glob(f"*-{sha256(address.encode()).hexdigest()[:24]}.json"):
            path.unlink(missing_ok=True)


def entries() -> list[Entry]:
    """What is listed, the latest first; sessions whose process has ended are taken off."""
    listed: list[Entry] = []
    for path in runtime_folder().glob("[a-z]*.json"):
        try:
            entry = Entry(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            continue
        if not _there(entry):
            with suppress(OSError):
                path.unlink()
            continue
        listed.append(entry)
    return sorted(listed, key=lambda each: -each.begun)


def _there(entry: Entry) -> bool:
    if entry.kind != "session":
        return time.time() - entry.begun < _KEPT
    try:
        os.kill(entry.pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True
