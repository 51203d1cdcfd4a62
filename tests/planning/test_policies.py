"""Policies: both ways of walking agree, placements are sound, and they move what the closed forms say."""

from __future__ import annotations

from itertools import pairwise
from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linnet.algorithms import cholesky as cholesky_programs
from linnet.algorithms.gemm import accumulated_gemm, gemm
from linnet.algorithms.householder import qr
from linnet.algorithms.tsqr import tsqr
from linnet.engines.simulated import Simulated
from linnet.errors import InputError
from linnet.planning.accounting import transfers
from linnet.planning.cluster import Cluster, Link, Node
from linnet.planning.compiled import library
from linnet.planning.layout import NodeLayout, even_grid, factorisations, node_grids
from linnet.planning.policies import walks
from linnet.planning.policies.grid import Summa
from linnet.planning.policies.joins import joins
from linnet.planning.policies.locality import Locality
from linnet.planning.policies.lshs import Improved, Thesis
from linnet.planning.policies.owner import Owner
from linnet.planning.policies.round_robin import RoundRobin
from linnet.planning.workload import Workload
from linnet.programs import TileProgram
from linnet.testing import kernels as programs
from linnet.tiles import Layout, TiledArray, TileKey


def tiled(*shape, tile):
    """Zeros that take no room: only shapes and cuts are looked at."""
    return TiledArray.over(np.broadcast_to(np.zeros(1), shape), Layout.regular(shape, tile))


def product(n, k=None, tile=4, m=None, program=accumulated_gemm):
    m, k = m or n, k or n
    a, b = tiled(n * tile, k * tile, tile=tile), tiled(k * tile, m * tile, tile=tile)
    return Workload.of(program.bind(M=n, N=m, K=k), {"A": a, "B": b})


CASES = {
    "product": lambda: product(4, 3),
    "product in one task a tile": lambda: product(4, 3, program=gemm),
    "tree": lambda: Workload.of(programs.tree.bind(N=13), {"A": tiled(50, tile=4)}),
    "cholesky": lambda: Workload.of(cholesky_programs.cholesky.bind(N=5), {"A": tiled(18, 18, tile=4)}),
    "left-looking": lambda: Workload.of(
        cholesky_programs.left_looking.bind(N=5), {"A": tiled(20, 20, tile=4)}
    ),
    "qr": lambda: Workload.of(qr.bind(P=4, Q=3), {"A": tiled(16, 12, tile=4)}),
    "tsqr": lambda: Workload.of(tsqr.bind(N=9), {"A": tiled(72, 4, tile=(8, 4))}),
    "ranges": lambda: Workload.of(programs.ranges.bind(N=5, M=4), {"A": tiled(20, tile=4)}),
    "several": lambda: Workload.of(programs.several.bind(N=7), {"A": tiled(28, tile=4)}),
    "filled": lambda: Workload.of(programs.filled.bind(N=4), {"A": tiled(8, 8, tile=2)}),
    "chain": lambda: Workload.of(programs.chain.bind(N=5, M=3), {"A": tiled(20, tile=4)}),
}
CLUSTERS = st.one_of(
    st.integers(2, 9).map(Cluster),
    st.integers(65, 70).map(Cluster),
    st.lists(
        st.builds(Node, workers=st.integers(1, 3), memory=st.sampled_from([None, 300, 2000])),
        min_size=2,
        max_size=6,
    ).map(lambda nodes: Cluster(nodes, between=Link(1e-6, 1e9))),
)


def policies(work, cluster):
    yield from (RoundRobin(), Owner(), Locality(), Thesis(), Improved())
    yield from Owner.variants(work, cluster)
    yield from Locality.variants(work, cluster)
    yield from Summa.variants(work, cluster)


