"""Stores that fail, hang, are full or hold hostile tiles; and workers with wrong clocks, or told to go."""

from __future__ import annotations

import errno
import itertools
import json
import os
import pickle
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

import job_kernels
import numpy as np
import pytest
from job_samples import factorisation, undisturbed, until, workers_left

from linnet.errors import JobStoppedError, KernelError, StoreError
from linnet.testing import kernels as programs
from linnet.testing.stores import FlakyStore
from linnet.tiles import TiledArray
from linnet.tiles.codec import encoded
from linnet.workers import begin_tasks, client, serving
from linnet.workers.attempt import Calls
from linnet.workers.client import submit
from linnet.workers.job_parts import open_parts
from linnet.workers.launcher import Limits, Order
from linnet.workers.launchers.processes import Processes
from linnet.workers.spec import Options

pytestmark = pytest.mark.slow

QUICK = Options(lease=1.0, grace=0.2)
NO_CACHE = Limits(cache=0, timeout=5)


@pytest.fixture(scope="module")
def expected():
    return undisturbed(*factorisation(80, 10))["O"].to_numpy()


@pytest.fixture
def wrapped(monkeypatch):
    """Lets the workers that are threads of this process see their store through something else."""
    real = serving.open_traffic

    def through(wrapper):
        monkeypatch.setattr(
            serving,
            "open_traffic",
            lambda parts, spec, limits: real(replace(parts, store=wrapper(parts.store)), spec, limits),
        )

    monkeypatch.setattr(begin_tasks, "_PAUSE", 0.02)
    return through


def factorised(store, **options):
    bound, inputs = factorisation(80, 10)
    return submit(bound, inputs, store=store, launcher="threads", limits=NO_CACHE, options=QUICK, **options)


def factor(job):
    return job.result()["O"].to_numpy()


# ---- stores that fail for a while


def test_a_store_that_fails_now_and_then(store, wrapped, expected):
    made = []

    def flaky(real):
        made.append(FlakyStore(real, chance=0.15, seed=len(made)))
        return made[-1]

    wrapped(flaky)
    with factorised(store) as job:
        job.wait(150)
        assert np.array_equal(factor(job), expected)
    assert sum(each.failures for each in made) > 20


def test_a_store_that_is_down_for_a_while(store, wrapped, expected):
    made = []
    down = 1

    def flaky(real):
        made.append(FlakyStore(real, chance=down))
        return made[-1]

    def turn(chance):
        nonlocal down
        down = chance
        for each in made:
            each.chance = chance

    wrapped(flaky)
    with factorised(store) as job:
        until(lambda: sum(each.failures for each in made) > 5)
        assert job.progress().done < job.progress().total
        turn(0)
        job.wait(150)
        assert np.array_equal(factor(job), expected)


def test_a_store_that_stays_down_stops_the_job_which_resumes(store, wrapped, monkeypatch, expected):
    monkeypatch.setattr(begin_tasks, "_PATIENCE", 0.5)
    made = []

    def flaky(real):
        made.append(FlakyStore(real, chance=down))
        return made[-1]

    down = 1
    wrapped(flaky)
    with factorised(store) as job:
        with pytest.raises(JobStoppedError, match=r"the store failed for .*on purpose\n.*resume\(\)"):
            job.wait(150)
        down = 0
        job.resume()
        job.wait(150)
        assert np.array_equal(factor(job), expected)


class Broken:
    """A store that nothing can be read from; tells how often it was tried."""

    def __init__(self, store):
        self._store, self.tried = store, 0

    def get(self, *args, **options):
        self.tried += 1
        raise StoreError("the network of this worker is gone")

    def __getattr__(self, name):
        return getattr(self._store, name)


class Waiting:
    """A store that is not read before something has happened."""

    def __init__(self, store, happened):
        self._store, self._happened = store, happened

    def get(self, *args, **options):
        until(self._happened)
        return self._store.get(*args, **options)

    def __getattr__(self, name):
        return getattr(self._store, name)


