"""Jobs as users hold them: submitted, watched, waited for, cancelled, resumed, fetched."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from linnet.errors import (
    AddressError,
    DamagedLedgerError,
    LinnetError,
    StoreError,
    warn_of,
)
from linnet.events import Event
from linnet.events.recording import from_json
from linnet.programs import BoundProgram
from linnet.reports.html_facts import facts_as_html
from linnet.reports.registry import forget
from linnet.tiles import Index, Tile, TiledArray
from linnet.workers.address import Address, default_store
from linnet.workers.array_specs import Asked
from linnet.workers.cache import clear_cache
from linnet.workers.crew import Crew
from linnet.workers.failures import ended_with
from linnet.workers.files import places
from linnet.workers.job_parts import Parts, reopened
from linnet.workers.kept_results import Keeper
from linnet.workers.launcher import Launcher, Limits
from linnet.workers.launchers import as_launcher
from linnet.workers.ledger import Status
from linnet.workers.progress import Progress
from linnet.workers.provisioner import Policy, Sample, policy_of
from linnet.workers.rebuilding import rebuild, repair
from linnet.workers.report import Mark, Report, total
from linnet.workers.results import StoredTiles, asked_for, outputs, stored, sweep, tiles_so_far
from linnet.workers.second_parts import Gate
from linnet.workers.spec import JobSpec, Options, spec_key
from linnet.workers.submission import (
    abandon,
    borrowing,
    check_arguments,
    check_memory,
    claimed,
    free_name,
    job_spec,
    store_inputs,
)
from linnet.workers.timeouts import ANSWER, within
from linnet.workers.watched import WatchedJob

if TYPE_CHECKING:
    from linnet.fleet.fleet import Fleet

_POLL = (0.005, 0.1)
"""Seconds between looks at a job, at first and at last."""
_LEAST = 0.5
"""Seconds that the ledger gets to answer, at least;"""
_ANSWER = ANSWER
"""and at most, where nobody said how long to wait."""
_FAREWELL = 3.0
"""Seconds that workers get to leave a job that has ended, before it is deleted or told of."""


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
        files: Sequence[str],
    ) -> None:
        self._parts = parts
        self._spec = spec
        self._crew = Crew(parts, spec, launcher, policy, limits, imports, files)
        self._dropped = False

    @property
    def trace(self) -> list[Sample]:
        """What the provisioner of this client saw, about twice a second."""
        return self._crew.trace

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

    @property
    def folder(self) -> str:
        """Where its tiles are in its store. No other job ever has the same, not even one of the same name."""
        return self._parts.folder

    # ---- watching

    def done(self, within: float = 0.0) -> bool:
        """Whether the job has ended, well or not, now or within some seconds."""
        return self._ended(within) is not None

    def _status(self, seconds: float) -> Status:
        with within(seconds):
            return self._parts.ledger.status()

    def _ended(self, seconds: float, watched: WatchedJob | None = None) -> Status | None:
        """How the job ended, now or within some seconds; None: it runs."""
        deadline = time.monotonic() + seconds
        pause = _POLL[0]
        while (status := self._status(max(deadline - time.monotonic(), _LEAST))).state == "running":
            self._crew.check()
            if watched is not None:
                watched.look(status)
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
        with within(_ANSWER):
            status = self._parts.ledger.status()
            size = self._parts.queue.size()
            alive = len(self._parts.ledger.workers(within=self._crew.policy.silence))
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
        with within(_ANSWER):
            return total(self._parts.ledger.workers())

    def report(
        self,
        path: str | os.PathLike[str] | None = None,
        marks: Sequence[Mark] = (),
        notes: Sequence[tuple[str, str]] = (),
    ) -> Any:
        """A page about the job, one HTML file, with its data beside it as JSON; `marks` are drawn into it.

        Without a path the report is returned: it has `html()` and `data`. A job that was submitted with
        `options=ln.Options(events=("TaskFinished",))` has a timeline of its tasks there.
        """
        ledger = self._parts.ledger
        with suppress(LinnetError), within(_FAREWELL + _ANSWER):
            self._crew.wait_for_records(_FAREWELL)
        told = [*self._crew.bill(), *notes]
        with within(_ANSWER):
            status, workers = ledger.status(), ledger.workers()
        made = Report(self.address, self._spec, status, workers, self.trace, marks, told, self._events())
        return made if path is None else made.save(path)

    def _events(self) -> list[Event]:
        """What workers told."""
        found: list[Event] = []
        place = 0
        while self._spec.options.events:
            lines, place = self.lines(place)
            if not lines:
                break
            found += map(from_json, lines)
        return found

    def mark(self, text: str) -> Mark:
        """Something that happens now, for the report."""
        return Mark(self._status(_ANSWER).now, text)

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the job is finished.

        TimeoutError if that takes longer than `timeout` seconds; the job's own error if it failed,
        stopped or was cancelled.
        """
        end = time.monotonic() + (math.inf if timeout is None else timeout)
        watched = WatchedJob(self)
        try:
            status = self._ended(end - time.monotonic(), watched)
        except StoreError as error:
            if time.monotonic() < end - _LEAST:
                raise
            raise TimeoutError(f"after {timeout} seconds nobody knows how the job is: {error}") from error
        if status is None:
            raise TimeoutError(f"after {timeout} seconds the job is not finished; {self.progress()}")
        watched.end(status)
        self._end()
        if status.state != "finished":
            raise ended_with(status, self._spec)

    def result(self) -> Any:
        """What was submitted: an array for an array, a tuple for several, outputs by name for a program.

        Waits for the end of the job. Tiles are read when they are needed. A system that could hardly be
        solved gives its warning here.
        """
        self.wait()
        for name in self._spec.conditions:
            (tile,) = StoredTiles(self._parts, self._spec, name).values()
            warn_of(float(tile[0]))
        if self._spec.wanted is None:
            return outputs(self._parts, self._spec)
        return asked_for(self._parts, self._spec, self._spec.wanted)

    def stored(self) -> dict[str, StoredTiles]:
        """The tiles of the outputs of the finished job, as they lie in the store."""
        self.wait()
        return stored(self._parts, self._spec)

    def tiles_so_far(self, name: str, without: Collection[Index]) -> dict[Index, Tile]:
        """Those tiles of an output that are there while the job runs, but for some that are known."""
        return tiles_so_far(self._parts, self._spec, name, without)

    # ---- changing

    def cancel(self) -> None:
        """Stop the job; workers leave. What is done is kept, and `resume` goes on."""
        self._crew.make_way()
        with within(_ANSWER):
            self._parts.ledger.halt("cancelled", "cancelled by its client")
        self._end()

    def resume(self, *, workers: int | tuple[int, int] | Policy | None = None) -> None:
        """Go on after anything: a failure, a stop, the loss of every worker, of tiles, of the ledger."""
        self._crew.make_way()
        self._end()
        try:
            self._status(_ANSWER)
            repair(self._parts, self._spec)
            ready = self._parts.ledger.resume()
        except (AddressError, DamagedLedgerError):
            rebuild(self._parts, self._spec)
            ready = self._parts.ledger.resume()
        self._parts.queue.clear()
        self._parts.queue.put(self._spec.entries(ready))
        if workers is not None:
            self._crew.policy = policy_of(workers)
        self.provision()

    def delete(self, *, keep: Iterable[StoredTiles] = ()) -> None:
        """Forget the job: its tiles, inputs and outputs among them, its queue and its ledger.

        Outputs to `keep` stay in the store; so do inputs that belong to another job.
        """
        if not self._dropped:  # somebody may have broken off an earlier call
            self._crew.make_way()
            with suppress(AddressError, DamagedLedgerError):  # then workers go by themselves
                patience = _FAREWELL
                if self._status(_ANSWER).state == "running":
                    self.cancel()
                    patience = self._crew.policy.silence
                self._crew.see_off(patience)
            self._end()
        kept = {key for tiles in keep for key in tiles.stored_keys()}
        store = self._parts.store
        store.delete([key for key, _ in store.list(f"{self.folder}/") if key not in kept])
        clear_cache(store, self.folder)
        if not self._dropped:
            self._dropped = True
            with suppress(DamagedLedgerError):
                self._parts.queue.drop()
        self._parts.ledger.drop()
        forget(self.address)
        free_name(self._parts, self._spec)
        # Who wrote meanwhile, and hears only now that there is no such job, deletes what it wrote, if no
        # specification is there; what was written before that went is deleted here.
        store.delete([key for key, _ in store.list(f"{self.folder}/") if key not in kept])

    # ---- workers

    def provision(self) -> None:
        """Let this process see to it that there are workers, while the job runs."""
        self._crew.start()

    def _end(self) -> None:
        """Start no more workers; tidy up after a job that has ended."""
        if not self._crew.stop():
            return
        # A finished job is finished all the same, and delete() takes what is left; or the ledger is lost.
        with suppress(StoreError, AddressError):
            state = self._status(_ANSWER).state
            if state != "running":
                self._crew.kill_later()
            if state == "finished":
                sweep(self._parts, self._spec)

    def close(self) -> None:
        """Let go of the job; its workers go on."""
        self._crew.close()
        self._parts.close()

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Job({self.address!r})"

    def _repr_html_(self) -> str:
        try:
            progress = self.progress()
        except LinnetError as error:
            return facts_as_html("Job", {"address": self.address, "problem": str(error)})
        told = {"program": self._spec.program.name, "state": progress.state, "address": self.address}
        told |= {"tasks": f"{progress.done:,} of {progress.total:,}", "workers": f"{progress.workers}"}
        return facts_as_html("Job", told, progress.done / max(progress.total, 1))


