"""The same fit from everything that holds a table; lazily, where the table is lazy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import linnet as ln
from linnet.models import (
    PCA,
    ElasticNet,
    KMeans,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((90, 4))
    x[x < -0.5] = 0.0
    return x, rng.poisson(np.exp(0.4 * x[:, 0])).astype(float)


def _tables(x, folder):
    import pandas
    import polars

    columns = [f"c{k}" for k in range(x.shape[1])]
    yield "pandas", pandas.DataFrame(x, columns=columns)
    yield "polars", polars.DataFrame(x, schema=columns)
    yield "csr", sparse.csr_array(x)
    yield "csc matrix", sparse.csc_matrix(x)
    yield "list", x.tolist()
    yield "Fortran", np.asfortranarray(x)
    yield "tiles", ln.asarray(x, chunks=(13, 3))
    yield "expression", ln.asarray(x, chunks=(20, 2)) * 2 / 2
    np.save(folder / "x.npy", x)
    yield "from_npy", ln.from_npy(folder / "x.npy")
    yield "npy", folder / "x.npy"
    ln.to_csv(ln.asarray(x), folder / "x.csv", header=columns)
    yield "read_csv", ln.read_csv(folder / "x.csv")


def test_a_fit_is_the_same_from_any_table(data, tmp_path):
    x, y = data
    known = PoissonRegressor(alpha=0.1, tol=1e-10).fit(x, y)
    for name, table in _tables(x, tmp_path):
        model = PoissonRegressor(alpha=0.1, tol=1e-10).fit(table, y)
        np.testing.assert_allclose(model.coef_, known.coef_, rtol=1e-9, atol=1e-11, err_msg=name)
        np.testing.assert_allclose(
            np.asarray(model.predict(table)), known.predict(x), rtol=1e-8, err_msg=name
        )


def test_predictions_of_lazy_tables_are_lazy(data):
    x, y = data
    lazy = ln.asarray(x, chunks=(13, 2))
    codes = (y > 1).astype(int) + (y > 3)
    for model in (PoissonRegressor(), LinearRegression(), Ridge(), ElasticNet(0.01)):
        made = model.fit(lazy, y).predict(lazy)
        assert isinstance(made, ln.Array)
        np.testing.assert_allclose(made.compute(), model.predict(x), rtol=1e-10)
        np.testing.assert_allclose(model.score(lazy, y), model.score(x, y), rtol=1e-10)
    for target in (codes, codes > 0):
        model = LogisticRegression().fit(lazy, ln.asarray(target))
        for method in ("predict", "predict_proba", "decision_function"):
            made = getattr(model, method)(lazy)
            assert isinstance(made, ln.Array)
            np.testing.assert_allclose(made.compute(), getattr(model, method)(x), rtol=1e-9, atol=1e-12)
        assert model.score(lazy, ln.asarray(target)) == pytest.approx(model.score(x, target))
    assert isinstance(PCA(2).fit(lazy).transform(lazy), ln.Array)
    assert isinstance(KMeans(2, random_state=0).fit(lazy).predict(lazy), ln.Array)


def test_weights_and_offsets_may_be_lazy(data):
    x, y = data
    w, o = np.arange(90) % 3 + 0.5, np.linspace(-1, 1, 90)
    known = PoissonRegressor(alpha=0.1).fit(x, y, sample_weight=w, offset=o)
    lazy = [ln.asarray(each, chunks=20) for each in (y, w, o)]
    model = PoissonRegressor(alpha=0.1).fit(ln.asarray(x, chunks=(20, 4)), lazy[0], lazy[1], lazy[2])
    np.testing.assert_allclose(model.coef_, known.coef_, rtol=1e-9)


def test_weights_are_frequencies(data):
    x, y = data
    w = np.arange(90) % 3
    again = np.repeat(np.arange(90), w)
    for model in (PoissonRegressor(alpha=0.1), LinearRegression(), ElasticNet(0.01, tol=1e-10)):
        weighted = model.fit(x, y, sample_weight=w).coef_
        np.testing.assert_allclose(weighted, model.fit(x[again], y[again]).coef_, rtol=1e-6, atol=1e-9)


def test_class_weights(data):
    import sklearn.linear_model as sk

    x, y = data
    for codes in ((y > 2).astype(int), (y > 0).astype(int) + (y > 2)):
        for given in ("balanced", {0: 2.0, 1: 0.5}):
            known = sk.LogisticRegression(class_weight=given, tol=1e-12, solver="newton-cholesky").fit(
                x, codes
            )
            model = LogisticRegression(class_weight=given).fit(
                ln.asarray(x, chunks=(20, 4)), ln.asarray(codes)
            )
            np.testing.assert_allclose(model.coef_, known.coef_, rtol=1e-6, atol=1e-7)
    with pytest.raises(ValueError, match=r"\[7\], are not in class_weight"):
        LogisticRegression(class_weight={7: 1.0}).fit(x, y > 2)


def test_tables_that_do_not_fit(data, tmp_path):
    x, y = data
    lazy = ln.asarray(x)
    model = LinearRegression().fit(x, y)
    with pytest.raises(ValueError, match="X has 3 features, but LinearRegression is expecting 4 features"):
        model.predict(lazy[:, :3])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        LinearRegression().fit(lazy, y[:5])
    with pytest.raises(ValueError, match="Expected 2D array, got 1D"):
        LinearRegression().fit(lazy[:, 0], y)
    with pytest.raises(ValueError, match="models take booleans, integers and floats"):
        LinearRegression().fit(lazy.astype(complex), y)
    with pytest.raises(
        ln.InputError, match=r"x.txt cannot be read by its name; give a path that ends in .npy"
    ):
        LinearRegression().fit(tmp_path / "x.txt", y)
    with pytest.raises(
        ValueError, match=r"offset must be 90 finite numbers, one for each row; got shape \(3,\)"
    ):
        PoissonRegressor().fit(x, y, offset=np.ones(3))


def test_the_data_are_read_once_an_iteration(data, monkeypatch):
    """Each pass is one program, in which every tile of the table is read by one task."""
    from linnet.models import design

    x, y = data
    reads = []
    plain = design.computed
    monkeypatch.setattr(design, "computed", lambda nodes: reads.append(len(nodes)) or plain(nodes))
    model = PoissonRegressor(alpha=0.1).fit(ln.asarray(x, chunks=(13, 4)), y)
    assert len(reads) == model.n_iter_
    plan = ln.plan(model.iteration(ln.asarray(x, chunks=(13, 4)), y), cluster=ln.Cluster(nodes=2))
    assert plan.tasks > 7
    assert plan.bytes_moved < x.nbytes / 2
