"""Progress and what is recorded of a run on engines that drive a cluster: lines, kernels, the plan."""

from __future__ import annotations

import numpy as np
import pytest

import linnet as ln


@pytest.mark.slow
@pytest.mark.parametrize(
    "engine",
    [
        pytest.param("ray", marks=pytest.mark.needs("ray")),
        pytest.param("dask", marks=pytest.mark.needs("distributed")),
    ],
)
def test_progress_is_shown_and_recorded(engine, capsys):
    with ln.init(engine, workers=2):
        x = ln.asarray(np.ones((40, 40)), chunks=10)
        found = (x @ x).compute(progress=True)
    assert (found == 40).all()
    said = capsys.readouterr().err
    assert "tasks on" in said
    assert "finished in" in said
    job = ln.report().data["jobs"][-1]
    assert job["engine"].lower().startswith(engine)
    assert (job["state"], job["done"]) == ("finished", job["tasks"])
    assert sum(kernel["tasks"] for kernel in job["kernels"]) == job["tasks"]
    assert job["log"][-1][1].startswith("finished after")