def test_a_worker_from_before_a_resume_does_not_stop_the_job_again(store, wrapped, monkeypatch, expected):
    """It slept while the job was stopped and resumed, and its own store is still broken."""
    monkeypatch.setattr(begin_tasks, "_PATIENCE", 0.2)
    monkeypatch.setattr(begin_tasks, "_PAUSE", 1.0)
    broken = []

    def store_of_a_worker(real):
        if resumed:
            return Waiting(real, lambda: broken[0].tried > tried)
        broken.append(Broken(real))
        return broken[-1]

    resumed = False
    wrapped(store_of_a_worker)
    with factorised(store, workers=1) as job:
        until(lambda: broken and broken[0].tried)
        job.cancel()
        resumed, tried = True, broken[0].tried
        job.resume()
        job.wait(150)
        assert np.array_equal(factor(job), expected)


def test_a_store_that_fails_while_it_is_swept_takes_nothing_from_a_finished_job(store, monkeypatch, expected):
    def failing(parts, spec):
        raise StoreError("nothing can be listed now")

    monkeypatch.setattr(client, "sweep", failing)
    with factorised(store) as job:
        job.wait(150)
        assert np.array_equal(factor(job), expected)


class Hanging:
    """A store of which some requests hang for longer than a lease, and then time out."""

    def __init__(self, store):
        self._store, self._requests = store, itertools.count()

    def __getattr__(self, name):
        return getattr(self._store, name)

    def _perhaps(self):
        if next(self._requests) % 60 == 20:
            time.sleep(1.5)
            raise StoreError(f"{self.url}: no answer within 1.5 seconds")

    def get(self, key):
        self._perhaps()
        return self._store.get(key)

    def put(self, key, parts):
        self._perhaps()
        self._store.put(key, parts)


def test_requests_that_hang_past_their_lease(store, wrapped, expected):
    wrapped(Hanging)
    with factorised(store, workers=4) as job:
        job.wait(150)
        assert np.array_equal(factor(job), expected)
        status = open_parts(job.address).ledger.status()
        assert status.done == status.total


# ---- no room


class Full:
    """A store whose disk has no room for tiles while `full` is set."""

    full = threading.Event()

    def __init__(self, store):
        self._store = store

    def __getattr__(self, name):
        return getattr(self._store, name)

    def put(self, key, parts):
        if self.full.is_set():
            self._store._refuse(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), f"{key} was not written")
        self._store.put(key, parts)


def test_a_disk_without_room_stops_the_job_though_it_can_be_read(store, wrapped, monkeypatch, expected):
    """Reads that work must not hide writes that do not."""
    monkeypatch.setattr(begin_tasks, "_PATIENCE", 0.5)
    wrapped(Full)
    Full.full.set()
    with factorised(store) as job:
        with pytest.raises(JobStoppedError, match=r"the disk is full: free some space.*\n.*resume\(\)"):
            job.wait(150)
        Full.full.clear()
        job.resume()
        job.wait(150)
        assert np.array_equal(factor(job), expected)


FULL_DISK = """
import sys, time
sys.path.insert(0, {tests!r})
import numpy as np
from job_samples import factorisation, matrix
from linnet.errors import JobError, StoreError
from linnet.workers.client import submit
from linnet.workers.launcher import Limits
from linnet.workers.spec import Options
job = submit(*factorisation(480, 40), store={store!r}, limits=Limits(cache=2**20, timeout=3), options=Options(lease=1, grace=0.2))
while job.progress().done < 60:
    time.sleep(0.01)
with open({ballast!r}, "wb", buffering=0) as file:
    while True:
        try:
            file.write(bytes(4096))
        except OSError:
            break
try:
    job.wait(150)
    print("finished")
except (JobError, StoreError) as error:
    print(type(error).__name__, error)
import os
os.unlink({ballast!r})
job.resume()
job.wait(150)
l = np.tril(job.result()["O"].to_numpy())
print("right" if np.allclose(l @ l.T, matrix(480)) else "wrong")
job.close()
"""