def submit(
    bound: BoundProgram,
    inputs: Mapping[str, TiledArray],
    *,
    store: str | os.PathLike[str] | None = None,
    ledger: str | None = None,
    queue: str | None = None,
    workers: int | tuple[int, int] | Policy = 2,
    launcher: str | Launcher | Fleet | None = "processes",
    limits: Limits | None = None,
    options: Options | None = None,
    name: str | None = None,
    asked: Asked | None = None,
    keeper: Keeper | None = None,
    gate: Gate | None = None,
    files: Sequence[str] | None = None,
) -> Job:
    """Give a program to stateless workers; returns at once.

    `store` is a directory (default: one of the user's cache) or a URL, `ledger` and `queue` URLs of
    servers (default: files in that directory). `launcher` starts `workers` workers, as many as suit what
    is ready where two numbers are given, least and most; None: somebody else does (`linnet worker
    ADDRESS`). `asked` says which arrays are wanted of it, `gate` where a second part of the program begins,
    and what decides whether it is run. A `name` that a job of this store or ledger has is refused.

    Workers that are started may use the files under the roots `files`; None: those that the program names.

    Inputs that are results of another job in the same store are read where they are, as are those that
    `keeper` keeps there; all others are copied into the store.
    """
    limits, options = limits or Limits(), options or Options()
    check_arguments(limits, options, store=store, files=files)
    policy = policy_of(workers)
    address = Address(
        str(store if store is not None else default_store()), name or os.urandom(8).hex(), ledger, queue
    )
    spec = job_spec(bound, inputs, options, asked, gate)
    if limits.memory is not None:
        check_memory(spec, limits.memory)
    made = as_launcher(launcher)
    parts = claimed(address, spec)
    try:
        spec = borrowing(spec, inputs, parts.store, keeper)
        store_inputs(parts, spec, inputs)
        parts.store.put(spec_key(address.job), [spec.to_bytes()])
        if spec.total:
            parts.queue.put(spec.entries(["@"]))
        roots = places(spec.program) if files is None else files
        job = Job(parts, spec, made, policy, limits, spec.options.imports, roots)
        job.provision()
    except BaseException:  # Ctrl-C, a store that is full
        abandon(parts)
        raise
    return job


def attach(
    address: str,
    *,
    workers: int | tuple[int, int] | Policy = 0,
    launcher: str | Launcher | Fleet | None = "processes",
    limits: Limits | None = None,
    imports: Sequence[str] = (),
    files: Sequence[str] = (),
) -> Job:
    """A job by its address: to watch it, wait for it, cancel or resume it, fetch its result.

    With `workers`, this process sees to it that there are so many, as `submit` does. They import the
    modules named in `imports`, and use files under the roots named in `files`, and no others, whatever the
    job asks for.
    """
    limits = limits or Limits()
    check_arguments(limits, Options(), imports=imports, files=files)
    policy = policy_of(workers or 1)
    with within(_ANSWER):
        parts, spec = reopened(address)
    made = as_launcher(launcher)
    job = Job(parts, spec, made, policy, limits, imports, files)
    if workers:
        job.provision()
    return job
