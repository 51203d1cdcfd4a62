"""Checkpoint plans: the recursion by brute force, and jobs run at random by the plan."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import inf

import numpy as np
import pytest

from linnet.errors import InputError
from linnet.fleet import FittedModel, Lifetimes, Model
from linnet.fleet.laws import Exponential, Hyperexponential, Lomax, SciSpot, Weibull

MINUTE = 1 / 60
MODELS: dict[str, Model] = {
    "mixture": FittedModel(Hyperexponential((0.7, 0.3), (0.05, 3.0)), 24.0),
    "lomax": FittedModel(Lomax(0.4, 0.16, 0.01), 24.0),
    "scispot": FittedModel(SciSpot(0.4, 0.5, 0.8, 24.0), 24.0),
    "short cap": FittedModel(Exponential(0.3), 2.0),
    "no cap": FittedModel(Weibull(0.6, 4.0), None),
    "staircase": Lifetimes([0.2, 0.5, 0.9, 1.4, 3], [1, 1, 1, 0, 1]).kaplan_meier(),
}


def brute_force(model: Model, work: int, cost: int, restart: float, age: int, unit: float) -> float:
    """The recursion as it is written, in whole units."""

    @cache
    def s(t: int) -> float:
        return float(np.asarray(model.survival(round(t * unit, 9))))

    @cache
    def area(t: int) -> float:
        return float(np.asarray(model.integral(round(t * unit, 9))))

    @cache
    def v(w: int, a: int) -> float:
        if w == 0:
            return 0.0
        best = inf
        for i in range(1, w + 1):
            length = i if i == w else i + cost
            if a == 0:
                if s(length) > 0:
                    here = (area(length) + (1 - s(length)) * restart) / s(length)
                    best = min(best, here + v(w - i, length))
                continue
            q = s(a + length) / s(a) if s(a) > 0 else 0.0
            spent = (area(a + length) - area(a)) / s(a) if s(a) > 0 else 0.0
            again = (1 - q) * (restart + v(w, 0)) if q < 1 else 0.0
            best = min(best, spent + (q * v(w - i, a + length) if q > 0 else 0.0) + again)
        return best

    return v(work, age)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("work", "cost", "restart", "age"), [(8, 1, 0.0, 0), (14, 1, 0.1, 0), (12, 2, 0.05, 3), (10, 0, 0.2, 7)]
)
def test_plans_are_the_optimum_of_the_recursion(name: str, work: int, cost: int, restart: float, age: int):
    unit = 5 * MINUTE
    plan = MODELS[name].checkpoints(work * unit, cost * unit, restart, age * unit, step=unit)
    assert plan.expected == pytest.approx(brute_force(MODELS[name], work, cost, restart, age, unit), rel=1e-8)
    assert sum(plan.intervals) == pytest.approx(work * unit)
    assert plan.expected <= plan.young_daly * (1 + 1e-9)
    assert plan.expected <= plan.uninterrupted * (1 + 1e-9)


def run_by_plan(plan, end: float, fresh: Iterator[float]) -> float:
    """One job, done as the plan says, on a server that lives until `end` and then on fresh ones."""
    spent, left, age = 0.0, plan.work, plan.age
    parts = list(plan.intervals)
    while True:
        length = parts[0] + (plan.cost if len(parts) > 1 else 0.0)
        if age + length < end - 1e-9:
            spent, age, left = spent + length, age + length, left - parts.pop(0)
            if not parts:
                return spent
        else:
            spent += end - age + plan.restart
            age, end = 0.0, next(fresh)
            parts = list(plan.after_loss(max(left, 0.0)))


@pytest.mark.parametrize("name", ["mixture", "short cap"])
@pytest.mark.parametrize("age", [0.0, 1.5])
def test_jobs_run_by_the_plan_take_what_it_says(name: str, age: float):
    # The cost is no multiple of the step, so ages lie between those of the table.
    plan = MODELS[name].checkpoints(1.5, 0.04, restart=0.1, age=age, step=5 * MINUTE)
    first = np.asarray(MODELS[name].sample(1500, 0, age=age))
    fresh = iter(np.asarray(MODELS[name].sample(20_000, 1)).tolist())
    times = [run_by_plan(plan, float(end), fresh) for end in first]
    assert np.mean(times) == pytest.approx(plan.expected, abs=4 * np.std(times) / np.sqrt(len(times)))


def test_without_memory_the_intervals_are_those_of_young_and_daly():
    model = FittedModel(Exponential(0.05))
    plan = model.checkpoints(work=6, cost=MINUTE, step=5 * MINUTE)
    rule = np.sqrt(2 * MINUTE * 20)
    assert np.allclose(plan.intervals, rule, atol=0.15)
    assert plan.expected == pytest.approx(plan.young_daly, rel=0.002)


def test_free_checkpoints_are_taken_all_the_time_and_dear_ones_never():
    model = FittedModel(Exponential(0.5))
    assert len(model.checkpoints(1, 0, step=0.1).intervals) == 10
    assert model.checkpoints(1, 5, step=0.1).intervals == (1.0,)


def test_nobody_plans_to_reach_the_cap():
    plan = FittedModel(Exponential(1e-4), 24.0).checkpoints(5, MINUTE, age=20, step=3 * MINUTE)
    saved = np.cumsum(np.array(plan.intervals) + MINUTE)
    assert any(abs(20 + end - 24) < 0.2 and 20 + end < 24 - 1e-9 for end in saved)
    assert plan.expected < 5.2


def test_jobs_of_days():
    model = FittedModel(Hyperexponential((0.7, 0.3), (0.05, 3.0)), 24.0)
    plan = model.checkpoints(30, MINUTE, restart=0.1, step=15 * MINUTE)
    assert sum(plan.intervals) == pytest.approx(30)
    assert 30 < plan.expected < plan.young_daly
    assert plan.uninterrupted == inf
    assert "30 h of work in parts of" in str(plan)


def test_the_steps_of_a_long_job_cost_nothing_that_counts(monkeypatch: pytest.MonkeyPatch):
    model = MODELS["mixture"]
    fine = model.checkpoints(2, MINUTE, restart=0.1).expected
    monkeypatch.setattr("linnet.fleet.checkpoints.EXACT", 40)
    monkeypatch.setattr("linnet.fleet.checkpoints.AGES", 30)
    assert model.checkpoints(2, MINUTE, restart=0.1).expected == pytest.approx(fine, rel=1e-3)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"work": 0}, "work must be hours above 0, not 0"),
        ({"work": inf}, "work must be hours above 0, not inf"),
        ({"cost": -1}, "cost must be hours of at least 0, not -1"),
        ({"age": 24}, "no server reaches an age of 24 h"),
    ],
)
def test_plans_that_cannot_be_made(given: dict[str, float], words: str):
    with pytest.raises(InputError, match=words):
        MODELS["mixture"].checkpoints(**{"work": 1.0, "cost": 0.1, **given})


def test_more_left_than_there_is():
    plan = MODELS["mixture"].checkpoints(1, MINUTE)
    assert plan.after_loss(0) == ()
    with pytest.raises(InputError, match="left must lie between 0 and the 1 h of work, not 2"):
        plan.after_loss(2)
