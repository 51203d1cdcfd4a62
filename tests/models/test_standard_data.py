"""Coefficients, standard errors and deviances on standard data: those of scikit-learn and statsmodels, to 1e-6.

For tiles of 1 row, of 7 rows, and of all; those of 1 row for data of hundreds of rows are `long`.
"""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.linear_model as sk
from sklearn import datasets
from sklearn.preprocessing import scale

import linnet as ln
from linnet.models import (
    GeneralizedLinearModel,
    LinearRegression,
    LogisticRegression,
    NegativeBinomialRegressor,
    PoissonRegressor,
    Ridge,
)

sm = pytest.importorskip("statsmodels.api")

TILES = [1, 7, -1]
MANY = [pytest.param(1, marks=pytest.mark.long), 7, -1]
"""The same for data of hundreds of rows."""
LONG = [("wine", 1), ("breast_cancer", 1), ("breast_cancer", 7)]
CLOSE = {"rtol": 1e-6, "atol": 1e-6}


def _cut(x, rows):
    return ln.asarray(np.ascontiguousarray(x, float), chunks=(rows, -1))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rows"),
    [
        *(("iris", rows) for rows in TILES),
        *(("wine", rows) for rows in (7, -1)),
        *(("breast_cancer", rows) for rows in (32, -1)),
        *(pytest.param(*each, marks=pytest.mark.long) for each in LONG),
    ],
)
def test_classes(name, rows):
    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    x = scale(x)
    known = sk.LogisticRegression(solver="newton-cholesky", tol=1e-12, max_iter=200).fit(x, y)
    model = LogisticRegression().fit(_cut(x, rows), y)
    np.testing.assert_allclose(model.coef_, known.coef_, **CLOSE)
    np.testing.assert_allclose(model.intercept_, known.intercept_, **CLOSE)
    np.testing.assert_allclose(model.predict_proba(x), known.predict_proba(x), **CLOSE)
    np.testing.assert_array_equal(model.predict(x), known.predict(x))


@pytest.mark.sample(1)
@pytest.mark.slow
@pytest.mark.parametrize("rows", [*(pytest.param(each, marks=pytest.mark.long) for each in (1, 7)), -1])
def test_ten_classes(rows):
    x, y = datasets.load_digits(return_X_y=True)
    x, y = scale(x)[::3], y[::3]
    known = sk.LogisticRegression(solver="newton-cholesky", tol=1e-12, max_iter=200).fit(x, y)
    model = LogisticRegression().fit(_cut(x, rows), y)
    np.testing.assert_allclose(model.coef_, known.coef_, **CLOSE)
    np.testing.assert_allclose(model.intercept_, known.intercept_, **CLOSE)


@pytest.mark.slow
@pytest.mark.parametrize("rows", MANY)
def test_least_squares(rows):
    x, y = datasets.load_diabetes(return_X_y=True)
    known = sm.OLS(y, sm.add_constant(x)).fit()
    model = LinearRegression().fit(_cut(x, rows), y)
    np.testing.assert_allclose(np.r_[model.intercept_, model.coef_], known.params, rtol=1e-9)
    found = model.summary()
    np.testing.assert_allclose(found.standard_errors, np.r_[known.bse[1:], known.bse[0]], rtol=1e-8)
    np.testing.assert_allclose(found.p_values, np.r_[known.pvalues[1:], known.pvalues[0]], **CLOSE)
    np.testing.assert_allclose(found.log_likelihood, known.llf, rtol=1e-9)
    np.testing.assert_allclose(found.aic, known.aic, rtol=1e-9)
    np.testing.assert_allclose(
        Ridge(0.3).fit(_cut(x, rows), y).coef_, sk.Ridge(0.3).fit(x, y).coef_, rtol=1e-8
    )


def _compare(model, known, order):
    """Our summary against statsmodels' results; `order` puts the constant last."""
    found = model.summary()
    np.testing.assert_allclose(found.coef, order(known.params), **CLOSE)
    np.testing.assert_allclose(found.standard_errors, order(known.bse), **CLOSE)
    np.testing.assert_allclose(found.deviance, known.deviance, rtol=1e-6)
    np.testing.assert_allclose(found.null_deviance, known.null_deviance, rtol=1e-6)
    np.testing.assert_allclose(found.pearson_chi2, known.pearson_chi2, rtol=1e-6)
    np.testing.assert_allclose(found.scale, known.scale, rtol=1e-6)
    np.testing.assert_allclose(found.log_likelihood, known.llf, rtol=1e-6)
    np.testing.assert_allclose(found.confidence(), order(known.conf_int()), rtol=1e-6, atol=1e-6)
    assert "std err" in str(found)


