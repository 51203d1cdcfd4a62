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


@pytest.mark.slow
def test_a_fit_is_the_same_from_any_table(data, tmp_path):
    x, y = data
    known = PoissonRegressor(alpha=0.1, tol=1e-10).fit(x, y)
    for name, table in _tables(x, tmp_path):
        model = PoissonRegressor(alpha=0.1, tol=1e-10).fit(table, y)
        np.testing.assert_allclose(model.coef_, known.coef_, rtol=1e-9, atol=1e-11, err_msg=name)
        np.testing.assert_allclose(
            np.asarray(model.predict(table)), known.predict(x), rtol=1e-8, err_msg=name
        )


@pytest.mark.slow
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


@pytest.mark.slow
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
    with pytest.raises(ValueError, match=r"offset must be 90 finite numbers"):
        PoissonRegressor().fit(x, y, offset=ln.asarray(np.ones(3)))
    with pytest.raises(ValueError, match=r"offset contains NaN"):
        PoissonRegressor().fit(x, y, offset=np.where(y > 1, np.nan, 0.0))
    with pytest.raises(ValueError, match=r"offset must be 90 finite numbers"):
        PoissonRegressor().fit(x, y).predict(x, offset=[1.0])


def test_the_data_are_read_once_an_iteration(data):
    """Counted where they are read: each tile once for each pass."""
    from linnet.bridges.parts import from_boxes
    from linnet.tiles import Layout

    x, y = data
    reads = []
    layout = Layout(((*range(0, 90, 13), 90), (0, 4)))
    for kind in (PoissonRegressor(alpha=0.1), LogisticRegression()):
        reads.clear()
        table = from_boxes(lambda box: reads.append(box[0].start) or x[box], layout, x.dtype)
        model = kind.fit(table, y if isinstance(kind, PoissonRegressor) else y > 1)
        assert len(reads) == 7 * np.max(model.n_iter_)
        assert sorted(reads) == sorted([*range(0, 90, 13)] * int(np.max(model.n_iter_)))
    reads.clear()
    KMeans(2, init=x[:2], n_init=1, max_iter=1, tol=1e9).fit(table)
    assert len(reads) == 7 * 3  # variances, one iteration, the inertia of the centres it gave


@pytest.mark.parametrize("classes", [2, 3])
def test_only_sums_leave_the_nodes(data, classes):
    """Of a table that is made on four nodes, an iteration moves no more than a few lines of numbers."""
    x = ln.random.default_rng(0).standard_normal((4_000, 20), chunks=(250, -1))
    y = np.arange(4_000) % classes
    plan = ln.plan(LogisticRegression().iteration(x, y), cluster=ln.Cluster(nodes=4))
    size = 21 if classes == 2 else 63
    line = 8 * (2 + size + size**2)
    assert plan.tasks >= 16
    assert plan.bytes_moved <= 8 * line + y.nbytes
    assert plan.bytes_moved < x.nbytes


@pytest.mark.slow
def test_sparse_tables_are_not_made_dense(monkeypatch):
    from linnet.bridges import sparse_arrays

    values = sparse.random_array((400, 30), density=0.05, rng=np.random.default_rng(0)).toarray()
    values[5:300] = 0  # tiles with nothing in them
    table = sparse.csr_array(values)
    rng = np.random.default_rng(1)
    y = rng.poisson(1.0, 400).astype(float)
    w = np.arange(400) % 3
    models = (
        PoissonRegressor(alpha=0.1, tol=1e-9),
        LogisticRegression(tol=1e-9),
        LinearRegression(),
        ElasticNet(0.001, tol=1e-9),
        LogisticRegression(solver="lbfgs", tol=1e-9),
    )
    known = [
        model.fit(table.toarray(), np.minimum(y, 2) if "Log" in type(model).__name__ else y, w).coef_
        for model in models
    ]
    monkeypatch.setattr(sparse_arrays._Dense, "__call__", None)
    monkeypatch.setattr("linnet.arrays.expression.chunking.target", lambda *_: 8 * 30 * 40)
    monkeypatch.setattr("linnet.models.linear.statistics_of", lambda *_, **__: None)
    for model, coef in zip(models, known, strict=True):
        target = np.minimum(y, 2) if "Log" in type(model).__name__ else y
        np.testing.assert_allclose(model.fit(table, target, w).coef_, coef, rtol=1e-6, atol=1e-8)


def test_lazy_weights_are_checked(data):
    x, y = data
    lazy = ln.asarray(x, chunks=(20, 2))
    for wrong, words in ((-1.0, "Negative values"), (np.nan, "contains NaN"), (0.0, "at least one non-zero")):
        w = np.full(90, 0.0)
        w[3] = wrong
        for model in (PoissonRegressor(), ElasticNet(), LinearRegression(), KMeans(2)):
            with pytest.raises(ValueError, match=words):
                model.fit(lazy, y, sample_weight=ln.asarray(w, chunks=20))


def test_columns_whose_squares_overflow(data):
    x, y = data
    for model in (PoissonRegressor(), ElasticNet(), LinearRegression(), Ridge(), LogisticRegression()):
        with pytest.raises(ValueError, match=r"too large for float64; scale these columns|not finite"):
            model.fit(x * 1e170, (y > 1).astype(int))


def test_components_of_sparse_tables_and_of_tables_far_from_zero(data):
    x, _ = data
    known = PCA(2).fit(x)
    table = sparse.csr_array(x)
    np.testing.assert_allclose(PCA(2).fit(table).transform(table), known.transform(x), atol=1e-12)
    far = ln.asarray(x + 1e8, chunks=(20, 3))
    np.testing.assert_allclose(PCA(2).fit(far).transform(far).compute(), known.transform(x), atol=1e-6)
