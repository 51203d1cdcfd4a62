"""The choice of a plan: who wins, who is left out, what is said about it."""

from __future__ import annotations

from math import ceil, log2

import numpy as np
import pytest

import linnet as ln
from linnet.algorithms import cholesky as cholesky_programs
from linnet.algorithms.gemm import accumulated_gemm, gemm
from linnet.errors import InputError
from linnet.planning.choosing import FAMILIES, choose
from linnet.planning.cluster import Cluster, Link, Node
from linnet.planning.placement import placed
from linnet.planning.workload import Workload
from linnet.programs import TileProgram
from linnet.testing import kernels as programs
from linnet.tiles import Layout, TiledArray

BYTES = Link(latency=0.0, bandwidth=1e6)
"""A network so slow that only bytes matter."""


def tiled(*shape, tile):
    return TiledArray.over(np.broadcast_to(np.zeros(1), shape), Layout.regular(shape, tile))


def product(n, tile=4, program=accumulated_gemm):
    a = tiled(n * tile, n * tile, tile=tile)
    return Workload.of(program.bind(M=n, N=n, K=n), {"A": a, "B": a})


def square(n, nodes, tile=500):
    """A product as an expression: its sums can be split."""
    a, b = (ln.asarray(np.broadcast_to(1.0, (n * tile, n * tile)), chunks=tile) for _ in range(2))
    return ln.plan(a @ b, Cluster(nodes)).work


class Named:
    """One variant of a policy, by its name."""

    def __init__(self, name, work, cluster):
        self.name = name
        (self._policy,) = [
            each for variants in FAMILIES.values() for each in variants(work, cluster) if each.name == name
        ]

    def place(self, work, cluster):
        return self._policy.place(work, cluster)


def price(plan, cost):
    """Seconds, and those of all that moves on one link."""
    return cost.total + cost.bytes_moved / plan.cluster.between.bandwidth


def summed(n, tile=4):
    return Workload.of(programs.tree.bind(N=n), {"A": tiled(n * tile, tile=tile)})


@pytest.mark.parametrize("between", [BYTES, Link(1e-4, 1.25e9)])
@pytest.mark.parametrize("program", [gemm, accumulated_gemm])
def test_the_product_of_the_thesis(program, between):
    """16² tiles of 4 × 4 on 16 nodes: NumS moves 70,656 elements, its LSHS 55,888, owner-computes 24,576."""
    plan = choose(product(16, program=program), Cluster(16, grid=None, between=between))
    assert plan.bytes_moved <= 24_576 * 8
    assert plan.bytes_in.max() <= 1_536 * 8
    assert plan.lower_bound <= plan.bytes_moved


def test_the_grid_that_is_asked_for_is_taken():
    plan = choose(product(16), Cluster(16, grid=(2, 8), between=BYTES))
    assert plan.policy in ("owner 2×8", "grid 2×8")
    assert set(plan.rivals) <= {
        "owner 2×8", "locality 2×8", "grid 2×8", "lshs", "lshs-improved", "round-robin",
    }  # fmt: skip


@pytest.mark.parametrize("nodes", [2, 4, 8, 16, 32])
def test_a_sum_is_made_in_place(nodes):
    plan = choose(summed(4 * nodes), Cluster(nodes))
    assert plan.transfers == nodes - 1
    assert plan.bytes_moved == plan.lower_bound


def test_element_wise_moves_nothing_and_needs_one_look():
    arrays = {name: tiled(40_000, tile=100) for name in "AB"}
    plan = choose(Workload.of(programs.divided.bind(N=400), arrays), Cluster(4))
    assert (plan.bytes_moved, plan.transfers) == (0, 0)
    assert all("as good as one can be" in cost.pruned for cost in plan.rivals.values())


def test_a_policy_can_be_asked_for():
    work, cluster = product(4), Cluster(4)
    for name in FAMILIES:
        assert choose(work, cluster, name).policy.startswith(name)
    assert choose(work, Cluster(1), "owner").policy == "one node"


def test_a_policy_of_ones_own():
    class Last:
        name = "last"

        def place(self, work, cluster):
            return placed(work, cluster, np.full(work.count, cluster.count - 1))

    plan = choose(product(3), Cluster(4), Last())
    assert plan.policy == "last"
    assert (plan.placement.nodes == 3).all()


def test_unknown_policies_are_refused_with_those_that_are_known():
    with pytest.raises(
        InputError, match=r"'fastest' is not known; give one of \"auto\", \"owner\", .*\"lshs\""
    ):
        choose(product(2), Cluster(4), "fastest")
    with pytest.raises(InputError, match=r"places statements that join two operands.*'tree' has none"):
        choose(summed(8), Cluster(4), "grid")


