"""What a ledger in a database does beside the path of every task: the job itself, repairs, idle workers."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Literal

from linnet.errors import AddressError, JobError
from linnet.workers.embedded.database import Database
from linnet.workers.ledger import (
    EPOCHS_BEYOND,
    EVERY_STATEMENT,
    NO_FACTS,
    Status,
    Waiting,
    WorkerInfo,
    is_known,
)

WAITING, READY, DONE = 0, 1, 2
_LEFT, _DIED = 1, 2
"""How a worker has gone."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS job (
    state TEXT NOT NULL, reason TEXT NOT NULL, failed TEXT NOT NULL, epoch INTEGER NOT NULL,
    total INTEGER NOT NULL, done INTEGER NOT NULL, begun INTEGER NOT NULL, sequence INTEGER NOT NULL,
    first REAL NOT NULL, last REAL NOT NULL, rebuilt INTEGER NOT NULL, identity TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS tasks (
    name TEXT PRIMARY KEY, state INTEGER NOT NULL, seen INTEGER NOT NULL DEFAULT 0,
    readers INTEGER NOT NULL DEFAULT 0, token INTEGER NOT NULL DEFAULT 0, lost INTEGER NOT NULL DEFAULT 0,
    latest INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0, deaths INTEGER NOT NULL DEFAULT 0,
    computing INTEGER NOT NULL DEFAULT 0, worker TEXT NOT NULL DEFAULT '',
    since REAL NOT NULL DEFAULT 0, began REAL NOT NULL DEFAULT 0,
    doubled INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS tasks_ready ON tasks (since) WHERE state = 1;
CREATE TABLE IF NOT EXISTS edges (
    child TEXT NOT NULL, parent TEXT NOT NULL, PRIMARY KEY (child, parent)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS garbage (
    name TEXT NOT NULL, token INTEGER NOT NULL, since REAL NOT NULL, PRIMARY KEY (name, token)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS garbage_since ON garbage (since);
CREATE TABLE IF NOT EXISTS workers (
    name TEXT PRIMARY KEY, host TEXT NOT NULL, started REAL NOT NULL, beat REAL NOT NULL,
    gone INTEGER NOT NULL, facts TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS log (place INTEGER PRIMARY KEY, line TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS kinds (
    statement INTEGER PRIMARY KEY, tasks INTEGER NOT NULL, seconds REAL NOT NULL)
"""


class Upkeep:
    """The half of `EmbeddedLedger` that runs seldom."""

    def __init__(self, database: Database, *, identity: str = "", silence: float = 5.0) -> None:
        self._database = database
        self._identity = identity
        self._silence = silence
        self.url: str = f"file://{database.path}"

    # ---- the job

    def create(self, total: int) -> None:
        with self._database.writing() as tables:
            if self._owner(tables) is not None:
                raise AddressError(f"{self.url} holds a job already")
            self._begin_job(tables, total, done=0)
            if total:
                tables.execute(
                    "INSERT INTO tasks (name, state, since) VALUES ('@', 1, ?)", (self._database.now(),)
                )

    @staticmethod
    def _owner(tables: sqlite3.Connection) -> str | None:
        """The identity of the job that is here; None: there is none."""
        for statement in _SCHEMA.split(";"):
            tables.execute(statement)
        found = tables.execute("SELECT identity FROM job").fetchone()
        return None if found is None else found[0]

    def _begin_job(self, tables: sqlite3.Connection, total: int, done: int) -> None:
        for table in ("job", "tasks", "edges", "garbage", "workers", "kinds", "log"):
            tables.execute(f"DELETE FROM {table}")
        state = "running" if done < total else "finished"
        tables.execute(
            "INSERT INTO job VALUES (?, '', '', 1, ?, ?, 0, 0, 0, 0, 0, ?)",
            (state, total, done, self._identity),
        )

    def status(self) -> Status:
        self._database.check()
        self._check_place()
        try:
            ((state, reason, failed, epoch, total, done, begun, first, last),) = self._database.read(
                "SELECT state, reason, failed, epoch, total, done, begun, first, last FROM job "
                "WHERE identity = ?",
                (self._identity,),
            )
        except (ValueError, JobError):
            raise AddressError(f"{self.url} holds no job, or another one; was it deleted?") from None
        kinds = {n: (tasks, seconds) for n, tasks, seconds in self._database.read("SELECT * FROM kinds")}
        now = self._database.now()
        return Status(state, reason, failed, epoch, total, done, begun, now, first, last, kinds)

    def _check_place(self) -> None:
        if self._database.is_gone():
            raise AddressError(f"{self.url} holds no job any more: it was deleted, or lost (then resume it)")

    def fail(self, name: str, token: int, reason: str) -> None:
        with self._database.writing() as tables:
            tables.execute(
                "UPDATE job SET state = 'failed', reason = ?1, failed = ?3 "
                "WHERE state = 'running' AND epoch = ?2 "
                "AND NOT EXISTS (SELECT 1 FROM tasks WHERE name = ?3 AND state = 2)",
                (reason, token >> 32, name),
            )

    def halt(self, state: Literal["stopped", "cancelled"], reason: str) -> None:
        with self._database.writing() as tables:
            tables.execute("UPDATE job SET state = ?, reason = ? WHERE state = 'running'", (state, reason))

    def resume(self) -> list[str]:
        with self._database.writing() as tables:
            tables.execute(
                "UPDATE job SET epoch = epoch + 1, reason = '', failed = '', "
                "state = iif(done >= total, 'finished', 'running')"
            )
            tables.execute(
                "UPDATE tasks SET attempts = 0, deaths = 0, latest = 0, computing = 0, began = 0, "
                "doubled = 0, since = ? WHERE state != 2",
                (self._database.now(),),
            )
            return [name for (name,) in tables.execute("SELECT name FROM tasks WHERE state = 1")]

    def restore(
        self,
        total: int,
        done: Sequence[tuple[str, int]],
        waiting: Sequence[Waiting],
        known: int = EVERY_STATEMENT,
    ) -> None:
        self._database.begin_anew_if_lost()
        try:
            before = self.status().epoch
        except AddressError:
            before = 0
        now = self._database.now()
        with self._database.writing() as tables:
            anothers = self._owner(tables) not in (None, self._identity)
        if anothers:
            self._database.close()  # whatever is done here from now on would be done to that job
            raise AddressError(f"{self.url} holds another job, of the same name; was this one deleted?")
        with self._database.writing() as tables:
            self._begin_job(tables, total, total - len(waiting))
            newest = max(before, *(token >> 32 for _, token in done), 0)
            tables.execute("UPDATE job SET epoch = ?, rebuilt = ?", (newest + EPOCHS_BEYOND, known))
            tables.executemany("INSERT INTO tasks (name, state, token) VALUES (?, 2, ?)", done)
            for name, needs, marked in waiting:
                state = READY if len(marked) >= needs else WAITING
                tables.execute(
                    "INSERT INTO tasks (name, state, seen, since) VALUES (?, ?, ?, ?)",
                    (name, state, len(marked), now),
                )
            for name, _, marked in waiting:
                self._add_edges(tables, name, marked)

    @staticmethod
    def _add_edges(tables: sqlite3.Connection, name: str, parents: Sequence[str]) -> None:
        """Edges from tasks that are done to one that is not; a done task not heard of has no tiles."""
        tables.executemany("INSERT INTO edges VALUES (?, ?)", [(name, parent) for parent in parents])
        tables.executemany(
            "INSERT INTO tasks (name, state, readers) VALUES (?, 2, 1) "
            "ON CONFLICT (name) DO UPDATE SET readers = readers + 1",
            [(parent,) for parent in parents],
        )

    # ---- lost tiles

    def reopen(self, name: str, token: int, parents: Sequence[str], reader: str) -> bool:
        with self._database.writing() as tables:
            ((known,),) = tables.execute("SELECT rebuilt FROM job").fetchall()
            state, published = self._state(tables, name, known)
            reading, _ = self._state(tables, reader, known) if reader else (WAITING, 0)
            if reading == DONE or published not in (0, token):
                return False
            if state == DONE or published:
                self._reopen_one(
                    tables, name, state, published, [(p, self._state(tables, p, known)) for p in parents]
                )
            gone = tables.execute("DELETE FROM edges WHERE child = ? AND parent = ?", (reader, name)).rowcount
            tables.execute("UPDATE tasks SET readers = readers - ? WHERE name = ?", (gone, name))
            tables.execute(
                "UPDATE tasks SET state = 0, seen = seen - ?, computing = 0, began = 0 WHERE name = ?",
                (gone, reader),
            )
            return True

    @staticmethod
    def _state(tables: sqlite3.Connection, name: str, known: int) -> tuple[int, int]:
        """State and published token; in a ledger built anew, a task not heard of may be done."""
        found = tables.execute("SELECT state, token FROM tasks WHERE name = ?", (name,)).fetchone()
        return found or (DONE if is_known(name, known) else WAITING, 0)

    def _reopen_one(
        self,
        tables: sqlite3.Connection,
        name: str,
        state: int,
        token: int,
        parents: Sequence[tuple[str, tuple[int, int]]],
    ) -> None:
        now = self._database.now()
        ready = True
        if state == DONE:
            tables.execute(
                "UPDATE job SET done = done - 1, state = iif(state = 'finished', 'running', state)"
            )
            there = [parent for parent, (state, token) in parents if state == DONE or token]
            ready = len(there) == len(parents)
            tables.execute(
                "INSERT INTO tasks (name, state, seen) VALUES (?1, 0, ?2) "
                "ON CONFLICT (name) DO UPDATE SET seen = ?2",
                (name, len(there)),
            )
            self._add_edges(tables, name, there)
            tables.executemany("DELETE FROM garbage WHERE name = ?", [(parent,) for parent in there])
        tables.execute(
            "UPDATE tasks SET state = ?, token = 0, lost = (SELECT (epoch << 32) + sequence FROM job), "
            "latest = 0, computing = 0, attempts = 0, deaths = 0, began = 0, doubled = 0, since = ? "
            "WHERE name = ?",
            (READY if ready else WAITING, now, name),
        )
        if token:
            tables.execute("INSERT OR REPLACE INTO garbage VALUES (?, ?, ?)", (name, token, now))

    def published(self, names: Sequence[str]) -> list[int]:
        with self._database.writing() as tables:
            return [self._state(tables, name, 0)[1] for name in names]

    # ---- what idle workers look for

    def overdue(self, seconds: float, limit: int) -> list[str]:
        now = self._database.now()
        with self._database.writing() as tables:
            rows = tables.execute(
                "SELECT name FROM tasks WHERE state = 1 AND since <= ? ORDER BY since LIMIT ?",
                (now - seconds, limit),
            ).fetchall()
            tables.executemany("UPDATE tasks SET since = ? WHERE name = ?", [(now, name) for (name,) in rows])
            return [name for (name,) in rows]

    def stragglers(self, factor: float, least: float, limit: int) -> list[str]:
        now = self._database.now()
        with self._database.writing() as tables:
            usual = {
                statement: seconds / tasks
                for statement, tasks, seconds in tables.execute("SELECT * FROM kinds")
                if tasks
            }
            rows = tables.execute(
                "SELECT name, began FROM tasks WHERE state = 1 AND began > 0 AND began <= ? AND doubled = 0 "
                "AND name NOT LIKE '@%' ORDER BY began",
                (now - least,),
            ).fetchall()
            slow = [
                name
                for name, began in rows
                if (known := usual.get(int(name.partition(".")[0]))) is not None
                and now - began >= factor * known
            ][:limit]
            tables.executemany("UPDATE tasks SET doubled = 1 WHERE name = ?", [(name,) for name in slow])
            return slow

    def discarded(self, grace: float, limit: int) -> list[tuple[str, int]]:
        with self._database.writing() as tables:
            rows = tables.execute(
                "SELECT name, token FROM garbage WHERE since <= ? ORDER BY since LIMIT ?",
                (self._database.now() - grace, limit),
            ).fetchall()
            tables.executemany("DELETE FROM garbage WHERE name = ? AND token = ?", rows)
            return rows

    # ---- workers

    def touch(self, names: Sequence[str], worker: str, facts: Mapping[str, float] = NO_FACTS) -> Status:
        now = self._database.now()
        host, _, _ = worker.rpartition("/")
        with self._database.writing() as tables:
            tables.executemany(
                "UPDATE tasks SET since = ? WHERE name = ? AND state = 1", [(now, name) for name in names]
            )
            tables.execute(
                "INSERT INTO workers VALUES (?, ?, ?, ?, 0, ?) "
                "ON CONFLICT (name) DO UPDATE SET beat = ?4, gone = 0, facts = ?5",
                (worker, host, now, now, json.dumps(dict(facts))),
            )
        return self.status()

    def leave(self, worker: str, *, died: bool = False) -> None:
        how = _DIED if died else _LEFT
        with self._database.writing() as tables:
            tables.execute("UPDATE workers SET gone = ? WHERE name = ? AND gone = 0", (how, worker))

    def workers(self, within: float | None = None) -> list[WorkerInfo]:
        rows = self._database.read(
            "SELECT name, host, started, beat, gone, facts FROM workers ORDER BY started"
        )
        since = -math.inf if within is None else self._database.now() - within
        return [
            WorkerInfo(name, host, started, beat, bool(gone), json.loads(facts), gone == _DIED)
            for name, host, started, beat, gone, facts in rows
            if within is None or (beat >= since and not gone)
        ]

    def log(self, lines: Sequence[str]) -> None:
        with self._database.writing() as tables:
            tables.executemany("INSERT INTO log (line) VALUES (?)", [(line,) for line in lines])

    def lines(self, after: int) -> tuple[list[str], int]:
        rows = self._database.read(
            "SELECT place, line FROM log WHERE place > ? ORDER BY place LIMIT 1000", (after,)
        )
        return [line for _, line in rows], rows[-1][0] if rows else after

    def grouped(self) -> AbstractContextManager[object]:
        return self._database.grouped()

    def drop(self) -> None:
        self._database.drop()

    def close(self) -> None:
        self._database.close()
