"""The shipped suite for ledgers, on a real Valkey."""

from __future__ import annotations

import itertools

import pytest

from linnet.testing.ledgers import LedgerSuite
from linnet.workers.remote.redis_ledger import RedisLedger

JOBS = itertools.count()
AGEING = ("ready", "began", "garbage")


def aged(client, job, seconds):
    """As if so many seconds had passed: all that was kept is older."""
    import msgpack

    prefix = f"linnet:{{{job}}}:"
    for name in AGEING:
        for member in client.zrange(prefix + name, 0, -1):
            client.zincrby(prefix + name, -seconds, member)
    for name, text in client.hgetall(prefix + "workers").items():
        started, beat, *more = msgpack.unpackb(text)
        client.hset(prefix + "workers", name, msgpack.packb([started - seconds, beat - seconds, *more]))


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
            yield lambda seconds: aged(client, job, seconds)
