"""Processes of this machine that make calls, each one at a time.

They are started by this process, speak with it over a pair of sockets that nobody else has, and end with it:
each notices when the other end is gone, whatever it computes. A process that dies is replaced.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from linnet.engines.threads import available_cores
from linnet.errors import EngineClosedError
from linnet.futures.travelling import Lost

_BLAS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
Answered = Callable[[Any], None]


class Processes:
    """So many processes; each is started when it is first needed."""

    nodes = 1
    where = "this machine"

    def __init__(self, count: int, keep: Callable[[Any], None]) -> None:
        self.places = count
        self._lock = threading.Lock()
        self._idle: list[_Process] = []
        self._all: set[_Process] = set()
        self._closed = False
        weakref.finalize(self, _end, self._all)
        keep(self)

    def carry(self, name: str, sent: bytes, node: int | None, answered: Answered) -> None:
        with self._lock:
            if self._closed:
                raise EngineClosedError(f"the processes were closed before {name} was called")
            process = self._idle.pop() if self._idle else None
            if process is None:
                process = _Process(self.places)
                self._all.add(process)
                threading.Thread(target=_listen, args=(weakref.ref(self), process), daemon=True).start()
            process.answered = answered
        process.send(sent)

    def back(self, process: _Process) -> Answered:
        """A process answered, and is idle."""
        with self._lock:
            answered, process.answered = process.answered, None
            self._idle.append(process)
        assert answered is not None
        return answered

    def gone(self, process: _Process) -> None:
        """A process ended; another one is started when it is needed."""
        why = process.ended()
        with self._lock:
            self._all.discard(process)
            if process in self._idle:
                self._idle.remove(process)
            answered, process.answered = process.answered, None
            closed = self._closed
        if answered is not None:
            answered(EngineClosedError("the processes were closed while it ran") if closed else Lost(why))

    def let_go(self) -> None:
        """The engine was closed: end them."""
        with self._lock:
            self._closed = True
            ending = set(self._all)
        _end(ending)


def _end(processes: set[_Process]) -> None:
    for each in list(processes):
        each.end()


def _listen(owner: weakref.ref[Processes], process: _Process) -> None:
    """Hand on what a process answers, until it is gone."""
    while True:
        try:
            answer = process.connection.recv_bytes()
        except (EOFError, OSError):
            break
        pool = owner()
        if pool is None:
            break
        answered = pool.back(process)
        del pool
        answered(answer)
        del answered, answer
    process.end()
    pool = owner()
    if pool is not None:
        pool.gone(process)


class _Process:
    """One process, and this end of its socket."""

    def __init__(self, count: int) -> None:
        ours, theirs = socket.socketpair()
        threads = str(max(1, available_cores() // count))
        try:
            self.popen = subprocess.Popen(
                [sys.executable, "-m", "linnet.futures.process_worker", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={
                    **dict.fromkeys(_BLAS, threads),
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(each for each in sys.path if each),
                },
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self.connection = Connection(ours.detach())
        self.answered: Answered | None = None
        self._owner = os.getpid()

    def send(self, sent: bytes) -> None:
        with contextlib.suppress(OSError):  # it is gone: who listens to it finds out too
            self.connection.send_bytes(sent)

    def end(self) -> None:
        """Kill it; not from a forked child of this process, which is not its parent."""
        if os.getpid() == self._owner and self.popen.poll() is None:
            self.popen.kill()
            self.popen.wait()

    def ended(self) -> str:
        code = self.popen.wait()
        self.connection.close()
        if code >= 0:
            return f"its process ended with exit code {code}"
        name = signal.Signals(-code).name if -code in signal.valid_signals() else f"signal {-code}"
        hint = " (perhaps for want of memory)" if name == "SIGKILL" else ""
        return f"its process was ended by {name}{hint}"
