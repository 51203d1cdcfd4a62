"""Jobs that may need a second part: decided both ways, killed in between, resumed, rebuilt, watched by others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import job_kernels
import msgpack
import numpy as np
import pytest

from linnet.errors import InputError, WireError
from linnet.programs.framing import framed
from linnet.tiles import TiledArray, TileKey
from linnet.workers.array_specs import tile_key
from linnet.workers.client import attach, submit
from linnet.workers.job_parts import open_parts
from linnet.workers.launcher import Limits
from linnet.workers.results import second_counts
from linnet.workers.second_parts import Gate
from linnet.workers.spec import MARK, JobSpec, Options

pytestmark = pytest.mark.slow

QUICK = Options(lease=1.0, grace=0.2)
LIMITS = Limits(timeout=5, cache=2**26)
N = 4
FIRST = 2 * N + 1
ALL = FIRST + 2 * N
DECIDER, SEED = "1", "@3"
GATE = Gate(3, TileKey("D", (0,)), {"B": "C"})

either = pytest.mark.parametrize("in_doubt", [False, True])


def numbers(in_doubt, n=N):
    return np.arange(float(n)) - (3 if in_doubt else 0)


def started(in_doubt, gate=GATE, n=N, **more):
    given = {"A": TiledArray.from_numpy(numbers(in_doubt, n), 1)}
    return submit(job_kernels.either_way.bind(N=n), given, **{"options": QUICK, "gate": gate, **more})


def stored_arrays(job):
    return {key.split("/")[1] for key, _ in open_parts(job.address).store.list(f"{job.folder}/")}


def check(job, in_doubt, n=N):
    """The job ends with the results of the part that counts."""
    job.wait(150)
    found = job.result()
    assert list(found) == ["B"]
    x = numbers(in_doubt, n)
    assert np.array_equal(found["B"].to_numpy(), 4 * x if in_doubt else x + 2)
    assert job.progress().done == job.progress().total == (4 * n + 1 if in_doubt else 2 * n + 1)


def wait_for(job, condition):
    deadline = time.monotonic() + 240
    while not condition(job.progress()):
        assert time.monotonic() < deadline, job.progress()
        time.sleep(0.002)


@either
def test_the_part_that_counts_gives_the_result(store, in_doubt):
    with started(in_doubt, store=store, launcher=None) as job:
        assert job.progress().total == FIRST
        with attach(job.address, workers=2, launcher="threads", imports=["job_kernels"]) as other:
            check(other, in_doubt)
            assert stored_arrays(job) == {"A", "C" if in_doubt else "B", "D"}
        check(job, in_doubt)


# ---- killed, wherever it hurts


@pytest.fixture
def places(request, store):
    """Where a job is: beside its tiles, or on servers."""
    if request.param == EMBEDDED:
        return {"store": store}
    server = request.getfixturevalue("redis_server")
    return {"store": request.getfixturevalue("s3"), "ledger": server.url}


EMBEDDED, SERVERS = "embedded", "redis and s3"


def killed_at(job, name, moment):
    """One worker does what it can until it dies at that moment."""
    script = Path(__file__).with_name("dying_worker.py")
    ended = subprocess.run([sys.executable, script, job.address, name, moment], timeout=240, check=False)
    assert ended.returncode == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize(
    ("places", "name", "moment", "in_doubt"),
    [
        (EMBEDDED, DECIDER, "written", True),
        (EMBEDDED, DECIDER, "told", True),
        (EMBEDDED, DECIDER, "put", False),
        (EMBEDDED, SEED, "put", True),
        (SERVERS, DECIDER, "written", False),
        (SERVERS, DECIDER, "written", True),
        (SERVERS, DECIDER, "told", False),
        (SERVERS, DECIDER, "told", True),
        (SERVERS, DECIDER, "put", True),
        (SERVERS, SEED, "told", True),
    ],
    indirect=["places"],
)
def test_a_worker_dies_between_the_parts(places, name, moment, in_doubt):
    with started(in_doubt, launcher=None, **places) as job:
        killed_at(job, name, moment)
        # The dead one still counts as one of them.
        with attach(job.address, workers=2, launcher="threads", imports=["job_kernels"]) as other:
            check(other, in_doubt)
        assert stored_arrays(job) == {"A", "C" if in_doubt else "B", "D"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("places", "in_doubt"), [(EMBEDDED, True), (SERVERS, False), (SERVERS, True)], indirect=["places"]
)
def test_workers_die_all_the_time(places, launcher, in_doubt):
    with started(in_doubt, n=20, launcher=launcher, workers=3, limits=LIMITS, **places) as job:
        killed = 0
        while not job.done(0.01):
            pids = launcher.pids
            if len(pids) > 1 and job.progress().done >= 10 * killed:
                os.kill(pids[killed % len(pids)], signal.SIGKILL)
                killed += 1
        check(job, in_doubt, n=20)
        assert killed


@pytest.mark.slow
def test_what_decides_may_be_computed_elsewhere(store, launcher, tmp_path, monkeypatch):
    """A task that killed workers is computed in a process of its own, which writes its tiles itself."""
    path = tmp_path / "fatal"
    path.write_text("2")
    monkeypatch.setenv("JOBS_FATAL_DOUBT", str(path))
    with started(True, store=store, launcher=launcher, workers=2, limits=LIMITS) as job:
        check(job, True)
        assert path.read_text() == "0"


# ---- going on


def forgotten(job):
    """The job, resumed by somebody else after its ledger was lost."""
    open_parts(job.address).ledger.drop()
    again = attach(job.address, launcher="threads", imports=["job_kernels"])
    again.resume(workers=2)
    return again


@either
@pytest.mark.parametrize("done", [1, N, FIRST, FIRST + 2])
def test_a_cancelled_job_goes_on(store, in_doubt, done):
    with started(in_doubt, store=store, launcher="threads") as job:
        wait_for(job, lambda progress: progress.done >= done or progress.state == "finished")
        job.cancel()
        job.resume()
        check(job, in_doubt)


@either
@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("done", [0, 2, N + 2, FIRST, FIRST + 2, ALL])
def test_a_lost_ledger_is_rebuilt(store, in_doubt, done, lost):
    """Also when the tile that decides is lost with it: then the first part is done again."""
    with started(in_doubt, store=store, launcher="threads") as job:
        wait_for(job, lambda progress: progress.done >= done or progress.state == "finished")
        job.cancel()
        time.sleep(0.2)
        store = open_parts(job.address).store
        if lost:
            store.delete([key for key, _ in store.list(f"{job.folder}/D/")])
        with forgotten(job) as again:
            check(again, in_doubt)


def test_a_rebuilt_ledger_does_nothing_again_of_a_part_that_does_not_count(store):
    with started(True, store=store, launcher="threads") as job:
        check(job, True)
        with forgotten(job) as again:
            check(again, True)
            assert open_parts(job.address).ledger.status().begun == 0


def test_a_damaged_decision_is_made_again(store):
    with started(True, store=store, launcher="threads") as job:
        check(job, True)
        parts = open_parts(job.address)
        (key,) = (key for key, _ in parts.store.list(f"{job.folder}/D/"))
        parts.store.put(key, [b"not a tile"])
        with forgotten(job) as again:
            check(again, True)


@either
def test_lost_results_are_made_again(store, in_doubt):
    with started(in_doubt, store=store, launcher="threads") as job:
        check(job, in_doubt)
        parts = open_parts(job.address)
        array = "C" if in_doubt else "B"
        parts.store.delete([next(parts.store.list(f"{job.folder}/{array}/"))[0]])
        job.resume()
        check(job, in_doubt)


def test_a_decision_that_was_taken_needs_its_tile_no_more(store):
    with started(True, store=store, launcher="threads") as job:
        check(job, True)
        parts = open_parts(job.address)
        (token,) = parts.ledger.published([DECIDER])
        parts.store.delete([tile_key(job.folder, GATE.tile, token)])
        job.resume()
        check(job, True)
        assert second_counts(parts, job.spec)


# ---- what is refused


@pytest.mark.parametrize(
    ("gate", "words"),
    [
        (replace(GATE, statement=5), "begins at statement 5, but .* has 5: give a number from 1 to 4"),
        (replace(GATE, statement=0), "begins at statement 0"),
        (replace(GATE, statement=2), "S is written in the first part of .* used in the other"),
        (replace(GATE, statement=4), "T is written in the first part of .* share inputs only"),
        (replace(GATE, tile=TileKey("S", (0,))), "S is no Out array that the first part .* those are B, D"),
        (replace(GATE, tile=TileKey("C", (0,))), "C is no Out array that the first part"),
        (replace(GATE, instead={"B": "B"}), "B is no Out array that the second part .* those are C"),
        (
            replace(GATE, instead={}),
            "B is an Out array of .*, but neither D, which decides, nor one of a pair",
        ),
        (replace(GATE, instead={"B": "C", "D": "C"}), "D is an Out array of"),
        (replace(GATE, tile=TileKey("D", (1,))), r"D\[1\] decides .*, but no task writes it"),
    ],
)
def test_parts_that_are_none_are_refused(store, gate, words):
    with pytest.raises(InputError, match=words):
        started(False, gate, store=store)


def test_a_stored_job_with_a_wrong_gate_is_refused(store):
    with started(False, store=store, launcher=None) as job:
        for gate in (replace(GATE, statement=9), replace(GATE, instead={})):
            with pytest.raises(WireError, match="the job cannot be read: InputError"):
                JobSpec.from_bytes(replace(job.spec, gate=gate).to_bytes())
        assert JobSpec.from_bytes(job.spec.to_bytes()).gate == GATE


def test_jobs_stored_before_there_were_second_parts_are_read(store):
    with started(False, store=store, launcher=None) as job:
        body = msgpack.unpackb(job.spec.to_bytes()[26:])
        del body["gate"]
        assert JobSpec.from_bytes(framed(MARK, 1, msgpack.packb(body))).gate is None
        with pytest.raises(WireError, match="of format version 4; this Linnet reads versions 1 to 3"):
            JobSpec.from_bytes(framed(MARK, 4, msgpack.packb(body)))
