"""A task that may have killed workers, computed in a process of its own: only that one dies of it.

That a worker died inside a kernel may be chance. So the next one does not call the kernel itself: a child
process reads, computes and writes, and the worker looks on. If the child ends without a result, whatever its
status, the task is to blame, and nobody else; three times, and it is given up. A worker that is killed
meanwhile proves nothing.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from linnet.errors import DamagedTileError, JobFailedError, LinnetError
from linnet.programs import BoundProgram, Task
from linnet.tiles.codec import Compression
from linnet.workers.attempt import Attempt, Calls
from linnet.workers.files import check_files
from linnet.workers.launcher import Limits
from linnet.workers.names import named
from linnet.workers.spec import JobSpec, folder_of, spec_key
from linnet.workers.store import open_store
from linnet.workers.traffic import Traffic

_DIE_WITH_PARENT = 1
"""As `prctl` of Linux knows it."""
DEATHS = 3
"""Processes that may die of a task before it is given up."""


_LOOK = 0.1
"""Seconds between looks at whether the job goes on."""


class Interrupted(LinnetError):
    """The job is over: what would be computed is of no use.

    It is one of Linnet's kinds, of which an error of a kernel never is.
    """


def too_slow(bound: BoundProgram, attempt: Attempt, limit: float) -> str:
    """That an attempt takes longer than the job allows, as the ledger keeps it."""
    assert isinstance(attempt.task, Task)
    where = bound.where(attempt.task)
    return f"KernelError: task {attempt.name} took longer than task_seconds={limit:g}\n  in {where}"


class Quarantine:
    """Computes tasks of one job in child processes."""

    def __init__(
        self,
        store: str,
        job: str,
        bound: BoundProgram,
        limits: Limits,
        imports: Sequence[str],
        files: Sequence[str] = (),
        is_over: Callable[[], bool] = lambda: False,
        limit: float | None = None,
    ) -> None:
        self._bound, self._limit = bound, limit
        self._is_over = is_over
        self._given: dict[str, Any] = {
            "store": store,
            "job": job,
            "limits": asdict(limits),
            "imports": list(imports),
            "files": list(files),
        }

    def compute(self, attempt: Attempt) -> None:
        """Have a task computed and its tiles stored; JobFailedError says why that is not to be."""
        given = {
            **self._given,
            "name": attempt.name,
            "token": attempt.token,
            "published": dict(attempt.published),
        }
        ends: list[int] = []
        while len(ends) < DEATHS:
            status, answer = self._run(json.dumps(given))
            said = json.loads(answer) if status == 0 and answer else None
            if status == -signal.SIGALRM and self._limit is not None:
                raise JobFailedError(too_slow(self._bound, attempt, self._limit))
            if said is None:  # whatever its status is: it ended before its end
                ends.append(status)
                continue
            if said["error"] is not None:
                raise JobFailedError(said["error"])
            attempt.seconds = said["seconds"]
            attempt.tiles = {}
            return
        raise JobFailedError(self._verdict(attempt, ends))

    def _run(self, given: str) -> tuple[int, str]:
        """The status and the answer of a child; Interrupted if the job is over before it has one."""
        child = subprocess.Popen(
            [sys.executable, "-m", "linnet.workers.quarantine"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with child:
            told: str | None = given
            while True:
                try:
                    answer, _ = child.communicate(told, timeout=_LOOK)
                    return child.returncode, answer
                except subprocess.TimeoutExpired:
                    told = None
                    if self._is_over():
                        child.kill()
                        raise Interrupted from None

    def _verdict(self, attempt: Attempt, ends: list[int]) -> str:
        assert isinstance(attempt.task, Task)
        how = ", ".join(f"signal {-end}" if end < 0 else f"status {end}" for end in dict.fromkeys(ends))
        memory = "; signal 9 often means that memory ran out" if -9 in ends else ""
        return (
            f"task {attempt.name} ended the process that computed it ({how}) {len(ends)} times while it ran "
            f"alone: its kernel crashes, or needs more memory than there is{memory}\n"
            f"  in {self._bound.where(attempt.task)}"
        )


def main() -> None:
    """Compute the task that is described on standard input."""
    from linnet.workers.begin_tasks import told
    from linnet.workers.serving import import_kernels, limit_memory

    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGINT})  # a worker blocks them
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")  # should memory run out, end this one
    told_to = os.dup(1)
    os.dup2(2, 1)  # what kernels print is no answer
    given = json.load(sys.stdin)
    limit_memory(Limits(**given["limits"]))
    seconds, error = 0.0, None
    try:
        seconds = _computed(given, import_kernels)
    except (LinnetError, MemoryError) as raised:
        error = told(raised)
    os.write(told_to, json.dumps({"seconds": seconds, "error": error}).encode())


def _computed(given: dict[str, Any], import_kernels: Any) -> float:
    store, job = open_store(given["store"]), given["job"]
    spec = JobSpec.from_bytes(memoryview(store.get(spec_key(job))))
    import_kernels(spec, given["imports"])
    check_files(spec.program, given["files"])
    calls = Calls(spec, folder_of(job, spec.identity), given["files"])
    traffic = Traffic(store, None, cast("Compression | None", spec.options.compression), threads=1)
    attempt = Attempt(
        given["name"], named(given["name"]), None, (), given["token"], published=given["published"]
    )
    calls.read(attempt, traffic)
    # The system ends this process when the kernel takes too long, whatever that holds.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, spec.options.task_seconds or 0.0)
    with calls.surroundings():
        calls.compute(attempt)
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    if traffic.changed(attempt.seen):
        raise DamagedTileError(f"a tile that task {attempt.name} reads was changed as it ran; resume the job")
    calls.write(attempt, traffic)
    return attempt.seconds


if __name__ == "__main__":
    main()
