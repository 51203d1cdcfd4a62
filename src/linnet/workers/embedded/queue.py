"""The queue of a job in its database."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from linnet.workers.embedded.database import Database, boot
from linnet.workers.queue import Entry, Lease, QueueSize

_SCHEMA = """
CREATE TABLE IF NOT EXISTS queue (
    name TEXT PRIMARY KEY, priority INTEGER NOT NULL, ends REAL NOT NULL, receipt INTEGER NOT NULL,
    deliveries INTEGER NOT NULL, dead INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS queue_order ON queue (dead, priority DESC);
CREATE TABLE IF NOT EXISTS queue_facts (key TEXT PRIMARY KEY, value);
INSERT OR IGNORE INTO queue_facts VALUES ('receipt', 0);
"""


class EmbeddedQueue:
    """Ready tasks as rows; `ends` is when a lease ends, 0 where there is none."""

    def __init__(self, database: Database, *, most_deliveries: int = 50) -> None:
        self._database = database
        self._most = most_deliveries
        self.url = f"file://{database.path}"
        with database.writing() as tables:
            for statement in filter(str.strip, _SCHEMA.split(";")):
                tables.execute(statement)
            # The clock starts anew with the host: leases from before have ended.
            known = tables.execute("SELECT value FROM queue_facts WHERE key = 'boot'").fetchone()
            if known is None or known[0] != boot():
                tables.execute("UPDATE queue SET ends = 0")
                tables.execute("INSERT OR REPLACE INTO queue_facts VALUES ('boot', ?)", (boot(),))

    def put(self, entries: Sequence[Entry], *, claim: int = 0, seconds: float = 0) -> list[Lease]:
        if not entries:
            return []
        with self._database.writing() as tables:
            tables.executemany(
                "INSERT OR IGNORE INTO queue VALUES (?, ?, 0, 0, 0, 0)",
                [(entry.name, entry.priority) for entry in entries],
            )
            names = [entry.name for entry in entries[:claim]]
            return self._leased(names, seconds) if names else []

    def lease(self, limit: int, seconds: float) -> list[Lease]:
        with self._database.writing() as tables:
            rows = tables.execute(
                "SELECT name FROM queue WHERE dead = 0 AND ends <= ? ORDER BY priority DESC LIMIT ?",
                (self._database.now(), limit),
            ).fetchall()
            return self._leased([name for (name,) in rows], seconds)

    def _leased(self, names: Sequence[str], seconds: float) -> list[Lease]:
        """Leases of those of the tasks that nobody holds."""
        found: list[Lease] = []
        now = self._database.now()
        with self._database.writing() as tables:
            (receipt,) = tables.execute("SELECT value FROM queue_facts WHERE key = 'receipt'").fetchone()
            for name in names:
                ends, deliveries = tables.execute(
                    "SELECT ends, deliveries FROM queue WHERE name = ?", (name,)
                ).fetchone()
                if ends > now:
                    continue
                if deliveries >= self._most:
                    tables.execute("UPDATE queue SET dead = 1 WHERE name = ?", (name,))
                    continue
                receipt += 1
                tables.execute(
                    "UPDATE queue SET ends = ?, receipt = ?, deliveries = ? WHERE name = ?",
                    (now + seconds, receipt, deliveries + 1, name),
                )
                found.append(Lease(name, str(receipt), deliveries + 1))
            if found:
                tables.execute("UPDATE queue_facts SET value = ? WHERE key = 'receipt'", (receipt,))
        return found

    def renew(self, leases: Sequence[Lease], seconds: float) -> list[bool]:
        ends = self._database.now() + seconds
        with self._database.writing() as tables:
            return [
                tables.execute(
                    "UPDATE queue SET ends = ? WHERE name = ? AND receipt = ?",
                    (ends, lease.name, int(lease.receipt)),
                ).rowcount
                == 1
                for lease in leases
            ]

    def release(self, leases: Sequence[Lease]) -> None:
        with self._database.writing() as tables:
            tables.executemany(
                "UPDATE queue SET ends = 0, receipt = 0, deliveries = deliveries - 1 "
                "WHERE name = ? AND receipt = ?",
                [(lease.name, int(lease.receipt)) for lease in leases],
            )

    def remove(self, leases: Sequence[Lease]) -> None:
        with self._database.writing() as tables:
            tables.executemany(
                "DELETE FROM queue WHERE name = ? AND receipt = ?",
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

    def grouped(self) -> AbstractContextManager[object]:
        return self._database.writing()

    def close(self) -> None:
        self._database.close()
