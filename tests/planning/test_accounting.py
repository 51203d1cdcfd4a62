"""Transfers, counted one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.planning.accounting import transfers
from linnet.planning.cluster import Cluster
from linnet.planning.placement import placed
from linnet.planning.simulate import simulate
from linnet.planning.workload import Workload
from linnet.testing import kernels as programs
from linnet.tiles import TiledArray


def affine(n, k):
    given = {"A": TiledArray.from_numpy(np.zeros((4 * n, 4 * k)), 4)}
    given["B"] = TiledArray.from_numpy(np.zeros((4 * k, 4 * n)), 4)
    return Workload.of(programs.affine.bind(N=n, K=k), given)


@given(seed=st.integers(0, 1000), nodes=st.integers(1, 7))
def test_every_node_gets_what_it_reads_once_from_one_that_has_it(seed, nodes):
    work, cluster = affine(3, 3), Cluster(nodes)
    placement = placed(work, cluster, np.random.default_rng(seed).integers(0, nodes, work.count))
    moved = transfers(work, cluster, placement)
    expected = {
        (int(tile), int(placement.nodes[task]))
        for task in range(work.count)
        for tile in work.reads(task)
        if placement.homes[tile] != placement.nodes[task]
    }
    having = {(tile, int(home)) for tile, home in enumerate(placement.homes)}
    seen = []
    for tile, source, target in zip(moved.tile, moved.source, moved.target, strict=True):
        assert (tile, source) in having
        having.add((int(tile), int(target)))
        seen.append((int(tile), int(target)))
    assert len(seen) == len(set(seen)) == len(expected)
    assert set(seen) == expected
    assert moved.into(nodes).sum() == moved.out_of(nodes).sum() == moved.between(nodes).sum()
    assert moved.into(nodes).sum() == sum(int(work.tile_bytes[tile]) for tile, _ in seen)
    simulated = simulate(work, cluster, placement)
    assert set(zip(simulated.tile.tolist(), simulated.target.tolist(), strict=True)) == expected


@pytest.mark.parametrize("nodes", range(2, 18))
def test_nobody_sends_a_tile_more_often_than_there_are_rounds(nodes):
    work = Workload.of(programs.slow.bind(N=nodes), {"A": TiledArray.from_numpy(np.zeros(4), 4)})
    cluster = Cluster(nodes)
    moved = transfers(work, cluster, placed(work, cluster, np.arange(nodes)))
    assert len(moved) == nodes - 1
    assert np.bincount(moved.source).max() <= np.ceil(np.log2(nodes))


def test_free_inputs_are_spread_over_their_readers():
    work = Workload.of(programs.slow.bind(N=4), {"A": TiledArray.from_numpy(np.zeros(4), 4)})
    assert placed(work, Cluster(8), np.array([3, 5, 3, 6])).homes[0] == 3
    work, cluster = affine(4, 4), Cluster(4)
    rows = work.tile_index[work.names.index("A")]
    assert len(rows) == 16
    placement = placed(work, cluster, np.arange(work.count) % 4)
    held = np.bincount(placement.homes[work.producer < 0], minlength=4)
    assert held.max() - held.min() <= 1
