"""Jobs of many kinds that are disturbed at random, many times: every result has the bits of a quiet run.

Workers are killed and stopped, tiles rot or get other names, a second client cancels and resumes the job, another
one wants its name, the machine is started anew, answers of the server are lost. Between these jobs there are some
whose kernels hang, exit or kill. Each has a time by which it must have ended, right or with a clear error.
"""

from __future__ import annotations

import itertools
import os
import random
import time
from collections import Counter

import job_kernels
import numpy as np
import pytest
from disturbances import MOVED, Disturber
from job_samples import matrix, undisturbed
from servers.lossy import LossyProxy

import linnet as ln
from linnet import linalg
from linnet.algorithms.cholesky import cholesky, left_looking
from linnet.engines import Threads
from linnet.errors import JobFailedError, KernelError
from linnet.tiles import TiledArray
from linnet.workers.client import attach, submit
from linnet.workers.job_parts import open_parts
from linnet.workers.launcher import Limits
from linnet.workers.launchers.processes import Processes
from linnet.workers.spec import Options

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

KILLS = int(os.environ.get("LINNET_CHAOS_KILLS", "200"))
DISTURBED = 120.0
"""Seconds for which a job is disturbed, if it takes so long;"""
ENDS = 600.0
"""seconds by which it must have ended."""
LIMITS = Limits(timeout=20, cache=2**27)
QUICK = Options(lease=1.5, grace=0.5)
KILLING = 4 * ("kill",)
EVERYWHERE = ("stop", "second_client", "rot", "rename", "same_name")


class Recording(Threads):
    """A threads engine that keeps what it was given to run."""

    def __init__(self):
        super().__init__(1, deterministic=True)
        self.runs = []

    def run(self, bound, inputs, **options):
        self.runs.append((bound, dict(inputs)))
        return super().run(bound, inputs, **options)


def expressions():
    """Expressions whose programs are run as they are lowered."""
    y = ln.asarray(np.random.default_rng(0).standard_normal((900, 900)), chunks=100)
    x = ln.random.default_rng(1).standard_normal((4000, 50), chunks=(250, 50))
    return {
        "qr": lambda: linalg.qr(y),
        "lu": lambda: linalg.lu(y),
        "solve": lambda: linalg.solve(y @ y.T + 900 * ln.eye(900), y[:, :50]) - 1,
        "svd": lambda: linalg.svd(y[:300, :200], full_matrices=False),
        "arrays": lambda: ln.exp(-((x - x.mean(axis=0)) ** 2)).T @ x,
    }


PROGRAMS = ("cholesky", "left-looking cholesky", "qr", "lu", "solve", "svd", "arrays")


def programs(name):
    """Bound programs with their inputs."""
    if name in expressions():
        engine = Recording()
        with ln.init(engine=engine):
            ln.compute(expressions()[name]())
        return engine.runs
    spd = TiledArray.from_numpy(matrix(900), 60)
    return [({"cholesky": cholesky}.get(name, left_looking).bind(N=15), {"A": spd})]


def disturbed(given, rng, places, kinds):
    """The outputs of a job to which some of these things are done until it ends, and what was done to it."""
    launcher = Processes()
    crew = {"launcher": launcher, "workers": 3, "limits": LIMITS}
    job = submit(*given, options=QUICK, **crew, **places)
    end = time.monotonic() + ENDS
    disturber = Disturber(job, given, launcher, rng, places, lambda address: attach(address, **crew))
    quiet = time.monotonic() + DISTURBED
    while not disturber.job.done(rng.uniform(0.05, 0.6)) and time.monotonic() < quiet:
        disturber.disturb(kinds)
    disturber.go_on()
    found = disturber.found(end)
    with disturber.job as job:
        keys = [key for key, _ in open_parts(job.address).store.list(f"{job.folder}/")]
        left = {key.split("/")[1] for key in keys if not key.endswith(MOVED)}
        assert left <= {*found, *given[1]}, "a finished job leaves its inputs and outputs only"
        job.delete()
    return found, disturber


