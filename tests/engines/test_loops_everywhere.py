"""Programs written as loops on every engine: the values of the plain function."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from loop_cases import FEW, wrong

import linnet as ln

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
HERE = Path(__file__).parent
FEW_OR_ALL = pytest.mark.parametrize(
    "chosen", [pytest.param(FEW, id="few"), pytest.param(None, id="all", marks=pytest.mark.long)]
)
"""Engines take up to seconds for a program: the ordinary run has a few of them, the long one all."""


def test_four_simulated_nodes():
    with ln.init("simulated", cluster=ln.Cluster(4)):
        assert wrong() == []


@FEW_OR_ALL
def test_stateless_workers(chosen, tmp_path):
    with ln.init("stateless", 2, store=str(tmp_path / "jobs"), launcher="threads"):
        assert wrong(chosen) == []


@FEW_OR_ALL
@pytest.mark.needs("distributed")
def test_dask(chosen, dask_client):
    with ln.init("dask", client=dask_client):
        assert wrong(chosen) == []


@FEW_OR_ALL
@pytest.mark.needs("ray")
@pytest.mark.usefixtures("ray_cluster")
def test_ray(chosen):
    with ln.init("ray"):
        assert wrong(chosen) == []


@FEW_OR_ALL
@pytest.mark.needs("mpi4py", "mpiexec")
def test_four_ranks_of_mpi(chosen):
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])}
    mpiexec = Path(sys.executable).with_name("mpiexec")
    words = "all" if chosen is None else "few"
    command = [mpiexec, "-n", "4", sys.executable, HERE / "loop_cases.py", "mpi", words]
    done = subprocess.run(command, timeout=500, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
