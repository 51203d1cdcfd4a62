"""Stateless workers on servers of a fleet: the price before, the right result, the bill after."""

from __future__ import annotations

import numpy as np
import pytest

import linnet as ln
from linnet.errors import InputError
from linnet.fleet import FittedModel, Fleet, Local, Simulated
from linnet.fleet.laws import Exponential


def test_an_estimate_grows_with_losses():
    x = ln.asarray(np.ones((2000, 2000)), chunks=250)
    expression = ln.linalg.cholesky(x @ x.T + 2000 * ln.eye(2000, chunks=250))
    calm = ln.estimate(expression, fleet=Fleet([Simulated(4, price=1.0)]), runs=5)
    hours = calm.hours.mean
    dying = FittedModel(Exponential(2 / hours))
    lossy = ln.estimate(expression, fleet=Fleet([Simulated(4, price=1.0)], model=dying), runs=5)
    assert calm.cost.mean == pytest.approx(4 * hours, rel=0.2)
    assert lossy.cost.quantile(0.9) > calm.cost.quantile(0.9)
    assert "4 workers" in str(lossy)
    with pytest.raises(InputError, match="give a linnet.fleet.Fleet"):
        ln.estimate(expression, fleet=3)


@pytest.mark.slow
def test_a_factorisation_on_servers_that_die(tmp_path):
    random = np.random.default_rng(0)
    given = random.standard_normal((400, 400))
    given = given @ given.T + 400 * np.eye(400)
    fleet = Fleet([Local(3, price=0.36, lives=[4.0, 6.0, 5.0], speed=3600)])
    x = ln.asarray(given, chunks=40)
    with ln.submit(ln.linalg.cholesky(x), store=tmp_path / "store", workers=2, launcher=fleet) as job:
        job.wait(timeout=150)
        found = np.asarray(job.result())
        page = job.report(tmp_path / "report.html").read_text()
    assert np.allclose(found, np.linalg.cholesky(given))
    assert "bill" in page
    assert "dollars" in page
