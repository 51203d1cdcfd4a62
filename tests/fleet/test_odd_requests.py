"""Bags, servers and parameters that nobody should ask for: refused in plain words, or done as they are."""

from __future__ import annotations

import csv
import json
import sys
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from linnet.errors import InputError
from linnet.fleet import Bag, FittedModel, Fleet, Lifetimes, Local, Simulated
from linnet.fleet.laws import Exponential
from linnet.fleet.offers import Offer
from linnet.fleet.rules import Rules
from linnet.fleet.simulation import simulate_bag

SAYS = [
    sys.executable, "-S", "-c",
    "import json, os, sys; json.dump(sys.argv[1], open(os.environ['LINNET_RESULT'], 'w'))",
]  # fmt: skip


def test_any_text_reaches_a_job_as_it_is(tmp_path):
    marker = tmp_path / "run"
    texts = [
        "a'b\"c", "x y\n z", "ü\U0001f600", f"$(touch {marker})", f"`touch {marker}`", f"; touch {marker}", "{p}",
        "{q}", "", "-rf", "\\", "\t", "a\u2028b", "\x01", "%s", "*",
    ]  # fmt: skip
    bag = Bag([*SAYS, "{p}"], {"p": texts}, folder=tmp_path / "bag")
    table = bag.run(Fleet([Local(2)])).table()
    assert [row["result"] for row in table] == texts
    assert [row["p"] for row in table] == texts
    assert not marker.exists()


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_text_that_no_command_line_can_hold_is_refused(tmp_path, text):
    with pytest.raises(InputError, match="cannot stand in a command line"):
        Bag(["echo", "{p}"], {"p": ["fine", text]}, folder=tmp_path / "bag")
    bag = Bag("true", {"p": [text]}, folder=tmp_path / "bag")  # it is in LINNET_PARAMETERS alone
    assert [row["state"] for row in bag.run(Fleet([Local(1)])).table()] == ["done"]
    with pytest.raises(InputError, match="cannot stand"):
        Bag(["echo", "{p}"], {"p": ["x"]}, folder=tmp_path / "other").add({"p": [text]})


def test_a_command_line_that_is_too_long_fails_its_own_job(tmp_path):
    bag = Bag(["echo", "{p}"], {"p": ["x" * 3_000_000, "y"]}, retries=0, folder=tmp_path / "bag")
    rows = bag.run(Fleet([Local(1)])).table()
    assert [(row["state"], row["exit_status"], row["preemptions"]) for row in rows] == [
        ("failed", 127, 0),
        ("done", 0, 0),
    ]


def test_a_bag_with_nan_is_the_same_bag_again(tmp_path):
    for _ in range(2):
        bag = Bag("true", {"p": [nan, inf]}, folder=tmp_path / "bag")
        assert [row["state"] for row in bag.run(Fleet([Local(1)])).table()] == ["done", "done"]


def test_a_budget_of_nothing_buys_nothing(tmp_path):
    """Not even a moment of a server; what is free runs."""
    bag = Bag("true", {"i": [1]}, budget=0, folder=tmp_path / "paid")
    bag.run(Fleet([Local(1, price=1.0)]))
    assert (bag.state().cost(), bag.state().closed) == (0.0, "budget")
    assert not list((bag.folder / "servers").iterdir())
    free = Bag("true", {"i": [1]}, budget=0, folder=tmp_path / "free")
    assert [row["state"] for row in free.run(Fleet([Local(1)])).table()] == ["done"]
    run = simulate_bag(Rules(budget=0.0), [Offer("s", "s", price=1.0)], [1.0])
    assert (run.cost, run.closed) == (0.0, "budget")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"price": nan}, "price=nan"), ({"price": -1.0}, "price=-1"), ({"cores": 0}, "cores=0"),
        ({"boot": inf}, "boot=inf"), ({"boot": -1.0}, "boot=-1"), ({"job_speed": 0.0}, "speed=0"),
    ],
)  # fmt: skip
def test_servers_that_cannot_be_are_refused(tmp_path, options, word):
    bag = Bag("true", {"i": [1]}, hours=1, folder=tmp_path / "bag")
    with pytest.raises(InputError, match=word):
        bag.plan(Fleet([Simulated(2, **options)]))


def test_rules_and_plans_that_cannot_be_are_refused(tmp_path):
    impossible: list[dict[str, Any]] = [
        {"hours": inf},
        {"checkpoint": inf},
        {"memory": inf},
        {"fraction": 0},
        {"budget": nan},
    ]
    for options in impossible:
        with pytest.raises(InputError, match=next(iter(options))):
            Bag("true", {"i": [1]}, folder=tmp_path / "bag", **options)
    with pytest.raises(InputError, match="runs=-3"):
        Bag("true", {"i": [1]}, hours=1, folder=tmp_path / "bag").plan(Fleet([Simulated(2)]), runs=-3)
    with pytest.raises(InputError, match="speed=inf"):
        Local(1, speed=inf)


def test_jobs_that_outlive_every_server_are_not_simulated_for_ever(tmp_path):
    dying = Fleet([Simulated(2, model=FittedModel(Exponential(5.0), cap=1))])
    long = Bag("true", {"i": [1]}, hours=100, folder=tmp_path / "bag")
    with pytest.raises(InputError, match="again and again.*checkpoint"):
        long.plan(dying, runs=2)
    saving = Bag("true", {"i": [1]}, hours=20, checkpoint=1 / 60, folder=tmp_path / "other")
    assert saving.plan(dying, runs=2).hours.mean > 20
    sure = Fleet([Simulated(2, model=FittedModel(Exponential(5.0), cap=1), on_demand=3.0)])
    assert long.plan(sure, runs=2).done.mean == 1


def test_a_deadline_that_is_over_is_no_reason_to_stop(tmp_path):
    bag = Bag("true", {"i": [1, 2, 3]}, deadline=1e-9, folder=tmp_path / "bag")
    assert [row["state"] for row in bag.run(Fleet([Local(1)])).table()] == ["done"] * 3


def test_losses_of_a_real_cluster_come_together(shared):
    """Node by node from a trace of additions and removals; the same lives begun at random moments do not."""
    for name in ("p3", "g4dn"):
        rows = list(csv.reader(Path(shared(f"preemption/traces/{name}-trace.csv")).read_text().splitlines()))
        since: dict[str, float] = {}
        lives: list[tuple[float, float]] = []
        for moment, what, node in rows:
            at = float(moment) / 3.6e6
            if what == "add":
                since[node] = at
            elif node in since:
                begun = since.pop(node)
                lives.append((begun, at - begun))
        begun, hours = np.array(lives).T
        lost = [True] * len(lives)
        real = Lifetimes(hours, lost, launched=begun.tolist()).together(0.1)
        random = np.random.default_rng(0)
        apart = [
            Lifetimes(hours, lost, launched=(random.uniform(0, begun.max(), len(hours))).tolist()).together(
                0.1
            )
            for _ in range(5)
        ]
        assert real > 0.08, json.dumps([name, real, apart])
        assert real > 3 * float(np.mean(apart)), json.dumps([name, real, apart])
