"""Bags in virtual time: reuse by age, selection, deadlines, budgets, fractions, gangs; and what plans say."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pytest

from linnet.errors import InputError
from linnet.fleet import Bag, FittedModel, Fleet, Simulated
from linnet.fleet.deciding import Decider
from linnet.fleet.laws import Exponential, Hyperexponential
from linnet.fleet.offers import Offer
from linnet.fleet.policies import (
    Reuse,
    after_loss,
    gang_hours,
    median_stopping,
    wanted_gangs,
    wants_on_demand,
)
from linnet.fleet.records import Added, Ended, Launch, Lost, Refused, Start, Stop, Up, from_text, to_text
from linnet.fleet.rules import Rules
from linnet.fleet.simulation import Lives, simulate_bag
from linnet.fleet.state import State

GOOGLE = FittedModel(Hyperexponential((0.7606, 0.1777, 0.0617), (0.009881, 0.6113, 6.397)), cap=24)
"""What was fitted to Google's preemptible servers of 2019."""


@pytest.mark.slow
def test_reuse_by_age_costs_little_more_than_no_preemption():
    """1,000 jobs of 6 h on 32 servers, all billed until the last job ends."""
    offer = Offer("s", "s", price=1.0, limit=32, boot=1 / 30, model=GOOGLE)
    calm = simulate_bag(Rules(hours=6.0), [replace(offer, model=None)], [6.0] * 1000).hours
    hours = {
        reuse: np.mean(
            [
                simulate_bag(Rules(hours=6.0, reuse=reuse), [offer], [6.0] * 1000, seed=i).hours
                for i in range(6)
            ]
        )
        for reuse in (True, False)
    }
    assert hours[True] / calm <= 1.065  # twenty seeds: benchmarks/fleet.py
    assert hours[False] / calm >= 1.25


@pytest.mark.slow
def test_the_rule_of_reuse_is_the_best_age_at_which_to_give_up():
    """Against brute force: servers that are given up after K jobs, for every K."""
    for length, boot in [(6.0, 1 / 30), (1.0, 0.1), (3.0, 0.5)]:
        reuse = Reuse(GOOGLE, length, boot)
        costs = {}
        for count in range(1, int((24 - boot) / length) + 1):
            random = np.random.default_rng(0)
            lives = np.asarray(GOOGLE.sample(4_000, random))
            end = np.minimum(lives, boot + count * length)
            done = np.floor((end - boot) / length + 1e-9).clip(0)
            costs[count] = end.sum() / done.sum()
        best = min(costs, key=costs.__getitem__)
        assert reuse.hours_per_job == pytest.approx(costs[best], rel=0.03)
        assert reuse.keep(boot + (best - 1) * length)
        assert not reuse.keep(24 - length / 2)
    assert Reuse(None, 6.0, 0.1).keep(1000.0)
    forever = Reuse(FittedModel(Exponential(0.1)), 2.0, 0.1)  # without memory age tells nothing
    assert all(forever.keep(age) for age in (0.1, 5.0, 50.0, 400.0))


def test_a_gang_is_lost_with_any_of_its_servers():
    law = FittedModel(Exponential(0.05))
    three = FittedModel(Exponential(0.15))
    assert gang_hours(law, 3, 4.0, 0.2) == pytest.approx(
        float(np.asarray(three.expected_time(4.0, restart=0.2))), rel=1e-4
    )
    offer = Offer("s", "s", cores=4, price=1.0, limit=9, boot=0.1, model=law)
    run = simulate_bag(Rules(cores=10, hours=2.0), [offer], [2.0] * 30, seed=1)
    assert run.done == 30
    starts = run.state.attempts
    assert starts == 30 + run.preemptions
    assert run.preemptions > 0


def test_small_jobs_share_a_server():
    run = simulate_bag(Rules(hours=1.0), [Offer("s", "s", cores=4, price=1.0, limit=2)], [1.0] * 16)
    assert run.hours == pytest.approx(2.0)
    assert run.cost == pytest.approx(4.0)


