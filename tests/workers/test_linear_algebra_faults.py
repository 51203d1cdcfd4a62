"""Linear algebra on stateless workers of which three in four are killed, three times: right, to the last bit."""

from __future__ import annotations

import os
import random
import signal
import time

import numpy as np
import pytest

import linnet as ln
from linnet import linalg
from linnet.workers.job_parts import open_parts
from linnet.workers.launcher import Limits
from linnet.workers.spec import Options

QUICK = Options(lease=1.5, grace=0.5)
LIMITS = Limits(timeout=20, cache=2**27)
WORKERS, ROUNDS = 4, 3
EMBEDDED, SERVERS = "embedded", "redis and s3"


def matrix(n):
    return np.random.default_rng(n).standard_normal((n, n))


def lazily(x, tile):
    return ln.asarray(x) if tile is None else ln.asarray(x, chunks=tile)


def solved(n, tile):
    """A system, and how far its solution is from solving it."""
    a, b = matrix(n), matrix(n)[:, :5]
    found = linalg.solve(lazily(a, tile), ln.asarray(b)) - 1
    return found, lambda x: abs(a @ (x + 1) - b).max() / (abs(a).sum(axis=1).max() * abs(x).max())


def decomposed(n, tile):
    """Singular values and vectors, and how far they are from giving the matrix."""
    a = matrix(n)
    found = linalg.svd(lazily(a, tile), full_matrices=False)
    return found, lambda u, s, vh: abs(u * s @ vh - a).max() / s[0]


def diagonalised(n, tile):
    """Eigenvalues and vectors of an expression, and how far they are from giving its value."""
    a = matrix(n)
    x = lazily(a, tile)
    found = linalg.eigh(x @ x.T + n * ln.eye(n))
    return found, lambda w, v: abs((v * w) @ v.T - a @ a.T - n * np.eye(n)).max() / w[-1]


KINDS = {"solve": solved, "svd": decomposed, "eigh": diagonalised}


@pytest.fixture(params=[EMBEDDED, SERVERS])
def places(request, store):
    """Where a job is: beside its tiles, or on servers."""
    if request.param == EMBEDDED:
        return {"store": store}
    server = request.getfixturevalue("redis_server")
    return {"store": request.getfixturevalue("s3"), "ledger": server.url}


def killed(job, launcher, seed):
    """Kill three of four workers at one, two and three quarters of the job; how many there were each time."""
    rng, rounds = random.Random(seed), []
    while len(rounds) < ROUNDS:
        progress = job.progress()
        assert progress.state == "running", progress
        if progress.done * (ROUNDS + 1) < progress.total * (len(rounds) + 1):
            time.sleep(0.005)
            continue
        pids = launcher.pids
        victims = rng.sample(pids, min(WORKERS - 1, len(pids)))
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        rounds.append(len(victims))
    return rounds


def survives(kind, n, tile, places, launcher, seconds):
    """The result of a job whose workers are killed is right, and has the bits of threads."""
    made, error = KINDS[kind](n, tile)
    with ln.init("threads", 2, deterministic=True):
        expected = ln.compute(made)
    with ln.submit(made, workers=WORKERS, launcher=launcher, limits=LIMITS, options=QUICK, **places) as job:
        rounds = killed(job, launcher, seed=n)
        job.wait(seconds)
        found = ln.compute(job.result())
        left = {key.split("/")[1] for key, _ in open_parts(job.address).store.list(f"{job.folder}/")}
        arrays = {*job.spec.arrays, *job.spec.inputs, *job.spec.conditions}
        assert left <= arrays, "a finished job leaves its inputs and outputs only"
        job.delete()
    assert type(found) is type(expected)
    found, expected = (each if isinstance(each, tuple) else (each,) for each in (found, expected))
    assert [each.tobytes() for each in found] == [each.tobytes() for each in expected]
    assert error(*found) < 1e-13 * n**0.5
    assert rounds[0] == WORKERS - 1
    assert sum(rounds) > WORKERS


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["solve", *(pytest.param(each, marks=pytest.mark.long) for each in ("svd", "eigh"))]
)
def test_three_workers_in_four_die_three_times(kind, places, launcher):
    survives(kind, 400, 64, places, launcher, 120)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS)
def test_three_workers_in_four_die_three_times_over_a_large_matrix(kind, places, launcher):
    survives(kind, 4000, None, places, launcher, 3000)


@pytest.mark.slow
@pytest.mark.parametrize("columns", [8, pytest.param(36, marks=pytest.mark.long)])
@pytest.mark.parametrize("places", [EMBEDDED, pytest.param(SERVERS, marks=pytest.mark.long)], indirect=True)
def test_workers_die_while_pivots_are_in_doubt(columns, places, launcher):
    """More tiles in a column than are factored together, and columns alike: the second program counts."""
    a = np.random.default_rng(14).standard_normal((36, 36))
    a[:, 1] = a[:, 2] = a[:, 0]
    made = linalg.lu(ln.asarray(a[:, :columns], chunks=2), tile=2)
    with ln.init("threads", 2, deterministic=True):
        expected = ln.compute(made)
    with ln.submit(made, workers=WORKERS, launcher=launcher, limits=LIMITS, options=QUICK, **places) as job:
        assert job.progress().total == job.spec.first_total
        killed(job, launcher, seed=columns)
        job.wait(120)
        assert job.progress().done == job.progress().total == job.spec.total > job.spec.first_total
        found = ln.compute(job.result())
        job.delete()
    assert [each.tobytes() for each in found] == [each.tobytes() for each in expected]
    assert np.allclose(found.l @ found.u, a[found.p, :columns])
