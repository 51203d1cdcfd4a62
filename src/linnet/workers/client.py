"""Jobs as users hold them: submitted, watched, waited for, cancelled, resumed, fetched."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from linnet.errors import (
    AddressError,
    InputError,
    JobError,
    LinnetError,
    StoreError,
)
from linnet.programs import BoundProgram
from linnet.programs.outputs import Outputs
from linnet.tiles import TiledArray
from linnet.workers.address import Address
from linnet.workers.cache import clear_cache
from linnet.workers.failures import ended_with
from linnet.workers.launcher import Launcher, Limits
from linnet.workers.launchers import make_launcher
from linnet.workers.ledger import Status
from linnet.workers.parts import Parts, open_parts, reopened
from linnet.workers.provisioner import Policy, Sample, provision
from linnet.workers.queue import Entry
from linnet.workers.rebuilding import rebuild, repair
from linnet.workers.report import Mark, Report, total
from linnet.workers.results import outputs, sweep
from linnet.workers.serving import check_imports
from linnet.workers.spec import InputSpec, JobSpec, Options, spec_key
from linnet.workers.submission import check_memory, job_spec, store_inputs

_POLL = (0.005, 0.1)
"""Seconds between looks at a job, at first and at last."""
_FAREWELL = 3.0
"""Seconds that workers get to leave a job that has ended and is deleted."""
_PERIOD = 0.5
"""Seconds between looks of the provisioner."""

J = TypeVar("J", bound="Job")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job is."""

    state: str
    """running, finished, failed, stopped or cancelled."""
    done: int
    """Tasks done."""
    total: int
    """Tasks in all."""
    ready: int
    """Tasks that wait for a worker."""
    leased: int
    """Tasks in the hands of workers."""
    workers: int
    """Workers that are alive."""
    seconds: float
    """From the first task begun to now, or to the last one done."""
    reason: str = ""
    """Why it failed or stopped."""

    def __str__(self) -> str:
        return (
            f"{self.state}: {self.done} of {self.total} tasks, {self.ready} ready, {self.leased} under way, "
            f"{self.workers} workers, {self.seconds:.1f} s" + (f": {self.reason}" if self.reason else "")
        )


