"""The queue of a job in its database."""

from __future__ import annotations

import math
import os
import re
import sqlite3
from collections.abc import Sequence
from contextlib import AbstractContextManager

from linnet.workers.embedded.database import Database, rows_of
from linnet.workers.queue import Entry, Lease, QueueSize

_NO_TEXT = re.compile("[\ud800-\udfff]")
"""What bytes that are no text become."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS queue (
    name TEXT PRIMARY KEY, priority INTEGER NOT NULL, ends REAL NOT NULL DEFAULT 0,
    receipt INTEGER NOT NULL DEFAULT 0, deliveries INTEGER NOT NULL DEFAULT 0,
    dead INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS queue_order ON queue (dead, priority DESC);
"""


class EmbeddedQueue:
    """Ready tasks as rows; `ends` is when a lease ends, 0 where there is none."""

    def __init__(self, database: Database, *, most_deliveries: int = 50) -> None:
        self._database = database
        self._most = most_deliveries
        self.url: str = f"file://{database.path}"
        self._empty: tuple[tuple[int, int], float] | None = None
        """As of which version there was nothing to lease, and until when there is not if nobody writes."""
        database.require(_SCHEMA)

    def __repr__(self) -> str:
        return f"EmbeddedQueue({self.url})"

    def put(self, entries: Sequence[Entry], *, claim: int = 0, seconds: float = 0) -> list[Lease]:
        if not entries:
            return []
        with self._database.writing() as tables:
            tables.executemany("INSERT OR IGNORE INTO queue (name, priority) VALUES (?, ?)", entries)
            claimed = dict.fromkeys(entry.name for entry in entries[:claim])
            query = "SELECT name, deliveries, dead, ends FROM queue WHERE name IN ({})"
            there = rows_of(tables, query, claimed)
            now = self._database.now()
            known = {name: deliveries for name, deliveries, dead, ends in there if not dead and ends <= now}
            return self._leased(tables, [(name, known[name]) for name in claimed if name in known], seconds)

    def lease(self, limit: int, seconds: float) -> list[Lease]:
        now = self._database.now()
        if self._empty is not None and now < self._empty[1] and self._database.version() == self._empty[0]:
            return []
        found: list[Lease] = []
        with self._database.writing() as tables:
            while len(found) < limit:
                free = tables.execute(
                    "SELECT name, deliveries FROM queue WHERE dead = 0 AND ends <= ? "
                    "ORDER BY priority DESC LIMIT ?",
                    (now, limit - len(found)),
                ).fetchall()
                if not free:
                    break
                found += self._leased(tables, self._texts(tables, free), seconds)
            if not found and limit > 0:
                ((ends,),) = tables.execute("SELECT min(ends) FROM queue WHERE dead = 0")
                self._empty = (self._database.version(), math.inf if ends is None else ends)
        return found

    @staticmethod
    def _texts(tables: sqlite3.Connection, free: Sequence[tuple[str | bytes, int]]) -> list[tuple[str, int]]:
        """Those that are text; what somebody else put there, which is none, is removed."""
        found: list[tuple[str, int]] = []
        for name, deliveries in free:
            if isinstance(name, str) and not _NO_TEXT.search(name):
                found.append((name, deliveries))
            else:
                raw = name.encode("utf-8", "surrogateescape") if isinstance(name, str) else name
                tables.execute("DELETE FROM queue WHERE CAST(name AS BLOB) = ?", (raw,))
        return found

    def _leased(
        self, tables: sqlite3.Connection, free: Sequence[tuple[str, int]], seconds: float
    ) -> list[Lease]:
        """Leases of tasks that nobody holds; those that were delivered too often are set aside."""
        ends = self._database.now() + seconds
        stamp = int.from_bytes(os.urandom(5), "big") << 20
        found = [
            Lease(name, str(stamp + i), deliveries + 1)
            for i, (name, deliveries) in enumerate(free)
            if deliveries < self._most
        ]
        tables.executemany(
            "UPDATE queue SET ends = ?, receipt = ?, deliveries = ? WHERE name = ?",
            [(ends, int(receipt), deliveries, name) for name, receipt, deliveries in found],
        )
        if len(found) < len(free):
            often = [(name,) for name, deliveries in free if deliveries >= self._most]
            tables.executemany("UPDATE queue SET dead = 1 WHERE name = ?", often)
        return found

    def renew(self, leases: Sequence[Lease], seconds: float) -> list[bool]:
        ends = self._database.now() + seconds
        with self._database.writing() as tables:
            return [
                tables.execute(
                    "UPDATE queue SET ends = ? WHERE name = ? AND receipt = ? AND dead = 0",
                    (ends, lease.name, int(lease.receipt)),
                ).rowcount
                == 1
                for lease in leases
            ]

    def release(self, leases: Sequence[Lease]) -> None:
        if not leases:
            return
        with self._database.writing() as tables:
            tables.executemany(
                "UPDATE queue SET ends = 0, receipt = 0, deliveries = deliveries - 1 "
                "WHERE name = ? AND receipt = ? AND dead = 0",
                [(lease.name, int(lease.receipt)) for lease in leases],
            )

    def remove(self, leases: Sequence[Lease]) -> None:
        if not leases:
            return
        with self._database.writing() as tables:
            tables.executemany(
                "DELETE FROM queue WHERE name = ? AND receipt = ? AND dead = 0",
                [(lease.name, int(lease.receipt)) for lease in leases],
            )

    def size(self) -> QueueSize:
        ((ready, leased, dead),) = self._database.read(
            "SELECT coalesce(sum(dead = 0 AND ends <= ?1), 0), coalesce(sum(dead = 0 AND ends > ?1), 0), "
            "coalesce(sum(dead), 0) FROM queue",
            (self._database.now(),),
        )
        return QueueSize(ready, leased, dead)

    def dead(self) -> list[str]:
        return [
            name for (name,) in self._database.read("SELECT name FROM queue WHERE dead = 1 ORDER BY name")
        ]

    def clear(self) -> None:
        with self._database.writing() as tables:
            tables.execute("DELETE FROM queue")

    def drop(self) -> None:
        self.clear()  # the file goes with the ledger

    def grouped(self) -> AbstractContextManager[object]:
        return self._database.grouped()

    def close(self) -> None:
        self._database.close()
