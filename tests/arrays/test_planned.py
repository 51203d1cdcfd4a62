"""`ln.plan`: what would run where, for arrays and programs."""

from __future__ import annotations

import json

import numpy as np
import pytest

import linnet as ln
from linnet.algorithms.cholesky import cholesky
from linnet.algorithms.gemm import accumulated_gemm
from linnet.arrays.lowering.kept_programs import lowered
from linnet.engines.simulated import Simulated
from linnet.errors import InputError
from linnet.planning.calibration import Calibration
from linnet.planning.choosing import choose
from linnet.planning.workload import Workload
from linnet.session.work import Setting
from linnet.tiles import TiledArray, TileKey


def rows(count, width=4, height=4):
    return ln.asarray(np.zeros((count * height, width)), chunks=(height, width))


# ---- what must be reached


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [1, 2, 4, 8, 16, 32, 64])
def test_elementwise_moves_nothing(nodes):
    x, y = rows(4 * nodes), rows(4 * nodes)
    found = ln.plan(ln.exp(x) * y - x, ln.Cluster(nodes))
    assert (found.bytes_moved, found.transfers, found.lower_bound) == (0, 0, 0)
    assert len(np.unique(found.placement.nodes)) == nodes


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [2, 4, 8, 16, 32, 64])
def test_sums_and_tall_products_move_a_tile_less_than_there_are_nodes(nodes):
    x, y = rows(4 * nodes), rows(4 * nodes)
    rounds = int(np.ceil(np.log2(nodes)))
    for made in (x.sum(), x.T @ y):
        found = ln.plan(made, ln.Cluster(nodes))
        size = int(np.prod(made.shape)) * 8
        assert (found.transfers, found.bytes_moved) == (nodes - 1, (nodes - 1) * size)
        assert found.bytes_in.max() <= rounds * size


@pytest.mark.slow
@pytest.mark.parametrize(("nodes", "each"), [(4, 1), (4, 3), (16, 2), (64, 1)])
def test_wide_products_move_what_rows_and_columns_of_nodes_lack(nodes, each):
    x, y = rows(each * nodes), rows(each * nodes)
    found = ln.plan(x @ y.T, ln.Cluster(nodes))
    most = 2 * (int(np.sqrt(nodes)) - 1) * each
    assert found.transfers <= nodes * most
    assert found.bytes_in.max() <= most * 4 * 4 * 8


def test_a_reduction_of_24_tiles_on_8_nodes():
    x = ln.asarray(np.zeros((24, 10)), chunks=(1, 10))
    assert ln.plan(x.sum(), cluster=ln.Cluster(nodes=8)).transfers == 7


def test_a_tall_product_on_16_nodes():
    found = ln.plan(rows(512).T @ rows(512), ln.Cluster(nodes=16, grid=(4, 4)))
    assert found.bytes_moved == 240 * 8
    assert found.bytes_in.max() <= 64 * 8


def test_a_square_product_on_16_nodes():
    x, y = (ln.asarray(np.full((64, 64), each), chunks=4) for each in (1.0, 2.0))
    found = ln.plan(x @ y, ln.Cluster(nodes=16, grid=(4, 4)))
    assert found.bytes_moved <= 24_576 * 8
    assert found.bytes_in.max() <= 1_536 * 8


# ---- what can be planned


def test_several_arrays_share_what_they_share():
    x = rows(32) + 1
    both = ln.plan((x.sum(), x.max()), ln.Cluster(4))
    one = ln.plan(x.sum(), ln.Cluster(4))
    assert both.tasks < 2 * one.tasks


def test_nothing_is_computed():
    def refuse(block):
        raise AssertionError("a plan computes nothing")

    x = ln.map_blocks(refuse, rows(8), dtype="float64")
    assert ln.plan(x.sum(), ln.Cluster(2)).tasks > 8


def test_without_a_cluster_it_is_the_engine_in_use():
    with ln.init(workers=3, memory="1 GB"):
        found = ln.plan(rows(8).sum())
    assert (found.cluster.count, found.cluster.workers) == (1, 3)
    assert found.cluster.nodes[0].memory == 10**9
    assert found.bytes_moved == 0


def test_the_simulated_engine_plans_as_it_would_run():
    slow = Calibration({"gemm": ((1.0, 10.0),)}, memory=10.0)
    with ln.init(Simulated(cluster=ln.Cluster(2, flops=10.0), policy="round-robin", calibration=slow)):
        found = ln.plan(rows(8).sum())
        assert found.policy == "round-robin"
        assert found.seconds > 1
        assert ln.plan(rows(8).sum(), policy="locality").policy.startswith("locality")


