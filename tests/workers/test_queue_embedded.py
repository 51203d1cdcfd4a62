"""The shipped suite for queues, on the embedded one, and on the model it is compared with."""

from __future__ import annotations

import pytest

from linnet.testing.clock import Clock
from linnet.testing.model_queue import ModelQueue
from linnet.testing.queues import QueueSuite
from linnet.workers.embedded import Database, EmbeddedQueue


class _Timed(Database):
    """A database whose host has a clock of the test's."""

    clock: Clock

    def now(self):
        return self.clock()


@pytest.fixture
def clock():
    return Clock()


class TestModel(QueueSuite):
    @pytest.fixture
    def another(self, clock):
        held = ModelQueue(clock, most_deliveries=self.most_deliveries)
        return lambda: held

    @pytest.fixture
    def later(self, clock):
        return clock.later


class TestEmbedded(QueueSuite):
    @pytest.fixture
    def another(self, tmp_path, clock):
        _Timed.clock = clock
        opened = []

        def another():
            opened.append(_Timed(tmp_path / "job.db", create=True))
            return EmbeddedQueue(opened[-1], most_deliveries=self.most_deliveries)

        yield another
        for database in opened:
            database.close()

    @pytest.fixture
    def later(self, clock):
        return clock.later