@pytest.mark.parametrize("nodes", [2, 3, 5, 6, 7, 8])
@pytest.mark.parametrize("tiles", [2, 3, 4, 8])
def test_no_plan_moves_more_than_the_time_it_saves_is_worth(tiles, nodes):
    """Against every rival that shares the work as widely, at the rate of a link."""
    plan = choose(square(tiles, nodes), Cluster(nodes))
    used = len(np.unique(plan.placement.nodes))
    bandwidth = plan.cluster.between.bandwidth
    for name, cost in plan.rivals.items():
        rival = choose(plan.work, plan.cluster, Named(name, plan.work, plan.cluster))
        if len(np.unique(rival.placement.nodes)) >= used:
            saved = rival.cost.total - plan.cost.total
            assert plan.bytes_moved - rival.bytes_moved <= saved * bandwidth + 1, (name, cost)


@pytest.mark.parametrize(("tiles", "nodes", "most"), [(4, 3, 1.7), (4, 5, 1.9), (8, 3, 1.5), (8, 7, 1.3)])
def test_a_square_product_on_few_nodes_moves_little_and_shares_evenly(tiles, nodes, most):
    """4 × 4 tiles on 3 nodes went in turn, and moved 4.5 times the bound."""
    plan = choose(square(tiles, nodes), Cluster(nodes))
    assert plan.bytes_moved <= most * plan.lower_bound
    floor = plan.work.flops.sum() / (nodes * plan.cluster.nodes[0].flops)
    assert plan.seconds <= 1.2 * floor


def test_the_winner_is_the_cheapest_of_what_was_simulated():
    plan = choose(product(8, tile=64), Cluster(8))
    simulated = [cost for cost in plan.rivals.values() if not cost.pruned]
    assert simulated
    assert all(price(plan, plan.cost) <= price(plan, cost) for cost in simulated)
    left = [cost for cost in plan.rivals.values() if cost.pruned.startswith("takes at least")]
    assert all(price(plan, cost) > price(plan, plan.cost) for cost in left)


def test_what_is_left_out_could_not_have_won():
    """Every policy that was not simulated is forced, and is no cheaper."""
    work, cluster = product(6, tile=32), Cluster(6)
    plan = choose(work, cluster)
    left = [name for name, cost in plan.rivals.items() if cost.pruned.startswith("takes at least")]
    assert left
    for name in {each.split(" ")[0] for each in left}:
        assert price(plan, choose(work, cluster, name).cost) >= price(plan, plan.cost) * 0.99


def test_plans_that_do_not_fit_come_last():
    work = product(8, tile=8)
    roomy = choose(work, Cluster(4))
    peak = int(roomy.peak_memory.max())
    tight = choose(work, Cluster(4, memory=peak))
    assert tight.cost.over == 0
    none = choose(work, Cluster(4, memory=1000))
    assert none.cost.over == min(cost.over for cost in [none.cost, *none.rivals.values()] if not cost.pruned)
    assert "needs more memory than there is" in none.explain()


def test_faster_nodes_get_more():
    arrays = {name: tiled(64_000, tile=1000) for name in "AB"}
    nodes = [Node(flops=1e6), Node(flops=7e6)]
    plan = choose(Workload.of(programs.divided.bind(N=64), arrays), Cluster(nodes))
    done = np.bincount(plan.placement.nodes)
    assert done[1] >= 4 * done[0]
    assert plan.bytes_moved == 0


def test_an_explanation_has_the_bound_the_winner_and_the_losers():
    said = choose(product(4, tile=128), Cluster(4)).explain()
    for words in ("plan of accumulated_gemm", "placed by", "(taken)", "round-robin", "lshs-improved",
                  "product of 512×512 and 512×512, shared among 4 nodes: at least"):  # fmt: skip
        assert words in said
    assert "all there was to choose" in choose(product(2), Cluster(1)).explain()


def test_cholesky_is_placed_on_a_grid():
    work = Workload.of(cholesky_programs.cholesky.bind(N=16), {"A": tiled(16 * 64, 16 * 64, tile=64)})
    plan = choose(work, Cluster(4))
    assert plan.policy.endswith("2×2")
    assert plan.seconds < choose(work, Cluster(4), "round-robin").seconds


# ---- expressions


def array(*shape, chunks):
    return ln.asarray(np.broadcast_to(np.zeros(1), shape), chunks=chunks)


def rounds(plan):
    """The longest chain of messages of which each waits for the one before."""
    work, placement = plan.work, plan.placement
    waited = np.zeros(work.tiles, int)
    for task in work.order:
        operands = work.reads(task)
        away = placement.homes[operands] != placement.nodes[task]
        waited[work.writes(task)] = (waited[operands] + away).max(initial=0)
    return int(waited.max(initial=0))


