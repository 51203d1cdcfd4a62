"""The same sixty programs on every engine: NumPy's results, and equal bits where plans are equal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sixty_programs as sixty

import linnet as ln

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
ALIASED = {"outer gram"}
"""Where both operands are the same memory NumPy's product takes another routine of BLAS, with other bits;
operands that were sent or stored apart never are."""


@pytest.fixture(scope="module")
def alone():
    """Results of one node: threads whose bits do not depend on how many there are."""
    with ln.init("threads", workers=2, deterministic=True):
        return {name: sixty.found(name) for name in sixty.PROGRAMS}


@pytest.fixture(scope="module")
def four():
    """Results of four nodes, on the engine in virtual time: sums are taken node by node."""
    with ln.init("simulated", cluster=ln.Cluster(4)):
        return {name: sixty.found(name) for name in sixty.PROGRAMS}


def agree(results, reference):
    wrong = [name for name, value in results.items() if not sixty.close(name, value)]
    other = {name for name, value in results.items() if value.tobytes() != reference[name].tobytes()}
    assert (len(results), wrong, other - ALIASED) == (60, [], set())


def test_threads(alone):
    agree(alone, alone)


def test_simulated(four):
    agree(four, four)


def test_stateless_workers(alone, tmp_path):
    with ln.init("stateless", 2, store=str(tmp_path / "jobs"), launcher="threads"):
        agree({name: sixty.found(name) for name in sixty.PROGRAMS}, alone)


def test_dask(four, dask_client):
    with ln.init("dask", client=dask_client):
        agree({name: sixty.found(name) for name in sixty.PROGRAMS}, four)


def test_ray(four, ray_cluster):
    with ln.init("ray", address=ray_cluster.address):
        agree({name: sixty.found(name) for name in sixty.PROGRAMS}, four)


@pytest.mark.needs("mpi4py")
def test_mpi(four, tmp_path):
    results = tmp_path / "results.npz"
    command = [Path(sys.executable).with_name("mpiexec"), "-n", "4", sys.executable, "-m", "linnet", "run"]
    subprocess.run(
        [*command, HERE / "sixty_programs.py", results],
        check=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(HERE)},
    )
    with np.load(results) as found:
        agree(dict(found), four)
