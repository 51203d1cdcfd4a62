"""The shipped suite for queues, on SQS as moto emulates it."""

from __future__ import annotations

import itertools
import time

import pytest

from linnet.errors import AddressError, StoreError
from linnet.testing.queues import QueueSuite, drained, names
from linnet.workers.queue import Entry
from linnet.workers.remote import open_queue
from linnet.workers.remote.sqs_queue import SqsQueue

JOBS = itertools.count()
pytestmark = pytest.mark.slow


@pytest.fixture
def place(moto_server, monkeypatch):
    for name, value in moto_server.environment.items():
        monkeypatch.setenv(name, value)
    return f"sqs://us-east-1/test-{next(JOBS)}"


class TestSqs(QueueSuite):
    moment = 1
    many = 40

    @pytest.fixture
    def another(self, place):
        opened = []

        def another():
            opened.append(SqsQueue(place, "job", most_deliveries=self.most_deliveries))
            return opened[-1]

        yield another
        opened[0].drop()
        for each in opened:
            each.close()

    @pytest.fixture
    def later(self):
        return lambda seconds: time.sleep(1.05 * seconds)


@pytest.fixture
def queue(place):
    found = open_queue(place, "job")
    yield found
    found.drop()
    found.close()


def test_bands(queue):
    """Once enough priorities were seen, urgent tasks come first."""
    queue.put([Entry(f"0.{i}", i) for i in range(45)])
    order = names(drained(queue))
    queue.put([Entry("1.0", 1), Entry("1.1", 43), Entry("1.2", 22)])
    assert names(drained(queue)) == ["1.1", "1.2", "1.0"]
    assert sorted(order) == sorted(f"0.{i}" for i in range(45))


def test_messages_that_are_no_tasks_go(queue, moto_server):
    client = moto_server.client("sqs")
    place = client.get_queue_url(QueueName=f"{queue.url.rpartition('/')[2]}-job-0")["QueueUrl"]
    for body in ("__import__('os')", "../../etc/passwd 0", "0.1 many", "x" * 10_000):
        client.send_message(QueueUrl=place, MessageBody=body)
    client.send_message(QueueUrl=place, MessageBody="0.7 0")
    assert names(drained(queue)) == ["0.7"]
    assert queue.size() == (0, 1, 0)
    client.close()


def test_wrong_addresses(monkeypatch, place):
    with pytest.raises(AddressError, match="names no region: expected sqs://REGION/PREFIX"):
        SqsQueue("sqs:///jobs", "x")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(StoreError, match=r"sqs://us-east-1/test-\d+ refused create_queue: .*see the keys"):
        SqsQueue(place, "x")
