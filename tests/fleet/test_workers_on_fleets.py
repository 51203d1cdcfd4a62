"""Stateless workers on servers of a fleet: the price before, the right result, the bill after."""

from __future__ import annotations

import os
import re
import time
from typing import Any

import numpy as np
import pytest

import linnet as ln
from linnet.errors import InputError
from linnet.fleet import FittedModel, Fleet, Local, Simulated
from linnet.fleet.laws import Exponential
from linnet.fleet.providers.provider import Seen
from linnet.planning.calibration import Calibration
from linnet.workers.launchers.fleet import FleetLauncher, _Rented

CALIBRATION = Calibration({"gemm": ((1e6, 2e10),)}, memory=1e10)


@pytest.mark.slow
def test_an_estimate_grows_with_losses():
    x = ln.asarray(np.ones((1000, 1000)), chunks=250)
    expression = ln.linalg.cholesky(x @ x.T + 1000 * ln.eye(1000, chunks=250))
    known: dict[str, Any] = {"runs": 5, "calibration": CALIBRATION, "start": 0.0}
    calm = ln.estimate(expression, fleet=Fleet([Simulated(4, price=1.0)]), **known)
    hours = calm.hours.mean
    dying = FittedModel(Exponential(2 / hours))
    lossy = ln.estimate(expression, fleet=Fleet([Simulated(4, price=1.0)], model=dying), **known)
    assert calm.cost.mean == pytest.approx(4 * hours, rel=0.2)
    assert lossy.cost.quantile(0.9) > calm.cost.quantile(0.9)
    assert "4 workers" in str(lossy)
    assert "20 Gflop/s each (as given), after 0 s" in str(lossy)
    twice = Calibration({"gemm": ((1e6, 4e10),)}, memory=1e10)
    faster = ln.estimate(
        expression, fleet=Fleet([Simulated(4, price=1.0)]), **{**known, "calibration": twice}
    )
    assert faster.hours.mean < 0.7 * hours  # all of it is operations, but for what is sent
    later = ln.estimate(expression, fleet=Fleet([Simulated(4, price=1.0)]), **{**known, "start": 60.0})
    assert later.hours.mean == pytest.approx(hours + 1 / 60, rel=1e-6)
    assert later.cost.mean == pytest.approx(calm.cost.mean + 4 / 60, rel=1e-3)
    with pytest.raises(InputError, match="start=-1: give seconds"):
        ln.estimate(expression, fleet=Fleet([Simulated(4)]), start=-1)
    with pytest.raises(InputError, match="give a linnet.fleet.Fleet"):
        ln.estimate(expression, fleet=3)


@pytest.mark.slow
def test_a_factorisation_on_servers_that_die(tmp_path):
    random = np.random.default_rng(0)
    given = random.standard_normal((400, 400))
    given = given @ given.T + 400 * np.eye(400)
    # The first two are killed after a fifth of a second, before their workers can have done anything.
    fleet = Fleet([Local(3, price=0.36, lives=[0.2, 0.2, 60.0, 50.0], speed=3600)])
    x = ln.asarray(given, chunks=40)
    with ln.submit(ln.linalg.cholesky(x), store=tmp_path / "store", workers=2, launcher=fleet) as job:
        job.wait(timeout=150)
        found = np.asarray(job.result())
        page = job.report(tmp_path / "report.html").read_text()
    assert np.allclose(found, np.linalg.cholesky(given))
    bill = re.search(r"([0-9.]+) dollars: (\d+) servers, (\d+) lost, ([0-9.e+-]+) hours together", page)
    assert bill is not None
    dollars, servers, lost, hours = (float(each) for each in bill.groups())
    assert lost >= 2
    assert servers >= 3  # two, and at least one for these
    assert dollars == pytest.approx(0.36 * hours, rel=1e-2)


@pytest.mark.parametrize(
    ("provider", "at_once"),
    [(Local(2), 2), (Local(1), 1), (Simulated(2), 1)],
    ids=["two", "one", "elsewhere"],
)
def test_workers_that_share_this_machine_are_measured_together(monkeypatch, provider, at_once):
    begun: list[int] = []

    def start(workers: int) -> float:
        begun.append(workers)
        return 3.0

    monkeypatch.setattr("linnet.arrays.sending.estimate._start_here", start)
    x = ln.asarray(np.ones((40, 40)), chunks=20)
    fleet = Fleet([provider])
    told = ln.estimate(x @ x, fleet=fleet, workers=provider.servers, calibration=CALIBRATION, runs=2)
    assert begun == [at_once]
    assert told.hours.mean == pytest.approx(3 / 3600, rel=0.05)


def test_the_bill_ends_with_the_worker(tmp_path, monkeypatch):
    now, wall = [50.0], time.time()
    monkeypatch.setattr("linnet.workers.launchers.fleet.elapsed", lambda: now[0])
    monkeypatch.setattr(time, "time", lambda: wall + now[0] - 50)
    launcher = FleetLauncher(Fleet([Local(1, price=3600.0)]), folder=tmp_path)
    monkeypatch.setattr(Local, "launch", lambda self, wanted: None)
    monkeypatch.setattr(Local, "seen", lambda self: {f"local-{self.place.id}-0": Seen("alive")})
    offer = launcher.fleet.offers()[0]
    launcher._rented.append(_Rented("a", f"local-{launcher._place.id}-0", offer, 0, 50.0))
    now[0] = 60.0
    assert launcher.bill[0] == pytest.approx(10)
    (tmp_path / "done" / "0").touch()
    os.utime(tmp_path / "done" / "0", (wall + 12, wall + 12))
    now[0] = 1000.0  # nobody looked meanwhile
    assert launcher.bill == (pytest.approx(12), pytest.approx(12 / 3600), 1, 0)
    assert launcher.ended() == ["a"]
