"""Data that are hard: separable, collinear, constant, badly scaled, far from zero, or not finite.

A right answer, a warning, or a clear error; never silent NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import linnet as ln
from linnet import models
from linnet.models import (
    PCA,
    ElasticNet,
    GammaRegressor,
    GeneralizedLinearModel,
    KMeans,
    LinearRegression,
    LogisticRegression,
    NegativeBinomialRegressor,
    PoissonRegressor,
    Ridge,
    TweedieRegressor,
)


def _table(rows=80, columns=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, columns))
    return x, rng.poisson(np.exp(0.5 * x[:, 0])).astype(float)


@pytest.mark.slow
def test_classes_that_can_be_told_apart():
    x = np.linspace(-1, 1, 40)[:, None]
    y = (x[:, 0] > 0).astype(int)
    with pytest.warns(ConvergenceWarning, match="can be told apart without an error"):
        model = LogisticRegression(np.inf).fit(x, y)
    assert np.isfinite(model.coef_).all()
    assert model.score(x, y) == 1.0
    LogisticRegression(1.0).fit(x, y)  # a penalty: nothing to warn of


@pytest.mark.parametrize("model", [PoissonRegressor(alpha=0), GeneralizedLinearModel("gaussian")])
def test_columns_that_depend_on_others(model):
    x, y = _table()
    with pytest.warns(ConvergenceWarning, match="columns of X depend on others"):
        doubled = model.fit(np.c_[x, x[:, 0] + x[:, 1]], y).predict(np.c_[x, x[:, 0] + x[:, 1]])
    np.testing.assert_allclose(doubled, model.fit(x, y).predict(x), rtol=1e-6)


def test_least_squares_with_dependent_columns_is_the_shortest():
    x, y = _table()
    table = np.c_[x, x[:, :1]]
    model = LinearRegression().fit(table, y)
    centred = table - table.mean(axis=0)
    np.testing.assert_allclose(model.coef_, np.linalg.pinv(centred) @ (y - y.mean()), atol=1e-10)
    assert model.rank_ == 3
    short = LinearRegression().fit(table[:3], y[:3])
    np.testing.assert_allclose(short.predict(table[:3]), y[:3], atol=1e-10)


def test_constant_columns_and_constant_targets():
    x, y = _table()
    x[:, 1] = 3.0
    with pytest.warns(ConvergenceWarning, match="or are constant"):
        model = PoissonRegressor(alpha=0).fit(x, y)
    assert np.isfinite(model.coef_).all()
    assert LinearRegression().fit(x, np.full(80, 2.5)).predict(x) == pytest.approx(2.5)
    net = ElasticNet(0.01).fit(x, y)
    assert net.coef_[1] == 0.0


@pytest.mark.parametrize("solver", ["newton", "irls"])
def test_badly_scaled_columns(solver):
    x, y = _table()
    scale = np.array([1e8, 1.0, 1e-8])
    plain = PoissonRegressor(alpha=0, solver=solver, tol=1e-9).fit(x, y)
    model = PoissonRegressor(alpha=0, solver=solver, tol=1e-9).fit(x * scale, y)
    np.testing.assert_allclose(model.coef_ * scale, plain.coef_, rtol=1e-6)
    assert LinearRegression().fit(x * scale, y).coef_ * scale == pytest.approx(
        LinearRegression().fit(x, y).coef_
    )


def test_columns_far_from_zero():
    x, y = _table()
    far = x + 2.0**20  # exact: the digits that are lost are lost when the table is made
    near = far - 2.0**20
    for model in (
        PoissonRegressor(alpha=0),
        LogisticRegression(np.inf),
        LinearRegression(),
        ElasticNet(0.01),
        Ridge(),
    ):
        target = y > 1 if isinstance(model, LogisticRegression) else y
        expected = model.fit(near, target).coef_.copy()
        np.testing.assert_allclose(model.fit(far, target).coef_, expected, rtol=1e-6)
    expected = PCA(2).fit(near).explained_variance_
    np.testing.assert_allclose(PCA(2).fit(far).explained_variance_, expected, rtol=1e-8)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize(
    "model",
    [
        LinearRegression(),
        Ridge(),
        PoissonRegressor(),
        LogisticRegression(),
        ElasticNet(),
        PCA(2),
        KMeans(2),
        models.KernelRidge(),
        models.TruncatedSVD(2),
        models.MLPRegressor((3,)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_tables_that_are_not_finite(model, bad):
    x, y = _table()
    x[40, 1] = bad
    target = (y > 1).astype(int) if isinstance(model, LogisticRegression) else y
    with pytest.raises((ValueError, ln.LinAlgError), match=r"(?i)nan|finite|infinity"):
        model.fit(ln.asarray(x, chunks=(20, 3)), target)
    with pytest.raises(ValueError, match="Input X contains"):
        model.fit(x, target)


def test_values_of_y_that_a_family_has_not():
    x, y = _table()
    with pytest.raises(
        ValueError, match="out of the valid range of the poisson family: they lie between -1 and"
    ):
        PoissonRegressor().fit(x, np.where(y == 0, -1.0, y))
    with pytest.raises(ValueError, match="gamma family: they lie between 0 and .* must be above 0"):
        GammaRegressor().fit(ln.asarray(x), ln.asarray(y))
    with pytest.raises(ValueError, match="at least 0 and at most 1"):
        GeneralizedLinearModel("binomial").fit(x, y)


def test_parameters_that_mean_nothing():
    x, y = _table()
    with pytest.raises(ValueError, match="there is no family 'normal'; use one of gaussian, binomial"):
        GeneralizedLinearModel("normal").fit(x, y)
    with pytest.raises(ValueError, match="there is no link 'ln'; use one of identity, log"):
        GeneralizedLinearModel("poisson", "ln").fit(x, y)
    with pytest.raises(ValueError, match="has no solver 'simplex'; use one of auto, newton"):
        PoissonRegressor(solver="simplex").fit(x, y)
    with pytest.raises(ValueError, match="no distribution has a variance"):
        TweedieRegressor(power=0.5).fit(x, y)
    with pytest.raises(ValueError, match="alpha must be a finite number of at least 0; got -1"):
        PoissonRegressor(alpha=-1).fit(x, y)
    with pytest.raises(ValueError, match="fitted with a penalty"):
        PoissonRegressor().fit(x, y).summary()
    with pytest.raises(ValueError, match="makes no exact zeros"):
        LogisticRegression(l1_ratio=0.5, solver="newton").fit(x, y > 1)
    with pytest.raises(ValueError, match="Sample weights must contain at least one non-zero number"):
        PoissonRegressor().fit(x, y, sample_weight=ln.zeros(80))


def test_too_few_iterations_are_told():
    x, y = _table()
    for solver in ("newton", "lbfgs"):
        with pytest.warns(ConvergenceWarning, match="did not converge in 1 of at most 1 iterations"):
            PoissonRegressor(alpha=0.01, solver=solver, max_iter=1).fit(x, y)
    with pytest.warns(ConvergenceWarning, match="did not converge in 2 sweeps"):
        ElasticNet(0.001, max_iter=2, tol=1e-14).fit(x, y)


def test_counts_that_are_poissons():
    x = np.random.default_rng(1).standard_normal((60, 1))
    y = np.full(60, 3.0)
    y[::2] = 2.0  # varies less than Poisson's
    with pytest.warns(ConvergenceWarning, match="the dispersion is 0"):
        model = NegativeBinomialRegressor().fit(x, y)
    assert model.dispersion_ == 0
    np.testing.assert_allclose(model.coef_, PoissonRegressor(alpha=0).fit(x, y).coef_, rtol=1e-6)


def test_progress_is_told(capsys):
    x, y = _table()
    PoissonRegressor(verbose=1).fit(x, y)
    said = capsys.readouterr().out
    assert "PoissonRegressor: iteration 1, objective" in said
    assert "s left" in said


@pytest.fixture
def drawn():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((300, 4))
    eta = x @ [0.5, -0.3, 0.0, 0.2]
    counts = rng.poisson(np.exp(eta)).astype(float)
    return x, counts, (rng.random(300) < 1 / (1 + np.exp(-eta))).astype(int)


@pytest.mark.parametrize("solver", ["newton", "irls"])
@pytest.mark.parametrize("value", [1.0, 0.1, -3e7])
def test_a_constant_column_beside_an_intercept_has_no_coefficient(drawn, solver, value):
    x, counts, classes = drawn
    more = np.column_stack([x, np.full(len(x), value)])
    with pytest.warns(ConvergenceWarning, match="depend"):
        poisson = PoissonRegressor(alpha=0, tol=1e-10, solver=solver).fit(more, counts)
    known = PoissonRegressor(alpha=0, tol=1e-10, solver=solver).fit(x, counts)
    expected = [*known.coef_, 0, known.intercept_]
    np.testing.assert_allclose([*poisson.coef_, poisson.intercept_], expected, atol=1e-8)
    with pytest.warns(ConvergenceWarning, match="depend"):
        logistic = LogisticRegression(C=np.inf, tol=1e-10, solver=solver).fit(more, classes)
    known = LogisticRegression(C=np.inf, tol=1e-10, solver=solver).fit(x, classes)
    np.testing.assert_allclose(logistic.coef_[0], [*known.coef_[0], 0], atol=1e-8)


def test_a_constant_column_in_batches(drawn):
    x, _, _ = drawn
    y = x @ [1.0, 2.0, 3.0, 4.0] + 5
    more = np.column_stack([x, np.full(len(x), 0.1)])
    model = LinearRegression()
    for start in range(0, 300, 100):
        model.partial_fit(more[start : start + 100], y[start : start + 100])
    np.testing.assert_allclose([*model.coef_, model.intercept_], [1, 2, 3, 4, 0, 5], atol=1e-9)
    model.partial_fit(np.column_stack([x, x[:, 0] ** 2]), y + 7 * x[:, 0] ** 2 - 0.7)
    np.testing.assert_allclose([*model.coef_, model.intercept_], [1, 2, 3, 4, 7, 4.3], atol=1e-9)


@pytest.mark.parametrize("far", [1e5, 1e8])
def test_many_classes_with_columns_far_from_zero(drawn, far):
    x, counts, _ = drawn
    y = np.minimum(counts, 2)
    known = LogisticRegression(tol=1e-10).fit(x, y)
    found = LogisticRegression(tol=1e-10).fit(x + far, y)
    np.testing.assert_allclose(found.coef_, known.coef_, atol=2e-16 * far * 10)
    np.testing.assert_allclose(found.predict_proba(x + far), known.predict_proba(x), atol=1e-6)


@pytest.mark.parametrize("far", [100.0, -100.0, 700.0, -700.0])
def test_offsets_far_from_zero_move_the_intercept_alone(drawn, far):
    x, counts, classes = drawn
    offset = np.full(300, far) + 0.1 * x[:, 3]
    near = 0.1 * x[:, 3]
    cases: list[tuple[Any, Any]] = [
        (PoissonRegressor(alpha=0), counts),
        (GammaRegressor(alpha=0), counts + 0.5),
        (NegativeBinomialRegressor(), counts),
        (LogisticRegression(C=np.inf), classes),
    ]
    for model, y in cases:
        other: Any = clone(model)
        known, found = model.fit(x, y, offset=near), other.fit(x, y, offset=offset)
        np.testing.assert_allclose(np.ravel(found.coef_), np.ravel(known.coef_), rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(found.intercept_, known.intercept_ - far, rtol=1e-6)
        assert found.summary().null_deviance == pytest.approx(known.summary().null_deviance)


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
@pytest.mark.parametrize("classes", [2, 3])
def test_classes_that_can_be_told_apart_are_told_by_every_solver(solver, classes):
    x = np.linspace(0, classes, 30, endpoint=False)[:, None] - classes / 2
    y = np.repeat(np.arange(classes), 30 // classes)
    with pytest.warns(ConvergenceWarning, match="told apart"):
        LogisticRegression(C=np.inf, solver=solver).fit(x, y)
