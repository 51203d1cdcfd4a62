"""Workers as processes of this machine: the default."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from linnet.workers.launcher import Order

_SHOWN = 2000
"""Characters of a log that are shown."""
_START = 120.0
"""Seconds that a process may take to begin: on a busy machine it loads its modules for long."""


class Processes:
    """Starts workers that outlive the client.

    What they print goes to files in `logs`; one is told of when workers cannot even begin. Without `logs`
    they are in a temporary directory, which is removed at the end unless a worker failed.
    """

    def __init__(self, *, logs: str | os.PathLike[str] | None = None) -> None:
        self._logs = Path(logs or tempfile.mkdtemp(prefix="linnet-logs-"))
        self._temporary = logs is None
        self._lock = threading.Lock()
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._told: set[str] = set()
        self._expected: dict[str, float] = {}
        """By when each must have begun; later it is taken for one that hangs."""

    def start(self, order: Order) -> None:
        self._logs.mkdir(parents=True, exist_ok=True)
        for name in order.names:
            log = self._log(name)
            with open(log, "wb") as out:
                child = subprocess.Popen(
                    command(order, name),
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    env={**environment(), **order.secrets},
                    start_new_session=True,
                )
            with self._lock:
                self._children[name] = child
                self._expected[name] = time.monotonic() + order.limits.cold_start + _START

    def _log(self, name: str) -> Path:
        return self._logs / f"{name.replace('/', '-')}.log"

    @property
    def running(self) -> dict[str, int]:
        """The workers started here that run, each with the number of its process."""
        with self._lock:
            return {name: child.pid for name, child in self._children.items() if child.poll() is None}

    @property
    def pids(self) -> list[int]:
        """The numbers of their processes."""
        return list(self.running.values())

    def coming(self) -> list[str]:
        now = time.monotonic()
        with self._lock:
            return [
                name
                for name, child in self._children.items()
                if now < self._expected[name] and child.poll() is None
            ]

    def ended(self) -> list[str]:
        with self._lock:
            found = [
                name
                for name, child in self._children.items()
                if name not in self._told and child.poll() is not None
            ]
            self._told.update(found)
        return found

    def problem(self) -> str | None:
        with self._lock:
            ended = [(name, child) for name, child in self._children.items() if child.poll() is not None]
        for name, child in reversed(ended):
            if child.returncode is not None and child.returncode > 0:
                log = self._log(name)
                said = log.read_text(errors="replace")[-_SHOWN:].strip() if log.exists() else ""
                return f"worker {name} ended with status {child.returncode}: {said or 'it said nothing'}"
        return None

    def kill(self, names: Sequence[str]) -> None:
        running = self.running
        with self._lock:
            for name in running.keys() & set(names):
                self._children[name].kill()

    def close(self) -> None:
        with self._lock:
            for child in self._children.values():
                child.poll()
        if self._temporary and self.problem() is None:
            shutil.rmtree(self._logs, ignore_errors=True)

    def __del__(self) -> None:
        for child in self._children.values():
            if child.poll() is None:
                child.returncode = 0  # it outlives this object, and is meant to

    def __repr__(self) -> str:
        return f"Processes(logs={str(self._logs)!r})"


def command(order: Order, name: str, secrets: Path | None = None) -> list[str]:
    """The command line of one of the workers; secrets are not in it, but perhaps the file they are in."""
    limits = order.limits
    options: list[str] = ["--name", name, "--width", str(limits.width), "--timeout", str(limits.timeout)]
    for option, value in (
        ("--memory", limits.memory),
        ("--runtime", limits.runtime),
        ("--cold-start", limits.cold_start or None),
        ("--store-delay", limits.store_delay or None),
        ("--cache", limits.cache),
    ):
        if value is not None:
            options += [option, str(value)]
    if secrets is not None:
        options += ["--secrets", str(secrets)]
    for module in order.imports:
        options += ["--allow", module]
    for root in order.files:
        options += ["--allow-files", root]
    return [sys.executable, "-m", "linnet.cli", "worker", order.address, *options]


def environment() -> dict[str, str]:
    """Where a worker finds what the client finds, and one BLAS thread for each worker."""
    found = dict(os.environ)
    paths = [path for path in sys.path if path]
    found["PYTHONPATH"] = os.pathsep.join(
        dict.fromkeys([*paths, *found.get("PYTHONPATH", "").split(os.pathsep)])
    )
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        found[name] = "1"
    return found
