"""How many tasks a worker takes at a time."""

from __future__ import annotations

import pytest

from linnet.programs import Task
from linnet.workers.attempt import Attempt, Batch
from linnet.workers.worker import Worker


def adapted(size, seconds, took=0.001):
    """How many tasks the next batch of a worker may hold, after one whose kernels took so long."""
    worker = Worker.__new__(Worker)
    worker._batch = size
    attempts = [Attempt(f"0.{i}", Task(0, (i,)), None, (), seconds=each) for i, each in enumerate(seconds)]
    batch = Batch(attempts)
    batch.seconds = took
    worker._adapt(batch)
    return worker._batch


def test_short_tasks_come_in_ever_larger_batches():
    assert adapted(4, [1e-5] * 4) == 8
    assert adapted(64, [1e-5] * 64) == 64


@pytest.mark.parametrize("late", [1, 20])
def test_some_that_the_system_held_up_do_not_end_that(late):
    """Another process ran meanwhile: that says nothing of the tasks that follow."""
    assert adapted(64, [0.008] * late + [1e-5] * (64 - late)) == 64


def test_long_tasks_come_alone():
    assert adapted(1, [0.01], 0.01) == 1
    assert adapted(8, [0.01] * 5 + [1e-5] * 3, 0.05) == 1


def test_a_batch_that_took_too_long_is_followed_by_a_smaller_one():
    assert adapted(64, [1e-4] * 64, 0.06) == 32
