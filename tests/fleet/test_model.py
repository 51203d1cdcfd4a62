"""What a model answers, against brute force: sums over servers drawn at random, and definitions."""

from __future__ import annotations

import numpy as np
import pytest

from linnet.errors import InputError
from linnet.fleet import FittedModel, KaplanMeier, Lifetimes, Model
from linnet.fleet.laws import Exponential, Hyperexponential, Lomax, SciSpot

BATHTUB = Hyperexponential((0.76, 0.18, 0.06), (0.0099, 0.61, 6.4))
MODELS: list[Model] = [
    FittedModel(BATHTUB, 24.0),
    FittedModel(Lomax(0.08, 0.16, 0.004), 24.0),
    FittedModel(SciSpot(0.4, 1.0, 0.8, 24.0), None),
    FittedModel(Exponential(0.3), None),
    Lifetimes([0.5, 2, 2, 7, 11, 30, 30], [1, 1, 0, 1, 1, 1, 0], cap=24).kaplan_meier(),
]


def ids(model: Model) -> str:
    return f"{model.name}-{model.cap}"


@pytest.mark.parametrize("model", MODELS, ids=ids)
def test_samples_follow_the_survival(model: Model):
    drawn = np.asarray(model.sample(8000, 0))
    ages = np.array([0.1, 1.0, 4.0, 12.0, 23.9])
    seen = (drawn[:, None] > ages).mean(axis=0)
    np.testing.assert_allclose(model.survival(ages), seen, atol=0.02)
    assert drawn.mean() == pytest.approx(model.mean, abs=0.5)
    assert drawn.max() <= model.limit


@pytest.mark.parametrize("model", MODELS, ids=ids)
def test_quantiles_undo_the_survival(model: Model):
    shares = np.array([0.0, 0.01, 0.1, 0.2, 0.5, 0.9, 1.0])
    ages = np.asarray(model.quantile(shares))
    finite = np.isfinite(ages)
    assert np.all(np.diff(ages) >= 0)
    assert np.all(np.asarray(model.survival(ages[finite])) <= 1 - shares[finite] + 1e-9)
    before = np.maximum(ages[finite] * (1 - 1e-9) - 1e-12, 0)
    assert np.all(np.asarray(model.survival(before)) >= 1 - shares[finite] - 1e-6)


@pytest.mark.parametrize("model", MODELS, ids=ids)
def test_failure_is_what_the_definition_says(model: Model):
    length, age = np.array([0.5, 3.0, 6.0]), np.array([0.0, 1.0, 8.0])
    meant = 1 - np.asarray(model.survival(age + length)) / np.asarray(model.survival(age))
    np.testing.assert_allclose(model.failure_probability(length, age), meant, atol=1e-12)
    assert model.failure_probability(0, 3) == 0


def test_failure_is_certain_at_the_cap():
    model = FittedModel(BATHTUB, 24.0)
    assert model.failure_probability(6, 18) == 1
    assert model.failure_probability(6, 17.99) < 1
    assert model.failure_probability(1, 30) == 1
    assert model.survival(24) == 0
    assert model.survival(np.nextafter(24, 0)) == pytest.approx(0.76 * np.exp(-0.0099 * 24), rel=1e-4)
    assert model.hazard(24) == np.inf
    np.testing.assert_array_equal(
        model.failure_probability([1, 6], [[0], [20]]) == 1, [[False, False], [False, True]]
    )


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS, ids=ids)
@pytest.mark.parametrize("age", [0.0, 3.0])
def test_expected_time_is_the_mean_of_many_runs(model: Model, age: float):
    length, restart, runs = 4.0, 0.25, 5000
    random = np.random.default_rng(3)
    total = np.zeros(runs)
    left = np.asarray(model.sample(runs, random, age=age)) - age
    running = np.ones(runs, bool)
    while running.any():
        done = running & (left > length)
        lost = running & ~done
        total[done] += length
        total[lost] += left[lost] + restart
        running = lost
        left = np.asarray(model.sample(runs, random))
    assert model.expected_time(length, age, restart) == pytest.approx(
        total.mean(), abs=4 * total.std() / np.sqrt(runs)
    )


def test_a_job_longer_than_the_cap_is_never_done():
    model = FittedModel(BATHTUB, 24.0)
    assert model.expected_time(24) == np.inf
    assert model.expected_time(0) == 0
    assert model.expected_time([1.0, 30.0], age=[[0.0], [5.0]]).shape == (2, 2)  # pyright: ignore


