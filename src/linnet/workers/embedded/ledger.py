"""The ledger of a job in its database; `workers.ledger` has the rules."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from linnet.workers.embedded.upkeep import DONE, READY, WAITING, Upkeep
from linnet.workers.ledger import Begun, Completed, Completion, Start


class EmbeddedLedger(Upkeep):
    """A row for each task that was heard of, and one for each edge that still matters.

    An edge lies between a task that is done, or has marked some of its children, and a child of it that
    is not done. `seen` counts the edges to a task, `readers` those from it: a task without readers is
    one whose tiles nobody needs.
    """

    def __repr__(self) -> str:
        return f"EmbeddedLedger({self.url})"

    # ---- attempts

    def begin(self, starts: Sequence[Start], worker: str) -> list[Begun]:
        with self._database.writing() as tables:
            state, epoch, sequence, first, rebuilt = tables.execute(
                "SELECT state, epoch, sequence, first, rebuilt FROM job"
            ).fetchone()
            if state != "running":
                return [Begun("halt")] * len(starts)
            now = self._database.now()
            found: list[Begun] = []
            ran = 0
            for start in starts:
                token = (epoch << 32) + sequence + ran + 1
                begun = self._begin_one(tables, start, worker, token, now, bool(rebuilt))
                ran += begun.state == "run"
                found.append(begun)
            if ran:
                tables.execute(
                    "UPDATE job SET sequence = sequence + ?1, begun = begun + ?1, first = ?2",
                    (ran, first or now),
                )
            return found

    def _begin_one(
        self, tables: sqlite3.Connection, start: Start, worker: str, token: int, now: float, rebuilt: bool
    ) -> Begun:
        row = tables.execute(
            "SELECT state, attempts, deaths, computing, worker FROM tasks WHERE name = ?", (start.name,)
        ).fetchone()
        if row is None:
            row = (DONE if rebuilt and start.name[0] != "@" else WAITING, 0, 0, 0, "")
        state, attempts, deaths, computing, holder = row
        if state == DONE:
            return Begun("done")
        published = self._published(tables, start.parents, rebuilt)
        if published is None:
            return Begun("wait")
        if computing and not start.extra and holder != worker and not self._alive(tables, holder, now):
            deaths += 1
        tables.execute(
            "INSERT INTO tasks (name, state, attempts, deaths, worker, latest, since, began) "
            "VALUES (?1, 1, ?2, ?3, ?4, ?5, ?6, ?6) "
            "ON CONFLICT (name) DO UPDATE SET state = 1, attempts = ?2, deaths = ?3, worker = ?4, "
            "latest = ?5, since = ?6, began = ?6, computing = 0",
            (start.name, attempts + 1, deaths, worker, token, now),
        )
        return Begun("run", token, attempts + 1, deaths, published)

    def _alive(self, tables: sqlite3.Connection, worker: str, now: float) -> bool:
        found = tables.execute("SELECT beat FROM workers WHERE name = ? AND gone = 0", (worker,)).fetchone()
        return found is not None and found[0] > now - self._silence

    @staticmethod
    def _published(
        tables: sqlite3.Connection, parents: Sequence[str], rebuilt: bool
    ) -> tuple[int, ...] | None:
        """The tokens of the parents; None if one has none yet, and is not done without."""
        found: list[int] = []
        for name in parents:
            row = tables.execute("SELECT token, state FROM tasks WHERE name = ?", (name,)).fetchone()
            token, state = row or (0, DONE if rebuilt else WAITING)
            if not token and state != DONE:
                return None
            found.append(token)
        return tuple(found)

    def computing(self, name: str, token: int) -> None:
        with self._database.writing() as tables:
            tables.execute(
                "UPDATE tasks SET computing = 1 WHERE name = ? AND state != 2 AND latest = ?", (name, token)
            )

    def forget(self, name: str, token: int) -> None:
        with self._database.writing() as tables:
            tables.execute(
                "UPDATE tasks SET computing = 0, began = 0 WHERE name = ? AND state != 2 AND latest = ?",
                (name, token),
            )

    # ---- completion

    def complete(self, completions: Sequence[Completion]) -> list[Completed]:
        with self._database.writing() as tables:
            epoch, rebuilt = tables.execute("SELECT epoch, rebuilt FROM job").fetchone()
            now = self._database.now()
            return [
                self._complete_one(tables, each, now, bool(rebuilt))
                if each.token >> 32 == epoch
                else Completed(0)
                for each in completions
            ]

    def _complete_one(
        self, tables: sqlite3.Connection, one: Completion, now: float, rebuilt: bool
    ) -> Completed:
        row = tables.execute(
            "SELECT state, token, readers, lost FROM tasks WHERE name = ?", (one.name,)
        ).fetchone()
        if row is None:
            tables.execute("INSERT INTO tasks (name, state) VALUES (?, 0)", (one.name,))
            row = (WAITING, 0, 0, 0)
        state, published, readers, lost = row
        if one.token <= lost:
            return Completed(0)
        token = published or one.token
        ready, new = self._mark(tables, one, now, rebuilt)
        readers += new
        if one.last and state != DONE:
            tables.execute(
                "UPDATE tasks SET state = 2, computing = 0, token = ?, readers = ? WHERE name = ?",
                (token, readers, one.name),
            )
            self._free_parents(tables, one.name, now)
            if not readers:
                self._bury(tables, one.name, token, now)
            self._count(tables, one, now)
        elif new or not published:
            tables.execute(
                "UPDATE tasks SET token = ?, readers = ? WHERE name = ?", (token, readers, one.name)
            )
        return Completed(token, ready)

    def _mark(
        self, tables: sqlite3.Connection, one: Completion, now: float, rebuilt: bool
    ) -> tuple[tuple[str, ...], int]:
        """Mark the edges to the children: those that are ready now, or were; how many edges are new."""
        ready: list[str] = []
        made = 0
        for child, needs in one.children:
            row = tables.execute("SELECT state, seen FROM tasks WHERE name = ?", (child,)).fetchone()
            if (row is None and rebuilt and child[0] != "@") or (row is not None and row[0] == DONE):
                continue
            state, seen = row or (WAITING, 0)
            new = tables.execute("INSERT OR IGNORE INTO edges VALUES (?, ?)", (child, one.name)).rowcount
            seen += new
            made += new
            if seen >= needs:
                ready.append(child)
            if state == WAITING and (new or seen >= needs):
                tables.execute(
                    "INSERT INTO tasks (name, state, seen, since) VALUES (?1, ?2, ?3, ?4) "
                    "ON CONFLICT (name) DO UPDATE SET state = ?2, seen = ?3, since = ?4",
                    (child, READY if seen >= needs else WAITING, seen, now),
                )
            elif new:
                tables.execute("UPDATE tasks SET seen = ? WHERE name = ?", (seen, child))
        return tuple(ready), made

    def _free_parents(self, tables: sqlite3.Connection, name: str, now: float) -> None:
        """A task is done: it reads the tiles of its parents no more."""
        parents = tables.execute("SELECT parent FROM edges WHERE child = ?", (name,)).fetchall()
        if not parents:
            return
        tables.execute("DELETE FROM edges WHERE child = ?", (name,))
        for (parent,) in parents:
            (readers, state, token) = tables.execute(
                "SELECT readers, state, token FROM tasks WHERE name = ?", (parent,)
            ).fetchone()
            tables.execute("UPDATE tasks SET readers = ? WHERE name = ?", (readers - 1, parent))
            if readers == 1 and state == DONE:
                self._bury(tables, parent, token, now)

    @staticmethod
    def _bury(tables: sqlite3.Connection, name: str, token: int, now: float) -> None:
        """Nobody needs the tiles of a task; seeds, and tasks whose tiles were not kept, have none."""
        if token and name[0] != "@":
            tables.execute("INSERT OR REPLACE INTO garbage VALUES (?, ?, ?)", (name, token, now))

    @staticmethod
    def _count(tables: sqlite3.Connection, one: Completion, now: float) -> None:
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
