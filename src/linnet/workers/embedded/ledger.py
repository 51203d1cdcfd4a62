"""The ledger of a job in its database; `workers.ledger` has the rules."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from linnet.workers.embedded.completing import Completing
from linnet.workers.embedded.database import rows_of
from linnet.workers.embedded.upkeep import DONE, READY, WAITING, Upkeep
from linnet.workers.ledger import Begun, Completed, Completion, Start, is_known


class EmbeddedLedger(Upkeep):
    """A row for each task that was heard of, and one for each edge that still matters.

    An edge lies between a task that is done, or has marked some of its children, and a child of it that
    is not done. `seen` counts the edges to a task, `readers` those from it: a task without readers is
    one whose tiles nobody needs. What a step needs to know of all its tasks is read at once, and what
    it changes is written at once: a query costs more than the rows it is about.
    """

    def __repr__(self) -> str:
        return f"EmbeddedLedger({self.url})"

    # ---- attempts

    def begin(self, starts: Sequence[Start], worker: str) -> list[Begun]:
        with self._database.writing() as tables:
            state, epoch, sequence, first, known = tables.execute(
                "SELECT state, epoch, sequence, first, rebuilt FROM job"
            ).fetchone()
            if state != "running":
                return [Begun("halt")] * len(starts)
            found = self._begun(tables, starts, worker, (epoch << 32) + sequence, known)
            ran = sum(each.state == "run" for each in found)
            if ran:
                tables.execute(
                    "UPDATE job SET sequence = sequence + ?1, begun = begun + ?1, first = ?2",
                    (ran, first or self._database.now()),
                )
            return found

    def _begun(
        self, tables: sqlite3.Connection, starts: Sequence[Start], worker: str, token: int, known: int
    ) -> list[Begun]:
        """What becomes of tasks that somebody wants to run; tokens are those after `token`."""
        now = self._database.now()
        tokens = _Tokens(tables, starts, known)
        query = "SELECT name, state, attempts, deaths, computing, worker FROM tasks WHERE name IN ({})"
        heard = {row[0]: row[1:] for row in rows_of(tables, query, {start.name for start in starts})}
        found: list[Begun] = []
        rows: list[tuple[object, ...]] = []
        for name, parents, extra in starts:
            unheard = (DONE if is_known(name, known) else WAITING, 0, 0, 0, "")
            state, attempts, deaths, computing, holder = heard.get(name, unheard)
            published = None if state == DONE else tokens.of(parents)
            if published is None:
                found.append(Begun("done" if state == DONE else "wait"))
                continue
            if computing and not extra and holder != worker and not self._alive(tables, holder, now):
                deaths += 1
            token += 1
            heard[name] = (READY, attempts + 1, deaths, 0, worker)
            rows.append((name, attempts + 1, deaths, worker, token, now))
            found.append(Begun("run", token, attempts + 1, deaths, published))
        tables.executemany(
            "INSERT INTO tasks (name, state, attempts, deaths, worker, latest, since, began) "
            "VALUES (?1, 1, ?2, ?3, ?4, ?5, ?6, ?6) "
            "ON CONFLICT (name) DO UPDATE SET state = 1, attempts = ?2, deaths = ?3, worker = ?4, "
            "latest = ?5, since = ?6, began = ?6, computing = 0",
            rows,
        )
        return found

    def _alive(self, tables: sqlite3.Connection, worker: str, now: float) -> bool:
        found = tables.execute("SELECT beat FROM workers WHERE name = ? AND gone = 0", (worker,)).fetchone()
        return found is not None and found[0] > now - self._silence

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
            self._check_place()  # a worker that was stopped for long may hold a file that nobody else sees
            epoch, known = tables.execute("SELECT epoch, rebuilt FROM job").fetchone()
            valid = [each for each in completions if each.token >> 32 == epoch]
            completing = Completing(tables, valid, self._database.now(), known)
            found = [
                completing.complete(each) if each.token >> 32 == epoch else self._of_old_epoch(tables, each)
                for each in completions
            ]
            completing.write()
            return found

    def _of_old_epoch(self, tables: sqlite3.Connection, one: Completion) -> Completed:
        """What became of a completion that changes nothing: it may have been published before."""
        _, published = self._state(tables, one.name, 0)
        return Completed(one.token if published == one.token else 0)


class _Tokens:
    """The published tokens of the parents of some tasks."""

    def __init__(self, tables: sqlite3.Connection, starts: Sequence[Start], known: int) -> None:
        parents = dict.fromkeys(parent for start in starts for parent in start.parents)
        query = "SELECT name, token, state FROM tasks WHERE name IN ({})"
        self._heard = {name: (token, state) for name, token, state in rows_of(tables, query, parents)}
        self._known = known

    def of(self, parents: Sequence[str]) -> tuple[int, ...] | None:
        """Those of these parents; None if one has none yet, and is not done without."""
        found: list[int] = []
        for name in parents:
            token, state = self._heard.get(name) or (0, DONE if is_known(name, self._known) else WAITING)
            if not token and state != DONE:
                return None
            found.append(token)
        return tuple(found)
