"""How the process of a worker ends when it is told to, even while a kernel does not return.

Python runs handlers of signals in the main thread, between two of its instructions: inside a kernel that
hangs, never. So a thread of its own is woken by them, whichever thread they reach: BLAS has some that Python
does not know. A worker that was told to stop gets some seconds for what it computes; then its process ends. A
worker may die at any moment, so nothing is lost by that.

A kernel may leave threads behind, for which Python waits at its end, perhaps for ever. So when the worker has
ended in order, its process still ends within seconds.

A kernel that keeps the interpreter's lock lets none of these threads run. Where tasks have a limit of time, a
thread of C, which needs no lock, ends the process unless it is put off again and again. Otherwise whoever
started the worker has to kill it, as clients do.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import socket
import sys
import threading
import time

from linnet.workers.worker import Worker

SIGNALS = (signal.SIGTERM, signal.SIGINT)
GRACE = 30.0
"""Seconds for what is computed, after a signal."""
OVER = 5.0
"""Seconds for it when the job is over, and nobody needs it."""
_FAREWELL = 5.0
"""Seconds to give tasks back."""
_LOOK = 0.1
_PUT_OFF = 1.0
"""Seconds after which the end of the process is put off again."""


class Leaving:
    """Sees to it that this process ends when its worker has to; made in the main thread."""

    def __init__(self, grace: float = GRACE) -> None:
        self._grace = grace
        self._worker: Worker | None = None
        self._until: float | None = None
        self._status: int | None = None
        """That of the process, when its worker has ended."""
        self._told, telling = socket.socketpair()
        telling.setblocking(False)
        signal.set_wakeup_fd(telling.detach(), warn_on_full_buffer=False)
        for number in SIGNALS:
            signal.signal(number, _noted)
        threading.Thread(target=self._listen, name="signals", daemon=True).start()
        threading.Thread(target=self._watch, name="leaving", daemon=True).start()

    def watch(self, worker: Worker) -> None:
        """This is the worker of the process."""
        self._worker = worker
        self._put_off_end()  # before the first kernel, which may be the one

    def ended(self, status: int) -> None:
        """The worker of the process has ended; what its kernels left behind keeps the process for seconds."""
        self._status = status
        self._until = time.monotonic() + OVER

    def _put_off_end(self) -> None:
        """Let the process end some time after the limit of a task, if nobody can put that off again."""
        limit = None if self._worker is None else self._worker.task_seconds
        if limit is not None:
            faulthandler.dump_traceback_later(limit + OVER, exit=True)

    def _listen(self) -> None:
        while True:
            number = self._told.recv(1)[0]
            if number not in SIGNALS:
                continue
            if self._worker is None:  # it is not at work yet
                os._exit(128 + number)
            self._until = time.monotonic() + self._grace
            self._worker.stop()

    def _watch(self) -> None:
        put_off = 0.0
        while True:
            time.sleep(_LOOK)
            if time.monotonic() - put_off > _PUT_OFF:
                put_off = time.monotonic()
                self._put_off_end()
            if self._until is None and self._worker is not None and self._worker.is_over:
                self._until = time.monotonic() + OVER
            if self._until is not None and time.monotonic() > self._until:
                break
        faulthandler.cancel_dump_traceback_later()
        if self._status is not None:
            sys.stdout.flush()
            os._exit(self._status)
        assert self._worker is not None
        said = f"linnet: worker {self._worker.name} was told to stop, and a kernel did not return"
        print(said, file=sys.stderr, flush=True)
        farewell = threading.Thread(target=self._worker.say_goodbye, daemon=True)
        farewell.start()
        farewell.join(_FAREWELL)
        os._exit(1)


def _noted(number: int, frame: object) -> None:
    """The thread that listens was woken: there is nothing to do here."""
