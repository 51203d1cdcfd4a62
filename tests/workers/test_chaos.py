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

import job_kernels
import numpy as np
import pytest
from disturbances import MOVED, Disturber
from job_samples import undisturbed
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
EVERYWHERE = ("stop", "second_client", "rot", "rename", "same_name")


class Recording(Threads):
    """A threads engine that keeps what it was given to run."""

    def __init__(self):
        super().__init__(1, deterministic=True)
        self.runs = []

    def run(self, bound, inputs, **options):
        self.runs.append((bound, dict(inputs)))
        return super().run(bound, inputs, **options)


def programs():
    """Bound programs with their inputs."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((900, 900))
    spd = TiledArray.from_numpy(a @ a.T + 900 * np.eye(900), 60)
    yield "cholesky", cholesky.bind(N=15), {"A": spd}
    yield "left-looking cholesky", left_looking.bind(N=15), {"A": spd}
    x, y = ln.random.default_rng(1).standard_normal((4000, 50), chunks=(250, 50)), ln.asarray(a, chunks=100)
    for name, what in (
        ("qr", linalg.qr(y)),
        ("lu", linalg.lu(y)),
        ("solve", linalg.solve(y @ y.T + 900 * ln.eye(900), y[:, :50]) - 1),
        ("svd", linalg.svd(y[:300, :200], full_matrices=False)),
        ("arrays", ln.exp(-((x - x.mean(axis=0)) ** 2)).T @ x),
    ):
        engine = Recording()
        with ln.init(engine=engine):
            ln.compute(what)
        for number, (bound, inputs) in enumerate(engine.runs):
            yield f"{name} {number}", bound, inputs


def disturbed(given, rng, places, kinds):
    """The outputs of a job that is disturbed until it ends, and what was done to it."""
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


def go_through(places, seed, kinds=EVERYWHERE):
    rng = random.Random(seed)
    jobs = list(programs())
    expected = {name: undisturbed(bound, inputs) for name, bound, inputs in jobs}
    killed, counts = 0, {}
    for name, bound, inputs in itertools.cycle(jobs):
        found, disturber = disturbed((bound, inputs), rng, places, kinds)
        killed += disturber.killed
        for kind, count in disturber.counts.items():
            counts[kind] = counts.get(kind, 0) + count
        for array, tiles in found.items():
            for index, tile in tiles.items():
                wanted = expected[name].tiles(array)[index]
                assert np.array_equal(tile, wanted, equal_nan=True), (name, array, index)
        if killed >= KILLS:
            break
    print(f"\n{killed} kills; {counts}")
    if KILLS >= 200:
        assert set(kinds) <= set(counts), f"not everything happened: {counts}"


def unruly(places, tmp_path, monkeypatch):
    """Kernels that hang, exit, vanish and kill, each in a job of its own, with workers as processes."""
    monkeypatch.setenv("JOBS_HUNG", str(tmp_path / "hung"))
    monkeypatch.setenv("JOBS_FATAL", str(tmp_path / "fatal"))
    (tmp_path / "fatal").write_text("2")
    tasks = {"A": TiledArray.from_numpy(np.arange(16.0), 1)}
    limited = Options(lease=1.5, grace=0.5, task_seconds=3.0)
    crew = {"launcher": "processes", "limits": LIMITS, "options": limited, **places}
    for program, error, words in (
        (job_kernels.hanging, KernelError, r"task 0\.13 took longer than task_seconds=3"),
        (job_kernels.seizing, KernelError, r"task 0\.13 took longer than task_seconds=3"),
        (job_kernels.exiting, KernelError, "raised SystemExit: 0"),
        (job_kernels.vanishing, JobFailedError, r"task 0\.13 ended the process"),
    ):
        with submit(program.bind(N=16), tasks, **crew) as job:
            with pytest.raises(error, match=words):
                job.wait(ENDS)
            job.delete()
    with submit(job_kernels.killing_once.bind(N=16), tasks, **crew) as job:
        job.wait(ENDS)
        assert np.array_equal(job.result()["B"].to_numpy(), np.arange(16.0) + 1)
        job.delete()


def test_two_hundred_kills_on_the_embedded_parts(store, tmp_path, monkeypatch):
    go_through({"store": store}, 1, (*EVERYWHERE, "reboot"))
    unruly({"store": store}, tmp_path, monkeypatch)


@pytest.fixture
def lossy(redis_server):
    with LossyProxy(redis_server.port, share=0.002, seed=3) as proxy:
        yield proxy


def test_two_hundred_kills_on_redis_and_s3(redis_server, lossy, s3, tmp_path, monkeypatch):
    places = {"store": s3, "ledger": f"redis://127.0.0.1:{lossy.port}/0"}
    go_through(places, 2)
    unruly(places, tmp_path, monkeypatch)
    assert lossy.lost > 0
    assert not redis_server.client().keys("*")


def test_two_hundred_kills_on_sqs_and_s3(redis_server, lossy, moto_server, s3, tmp_path, monkeypatch):
    """The queue is SQS; the ledger needs a server of its own."""
    for name, value in moto_server.environment.items():
        if name == "AWS_ENDPOINT_URL":
            monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", value)
    places = {
        "store": s3,
        "ledger": f"redis://127.0.0.1:{lossy.port}/0",
        "queue": "sqs://us-east-1/chaos",
    }
    go_through(places, 4)
    unruly(places, tmp_path, monkeypatch)
    assert lossy.lost > 0
    assert not redis_server.client().keys("*")
