"""Rows that come batch by batch, stochastic gradient descent, and rows that are held out."""

from __future__ import annotations

import numpy as np
import pytest

import linnet as ln
from linnet.models import (
    PCA,
    ElasticNet,
    GammaRegressor,
    GeneralizedLinearModel,
    KMeans,
    Lasso,
    LinearRegression,
    LogisticRegression,
    MLPClassifier,
    MLPRegressor,
    NegativeBinomialRegressor,
    PoissonRegressor,
    Ridge,
)


@pytest.fixture(scope="module")
def table():
    """Columns of very different scales, one far from zero."""
    x = np.random.default_rng(0).standard_normal((2000, 4))
    x[:, 1] *= 1e3
    x[:, 2] += 1e4
    return x


def _eta(x):
    return 0.5 * x[:, 0] - 0.4e-3 * x[:, 1] + 0.3 * (x[:, 2] - 1e4)


def _apart(model, known, x):
    """How far coefficients are apart, for columns of deviation 1; what all classes share does not count."""
    apart = np.atleast_2d((model.coef_ - known.coef_) * x.std(axis=0))
    return np.abs(apart - (apart.mean(axis=0) if len(apart) > 1 else 0.0)).max()


def _batches(size, count):
    return [slice(start, start + size) for start in range(0, count, size)]


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 7, 300])
@pytest.mark.parametrize("model", [LinearRegression(), Ridge(2.0), LinearRegression(fit_intercept=False)])
def test_least_squares_of_batches_is_that_of_all_rows(table, model, rows):
    x, w = table[:300].copy(), np.arange(300) % 3
    x[:, 2] -= 1e4  # without an intercept, nothing is taken off the columns
    y = _eta(x) + np.random.default_rng(1).standard_normal(300)
    known = model.fit(x, y, sample_weight=w)
    coef, intercept = known.coef_, known.intercept_
    again = type(model)(**model.get_params())
    for part in _batches(max(rows, 5), 300):
        again.partial_fit(ln.asarray(x[part], chunks=(rows, 2)), y[part], sample_weight=w[part] + 0.0)
    np.testing.assert_allclose(again.coef_, coef, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(again.intercept_, intercept, rtol=1e-9, atol=1e-12)


def test_least_squares_of_batches_far_from_zero(table):
    y = np.stack([_eta(table), table[:, 0]], axis=1)
    model = Ridge([0.1, 3.0])
    for part in _batches(500, 2000):
        model.partial_fit(table[part], y[part])
    known = Ridge([0.1, 3.0]).fit(table, y)
    np.testing.assert_allclose(model.coef_, known.coef_, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(model.intercept_, known.intercept_, rtol=1e-8)
    with pytest.raises(ValueError, match="y has 1 columns; batches before had 2"):
        model.partial_fit(table, y[:, 0])
    with pytest.raises(ValueError, match="X has 3 features, but Ridge is expecting 4"):
        model.partial_fit(table[:, :3], y)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [PoissonRegressor, GammaRegressor])
def test_descent_comes_near_the_minimum(table, kind):
    rng, mean = np.random.default_rng(2), np.exp(_eta(table))
    y = rng.poisson(mean).astype(float) if kind is PoissonRegressor else rng.gamma(2, mean / 2)
    known = kind(alpha=0.01).fit(table, y)
    model = kind(alpha=0.01, solver="sgd", tol=1e-4, random_state=0)
    model.fit(ln.asarray(table, chunks=(500, 4)), y)
    assert _apart(model, known, table) < 0.03
    assert known.score(table, y) - model.score(table, y) < 1e-3
    with pytest.raises(ValueError, match="was fitted"):
        model.summary()
    batches = kind(alpha=0.01)
    for _ in range(2):
        for part in _batches(250, 2000):
            batches.partial_fit(table[part], y[part])
    assert _apart(batches, known, table) < 0.08


def test_descent_is_the_same_twice_and_reads_the_data_once_an_epoch(table):
    y = np.random.default_rng(2).poisson(np.exp(_eta(table))).astype(float)
    models = [PoissonRegressor(solver="sgd", tol=1e-3, random_state=3).fit(table, y) for _ in range(2)]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    other = PoissonRegressor(solver="sgd", tol=1e-3, random_state=4).fit(table, y)
    assert (other.coef_ != models[0].coef_).any()


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
def test_classes(table, classes):
    rng = np.random.default_rng(3)
    y = sum((rng.random(2000) < 1 / (1 + np.exp(-_eta(table) + k))).astype(int) for k in range(classes - 1))
    known = LogisticRegression().fit(table, y)
    model = LogisticRegression(solver="sgd", tol=1e-4, random_state=0).fit(table, y)
    assert _apart(model, known, table) < 0.08
    names = np.array(["a", "b", "c"])[:classes]
    batches = LogisticRegression()
    for part in _batches(250, 2000):
        batches.partial_fit(table[part], names[y[part]], classes=names)
    assert batches.score(table, names[y]) > known.score(table, y) - 0.03
    assert batches.classes_.tolist() == names.tolist()
    with pytest.raises(ValueError, match=r"y has classes \['z'\] that are not among"):
        batches.partial_fit(table[:2], ["a", "z"])


def test_rows_held_out_end_a_fit_that_learns_noise():
    rng = np.random.default_rng(4)
    x, y = rng.standard_normal((200, 50)), rng.integers(0, 2, 200)
    fresh, truth = rng.standard_normal((3000, 50)), rng.integers(0, 2, 3000)
    how = {"C": np.inf, "solver": "sgd", "tol": 1e-3, "random_state": 0, "max_iter": 200}
    early = LogisticRegression(early_stopping=True, validation_fraction=0.3, **how).fit(x, y)
    late = LogisticRegression(**how).fit(x, y)
    assert early.n_iter_ < late.n_iter_
    assert np.abs(early.coef_).sum() < 0.5 * np.abs(late.coef_).sum()
    lost = [-model.predict_log_proba(fresh)[np.arange(3000), truth].mean() for model in (early, late)]
    assert lost[0] < lost[1]


def test_what_descent_refuses(table):
    y = np.arange(2000) % 2
    with pytest.raises(ValueError, match=r'early_stopping holds rows out while solver="sgd"'):
        LogisticRegression(early_stopping=True).fit(table, y)
    with pytest.raises(ValueError, match="validation_fraction must lie between 0 and 1; got 1"):
        PoissonRegressor(solver="sgd", early_stopping=True, validation_fraction=1.0).fit(table, y)
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        LogisticRegression().partial_fit(table, y)
    with pytest.raises(ValueError, match="contains NaN or infinity"):
        PoissonRegressor(solver="sgd").fit(ln.asarray(np.where(table > 2, np.nan, table), chunks=500), y)
    with pytest.raises(ValueError, match="makes no exact zeros"):
        LogisticRegression(l1_ratio=0.5, solver="sgd").fit(table, y)
    with pytest.raises(ValueError, match="makes no exact zeros"):
        LogisticRegression(l1_ratio=0.5, solver="sgd").fit(table, np.arange(2000) % 3)


def test_offsets_and_weights(table):
    x, y = table[:, :2], np.random.default_rng(5).poisson(np.exp(0.5 * table[:, 0] + 1)).astype(float)
    w = np.arange(2000) % 2
    model = PoissonRegressor(alpha=0, solver="sgd", tol=1e-4, random_state=0)
    model.fit(np.where(w[:, None] > 0, x, 50.0), y, sample_weight=w, offset=np.ones(2000))
    known = PoissonRegressor(alpha=0).fit(x, y, sample_weight=w, offset=np.ones(2000))
    assert _apart(model, known, x) < 0.03
    assert abs(model.intercept_ - known.intercept_) < 0.03


def test_impossible_means_are_stepped_out_of():
    x = np.random.default_rng(6).standard_normal((500, 2))
    y = np.maximum(x[:, 0] + 4 + 0.1 * x[:, 1], 0.1)
    model = GeneralizedLinearModel("gamma", "identity", solver="sgd", tol=1e-4, random_state=0).fit(x, y)
    assert np.isfinite(model.coef_).all()
    assert model.score(x, y) > 0.9


def test_clusters_of_batches():
    rng = np.random.default_rng(7)
    centres = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    x = centres[rng.integers(0, 3, 600)] + rng.standard_normal((600, 2))
    model = KMeans(3, random_state=0)
    for part in _batches(100, 600):
        model.partial_fit(ln.asarray(x[part], chunks=(40, 1)))
    known = KMeans(3, random_state=0).fit(x)
    order, other = (np.lexsort(each.cluster_centers_.round(0).T) for each in (model, known))
    np.testing.assert_allclose(model.cluster_centers_[order], known.cluster_centers_[other], atol=0.2)
    with pytest.raises(ValueError, match="n_samples=2 should be >= n_clusters=3"):
        KMeans(3).partial_fit(x[:2])


def test_networks_of_batches():
    x = np.random.default_rng(8).standard_normal((200, 2))
    y = x[:, 0] * 2 + 1
    number = MLPRegressor((8,), learning_rate=0.02, random_state=0)
    named = MLPClassifier((8,), learning_rate=0.02, random_state=0)
    first = None
    for _ in range(8):
        number.partial_fit(x, y)
        named.partial_fit(x, y > 1, classes=[False, True])
        first = number.loss_ if first is None else first
    assert number.loss_ < 0.5 * first
    assert number.n_iter_ == named.n_iter_ == 8
    assert named.score(x, y > 1) > 0.8


@pytest.mark.parametrize("model", [Lasso(0.1), ElasticNet(0.05, tol=1e-10), ElasticNet(fit_intercept=False)])
def test_elastic_nets_of_batches_are_those_of_all_rows(table, model):
    x, w = table[:120], np.arange(120) % 3 + 0.0
    y = _eta(x) + np.random.default_rng(1).standard_normal(120)
    known = type(model)(**model.get_params()).fit(x, y, sample_weight=w)
    for part in _batches(40, 120):
        model.partial_fit(ln.asarray(x[part], chunks=(7, 2)), y[part], sample_weight=w[part])
    np.testing.assert_allclose(model.coef_ * x.std(axis=0), known.coef_ * x.std(axis=0), atol=1e-6)
    np.testing.assert_allclose(model.predict(x), known.predict(x), atol=1e-5)
    assert np.array_equal(model.coef_ == 0, known.coef_ == 0)
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(x[:, :2], y)


@pytest.mark.parametrize("count", [2, 0.9999, None])
def test_components_of_batches_are_those_of_all_rows(table, count):
    known, model = PCA(count).fit(table), PCA(count)
    for part in _batches(700, 2000):
        model.partial_fit(table[part])
    np.testing.assert_allclose(model.mean_, known.mean_, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(model.explained_variance_, known.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(model.components_, known.components_, atol=1e-9)
    assert model.n_samples_ == 2000
    model.partial_fit(table[:1])  # one more row
    with pytest.raises(ValueError, match="needs all rows at once"):
        PCA(svd_solver="full").partial_fit(table)


def test_negative_binomial_batches_need_a_dispersion(table):
    rng = np.random.default_rng(1)
    y = rng.poisson(np.exp(_eta(table)) * rng.gamma(2.0, 0.5, 2000)).astype(float)
    with pytest.raises(AttributeError, match="partial_fit") as error:
        NegativeBinomialRegressor().partial_fit(table, y)
    assert "give dispersion=<number>" in str(error.value.__cause__)
    model, known = NegativeBinomialRegressor(0.5), NegativeBinomialRegressor(0.5).fit(table, y)
    for _ in range(10):
        for part in _batches(500, 2000):
            model.partial_fit(table[part], y[part])
    assert _apart(model, known, table) < 0.1
    assert model.dispersion_ == 0.5