@pytest.mark.slow
@pytest.mark.parametrize("together", [0.0, 0.3, 1.0])
def test_a_gang_fails_as_often_as_gangs_drawn_at_random(together: float):
    model = FittedModel(BATHTUB, 24.0)
    drawn = model.sample_gang(4, together, 8000, 1)
    assert model.gang_failure(5, [0, 0, 0, 0], together) == pytest.approx(
        (drawn.min(axis=1) <= 5).mean(), abs=0.02
    )
    for server in range(4):
        assert (drawn[:, server] > 5).mean() == pytest.approx(model.survival(5), abs=0.02)


def test_gangs_of_independent_servers():
    model = FittedModel(BATHTUB, 24.0)
    ages = np.array([0.0, 3.0, 9.0])
    alive = np.prod(1 - np.asarray(model.failure_probability(2, ages)))
    assert model.gang_failure(2, ages) == pytest.approx(1 - alive)
    assert model.gang_failure(2, []) == 0
    assert model.gang_failure(2, [0.0, 23.0]) == 1
    worst = float(np.max(model.failure_probability(2, ages)))
    assert model.gang_failure(2, ages, together=1) == pytest.approx(worst)
    assert np.shape(model.gang_failure([1, 2], ages)) == (2,)


def test_kaplan_meier_by_hand():
    model = Lifetimes([1, 2, 2, 3, 4], [1, 1, 0, 1, 0]).kaplan_meier()
    np.testing.assert_allclose(model.survival([0.5, 1, 2, 2.5, 3, 50]), [1, 0.8, 0.6, 0.6, 0.3, 0.3])
    assert model.mean == np.inf  # somebody was never seen to end
    assert model.quantile(0.5) == 3
    assert model.quantile(0.9) == np.inf
    assert not hasattr(model, "aic")


def test_the_mean_of_kaplan_meier_without_censoring_is_the_mean():
    lifetimes = np.random.default_rng(0).exponential(3, 50)
    assert Lifetimes(lifetimes).kaplan_meier().mean == pytest.approx(lifetimes.mean())
    assert Lifetimes(lifetimes).kaplan_meier().hazard(1.0) == pytest.approx(1 / 3, abs=0.2)


def test_polled_lifetimes_are_known_between_two_looks_only():
    true = np.random.default_rng(0).exponential(2.0, 3000)
    seen = np.ceil(true / 0.5) * 0.5
    exact = Lifetimes(seen).fit("exponential")
    polled = Lifetimes(seen, polled=0.5).fit("exponential")
    assert 1 / exact.law.rate == pytest.approx(seen.mean())  # pyright: ignore
    assert polled.mean == pytest.approx(true.mean(), rel=0.02)
    staircase = Lifetimes(seen, polled=0.5).kaplan_meier()
    np.testing.assert_allclose(
        staircase.survival([0.5, 1, 2]), [(true > t).mean() for t in (0.5, 1, 2)], atol=1e-6
    )


def test_turnbull_agrees_with_kaplan_meier_where_both_can_be_computed():
    # Looks so dense that no two intervals overlap.
    hours, ended = [1.0, 2.0, 3.0, 4.0, 5.0], [1, 1, 0, 1, 0]
    plain, polled = (
        Lifetimes(hours, ended).kaplan_meier(),
        Lifetimes(hours, ended, polled=1e-3).kaplan_meier(),
    )
    assert isinstance(polled, KaplanMeier)
    np.testing.assert_allclose(
        polled.survival(np.array(hours) + 0.1), plain.survival(np.array(hours) + 0.1), atol=1e-6
    )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m: m.survival(-1), "age must be hours of at least 0, not -1"),
        (lambda m: m.failure_probability(np.nan), "length must be hours of at least 0, not nan"),
        (lambda m: m.quantile(1.5), "q must lie between 0 and 1, not 1.5"),
        (lambda m: m.gang_failure(1, [0], together=2), "together must lie between 0 and 1, not 2"),
        (lambda m: m.sample(age=30), "no server reaches an age of 30 h under this model"),
    ],
)
def test_wrong_questions(call, words: str):
    with pytest.raises(InputError, match=words):
        call(FittedModel(BATHTUB, 24.0))
