"""The shipped suites for queues and ledgers, on the embedded ones, and on the models they are compared with."""

from __future__ import annotations

import pytest

from linnet.testing.ledger_steps import begun, ran
from linnet.testing.ledgers import LedgerSuite
from linnet.testing.model_ledger import ModelLedger
from linnet.testing.model_queue import ModelQueue
from linnet.testing.passing_time import TimedDatabase
from linnet.testing.queues import ExactQueueSuite
from linnet.workers.embedded import Database, EmbeddedLedger, EmbeddedQueue
from linnet.workers.embedded import database as embedded_database
from linnet.workers.queue import Entry


@pytest.fixture
def database(tmp_path, clock):
    """Opens the file of a job once more."""
    opened = []

    def database():
        opened.append(TimedDatabase(tmp_path / "job.db", clock))
        return opened[-1]

    yield database
    for each in opened:
        each.close()


class ByClock:
    """Time is that of the clock."""

    @pytest.fixture
    def later(self, clock):
        return clock.later


def test_after_a_reboot_nobody_is_at_work(tmp_path, monkeypatch):
    """The clock of a host starts anew with it, and whoever worked there does not any more."""
    monkeypatch.setattr(embedded_database, "uptime", lambda: 5000.0)
    before = Database(tmp_path / "job.db", create=True)
    ledger, queue = EmbeddedLedger(before, silence=5), EmbeddedQueue(before)
    ledger.create(3)
    ledger.touch([], "here/1", {"tasks": 1})
    ran(ledger, "@", (), ["0.1", "0.2", "0.3"])
    queue.put([Entry("0.1"), Entry("0.2")])
    (held,) = queue.lease(1, 60)
    ledger.computing(held.name, begun(ledger, held.name, worker="here/1").token)
    seconds = ledger.status().now
    before.close()

    monkeypatch.setattr(embedded_database, "uptime", lambda: 30.0)
    monkeypatch.setattr(embedded_database, "boot", lambda: "another start")
    database = Database(tmp_path / "job.db")
    ledger, queue = EmbeddedLedger(database, silence=5), EmbeddedQueue(database)
    assert ledger.workers(within=15) == []
    assert [worker.left for worker in ledger.workers()] == [True]
    assert {lease.name for lease in queue.lease(5, 60)} == {"0.1", "0.2"}
    assert ledger.status().now >= seconds
    monkeypatch.setattr(embedded_database, "uptime", lambda: 60.0)
    assert sorted(ledger.overdue(20, 9)) == ["0.1", "0.2", "0.3"]
    again = Database(tmp_path / "job.db")
    assert again.now() == database.now()
    again.close()
    database.close()


class TestModelLedger(ByClock, LedgerSuite):
    @pytest.fixture
    def another(self, clock):
        held = ModelLedger(clock, silence=self.silence)
        return lambda: held


class TestModelQueue(ByClock, ExactQueueSuite):
    @pytest.fixture
    def another(self, clock):
        held = ModelQueue(clock, most_deliveries=self.most_deliveries)
        return lambda: held


class TestEmbeddedLedger(ByClock, LedgerSuite):
    @pytest.fixture
    def another(self, database):
        return lambda: EmbeddedLedger(database(), silence=self.silence)


class TestEmbeddedQueue(ByClock, ExactQueueSuite):
    @pytest.fixture
    def another(self, database):
        return lambda: EmbeddedQueue(database(), most_deliveries=self.most_deliveries)
