"""A task that may have killed workers, computed in a process of its own: only that one dies of it.

That a worker died inside a kernel may be chance. So the next one does not call the kernel itself: a child
process reads, computes and writes, and the worker looks on. If the child dies, the task is to blame, and
nobody else; three times, and it is given up. A worker that is killed meanwhile proves nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from linnet.errors import JobFailedError, LinnetError
from linnet.programs import BoundProgram, Task
from linnet.tiles.codec import Compression
from linnet.workers.attempt import Attempt, Calls
from linnet.workers.launcher import Limits
from linnet.workers.names import named
from linnet.workers.spec import JobSpec, spec_key
from linnet.workers.store import open_store
from linnet.workers.traffic import Traffic

DEATHS = 3
"""Processes that may die of a task before it is given up."""


class Quarantine:
    """Computes tasks of one job in child processes."""

    def __init__(
        self, store: str, job: str, bound: BoundProgram, limits: Limits, imports: Sequence[str]
    ) -> None:
        self._bound = bound
        self._given: dict[str, Any] = {
            "store": store,
            "job": job,
            "limits": asdict(limits),
            "imports": list(imports),
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
            child = subprocess.run(
                [sys.executable, "-m", "linnet.workers.quarantine"],
                input=json.dumps(given),
                stdout=subprocess.PIPE,
                text=True,
                check=False,
            )
            if child.returncode == 0:
                said = json.loads(child.stdout.splitlines()[-1])
                if said["error"] is not None:
                    raise JobFailedError(said["error"])
                attempt.seconds = said["seconds"]
                attempt.tiles = {}
                return
            ends.append(child.returncode)
        raise JobFailedError(self._verdict(attempt, ends))

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
    from linnet.workers.serving import import_kernels, limit_memory
    from linnet.workers.taking import told

    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")  # should memory run out, end this one
    given = json.load(sys.stdin)
    limit_memory(Limits(**given["limits"]))
    seconds, error = 0.0, None
    try:
        seconds = _computed(given, import_kernels)
    except (LinnetError, MemoryError) as raised:
        error = told(raised)
    print(json.dumps({"seconds": seconds, "error": error}))


def _computed(given: dict[str, Any], import_kernels: Any) -> float:
    store, job = open_store(given["store"]), given["job"]
    spec = JobSpec.from_bytes(memoryview(store.get(spec_key(job))))
    import_kernels(spec, given["imports"])
    calls = Calls(spec, job)
    traffic = Traffic(store, None, cast("Compression | None", spec.options.compression), threads=1)
    attempt = Attempt(
        given["name"], named(given["name"]), None, (), given["token"], published=given["published"]
    )
    calls.read(attempt, traffic)
    calls.compute(attempt)
    calls.write(attempt, traffic)
    return attempt.seconds


if __name__ == "__main__":
    main()