def go_through(name, places, seed, kinds=EVERYWHERE):
    """Disturb jobs of one kind until enough workers were killed, and each other thing was done at least once.

    Not each can be done at any time: there may be no worker to stop, no tile to harm. So when enough workers
    were killed, the jobs that follow are disturbed by what is missing alone.
    """
    rng = random.Random(seed)
    jobs = [(given, undisturbed(*given)) for given in programs(name)]
    killed, counts, missing, begun = 0, Counter(), set(kinds), time.monotonic()
    for number in itertools.count(1):
        given, expected = jobs[number % len(jobs)]
        enough = killed >= KILLS / len(PROGRAMS)
        found, disturber = disturbed(given, rng, places, sorted(missing) if enough else [*KILLING, *kinds])
        killed += disturber.killed
        counts.update(disturber.counts)
        missing -= set(counts)
        for array, tiles in found.items():
            for index, tile in tiles.items():
                wanted = expected.tiles(array)[index]
                assert np.array_equal(tile, wanted, equal_nan=True), (name, array, index)
        if killed >= KILLS / len(PROGRAMS) and not missing:
            break
    print(f"\n{name}: {killed} kills in {time.monotonic() - begun:.0f} s and {number} jobs; {dict(counts)}")


UNRULY = {
    "hanging": (KernelError, r"task 0\.13 took longer than task_seconds=3"),
    "seizing": (KernelError, r"task 0\.13 took longer than task_seconds=3"),
    "exiting": (KernelError, "raised SystemExit: 0"),
    "vanishing": (JobFailedError, r"task 0\.13 ended the process"),
    "killing_once": None,
}
"""Programs whose kernels hang, exit, vanish and kill, and what their jobs end with."""


def unruly(name, places, tmp_path, monkeypatch):
    """Run one of these, with workers as processes: it ends, right or with a clear error."""
    monkeypatch.setenv("JOBS_HUNG", str(tmp_path / "hung"))
    monkeypatch.setenv("JOBS_FATAL", str(tmp_path / "fatal"))
    (tmp_path / "fatal").write_text("2")
    tasks = {"A": TiledArray.from_numpy(np.arange(16.0), 1)}
    limited = Options(lease=1.5, grace=0.5, task_seconds=3.0)
    crew = {"launcher": "processes", "limits": LIMITS, "options": limited, **places}
    with submit(getattr(job_kernels, name).bind(N=16), tasks, **crew) as job:
        if UNRULY[name] is None:
            job.wait(ENDS)
            assert np.array_equal(job.result()["B"].to_numpy(), np.arange(16.0) + 1)
        else:
            error, words = UNRULY[name]
            with pytest.raises(error, match=words):
                job.wait(ENDS)
        job.delete()


each_program = pytest.mark.parametrize("name", PROGRAMS)


@pytest.fixture
def lossy(redis_server):
    with LossyProxy(redis_server.port, share=0.002, seed=3) as proxy:
        yield proxy


@pytest.fixture
def on_redis(redis_server, lossy, s3):
    """A server for ledger and queue that loses answers, and tiles in S3; nothing may be left on the server."""
    yield {"store": s3, "ledger": f"redis://127.0.0.1:{lossy.port}/0"}
    assert lossy.lost > 0
    assert not redis_server.client().keys("*")


@pytest.fixture
def on_sqs(on_redis, moto_server, monkeypatch):
    """The queue is SQS; the ledger needs a server of its own."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", moto_server.environment["AWS_ENDPOINT_URL"])
    return {**on_redis, "queue": "sqs://us-east-1/chaos"}


@each_program
def test_two_hundred_kills_on_the_embedded_parts(name, store):
    go_through(name, {"store": store}, 1, (*EVERYWHERE, "reboot"))


@each_program
def test_two_hundred_kills_on_redis_and_s3(name, on_redis):
    go_through(name, on_redis, 2)


@each_program
def test_two_hundred_kills_on_sqs_and_s3(name, on_sqs):
    go_through(name, on_sqs, 4)


@pytest.mark.parametrize("program", UNRULY)
def test_unruly_kernels_on_the_embedded_parts(program, store, tmp_path, monkeypatch):
    unruly(program, {"store": store}, tmp_path, monkeypatch)


@pytest.mark.parametrize("program", UNRULY)
def test_unruly_kernels_on_redis_and_s3(program, on_redis, tmp_path, monkeypatch):
    unruly(program, on_redis, tmp_path, monkeypatch)


@pytest.mark.parametrize("program", UNRULY)
def test_unruly_kernels_on_sqs_and_s3(program, on_sqs, tmp_path, monkeypatch):
    unruly(program, on_sqs, tmp_path, monkeypatch)
