"""How many servers a job gets: smaller gangs are tried once the type is known, and checkpoints keep their own."""

from __future__ import annotations

from math import inf

import pytest

from linnet.fleet import FittedModel
from linnet.fleet.laws import Exponential
from linnet.fleet.offers import Offer
from linnet.fleet.policies import after_loss
from linnet.fleet.rules import Rules
from linnet.fleet.simulation import BagRun, simulate_bag

LAW = FittedModel(Exponential(0.01))
OFFER = Offer("s", "s", cores=2, price=1.0, limit=32, boot=0.05, model=LAW)


def sizes(run: BagRun) -> list[int]:
    return [job.servers for job in run.state.jobs.values()]


def mostly_serial(servers: int, asked: int) -> float:
    """Half of the work is done by one server, whatever there are."""
    return 0.5 + 0.5 * asked / servers


def test_smaller_gangs_are_tried_one_job_each_and_kept_if_they_cost_less():
    run = simulate_bag(
        Rules(cores=16, smallest=2, hours=2.0), [OFFER], [2.0] * 200, seed=1, slower=mostly_serial
    )
    assert run.done == 200
    assert sizes(run).count(1) > 120  # the cheapest: 9 server-hours, not 16
    fixed = simulate_bag(Rules(cores=16, hours=2.0), [OFFER], [2.0] * 200, seed=1, slower=mostly_serial)
    assert set(sizes(fixed)) == {8}
    assert run.cost < 0.7 * fixed.cost
    shown = {each.servers: each for each in run.decider.known.sizes}
    assert shown.keys() == {4, 2, 1}
    assert shown[1].measured == pytest.approx(9.0)
    assert shown[1].dollars < shown[2].dollars < shown[4].dollars


def test_no_smaller_gang_is_kept_that_saves_nothing():
    """All work is shared: as many server-hours on half of them, and twice as long."""
    calm = Offer("s", "s", cores=2, price=1.0, limit=32, model=None)
    run = simulate_bag(Rules(cores=8, smallest=2, hours=2.0), [calm], [2.0] * 40)
    assert sizes(run).count(4) == 39
    assert sizes(run).count(2) == 1


def test_a_deadline_leaves_no_time_for_smaller_gangs():
    run = simulate_bag(
        Rules(cores=16, smallest=2, hours=2.0, deadline=7.0), [OFFER], [2.0] * 8, seed=1, slower=mostly_serial
    )
    assert run.done == 8
    assert run.hours <= 7.0
    assert 1 not in sizes(run)


@pytest.mark.parametrize("seed", range(6))
def test_a_checkpoint_goes_on_with_its_own_number_of_servers(seed):
    """Also where jobs that begin now take fewer, and where nothing else runs that would free servers."""
    often = Offer("s", "s", cores=2, price=1.0, limit=8, boot=0.05, model=FittedModel(Exponential(0.15)))
    rules = Rules(cores=8, smallest=2, hours=2.0, checkpoint=0.01)
    run = simulate_bag(rules, [often], [2.0] * 20, seed=seed, slower=mostly_serial)
    assert run.done == 20
    assert run.preemptions > 0
    assert run.state.attempts == 20 + run.preemptions
    assert 1 in sizes(run)


def test_every_attempt_of_a_job_that_saves_itself_has_as_many_servers():
    often = Offer("s", "s", cores=2, price=1.0, limit=8, boot=0.05)
    run = simulate_bag(
        Rules(cores=8, smallest=2, hours=2.0, checkpoint=0.01), [often], [2.0] * 3,
        slower=mostly_serial, lives=[lambda number: 1.0 if number in (0, 9) else inf],
    )  # fmt: skip
    lost = [job for job in run.state.jobs.values() if job.preemptions]
    assert [job.servers for job in lost] == [4]
    plain = simulate_bag(
        Rules(cores=8, smallest=2, hours=2.0, on_loss="smaller"), [often], [2.0], slower=mostly_serial,
        lives=[lambda number: 1.0 if number == 0 else inf],
    )  # fmt: skip
    assert sizes(plain) == [3]  # it begins again, on those that are left


def test_measured_hours_decide_whether_fewer_servers_go_on():
    common = {"may_be_dropped": 0, "servers_left": 3, "smallest": 1, "boot": 0.5, "hours": 3.0, "servers": 4}
    assert after_loss(**common) == "replenish"  # 4 h on three of four, against 3 h and a boot of 0.5
    assert after_loss(**common, fewer_hours=3.2) == "smaller"
    assert after_loss(**common, fewer_hours=9.0) == "replenish"