def test_a_program_by_the_size_of_its_tiles():
    bound = cholesky.bind(N=6)
    found = ln.plan(bound, ln.Cluster(4), tile=64)
    assert found.tasks == bound.count()
    assert found.work.tile_bytes.tolist() == [64 * 64 * 8] * found.work.tiles
    half = ln.plan(bound, ln.Cluster(4), tile={"A": (64, 64)}, dtype="float32")
    assert half.bytes_moved * 2 == found.bytes_moved


def test_a_program_by_its_inputs():
    bound = accumulated_gemm.bind(M=2, N=2, K=2)
    given = ln.asarray(np.zeros((10, 10)), chunks=5)
    plans = [
        ln.plan(bound, ln.Cluster(4), inputs={"A": given, "B": other})
        for other in (given, TiledArray.from_numpy(np.zeros((10, 10)), 5))
    ]
    assert [plan.tasks for plan in plans] == [8, 8]
    assert ln.plan(bound, ln.Cluster(4), inputs={"A": given}, tile=5).bytes_moved == plans[0].bytes_moved


@pytest.mark.parametrize(
    ("what", "keywords", "words"),
    [
        (5, {}, "plan was given a int; give it an array"),
        ([], {}, "plan was given a list"),
        (
            cholesky.bind(N=2),
            {},
            r"cholesky reads A, and nothing says how it is cut; give inputs={'A': array}",
        ),
        (cholesky.bind(N=2), {"tile": (4, 4, 4)}, "A has 2 axes; give as many sizes"),
        (cholesky.bind(N=2), {"tile": 4, "inputs": {"B": np.zeros(3)}}, "takes the arrays A; not known: B"),
        (cholesky.bind(N=2), {"inputs": {"A": "x"}}, "input A is a str; give an array"),
        (ln.asarray(np.zeros(3)), {"tile": 4}, "inputs= and tile= are for bound programs"),
        (ln.asarray(np.zeros(3)), {"cluster": 4}, "cluster=4: give an ln.Cluster"),
        (rows(4) + 1, {"policy": "best"}, "policy 'best' is not known"),
    ],
)
def test_mistakes_are_explained(what, keywords, words):
    with pytest.raises(InputError, match=words):
        ln.plan(what, **{"cluster": ln.Cluster(2), **keywords})


# ---- how it looks


def test_a_plan_as_text_table_picture_and_trace(tmp_path):
    found = ln.plan(rows(16).T @ rows(16), ln.Cluster(nodes=4, workers=2))
    assert "plan of expression" in repr(found)
    assert "in 3 transfers; at least 384 bytes (1.00 times)" in repr(found)
    assert [row["node"] for row in found.table()] == [0, 1, 2, 3]
    assert sum(row["tasks"] for row in found.table()) == found.tasks
    assert found._repr_html_().count("<svg") == 2
    found.trace(tmp_path / "plan.json")
    events = json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))["traceEvents"]
    assert sum(event["ph"] == "X" for event in events) == found.tasks
    assert sum(event["ph"] == "s" for event in events) == found.transfers


@pytest.mark.parametrize("nodes", [1, 2, 5, 8, 13, 64])
def test_arrays_that_tasks_make_are_spread_as_others(nodes):
    x = ln.random.default_rng(0).standard_normal(12 * nodes, chunks=4)
    assert ln.plan(x.sum(), ln.Cluster(nodes)).transfers == nodes - 1
    found = ln.plan(2 * x + 1, ln.Cluster(nodes))  # numbers and seeds go along with tasks
    assert found.transfers == 0
    assert len(np.unique(found.placement.nodes)) == nodes


@pytest.mark.parametrize("nodes", [4, 16])
def test_sums_and_products_of_persisted_arrays_stay_where_these_are(nodes):
    """What an expression left on the nodes is cut as the trees of later ones are."""
    cluster, x = ln.Cluster(nodes), rows(8 * nodes)
    made = ln.plan(x + rows(8 * nodes), cluster)
    keys = [made.work.key(tile) for tile in range(made.work.tiles)]
    homes = {
        key.index: int(made.placement.homes[tile])
        for tile, key in enumerate(keys)
        if key.array.startswith("R")
    }
    for later in (x.sum(), x.T @ x):
        program, graph = lowered([later.__node__], Setting.on(cluster))
        inputs = {name: TiledArray(graph.entries[n].node.layout, x.dtype, {}) for name, n in program.inputs}
        turned = {name: array.grid[0] == 1 for name, array in inputs.items()}
        known = {
            TileKey(name, index[::-1] if turned[name] else index): home
            for name in inputs
            for index, home in homes.items()
        }
        work = Workload.of(program.bound, inputs, known)
        assert choose(work, cluster).transfers == nodes - 1
