"""A plan to look at, and what it is made from: pictures are well-formed, traces complete, sums right."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import linnet as ln
from linnet.algorithms.cholesky import cholesky
from linnet.errors import InputError
from linnet.planning.calibration import Calibration, calibrate
from linnet.planning.choosing import choose
from linnet.planning.cluster import Cluster, Node
from linnet.planning.views import Table, duration
from linnet.planning.views_html import busy, matrix, timeline
from linnet.planning.workload import Workload
from linnet.tiles import Layout, TiledArray


def planned(n, cluster, policy="round-robin"):
    a = TiledArray(Layout.regular((n * 64, n * 64), 64), np.dtype(float), {})
    return choose(Workload.of(cholesky.bind(N=n), {"A": a}), cluster, policy)


def marks(picture):
    root = ElementTree.fromstring(picture)
    return [each for each in root.iter() if each.tag.endswith("rect")]


@pytest.mark.parametrize(
    ("n", "cluster"),
    [
        (3, Cluster(1)),
        (6, Cluster([Node(workers=2), Node(), Node(workers=3)])),
        (6, Cluster(nodes=70, workers=2)),
        (26, Cluster(nodes=4)),
    ],
)
def test_pictures_are_well_formed_and_show_everything(n, cluster):
    plan = planned(n, cluster)
    drawn = marks(timeline(plan))
    if plan.tasks <= 2000 and cluster.workers <= 48:
        assert sum(each.find("*") is not None for each in drawn) == plan.tasks
    else:
        assert drawn
    cells = [each for each in marks(matrix(plan)) if each.find("*") is not None]
    assert bool(cells) == bool(plan.bytes_moved)
    ElementTree.fromstring(plan._repr_html_())
    assert len(plan._repr_html_()) < 1_500_000


@given(
    st.lists(st.tuples(st.floats(0, 9), st.floats(0, 1), st.integers(0, 2)), min_size=1, max_size=20),
    st.integers(1, 7),
)
def test_how_busy_workers_are_is_what_tasks_fill(tasks, bins):
    start = np.array([task[0] for task in tasks])
    finish = start + [task[1] for task in tasks]
    row = np.array([task[2] for task in tasks])
    seconds = 10.0
    edges = np.linspace(0, seconds, bins + 1)
    expected = np.zeros((3, bins))
    for first, last, lane in zip(start, finish, row, strict=True):
        overlap = np.minimum(last, edges[1:]) - np.maximum(first, edges[:-1])
        expected[lane] += np.maximum(overlap, 0) * bins / seconds
    assert np.allclose(busy(start, finish, row, 3, seconds, bins), expected, atol=1e-9)


def test_a_trace_has_every_task_where_it_ran_and_every_transfer_between_its_ends(tmp_path):
    plan = planned(5, Cluster(nodes=3, workers=2))
    plan.trace(tmp_path / "plan.json")
    events = json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    assert len(slices) == plan.tasks
    for event, task in zip(slices, plan.tasks, strict=True):
        assert (event["name"], event["pid"]) == (task.kernel, task.node)
        assert event["ts"] == pytest.approx(task.start * 1e6, abs=1e-2)
    begins = {event["id"]: event for event in events if event["ph"] == "s"}
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    made = [each for each in plan.transfers if each.tile.array != "A"]  # inputs come from nowhere
    assert begins.keys() == ends.keys()
    assert len(begins) == len(made)
    assert sorted((begins[k]["name"], ends[k]["pid"]) for k in ends) == sorted(
        (repr(each.tile), each.target) for each in made
    )
    for number, begin in begins.items():
        assert begin["ts"] <= ends[number]["ts"]
        assert any(
            (each["pid"], each["tid"]) == (begin["pid"], begin["tid"])
            and each["ts"] <= begin["ts"] <= each["ts"] + each["dur"]
            for each in slices
        )


def test_tables_print_and_are_lists():
    found = planned(4, Cluster(nodes=2)).table()
    assert isinstance(found, list)
    assert str(found).startswith("node  workers  tasks  busy  received")
    assert "<td>" in found.html()
    assert (str(Table()), Table().html()) == ("(no rows)", "<p>(no rows)</p>")
    assert duration(0) == "0.0 s"


# ---- calibrations


@pytest.mark.slow
def test_a_calibration_is_saved_and_loaded(tmp_path):
    measured = calibrate(sizes=(8, 32))
    measured.save(tmp_path / "machine.json")
    assert Calibration.load(tmp_path / "machine.json") == measured
    (tmp_path / "other.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match="holds no calibration"):
        Calibration.load(tmp_path / "other.json")


@pytest.mark.parametrize(
    ("rates", "memory", "words"),
    [
        ({}, 1.0, "needs rates of gemm; got none"),
        ({"gemm": ()}, 1.0, "give pairs of operations"),
        ({"gemm": ((2.0, 1.0), (1.0, 1.0))}, 1.0, "in ascending order"),
        ({"gemm": ((1.0, -1.0),)}, 1.0, "above 0"),
        ({"gemm": ((1.0, 1.0),)}, 0.0, "memory=0.0"),
    ],
)
def test_wrong_calibrations_are_refused(rates, memory, words):
    with pytest.raises(InputError, match=words):
        Calibration(rates, memory)


def test_times_of_tasks_come_from_rates_by_size_and_from_memory():
    a = TiledArray(Layout.regular((64, 64), 32), np.dtype(float), {})
    work = Workload.of(cholesky.bind(N=2), {"A": a})
    known = Calibration({"gemm": ((1.0, 1e9),), "trsm": ((2.0**14, 1e6), (2.0**16, 3e6))}, memory=1e3)
    seconds = known.seconds(work, Cluster(1, flops=1e9))
    names = [work.bound.program.statements[number].kernel for number in work.statement]
    by_kernel = dict(zip(names, seconds.tolist(), strict=True))
    assert by_kernel["trsm"] == pytest.approx(2**15 / 2e6)
    assert by_kernel["chol"] == pytest.approx(2 * 32 * 32 * 8 / 1e3)  # not measured: memory is the limit
    assert by_kernel["syrk"] == pytest.approx(3 * 32 * 32 * 8 / 1e3)  # one operand is another, too


@pytest.mark.parametrize("function", [ln.linalg.eig, ln.linalg.eigvals])
def test_a_plan_says_what_one_task_takes_whole(function):
    a = ln.asarray(np.eye(60), chunks=17)
    found = ln.plan(function(a @ a), Cluster(3))
    name = f"lapack.{function.__name__}"
    node = next(task.node for task in found.tasks if task.kernel == name)
    for said in (found.explain(), repr(found)):
        assert f"gathered   28.8 kB on node {node}, for {name}: one task takes it whole" in said
    assert "gathered" in found._repr_html_()
    assert "gathered" not in ln.plan(ln.linalg.eigvalsh(a @ a), Cluster(3)).explain()


def test_a_kernel_of_ones_own_can_say_that_it_gathers():
    @ln.kernel("views_whole", shape=lambda x: x, gathers=True)
    def views_whole(x):
        return x

    program = ln.TileProgram.from_source("""
    def both(A: In, B: Out, N: int):
        for i in range(N):
            B[i] = views_whole(A[i])
    """)
    a = TiledArray.from_numpy(np.zeros(10), tile=6)
    found = choose(Workload.of(program.bind(N=2), {"A": a}), Cluster(1))
    said = "gathered 48 bytes on node 0, for views_whole: the largest of 2 tasks that take whole arrays"
    assert said in " ".join(found.explain().split())
