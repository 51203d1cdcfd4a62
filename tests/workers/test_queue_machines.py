"""Random steps on queues, compared with the model."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from linnet.testing.passing_time import TimedDatabase, age_queue
from linnet.testing.queue_machine import MOST_DELIVERIES, QueueMachine
from linnet.workers.embedded import EmbeddedQueue
from linnet.workers.remote.redis_queue import RedisQueue

JOBS = itertools.count()


def run(machine, examples, steps=40):
    run_state_machine_as_test(
        machine, settings=settings(max_examples=examples, stateful_step_count=steps, deadline=None)
    )


def embedded():
    class Embedded(QueueMachine):
        def opened(self):
            self.folder = tempfile.TemporaryDirectory()
            database = TimedDatabase(Path(self.folder.name) / "job.db", self.clock)
            return EmbeddedQueue(database, most_deliveries=MOST_DELIVERIES)

        def pass_time(self, seconds):
            """The clock is that of the model."""

        def teardown(self):
            super().teardown()
            self.folder.cleanup()

    return Embedded


def redis(server):
    class Redis(QueueMachine):
        def opened(self):
            self.job = f"machine-{next(JOBS)}"
            return RedisQueue(server.url, self.job, most_deliveries=MOST_DELIVERIES)

        def pass_time(self, seconds):
            with server.client() as client:
                age_queue(client, self.job, seconds)

    return Redis


@pytest.mark.slow
def test_embedded():
    run(embedded(), 12)


@pytest.mark.slow
def test_redis(redis_server):
    run(redis(redis_server), 12)


@pytest.mark.long
def test_embedded_for_long():
    run(embedded(), 3000, 80)


@pytest.mark.long
def test_redis_for_long(redis_server):
    run(redis(redis_server), 2000, 80)
