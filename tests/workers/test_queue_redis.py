"""The shipped suite for queues, on a real Valkey."""

from __future__ import annotations

import itertools

import pytest

from linnet.testing.passing_time import age_queue
from linnet.testing.queues import ExactQueueSuite
from linnet.workers.remote.redis_queue import RedisQueue

JOBS = itertools.count()


class TestRedis(ExactQueueSuite):
    @pytest.fixture
    def job(self):
        return f"queue-{next(JOBS)}"

    @pytest.fixture
    def another(self, redis_server, job):
        opened = []

        def another():
            opened.append(RedisQueue(redis_server.url, job, most_deliveries=self.most_deliveries))
            return opened[-1]

        yield another
        for each in opened:
            each.clear()
            each.close()
        with redis_server.client() as client:
            assert list(client.scan_iter(f"linnet:{{{job}}}:*")) == []

    @pytest.fixture
    def later(self, redis_server, job):
        with redis_server.client() as client:
            yield lambda seconds: age_queue(client, job, seconds)
