"""The shipped suites for queues and ledgers, on the embedded ones, and on the models they are compared with."""

from __future__ import annotations

import pytest

from linnet.testing.ledgers import LedgerSuite
from linnet.testing.model_ledger import ModelLedger
from linnet.testing.model_queue import ModelQueue
from linnet.testing.passing_time import TimedDatabase
from linnet.testing.queues import ExactQueueSuite
from linnet.workers.embedded import EmbeddedLedger, EmbeddedQueue


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
