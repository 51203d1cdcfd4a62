"""The shipped suites for queues and ledgers, on a real Valkey."""

from __future__ import annotations

import itertools

import pytest

from linnet.testing.ledgers import LedgerSuite
from linnet.testing.passing_time import age_ledger, age_queue
from linnet.testing.queues import ExactQueueSuite
from linnet.workers.remote.redis_ledger import RedisLedger
from linnet.workers.remote.redis_queue import RedisQueue

JOBS = itertools.count()


@pytest.fixture
def job():
    return f"board-{next(JOBS)}"


@pytest.fixture
def opened(redis_server, job):
    """What the test opened: dropped at its end, when no key may be left."""
    found = []
    yield found
    for each in found:
        each.drop()
        each.close()
    with redis_server.client() as client:
        assert list(client.scan_iter(f"linnet:{{{job}}}:*")) == []


@pytest.fixture
def client(redis_server):
    with redis_server.client() as found:
        yield found


@pytest.mark.slow
class TestRedisLedger(LedgerSuite):
    @pytest.fixture
    def another(self, redis_server, job, opened):
        def another():
            opened.append(RedisLedger(redis_server.url, job, silence=self.silence))
            return opened[-1]

        return another

    @pytest.fixture
    def later(self, client, job):
        return lambda seconds: age_ledger(client, job, seconds)


class TestRedisQueue(ExactQueueSuite):
    @pytest.fixture
    def another(self, redis_server, job, opened):
        def another():
            opened.append(RedisQueue(redis_server.url, job, most_deliveries=self.most_deliveries))
            return opened[-1]

        return another

    @pytest.fixture
    def later(self, client, job):
        return lambda seconds: age_queue(client, job, seconds)
