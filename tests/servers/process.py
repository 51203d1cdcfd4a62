"""A server process: started, waited for, stopped; its words are kept for the error message."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

# Programs that came with the environment, and those that only root has on its path.
SEARCHED = os.pathsep.join(
    [str(Path(sys.executable).parent), os.environ.get("PATH", ""), "/usr/sbin", "/sbin"]
)


def program(name: str) -> str:
    """Where the program of this name is."""
    found = shutil.which(name, path=SEARCHED)
    if found is None:
        raise FileNotFoundError(
            f"no program {name!r} in {SEARCHED}; `make dev system` installs what tests need"
        )
    return found


def free_ports(count: int = 1) -> list[int]:
    """Different ports of 127.0.0.1 that nobody listens on."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def accepts(port: int) -> bool:
    """Whether somebody listens on this port."""
    with socket.socket() as each:
        each.settimeout(1)
        return each.connect_ex(("127.0.0.1", port)) == 0


class Process:
    """One server process, which cannot outlive the tests that started it."""

    def __init__(
        self, command: Sequence[str | Path], log: Path, environment: dict[str, str] | None = None
    ) -> None:
        self.command = [str(word) for word in command]
        self.log = log
        # The kernel ends the server when we end, even if a time-out or a signal left us no time for that.
        tether = ["setpriv", "--pdeathsig", "KILL", "--"] if shutil.which("setpriv") else []
        with log.open("ab") as file:
            self._running = subprocess.Popen(
                [*tether, *self.command],
                cwd=log.parent,
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )

    @property
    def pid(self) -> int:
        return self._running.pid

    @property
    def alive(self) -> bool:
        return self._running.poll() is None

    def wait_until(self, answers: Callable[[], bool], seconds: float = 30) -> None:
        """Returns when `answers()` is true; a server that ends or stays silent is an error with its log."""
        end = time.monotonic() + seconds
        while self.alive and time.monotonic() < end:
            if answers():
                return
            time.sleep(0.02)
        what = (
            f"did not answer within {seconds:g} s" if self.alive else f"ended with {self._running.returncode}"
        )
        self.kill()
        raise RuntimeError(f"{' '.join(self.command)}\n{what}; it said:\n{self.said()}")

    def said(self, characters: int = 3000) -> str:
        """The end of what it wrote."""
        return self.log.read_text(encoding="utf-8", errors="replace")[-characters:]

    def signal(self, number: signal.Signals) -> None:
        if self.alive:
            self._running.send_signal(number)

    def stop(self, seconds: float = 10) -> None:
        """Asks it to end, and insists when it does not."""
        self.signal(signal.SIGTERM)
        try:
            self._running.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Ends it at once, as a crash would."""
        self.signal(signal.SIGKILL)
        self._running.wait()
