"""Laws of lifetimes: their three functions agree with each other and with SciPy's."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats

from linnet.fleet.laws import (
    Exponential,
    GompertzMakeham,
    Hyperexponential,
    Law,
    Lomax,
    Scaled,
    SciSpot,
    Weibull,
)

LAWS: list[Law] = [
    Exponential(0.2),
    Weibull(0.45, 92.0),
    Weibull(2.5, 9.0),
    GompertzMakeham(0.01, 0.25, -0.97),
    GompertzMakeham(0.01, 0.001, 0.4),
    GompertzMakeham(0.01, 0.001, 0.0),
    Lomax(0.08, 0.16, 0.004),
    Lomax(2.5, 3.0, 1e-9),
    Hyperexponential((0.76, 0.18, 0.06), (0.0099, 0.61, 6.4)),
    SciSpot(0.25, 1.1, 49.0, 0.0),
    SciSpot(0.4, 1.0, 0.8, 24.0),
    Scaled(Weibull(0.45, 92.0), 1.7),
]
AGES = np.array([1e-4, 0.01, 0.3, 1.0, 5.0, 11.0, 17.5, 23.0])


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_the_hazard_is_the_slope_of_the_survival(law: Law):
    step = 1e-5 * AGES
    slope = (law.log_survival(AGES - step) - law.log_survival(AGES + step)) / (2 * step)
    np.testing.assert_allclose(np.exp(law.log_hazard(AGES)), slope, rtol=1e-5)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_the_integral_is_that_of_the_survival(law: Law):
    def survival(t: float) -> float:
        return float(np.exp(law.log_survival(np.array([t])))[0])

    cuts = sorted([0.0, 1e-6, 1e-3, *AGES])
    spans = pairwise(cuts)
    parts = [integrate.quad(survival, low, high, epsabs=1e-13, epsrel=1e-12)[0] for low, high in spans]
    np.testing.assert_allclose(law.integral(np.array(cuts[1:])), np.cumsum(parts), rtol=1e-7)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_survival_starts_at_one_and_falls(law: Law):
    survival = np.exp(law.log_survival(np.linspace(0, 60, 500)))
    assert survival[0] == 1
    assert np.all(np.diff(survival) <= 0)
    assert survival.min() >= 0


def test_means_without_a_cap_are_those_of_scipy():
    forever = np.array([np.inf])
    assert Exponential(0.2).integral(forever)[0] == pytest.approx(5)
    assert Weibull(0.45, 92.0).integral(forever)[0] == pytest.approx(stats.weibull_min(0.45, scale=92).mean())
    assert Lomax(2.5, 3.0, 1e-12).integral(forever)[0] == pytest.approx(
        stats.lomax(2.5, scale=3).mean(), rel=1e-6
    )
    assert Scaled(Exponential(0.1), 2.0).integral(forever)[0] == pytest.approx(5)


def test_a_law_under_which_some_live_for_ever_has_no_mean():
    assert GompertzMakeham(1e-300, 0.1, -1.0).integral(np.array([np.inf]))[0] == np.inf
    assert Lomax(0.5, 1.0, 1e-300).integral(np.array([np.inf]))[0] == np.inf


def test_scispots_law_ends_where_its_f_reaches_one():
    law = SciSpot(0.4, 1.0, 0.8, 24.0)
    assert law.end == pytest.approx(24 + 0.8 * np.log((1 - 0.4) / 0.4), rel=1e-6)
    assert law.log_survival(np.array([law.end + 1]))[0] == -np.inf
    assert law.integral(np.array([np.inf]))[0] == pytest.approx(law.integral(np.array([law.end]))[0])


def test_a_mixture_far_out_keeps_its_digits():
    law = Hyperexponential((0.5, 0.5), (1.0, 3.0))
    assert law.log_survival(np.array([2000.0]))[0] == pytest.approx(-2000 + np.log(0.5))
    assert np.exp(law.log_hazard(np.array([2000.0])))[0] == pytest.approx(1.0)
