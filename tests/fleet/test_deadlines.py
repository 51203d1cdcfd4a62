"""Jobs with a deadline: policies by hand, the dynamic program by brute force, and no deadline missed."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from linnet.errors import FileMissingError, FormatError, InputError
from linnet.fleet import Situation, simulate_deadline
from linnet.fleet.deadlines import PARTS, POLICIES, SERVERS, Task, _course


def trace(text: str, seconds: float = 600) -> dict[str, Any]:
    return {"metadata": {"gap_seconds": seconds}, "data": [int(each) for each in text]}


def short(servers: tuple[str, ...]) -> str:
    return "".join({"nothing": "-", "spot": "s", "on-demand": "D"}[each] for each in servers)


def test_on_demand_alone_where_there_is_no_spot():
    run = simulate_deadline(trace("0" * 40, 3600), 10, 20, 0.5, policy="uniform progress")
    assert short(run.servers) == "-" + "D" * 11  # on the line at the start, behind an hour later
    assert run.cost == 11
    assert run.finished
    assert run.hours == 11.5


def test_a_warm_spot_server_is_kept_until_it_is_lost():
    run = simulate_deadline(trace("1111110000" + "0" * 20, 3600), 10, 20, 0.5, 0.25, "greedy")
    # 5.5 h of work on spot; then nothing, until 4.5 + max(2·0.5, 0.5 + 1) hours are left: on-demand from hour 14 on
    assert short(run.servers) == "s" * 6 + "-" * 8 + "D" * 5
    assert run.cost == 6 * 0.25 + 5
    assert run.hours == 19


def test_uniform_progress_leaves_on_demand_for_spot_only_when_ahead():
    run = simulate_deadline(trace("0" + "0111" * 8, 3600), 10, 20, 1, 0.25, "uniform progress")
    # On demand from hour 1 on. Hour 5: 3 h done, not above (5 + 2)/2. Hour 6: 4 h done, not above 4. Hour 7: 5 > 4.5.
    assert short(run.servers)[:8] == "-DDDDDDs"
    assert run.finished


def enough(random: np.random.Generator, ticks: int) -> dict[str, Any]:
    lengths = random.geometric(random.uniform(0.02, 0.5), ticks)
    return trace("".join("01"[i % 2] * int(each) for i, each in enumerate(lengths))[:ticks])


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("work", "deadline", "overhead"), [(3.0, 3.5, 0.2), (3.0, 5.0, 0.05), (2.9, 6.1, 0.4)]
)
def test_every_deadline_is_met(policy: str, work: float, deadline: float, overhead: float):
    random = np.random.default_rng(0)
    for _ in range(12):
        run = simulate_deadline(enough(random, 60), work, deadline, overhead, policy=policy)
        assert run.finished
        assert run.hours <= deadline + 1e-9
        assert run.cost <= deadline + 1e-9


def test_the_course_is_the_optimum():
    task = Task(work=3.0, deadline=6.0, overhead=0.4, spot_price=0.3, tick=1.0)
    goes, comes = 0.25, 0.4
    course, start, ticks = _course(task, goes, comes), 2, 6

    def then(left: int, server: int, used: int) -> int:
        return max(0, left + (0 if used == server or not server else start) - (PARTS if server else 0))

    def expected(follow: bool):
        @cache
        def v(tick: int, left: int, used: int, spot: int) -> float:
            if left <= 0:
                return 0.0
            if tick == ticks:
                return 1e6
            used = 0 if used == 1 and not spot else used
            chance = 1 - goes if spot else comes
            best = int(course[tick, left]) >> 2 * (2 * used + spot) & 3
            choices = [min(best, 2)] if follow else ([0, 1, 2] if spot else [0, 2])
            return min(
                (0.0, task.spot_price, 1.0)[server]
                + chance * v(tick + 1, then(left, server, used), server, 1)
                + (1 - chance) * v(tick + 1, then(left, server, used), server, 0)
                for server in choices
                if then(left, server, used) < course.shape[1]
            )

        return [v(0, 3 * PARTS, 0, spot) for spot in (0, 1)]

    assert expected(follow=True) == pytest.approx(expected(follow=False))
    assert max(expected(follow=True)) < 4


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [195, 61, 5000])
def test_any_gap_between_ticks_meets_deadlines_and_looks_no_closer_than_ten_minutes(seconds: float):
    random = np.random.default_rng(int(seconds))
    for work, deadline, overhead in ((3.0, 5.0, 0.2), (4.0, 9.5, 0.3)):
        for _ in range(4):
            lengths = np.ceil(random.exponential(1.5 * 3600 / seconds, 400)).astype(int)
            line = trace("".join("01"[i % 2] * int(each) for i, each in enumerate(lengths)), seconds)
            line["data"] = line["data"][: int(12 * 3600 / seconds)]
            run = simulate_deadline(line, work, deadline, overhead)
            assert run.finished
            assert run.hours <= deadline + 1e-9
    stages, parts = _course(Task(24.0, 48.0, 0.2, 1 / 3, 61 / 3600), 0.1, 0.1).shape
    assert stages * parts * 2 < 500_000  # bytes: hundreds of these are kept


@pytest.mark.slow
def test_ours_is_cheaper_where_spot_comes_and_goes():
    random = np.random.default_rng(1)
    costs = dict.fromkeys(POLICIES, 0.0)
    for _ in range(10):
        line = enough(random, 144)
        for policy in POLICIES:
            costs[policy] += simulate_deadline(line, 12, 18, policy=policy).cost
    assert costs["linnet"] < costs["uniform progress"]
    assert costs["linnet"] < costs["greedy"]


def test_a_policy_of_ones_own_sees_the_past_only():
    seen: list[Situation] = []

    def mine(now: Situation) -> Any:
        seen.append(now)
        return "on-demand"

    run = simulate_deadline(trace("0110" * 10, 3600), 3, 10, 0.5, policy=mine, start=1)
    assert run.finished
    assert [list(each.seen) for each in seen[:2]] == [[True], [True, True]]
    assert seen[2].changes == (1, 1, 0, 0)
    assert seen[1].starting == 0
    assert seen[1].done == 0.5
    with pytest.raises(InputError, match="the policy chose 'spot' at hour 0, where there is no such server"):
        simulate_deadline(trace("0" * 40), 1, 3, policy=lambda now: "spot")


@pytest.mark.slow
@pytest.mark.parametrize("zone", ["diurnal", "mixed", "never", "scarce", "steady"])
def test_traces_from_files(shared, zone: str):
    path = shared(f"availability/{zone}.json")
    ours, line = (
        simulate_deadline(path, policy=policy, start=48) for policy in ("linnet", "uniform progress")
    )
    assert ours.finished
    assert line.finished
    assert set(ours.servers) <= set(SERVERS)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"work": 0}, "work must be hours above 0, not 0"),
        ({"overhead": -1}, "overhead must be hours of at least 0, not -1"),
        ({"spot_price": 2}, "spot_price must be a share of the on-demand price, from 0 to 1, not 2"),
        ({"deadline": float("nan")}, "deadline must be hours above 0, not nan"),
        (
            {"deadline": 3},
            "3 h of work and 0.2 h to start a server do not fit a deadline of 3 h in whole ticks",
        ),
        ({"start": 5}, "4 h from hour 5 on are beyond the trace, which has 6 h"),
        ({"policy": "lucky"}, "no policy is called 'lucky'; there are greedy, uniform progress, linnet"),
    ],
)
def test_what_cannot_be_simulated(given: dict[str, Any], words: str):
    with pytest.raises(InputError, match=words):
        simulate_deadline(trace("01" * 18), **{"work": 3, "deadline": 4, **given})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "must have metadata.gap_seconds"),
        (trace("01", 0), "gap_seconds is 0.0, a number above 0 is expected"),
        ({"metadata": {"gap_seconds": 600}, "data": [0, 2]}, "data must be a list of 0 and 1"),
        (trace(""), "data must be a list of 0 and 1, at least one"),
    ],
)
def test_traces_that_are_wrong(tmp_path: Path, given: dict[str, Any], words: str):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(given))
    for each in (path, given):
        with pytest.raises(FormatError, match=words):
            simulate_deadline(each)


def test_files_that_are_no_traces(tmp_path: Path):
    with pytest.raises(FileMissingError, match="there is no file"):
        simulate_deadline(tmp_path / "none.json")
    (tmp_path / "text.json").write_text("spot")
    with pytest.raises(FormatError, match="is no JSON file"):
        simulate_deadline(tmp_path / "text.json")
