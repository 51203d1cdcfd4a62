"""A process that dies in the middle of loops: the values are those of a run in which none does."""

from __future__ import annotations

import itertools
import os
import signal
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import linnet as ln
from linnet.engines.dask import Dask
from linnet.engines.ray import Ray
from linnet.engines.stateless import Stateless
from linnet.events import Events, TaskFinished
from linnet.workers.launcher import Limits
from linnet.workers.launchers.processes import Processes
from linnet.workers.spec import Options

sys.path.append(str(Path(__file__).parents[1] / "loopnests"))

from test_programs import shortest_paths, smith_waterman

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def values():
    """A recurrence whose tiles wait for each other, and a `while` on values."""
    rng = np.random.default_rng(0)
    cells, best = smith_waterman(rng.integers(0, 4, 1500), rng.integers(0, 4, 1600))
    roads = np.where(rng.random((60, 60)) < 0.1, rng.random((60, 60)), np.inf)
    paths = shortest_paths(ln.asarray(roads, chunks=20))
    return *ln.compute(cells, best), paths.compute()


def survive(engine, lose, after=9):
    """The values are right though something is lost when some tasks are done."""
    with ln.init("threads", 2):
        expected = values()
    run, finished = engine.run, itertools.count(1)

    def watched(*args, events=None, **more):
        seen = Events()
        if events is not None:
            seen.subscribe(events.emit, *events.wanted)
        seen.subscribe(lambda event: lose() if next(finished) == after else None, TaskFinished)
        return run(*args, events=seen, **more)

    engine.run = watched
    with ln.init(engine):
        found = values()
    assert next(finished) > after + 1
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.needs("distributed")
def test_a_worker_of_dask_that_is_killed(dask_client):
    victim = dask_client.cluster.workers[1].process.pid
    survive(Dask(client=dask_client), lambda: os.kill(victim, signal.SIGKILL))
    dask_client.wait_for_workers(4, timeout=60)


@pytest.mark.needs("ray")
@pytest.mark.long
def test_a_node_of_ray_that_goes(ray_cluster):
    node = ray_cluster.add_node(num_cpus=2, object_store_memory=100_000_000)
    ray_cluster.wait_for_nodes()
    survive(Ray(), lambda: ray_cluster.remove_node(node, allow_graceful=False))


def test_stateless_workers_that_are_killed(tmp_path):
    launcher = Processes()
    options = Options(lease=1.5, grace=0.5)
    engine = Stateless(
        2, store=str(tmp_path / "jobs"), launcher=launcher, options=options, limits=Limits(timeout=20)
    )
    try:
        with closing(engine):
            survive(engine, lambda: os.kill(launcher.pids[0], signal.SIGKILL))
    finally:
        for pid in launcher.pids:
            os.kill(pid, signal.SIGKILL)
