"""Linear algebra of expressions on every engine: one program each, right, with equal bits where plans are equal.

One node is one node: threads that are deterministic, stateless workers, and clusters of one have the same bits.
So do all clusters of four.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import linear_algebra_cases as cases
import numpy as np
import pytest

import linnet as ln
from linnet import linalg
from linnet.arrays.expression.nodes import Stored
from linnet.engines import Threads
from linnet.engines.simulated import Simulated

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]
HERE = Path(__file__).parent
ALL = cases.ALL


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the matrices are that are read from files."""
    made = tmp_path_factory.mktemp("matrices")
    cases.write_files(made)
    return made


@pytest.fixture(scope="module")
def alone(folder):
    """Results of one node: threads whose bits do not depend on how many there are."""
    with ln.init("threads", workers=2, deterministic=True):
        return cases.results(folder)


@pytest.fixture(scope="module")
def four(folder):
    """Results of four nodes, on the engine in virtual time."""
    with ln.init("simulated", cluster=ln.Cluster(4)):
        return cases.results(folder)


FEW_OR_ALL = pytest.mark.parametrize("chosen", ["few", pytest.param("all", marks=pytest.mark.long)])
"""Engines take up to seconds for each case: the ordinary run has a few of them, the long one all."""
CHOSEN = {"few": cases.FEW, "all": cases.ALL}
ONE_BY_ONE = pytest.mark.parametrize(
    "name", [name if name in cases.EACH_KIND else pytest.param(name, marks=pytest.mark.long) for name in ALL]
)
"""A job takes a second or two: the ordinary run has one of every kind, the long one all."""


def agree(found, reference, chosen="all"):
    """All is right, and as it is in the reference, to the last bit."""
    assert cases.wrong(found, CHOSEN[chosen]) == []
    assert [name for name in found if found[name].tobytes() != reference[name].tobytes()] == []
    assert chosen == "few" or found.keys() == reference.keys()


def of_script(folder, path, engine, chosen, *before):
    """Results of the cases in a process of their own."""
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])}
    command = [*before, sys.executable, HERE / "linear_algebra_cases.py", folder, path, engine, chosen]
    subprocess.run(command, check=True, timeout=1200, env=variables)
    with np.load(path) as found:
        return {name.replace("|", "/"): found[name] for name in found}


# ---- one node


def test_threads(alone):
    agree(alone, alone)


def test_threads_with_a_faster_way_of_their_own(folder):
    with ln.init("threads", workers=2):
        assert cases.wrong(cases.results(folder)) == []


@FEW_OR_ALL
def test_the_number_of_threads_changes_no_bit(chosen, folder, alone):
    with ln.init("threads", workers=1, deterministic=True):
        agree(cases.results(folder, CHOSEN[chosen]), alone, chosen)


def test_a_simulated_node(folder, alone):
    with ln.init("simulated", cluster=ln.Cluster(1, workers=2)):
        agree(cases.results(folder), alone)


@FEW_OR_ALL
def test_stateless_workers(chosen, folder, alone, tmp_path):
    with ln.init("stateless", 2, store=str(tmp_path / "jobs"), launcher="threads"):
        agree(cases.results(folder, CHOSEN[chosen]), alone, chosen)


@pytest.mark.long
@pytest.mark.needs("distributed")
def test_a_worker_of_dask(folder, alone):
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=1, threads_per_worker=2, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
        ln.init("dask", client=client),
    ):
        agree(cases.results(folder), alone)


@pytest.mark.long
@pytest.mark.needs("ray")
def test_a_node_of_ray(folder, alone, tmp_path):
    agree(of_script(folder, tmp_path / "found.npz", "ray", "all"), alone)


@pytest.mark.long
@pytest.mark.needs("mpi4py", "mpiexec")
def test_a_rank_of_mpi(folder, alone, tmp_path):
    agree(of_script(folder, tmp_path / "found.npz", "mpi", "all", *mpiexec(1)), alone)


