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
ALL = list(sixty.PROGRAMS)
SOME = ALL[::3]
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


PARTS = pytest.mark.parametrize(
    "names", [SOME, pytest.param(ALL, marks=pytest.mark.long)], ids=["some", "all"]
)
"""A program takes up to a second there: the ordinary run has every third of them, the long one all."""


def agree(results, reference, names=ALL):
    wrong = [name for name, value in results.items() if not sixty.close(name, value)]
    other = {name for name, value in results.items() if value.tobytes() != reference[name].tobytes()}
    assert (list(results), wrong, other - ALIASED) == (names, [], set())
    assert len(ALL) == 60


def test_threads(alone):
    agree(alone, alone)


def test_simulated(four):
    agree(four, four)


@PARTS
def test_stateless_workers(names, alone, tmp_path):
    with ln.init("stateless", 2, store=str(tmp_path / "jobs"), launcher="threads"):
        agree({name: sixty.found(name) for name in names}, alone, names)


@PARTS
def test_dask(names, four, dask_client):
    with ln.init("dask", client=dask_client):
        agree({name: sixty.found(name) for name in names}, four, names)


@PARTS
def test_ray(names, four, ray_cluster):
    with ln.init("ray", address=ray_cluster.address):
        agree({name: sixty.found(name) for name in names}, four, names)


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
