"""Several processes at one queue and ledger, some of them killed: nothing is lost, nothing done twice at once."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

from linnet.workers.embedded import Database, EmbeddedLedger, EmbeddedQueue
from linnet.workers.ledger import Child, Completion, Start
from linnet.workers.queue import Entry
from linnet.workers.remote import open_ledger, open_queue

pytestmark = pytest.mark.slow
ROWS, STEPS = 20, 15

WORK = """
import os, sys, time
from linnet.workers.embedded import Database, EmbeddedLedger, EmbeddedQueue
from linnet.workers.ledger import Child, Completion, Start
from linnet.workers.queue import Entry
from linnet.workers.remote import open_ledger, open_queue

place, steps, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
if place.startswith("redis:"):
    ledger, queue = open_ledger(place, "shared"), open_queue(place, "shared")
else:
    database = Database(place)
    ledger, queue = EmbeddedLedger(database), EmbeddedQueue(database)
worker = f"here/{os.getpid()}"
while ledger.touch([], worker).state == "running":
    leases = queue.lease(3, seconds)
    if not leases:
        queue.put([Entry(name) for name in ledger.overdue(seconds, 100)])
        time.sleep(0.01)
    for lease in leases:
        _, row, step = lease.name.split(".")
        parents = [f"0.{row}.{int(step) - 1}"] if step != "0" else []
        (begun,) = ledger.begin([Start(lease.name, parents)], worker)
        if begun.state == "run":
            print(lease.name, begun.token, *begun.published, flush=True)
            time.sleep(0.002)
            children = [Child(f"0.{row}.{int(step) + 1}", 1)] if int(step) + 1 < steps else []
            (done,) = ledger.complete([Completion(lease.name, begun.token, children, parents)])
            queue.put([Entry(name) for name in done.ready])
        queue.remove([lease])
"""


def opened(place):
    if place.startswith("redis:"):
        return open_ledger(place, "shared"), open_queue(place, "shared")
    database = Database(place, create=True)
    return EmbeddedLedger(database), EmbeddedQueue(database)


@pytest.fixture(params=["embedded", "redis"])
def place(request, tmp_path):
    if request.param == "redis":
        return request.getfixturevalue("redis_server").url
    return str(tmp_path / "job.db")


def prepared(place):
    ledger, queue = opened(place)
    ledger.create(ROWS * STEPS)
    (seed,) = ledger.begin([Start("@")], "here/0")
    children = [Child(f"0.{row}.0", 0) for row in range(ROWS)]
    ledger.complete([Completion("@", seed.token, children, counted=False)])
    queue.put([Entry(child.name) for child in children])
    return ledger, queue


def started(place, seconds):
    command = [sys.executable, "-c", WORK, place, str(STEPS), str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def told(processes):
    """What all processes ran: tasks, each with the tokens it was run and given."""
    lines = [line.split() for each in processes for line in each.communicate(timeout=100)[0].splitlines()]
    return [(name, [int(token) for token in tokens]) for name, *tokens in lines if len(name.split(".")) == 3]


def test_each_task_once(place):
    ledger, queue = prepared(place)
    processes = [started(place, seconds=60) for _ in range(4)]
    runs = told(processes)
    assert [each.returncode for each in processes] == [0] * 4
    assert Counter(name for name, _ in runs) == Counter(
        {f"0.{row}.{step}": 1 for row in range(ROWS) for step in range(STEPS)}
    )
    assert queue.size() == (0, 0, 0)
    finish(ledger, queue)


def test_killed_processes(place):
    ledger, queue = prepared(place)
    processes = [started(place, seconds=2) for _ in range(3)]
    for _ in range(4):
        time.sleep(0.7)
        processes[-1].send_signal(signal.SIGKILL)
        processes.append(started(place, seconds=2))
    runs = told(processes)
    status = ledger.status()
    assert (status.state, status.done) == ("finished", ROWS * STEPS)
    # Whoever read the tiles of a task read those of the one attempt that was published.
    for name, (_, *given) in runs:
        _, row, step = name.split(".")
        assert given == ([] if step == "0" else ledger.published([f"0.{row}.{int(step) - 1}"]))
    finish(ledger, queue)


def finish(ledger, queue):
    queue.clear()
    queue.close()
    ledger.drop()
    ledger.close()