# ---- four nodes


def test_four_simulated_nodes(four):
    agree(four, four)


@FEW_OR_ALL
@pytest.mark.needs("distributed")
def test_four_workers_of_dask(chosen, folder, four, dask_client):
    with ln.init("dask", client=dask_client):
        agree(cases.results(folder, CHOSEN[chosen]), four, chosen)


@FEW_OR_ALL
@pytest.mark.timeout(1800)
@pytest.mark.needs("ray")
def test_four_nodes_of_ray(chosen, folder, four, ray_cluster):
    with ln.init("ray", address=ray_cluster.address):
        agree(cases.results(folder, CHOSEN[chosen]), four, chosen)


@FEW_OR_ALL
@pytest.mark.needs("mpi4py", "mpiexec")
def test_four_ranks_of_mpi(chosen, folder, four, tmp_path):
    agree(of_script(folder, tmp_path / "found.npz", "mpi", chosen, *mpiexec(4)), four, chosen)


def mpiexec(ranks):
    return Path(sys.executable).with_name("mpiexec"), "-n", str(ranks)


# ---- planned and submitted


@ONE_BY_ONE
def test_what_is_planned_is_what_runs(name, folder):
    made = ALL[name].expression(cases.in_tiles(folder))
    plan = ln.plan(made, ln.Cluster(4))
    with ln.init("simulated", cluster=ln.Cluster(4)), cases.counted() as programs:
        assert ln.plan(made).tasks == plan.tasks
        assert programs == []
        ln.compute(made)
        assert programs[0].count() == plan.tasks > 0
    assert "tasks" in plan.explain()


@ONE_BY_ONE
def test_a_job_has_the_bits_of_threads(name, folder, alone, tmp_path):
    made = ALL[name].expression(cases.in_tiles(folder))
    with ln.submit(made, store=str(tmp_path / "jobs"), launcher="threads") as job:
        found = job.result()
        assert type(found) is type(made)
        expected = cases.values(name, alone)
        for one, other in zip(cases.leaves(found), expected, strict=True):
            assert one.shape == other.shape
            assert np.asarray(one.compute()).tobytes() == other.tobytes()
        progress = job.progress()
        in_doubt = name in cases.DOUBTED
        assert progress.done == progress.total == (job.spec.total if in_doubt else job.spec.first_total)
        job.delete()


@pytest.mark.parametrize("name", cases.ERRORS)
def test_a_job_refuses_a_matrix_in_the_same_words(name, folder, tmp_path):
    refused, words = cases.ERRORS[name]
    made = refused(cases.in_tiles(folder))
    with ln.submit(made, store=str(tmp_path / "jobs"), launcher="threads") as job:
        for ask in (job.wait, job.result):
            with pytest.raises(linalg.LinAlgError) as caught:
                ask()
            assert str(caught.value) == words
        with ln.attach(job.address) as other, pytest.raises(linalg.LinAlgError) as caught:
            other.result()
        assert str(caught.value) == words


def test_a_job_warns_of_a_bad_condition_when_its_result_is_asked_for(folder, alone, tmp_path, recwarn):
    made = cases.nearly_singular(cases.in_tiles(folder))
    with ln.submit(made, store=str(tmp_path / "jobs"), launcher="threads") as job:
        job.wait()
        assert not recwarn.list
        for each in (job, ln.attach(job.address)):
            with each, pytest.warns(linalg.ConditionWarning) as told:
                each.result()
            assert [str(one.message) for one in told] == alone["warnings"].tolist()


