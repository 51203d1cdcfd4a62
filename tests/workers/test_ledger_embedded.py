"""The shipped suite for ledgers, on the embedded one, and on the model it is compared with."""

from __future__ import annotations

import pytest

from linnet.testing.clock import Clock
from linnet.testing.ledgers import LedgerSuite
from linnet.testing.model_ledger import ModelLedger
from linnet.testing.passing_time import TimedDatabase
from linnet.workers.embedded import EmbeddedLedger


@pytest.fixture
def clock():
    return Clock()


class TestModel(LedgerSuite):
    @pytest.fixture
    def another(self, clock):
        held = ModelLedger(clock, silence=self.silence)
        return lambda: held

    @pytest.fixture
    def later(self, clock):
        return clock.later


class TestEmbedded(LedgerSuite):
    @pytest.fixture
    def another(self, tmp_path, clock):
        opened = []

        def another():
            opened.append(TimedDatabase(tmp_path / "job.db", clock))
            return EmbeddedLedger(opened[-1], silence=self.silence)

        yield another
        for database in opened:
            database.close()

    @pytest.fixture
    def later(self, clock):
        return clock.later
