"""Tasks of one step completed together: their rows are read once, and what changes is written at its end."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from linnet.workers.embedded.database import rows_of
from linnet.workers.embedded.upkeep import DONE, READY, WAITING
from linnet.workers.ledger import Child, Completed, Completion, is_known


@dataclass(slots=True)
class _Task:
    """What is known of a task."""

    state: int = WAITING
    token: int = 0
    readers: int = 0
    lost: int = 0
    seen: int = 0


class Completing:
    """Completions inside one transaction; `complete` each, then `write`."""

    def __init__(
        self, tables: sqlite3.Connection, completions: Sequence[Completion], now: float, known: int
    ) -> None:
        self._tables, self._now, self._known = tables, now, known
        self._tasks: dict[str, _Task] = {}
        self._edges: list[tuple[str, str]] = []
        """New ones: child and parent."""
        self._woken: dict[str, None] = {}
        """Tasks that waited, and have new edges to them or are ready."""
        self._seen: dict[str, None] = {}
        """Tasks with new edges to them that were ready before."""
        self._changed: dict[str, None] = {}
        """Tasks whose token or readers changed."""
        self._done: list[Completion] = []
        names = dict.fromkeys(each.name for each in completions)
        self._learn(names)
        self._learn(child.name for each in completions for child in (*each.children, *each.chosen))
        for name in names:
            self._tasks.setdefault(name, _Task())

    def _learn(self, names: Iterable[str]) -> None:
        """Read what is known of tasks."""
        query = "SELECT name, state, token, readers, lost, seen FROM tasks WHERE name IN ({})"
        new = dict.fromkeys(name for name in names if name not in self._tasks)
        self._tasks.update((row[0], _Task(*row[1:])) for row in rows_of(self._tables, query, new))

    # ---- one after the other

    def complete(self, one: Completion) -> Completed:
        """The tiles of a task are stored."""
        task = self._tasks[one.name]
        if one.token <= task.lost:
            return Completed(0)
        finishing = one.last and task.state != DONE
        ready, made = self._mark(one, task, (*one.children, *(one.chosen if finishing else ())))
        if made or not task.token:
            self._changed[one.name] = None
        task.readers += made
        task.token = task.token or one.token
        if finishing:
            task.state = DONE
            self._done.append(one)
        return Completed(task.token, ready)

    def _mark(self, one: Completion, task: _Task, children: Sequence[Child]) -> tuple[tuple[str, ...], int]:
        """Mark the edges to the children: those that are ready now, or were; how many edges are new."""
        if one.name[0] == "@":
            return self._wake(children), 0
        # Who never told anybody that it is done has no edges from it.
        fresh = not (task.token or task.lost or task.readers or task.state == DONE)
        ready: list[str] = []
        made = 0
        for name, needs in children:
            child = self._child(name)
            if child.state == DONE:
                continue
            new = self._mark_one(name, one.name, fresh)
            child.seen += new
            made += new
            if child.seen >= needs:
                ready.append(name)
            if child.state == WAITING and (new or child.seen >= needs):
                child.state = READY if child.seen >= needs else WAITING
                self._woken[name] = None
            elif new:
                self._seen[name] = None
        return tuple(ready), made

    def _wake(self, children: Sequence[Child]) -> tuple[str, ...]:
        """What a seed makes ready waits for nothing else, and reads no tile of it: it needs no edges."""
        ready: list[str] = []
        for name, _ in children:
            child = self._child(name)
            if child.state == WAITING:
                child.state = READY
                self._woken[name] = None
            if child.state == READY:
                ready.append(name)
        return tuple(ready)

    def _child(self, name: str) -> _Task:
        found = self._tasks.get(name)
        if found is None:
            found = self._tasks[name] = _Task(DONE if is_known(name, self._known) else WAITING)
        return found

    def _mark_one(self, child: str, parent: str, fresh: bool) -> int:
        """Make an edge, unless it is there; how many were made."""
        if fresh:
            self._edges.append((child, parent))
            return 1
        self._write_edges()
        query = "INSERT OR IGNORE INTO edges VALUES (?, ?)"
        return self._tables.execute(query, (child, parent)).rowcount

    def _write_edges(self) -> None:
        if self._edges:
            self._tables.executemany("INSERT INTO edges VALUES (?, ?)", self._edges)
            self._edges = []

    # ---- all at once

    def write(self) -> None:
        """Write what changed."""
        self._write_edges()
        self._free_parents()
        run = self._tables.executemany
        tasks = self._tasks
        run(
            "INSERT INTO tasks (name, state, seen, since) VALUES (?1, ?2, ?3, ?4) "
            "ON CONFLICT (name) DO UPDATE SET state = ?2, seen = ?3, since = ?4",
            [(name, tasks[name].state, tasks[name].seen, self._now) for name in self._woken],
        )
        run("UPDATE tasks SET seen = ? WHERE name = ?", [(tasks[name].seen, name) for name in self._seen])
        done = dict.fromkeys(one.name for one in self._done)
        run(
            "INSERT INTO tasks (name, state, token, readers) VALUES (?1, 0, ?2, ?3) "
            "ON CONFLICT (name) DO UPDATE SET token = ?2, readers = ?3",
            [(name, tasks[name].token, tasks[name].readers) for name in self._changed if name not in done],
        )
        run(
            "INSERT INTO tasks (name, state, token, readers) VALUES (?1, 2, ?2, ?3) "
            "ON CONFLICT (name) DO UPDATE SET state = 2, computing = 0, token = ?2, readers = ?3",
            [(name, tasks[name].token, tasks[name].readers) for name in done],
        )
        self._bury()
        self._count()

    def _free_parents(self) -> None:
        """Tasks are done: they read the tiles of their parents no more."""
        over = [one.name for one in self._done]
        parents = rows_of(self._tables, "SELECT parent FROM edges WHERE child IN ({})", over)
        if not parents:
            return
        self._tables.executemany("DELETE FROM edges WHERE child = ?", [(name,) for name in over])
        self._learn(name for (name,) in parents)
        for (name,) in parents:
            self._tasks[name].readers -= 1
            self._changed[name] = None

    def _bury(self) -> None:
        """Nobody needs the tiles of done tasks without readers; seeds, and tasks whose tiles were not kept,
        have none."""
        over = dict.fromkeys([*self._changed, *(one.name for one in self._done)])
        gone = [
            (name, task.token, self._now)
            for name in over
            if (task := self._tasks[name]).state == DONE
            and not task.readers
            and task.token
            and name[0] != "@"
        ]
        self._tables.executemany("INSERT OR REPLACE INTO garbage VALUES (?, ?, ?)", gone)

    def _count(self) -> None:
        counted = [one for one in self._done if one.counted]
        if not counted:
            return
        self._tables.execute(
            "UPDATE job SET done = done + ?1, last = ?2, total = max(total, ?3), "
            "state = iif(done + ?1 >= max(total, ?3) AND state = 'running', 'finished', state)",
            (len(counted), self._now, max(one.total for one in counted)),
        )
        kinds: dict[int, list[float]] = {}
        for one in counted:
            kinds.setdefault(int(one.name.partition(".")[0]), []).append(one.seconds)
        self._tables.executemany(
            "INSERT INTO kinds VALUES (?1, ?2, ?3) "
            "ON CONFLICT (statement) DO UPDATE SET tasks = tasks + ?2, seconds = seconds + ?3",
            [(kind, len(seconds), sum(seconds)) for kind, seconds in kinds.items()],
        )
