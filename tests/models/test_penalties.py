"""Exact zeros, paths and cross-validation, against scikit-learn; and solvers against one another."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import sklearn.linear_model as sk
from sklearn import datasets

import linnet as ln
from linnet.kernels.models import descent
from linnet.models import (
    ElasticNet,
    ElasticNetCV,
    GammaRegressor,
    Lasso,
    LogisticRegression,
    PoissonRegressor,
    TweedieRegressor,
    enet_path,
    fitting,
    gram,
    lasso_path,
    wide,
)
from linnet.models.proximal import kkt_residual


@pytest.fixture
def diabetes():
    return datasets.load_diabetes(return_X_y=True)


@pytest.mark.parametrize("rows", [1, 7, -1])
@pytest.mark.parametrize("ratio", [1.0, 0.5])
def test_elastic_nets_are_scikit_learns(diabetes, rows, ratio):
    x, y = diabetes
    known = sk.ElasticNet(0.02, l1_ratio=ratio, tol=1e-14, max_iter=100_000).fit(x, y)
    model = ElasticNet(0.02, l1_ratio=ratio, tol=1e-10).fit(ln.asarray(x, chunks=(rows, -1)), y)
    np.testing.assert_allclose(model.coef_, known.coef_, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(model.coef_ == 0, known.coef_ == 0)
    assert model.kkt_residual_ < 1e-6
    assert model.dual_gap_ < 1e-5


def test_paths_are_scikit_learns(diabetes):
    x, y = diabetes
    alphas, coefs, gaps = enet_path(x, y, l1_ratio=0.7, n_alphas=15, tol=1e-10)
    again, theirs, _ = sk.enet_path(x, y, l1_ratio=0.7, alphas=alphas, tol=1e-14, max_iter=100_000)
    np.testing.assert_allclose(again, alphas)
    np.testing.assert_allclose(coefs, theirs, rtol=1e-6, atol=1e-6)
    assert (gaps < 1e-3).all()
    assert not coefs[:, 0].any()
    np.testing.assert_allclose(
        lasso_path(x, y, alphas=[0.1])[1][:, 0],
        sk.Lasso(0.1, fit_intercept=False, tol=1e-12).fit(x, y).coef_,
        atol=1e-3,
    )


def test_many_columns_have_a_working_set(monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((60, 200)) + 1
    y = x[:, :5] @ rng.standard_normal(5) + 0.1 * rng.standard_normal(60)
    w = rng.integers(1, 4, 60)
    known = sk.ElasticNet(0.05, l1_ratio=0.9, tol=1e-13, max_iter=100_000).fit(x, y, sample_weight=w)
    monkeypatch.setattr(gram, "WIDE", 50)
    model = ElasticNet(0.05, l1_ratio=0.9, tol=1e-10).fit(ln.asarray(x, chunks=(13, 70)), y, sample_weight=w)
    np.testing.assert_allclose(model.coef_, known.coef_, atol=1e-7)
    np.testing.assert_array_equal(model.coef_ == 0, known.coef_ == 0)
    assert model.intercept_ == pytest.approx(known.intercept_, abs=1e-6)
    assert model.kkt_residual_ < 1e-8


def test_cross_validation_is_scikit_learns(diabetes):
    x, y = diabetes
    known = sk.ElasticNetCV(l1_ratio=[0.5, 0.9], alphas=12, tol=1e-10, max_iter=100_000).fit(x, y)
    model = ElasticNetCV(l1_ratio=[0.5, 0.9], alphas=12, tol=1e-9).fit(x, y)
    assert (model.alpha_, model.l1_ratio_) == pytest.approx((known.alpha_, known.l1_ratio_))
    np.testing.assert_allclose(model.mse_path_, known.mse_path_, rtol=1e-7)
    np.testing.assert_allclose(model.coef_, known.coef_, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
def test_logistic_zeros_are_scikit_learns(classes):
    x, y = datasets.load_iris(return_X_y=True)
    y = np.minimum(y, classes - 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known = sk.LogisticRegression(C=0.3, l1_ratio=0.8, solver="saga", tol=1e-9, max_iter=20_000).fit(x, y)
    model = LogisticRegression(0.3, l1_ratio=0.8, tol=1e-9).fit(x, y)
    np.testing.assert_allclose(model.coef_, known.coef_, atol=1e-5)
    np.testing.assert_array_equal(model.coef_ == 0, known.coef_ == 0)


def test_descent_in_python_takes_the_same_steps():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((30, 8))
    q, c, l1 = x.T @ x, x.T @ rng.standard_normal(30), np.full(8, 2.0)
    compiled, plain = np.zeros(8), np.zeros(8)
    one = descent.descend(q, c, l1, compiled, 1e-10)
    two = descent.descend_in_python(q, l1, plain, -c.copy(), 1e-10, 10_000)
    assert one == two
    np.testing.assert_allclose(compiled, plain, atol=1e-14)
    assert kkt_residual(q @ plain - c, plain, l1) < 1e-8


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["newton", "irls", "lbfgs"])
def test_solvers_agree(solver):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((200, 5))
    y = rng.gamma(2.0, np.exp(x[:, 0] * 0.5))
    for model, peer in (
        (GammaRegressor, sk.GammaRegressor),
        (PoissonRegressor, sk.PoissonRegressor),
        (lambda **k: TweedieRegressor(power=1.4, **k), lambda **k: sk.TweedieRegressor(power=1.4, **k)),
    ):
        known = peer(alpha=0.1, solver="newton-cholesky", tol=1e-12).fit(x, y)
        found = model(alpha=0.1, solver=solver, tol=1e-9).fit(x, y)
        np.testing.assert_allclose(found.coef_, known.coef_, rtol=1e-6, atol=1e-7)
        assert found.score(x, y) == pytest.approx(known.score(x, y), abs=1e-9)
        assert (np.diff(found.objective_history_) <= 1e-12 * found.objective_history_[0]).all()


def test_warm_starts_need_fewer_iterations():
    x, y = datasets.load_breast_cancer(return_X_y=True)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    model = LogisticRegression(warm_start=True).fit(x, y)
    first = int(model.n_iter_[0])
    assert int(model.fit(x, y).n_iter_[0]) < first


@pytest.mark.slow
def test_many_columns_have_a_hessian_in_tiles(monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((120, 20))
    y = (rng.random(120) < 1 / (1 + np.exp(-x[:, 0]))).astype(int)
    counts, w, o = rng.poisson(np.exp(0.3 * x[:, 0])), np.arange(120) % 3, np.linspace(-1, 1, 120)
    known = LogisticRegression(tol=1e-9).fit(x, y)
    other = PoissonRegressor(alpha=0.1, tol=1e-9).fit(x, counts, w, o)
    monkeypatch.setattr(fitting, "WIDE", 10)
    monkeypatch.setattr(wide, "_TILE", 8)
    model = LogisticRegression(tol=1e-9).fit(ln.asarray(x, chunks=(30, 5)), y)
    np.testing.assert_allclose(model.coef_, known.coef_, rtol=1e-7, atol=1e-9)
    model = PoissonRegressor(alpha=0.1, tol=1e-9).fit(x, counts, w, o)
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-7, atol=1e-9)
    with pytest.raises(ln.LinAlgError, match="columns of X depend on"):
        PoissonRegressor(alpha=0).fit(np.c_[x, x], counts)


def test_lasso_is_the_elastic_net_without_squares(diabetes):
    x, y = diabetes
    np.testing.assert_array_equal(Lasso(0.1).fit(x, y).coef_, ElasticNet(0.1, l1_ratio=1.0).fit(x, y).coef_)
    with pytest.raises(ValueError, match="l1_ratio must lie between 0 and 1; got 2"):
        ElasticNet(l1_ratio=2).fit(x, y)
    with pytest.raises(ValueError, match="give alphas= yourself"):
        enet_path(x, y, l1_ratio=0.0)
