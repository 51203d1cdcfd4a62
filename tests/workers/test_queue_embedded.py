"""The shipped suite for queues, on the embedded one, and on the model it is compared with."""

from __future__ import annotations

import pytest

from linnet.testing.clock import Clock
from linnet.testing.model_queue import ModelQueue
from linnet.testing.passing_time import TimedDatabase
from linnet.testing.queues import ExactQueueSuite
from linnet.workers.embedded import EmbeddedQueue


@pytest.fixture
def clock():
    return Clock()


class TestModel(ExactQueueSuite):
    @pytest.fixture
    def another(self, clock):
        held = ModelQueue(clock, most_deliveries=self.most_deliveries)
        return lambda: held

    @pytest.fixture
    def later(self, clock):
        return clock.later


class TestEmbedded(ExactQueueSuite):
    @pytest.fixture
    def another(self, tmp_path, clock):
        opened = []

        def another():
            opened.append(TimedDatabase(tmp_path / "job.db", clock))
            return EmbeddedQueue(opened[-1], most_deliveries=self.most_deliveries)

        yield another
        for database in opened:
            database.close()

    @pytest.fixture
    def later(self, clock):
        return clock.later
