"""The ledger of a job in its database; `workers.ledger` has the rules."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Literal

from linnet.errors import AddressError
from linnet.workers.embedded.database import Database
from linnet.workers.ledger import NO_FACTS, Begun, Completed, Completion, Start, Status, Waiting, WorkerInfo

_WAITING, _READY, _DONE = 0, 1, 2

_SCHEMA = """
CREATE TABLE IF NOT EXISTS job (
    state TEXT NOT NULL, reason TEXT NOT NULL, epoch INTEGER NOT NULL, total INTEGER NOT NULL,
    done INTEGER NOT NULL, begun INTEGER NOT NULL, sequence INTEGER NOT NULL, first REAL NOT NULL,
    last REAL NOT NULL);
CREATE TABLE IF NOT EXISTS tasks (
    name TEXT PRIMARY KEY, state INTEGER NOT NULL, seen INTEGER NOT NULL DEFAULT 0,
    token INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0, deaths INTEGER NOT NULL DEFAULT 0,
    computing INTEGER NOT NULL DEFAULT 0, worker TEXT NOT NULL DEFAULT '', since REAL NOT NULL DEFAULT 0,
    began REAL NOT NULL DEFAULT 0, doubled INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS tasks_ready ON tasks (since) WHERE state = 1;
CREATE TABLE IF NOT EXISTS edges (
    child TEXT NOT NULL, parent TEXT NOT NULL, PRIMARY KEY (child, parent)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS edges_parent ON edges (parent);
CREATE TABLE IF NOT EXISTS garbage (
    name TEXT NOT NULL, token INTEGER NOT NULL, since REAL NOT NULL, PRIMARY KEY (name, token)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS workers (
    name TEXT PRIMARY KEY, host TEXT NOT NULL, started REAL NOT NULL, beat REAL NOT NULL,
    gone INTEGER NOT NULL, facts TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS kinds (
    statement INTEGER PRIMARY KEY, tasks INTEGER NOT NULL, seconds REAL NOT NULL)
"""


class EmbeddedLedger:
    """A row for each task that was heard of, and one for each edge that still matters.

    An edge lies between a task that is done and a child of it that is not: a task without edges to
    children is one whose tiles nobody needs.
    """

    def __init__(self, database: Database, *, silence: float = 5.0) -> None:
        self._database = database
        self._silence = silence
        self.url = f"file://{database.path}"

    def create(self, total: int) -> None:
        with self._database.writing() as tables:
            for statement in _SCHEMA.split(";"):
                tables.execute(statement)
            self._begin_job(tables, total, done=0)
            if total:
                self._make_ready(tables, "@")

    def _begin_job(self, tables: sqlite3.Connection, total: int, done: int) -> None:
        for table in ("job", "tasks", "edges", "garbage", "kinds"):
            tables.execute(f"DELETE FROM {table}")
        state = "running" if done < total else "finished"
        tables.execute("INSERT INTO job VALUES (?, '', 1, ?, ?, 0, 0, 0, 0)", (state, total, done))

    def status(self) -> Status:
        try:
            ((state, reason, epoch, total, done, begun, first, last),) = self._database.read(
                "SELECT state, reason, epoch, total, done, begun, first, last FROM job"
            )
        except (ValueError, RuntimeError):
            raise AddressError(f"{self.url} holds no job; was it deleted?") from None
        kinds = {n: (tasks, seconds) for n, tasks, seconds in self._database.read("SELECT * FROM kinds")}
        now = self._database.now()
        return Status(state, reason, epoch, total, done, begun, now, first, last, kinds)

    # ---- attempts

    def begin(self, starts: Sequence[Start], worker: str) -> list[Begun]:
        with self._database.writing() as tables:
            state, epoch, sequence, first = tables.execute(
                "SELECT state, epoch, sequence, first FROM job"
            ).fetchone()
            if state != "running":
                return [Begun("halt")] * len(starts)
            found: list[Begun] = []
            for start in starts:
                begun = self._begin_one(tables, start, worker, (epoch << 32) + sequence + 1)
                sequence += begun.state == "run"
                found.append(begun)
            ran = sum(begun.state == "run" for begun in found)
            if ran:
                tables.execute(
                    "UPDATE job SET sequence = ?, begun = begun + ?, first = ?",
                    (sequence, ran, first or self._database.now()),
                )
            return found

    def _begin_one(self, tables: sqlite3.Connection, start: Start, worker: str, token: int) -> Begun:
        row = tables.execute(
            "SELECT state, attempts, deaths, computing, worker FROM tasks WHERE name = ?", (start.name,)
        ).fetchone()
        state, attempts, deaths, computing, holder = row or (_WAITING, 0, 0, 0, "")
        if state == _DONE:
            return Begun("done")
        published = self._tokens(tables, start.parents)
        if 0 in published:
            return Begun("wait")
        now = self._database.now()
        if computing and not start.extra and not self._alive(tables, holder, now):
            deaths += 1
        tables.execute(
            "INSERT INTO tasks (name, state, attempts, worker, since, began) VALUES (?, 1, 1, ?, ?, ?) "
            "ON CONFLICT (name) DO UPDATE SET state = 1, attempts = attempts + 1, deaths = ?, worker = ?2, "
            "computing = 0, since = ?3, began = ?4",
            (start.name, worker, now, now, deaths),
        )
        return Begun("run", token, attempts + 1, deaths, tuple(published))

    def _alive(self, tables: sqlite3.Connection, worker: str, now: float) -> bool:
        found = tables.execute("SELECT beat FROM workers WHERE name = ? AND gone = 0", (worker,)).fetchone()
        return found is not None and found[0] > now - self._silence

    @staticmethod
    def _tokens(tables: sqlite3.Connection, names: Sequence[str]) -> list[int]:
        found: list[int] = []
        for name in names:
            row = tables.execute("SELECT token FROM tasks WHERE name = ?", (name,)).fetchone()
            found.append(row[0] if row else 0)
        return found

    def computing(self, name: str, token: int) -> None:
        with self._database.writing() as tables:
            tables.execute("UPDATE tasks SET computing = ? WHERE name = ? AND state = 1", (token, name))

    def forget(self, name: str, token: int) -> None:
        with self._database.writing() as tables:
            tables.execute(
                "UPDATE tasks SET computing = 0, began = 0 "
                "WHERE name = ? AND state = 1 AND computing IN (0, ?)",
                (name, token),
            )

    # ---- completion

    def complete(self, completions: Sequence[Completion]) -> list[Completed]:
        with self._database.writing() as tables:
            (epoch,) = tables.execute("SELECT epoch FROM job").fetchone()
            return [
                self._complete_one(tables, each) if each.token >> 32 == epoch else Completed(0)
                for each in completions
            ]

    def _complete_one(self, tables: sqlite3.Connection, one: Completion) -> Completed:
        state, token = tables.execute(
            "SELECT state, token FROM tasks WHERE name = ?", (one.name,)
        ).fetchone() or (_WAITING, 0)
        if not token:
            token = one.token
            tables.execute(
                "INSERT INTO tasks (name, state, token) VALUES (?, 1, ?) "
                "ON CONFLICT (name) DO UPDATE SET token = ?2",
                (one.name, token),
            )
        ready = self._mark(tables, one)
        if one.last and state != _DONE:
            self._done(tables, one, token)
        return Completed(token, ready)

    def _mark(self, tables: sqlite3.Connection, one: Completion) -> tuple[str, ...]:
        """Mark the edges to the children; those that are ready now, or were."""
        ready: list[str] = []
        for child, needs in one.children:
            row = tables.execute("SELECT state, seen FROM tasks WHERE name = ?", (child,)).fetchone()
            state, seen = row or (_WAITING, 0)
            if state == _DONE:
                continue
            new = tables.execute("INSERT OR IGNORE INTO edges VALUES (?, ?)", (child, one.name)).rowcount
            seen += new
            if seen >= needs and state == _WAITING:
                self._make_ready(tables, child, seen)
            elif new:
                tables.execute(
                    "INSERT INTO tasks (name, state, seen) VALUES (?, 0, ?) "
                    "ON CONFLICT (name) DO UPDATE SET seen = ?2",
                    (child, seen),
                )
            if seen >= needs:
                ready.append(child)
        return tuple(ready)

    def _make_ready(self, tables: sqlite3.Connection, name: str, seen: int = 0) -> None:
        tables.execute(
            "INSERT INTO tasks (name, state, seen, since) VALUES (?, 1, ?, ?) "
            "ON CONFLICT (name) DO UPDATE SET state = 1, seen = ?2, since = ?3",
            (name, seen, self._database.now()),
        )

    def _done(self, tables: sqlite3.Connection, one: Completion, token: int) -> None:
        now = self._database.now()
        tables.execute("UPDATE tasks SET state = 2, computing = 0 WHERE name = ?", (one.name,))
        tables.execute("DELETE FROM edges WHERE child = ?", (one.name,))
        for parent in one.parents:
            self._bury(tables, parent, now)
        self._bury(tables, one.name, now)
        if one.counted:
            tables.execute(
                "UPDATE job SET done = done + 1, last = ?, "
                "state = iif(done + 1 >= total AND state = 'running', 'finished', state)",
                (now,),
            )
            tables.execute(
                "INSERT INTO kinds VALUES (?, 1, ?) "
                "ON CONFLICT (statement) DO UPDATE SET tasks = tasks + 1, seconds = seconds + ?2",
                (int(one.name.partition(".")[0]), one.seconds),
            )

    @staticmethod
    def _bury(tables: sqlite3.Connection, name: str, now: float) -> None:
        """Note that nobody needs the tiles of a task, if that is so."""
        tables.execute(
            "INSERT OR IGNORE INTO garbage SELECT name, token, ?2 FROM tasks WHERE name = ?1 AND state = 2 "
            "AND token != 0 AND NOT EXISTS (SELECT 1 FROM edges WHERE parent = ?1)",
            (name, now),
        )

    # ---- the job

    def fail(self, name: str, token: int, reason: str) -> None:
        with self._database.writing() as tables:
            tables.execute(
                "UPDATE job SET state = 'failed', reason = ? WHERE state = 'running' AND epoch = ? "
                "AND NOT EXISTS (SELECT 1 FROM tasks WHERE name = ? AND state = 2)",
                (reason, token >> 32, name),
            )

    def halt(self, state: Literal["stopped", "cancelled"], reason: str) -> None:
        with self._database.writing() as tables:
            tables.execute("UPDATE job SET state = ?, reason = ? WHERE state = 'running'", (state, reason))

    def resume(self) -> list[str]:
        with self._database.writing() as tables:
            tables.execute(
                "UPDATE job SET epoch = epoch + 1, reason = '', "
                "state = iif(done >= total, 'finished', 'running')"
            )
            tables.execute(
                "UPDATE tasks SET attempts = 0, deaths = 0, computing = 0, began = 0, doubled = 0, since = ? "
                "WHERE state != 2",
                (self._database.now(),),
            )
            return [name for (name,) in tables.execute("SELECT name FROM tasks WHERE state = 1")]

    def reopen(self, name: str, token: int, parents: Sequence[str], reader: str) -> bool:
        with self._database.writing() as tables:
            state, published = tables.execute(
                "SELECT state, token FROM tasks WHERE name = ?", (name,)
            ).fetchone() or (_WAITING, 0)
            if published not in (0, token):
                return False
            if published == token:
                self._reopen_one(tables, name, state, parents)
            gone = tables.execute("DELETE FROM edges WHERE child = ? AND parent = ?", (reader, name)).rowcount
            tables.execute(
                "UPDATE tasks SET state = 0, seen = seen - ?, computing = 0, began = 0 "
                "WHERE name = ? AND state = 1",
                (gone, reader),
            )
            return True

    def _reopen_one(self, tables: sqlite3.Connection, name: str, state: int, parents: Sequence[str]) -> None:
        if state == _DONE:
            tables.execute(
                "UPDATE job SET done = done - 1, state = iif(state = 'finished', 'running', state)"
            )
            tables.executemany("INSERT OR IGNORE INTO edges VALUES (?, ?)", [(name, p) for p in parents])
            tables.execute("UPDATE tasks SET seen = ? WHERE name = ?", (len(parents), name))
        tables.execute(
            "UPDATE tasks SET state = 1, token = 0, computing = 0, attempts = 0, since = ? WHERE name = ?",
            (self._database.now(), name),
        )

    def restore(self, total: int, done: Sequence[tuple[str, int]], waiting: Sequence[Waiting]) -> None:
        with self._database.writing() as tables:
            for statement in _SCHEMA.split(";"):
                tables.execute(statement)
            self._begin_job(tables, total, total - len(waiting))
            # A token of a lost epoch may be that of a tile somebody still writes: begin far beyond.
            newest = max((token >> 32 for _, token in done), default=0)
            tables.execute("UPDATE job SET epoch = ?", (newest + 1,))
            tables.executemany("INSERT INTO tasks (name, state, token) VALUES (?, 2, ?)", done)
            now = self._database.now()
            for name, needs, marked in waiting:
                state = _READY if len(marked) >= needs else _WAITING
                tables.execute(
                    "INSERT INTO tasks (name, state, seen, since) VALUES (?, ?, ?, ?)",
                    (name, state, len(marked), now),
                )
                tables.executemany("INSERT INTO edges VALUES (?, ?)", [(name, parent) for parent in marked])

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
                "SELECT name, token FROM garbage WHERE since <= ? LIMIT ?",
                (self._database.now() - grace, limit),
            ).fetchall()
            tables.executemany("DELETE FROM garbage WHERE name = ? AND token = ?", rows)
            # One that somebody needs again is told when that one is done.
            return [
                (name, token)
                for name, token in rows
                if tables.execute("SELECT 1 FROM edges WHERE parent = ? LIMIT 1", (name,)).fetchone() is None
            ]

    def published(self, names: Sequence[str]) -> list[int]:
        with self._database.writing() as tables:
            return self._tokens(tables, names)

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

    def leave(self, worker: str) -> None:
        with self._database.writing() as tables:
            tables.execute("UPDATE workers SET gone = 1 WHERE name = ?", (worker,))

    def workers(self, within: float | None = None) -> list[WorkerInfo]:
        rows = self._database.read(
            "SELECT name, host, started, beat, gone, facts FROM workers ORDER BY started"
        )
        since = -math.inf if within is None else self._database.now() - within
        return [
            WorkerInfo(name, host, started, beat, bool(gone), json.loads(facts))
            for name, host, started, beat, gone, facts in rows
            if within is None or (beat >= since and not gone)
        ]

    def grouped(self) -> AbstractContextManager[object]:
        return self._database.writing()

    def drop(self) -> None:
        self._database.drop()

    def close(self) -> None:
        self._database.close()