@pytest.mark.needs("cc")
@pytest.mark.parametrize("name", CASES)
@given(cluster=CLUSTERS)
@settings(max_examples=5)
def test_compiled_and_python_walks_agree(name, cluster):
    if library("place") is None:
        pytest.fail("the compiled walks were not built: is there a C compiler?")
    work = CASES[name]()
    with pytest.MonkeyPatch.context() as patch:
        for policy in (Owner(), Locality(), Thesis(), Improved(), *Summa.variants(work, cluster)):
            compiled = policy.place(work, cluster)
            patch.setattr(walks, "_library", lambda: None)
            plain = policy.place(work, cluster)
            patch.undo()
            assert np.array_equal(compiled.nodes, plain.nodes), policy.name
            assert np.array_equal(compiled.homes, plain.homes), policy.name


@pytest.mark.parametrize("name", CASES)
@given(cluster=CLUSTERS)
@settings(max_examples=5)
def test_every_task_has_a_node_and_every_tile_a_home(name, cluster):
    work = CASES[name]()
    read = np.diff(work.reader_start) > 0
    for policy in policies(work, cluster):
        placement = policy.place(work, cluster)
        assert ((placement.nodes >= 0) & (placement.nodes < cluster.count)).all(), policy.name
        written = work.producer >= 0
        assert np.array_equal(placement.homes[written], placement.nodes[work.producer[written]])
        assert (placement.homes[~written & read] >= 0).all()
        if policy.name == "lshs":
            continue  # a layout says where its inputs lie
        for tile in np.flatnonzero(~written & read):
            readers = work.reader[work.reader_start[tile] : work.reader_start[tile + 1]]
            assert placement.homes[tile] in placement.nodes[readers], policy.name


