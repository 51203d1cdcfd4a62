"""The shipped suite for ledgers, on a real Valkey."""

from __future__ import annotations

import itertools

import pytest

from linnet.testing.ledgers import LedgerSuite
from linnet.testing.passing_time import age_ledger
from linnet.workers.remote.redis_ledger import RedisLedger

JOBS = itertools.count()


class TestRedis(LedgerSuite):
    @pytest.fixture
    def job(self):
        return f"ledger-{next(JOBS)}"

    @pytest.fixture
    def another(self, redis_server, job):
        opened = []

        def another():
            opened.append(RedisLedger(redis_server.url, job, silence=self.silence))
            return opened[-1]

        yield another
        for each in opened:
            each.drop()
            each.close()
        with redis_server.client() as client:
            assert list(client.scan_iter(f"linnet:{{{job}}}:*")) == []

    @pytest.fixture
    def later(self, redis_server, job):
        with redis_server.client() as client:
            yield lambda seconds: age_ledger(client, job, seconds)