def four_types(random: np.random.Generator) -> tuple[list[Offer], list[float], int]:
    """The cheapest is slow, the fastest dies often; least E[C] 15% below the next."""
    laws = [0.01, 0.02, 0.05, 0.5]
    hours = [8.0, 4.0, 3.0, 1.5]
    goal = random.permutation([1.0, 1.15, 1.4, 1.9])
    offers = []
    for i in range(4):
        law = FittedModel(Exponential(laws[i]))
        expected = float(np.asarray(law.expected_time(hours[i], restart=0.05)))
        offers.append(Offer("s", f"type{i}", price=float(goal[i] / expected), limit=8, boot=0.05, model=law))
    return offers, hours, int(np.argmin(goal))


@pytest.mark.slow
def test_the_cheapest_type_is_found_by_one_job_each():
    right = 0
    for seed in range(20):
        random = np.random.default_rng(seed)
        offers, hours, best = four_types(random)
        noise = random.uniform(0.95, 1.05, (60, 4))
        run = simulate_bag(
            Rules(),
            offers,
            [1.0] * 60,
            seed=seed,
            factor=lambda job, offer, h=hours, n=noise: h[offer] * n[job, offer],
        )
        assert run.done == 60
        used = [0] * 4
        for job in run.state.jobs.values():
            used[job.offer] += 1
        assert sum(sorted(used)[:3]) <= 3
        right += used[best] == max(used)
        assert {each.name for each in run.decider.known.evidence} == {offer.name for offer in offers}
    assert right >= 19


def test_a_deadline_asks_for_more_servers_and_is_met():
    offer = Offer("s", "s", price=1.0, limit=100, boot=0.1, model=FittedModel(Exponential(0.02)))
    slow = simulate_bag(Rules(hours=2.0, deadline=60.0), [offer], [2.0] * 100, seed=0)
    fast = simulate_bag(Rules(hours=2.0, deadline=12.0), [offer], [2.0] * 100, seed=0)
    assert slow.hours <= 60
    assert fast.hours <= 12
    assert len(fast.state.servers) > 2 * len(slow.state.servers)


def test_time_too_short_for_spot_goes_to_on_demand():
    dying = FittedModel(Exponential(3.0))
    offers = [
        Offer("s", "s", price=0.3, limit=8, boot=0.05, model=dying),
        Offer("s", "s", price=1.0, market="on-demand", limit=8, boot=0.05),
    ]
    late = simulate_bag(Rules(hours=1.0, deadline=4.0), offers, [1.0] * 16, seed=1)
    assert late.hours <= 4.0
    assert any(offers[job.offer].market == "on-demand" for job in late.state.jobs.values())
    twice = simulate_bag(Rules(hours=1.0, on_demand_after=2), offers, [1.0] * 16, seed=1)
    assert twice.done == 16
    assert max(job.preemptions for job in twice.state.jobs.values()) == 2


@pytest.mark.parametrize("budget", [0.0, 1.0, 7.3, 20.0, 35.0])
def test_a_budget_is_never_passed(budget):
    offer = Offer("s", "s", price=1.0, limit=8, boot=0.1, model=FittedModel(Exponential(0.1)))
    for seed in range(5):
        run = simulate_bag(Rules(hours=1.0, budget=budget), [offer], [1.0] * 30, seed=seed)
        assert run.cost <= budget + 1e-9
        assert run.closed == "budget" or run.done == 30
    longer = simulate_bag(
        Rules(hours=0.5, budget=budget), [offer], [1.0] * 30
    )  # jobs take longer than was said
    assert longer.cost <= budget + 1e-9


def test_a_fraction_is_not_restarted():
    offer = Offer("s", "s", price=1.0, limit=8, boot=0.1, model=FittedModel(Exponential(0.3)))
    whole = simulate_bag(Rules(hours=2.0), [offer], [2.0] * 200, seed=0)
    part = simulate_bag(Rules(hours=2.0, fraction=0.8), [offer], [2.0] * 200, seed=0)
    assert part.done == 160
    assert part.cost < 0.9 * whole.cost


