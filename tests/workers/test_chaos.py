"""Workers killed at random, many times, over jobs of many kinds: every result has the bits of a quiet run."""

from __future__ import annotations

import itertools
import os
import random
import signal

import numpy as np
import pytest
from job_samples import undisturbed

import linnet as ln
from linnet import linalg
from linnet.algorithms.cholesky import cholesky, left_looking
from linnet.engines import Threads
from linnet.tiles import TiledArray
from linnet.workers.client import submit
from linnet.workers.launcher import Limits
from linnet.workers.launchers.processes import Processes
from linnet.workers.parts import open_parts
from linnet.workers.spec import Options

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

KILLS = 200
MERCY = 6
"""Kills in a row before something must be done: where workers take longer to start than they live, no job ends."""
LIMITS = Limits(timeout=20, cache=2**27)
QUICK = Options(lease=1.5, grace=0.5)


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


def disturbed(bound, inputs, launcher, rng, places):
    """The outputs of a job whose workers are killed until it ends, and how many were."""
    killed = fruitless = done = 0
    with submit(bound, inputs, launcher=launcher, workers=3, limits=LIMITS, options=QUICK, **places) as job:
        while not job.done(rng.uniform(0.05, 0.6)):
            pids, before, done = launcher.pids, done, job.progress().done
            fruitless = 0 if done > before else fruitless
            if fruitless < MERCY and (len(pids) > 1 or (pids and rng.random() < 0.2)):
                os.kill(rng.choice(pids), signal.SIGKILL)
                killed += 1
                fruitless += 1
        job.wait(120)
        found = {
            name: {index: np.array(tile) for index, tile in job.result().tiles(name).items()}
            for name in job.result()
        }
        left = {key.split("/")[1] for key, _ in open_parts(job.address).store.list(f"{job.folder}/")}
        assert left <= {*found, *inputs}, "a finished job leaves its inputs and outputs only"
        job.delete()
    return found, killed


def go_through(places, seed):
    rng = random.Random(seed)
    jobs = list(programs())
    expected = {name: undisturbed(bound, inputs) for name, bound, inputs in jobs}
    killed = 0
    for name, bound, inputs in itertools.cycle(jobs):
        launcher = Processes()
        found, more = disturbed(bound, inputs, launcher, rng, places)
        killed += more
        for array, tiles in found.items():
            for index, tile in tiles.items():
                wanted = expected[name].tiles(array)[index]
                assert np.array_equal(tile, wanted, equal_nan=True), (name, array, index)
        if killed >= KILLS:
            return


def test_two_hundred_kills_on_the_embedded_parts(store):
    go_through({"store": store}, seed=1)


def test_two_hundred_kills_on_redis_and_s3(redis_server, s3):
    go_through({"store": s3, "ledger": redis_server.url}, seed=2)
    assert not redis_server.client().keys("*")
