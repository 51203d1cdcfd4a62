"""A cluster in virtual time: plans are followed, proved, counted and told of."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import linnet as ln
from linnet.algorithms.cholesky import cholesky
from linnet.algorithms.gemm import accumulated_gemm
from linnet.engines import Threads
from linnet.engines.simulated import PlanError, Simulated, _Run, _Virtual
from linnet.errors import BudgetError, InputError
from linnet.events import Events, JobFinished, JobStarted, TaskFinished, TaskStarted
from linnet.planning.calibration import Calibration
from linnet.planning.choosing import choose
from linnet.planning.cluster import Cluster
from linnet.planning.placement import placed
from linnet.planning.plan import Plan
from linnet.planning.workload import Workload
from linnet.testing import kernels as programs
from linnet.tiles import TiledArray


class Anywhere:
    """A policy that knows nothing."""

    name = "anywhere"

    def __init__(self, seed):
        self.seed = seed

    def place(self, work, cluster):
        nodes = np.random.default_rng(self.seed).integers(0, cluster.count, work.count)
        return placed(work, cluster, nodes.astype(np.int32))


def positive(n, tile, seed=0):
    x = np.random.default_rng(seed).standard_normal((n * tile, n * tile))
    return x @ x.T + n * tile * np.eye(n * tile)


@settings(deadline=None, max_examples=15)
@given(st.integers(1, 6), st.integers(1, 5), st.integers(1, 3), st.integers(0, 10**6))
@example(n=3, nodes=2, workers=1, seed=2)  # what is given back and what is sent at the same moment
@example(n=4, nodes=3, workers=1, seed=10)
@example(n=5, nodes=2, workers=2, seed=7)
def test_wherever_tasks_run_the_results_are_those_of_threads(n, nodes, workers, seed):
    engine = Simulated(cluster=Cluster(nodes=nodes, workers=workers), policy=Anywhere(seed))
    a = TiledArray.from_numpy(positive(n, 4, seed), 4)
    bound = cholesky.bind(N=n)
    found = engine.run(bound, {"A": a})["O"].to_numpy()
    assert np.array_equal(found, Threads(1).run(bound, {"A": a})["O"].to_numpy())
    last = engine.last
    assert np.array_equal(last.bytes_in, last.plan.bytes_in)
    # A plan counts a tile from when it is asked for, a run from when it is on its way.
    assert (last.peak_memory <= last.plan.peak_memory).all()
    assert (last.peak_memory * 2 >= last.plan.peak_memory).all()


def test_a_tile_that_nobody_brings_is_found_out():
    a = {"A": TiledArray.from_numpy(np.arange(8.0), 2)}
    work = Workload.of(programs.chain.bind(N=4, M=3), a)
    plan = choose(work, Cluster(nodes=2), Anywhere(0))
    assert plan.transfers > 0
    simulated = plan.simulated
    cut = {name: getattr(simulated, name)[1:] for name in ("tile", "source", "target", "sent", "arrived")}
    spoilt = Plan(work, plan.cluster, plan.policy, plan.placement)
    spoilt.simulated = dataclasses.replace(simulated, **cut)
    with pytest.raises(PlanError, match="'anywhere' made a plan that cannot be followed"):
        _Run(spoilt, a, {}, _Virtual(Events(), "spoilt")).outcome()


def test_a_task_that_starts_too_early_is_found_out():
    a = {"A": TiledArray.from_numpy(np.arange(8.0), 2)}
    work = Workload.of(programs.chain.bind(N=4, M=3), a)
    plan = choose(work, Cluster(nodes=1))
    early = np.minimum(plan.simulated.start, plan.simulated.seconds / 2)
    plan.simulated = dataclasses.replace(plan.simulated, start=early)
    with pytest.raises(PlanError, match="is not on node 0"):
        _Run(plan, a, {}, _Virtual(Events(), "early")).outcome()


def test_events_carry_virtual_times():
    engine = Simulated(cluster=Cluster(nodes=2, workers=1, flops=1.0))
    events, heard = Events(), []
    events.subscribe(heard.append)
    n = 4
    engine.run(
        accumulated_gemm.bind(M=2, N=2, K=2),
        {name: TiledArray.from_numpy(np.ones((2 * n, 2 * n)), n) for name in "AB"},
        events=events,
    )
    times = [event.at for event in heard]
    assert times == sorted(times)
    begun = next(event.at for event in heard if isinstance(event, JobStarted))
    over = next(event for event in heard if isinstance(event, JobFinished))
    assert over.seconds == pytest.approx(engine.last.seconds) == pytest.approx(over.at - begun, rel=1e-6)
    assert over.seconds >= 4 * 2 * n**3  # a task has 2n³ operations, and a node four of eight tasks
    started = {event.task: event.at for event in heard if isinstance(event, TaskStarted)}
    for event in heard:
        if isinstance(event, TaskFinished):
            assert event.at - started[event.task] == pytest.approx(event.seconds, abs=1e-3)


def test_a_calibration_gives_the_times():
    slow = Calibration({"gemm": ((1.0, 100.0),), "chol": ((1.0, 1.0),)}, memory=1e9)
    a = {"A": TiledArray.from_numpy(positive(1, 3), 3)}
    engine = Simulated(cluster=Cluster(nodes=1, flops=100.0), calibration=slow)
    engine.run(cholesky.bind(N=1), a)
    assert engine.last.seconds == pytest.approx(3**3 / 3)
    engine = Simulated(cluster=Cluster(nodes=1, flops=200.0), calibration=slow)
    engine.run(cholesky.bind(N=1), a)
    assert engine.last.seconds == pytest.approx(3**3 / 3 / 2)
    mixed = Cluster([ln.Node(), ln.Node(flops=1.0)])
    with pytest.raises(InputError, match="one kind of worker"):
        Simulated(cluster=mixed, calibration=slow).run(cholesky.bind(N=1), a)


@pytest.mark.slow
def test_arrays_run_on_it_and_are_spread_over_its_nodes():
    a = np.random.default_rng(1).random((96, 5))
    with ln.init(engine="simulated", cluster=ln.Cluster(nodes=8)) as session:
        x = ln.asarray(a, chunks=(4, 5))
        assert np.allclose((x.T @ x).compute(), a.T @ a)
        assert session.engine.last.plan.transfers == 7
        assert np.isclose(float(x.sum()), a.sum())
        assert session.engine.last.plan.transfers == 7
        assert ln.plan(x.sum()).cluster is session.engine.cluster


def test_options_that_contradict_each_other():
    with pytest.raises(InputError, match="say these of its nodes"):
        Simulated(workers=2, cluster=Cluster())
    assert repr(Simulated(workers=2)) == "Simulated(Cluster(nodes=4, workers=2))"
    assert Simulated(memory="1 GB").memory == 10**9


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cluster": 3}, r"cluster=3: give an ln\.Cluster, such as ln\.Cluster\(nodes=4"),
        ({"cluster": [ln.Node()]}, r"give an ln\.Cluster"),
        ({"calibration": 3}, "calibration=3: give one that"),
        ({"policy": "fastest"}, "'fastest' is not known; give one of \"auto\""),
        ({"policy": 3}, "policy 3 is not known"),
        ({"workers": 2.5}, "workers=2.5: give at least 1, a whole number"),
        ({"workers": 0}, "workers=0: give at least 1"),
    ],
)
def test_mistakes_are_told_when_the_engine_is_made(options, words):
    with pytest.raises(InputError, match=words):
        ln.init("simulated", **options)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Cluster(2.5), "nodes=2.5: give at least 1, a whole number, or a list of ln.Node"),
        (lambda: Cluster(True), "nodes=True"),
        (lambda: Cluster(2, workers=1.5), "workers=1.5: give at least 1"),
        (lambda: Cluster(2, grid=2), "grid=2: give the nodes along each axis"),
        (lambda: Cluster(2, between=1e9), "between=1000000000.0: give an ln.Link"),
        (lambda: ln.Node(workers=1.5), "workers=1.5"),
        (lambda: ln.Node(memory="lots"), "memory='lots': give bytes"),
        (lambda: ln.Node(flops=0), "flops=0"),
    ],
)
def test_mistakes_in_clusters_are_told(make, words):
    with pytest.raises(InputError, match=words):
        make()
    assert ln.Node(memory="1 GB").memory == 10**9


def test_a_task_that_does_not_fit_into_its_node_is_refused():
    """Tiles of 2 MB on nodes of 1 MB ran."""
    x = np.zeros((1000, 500))
    with ln.init("simulated", memory="1 MB"):
        y = ln.asarray(x, chunks=500) + 1
        words = r"one task needs 4\.0 MB at once, and node \d has 1\.0 MB; .*memory='4\.0 MB'.*smaller tiles"
        with pytest.raises(BudgetError, match=words):
            y.compute()
        assert (ln.asarray(x, chunks=100) + 1).compute().sum() == x.size
    nodes = [ln.Node(memory="1 MB"), ln.Node(memory="9 MB")]
    with ln.init("simulated", cluster=Cluster(nodes), policy=On(1)):
        assert (ln.asarray(x, chunks=500) + 1).compute().sum() == x.size


class On:
    """A policy that takes one node."""

    name = "on one"

    def __init__(self, node):
        self.node = node

    def place(self, work, cluster):
        return placed(work, cluster, np.full(work.count, self.node, np.int32))


MASKS = {
    "joined": lambda x: x[x > 0.3].rechunk(700),
    "rows": lambda x: x[x[:, 0] > 0.3].T @ x[x[:, 0] > 0.3],
    "mean": lambda x: x[x > 0.3].mean(),
    "positions": lambda x: ln.nonzero(x > 0.3)[1].rechunk(900),
    "covariance": lambda x: ln.cov(x[x[:, 0] > 0.4].T),
}


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [2, 4])
@pytest.mark.parametrize("name", MASKS)
def test_plans_of_masks_count_what_moves(name, nodes):
    """What a mask keeps was taken to be as long as what it was taken from: 50.7 MB for 34.5."""
    a = np.random.default_rng(2).random((120, 60))
    with ln.init("simulated", cluster=Cluster(nodes)) as session:
        found = MASKS[name](ln.asarray(a, chunks=25))
        planned = ln.plan(found).bytes_moved
        value = found.compute()
        last = session.engine.last
    assert planned == last.plan.bytes_moved == last.bytes_in.sum()
    assert np.allclose(value, MASKS[name](ln.asarray(a, chunks=25)).compute())