class Job:
    """A job of stateless workers."""

    def __init__(
        self,
        parts: Parts,
        spec: JobSpec,
        launcher: Launcher | None,
        policy: Policy,
        limits: Limits,
        imports: Sequence[str],
    ) -> None:
        self._parts = parts
        self._spec = spec
        self._launcher = launcher
        self._policy = policy
        self._limits = limits
        self._imports = imports
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._old_problem: str | None = None
        self.trace: list[Sample] = []
        """What the provisioner saw, about twice a second."""

    @property
    def address(self) -> str:
        """Where the job is: for `ln.attach` and `linnet worker`. It holds no secret."""
        return self._parts.address.text

    @property
    def spec(self) -> JobSpec:
        """What the job is."""
        return self._spec

    @property
    def name(self) -> str:
        """Of the job, which no other job of its store has."""
        return self._parts.address.job

    # ---- watching

    def done(self, within: float = 0.0) -> bool:
        """Whether the job has ended, well or not, now or within some seconds."""
        return self._ended(within) is not None

    def _ended(self, within: float) -> Status | None:
        """How the job ended, now or within some seconds; None: it runs."""
        deadline = time.monotonic() + within
        pause = _POLL[0]
        while (status := self._parts.ledger.status()).state == "running":
            self._look_at_workers()
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            time.sleep(min(left, pause))
            pause = min(1.5 * pause, _POLL[1])
        return status

    def lines(self, after: int) -> tuple[list[str], int]:
        """Events that workers told, as lines, from a position on; and the position to ask from next."""
        return self._parts.ledger.lines(after)

    def progress(self) -> Progress:
        """How far the job is."""
        status = self._parts.ledger.status()
        size = self._parts.queue.size()
        alive = len(self._parts.ledger.workers(within=self._policy.silence))
        return Progress(
            state=status.state,
            done=status.done,
            total=status.total,
            ready=size.ready,
            leased=size.leased,
            workers=alive,
            seconds=status.seconds,
            reason=status.reason,
        )

    def facts(self) -> dict[str, float]:
        """What all workers together have counted: tasks, bytes read and written, …"""
        return total(self._parts.ledger.workers())

    def report(
        self,
        path: str | os.PathLike[str],
        marks: Sequence[Mark] = (),
        notes: Sequence[tuple[str, str]] = (),
    ) -> Path:
        """Write a page about the job, one HTML file; `marks` are drawn into its picture."""
        ledger = self._parts.ledger
        made = Report(
            self.address, self._spec, ledger.status(), ledger.workers(), self.trace, marks, list(notes)
        )
        Path(path).write_text(made.html(), encoding="utf-8")
        return Path(path)

    def mark(self, text: str) -> Mark:
        """Something that happens now, for the report."""
        return Mark(self._parts.ledger.status().now, text)

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the job is finished.

        TimeoutError if that takes longer than `timeout` seconds; the job's own error if it failed,
        stopped or was cancelled.
        """
        status = self._ended(math.inf if timeout is None else timeout)
        if status is None:
            raise TimeoutError(f"after {timeout} seconds the job is not finished; {self.progress()}")
        self._end()
        if status.state != "finished":
            raise ended_with(status, self._spec)

    def _look_at_workers(self) -> None:
        """Workers that cannot even begin will not finish the job: say so."""
        problem = self._launcher.problem() if self._launcher is not None else None
        if problem is None or problem == self._old_problem:
            return
        if not self._parts.ledger.workers(within=self._policy.silence):
            self._end()
            raise JobError(f"no worker is alive: {problem}")

    def result(self) -> Outputs:
        """The outputs of the finished job, by name; tiles are read when they are asked for."""
        self.wait()
        return outputs(self._parts, self._spec)

    # ---- changing

    def cancel(self) -> None:
        """Stop the job; workers leave. What is done is kept, and `resume` goes on."""
        self._parts.ledger.halt("cancelled", "cancelled by its client")
        self._end()

    def resume(self, *, workers: int | tuple[int, int] | Policy | None = None) -> None:
        """Go on after anything: a failure, a stop, the loss of every worker, of tiles, of the ledger."""
        self._end()
        try:
            self._parts.ledger.status()
        except AddressError:
            rebuild(self._parts, self._spec)
        else:
            repair(self._parts, self._spec)
        ready = self._parts.ledger.resume()
        self._parts.queue.clear()
        self._parts.queue.put([Entry(name, self._spec.priority(name)) for name in ready])
        if workers is not None:
            self._policy = _policy(workers)
        self.provision()

    def delete(self) -> None:
        """Forget the job: its tiles, inputs and outputs among them, its queue and its ledger."""
        patience = _FAREWELL
        if self._parts.ledger.status().state == "running":
            self.cancel()
            patience = self._policy.silence
        self._end()
        self._see_workers_off(patience)
        self._parts.store.delete([key for key, _ in self._parts.store.list(f"{self._parts.address.job}/")])
        clear_cache(self._parts.store, self._parts.address.job)
        self._parts.queue.drop()
        self._parts.ledger.drop()

    def _see_workers_off(self, seconds: float) -> None:
        """Give workers time to see that the job is over: what they write after a deletion would stay."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for name in self._launcher.ended() if self._launcher is not None else ():
                self._parts.ledger.leave(name)
            if not self._parts.ledger.workers(within=self._policy.silence):
                return
            time.sleep(_POLL[0])

    # ---- workers

    def provision(self) -> None:
        """Let this process see to it that there are workers, while the job runs."""
        if self._launcher is None:
            return
        check_imports(self._spec, self._imports)
        # What befell workers before the job was resumed says nothing of those to come.
        self._old_problem = self._launcher.problem()
        self._stop.clear()
        self._thread = threading.Thread(target=self._provision, name="provisioner", daemon=True)
        self._thread.start()

    def _provision(self) -> None:
        assert self._launcher is not None
        while not self._stop.is_set():
            try:
                sample = provision(self._parts, self._launcher, self._policy, self._limits, self._imports)
            except (LinnetError, OSError):
                # The ledger does not answer now; workers go on, and so does this.
                self._stop.wait(_PERIOD)
                continue
            self.trace.append(sample)
            self._stop.wait(_PERIOD)

    def _end(self) -> None:
        """Start no more workers; tidy up after a finished job."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            if self._parts.ledger.status().state == "finished":
                with suppress(StoreError):  # the job is finished all the same; delete() takes what is left
                    sweep(self._parts, self._spec)

    def close(self) -> None:
        """Let go of the job; its workers go on."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        if self._launcher is not None:
            self._launcher.close()
        self._parts.close()

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Job({self.address!r})"


