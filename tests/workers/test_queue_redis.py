"""The shipped suite for queues, on a real Valkey."""

from __future__ import annotations

import itertools

import pytest

from linnet.testing.queues import QueueSuite
from linnet.workers.remote.redis_queue import RedisQueue

JOBS = itertools.count()


def aged(client, job, seconds):
    """As if so many seconds had passed: every lease ends earlier."""
    key = f"linnet:{{{job}}}:queue:leased"
    for member in client.zrange(key, 0, -1):
        client.zincrby(key, -seconds, member)


class TestRedis(QueueSuite):
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
            yield lambda seconds: aged(client, job, seconds)
