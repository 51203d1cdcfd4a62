"""Linear algebra of 4,000 rows on four workers, three of which are killed, three times: right, with equal bits."""

from __future__ import annotations

import functools
import os
import random
import signal

import numpy as np
import pytest

import linnet as ln
from linnet import linalg
from linnet.arrays.sending.nested_arrays import leaves
from linnet.workers.launcher import Limits
from linnet.workers.spec import Options

pytestmark = [pytest.mark.long, pytest.mark.timeout(3500)]

SIDE = 4000
WORKERS = 4
MOMENTS = (0.15, 0.4, 0.7)
"""Shares of the tasks after which workers are killed."""
LIMITS = Limits(timeout=60, cache=2**28)
QUICK = Options(lease=5, grace=1)


@functools.cache
def given() -> np.ndarray:
    return np.random.default_rng(14).standard_normal((SIDE, SIDE))


def right_solution(a, x):
    """The residual is as small as that of LAPACK's solutions are."""
    residual = np.linalg.norm(a @ x - a[:, :8] + 1)
    return residual <= 1e-13 * np.linalg.norm(a) * np.linalg.norm(x)


def right_vectors(a, u, s, vh):
    """They are orthonormal, and put together they are the matrix."""
    off = [np.linalg.norm(q.T @ q - np.eye(SIDE)) for q in (u, vh.T)]
    return max(off) <= 1e-10 and np.linalg.norm(u * s @ vh - a) <= 1e-12 * np.linalg.norm(a)


CASES = {
    "solve": (lambda a: linalg.solve(a, a[:, :8] - 1), right_solution),
    "svd": (lambda a: linalg.svd(a, full_matrices=False), right_vectors),
    "eigh": (lambda a: linalg.eigh(a + a.T), lambda a, w, z: right_vectors(a + a.T, z, w, z.T)),
}


@functools.cache
def expected(name):
    """What threads make of it, whatever their number."""
    with ln.init("threads", 2, deterministic=True):
        return leaves(ln.compute(CASES[name][0](ln.asarray(given()))))


def killed(name, launcher, rng, places):
    """The results of a job whose workers are killed, and how many were."""
    moments, deaths = list(MOMENTS), 0
    made = CASES[name][0](ln.asarray(given()))
    with ln.submit(made, launcher=launcher, workers=WORKERS, limits=LIMITS, options=QUICK, **places) as job:
        while not job.done(0.2):
            progress, pids = job.progress(), launcher.pids
            if moments and len(pids) >= WORKERS and progress.done >= moments[0] * progress.total:
                del moments[0]
                for pid in rng.sample(
                    pids, len(pids) * 3 // 4
                ):  # more are started where they are slow to begin
                    os.kill(pid, signal.SIGKILL)
                    deaths += 1
        job.wait(600)
        assert type(job.result()) is type(made)
        found = [each.compute() for each in leaves(job.result())]
        job.delete()
    return found, deaths


def agree(name, launcher, places):
    found, deaths = killed(name, launcher, random.Random(name), places)
    assert deaths >= (WORKERS - 1) * len(MOMENTS)
    assert CASES[name][1](given(), *found)
    assert [each.tobytes() for each in found] == [each.tobytes() for each in expected(name)]


@pytest.mark.parametrize("name", CASES)
def test_on_the_embedded_parts(name, launcher, store):
    agree(name, launcher, {"store": store})


@pytest.mark.parametrize("name", CASES)
def test_on_redis_and_s3(name, launcher, redis_server, s3):
    agree(name, launcher, {"store": s3, "ledger": redis_server.url})
    assert not redis_server.client().keys("*")