@pytest.mark.parametrize("policy", ["auto", "lshs"])
@pytest.mark.parametrize("nodes", [1, 2, 3, 5, 8, 13, 16, 31, 64])
def test_the_table_of_the_thesis(nodes, policy):
    """Element-wise 0; sum and XᵀY k − 1 tiles, in ⌈log₂ k⌉ rounds.

    LSHS may take one tile more, to bring the result where its layout wants it: so does NumS.
    """
    x, y = (array(nodes * 300, 50, chunks=(100, 50)) for _ in range(2))
    cluster = Cluster(nodes)
    assert ln.plan(2 * x + y, cluster, policy).bytes_moved == 0
    for expression in (x.sum(axis=0), x.T @ y):
        plan = ln.plan(expression, cluster, policy)
        assert nodes - 1 <= plan.transfers <= nodes - (policy == "auto")
        assert rounds(plan) <= ceil(log2(nodes))


@pytest.mark.slow
@pytest.mark.parametrize("root", [2, 3, 4, 8])
def test_an_outer_product_receives_a_row_and_a_column(root):
    nodes, own = root * root, 2
    x, y = array(nodes * own * 50, 50, chunks=50), array(50, nodes * own * 50, chunks=50)
    plan = ln.plan(x @ y, Cluster(nodes))
    assert (plan.bytes_in == 2 * (root - 1) * own * 50 * 50 * 8).all()
    assert plan.bytes_moved == plan.lower_bound


def test_an_inner_product_of_512_tiles_on_16_nodes():
    """NumS' LSHS moves 256 elements, at most 48 into one node."""
    x, y = (array(2048, 4, chunks=4) for _ in range(2))
    plan = ln.plan(x.T @ y, Cluster(16))
    assert plan.bytes_moved == 240 * 8
    assert plan.bytes_in.max() <= 64 * 8


def test_a_sum_of_24_tiles_on_8_nodes_takes_7_messages():
    """NumS takes 14."""
    assert ln.plan(array(24, 10, chunks=(1, 10)).sum(axis=0), Cluster(8)).transfers == 7


def test_a_newton_step_moves_what_its_sums_are():
    """The gradient and the Hessian of a logistic regression: one tile of each from every node but one."""
    rows, d, nodes = 64, 16, 4
    x, y = array(rows * 1000, d, chunks=(1000, d)), array(rows * 1000, 1, chunks=(1000, 1))
    mu = 1 / (1 + ln.exp(-(x @ ln.asarray(np.zeros((d, 1))))))
    found = ln.plan([x.T @ (mu - y), x.T @ (mu * (1 - mu) * x)], Cluster(nodes))
    assert found.bytes_moved == (nodes - 1) * (d * d + d) * 8
    assert found.peak_memory.max() <= 1.1 * found.peak_memory.min()


# ---- release


def live_tiles(plan):
    """The most tiles that exist at one time: from the start of their task to the end of their last reader."""
    work, times = plan.work, plan.simulated
    born = np.where(work.producer >= 0, times.start[work.producer], 0.0)
    last = np.array([times.finish[work.reader[a:b]].max(initial=0.0) for a, b in
                     zip(work.reader_start[:-1], work.reader_start[1:], strict=True)])  # fmt: skip
    dead = np.where(work.kept, np.inf, last)
    moments = np.unique(born)
    return max(int(((born <= t) & (t < dead)).sum()) for t in moments)


@pytest.mark.parametrize(("nodes", "workers"), [(1, 1), (1, 3), (4, 1), (4, 2)])
def test_a_product_of_n_by_n_tiles_never_holds_more_than_3_n_squared_and_a_tile_a_worker(nodes, workers):
    n = 8
    plan = choose(product(n), Cluster(nodes, workers=workers))
    assert live_tiles(plan) <= 3 * n * n + nodes * workers
    if nodes == 1:
        assert plan.peak_memory[0] <= (3 * n * n + workers) * plan.work.tile_bytes[0]


@pytest.mark.parametrize("nodes", [1, 4])
def test_a_chain_of_products_needs_a_few_matrices(nodes):
    source = """
def powers(A: In, B: In, C: Out, S: Temp("A"), N: int, M: int):
    for m in range(M):
        for i in range(N):
            for j in range(N):
                S[m + 1, i, j] = gemm(S[m, i, 0:N], B[0:N, j])
    for i in range(N):
        for j in range(N):
            C[i, j] = testing_step(S[M, i, j])
"""
    program, n = TileProgram.from_source(source), 6
    a = tiled(24, 24, tile=4)
    held = [
        live_tiles(choose(Workload.of(program.bind(N=n, M=m), {"A": a, "B": a}), Cluster(nodes)))
        for m in (3, 10)
    ]
    assert held[1] <= held[0] + nodes <= 5 * n * n  # A, B, C, and two powers
