"""Components, clusters, factors, processes, ranks and networks, against scikit-learn or their definitions."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.cluster
import sklearn.decomposition
import sklearn.kernel_ridge
from scipy import sparse
from sklearn import datasets

import linnet as ln
from linnet.kernels import get
from linnet.models import (
    CP,
    NMF,
    PCA,
    GaussianProcessRegressor,
    KernelRidge,
    KMeans,
    LinearRegression,
    MatrixFactorization,
    MLPClassifier,
    MLPRegressor,
    PageRank,
    TruncatedSVD,
)

pytestmark = pytest.mark.slow


@pytest.fixture
def wine():
    return datasets.load_wine(return_X_y=True)[0]


@pytest.mark.parametrize("rows", [7, -1])
@pytest.mark.parametrize("solver", ["auto", "full", "covariance_eigh", "randomized"])
def test_components_are_scikit_learns(wine, solver, rows):
    known = sklearn.decomposition.PCA(4, svd_solver="full").fit(wine)
    model = PCA(4, svd_solver=solver, random_state=0).fit(ln.asarray(wine, chunks=(rows, -1)))
    np.testing.assert_allclose(model.explained_variance_, known.explained_variance_, rtol=1e-6)
    np.testing.assert_allclose(model.explained_variance_ratio_, known.explained_variance_ratio_, rtol=1e-6)
    np.testing.assert_allclose(np.abs(model.components_), np.abs(known.components_), atol=1e-5)
    np.testing.assert_allclose(model.noise_variance_, known.noise_variance_, rtol=1e-5)
    np.testing.assert_allclose(
        model.inverse_transform(model.transform(wine)),
        known.inverse_transform(known.transform(wine)),
        rtol=1e-4,
        atol=1e-3,
    )
    whitened = PCA(3, whiten=True).fit(wine).transform(wine)
    np.testing.assert_allclose(np.cov(whitened.T), np.eye(3), atol=1e-8)


def test_a_share_of_the_variance(wine):
    assert PCA(0.9999).fit(wine).n_components_ == sklearn.decomposition.PCA(0.9999).fit(wine).n_components_
    with pytest.raises(ValueError, match="n_components=50 must be between 1 and"):
        PCA(50).fit(wine)


@pytest.mark.parametrize("algorithm", ["exact", "randomized"])
def test_truncated_svd_is_scikit_learns(wine, algorithm):
    known = sklearn.decomposition.TruncatedSVD(3, algorithm="arpack", random_state=0).fit(wine)
    for table in (wine, sparse.csr_array(wine), ln.asarray(wine, chunks=(20, 5))):
        model = TruncatedSVD(3, algorithm=algorithm, random_state=0).fit(table)
        np.testing.assert_allclose(model.singular_values_, known.singular_values_, rtol=1e-7)
        np.testing.assert_allclose(np.abs(model.components_), np.abs(known.components_), atol=1e-6)


def test_clusters_are_scikit_learns():
    x, _ = datasets.make_blobs(300, centers=4, n_features=3, random_state=0)
    w = np.arange(300) % 3 + 1.0
    known = sklearn.cluster.KMeans(4, init=x[:4], n_init=1, tol=0).fit(x, sample_weight=w)
    for rows in (1, 7, -1):
        model = KMeans(4, init=x[:4], tol=0).fit(ln.asarray(x, chunks=(rows, -1)), sample_weight=w)
        np.testing.assert_allclose(model.cluster_centers_, known.cluster_centers_, rtol=1e-10)
        np.testing.assert_array_equal(np.asarray(model.labels_), known.labels_)
        assert model.inertia_ == pytest.approx(known.inertia_)
        assert model.score(x, sample_weight=w) == pytest.approx(known.score(x, sample_weight=w))
    best = KMeans(4, random_state=0).fit(x).inertia_
    assert best == pytest.approx(
        sklearn.cluster.KMeans(4, n_init=10, random_state=0).fit(x).inertia_, rel=1e-6
    )


def test_nonnegative_factors():
    rng = np.random.default_rng(0)
    x = rng.random((40, 3)) @ rng.random((3, 12)) + 0.05 * rng.random((40, 12))
    model = NMF(3, random_state=0, tol=1e-4).fit(ln.asarray(x, chunks=(7, 5)))
    assert (model.components_ >= 0).all()
    assert model.reconstruction_err_ < 0.03 * np.linalg.norm(x)
    np.testing.assert_allclose(model.inverse_transform(model.transform(x)), x, atol=0.1)
    with pytest.raises(ValueError, match="Negative values in data passed to NMF"):
        NMF(2).fit(ln.asarray(-x))


@pytest.mark.parametrize("kernel", ["linear", "polynomial", "rbf", "laplacian"])
def test_kernel_ridge_is_scikit_learns(kernel):
    rng = np.random.default_rng(0)
    x, y, w = rng.standard_normal((40, 3)), rng.standard_normal((40, 2)), rng.random(40) + 0.5
    how = {"alpha": 0.3, "kernel": kernel, "gamma": 0.2}
    known = sklearn.kernel_ridge.KernelRidge(**how).fit(x, y, sample_weight=w)
    model = KernelRidge(**how).fit(ln.asarray(x, chunks=(13, 3)), y, sample_weight=w)
    np.testing.assert_allclose(model.dual_coef_, known.dual_coef_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(model.predict(x), known.predict(x), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kernel", ["rbf", "matern32", "matern52"])
def test_gaussian_processes(kernel):
    from sklearn.gaussian_process import GaussianProcessRegressor as Theirs
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

    rng = np.random.default_rng(0)
    x = rng.uniform(0, 5, (25, 2))
    y = np.sin(x[:, 0]) + 0.1 * rng.standard_normal(25)
    shape = RBF(0.8) if kernel == "rbf" else Matern(0.8, nu=1.5 if kernel == "matern32" else 2.5)
    peer = Theirs(ConstantKernel(1.3) * shape + WhiteKernel(0.05), optimizer=None, alpha=0.0).fit(x, y)
    ours = GaussianProcessRegressor(
        kernel, length_scale=0.8, variance=1.3, noise=0.05, optimize=False, normalize_y=False
    ).fit(ln.asarray(x, chunks=(10, 2)), y)
    assert ours.log_marginal_likelihood_value_ == pytest.approx(peer.log_marginal_likelihood_value_)
    value, gradient = ours.log_marginal_likelihood(eval_gradient=True)
    # Theirs are in the order variance, length, noise.
    known, slope = peer.log_marginal_likelihood(peer.kernel_.theta, eval_gradient=True)
    assert value == pytest.approx(known)
    np.testing.assert_allclose(gradient, slope[[1, 0, 2]], rtol=1e-6)
    mean, _ = ours.predict(x[:5] + 0.1, return_std=True)
    np.testing.assert_allclose(mean, peer.predict(x[:5] + 0.1), rtol=1e-7)
    better = GaussianProcessRegressor(kernel, noise=0.05).fit(x, y)
    assert better.score(x, y) > 0.9


def test_factors_of_stored_entries():
    rng = np.random.default_rng(0)
    truth = 3 + rng.standard_normal((30, 2)) @ rng.standard_normal((2, 20))
    truth = truth + 0.05 * rng.standard_normal(truth.shape)
    known = rng.random((30, 20)) < 0.7
    entries = sparse.coo_array((truth[known], np.nonzero(known)), shape=truth.shape)
    model = MatrixFactorization(2, alpha=1e-4, random_state=0, tol=1e-3).fit(entries)
    i, j = np.nonzero(~known)
    error = np.sqrt(np.mean((model.predict_entries(i, j) - truth[~known]) ** 2))
    assert model.rmse_ < 0.06
    assert error < 0.3
    np.testing.assert_allclose(model.transform(entries), model.row_factors_, atol=0.05)


@pytest.mark.parametrize("chunks", [2, -1])
def test_a_tensor_of_known_rank(chunks):
    rng = np.random.default_rng(0)
    factors = [rng.standard_normal((n, 2)) for n in (6, 5, 4)]
    x = np.einsum("ir,jr,kr->ijk", *factors)
    model = CP(2, random_state=0).fit(ln.asarray(x, chunks=chunks))
    assert model.explained_ > 1 - 1e-4
    np.testing.assert_allclose(model.reconstruct(), x, atol=1e-3 * np.abs(x).max())


def test_ranks_of_pages():
    rng = np.random.default_rng(0)
    links = (rng.random((30, 30)) < 0.1).astype(float)
    links[3] = 0.0  # nowhere to go
    out = links.sum(axis=1)
    walk = np.where(out[:, None] > 0, links / np.where(out > 0, out, 1)[:, None], 1 / 30)
    google = 0.85 * walk + 0.15 / 30
    values, vectors = np.linalg.eig(google.T)
    known = np.real(vectors[:, np.argmax(np.real(values))])
    for given in (links, sparse.csr_array(links), ln.asarray(links, chunks=7)):
        np.testing.assert_allclose(PageRank().fit(given).ranks_, known / known.sum(), atol=1e-9)
    with pytest.raises(ValueError, match="a square matrix of links"):
        PageRank().fit(links[:5])


@pytest.mark.parametrize("activation", ["relu", "tanh", "logistic", "identity"])
@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_the_gradient_of_a_network_is_that_of_differences(activation, kind):
    rng = np.random.default_rng(0)
    sizes = (3, 4, 2)
    x = rng.standard_normal((11, 3))
    y = rng.standard_normal((11, 2)) if kind == "numbers" else rng.integers(0, 2, 11).astype(float)
    flat, w = rng.standard_normal(4 * 4 + 5 * 2), rng.random(11)

    def line(at):
        return get("mlp_pass")(x, at, y, w, sizes=sizes, activation=activation, kind=kind)[0]

    h = 1e-6
    slopes = [(line(flat + h * e)[0] - line(flat - h * e)[0]) / (2 * h) for e in np.eye(len(flat))]
    np.testing.assert_allclose(line(flat)[2:], slopes, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("solver", ["lbfgs", "adam"])
def test_networks_learn(solver):
    x, y = datasets.make_moons(120, noise=0.1, random_state=0)
    how = {"solver": solver, "random_state": 0, "batch_size": 30, "learning_rate": 0.02, "tol": 1e-3}
    table = ln.asarray(x, chunks=(50, 2))
    model = MLPClassifier((16,), max_iter=300, **how).fit(table, y)
    assert model.score(x, y) > 0.95
    np.testing.assert_allclose(model.predict_proba(table).compute(), model.predict_proba(x), atol=1e-12)
    line = MLPRegressor((8,), activation="tanh", max_iter=300, **how).fit(table, x[:, 0])
    assert line.score(x, x[:, 0]) > 0.95


@pytest.mark.parametrize("solver", ["cholesky", "tsqr", "tsqr-indirect"])
def test_least_squares_by_qr(solver):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((200, 5))
    y = rng.standard_normal((200, 2))
    w = rng.random(200) + 0.1
    model = LinearRegression(solver=solver).fit(ln.asarray(x, chunks=(30, 3)), ln.asarray(y), sample_weight=w)
    root = np.sqrt(w)[:, None]
    known = np.linalg.lstsq(np.c_[x, np.ones(200)] * root, y * root)[0]
    np.testing.assert_allclose(model.coef_, known[:-1].T, rtol=1e-9)
    np.testing.assert_allclose(model.intercept_, known[-1], rtol=1e-9)