@pytest.mark.parametrize(
    "policy", [RoundRobin(), Owner(), Locality(), Thesis(), Improved(), Summa((2, 2, 1))]
)
def test_inputs_that_lie_on_a_node_stay_there(policy):
    a = tiled(12, 12, tile=4)
    homes = {TileKey("A", (i, j)): 3 for i in range(3) for j in range(3)}
    work = Workload.of(accumulated_gemm.bind(M=3, N=3, K=3), {"A": a, "B": a}, homes)
    placement = policy.place(work, Cluster(4))
    given = work.given_homes >= 0
    assert given.sum() == 9
    assert (placement.homes[given] == 3).all()


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [2, 6])
def test_what_policies_place_runs_and_gives_the_result(nodes):
    """Every node computes with what was brought to it and nothing else; what comes is what was counted."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((12, 16)), rng.standard_normal((16, 12))
    inputs = {"A": TiledArray.from_numpy(a, 4), "B": TiledArray.from_numpy(b, 4)}
    bound, cluster = accumulated_gemm.bind(M=3, N=3, K=4), Cluster(nodes)
    for policy in policies(Workload.of(bound, inputs), cluster):
        engine = Simulated(cluster=cluster, policy=policy)
        assert np.allclose(engine.run(bound, inputs)["C"].to_numpy(), a @ b), policy.name
        assert np.array_equal(engine.last.bytes_in, engine.last.plan.bytes_in), policy.name


# ---- what is moved


def moved(work, cluster, policy):
    """Elements moved in all and into the node that receives most, and messages."""
    placement = policy.place(work, cluster)
    found = transfers(work, cluster, placement)
    items = work.tile_items[found.tile]
    into = np.bincount(found.target, items, cluster.count)
    return int(items.sum()), int(into.max()), len(found)


def rounds(work, cluster, policy):
    """The longest chain of messages of which each waits for the one before."""
    placement = policy.place(work, cluster)
    waited = np.zeros(work.tiles, int)
    for task in work.order:
        operands = work.reads(task)
        away = placement.homes[operands] != placement.nodes[task]
        waited[work.writes(task)] = (waited[operands] + away).max(initial=0)
    return int(waited.max())


@pytest.mark.parametrize("nodes", [1, 3, 4, 16])
@pytest.mark.parametrize("policy", [Owner(), Locality(), Thesis(), Improved()])
def test_element_wise_moves_nothing(nodes, policy):
    work = Workload.of(programs.divided.bind(N=37), {"A": tiled(148, tile=4), "B": tiled(148, tile=4)})
    assert moved(work, Cluster(nodes), policy) == (0, 0, 0)


@pytest.mark.parametrize("policy", [Locality(), Improved()])
@pytest.mark.parametrize("nodes", [1, 2, 4, 8, 16, 32, 64])
def test_a_sum_moves_one_tile_from_every_node_but_one(nodes, policy):
    work = Workload.of(programs.tree.bind(N=4 * nodes), {"A": tiled(16 * nodes, tile=4)})
    cluster = Cluster(nodes)
    total, _, messages = moved(work, cluster, policy)
    assert (total, messages) == (4 * (nodes - 1), nodes - 1)
    assert rounds(work, cluster, policy) == log2(nodes)


def test_a_sum_of_512_tiles_on_16_nodes():
    work = Workload.of(programs.tree.bind(N=512), {"A": tiled(8192, tile=16)})
    total, most, _ = moved(work, Cluster(16), Locality())
    assert total == 240
    assert most <= 64


@pytest.mark.parametrize("root", [1, 2, 3, 4, 6, 8])
@pytest.mark.parametrize("own", [1, 2])
def test_an_outer_product_moves_a_row_and_a_column(root, own):
    nodes = root * root
    work = product(nodes * own, 1, program=gemm)
    cluster = Cluster(nodes)
    for policy in (Summa((root, root, 1)), Owner((root, root))):
        found = transfers(work, cluster, policy.place(work, cluster))
        into = np.bincount(found.target, minlength=nodes)
        assert (into == 2 * (root - 1) * own).all()


@pytest.mark.parametrize("program", [gemm, accumulated_gemm])
def test_a_product_of_256_tiles_on_16_nodes(program):
    work = product(16, program=program)
    for policy in (Owner(), Summa((4, 4, 1))):
        assert moved(work, Cluster(16), policy)[:2] == (24_576, 1_536)


def test_layers_move_less():
    total, most, _ = moved(product(16), Cluster(16), Summa((4, 2, 2)))
    assert total == 20_480  # 256 tiles of A once, 256 of B three times, 256 of C once
    assert most <= 1_536


def test_chains_pass_once_from_layer_to_layer():
    work = product(4, 8)
    placement = Summa((1, 2, 4)).place(work, Cluster(8))
    changes = [
        placement.nodes[work.producer[tile]] != placement.nodes[task]
        for task in range(work.count)
        for tile in work.reads(task)
        if work.producer[tile] >= 0
    ]
    assert sum(changes) == 4 * 4 * 3


def test_round_robin_deals_in_the_order_of_the_tasks():
    work = product(3, 2)
    nodes = RoundRobin().place(work, Cluster(4)).nodes[work.order]
    assert nodes.tolist() == [k % 4 for k in range(work.count)]


def test_a_memory_limit_is_kept_where_it_can_be():
    source = """
def spread(A: In, B: Out, N: int):
    for i in range(N):
        B[i] = testing_step(A[0])