def test_refused_servers_are_asked_for_again_later():
    state = State(Rules(hours=1.0), [Offer("s", "s", price=1.0, limit=1)])
    decider = Decider(state)
    state.apply(Added(0.0, (0,)))
    assert decider.decide(0.0) == [Launch(0.0, 0, 0)]
    state.apply(Refused(0.0, 0, "InsufficientInstanceCapacity"))
    assert decider.decide(0.001) == []
    again = decider.wake(0.001)
    assert 0.001 < again < 1
    assert state.refusals[0][2] == "InsufficientInstanceCapacity"
    assert decider.decide(again) == [Launch(again, 1, 0)]
    assert state.cost(again) == 0


def test_events_that_come_late_or_twice_change_nothing():
    state = State(Rules(hours=1.0), [Offer("s", "s", price=1.0, limit=1)])
    decider = Decider(state)
    state.apply(Added(0.0, (0,)))
    decider.decide(0.0)
    state.apply(Up(0.1, 0))
    assert decider.decide(0.1) == [Start(0.1, 0, 0, (0,))]
    state.apply(Lost(0.5, 0))
    state.apply(Lost(0.6, 0))
    state.apply(Ended(0.7, 0, 0, 0.6))  # what a lost server says does not count
    assert (state.done, state.preemptions, state.jobs[0].state) == (0, 1, "waiting")
    assert state.cost() == pytest.approx(0.5)
    for record in (
        Added(0.5, (1, 2)),
        Start(1.0, 2, 3, (4,)),
        Ended(0.7, 0, 1, 0.6, True),
        Stop(1.0, 3, "why"),
    ):
        assert from_text(to_text(record)) == record


def test_records_make_the_same_state_again():
    offer = Offer("s", "s", price=1.0, limit=4, boot=0.1, model=FittedModel(Exponential(0.3)))
    kept: list[Any] = []

    class Keeping(State):
        def apply(self, record: Any) -> None:
            kept.append(record)
            super().apply(record)

    import linnet.fleet.simulation as simulation

    original = simulation.State
    simulation.State = Keeping  # type: ignore[misc]
    try:
        run = simulate_bag(Rules(hours=1.0), [offer], [1.0] * 40, seed=2)
    finally:
        simulation.State = original
    again = State(Rules(hours=1.0), [offer])
    for record in kept:
        again.apply(from_text(to_text(record)))
    assert again.cost() == run.state.cost()
    assert again.jobs == run.state.jobs
    assert again.preemptions == run.preemptions > 0


def test_small_policies():
    assert wanted_gangs(100, 2.0, 50.0) == 4
    assert wanted_gangs(100, 2.0, None) == 100
    assert wanted_gangs(100, 2.0, 1.0) == 100
    common: dict[str, Any] = {"boot": 0.1, "hours": 2.0, "servers": 4}
    assert after_loss(may_be_dropped=1, servers_left=3, smallest=4, **common) == "discard"
    assert after_loss(may_be_dropped=0, servers_left=3, smallest=4, **common) == "replenish"
    assert after_loss(may_be_dropped=0, servers_left=3, smallest=2, choice="smaller", **common) == "smaller"
    assert (
        after_loss(may_be_dropped=0, servers_left=3, smallest=2, boot=5.0, hours=2.0, servers=4) == "smaller"
    )
    assert (
        after_loss(may_be_dropped=1, servers_left=0, smallest=1, choice="replenish", **common) == "replenish"
    )
    assert wants_on_demand(3, 3, None, None, 0.0)
    assert not wants_on_demand(2, 3, None, None, 0.0)
    assert wants_on_demand(0, None, 2.0, 1.0, 0.1)
    assert not median_stopping([], [[(0, 1.0)]] * 3)
    assert not median_stopping([(0, 1.0)], [[(0, 2.0)]] * 3)
    assert median_stopping([(0, 3.0), (1, 3.0)], [[(0, 2.0), (1, 1.0)]] * 3)
    lives = Lives(GOOGLE, 3)
    assert lives(300) == Lives(GOOGLE, 3)(300)
    assert Lives(None, 0)(5) == inf