def test_a_full_disk_under_tiles_and_ledger(tmp_path):
    """A real file system of 16 MB, mounted in a name space of its own, is filled while the job runs."""
    disk = tmp_path / "disk"
    disk.mkdir()
    unshare = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    mount = f"mount -t tmpfs -o size=16m none {disk}"
    if shutil.which("unshare") is None or subprocess.run([*unshare, mount], check=False).returncode:
        pytest.skip("this system lets nobody mount a disk of their own (unshare --mount)")
    script = FULL_DISK.format(
        tests=str(Path(__file__).parent), store=str(disk / "jobs"), ballast=str(disk / "ballast")
    )
    (tmp_path / "script.py").write_text(script)
    done = subprocess.run(
        [*unshare, f"{mount} && exec {sys.executable} {tmp_path / 'script.py'}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    first, *_, last = done.stdout.splitlines()
    assert "full" in done.stdout
    assert first.startswith(("JobError", "JobStoppedError", "StoreError"))
    assert last == "right"


# ---- what others put there


class Touch:
    """Unpickled, it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


class Poisoned:
    """A store into which somebody puts other bytes for every third tile, as soon as it is published."""

    def __init__(self, store, payloads):
        self._store, self._payloads = store, itertools.cycle(payloads)
        self.seen = {}

    def __getattr__(self, name):
        return getattr(self._store, name)

    def put(self, key, parts):
        tile = key.partition("=")[0]
        first = tile not in self.seen
        self.seen[tile] = True
        if first and "/S/" in key and len(self.seen) % 3 == 0:
            parts = [next(self._payloads)]
        self._store.put(key, parts)


def test_hostile_tiles_are_refused_and_computed_again(store, wrapped, tmp_path, expected):
    proof = tmp_path / "executed"
    evil = pickle.dumps(Touch(str(proof)))
    good = b"".join(bytes(part) for part in encoded(np.ones((10, 10))))
    payloads = [
        evil,
        good[:-8],
        good[:4] + struct.pack("<Q", 2**62) + good[12:],
        good + evil,
        b"\x93NUMPY\x01\x00v\x00{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n" + evil,
        b"",
    ]
    shared = {}

    def poisoned(real):
        return shared.setdefault("store", Poisoned(real, payloads))

    wrapped(poisoned)
    with factorised(store) as job:
        job.wait(150)
        assert np.array_equal(factor(job), expected)
        status = open_parts(job.address).ledger.status()
        assert status.begun > status.total + 5
    assert not proof.exists()


# ---- clocks and signals

WRONG_CLOCK = """
import os, time
offset = float(os.environ.get("WORKER_CLOCK", "0"))
right, right_ns = time.time, time.time_ns
time.time = lambda: right() + offset
time.time_ns = lambda: right_ns() + int(offset * 10**9)
"""


class WrongClocks(Processes):
    """Starts workers whose wall clocks are a minute ahead, a minute behind, and right, in turn."""

    offsets = itertools.cycle(["60", "-60", "0"])

    def start(self, order):
        for name in order.names:
            clock = {"WORKER_CLOCK": next(self.offsets)}
            super().start(replace(order, names=[name], secrets={**order.secrets, **clock}))


def clocks_differ(store, tmp_path, monkeypatch, **options):
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(WRONG_CLOCK)
    monkeypatch.syspath_prepend(str(site))
    made = WrongClocks()
    with submit(
        job_kernels.chained.bind(N=12, M=8),
        {"A": TiledArray.from_numpy(np.arange(12.0), 1)},
        store=store,
        launcher=made,
        workers=3,
        limits=Limits(timeout=5, cache=2**26),
        options=Options(lease=10.0, grace=0.5, events=("TaskStarted",)),
        **options,
    ) as job:
        job.wait(150)
        assert np.array_equal(job.result()["B"].to_numpy(), np.arange(12.0) + 9)
        times = [json.loads(line)["at"] for line in job.lines(0)[0]]
        assert max(times) - min(times) > 100
        status = open_parts(job.address).ledger.status()
        assert status.done == status.total
        job.delete()
        return status


def test_wall_clocks_that_differ_by_minutes(store, tmp_path, monkeypatch):
    status = clocks_differ(store, tmp_path, monkeypatch)
    # No lease ended early: seeds aside, and what an idle worker does twice at the end, nothing was begun again.
    assert status.begun <= status.total + 15


def test_wall_clocks_that_differ_by_minutes_on_redis(store, tmp_path, monkeypatch, redis_server):
    status = clocks_differ(store, tmp_path, monkeypatch, ledger=redis_server.url)
    assert status.begun <= status.total + 15


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_that_is_told_to_go_finishes_what_it_computes(store, number):
    given = {"A": TiledArray.from_numpy(np.ones(1), 1)}
    with submit(programs.slow.bind(N=2000), given, store=store, launcher=None, options=QUICK) as job:
        options = ["--name", "w", "--allow", "linnet.testing.kernels"]
        worker = subprocess.Popen(
            [sys.executable, "-m", "linnet.cli", "worker", job.address, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        while job.progress().done < 10:
            assert worker.poll() is None, worker.communicate()
            time.sleep(0.01)
        worker.send_signal(number)
        said, errors = worker.communicate(timeout=120)
        assert (worker.returncode, said, errors) == (0, "worker w: told to stop\n", "")
        progress = job.progress()
        assert progress.leased == 0
        assert progress.workers == 0
        assert 10 <= progress.done < 2000
        status = open_parts(job.address).ledger.status()
        job.resume()
        assert open_parts(job.address).ledger.status().done == status.done


def test_logs_are_kept_where_a_worker_failed_and_nowhere_else(store, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    given = {"A": TiledArray.from_numpy(np.ones(1), 1)}
    with submit(programs.slow.bind(N=3), given, store=store, workers=1, options=QUICK) as job:
        job.wait(150)
    assert not list(tmp_path.glob("linnet-logs-*"))
    failing = Processes()
    failing.start(Order(f"{store}#job=none", ["w"]))
    while failing.pids:
        time.sleep(0.05)
    failing.close()
    assert "there is no job 'none'" in (failing.problem() or "")
    (folder,) = tmp_path.glob("linnet-logs-*")
    assert "there is no job 'none'" in (folder / "w.log").read_text()


# ---- tiles that are changed where they are


@pytest.mark.parametrize("array", ["S", "O"])
def test_tiles_changed_in_place_beside_a_cache(store, array):
    """The cache has a second name of the stored file: it must not believe it."""
    bound, inputs = factorisation(600, 100)
    expected = undisturbed(bound, inputs)["O"].to_numpy()
    options = Options(lease=1.0, delete=False)
    with submit(bound, inputs, store=store, launcher="threads", options=options) as job:
        while job.progress().done < 20:
            time.sleep(0.001)
        job.cancel()
        workers_left(job)
        for path in (Path(store) / job.folder / array).iterdir():
            with open(path, "r+b") as file:
                file.seek(path.stat().st_size // 2)
                file.write(b"harmed")
        job.resume()
        job.wait(150)
        assert np.array_equal(factor(job), expected)


@pytest.mark.parametrize("fails", [False, True])
def test_tiles_changed_while_a_kernel_reads_them(store, monkeypatch, fails):
    """What was verified is mapped: who changes it then changes what the kernel reads, or makes it fail."""
    x = np.arange(16_000.0)
    harmed: set[str] = set()
    compute = Calls.compute

    def harming(calls, attempt):
        for path, _ in attempt.seen:
            if re.search(r"=\d+$", path) and path.rpartition(",S,")[2] not in harmed and len(harmed) < 5:
                harmed.add(path.rpartition(",S,")[2])
                with open(path, "r+b") as file:
                    file.seek(-100, os.SEEK_END)
                    file.write(b"harmed")
                if fails:
                    raise KernelError("it cannot be factorised")
        compute(calls, attempt)

    monkeypatch.setattr(Calls, "compute", harming)
    given = {"A": TiledArray.from_numpy(x, 4000)}
    with submit(job_kernels.chained.bind(N=4, M=3), given, store=store, launcher="threads") as job:
        job.wait(150)
        assert np.array_equal(job.result()["B"].to_numpy(), x + 4)
    assert len(harmed) == 5