"""
    work = Workload.of(TileProgram.from_source(source).bind(N=8), {"A": tiled(4, tile=4)})
    roomy, tight = Cluster(4, memory=1e6), Cluster(4, memory=32 * 4)
    assert len(set(Improved().place(work, tight).nodes.tolist())) >= 3
    assert np.bincount(Improved().place(work, tight).nodes).max() <= 3
    assert Improved().place(work, roomy).nodes.min() >= 0


# ---- the thesis' search


def brute_force(work, cluster):
    """Eq. 3.2 from its words: the state is copied for every option, and all nodes are looked at."""
    state = np.zeros((cluster.count, 3), int)
    where = {tile: set() for tile in range(work.tiles)}
    home, nodes = {}, np.full(work.count, -1)

    def by_layout(tile):
        array = work.tile_array[tile]
        index = work.tile_index[array]
        layout = NodeLayout(even_grid(cluster.count, tuple(index.max(axis=0) + 1)), contiguous=True)
        return int(layout.nodes(index)[tile - work.first[array]])

    def transition(state, task, node):
        state = state.copy()
        for tile in work.reads(task):
            if node not in where[tile]:
                state[node, :2] += work.tile_items[tile]
                state[home[tile], 2] += work.tile_items[tile]
        state[node, 0] += work.tile_items[work.writes(task)].sum()
        return state

    for tile in range(work.tiles):
        if work.producer[tile] < 0:
            home[tile] = by_layout(tile)
            where[tile] = {home[tile]}
            state[home[tile], 0] += work.tile_items[tile]
    for task in work.order:
        results = [tile for tile in work.writes(task) if work.kept[tile]]
        options = (
            [by_layout(results[0])] if results else sorted(set.union(*(where[t] for t in work.reads(task))))
        )
        nodes[task] = min(options, key=lambda n: transition(state, task, n).max(axis=0).sum())
        state = transition(state, task, nodes[task])
        for tile in work.reads(task):
            where[tile].add(nodes[task])
        for tile in work.writes(task):
            home[tile] = nodes[task]
            where[tile] = {nodes[task]}
    return nodes


@pytest.mark.parametrize("name", ["product", "cholesky", "tree", "chain", "qr"])
@pytest.mark.parametrize("nodes", [2, 4, 6])
def test_the_thesis_search_is_equation_3_2(name, nodes):
    work, cluster = CASES[name](), Cluster(nodes)
    assert np.array_equal(Thesis().place(work, cluster).nodes, brute_force(work, cluster))


def test_the_thesis_search_refuses_many_tasks():
    work = Workload.of(programs.divided.bind(N=10_001), {name: tiled(10_001, tile=1) for name in "AB"})
    with pytest.raises(InputError, match=r"up to 10,000 tasks, and there are 10,001; use \"lshs-improved\""):
        Thesis().place(work, Cluster(4))


# ---- joins and layouts


def test_joins_are_found_in_every_form_of_a_product():
    for program in (gemm, accumulated_gemm):
        (first, *_) = joins(product(3, 4, program=program))
        assert (first.left, first.right) == ("A", "B")
        assert first.row.max() == first.column.max() == 2
    assert joins(product(3, 4, program=gemm))[0].layer.max() == 0
    middle = joins(product(3, 4))[0]
    assert sorted(set(middle.layer.tolist())) == [1, 2]
    assert middle.layers == 4


def test_joins_are_found_in_cholesky_and_not_in_sums():
    (update,) = joins(CASES["cholesky"]())
    assert (update.left, update.right) == ("O", "O")
    assert (update.row >= update.column).all()
    assert not joins(CASES["tree"]())
    assert not joins(CASES["chain"]())


def test_workers_of_a_node_take_its_tiles_in_turn():
    """The thesis' figure 3.3: A[2, 3] lies on node 1, the fourth of its tiles."""
    index = np.array([[i, j] for i in range(4) for j in range(4)])
    layout = NodeLayout((2, 2))
    assert layout.nodes(index)[2 * 4 + 3] == 1
    assert layout.workers(index, 4)[2 * 4 + 3] == 3
    pairs = zip(layout.nodes(index).tolist(), layout.workers(index, 4).tolist(), strict=True)
    assert len(set(pairs)) == 16


def test_grids_that_can_matter():
    assert node_grids(6, (10, 10)) == [(1, 6), (2, 3), (3, 2), (6, 1)]
    assert node_grids(6, (2, 10)) == [(1, 6), (2, 3)]
    assert [prod for prod in factorisations(12, 3) if np.prod(prod) != 12] == []
    with pytest.raises(InputError, match="there is at least one"):
        node_grids(0, (3,))


@given(st.integers(1, 40), st.integers(1, 12))
def test_blocks_are_contiguous_and_even(length, parts):
    nodes = NodeLayout((parts,), contiguous=True).nodes(np.arange(length)[:, None])
    assert all(a <= b for a, b in pairwise(nodes.tolist()))
    sizes = np.bincount(nodes, minlength=parts)
    assert sizes.max() - sizes.min() <= 1
