"""The ledger of a job in Redis or Valkey: each step a script, one round trip; see `redis_scripts`."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, TypeVar

from linnet.errors import AddressError
from linnet.workers.ledger import (
    EPOCHS_BEYOND,
    EVERY_STATEMENT,
    NO_FACTS,
    PAGE,
    Begun,
    Completed,
    Completion,
    Start,
    Status,
    Waiting,
    WorkerInfo,
)
from linnet.workers.remote import redis_scripts as path
from linnet.workers.remote import redis_upkeep as upkeep
from linnet.workers.remote.connection import PATIENCE, Connection, Script

T = TypeVar("T")


class RedisLedger:
    """The state of a job on a server that all workers reach; the server's clock is the only one."""

    def __init__(
        self,
        url: str,
        job: str,
        identity: str = "",
        *,
        silence: float = 5.0,
        patience: float = PATIENCE,
    ) -> None:
        self._server = Connection(url, job, identity, patience=patience)
        self._job, self._identity = job, identity
        self._name = f"{self._server.name}taken"
        self._silence = silence
        self.url: str = self._server.url

    def __repr__(self) -> str:
        return f"RedisLedger({self.url}, job {self._job})"

    def _run(self, script: Script, *arguments: Any) -> Any:
        """What a script returns that only works on a job."""
        found = self._server.run(script, *arguments)
        if found is None:
            raise AddressError(f"{self.url} holds no job {self._job!r}; was it deleted?")
        return found

    # ---- the job

    def create(self, total: int) -> None:
        stamp = f"{self._identity} {os.urandom(8).hex()}"  # by which this call, if repeated, knows itself
        if not self._server.run(upkeep.CLAIM, self._name, stamp):
            raise AddressError(f"{self.url} holds a job {self._job!r} already")
        self._server.run(upkeep.CREATE, total, 0, 1, 0, "running" if total else "finished")

    def status(self) -> Status:
        return _status(self._run(upkeep.STATUS))

    def fail(self, name: str, token: int, reason: str) -> None:
        self._server.run(upkeep.SET_STATE, "running", "failed", reason, token >> 32, name)

    def halt(self, state: Literal["stopped", "cancelled"], reason: str) -> None:
        self._server.run(upkeep.SET_STATE, "running", state, reason, 0, "")

    def resume(self) -> list[str]:
        return self._run(upkeep.RESUME)

    def restore(
        self,
        total: int,
        done: Sequence[tuple[str, int]],
        waiting: Sequence[Waiting],
        known: int = EVERY_STATEMENT,
    ) -> None:
        try:
            before = self.status().epoch
        except AddressError:
            before = 0
        self._clear()
        self._server.run(upkeep.CLAIM, self._name, f"{self._identity} ")
        newest = max(before, *(token >> 32 for _, token in done), 0)
        state = "stopped" if waiting else "finished"
        self._server.run(upkeep.CREATE, total, total - len(waiting), newest + EPOCHS_BEYOND, known, state)
        for page in _pages(done):
            self._server.run(upkeep.RESTORE_DONE, page)
        for page in _pages([Waiting(name, needs, list(marked)) for name, needs, marked in waiting]):
            self._server.run(upkeep.RESTORE_WAITING, page)
        # Until here nobody could begin anything.
        self._server.run(upkeep.SET_STATE, "stopped", "running", "", 0, "")

    def drop(self) -> None:
        self._clear()
        self._server.run(upkeep.UNCLAIM, self._name, f"{self._identity} ")

    def _clear(self) -> None:
        while not self._server.run(upkeep.CLEAR):
            pass

    # ---- attempts

    def begin(self, starts: Sequence[Start], worker: str) -> list[Begun]:
        found = self._run(
            path.BEGIN,
            [(name, list(parents), extra) for name, parents, extra in starts],
            worker,
            self._silence,
        )
        return [
            Begun("run", each[1], each[2], each[3], tuple(each[4])) if each[0] == "run" else Begun(each[0])
            for each in found
        ]

    def computing(self, name: str, token: int) -> None:
        self._server.run(path.COMPUTING, name, token)

    def forget(self, name: str, token: int) -> None:
        self._server.run(path.FORGET, name, token)

    def complete(self, completions: Sequence[Completion]) -> list[Completed]:
        given = [
            (
                each.name,
                each.token,
                each.children,
                each.last,
                each.counted,
                each.seconds,
                bool(each.parents),
                each.chosen,
                each.total,
            )
            for each in completions
        ]
        return [Completed(token, tuple(ready)) for token, ready in self._run(path.COMPLETE, given)]

    # ---- lost tiles

    def reopen(self, name: str, token: int, parents: Sequence[str], reader: str) -> bool:
        return self._run(path.REOPEN, name, token, list(parents), reader)

    def published(self, names: Sequence[str]) -> list[int]:
        return self._run(upkeep.PUBLISHED, list(names))

    # ---- what idle workers look for

    def overdue(self, seconds: float, limit: int) -> list[str]:
        return self._run(upkeep.OVERDUE, seconds, limit)

    def stragglers(self, factor: float, least: float, limit: int) -> list[str]:
        return self._run(upkeep.STRAGGLERS, factor, least, limit)

    def discarded(self, grace: float, limit: int) -> list[tuple[str, int]]:
        told = [each.partition(" ") for each in self._run(upkeep.DISCARDED, grace, limit)]
        return [(name, int(token)) for name, _, token in told]

    # ---- workers

    def touch(self, names: Sequence[str], worker: str, facts: Mapping[str, float] = NO_FACTS) -> Status:
        return _status(self._run(upkeep.TOUCH, list(names), worker, json.dumps(dict(facts))))

    def leave(self, worker: str, *, died: bool = False) -> None:
        self._server.run(upkeep.LEAVE, worker, "died" if died else "left")

    def workers(self, within: float | None = None) -> list[WorkerInfo]:
        now, found = self._run(upkeep.WORKERS)
        since = -math.inf if within is None else now - within
        infos = [
            WorkerInfo(
                name, name.rpartition("/")[0], started, beat, bool(gone), json.loads(facts), gone == "died"
            )
            for name, (started, beat, gone, facts) in found
            if within is None or (beat >= since and not gone)
        ]
        return sorted(infos, key=lambda info: info.started)

    # ---- lines of text

    def log(self, lines: Sequence[str]) -> None:
        for page in _pages(lines):
            self._server.run(upkeep.LOG, list(page))

    def lines(self, after: int) -> tuple[list[str], int]:
        found: list[str] = self._server.run(upkeep.LINES, after)
        return found, after + len(found)

    def grouped(self) -> AbstractContextManager[object]:
        return nullcontext()

    def close(self) -> None:
        self._server.close()


def _status(told: Sequence[Any]) -> Status:
    (state, reason, failed), (epoch, total, done, begun), now, (first, last), kinds = told
    known = dict(zip(kinds[::2], kinds[1::2], strict=True))
    each = {int(n): (int(known[n]), float(known[f"s{n}"])) for n in known if n.isdigit()}
    return Status(
        state, reason, failed, epoch, total, done, begun, float(now), float(first), float(last), each
    )


def _pages(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), PAGE):
        yield items[start : start + PAGE]