def test_a_singular_matrix_in_doubt_is_refused_in_the_same_words(folder, tmp_path):
    """The first program refuses it too, but only what the second says counts."""
    a = cases.in_tiles(folder)
    made = linalg.solve(cases.without(a.alike, 0), np.ones(cases.MANY), tile=2)
    words = "its leading minor of order 1 is zero"
    for engine in (Threads(2, deterministic=True), Simulated(cluster=ln.Cluster(4))):
        with (
            ln.init(engine),
            cases.counted() as programs,
            pytest.raises(linalg.LinAlgError, match=words),
        ):
            made.compute()
        assert len(programs) == 2
    with (
        ln.submit(made, store=str(tmp_path / "jobs"), launcher="threads") as job,
        pytest.raises(linalg.LinAlgError, match=words),
    ):
        job.wait()


@pytest.mark.parametrize("seed", [36, 37])
def test_a_job_does_not_fail_for_factors_in_doubt(seed, tmp_path):
    """What refuses numbers that are not finite must not see those of pivots that are not taken."""
    a = np.random.default_rng(seed).standard_normal((cases.MANY, cases.MANY))
    a[:, 1] = a[:, 2] = a[:, 0]
    made = linalg.svdvals(linalg.lu(ln.asarray(a[:, :8], chunks=2), tile=2).l)
    with ln.init("threads", 2, deterministic=True):
        expected = made.compute()
    with ln.submit(made, store=str(tmp_path / "jobs"), launcher="threads") as job:
        assert job.result().compute().tobytes() == expected.tobytes()


# ---- kept where they were made


def kept(folder):
    """Factors that stay where they are, used again and again."""
    a, given = cases.in_tiles(folder), cases.given()
    positive = cases.positive(given.x)
    lower = linalg.cholesky(cases.positive(a.x)).persist()
    q, r = ln.persist(linalg.qr(a.x))
    u, s, vh = ln.persist(linalg.svd(a.z, full_matrices=False))
    packed = ln.persist(linalg.lu_factor(a.x))
    for each in (lower, q, r, u, s, vh, *packed):
        assert isinstance(each.__node__, Stored)
    with cases.counted() as programs:
        made = ln.compute(
            lower @ lower.T,
            q @ r,
            (u * s @ vh)[5:30],
            linalg.solve_triangular(lower, a.b, lower=True),
            linalg.cho_solve(linalg.CholeskyFactors(lower, True), a.b),
            linalg.lu_solve(packed, a.b) * 2,
            linalg.cond(r, 1),
        )
    assert len(programs) == 1
    kernels = {programs[0].call(task).kernel for task in programs[0].tasks()}
    assert not kernels & {"chol", "chol_column", "qr_panel"}
    expected = [
        positive,
        given.x,
        given.z[5:30],
        np.linalg.solve(np.linalg.cholesky(positive), given.b),
        np.linalg.solve(positive, given.b),
        2 * np.linalg.solve(given.x, given.b),
        np.linalg.cond(np.linalg.qr(given.x).R, 1),
    ]
    for one, other in zip(made, expected, strict=True):
        assert np.allclose(one, other)
    return made


@pytest.fixture(scope="module")
def kept_alone(folder):
    with ln.init("threads", 2, deterministic=True):
        return kept(folder)


@pytest.fixture(scope="module")
def kept_by_four(folder):
    with ln.init("simulated", cluster=ln.Cluster(4)):
        return kept(folder)


def equal(found, expected):
    assert [np.asarray(each).tobytes() for each in found] == [np.asarray(each).tobytes() for each in expected]


def test_factors_kept_by_stateless_workers(folder, kept_alone, tmp_path):
    with ln.init("stateless", 2, store=str(tmp_path / "jobs"), launcher="threads"):
        equal(kept(folder), kept_alone)
    assert not list((tmp_path / "jobs").rglob("*=*"))  # so are the files called that hold tiles


@pytest.mark.needs("distributed")
def test_factors_kept_by_dask(folder, kept_by_four, dask_client):
    with ln.init("dask", client=dask_client):
        equal(kept(folder), kept_by_four)


@pytest.mark.needs("ray")
def test_factors_kept_by_ray(folder, kept_by_four, ray_cluster):
    with ln.init("ray", address=ray_cluster.address):
        equal(kept(folder), kept_by_four)