@pytest.mark.slow
def test_plans_show_alternatives_with_quantiles(tmp_path):
    bag = Bag("echo {x}", {"x": list(range(60))}, hours=3.0, deadline=40.0, folder=tmp_path / "bag")
    fleet = Fleet([Simulated(8, price=0.3, on_demand=1.0, boot=1 / 30)], model=GOOGLE)
    plan = bag.plan(fleet, runs=20)
    assert plan.cost.quantile(0.1) <= plan.cost.quantile(0.5) <= plan.cost.quantile(0.9)
    assert plan.no_preemption.cost.mean < plan.cost.mean < plan.on_demand.cost.mean
    assert plan.cost.mean <= plan.restart_always.cost.mean * 1.02
    assert plan.on_demand.cost.mean == pytest.approx(60 * 3 + 8 / 30, rel=0.1)
    assert 0 <= plan.deadline_risk <= 1
    assert "restart always" in str(plan)
    assert "deadline 40 h" in str(plan)
    assert not bag.storage.exists  # a plan writes nothing
    with pytest.raises(InputError, match="between 0 and 1"):
        plan.cost.quantile(2)
    with pytest.raises(InputError, match="no server can be asked for"):
        Bag("echo", {"x": [1]}, cores=99, hours=1.0, folder=tmp_path / "big").plan(fleet)


@pytest.mark.parametrize(
    "rules", [Rules(hours=6.0), Rules(hours=2.0, fraction=0.8), Rules(hours=3.0, deadline=40.0)]
)
def test_the_quick_way_decides_what_the_general_one_does(rules: Rules, monkeypatch: pytest.MonkeyPatch):
    model = FittedModel(Exponential(1 / 9), cap=24)
    offer = Offer("s", "s", price=1.0, limit=7, boot=0.1, model=model)
    hours = np.random.default_rng(3).uniform(0.5, 6.0, 60).tolist()
    quick = simulate_bag(rules, [offer], hours, seed=4)
    monkeypatch.setattr(Decider, "_one_kind", lambda self: None)
    general = simulate_bag(rules, [offer], hours, seed=4)
    assert quick.decider._only == 0
    assert general.decider._only is None
    assert (quick.cost, quick.hours, quick.done, quick.dropped, quick.preemptions) == (
        general.cost, general.hours, general.done, general.dropped, general.preemptions,
    )  # fmt: skip
    assert quick.state.lost_lives == general.state.lost_lives


def test_lives_are_the_same_in_whatever_order_they_are_asked_for():
    model = FittedModel(Exponential(0.2), cap=24)
    there, back = Lives(model, 5, 1), Lives(model, 5, 1)
    forward = [there(i) for i in range(3000)]
    assert [back(i) for i in reversed(range(3000))][::-1] == forward
    assert forward[:256] == np.asarray(model.sample(256, np.random.default_rng([5, 1, 0]))).tolist()


def test_a_metric_that_is_no_number_is_the_worst():
    others = [[(1, 1.0)], [(1, 2.0)], [(1, 3.0)]]
    assert median_stopping([(1, float("nan"))], others)
    assert not median_stopping([(1, 1.5)], [*others, [(1, float("nan"))], [(1, float("nan"))]])


@pytest.mark.parametrize("wrong", [{"deadline": "12"}, {"budget": "5"}, {"fraction": None}, {"hours": True}])
def test_numbers_that_are_texts_are_refused(wrong: dict[str, Any]):
    with pytest.raises(InputError, match=f"{next(iter(wrong))}=.*: give"):
        Rules(**wrong)
