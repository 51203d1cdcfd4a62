"""Random steps on queues and ledgers, compared with their models."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from linnet.testing.ledger_machine import SILENCE, LedgerMachine
from linnet.testing.passing_time import TimedDatabase, age_ledger, age_queue
from linnet.testing.queue_machine import MOST_DELIVERIES, QueueMachine
from linnet.workers.embedded import EmbeddedLedger, EmbeddedQueue
from linnet.workers.remote.redis_ledger import RedisLedger
from linnet.workers.remote.redis_queue import RedisQueue

JOBS = itertools.count()


class Board(NamedTuple):
    """A queue or a ledger: its machine, how it is opened in a file and at a server, how time passes there."""

    machine: Any
    embedded: Callable[..., Any]
    redis: Callable[..., Any]
    age: Callable[..., None]
    options: dict[str, Any]


LEDGER = Board(LedgerMachine, EmbeddedLedger, RedisLedger, age_ledger, {"silence": SILENCE})
QUEUE = Board(QueueMachine, EmbeddedQueue, RedisQueue, age_queue, {"most_deliveries": MOST_DELIVERIES})
both = pytest.mark.parametrize("board", [LEDGER, QUEUE], ids=["ledger", "queue"])


def run(machine, examples, steps=40):
    run_state_machine_as_test(
        machine, settings=settings(max_examples=examples, stateful_step_count=steps, deadline=None)
    )


def embedded(board):
    class Embedded(board.machine):
        def opened(self):
            self.folder = tempfile.TemporaryDirectory()
            database = TimedDatabase(Path(self.folder.name) / "job.db", self.clock)
            return board.embedded(database, **board.options)

        def pass_time(self, seconds):
            """The clock is that of the model."""

        def teardown(self):
            super().teardown()
            self.folder.cleanup()

    return Embedded


def redis(board, server):
    class Redis(board.machine):
        def opened(self):
            self.job = f"machine-{next(JOBS)}"
            return board.redis(server.url, self.job, **board.options)

        def pass_time(self, seconds):
            with server.client() as client:
                board.age(client, self.job, seconds)

    return Redis


@pytest.mark.slow
@both
def test_embedded(board):
    run(embedded(board), 12)


@pytest.mark.slow
@both
def test_redis(board, redis_server):
    run(redis(board, redis_server), 12)


@pytest.mark.long
@both
def test_embedded_for_long(board):
    run(embedded(board), 3000, 80)


@pytest.mark.long
@both
def test_redis_for_long(board, redis_server):
    run(redis(board, redis_server), 2000, 80)
