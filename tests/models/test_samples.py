"""Fits that begin with a sample of the rows end where others do, whatever the sample is like."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from linnet.models import (
    GammaRegressor,
    GeneralizedLinearModel,
    LogisticRegression,
    PoissonRegressor,
    fitting,
)

ROWS, COLUMNS = 4000, 4


@pytest.fixture
def sampling(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Samples are drawn from short tables, too; whether a Hessian of a sample was used."""
    used: list[bool] = []
    original = fitting._sampled

    def sampled(*given: Any) -> Any:
        warm, metric = original(*given)
        used.append(metric is not None)
        return warm, metric

    monkeypatch.setattr(fitting, "_MANY", 0)
    monkeypatch.setattr(fitting, "_PER_COLUMN", 10)
    monkeypatch.setattr(fitting, "_sampled", sampled)
    return used


def plain_table(kind: str) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(5)
    x = rng.standard_normal((ROWS, COLUMNS))
    every = np.arange(ROWS) % 20 == 0  # the rows of the sample
    if kind == "another world":
        x[every] *= 0.05
    elif kind == "one column alone":
        x[every, 1:] *= 1e-3
    elif kind == "badly scaled":
        x *= 10.0 ** np.array([-5, 0, 3, 6])
    elif kind == "sorted":
        x = x[np.argsort(x[:, 0])]
    elif kind == "repeated":
        x[every] = x[0]
    elif kind == "far":
        x += 1e6
    return x


WAYS = ["alike", "another world", "one column alone", "badly scaled", "sorted", "repeated", "far"]


@pytest.mark.parametrize(
    ("kind", "intercept"), [(kind, True) for kind in WAYS] + [("alike", False), ("badly scaled", False)]
)
@pytest.mark.parametrize(
    "model", [LogisticRegression(C=3.0), PoissonRegressor(alpha=1e-3), GammaRegressor(alpha=1e-2)]
)
@pytest.mark.sample(12)
def test_a_sample_changes_no_coefficient(model, kind, intercept, sampling, monkeypatch):
    x = plain_table(kind)
    rng = np.random.default_rng(6)
    eta = ((x - x.mean(axis=0)) / x.std(axis=0)) @ np.array([0.5, -0.3, 0.2, 0.1])
    if isinstance(model, LogisticRegression):
        y: Any = (rng.random(ROWS) < 1 / (1 + np.exp(-eta))).astype(int)
    else:
        y = rng.poisson(np.exp(eta)) + 1.0
    weight = rng.uniform(0.5, 2, ROWS)
    found = model.set_params(fit_intercept=intercept, tol=1e-6).fit(x, y, sample_weight=weight)
    eta_found = x @ np.ravel(found.coef_) + found.intercept_
    assert sampling
    monkeypatch.setattr(fitting, "_sampled", lambda *_: (None, None))
    exact = model.set_params(tol=1e-10).fit(x, y, sample_weight=weight)
    eta_exact = x @ np.ravel(exact.coef_) + exact.intercept_
    np.testing.assert_allclose(eta_found, eta_exact, atol=2e-5 * max(1.0, np.abs(eta_exact).max()))


def test_the_hessian_of_a_sample_saves_passes_with_one(sampling):
    x = plain_table("alike")
    rng = np.random.default_rng(7)
    y = rng.poisson(np.exp(0.3 * x[:, 0]))
    curvatures: list[str] = []
    evaluate = fitting.Rows.evaluate

    def counted(self: Any, coef: Any, curvature: str = "observed") -> Any:
        if self.design.x.shape[0] == ROWS:
            curvatures.append(curvature)
        return evaluate(self, coef, curvature)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting.Rows, "evaluate", counted)
        PoissonRegressor(alpha=0).fit(x, y)
    assert sampling == [True]
    assert curvatures[:3] == ["none"] * 3


def test_a_sample_without_any_event_is_not_used(sampling):
    x = plain_table("alike")
    y = np.where(np.arange(ROWS) % 20 == 0, 0, (x[:, 0] > 0.3) | (x[:, 1] > 1)).astype(int)
    found = LogisticRegression().fit(x, y)
    y_again = y.copy()
    whole = GeneralizedLinearModel("binomial", alpha=1.0 / ROWS, tol=1e-10).fit(x, y_again)
    np.testing.assert_allclose(np.ravel(found.coef_), whole.coef_, rtol=1e-4)
