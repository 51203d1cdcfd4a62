"""Processes of this machine that belong to a server: found and killed, whoever started them.

A server is a session of processes. Jobs may leave it, so they are also known by a variable of their
environment.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path


def started(pid: int) -> str | None:
    """When a process began, in ticks; None if it is gone (a dead one that nobody collected is gone)."""
    try:
        rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if rest[0] in "ZX" else rest[19]


def belonging(variable: str, value: str, session: int | None = None) -> list[int]:
    """Processes with this in their environment, or of this session; not this process itself."""
    wanted = f"{variable}={value}".encode()
    found: list[int] = []
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            rest = Path(entry.path, "stat").read_text().rpartition(")")[2].split()
            if rest[0] in "ZX":
                continue
            if (session is not None and rest[3] == str(session)) or wanted in Path(
                entry.path, "environ"
            ).read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def kill_all(variable: str, value: str, session: int | None = None, timeout: float = 60.0) -> None:
    """Kill all of them, and those that they start meanwhile, until none is left."""
    until = time.monotonic() + timeout
    while time.monotonic() < until:
        found = belonging(variable, value, session)
        if not found:
            return
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)
