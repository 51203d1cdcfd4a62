"""Lifetimes from files, and which law they follow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from linnet.errors import FileMissingError, FormatError, InputError
from linnet.fleet import FittedModel, Lifetimes
from linnet.fleet.laws import Exponential, GompertzMakeham, Hyperexponential, Law, Lomax, SciSpot, Weibull

TRUE: dict[str, Law] = {
    "exponential": Exponential(0.2),
    "weibull": Weibull(0.6, 10.0),
    "gompertz-makeham": GompertzMakeham(0.02, 0.4, -0.9),
    "lomax": Lomax(0.3, 0.5, 0.02),
    "hyperexponential2": Hyperexponential((0.7, 0.3), (0.02, 1.0)),
    "scispot": SciSpot(0.5, 1.0, 2.0, 22.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TRUE)
@pytest.mark.parametrize("polled", [0.0, 0.25])
def test_each_law_is_found_again_in_censored_lifetimes(name: str, polled: float):
    random = np.random.default_rng(5)
    lived = np.asarray(FittedModel(TRUE[name], 24.0).sample(1500, random))
    stopped = random.uniform(0, 60, 1500)
    seen, ended = np.minimum(lived, stopped), lived <= stopped
    if polled:
        seen = np.where(ended, np.ceil(seen / polled) * polled, seen)
    model = Lifetimes(seen, ended, cap=24, polled=polled).fit(name)
    ages = np.linspace(0, 23.9, 100)
    np.testing.assert_allclose(model.survival(ages), FittedModel(TRUE[name], 24.0).survival(ages), atol=0.04)
    assert model.cap == 24
    assert model.servers == 1500


def test_the_likelihood_is_the_definitions():
    life = Lifetimes([2, 5, 30, 24, 7], [True, False, True, False, True], cap=24)
    model = life.fit("exponential")
    watched, lost = 2 + 5 + 24 + 24 + 7, 2
    assert model.law == Exponential(pytest.approx(lost / watched, rel=1e-5))
    assert model.log_likelihood == pytest.approx(lost * np.log(lost / watched) - lost)
    assert model.aic == pytest.approx(2 - 2 * model.log_likelihood)


def test_the_best_law_is_chosen_and_shown():
    lived = FittedModel(Weibull(0.5, 10.0)).sample(400, 1)
    life = Lifetimes(lived)
    table = life.table(["exponential", "weibull"])
    assert table.chosen.model.name == "weibull"
    assert [row.model.name for row in table.rows] == ["weibull", "exponential"]
    assert table.rows[1].behind > 1
    assert "* weibull" in str(table)
    assert table.model.comparison is table


def test_few_losses_get_few_parameters():
    table = Lifetimes([1, 2, 3, 9, 9, 9], [1, 1, 1, 0, 0, 0]).table()
    assert [row.model.name for row in table.rows] == ["exponential"]


def test_types_and_zones_share_what_they_know():
    random = np.random.default_rng(2)
    rates = {"calm": 0.05, "wild": 0.5, "rare": 0.5}
    hours, types = [], []
    for kind, count in (("calm", 150), ("wild", 150), ("rare", 3)):
        hours += list(random.exponential(1 / rates[kind], count))
        types += [kind] * count
    life = Lifetimes(hours, types=types)
    life._table = life.table(["exponential"])  # pyright: ignore[reportPrivateUsage]
    groups = life.fit_groups("type", enough=10**9)
    assert groups["calm"].mean == pytest.approx(20, rel=0.2)
    assert groups["wild"].mean == pytest.approx(2, rel=0.2)
    assert groups["wild"].mean < groups["rare"].mean < groups["calm"].mean
    assert groups["unheard of"] is groups.everybody
    assert "wild" in groups
    assert "all servers'" in str(groups)
    with pytest.raises(InputError, match="grouped by 'type', 'zone' or both, not by 'colour'"):
        life.fit_groups("colour")


@pytest.mark.slow
def test_losses_together_are_measured():
    random = np.random.default_rng(0)
    model = FittedModel(Exponential(0.2))
    for together in (0.0, 0.6):
        hours, launched = [], []
        for gang in range(300):
            hours += list(model.sample_gang(5, together, 1, random)[0])
            launched += [1000.0 * gang] * 5
        measured = Lifetimes(hours, launched=launched).together(0.01)
        assert measured == pytest.approx(together, abs=0.05)
    with pytest.raises(InputError, match="launch times are needed"):
        Lifetimes([1, 2]).together()


@pytest.mark.slow
def test_drift_raises_an_alarm_when_servers_die_otherwise():
    model = FittedModel(Hyperexponential((0.7, 0.3), (0.02, 1.0)), 24.0)
    random = np.random.default_rng(0)
    same = [model.drift(Lifetimes(model.sample(200, random), cap=24)).alarm for _ in range(60)]
    assert sum(same) <= 3
    other = FittedModel(Hyperexponential((0.5, 0.5), (0.02, 1.0)), 24.0)
    found = model.drift(Lifetimes(other.sample(200, random), cap=24))
    assert found.alarm
    assert "no longer follow the model" in str(found)
    censored = Lifetimes(np.minimum(np.asarray(model.sample(400, random)), 3.0), np.zeros(400), cap=24)
    assert model.drift(censored).alarm  # so many were watched for so long, and nobody was lost


def test_a_file_of_lifetimes(tmp_path: Path):
    path = tmp_path / "lifetimes.csv"
    path.write_text(
        "machine_type,zone,launch_time,lifetime_s,ended\n"
        "a,z1,2026-01-01T00:00:00Z,3600,preempted\n"
        "b,z2,2026-01-01T06:00:00+02:00,90000,preempted\n"
        "b,z2,,7200,user_stop\n"
    )
    life = Lifetimes.from_csv(path, cap=24)
    assert life.hours.tolist() == [1, 24, 2]
    assert life.preempted.tolist() == [True, False, False]
    assert life.types == ("a", "b", "b")
    assert life.launched == (0, 4, None)
    assert len(life.where(zone="z2")) == 2
    assert len(life.since(1)) == 1
    with pytest.raises(InputError, match="none of the 3 servers matches type 'c'"):
        life.where(type="c")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty; a heading"),
        ("lifetime_h,event\n", "no server below it"),
        ("hours,event\n1,1\n", "no column lifetime_h or lifetime_s; its columns are hours, event"),
        ("lifetime_h\n1\n", "no column ended or event"),
        ("lifetime_h,event\n1,1\n-2,1\n", "lifetimes.csv:3: lifetime_h is '-2', a number of at least 0"),
        ("lifetime_h,event\n1,yes\n", "lifetimes.csv:2: event is 'yes', 1 \\(preempted\\) or 0"),
        ("lifetime_h,event\n1\n", "lifetimes.csv:2 has another number of fields"),
        ("lifetime_h,event,launch_time\n1,1,noon\n", "lifetimes.csv:2: 'noon' is no time"),
    ],
)
def test_files_that_are_wrong(tmp_path: Path, text: str, words: str):
    path = tmp_path / "lifetimes.csv"
    path.write_text(text)
    with pytest.raises(FormatError, match=words):
        Lifetimes.from_csv(path)


def test_no_file(tmp_path: Path):
    with pytest.raises(FileMissingError, match="there is no file"):
        Lifetimes.from_csv(tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Lifetimes([]), "at least one number"),
        (lambda: Lifetimes([1, -1]), "hours of at least 0; -1.0 is not"),
        (lambda: Lifetimes([1, 2], [True]), "preempted must be 2 values"),
        (lambda: Lifetimes([1], cap=0), "cap must be a number of hours above 0"),
        (lambda: Lifetimes([1], polled=-1), "polled must be hours between two looks"),
        (lambda: Lifetimes([1, 2], zones=["z"]), "zones has 1 values for 2 lifetimes"),
        (
            lambda: Lifetimes([1, 2]).fit("normal"),
            "no law is called 'normal'; there are exponential, weibull",
        ),
        (lambda: Lifetimes([1, 2], [0, 0]).fit(), "none of the 2 servers was preempted"),
    ],
)
def test_lifetimes_that_are_wrong(call, words: str):
    with pytest.raises(InputError, match=words):
        call()


def test_lifetimes_from_prices(tmp_path: Path):
    path = tmp_path / "prices.csv"
    path.write_text(
        "timestamp,zone,instance_type,product,usd_per_hour\n"
        "2026-01-01T05:00:00Z,z,a,Linux,0.5\n"
        "2026-01-01T00:00:00Z,z,a,Linux,0.2\n"
        "2026-01-01T01:00:00Z,z,a,Linux,0.3\n"
        "2026-01-01T07:00:00Z,z,a,Linux,0.3\n"
        "2026-01-01T10:00:00Z,z,a,Linux,0.1\n"
        "2026-01-01T00:00:00Z,z,b,Linux,9.0\n"
    )
    life = Lifetimes.from_prices(path, bid=0.3)
    assert life.hours.tolist() == [5, 3]
    assert life.preempted.tolist() == [True, False]
    assert len(Lifetimes.from_prices(path, bid={"b": 10.0, "a": 0.25})) == 1
    with pytest.raises(InputError, match="at or below the bid of 0.05; no server would ever start"):
        Lifetimes.from_prices(path, bid=0.05)


@pytest.mark.slow
def test_the_servers_of_google(shared):
    life = Lifetimes.from_csv(shared("preemption/google_preemptible_2019.csv"), cap=24)
    table = life.table()
    aic = {row.model.name: row.model.aic for row in table.rows}
    assert aic["exponential"] == pytest.approx(2361.5, abs=0.1)
    assert aic["weibull"] == pytest.approx(2012.6, abs=0.1)
    assert aic["scispot"] == pytest.approx(1990.8, abs=0.1)
    assert aic["hyperexponential3"] == pytest.approx(1962.8, abs=0.1)
    assert table.chosen.model.aic <= 1965
    assert table.chosen.validation >= -0.975
    assert table.chosen.distance <= 0.02
    model = life.fit()
    ages = np.linspace(0, 24, 2401)[:-1]
    fails = np.asarray(model.failure_probability(6, ages))
    assert fails.mean() == pytest.approx(0.31, abs=0.01)
    assert np.minimum(fails, model.failure_probability(6)).mean() <= 0.13


@pytest.mark.slow
def test_the_servers_that_were_polled(shared):
    life = Lifetimes.from_csv(shared("preemption/gcp_gpu_lifetimes_2020.csv"), polled=0.25)
    model = life.fit("hyperexponential2")
    assert (
        abs(float(np.asarray(model.survival(1.0))) - float(np.asarray(life.kaplan_meier().survival(1.0))))
        < 0.05
    )


def test_prices_of_amazon(shared):
    life = Lifetimes.from_prices(shared("prices/aws_spot_2020.csv"), bid=1.2)
    assert len(life) > 10
    assert life.preempted.sum() >= 1