def _last(values):
    values = np.asarray(values)
    return np.concatenate([values[1:], values[:1]])


@pytest.mark.parametrize("rows", TILES)
def test_cpunish(rows):
    data = sm.datasets.cpunish.load()
    x = np.array(data.exog, float)
    x[:, 3] = np.log(x[:, 3])
    y = np.array(data.endog, float)
    known = sm.GLM(y, sm.add_constant(x), family=sm.families.Poisson()).fit(tol=1e-14)
    _compare(PoissonRegressor(alpha=0, tol=1e-9).fit(_cut(x, rows), y), known, _last)


@pytest.mark.parametrize("rows", TILES)
def test_scotland(rows):
    data = sm.datasets.scotland.load()
    x, y = np.array(data.exog, float), np.array(data.endog, float)
    family = sm.families.Gamma(sm.families.links.Log())
    known = sm.GLM(y, sm.add_constant(x), family=family).fit(tol=1e-14)
    _compare(GeneralizedLinearModel("gamma", "log").fit(_cut(x, rows), y), known, _last)


@pytest.mark.filterwarnings("ignore:The InversePower link")
def test_scotland_with_the_inverse_link():
    data = sm.datasets.scotland.load()
    x, y = np.array(data.exog, float), np.array(data.endog, float)
    known = sm.GLM(y, sm.add_constant(x), family=sm.families.Gamma()).fit(tol=1e-14)
    _compare(GeneralizedLinearModel("gamma", "inverse").fit(_cut(x, 7), y), known, _last)


@pytest.mark.slow
@pytest.mark.parametrize("rows", MANY)
def test_star98(rows):
    data = sm.datasets.star98.load()
    counts, x = np.array(data.endog, float), np.array(data.exog, float)
    trials = counts.sum(axis=1)
    known = sm.GLM(counts, sm.add_constant(x), family=sm.families.Binomial()).fit(tol=1e-14)
    model = GeneralizedLinearModel("binomial").fit(_cut(x, rows), counts[:, 0] / trials, sample_weight=trials)
    found = model.summary()
    np.testing.assert_allclose(found.coef, _last(known.params), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.standard_errors, _last(known.bse), rtol=1e-6)
    np.testing.assert_allclose(found.deviance, known.deviance, rtol=1e-6)
    np.testing.assert_allclose(found.null_deviance, known.null_deviance, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [7, -1])
def test_randhie(rows):
    data = sm.datasets.randhie.load()
    x, y = np.array(data.exog, float)[:700], np.array(data.endog, float)[:700]
    known = sm.GLM(y, sm.add_constant(x), family=sm.families.Poisson()).fit(tol=1e-14)
    _compare(GeneralizedLinearModel("poisson").fit(_cut(x, rows), y), known, _last)
    joint = sm.NegativeBinomial(y, sm.add_constant(x)).fit(disp=0, method="newton", maxiter=200, tol=1e-14)
    model = NegativeBinomialRegressor().fit(_cut(x, rows), y)
    found = model.summary()
    np.testing.assert_allclose(found.coef[:-1], _last(joint.params[:-1]), **CLOSE)
    np.testing.assert_allclose(model.dispersion_, joint.params[-1], rtol=1e-6)
    np.testing.assert_allclose(found.standard_errors[:-1], _last(joint.bse[:-1]), **CLOSE)
    np.testing.assert_allclose(model.dispersion_standard_error_, joint.bse[-1], rtol=1e-6)
    np.testing.assert_allclose(found.log_likelihood, joint.llf, rtol=1e-8)


def test_a_given_dispersion_and_offsets():
    data = sm.datasets.randhie.load()
    x, y = np.array(data.exog, float)[:500], np.array(data.endog, float)[:500]
    offset = np.linspace(-0.5, 0.5, 500)
    family = sm.families.NegativeBinomial(alpha=0.5)
    known = sm.GLM(y, sm.add_constant(x), family=family, offset=offset).fit(tol=1e-14)
    model = NegativeBinomialRegressor(0.5).fit(_cut(x, 100), y, offset=offset)
    found = model.summary()
    np.testing.assert_allclose(found.coef, _last(known.params), **CLOSE)
    np.testing.assert_allclose(found.standard_errors, _last(known.bse), **CLOSE)
    np.testing.assert_allclose(found.null_deviance, known.null_deviance, rtol=1e-6)
    np.testing.assert_allclose(model.predict(x, offset=offset), known.mu, rtol=1e-6)
