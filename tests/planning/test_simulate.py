"""Placements in virtual time: the two simulations agree, and small cases come out as by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.algorithms import cholesky as cholesky_programs
from linnet.planning import simulate as simulation
from linnet.planning.cluster import Cluster, Link, Node
from linnet.planning.compiled import library
from linnet.planning.placement import placed, wanted
from linnet.planning.simulate import simulate
from linnet.planning.workload import Workload
from linnet.testing import kernels as programs
from linnet.tiles import TiledArray


def tiled(*shape, tile):
    return TiledArray.from_numpy(np.zeros(shape), tile)


CASES = {
    "affine": lambda: Workload.of(
        programs.affine.bind(N=3, K=4), {"A": tiled(12, 16, tile=4), "B": tiled(16, 12, tile=4)}
    ),
    "tree": lambda: Workload.of(programs.tree.bind(N=13), {"A": tiled(52, tile=4)}),
    "cholesky": lambda: Workload.of(cholesky_programs.cholesky.bind(N=5), {"A": tiled(20, 20, tile=4)}),
    "chain": lambda: Workload.of(programs.chain.bind(N=3, M=4), {"A": tiled(12, tile=4)}),
}
SLOW = Link(latency=0.5, bandwidth=100.0)


def both(monkeypatch, *given):
    if library("simulate") is None:
        pytest.fail("the compiled simulation was not built: is there a C compiler?")
    compiled = simulate(*given)
    with monkeypatch.context() as patch:
        patch.setattr(simulation, "library", lambda _: None)
        return compiled, simulate(*given)


@pytest.mark.needs("cc")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", range(4))
def test_compiled_and_python_agree_to_the_bit(name, seed, monkeypatch):
    work = CASES[name]()
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, 3)
    cluster = Cluster([Node(workers=int(n)) for n in sizes], between=SLOW, dispatch=0.01 * seed)
    placement = placed(work, cluster, rng.integers(0, 3, work.count))
    one, other = both(monkeypatch, work, cluster, placement, rng.random(work.count))
    for field in ("start", "finish", "worker", "tile", "source", "target", "sent", "arrived", "peak"):
        assert np.array_equal(getattr(one, field), getattr(other, field)), field


@pytest.mark.parametrize("name", CASES)
@given(seed=st.integers(0, 1000), workers=st.integers(1, 3), nodes=st.integers(1, 5))
def test_no_task_runs_before_its_operands_are_there(name, seed, workers, nodes):
    work = CASES[name]()
    rng = np.random.default_rng(seed)
    cluster = Cluster(nodes, workers, between=SLOW)
    placement = placed(work, cluster, rng.integers(0, nodes, work.count))
    found = simulate(work, cluster, placement, rng.random(work.count))
    arrived = {(t, n): a for t, n, a in zip(found.tile, found.target, found.arrived, strict=True)}
    for task in range(work.count):
        for tile in work.reads(task):
            if placement.homes[tile] != placement.nodes[task]:
                assert arrived[tile, placement.nodes[task]] <= found.start[task]
            elif work.producer[tile] >= 0:
                assert found.finish[work.producer[tile]] <= found.start[task]
    tiles, there = wanted(work, cluster, placement.nodes)
    away = placement.homes[tiles] != there
    assert set(arrived) == set(zip(tiles[away], there[away], strict=True))
    for node in range(nodes):
        mine = np.flatnonzero(placement.nodes == node)
        for worker in range(workers):
            times = sorted((found.start[t], found.finish[t]) for t in mine[found.worker[mine] == worker])
            assert all(a[1] <= b[0] for a, b in pairwise(times))


def test_a_chain_on_one_node_takes_the_sum_of_its_tasks():
    work = Workload.of(programs.chain.bind(N=1, M=5), {"A": tiled(4, tile=4)})
    found = simulate(
        work, Cluster(), placed(work, Cluster(), np.zeros(work.count, np.int32)), np.full(work.count, 2.0)
    )
    assert found.seconds == 2.0 * work.count
    # the input and its successor, and, while a step runs, what it makes
    assert found.peak.tolist() == [3 * 32]


def test_what_everybody_needs_spreads_as_a_tree():
    work = Workload.of(programs.slow.bind(N=8), {"A": tiled(4, tile=4)})
    cluster = Cluster(8, between=Link(latency=1.0, bandwidth=1e30))
    found = simulate(work, cluster, placed(work, cluster, np.arange(8)), np.zeros(8))
    assert len(found.tile) == 7
    assert found.arrived.max() == 3.0  # as many rounds as the binary logarithm of 8


def test_a_dispatcher_hands_out_one_task_after_another():
    work = Workload.of(programs.several.bind(N=10), {"A": tiled(40, tile=4)})
    cluster = Cluster(1, workers=10, dispatch=0.5)
    found = simulate(work, cluster, placed(work, cluster, np.zeros(10, np.int32)), np.zeros(10))
    assert sorted(found.start) == [0.5 * (k + 1) for k in range(10)]


@pytest.mark.parametrize("compiled", [pytest.param(True, marks=pytest.mark.needs("cc")), False])
def test_a_placement_that_leaves_something_nowhere_is_refused(compiled, monkeypatch):
    if not compiled:
        monkeypatch.setattr(simulation, "library", lambda _: None)
    work, cluster = CASES["affine"](), Cluster([Node(), Node()])
    fine = placed(work, cluster, np.zeros(work.count, np.int32))
    simulate(work, cluster, fine)
    for wrong in (-1, 2):
        nodes, homes = fine.nodes.copy(), fine.homes.copy()
        nodes[3] = wrong
        with pytest.raises(
            ValueError, match=rf"is placed on node {wrong} of 2; every task needs a node from 0 to 1"
        ):
            simulate(work, cluster, replace(fine, nodes=nodes))
        homes[work.read[0]] = wrong
        with pytest.raises(ValueError, match=rf"is read, but its home is node {wrong} of 2"):
            simulate(work, cluster, replace(fine, homes=homes))
