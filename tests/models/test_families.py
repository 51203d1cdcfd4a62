"""Loss, gradient and curvature of rows, against differences; and the pass against the formulas written out."""

from __future__ import annotations

import numpy as np
import pytest

from linnet.kernels import get
from linnet.kernels.models.families import FAMILIES, LINKS, rows

PAIRS = [
    ("gaussian", "identity", 0.0),
    ("gaussian", "log", 0.0),
    ("binomial", "logit", 0.0),
    ("binomial", "probit", 0.0),
    ("binomial", "cloglog", 0.0),
    ("binomial", "cauchit", 0.0),
    ("poisson", "log", 0.0),
    ("poisson", "sqrt", 0.0),
    ("gamma", "log", 0.0),
    ("gamma", "inverse", 0.0),
    ("inverse_gaussian", "log", 0.0),
    ("inverse_gaussian", "inverse_squared", 0.0),
    ("tweedie", "log", 1.5),
    ("tweedie", "log", 2.0),
    ("tweedie", "log", 3.0),
    ("tweedie", "identity", 1.3),
    ("negative_binomial", "log", 0.7),
    ("negative_binomial", "sqrt", 0.7),
]


def _values(family: str) -> np.ndarray:
    rng = np.random.default_rng(3)
    if family == "binomial":
        return rng.integers(0, 2, 12).astype(float)
    if family == "gaussian":
        return rng.standard_normal(12)
    return rng.gamma(2.0, 1.0, 12) if family in ("gamma", "inverse_gaussian") else rng.poisson(3.0, 12) + 0.5


@pytest.mark.parametrize(("family", "link", "parameter"), PAIRS)
def test_derivatives_are_those_of_the_loss(family, link, parameter):
    rng = np.random.default_rng(0)
    y = _values(family)
    eta = rng.uniform(0.4, 1.4, 12)
    h = 1e-5
    at = rows(family, link, parameter, eta, y)
    up, down = (rows(family, link, parameter, eta + s, y) for s in (h, -h))
    np.testing.assert_allclose(at.gradient, (up.loss - down.loss) / (2 * h), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(at.curvature, (up.gradient - down.gradient) / (2 * h), rtol=1e-6, atol=1e-7)
    assert rows(family, link, parameter, eta, y, "none").curvature is None


@pytest.mark.parametrize(("family", "link", "parameter"), PAIRS)
def test_expected_curvature_is_that_at_the_mean(family, link, parameter):
    """Where y is its mean, what is observed and what is expected agree."""
    eta = np.linspace(0.4, 1.4, 7)
    y = LINKS[link].inverse(eta)
    observed, expected = (rows(family, link, parameter, eta, y, kind) for kind in ("observed", "expected"))
    np.testing.assert_allclose(observed.curvature, expected.curvature, rtol=1e-10)
    np.testing.assert_allclose(expected.gradient, 0, atol=1e-10)


@pytest.mark.parametrize("link", list(LINKS))
def test_links_go_forth_and_back(link):
    eta = np.linspace(0.3, 1.5, 9)
    np.testing.assert_allclose(LINKS[link].forward(LINKS[link].inverse(eta)), eta, rtol=1e-10)


def test_the_deviance_at_the_observation_is_nothing():
    for name, family in FAMILIES.items():
        y = np.array([0.3, 0.9]) if name == "binomial" else np.array([0.5, 2.0])
        np.testing.assert_allclose(family.half_deviance(y, y.copy(), 1.5), 0, atol=1e-12)


def test_extreme_predictors_of_the_logistic_model_are_finite():
    found = rows("binomial", "logit", 0.0, np.array([-1e4, 1e4, 0.0]), np.array([1.0, 0.0, 1.0]))
    np.testing.assert_allclose(found.loss, [1e4, 1e4, np.log(2)])
    assert np.isfinite(found.gradient).all()
    assert (found.curvature >= 0).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("intercept", [True, False])
def test_a_pass_is_the_formulas_written_out(dtype, intercept):
    rng = np.random.default_rng(0)
    x = rng.integers(-3, 4, (50, 3)).astype(dtype)
    y, w, o = rng.poisson(2.0, 50).astype(float), rng.random(50), rng.standard_normal(50)
    shift = np.array([0.5, 0.0, -1.0])
    coef = rng.standard_normal(3 + intercept) * 0.2
    line = get("glm_pass")(
        x,
        coef,
        y,
        w,
        o,
        shift,
        given="ywos",
        family="poisson",
        link="log",
        parameter=0.0,
        intercept=intercept,
        curvature="observed",
    )[0]
    full = x.astype(float) - shift
    if intercept:
        full = np.c_[full, np.ones(50)]
    mu = np.exp(full @ coef + o)
    size = len(coef)
    np.testing.assert_allclose(line[0], w @ (mu - y * np.log(mu)))
    np.testing.assert_allclose(line[1], w.sum())
    np.testing.assert_allclose(line[2 : 2 + size], full.T @ (w * (mu - y)))
    np.testing.assert_allclose(line[2 + size :].reshape(size, size), full.T * (w * mu) @ full)


def test_a_row_without_weight_is_not_there():
    x, y = np.array([[1.0], [1e308]]), np.array([1.0, 1.0])
    how = {"family": "poisson", "link": "log", "parameter": 0.0, "intercept": False, "curvature": "observed"}
    line = get("glm_pass")(x, np.array([0.1]), y, np.array([1.0, 0.0]), given="yw", **how)
    assert np.isfinite(line[0, :2]).all()


def test_the_softmax_hessian_is_that_of_differences():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((30, 2)), rng.integers(0, 3, 30).astype(float)
    coef = rng.standard_normal((3, 3))
    call = get("softmax_pass")
    how = {"given": "y", "intercept": True}

    def gradient(flat):
        return call(x, flat.reshape(3, 3), y, curvature="none", **how)[0, 2:]

    hessian = call(x, coef, y, curvature="observed", **how)[0, 2 + 9 :].reshape(9, 9)
    h = 1e-6
    for k in range(9):
        moved = np.zeros(9)
        moved[k] = h
        column = (gradient(coef.ravel() + moved) - gradient(coef.ravel() - moved)) / (2 * h)
        np.testing.assert_allclose(hessian[:, k], column, rtol=1e-5, atol=1e-6)


def test_derivatives_by_the_dispersion_are_those_of_differences():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((30, 2)), rng.poisson(3.0, 30).astype(float)
    coef = np.array([0.2, -0.1, 1.0, 0.8])
    call = get("glm_dispersion")

    def line(at):
        return call(x, at, y, given="y", intercept=True, curvature="observed")[0]

    h = 1e-6
    found = line(coef)
    for k in range(4):
        moved = np.zeros(4)
        moved[k] = h
        up, down = line(coef + moved), line(coef - moved)
        np.testing.assert_allclose(found[2 + k], (up[0] - down[0]) / (2 * h), rtol=1e-5)
        column = (up[2:6] - down[2:6]) / (2 * h)
        np.testing.assert_allclose(found[6:].reshape(4, 4)[:, k], column, rtol=1e-4, atol=1e-4)
