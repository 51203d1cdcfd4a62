"""The same fit under a memory budget, on nodes in virtual time, and on stateless workers."""

from __future__ import annotations

import os
import random
import signal
import threading

import numpy as np
import pytest

import linnet as ln
from linnet.engines import Threads
from linnet.engines.simulated import Simulated
from linnet.engines.stateless import Stateless
from linnet.models import LogisticRegression, PoissonRegressor, fitting
from linnet.testing.models import ModelSuite
from linnet.workers.launchers.processes import Processes

pytestmark = pytest.mark.slow


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((400, 4))
    return x, rng.poisson(np.exp(0.4 * x[:, 0])).astype(float)


def test_a_file_larger_than_the_budget(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((100_000, 10))  # 8 MB
    y = (x[:, 0] + rng.standard_normal(100_000) > 0).astype(int)
    np.save(tmp_path / "x.npy", x)
    known = LogisticRegression(tol=1e-10).fit(x, y).coef_
    with ln.init(memory="4 MB"):
        model = LogisticRegression(tol=1e-10).fit(ln.from_npy(tmp_path / "x.npy"), y)
    np.testing.assert_allclose(model.coef_, known, rtol=1e-8)


class TestThreads(ModelSuite):
    @pytest.fixture
    def engine(self):
        return Threads(2)


class TestSimulated(ModelSuite):
    @pytest.fixture
    def engine(self):
        return Simulated(cluster=ln.Cluster(nodes=3))


class TestStateless(ModelSuite):
    @pytest.fixture
    def engine(self):
        return Stateless(launcher="threads", workers=2)


@pytest.mark.long
def test_workers_that_are_killed_change_no_bits(data):
    x, y = data
    with ln.init(Threads(1, deterministic=True)):
        known = PoissonRegressor(alpha=0.1).fit(ln.asarray(x, chunks=(50, -1)), y)
    launcher, over, killed, rng = Processes(), threading.Event(), [], random.Random(0)

    def kill():
        while not over.wait(0.5):
            pids = launcher.pids
            if len(pids) > 1 and len(killed) < 6:
                killed.append(rng.choice(pids))
                os.kill(killed[-1], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with ln.init(Stateless(2, launcher=launcher)):
            model = PoissonRegressor(alpha=0.1).fit(ln.asarray(x, chunks=(50, -1)), y)
    finally:
        over.set()
        killer.join()
    assert killed
    np.testing.assert_array_equal(model.coef_, known.coef_)
    assert model.n_iter_ == known.n_iter_


def test_bits_do_not_depend_on_the_number_of_workers(data):
    x, y = data
    found = []
    for workers in (1, 2):
        with ln.init(workers=workers):
            found.append(PoissonRegressor(alpha=0.1).fit(ln.asarray(x, chunks=(30, -1)), y).coef_)
    np.testing.assert_array_equal(*found)


def test_a_sample_to_begin_with_changes_nothing_but_the_way(data, monkeypatch):
    x, y = data
    for model in (PoissonRegressor(alpha=0.1, tol=1e-9), PoissonRegressor(alpha=0, tol=1e-9)):
        known = model.fit(x, y, sample_weight=np.arange(400) % 3).coef_.copy()
        with monkeypatch.context() as patch:
            patch.setattr(fitting, "_MANY", 0)
            patch.setattr(fitting, "_PER_COLUMN", 1)
            found = model.fit(x, y, sample_weight=np.arange(400) % 3).coef_
        np.testing.assert_allclose(found, known, rtol=1e-7, atol=1e-9)
