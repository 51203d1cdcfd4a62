"""Servers that are down, or hang: who said how long to wait waits no longer."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress

import numpy as np
import pytest
from job_samples import factorisation

from linnet.cli.top import top
from linnet.errors import StoreError
from linnet.workers import client, timeouts
from linnet.workers.client import attach, submit
from linnet.workers.timeouts import within

pytestmark = [pytest.mark.slow, pytest.mark.timeout(40)]
"""Less than a call would wait that nobody limits."""


@pytest.fixture(params=["down", "hangs"])
def unreachable(request):
    """A port where nobody listens, or somebody who never answers."""
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        if request.param == "hangs":
            place.listen(100)
        yield place.getsockname()[1]


@pytest.fixture
def job(store, redis_server, unreachable):
    """A job whose server is lost."""
    bound, inputs = factorisation(20, 10)
    with submit(bound, inputs, store=store, ledger=redis_server.url, launcher=None) as made:
        boards = made._parts.ledger._server, made._parts.queue._server
        ports = [board._connection.port for board in boards]
        lead(boards, [unreachable] * 2)
        yield made
        lead(boards, ports)
        made.delete()


def lead(boards, ports):
    for board, port in zip(boards, ports, strict=True):
        board._connection.disconnect()
        board._connection.port = port


def test_wait_keeps_its_time(job):
    with pytest.raises(TimeoutError, match="after 1 seconds .*did not answer"):
        job.wait(1)


def test_progress_has_a_limit(job, monkeypatch):
    monkeypatch.setattr(client, "_ANSWER", 1.0)
    with pytest.raises(StoreError, match="did not answer"):
        job.progress()


@pytest.mark.parametrize("call", ["cancel", "resume", "delete", "facts"])
def test_what_is_asked_of_a_job_has_a_limit(job, monkeypatch, call):
    monkeypatch.setattr(client, "_ANSWER", 0.5)
    begun = time.monotonic()
    with pytest.raises(StoreError, match="did not answer"):
        getattr(job, call)()
    assert time.monotonic() - begun < 10


def test_who_waits_for_another_call_keeps_its_time(job):
    """The provisioner of a client asks the same server, with more patience."""

    def long():
        with suppress(StoreError), within(3):
            job._parts.ledger.status()

    other = threading.Thread(target=long, daemon=True)
    other.start()
    time.sleep(0.2)
    with pytest.raises(StoreError, match="did not answer"), within(0.5):
        job._parts.ledger.status()
    other.join()


def test_attach_has_a_limit(store, redis_server, unreachable, monkeypatch):
    monkeypatch.setattr(client, "_ANSWER", 1.0)
    bound, inputs = factorisation(20, 10)
    with submit(bound, inputs, store=store, ledger=redis_server.url, launcher=None) as job:
        lost = job.address.replace(redis_server.url, f"redis://127.0.0.1:{unreachable}/0")
        assert lost != job.address
        with pytest.raises(StoreError, match="did not answer"):
            attach(lost)
        job.delete()


def test_top_has_a_limit(store, redis_server, unreachable, monkeypatch):
    monkeypatch.setattr(timeouts, "ANSWER", 1.0)
    bound, inputs = factorisation(20, 10)
    with submit(bound, inputs, store=store, ledger=redis_server.url, launcher=None) as job:
        with pytest.raises(StoreError, match="did not answer"):
            top(job.address.replace(redis_server.url, f"redis://127.0.0.1:{unreachable}/0"), once=True)
        job.delete()


def test_a_server_that_comes_back_is_used_as_before(job, redis_server):
    with pytest.raises(TimeoutError):
        job.wait(0.6)
    boards = job._parts.ledger._server, job._parts.queue._server
    lead(boards, [int(redis_server.url.rpartition(":")[2].partition("/")[0])] * 2)
    assert job.progress().total == job.spec.total
    assert job._parts.ledger._server._connection.socket_timeout > 5
    assert np.isfinite(job.progress().seconds)
