"""Jobs that save themselves, in virtual time: by the controller's own schedule, against the recursion."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from linnet.fleet import Bag, FittedModel, Fleet, Simulated
from linnet.fleet.checkpoints import Schedule
from linnet.fleet.gangs import Gang, gang_model
from linnet.fleet.laws import Exponential, Hyperexponential
from linnet.fleet.offers import Offer
from linnet.fleet.policies import Reuse, expected_cost
from linnet.fleet.rules import Rules
from linnet.fleet.simulation import simulate_bag

GOOGLE = FittedModel(Hyperexponential((0.7606, 0.1777, 0.0617), (0.009881, 0.6113, 6.397)), cap=24)
SHORT = FittedModel(Exponential(1 / 4))


@pytest.mark.parametrize("model", [GOOGLE, SHORT], ids=["google", "exponential"])
@pytest.mark.parametrize("work", [0.2, 5.0, 20.0])
def test_a_schedule_is_the_plan_of_every_age(model, work):
    found = Schedule(model, work, 1 / 60, 0.1)
    for age in (0.0, 3.0, 20.0):
        plan = model.checkpoints(work, 1 / 60, 0.1, age, max(1 / 60, work / 60))
        assert found.expected(age) == pytest.approx(plan.expected, rel=1e-3)
    assert found.intervals(work, 0.0) == pytest.approx(model.checkpoints(
        work, 1 / 60, 0.1, 0, max(1 / 60, work / 60)
    ).intervals)  # fmt: skip


def test_intervals_sum_to_what_is_left_at_any_age():
    found = Schedule(GOOGLE, 5.0, 1 / 60, 0.1)
    for left in (5.0, 4.99, 2.51, 0.73, 0.5):
        for age in (0.0, 0.3, 7.77, 23.5, 23.99):
            parts = found.intervals(left, age)
            assert parts is not None
            assert sum(parts) == pytest.approx(left)
            assert min(parts) > 0
    late = found.intervals(-1.0, 0.0)  # a job that takes longer than was thought
    assert late is not None
    assert sum(late) == pytest.approx(0.5)
    assert found.intervals(5.0, 24.0) is None


@pytest.mark.parametrize("model", [GOOGLE, SHORT], ids=["google", "exponential"])
def test_simulated_jobs_take_as_long_as_the_recursion_says(model):
    """A job after the other on one server, which is replaced at once when it is lost."""
    offer = Offer("s", "s", price=1.0, limit=1, model=model)
    rules = Rules(hours=5.0, checkpoint=1 / 60, reuse=False)
    hours = [simulate_bag(rules, [offer], [5.0], seed=i).hours for i in range(150)]
    error = float(np.std(hours)) / np.sqrt(len(hours))
    assert abs(np.mean(hours) - Schedule(model, 5.0, 1 / 60, 0.0).expected()) <= 3.5 * error


def test_what_was_saved_is_not_done_again():
    """By hand: the first server dies after 3 h, the second lives on."""
    offer = Offer("s", "s", price=1.0, limit=1, model=SHORT)
    parts = Schedule(SHORT, 5.0, 0.1, 0.0).intervals(5.0, 0.0)
    assert parts is not None
    saved, spent = 0.0, 0.0
    for part in parts[:-1]:
        if spent + part + 0.1 > 3.0:
            break
        saved, spent = saved + part, spent + part + 0.1
    rest = Schedule(SHORT, 5.0, 0.1, 0.0).intervals(5.0 - saved, 0.0)
    assert rest is not None
    run = simulate_bag(
        Rules(hours=5.0, checkpoint=0.1), [offer], [5.0], lives=[lambda number: inf if number else 3.0]
    )
    assert 0 < saved < 3
    assert run.preemptions == 1
    assert run.hours == pytest.approx(3.0 + sum(rest) + 0.1 * (len(rest) - 1))
    (seen,) = run.state.measured.values()
    assert seen.mean == pytest.approx(5.0)  # the whole job, not what its last attempt did
    again = simulate_bag(Rules(hours=5.0), [offer], [5.0], lives=[lambda number: inf if number else 3.0])
    assert again.hours == pytest.approx(8.0)


def test_a_plan_of_jobs_that_save_themselves_costs_less(tmp_path):
    fleet = Fleet([Simulated(4, price=1.0, boot=0.05, model=SHORT)])
    plans = [
        Bag("true", {"x": list(range(12))}, hours=6, checkpoint=cost, folder=tmp_path / str(cost)).plan(
            fleet, runs=5
        )
        for cost in (None, 1 / 60)
    ]
    assert plans[1].cost.mean < 0.7 * plans[0].cost.mean
    assert plans[1].no_preemption is not None
    assert plans[1].no_preemption.cost.mean == pytest.approx(12 * 6 + 4 * 0.05)  # nothing to save for


def test_types_are_chosen_by_what_jobs_cost_that_save_themselves():
    """Beginning again, a server that dies often is too dear; saving, it is worth its price."""
    often = Offer("s", "often", price=0.5, limit=4, model=FittedModel(Exponential(0.5)), speed=1.0)
    schedule = Schedule(FittedModel(Exponential(0.5)), 5.0, 1 / 60, 0.0)
    assert expected_cost(often, 1, 5.0)[1] > 5.0
    assert expected_cost(often, 1, 5.0, schedule)[1] < 3.5
    seldom = Offer("s", "seldom", price=1.0, limit=4, speed=1.0)
    for cost, best in ((None, 1), (1 / 60, 0)):
        run = simulate_bag(Rules(hours=5.0, checkpoint=cost), [often, seldom], [5.0] * 8, seed=2)
        assert {job.offer for job in run.state.jobs.values()} == {best}


def test_old_servers_are_kept_longer_for_jobs_that_save_themselves():
    saving = Reuse(GOOGLE, 6.0, 1 / 30, Schedule(GOOGLE, 6.0, 1 / 60, 1 / 30))
    plain = Reuse(GOOGLE, 6.0, 1 / 30)
    ages = np.linspace(1, 23.5, 46)
    assert sum(map(saving.keep, ages)) > sum(map(plain.keep, ages))


def test_a_gang_has_the_hazards_of_its_servers_together():
    three, one = Gang(SHORT, 3), FittedModel(Exponential(3 / 4))
    ages = np.array([0.0, 0.1, 2.0, 9.0])
    assert three.survival(ages) == pytest.approx(one.survival(ages))
    assert three.integral(ages) == pytest.approx(one.integral(ages), rel=1e-5)
    assert three.hazard(1.0) == pytest.approx(3 / 4)
    assert gang_model(GOOGLE, 2).survival(24.0) == 0
    assert gang_model(GOOGLE, 1) is GOOGLE
    drawn = np.asarray(gang_model(GOOGLE, 2).sample(4000, 1))
    both = np.asarray(GOOGLE.sample((4000, 2), 2)).min(axis=1)
    assert drawn.mean() == pytest.approx(both.mean(), rel=0.06)
    assert gang_model(GOOGLE, 2).mean == pytest.approx(both.mean(), rel=0.05)
