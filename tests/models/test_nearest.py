"""The nearest centre of each row: compiled, by products, and by all distances."""

from __future__ import annotations

import numpy as np
import pytest

import linnet as ln
from linnet.kernels.models.nearest import nearest, nearest_by_products


def _both(x, centres, shift, weight):
    found = []
    for way in (nearest, nearest_by_products):
        labels, line = np.empty(len(x), np.int32), np.zeros(1 + centres.shape[0] * (1 + centres.shape[1]))
        assert not way(x, centres, shift, weight, labels, line)
        found.append((labels, line))
    return found


@pytest.mark.parametrize("far", [0.0, 1e7])
@pytest.mark.parametrize("kind", ["d", "f", "l"])
@pytest.mark.parametrize(
    ("rows", "columns", "count"), [(1, 1, 1), (7, 3, 2), (13, 5, 9), (100, 1, 8), (500, 20, 50)]
)
def test_all_ways_agree(rows, columns, count, kind, far):
    rng = np.random.default_rng(rows)
    x = rng.standard_normal((rows, columns)) * (9 if kind == "l" else 1) + (far if kind != "f" else 3.0)
    x = x.astype(kind)
    centres = x[rng.integers(0, rows, count)] + 0.25 * rng.standard_normal((count, columns))
    weight, shift = rng.integers(0, 3, rows).astype(float), x.mean(axis=0, dtype=float)
    distances = ((x[:, None].astype(float) - centres) ** 2).sum(axis=2)
    for labels, line in _both(x, centres, shift, weight):
        np.testing.assert_allclose(distances[np.arange(rows), labels], distances.min(axis=1), atol=1e-6)
        sums = np.zeros((count, columns))
        np.add.at(sums, labels, weight[:, None] * (x - shift))
        np.testing.assert_allclose(line[0], weight @ distances.min(axis=1), rtol=1e-6, atol=1e-9)
        np.testing.assert_array_equal(line[1 : 1 + count], np.bincount(labels, weight, count))
        np.testing.assert_allclose(line[1 + count :], sums.ravel(), rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("turn", [np.asfortranarray, lambda x: x[::-2, ::2]])
def test_rows_that_do_not_lie_together(turn):
    x = turn(np.random.default_rng(0).standard_normal((41, 6)))
    (labels, line), (same, other) = _both(x, np.array(x[:5]), np.zeros(x.shape[1]), None)
    np.testing.assert_array_equal(labels, same)
    np.testing.assert_allclose(line, other, rtol=1e-12, atol=1e-12)


def test_the_first_of_equal_centres_is_taken():
    x = np.zeros((9, 2))
    for labels, _ in _both(x, np.zeros((13, 2)), np.zeros(2), None):
        np.testing.assert_array_equal(labels, 0)


@pytest.mark.parametrize("way", [nearest, nearest_by_products])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_rows_without_a_distance(way, value):
    x = np.ones((10, 2))
    x[7, 1] = value
    labels = np.empty(10, np.int32)
    if way is nearest:
        with pytest.raises(ValueError, match="1 rows have no nearest centre: they contain NaN or infinity"):
            way(x, np.ones((3, 2)), np.zeros(2), None, labels, None)
    else:
        with np.errstate(all="ignore"):
            assert way(x, np.ones((3, 2)), np.zeros(2), None, labels, None) == 1


def test_clusters_far_from_zero_are_those_near_it():
    x = np.random.default_rng(1).standard_normal((400, 3)).round(3)
    near, far = (ln.models.KMeans(5, init=x[:5] + s, n_init=1, tol=1e-9).fit(x + s) for s in (0.0, 1e8))
    np.testing.assert_array_equal(near.labels_, far.labels_)
    np.testing.assert_allclose(near.transform(x), far.transform(x + 1e8), atol=1e-6)
    assert near.n_iter_ == far.n_iter_
    with pytest.raises(ln.KernelError, match="rows have no nearest centre"):
        near.predict(ln.asarray(np.where(x > 2, np.nan, x), chunks=100)).compute()


@pytest.mark.parametrize("weight", [None, "some"])
def test_clusters_without_rows_get_the_farthest_as_in_scikit_learn(weight):
    from sklearn.cluster import KMeans

    x = np.random.default_rng(2).standard_normal((300, 3))
    w = None if weight is None else np.arange(300) % 4 + 0.0
    init = np.concatenate([x[:3], np.full((2, 3), 99.0)])
    known = KMeans(5, init=init, n_init=1, tol=1e-6).fit(x, sample_weight=w)
    model = ln.models.KMeans(5, init=init, n_init=1, tol=1e-6)
    model.fit(ln.asarray(x, chunks=(70, 2)), sample_weight=w)
    np.testing.assert_allclose(model.inertia_, known.inertia_, rtol=1e-9)
    order, other = (np.lexsort(each.cluster_centers_.T) for each in (model, known))
    np.testing.assert_allclose(model.cluster_centers_[order], known.cluster_centers_[other], rtol=1e-9)
