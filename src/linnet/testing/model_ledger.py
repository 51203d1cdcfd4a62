"""A ledger in plain Python: what others are compared with, and what models of the protocol run on.

It keeps the rules of `workers.ledger` in the most direct way, without a thought of speed; it lives in
one process and takes no locks, so it is of no use to workers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from linnet.errors import AddressError
from linnet.workers.ledger import (
    EPOCHS_BEYOND,
    EVERY_STATEMENT,
    NO_FACTS,
    Begun,
    Completed,
    Completion,
    Start,
    State,
    Status,
    Waiting,
    WorkerInfo,
    is_known,
)


@dataclass(slots=True)
class _Job:
    total: int
    done: int = 0
    state: State = "running"
    reason: str = ""
    failed: str = ""
    epoch: int = 1
    sequence: int = 0
    begun: int = 0
    first: float = 0.0
    last: float = 0.0
    known: int = 0
    """Tasks never heard of are done in statements below this: so it is after `restore`."""


@dataclass(slots=True)
class _Task:
    done: bool = False
    ready: bool = False
    token: int = 0
    lost: int = 0
    """The newest token when the task was reopened: attempts up to it count no more."""
    marks: set[str] = field(default_factory=set)
    """Parents that told it they are done; forgotten when it is done itself."""
    since: float = 0.0
    """When it was last heard of."""
    attempts: int = 0
    deaths: int = 0
    latest: int = 0
    """The token of the latest attempt, and who began it, and when."""
    worker: str = ""
    began: float = 0.0
    computing: bool = False
    doubled: bool = False

    def fresh(self) -> None:
        """No attempt was made."""
        self.attempts = self.deaths = self.latest = 0
        self.worker, self.began, self.computing, self.doubled = "", 0.0, False, False


class Standing(NamedTuple):
    """How a task stands."""

    name: str
    done: bool
    ready: bool
    token: int
    lost: int
    marks: tuple[str, ...]


class ModelLedger:
    """The rules of a ledger, as directly as they can be written.

    >>> ledger = ModelLedger()
    >>> ledger.create(total=1)
    >>> ledger.begin([Start("@")], "me")[0].state
    'run'
    """

    url = "model://ledger"

    def __init__(self, now: Callable[[], float] = time.monotonic, *, silence: float = 5.0) -> None:
        self._now = now
        self._silence = silence
        self._drop()

    def _drop(self) -> None:
        self._job: _Job | None = None
        self._tasks: dict[str, _Task] = {}
        self._garbage: dict[tuple[str, int], float] = {}
        self._workers: dict[str, WorkerInfo] = {}
        self._kinds: dict[int, tuple[int, float]] = {}
        self._log: list[str] = []

    @property
    def _running(self) -> _Job:
        if self._job is None:
            raise AddressError(f"{self.url} holds no job; was it deleted?")
        return self._job

    def _task(self, name: str) -> _Task:
        """What is known of a task; in a ledger built anew, one not heard of is done."""
        if name not in self._tasks:
            return _Task(done=is_known(name, self._running.known))
        return self._tasks[name]

    def _known(self, name: str) -> _Task:
        return self._tasks.setdefault(name, self._task(name))

    def _readers(self, name: str) -> list[str]:
        """Tasks that were told and are not done: they may read its tiles."""
        return [child for child, task in self._tasks.items() if name in task.marks]

    # ---- the job

    def create(self, total: int) -> None:
        if self._job is not None:
            raise AddressError(f"{self.url} holds a job already")
        self._drop()
        self._job = _Job(total, state="running" if total else "finished")
        if total:
            self._tasks["@"] = _Task(ready=True, since=self._now())

    def status(self) -> Status:
        job = self._running
        return Status(
            job.state, job.reason, job.failed, job.epoch, job.total, job.done, job.begun,
            self._now(), job.first, job.last, dict(self._kinds),
        )  # fmt: skip

    def fail(self, name: str, token: int, reason: str) -> None:
        job = self._running
        if job.state == "running" and token >> 32 == job.epoch and not self._task(name).done:
            job.state, job.reason, job.failed = "failed", reason, name

    def halt(self, state: Literal["stopped", "cancelled"], reason: str) -> None:
        if self._running.state == "running":
            self._running.state, self._running.reason = state, reason

    def resume(self) -> list[str]:
        job = self._running
        job.epoch, job.reason, job.failed = job.epoch + 1, "", ""
        job.state = "finished" if job.done >= job.total else "running"
        for task in self._tasks.values():
            if not task.done:
                task.fresh()
                task.since = self._now()
        return [name for name, task in self._tasks.items() if task.ready]

    def restore(
        self,
        total: int,
        done: Sequence[tuple[str, int]],
        waiting: Sequence[Waiting],
        known: int = EVERY_STATEMENT,
    ) -> None:
        before = self._job.epoch if self._job is not None else 0
        self._drop()
        newest = max(before, *(token >> 32 for _, token in done), 0)
        state: State = "running" if waiting else "finished"
        self._job = _Job(total, total - len(waiting), state=state, epoch=newest + EPOCHS_BEYOND, known=known)
        for name, token in done:
            self._tasks[name] = _Task(done=True, token=token)
        for name, needs, marked in waiting:
            ready = len(marked) >= needs
            self._tasks[name] = _Task(ready=ready, marks=set(marked), since=self._now())

    # ---- attempts

    def begin(self, starts: Sequence[Start], worker: str) -> list[Begun]:
        if self._running.state != "running":
            return [Begun("halt") for _ in starts]
        return [self._begin(start, worker) for start in starts]

    def _begin(self, start: Start, worker: str) -> Begun:
        job = self._running
        if self._task(start.name).done:
            return Begun("done")
        parents = [self._task(parent) for parent in start.parents]
        if any(not parent.token and not parent.done for parent in parents):
            return Begun("wait")
        task = self._known(start.name)
        if task.computing and not start.extra and not self._alive(task.worker, worker):
            task.deaths += 1
        job.sequence += 1
        job.begun += 1
        job.first = job.first or self._now()
        task.attempts += 1
        task.latest, task.worker, task.computing = (job.epoch << 32) + job.sequence, worker, False
        task.ready, task.since, task.began = True, self._now(), self._now()
        published = tuple(parent.token for parent in parents)
        return Begun("run", task.latest, task.attempts, task.deaths, published)

    def _alive(self, holder: str, caller: str) -> bool:
        known = self._workers.get(holder)
        return holder == caller or (
            known is not None and not known.left and known.beat > self._now() - self._silence
        )

    def _latest(self, name: str, token: int) -> _Task | None:
        task = self._task(name)
        return task if task.latest == token and not task.done else None

    def computing(self, name: str, token: int) -> None:
        task = self._latest(name, token)
        if task is not None:
            task.computing = True

    def forget(self, name: str, token: int) -> None:
        task = self._latest(name, token)
        if task is not None:
            task.computing, task.began = False, 0.0

    # ---- completion

    def complete(self, completions: Sequence[Completion]) -> list[Completed]:
        return [self._complete(each) for each in completions]

    def _complete(self, one: Completion) -> Completed:
        task = self._task(one.name)
        if one.token >> 32 != self._running.epoch or one.token <= task.lost:
            return Completed(one.token if one.token == task.token else 0)
        task = self._known(one.name)
        task.token = task.token or one.token
        ready: list[str] = []
        finishing = one.last and not task.done
        for child, needs in (*one.children, *(one.chosen if finishing else ())):
            waiting = self._known(child)
            if waiting.done:
                continue
            waiting.marks.add(one.name)
            if len(waiting.marks) >= needs:
                if not waiting.ready:
                    waiting.ready, waiting.since = True, self._now()
                ready.append(child)
        if finishing:
            self._running.total = max(self._running.total, one.total)
            self._done(one, task)
        return Completed(task.token, tuple(ready))

    def _done(self, one: Completion, task: _Task) -> None:
        job = self._running
        parents, task.marks = task.marks, set()
        task.fresh()
        task.done, task.ready = True, False
        for name in (*parents, one.name):
            self._bury(name)
        if one.counted:
            job.done += 1
            job.last = self._now()
            if job.done >= job.total and job.state == "running":
                job.state = "finished"
            kind = int(one.name.partition(".")[0])
            tasks, seconds = self._kinds.get(kind, (0, 0.0))
            self._kinds[kind] = tasks + 1, seconds + one.seconds

    def _bury(self, name: str) -> None:
        task = self._task(name)
        if task.done and task.token and not self._readers(name) and not name.startswith("@"):
            self._garbage[name, task.token] = self._now()

    def reopen(self, name: str, token: int, parents: Sequence[str], reader: str) -> bool:
        task = self._known(name)
        if (reader and self._task(reader).done) or task.token not in (0, token):
            return False
        if task.done:
            self._running.done -= 1
            if self._running.state == "finished":
                self._running.state = "running"
            task.marks = {parent for parent in parents if self._task(parent).token or self._task(parent).done}
            for parent in task.marks:
                self._garbage.pop((parent, self._task(parent).token), None)
        if task.token or task.done:
            if task.token:
                self._garbage[name, task.token] = self._now()
            task.ready = not task.done or len(task.marks) == len(parents)
            task.done, task.token, task.since = False, 0, self._now()
            task.lost = (self._running.epoch << 32) + self._running.sequence
            task.fresh()
        waiting = self._task(reader)
        waiting.marks.discard(name)
        waiting.ready, waiting.computing, waiting.began = False, False, 0.0
        return True

    def published(self, names: Sequence[str]) -> list[int]:
        return [self._task(name).token for name in names]

    # ---- what idle workers look for

    def overdue(self, seconds: float, limit: int) -> list[str]:
        late = [n for n, task in self._tasks.items() if task.ready and task.since <= self._now() - seconds]
        told = sorted(late, key=lambda name: self._tasks[name].since)[:limit]
        for name in told:
            self._tasks[name].since = self._now()
        return told

    def stragglers(self, factor: float, least: float, limit: int) -> list[str]:
        told: list[str] = []
        for name, task in self._tasks.items():
            kind = name.partition(".")[0]
            tasks, seconds = self._kinds.get(int(kind), (0, 0.0)) if kind.isdigit() else (0, 0.0)
            late = tasks > 0 and self._now() - task.began >= max(least, factor * seconds / max(tasks, 1))
            if task.ready and task.began and late and not task.doubled:
                told.append(name)
        told = sorted(told, key=lambda name: self._tasks[name].began)[:limit]
        for name in told:
            self._tasks[name].doubled = True
        return told

    def discarded(self, grace: float, limit: int) -> list[tuple[str, int]]:
        old = [key for key, since in self._garbage.items() if since <= self._now() - grace]
        told = sorted(old, key=lambda key: self._garbage[key])[:limit]
        for key in told:
            del self._garbage[key]
        return told

    # ---- workers

    def touch(self, names: Sequence[str], worker: str, facts: Mapping[str, float] = NO_FACTS) -> Status:
        for name in names:
            if self._task(name).ready:
                self._tasks[name].since = self._now()
        known = self._workers.get(worker, WorkerInfo(worker, worker.rpartition("/")[0], self._now()))
        self._workers[worker] = replace(known, beat=self._now(), left=False, died=False, facts=dict(facts))
        return self.status()

    def leave(self, worker: str, *, died: bool = False) -> None:
        known = self._workers.get(worker)
        if known is not None and not known.left:
            self._workers[worker] = replace(known, left=True, died=died)

    def workers(self, within: float | None = None) -> list[WorkerInfo]:
        since = self._now() - (within or 0)
        found = [
            each
            for each in self._workers.values()
            if within is None or (each.beat >= since and not each.left)
        ]
        return sorted(found, key=lambda each: each.started)

    def log(self, lines: Sequence[str]) -> None:
        self._log += lines

    def lines(self, after: int) -> tuple[list[str], int]:
        found = self._log[after : after + 1000]
        return found, after + len(found)

    def standing(self) -> tuple[State, tuple[Standing, ...], tuple[tuple[str, int], ...]]:
        """What decides all further answers, but for times and attempts: state, tasks, garbage."""
        tasks = tuple(
            Standing(name, task.done, task.ready, task.token, task.lost, tuple(sorted(task.marks)))
            for name, task in sorted(self._tasks.items())
        )
        return self._running.state, tasks, tuple(sorted(self._garbage))

    def is_done(self, name: str) -> bool:
        """Whether a task is done."""
        return self._task(name).done

    def __repr__(self) -> str:
        return f"ModelLedger({self.url})"

    def copy(self) -> ModelLedger:
        """Another one in the same state."""
        made = ModelLedger(self._now, silence=self._silence)
        made._job = None if self._job is None else replace(self._job)
        made._tasks = {name: replace(task, marks=set(task.marks)) for name, task in self._tasks.items()}
        made._garbage, made._workers, made._kinds = (
            dict(self._garbage), dict(self._workers), dict(self._kinds),
        )  # fmt: skip
        made._log = list(self._log)
        return made

    def grouped(self) -> AbstractContextManager[object]:
        return nullcontext()

    def drop(self) -> None:
        self._drop()

    def close(self) -> None:
        """Nothing is held."""