def submit(
    bound: BoundProgram,
    inputs: Mapping[str, TiledArray],
    *,
    store: str | os.PathLike[str] | None = None,
    ledger: str | None = None,
    queue: str | None = None,
    workers: int | tuple[int, int] | Policy = 2,
    launcher: str | Launcher | None = "processes",
    limits: Limits | None = None,
    options: Options | None = None,
    name: str | None = None,
    arrays: Mapping[str, InputSpec] | None = None,
    kind: type[J] = Job,
) -> J:
    """Give a program to stateless workers; returns at once.

    `store` is a directory (default: one of the user's cache) or a URL, `ledger` and `queue` URLs of
    servers (default: files in that directory). `launcher` starts `workers` workers, as many as suit what
    is ready where two numbers are given, least and most; None: somebody else does (`linnet worker
    ADDRESS`).
    """
    limits = limits or Limits()
    address = Address(
        str(store if store is not None else default_store()), name or os.urandom(8).hex(), ledger, queue
    )
    spec = job_spec(bound, inputs, options or Options(), arrays or {})
    if limits.memory is not None:
        check_memory(spec, limits.memory)
    made = make_launcher(launcher) if isinstance(launcher, str) else launcher
    parts = open_parts(address, create=True, silence=spec.options.lease)
    store_inputs(parts, inputs)
    parts.store.put(spec_key(address.job), [spec.to_bytes()])
    parts.ledger.create(spec.total)
    if spec.total:
        parts.queue.put([Entry("@", spec.priority("@"))])
    job = kind(parts, spec, made, _policy(workers), limits, spec.options.imports)
    job.provision()
    return job


def attach(
    address: str,
    *,
    workers: int | tuple[int, int] | Policy = 0,
    launcher: str | Launcher | None = "processes",
    limits: Limits | None = None,
    imports: Sequence[str] = (),
    kind: type[J] = Job,
) -> J:
    """A job by its address: to watch it, wait for it, cancel or resume it, fetch its result.

    With `workers`, this process sees to it that there are so many, as `submit` does. They import the
    modules named in `imports`, and no others, whatever the job asks for.
    """
    parts, spec = reopened(address)
    made = make_launcher(launcher) if isinstance(launcher, str) else launcher
    job = kind(parts, spec, made, _policy(workers or 1), limits or Limits(), imports)
    if workers:
        job.provision()
    return job


def _policy(workers: int | tuple[int, int] | Policy) -> Policy:
    if isinstance(workers, Policy):
        return workers
    least, most = (workers, workers) if isinstance(workers, int) else workers
    if not 1 <= least <= most:
        raise InputError(f"workers={workers!r}: give a number of at least 1, or (least, most)")
    return Policy(most=most, least=least)


def default_store() -> Path:
    """Where jobs are kept unless told otherwise."""
    base = os.environ.get("LINNET_HOME") or Path.home() / ".cache" / "linnet"
    return Path(base) / "jobs"
