"""Clusters: Lloyd's algorithm, one pass over the data for each iteration.

Centres to begin with are k-means++ (Arthur and Vassilvitskii, 2007) on a random sample of rows: all of them,
if there are few. The sample is all that leaves the nodes besides sums.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from linnet.arrays.elements.core import wrap
from linnet.arrays.expression.nodes import Node, Source
from linnet.arrays.lowering.evaluate import computed
from linnet.models import inputs
from linnet.models.design import Vector, column
from linnet.models.passing import each_rows, far_rows, gram, summed_rows
from linnet.models.solvers import Progress

_SAMPLE = 20_000


def plus_plus(rows: Vector, weight: Vector, count: int, random: np.random.RandomState) -> Vector:
    """Centres far apart: each is drawn by its squared distance from those before, the best of a few draws."""
    trials = 2 + int(np.log(count))
    total = weight.sum()
    centres = np.empty((count, rows.shape[1]))
    centres[0] = rows[random.choice(len(rows), p=weight / total)]
    nearest = _distances(rows, centres[:1])[:, 0]
    for place in range(1, count):
        mass = nearest * weight
        potential = mass.sum()
        chance = mass / potential if potential > 0 else weight / total
        drawn = random.choice(len(rows), trials, p=chance)
        closer = np.minimum(nearest[:, None], _distances(rows, rows[drawn]))
        best = int(np.argmin(weight @ closer))
        nearest, centres[place] = closer[:, best], rows[drawn[best]]
    return centres


def _distances(rows: Vector, others: Vector) -> Vector:
    squares = np.einsum("ij,ij->i", rows, rows)[:, None] - 2 * rows @ others.T
    return np.maximum(squares + np.einsum("ij,ij->i", others, others), 0.0)


class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """Clusters around centres.

    Parameters
    ----------
    n_clusters : int
    init : {"k-means++", "random"} or array of shape (n_clusters, n_features)
    n_init : int or "auto"
        Fits from different centres, of which the best is kept; "auto" is 1 for "k-means++" and arrays, else
        10.
    max_iter : int
    tol : float
        How far centres may still move, relative to the variances of columns.
    verbose : int
    random_state : int, RandomState or None

    Attributes
    ----------
    cluster_centers_, labels_, inertia_, n_iter_
        As in scikit-learn; `labels_` is lazy for a lazy table.

    Examples
    --------
    >>> import numpy as np
    >>> model = KMeans(2, random_state=0).fit(np.array([[0.0], [0.1], [5.0], [5.1]]))
    >>> sorted(model.cluster_centers_[:, 0].round(3).tolist())
    [0.05, 5.05]
    """

    cluster_centers_: Vector

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        n_init: Any = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Find the clusters.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
        y : ignored
        sample_weight : column of length n_samples, optional

        Returns
        -------
        self
        """
        X = inputs.checked(self, X, reset=True)
        if X.shape[0] < self.n_clusters:
            raise ValueError(f"n_samples={X.shape[0]} should be >= n_clusters={self.n_clusters}.")
        node = inputs.rows(X)
        weights = inputs.weights(sample_weight, X, X.shape[0])
        weight = None if weights is None else column(weights, node.layout)
        count, sums, products = gram(node)
        if not np.isfinite(sums).all():
            raise ValueError("Input X contains NaN or infinity; remove or fill these rows first")
        variances, means = np.diag(products) / count - (sums / count) ** 2, sums / count
        if (means**2 > 1e8 * variances).any():  # far from zero: again, with means taken off
            _, _, products = gram(node, means)
            variances = np.diag(products) / count
        variance = float(np.mean(np.maximum(variances, 0)))
        random = check_random_state(self.random_state)
        best: tuple[float, Vector, int] | None = None
        for _ in range(self._fits()):
            begin = self._begin(node, weight, random)
            found = self._once(node, weight, begin, self.tol * variance, means)
            if best is None or found[0] < best[0]:
                best = found
        assert best is not None
        self._counts = np.zeros(self.n_clusters)
        self.inertia_, self.cluster_centers_, self.n_iter_ = best
        labels = self._labels(node)
        self.labels_ = labels if inputs.lazy(X) else np.asarray(labels)
        self._tell_few()
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Move the centres by one batch of rows: each to the mean of all rows that were ever nearest to it.

        This is Sculley's algorithm ("Web-scale k-means clustering", 2010), with a whole batch as one step.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            The first batch has at least `n_clusters` rows, unless `init` is an array.
        y : ignored
        sample_weight : column of length n_samples, optional

        Returns
        -------
        self
        """
        first = not hasattr(self, "cluster_centers_")
        X = inputs.checked(self, X, reset=first)
        node = inputs.rows(X)
        weights = inputs.weights(sample_weight, X, X.shape[0])
        weight = None if weights is None else column(weights, node.layout)
        if first:
            if isinstance(self.init, str) and X.shape[0] < self.n_clusters:
                raise ValueError(f"n_samples={X.shape[0]} should be >= n_clusters={self.n_clusters}.")
            self.cluster_centers_ = self._begin(node, weight, check_random_state(self.random_state))
            self.n_iter_ = 0
        before: Vector = getattr(self, "_counts", np.zeros(len(self.cluster_centers_)))
        centres = self.cluster_centers_
        shift = centres.mean(axis=0)
        self.inertia_, added, sums = self._pass(node, weight, centres, shift)
        total = before + added
        away = sums - added[:, None] * (centres - shift)
        self.cluster_centers_ = centres + away / np.where(total > 0, total, 1.0)[:, None]
        self._counts = total
        self.n_iter_ += 1
        labels = self._labels(node)
        self.labels_ = labels if inputs.lazy(X) else np.asarray(labels)
        return self

    def _fits(self) -> int:
        if self.n_init != "auto":
            return max(1, int(self.n_init))
        return 10 if isinstance(self.init, str) and self.init == "random" else 1

    def _begin(self, node: Node, weight: Node | None, random: np.random.RandomState) -> Vector:
        if not isinstance(self.init, str):
            given = np.array(self.init, np.float64)
            if given.shape != (self.n_clusters, node.shape[1]):
                raise ValueError(
                    f"The shape of the initial centers {given.shape} does not match "
                    f"({self.n_clusters}, {node.shape[1]})"
                )
            return given
        if self.init not in ("k-means++", "random"):
            raise ValueError(f"init must be 'k-means++', 'random' or an array; got {self.init!r}")
        total = node.shape[0]
        size = min(total, max(_SAMPLE, 20 * self.n_clusters))
        chosen = np.sort(random.choice(total, size, replace=False)) if size < total else None
        wanted = [wrap(node), *(() if weight is None else (wrap(weight),))]
        if chosen is not None:
            wanted = [each[wrap(Source(chosen))] for each in wanted]
        found = computed([each.__node__ for each in wanted])
        rows = np.asarray(found[0], np.float64)
        of_rows = np.ones(len(rows)) if weight is None else np.asarray(found[1], np.float64)
        if self.init == "random":
            return rows[random.choice(len(rows), self.n_clusters, replace=False, p=of_rows / of_rows.sum())]
        return plus_plus(rows, of_rows, self.n_clusters, random)

    def _once(
        self, node: Node, weight: Node | None, centres: Vector, tol: float, shift: Vector
    ) -> tuple[float, Vector, int]:
        """Lloyd's algorithm from centres: inertia, centres, iterations."""
        progress = Progress(self.verbose, self.max_iter, type(self).__name__)
        iteration, inertia, change = 0, np.inf, np.inf
        for iteration in range(1, self.max_iter + 1):
            inertia, weights, sums = self._pass(node, weight, centres, shift)
            if (weights == 0).any():
                weights, sums = self._refilled(node, weight, centres, shift, weights, sums)
            alive = weights > 0
            moved = np.where(alive[:, None], sums / np.where(alive, weights, 1.0)[:, None] + shift, centres)
            change = float(((moved - centres) ** 2).sum())
            centres = moved
            progress(iteration, inertia, change)
            if change <= tol:
                break
        else:
            warnings.warn(
                f"KMeans did not converge in {self.max_iter} iterations; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=3,
            )
        if change:  # else the last pass was at these centres
            inertia, _, _ = self._pass(node, weight, centres, shift)
        return inertia, centres, iteration

    def _refilled(
        self, node: Node, weight: Node | None, centres: Vector, shift: Vector, weights: Vector, sums: Vector
    ) -> tuple[Vector, Vector]:
        """Clusters without rows get those that are farthest from their centres, as in scikit-learn.

        Each tile of rows tells of as many as could be needed.
        """
        empty = np.flatnonzero(weights == 0)
        columns = centres.shape[1]
        others = (centres, shift) if weight is None else (centres, shift, weight)
        lines = far_rows(node, others, len(empty), 3 + columns)
        (found,) = computed([lines])
        rows = np.asarray(found).reshape(-1, 3 + columns)
        rows = rows[np.argsort(-rows[:, 0], kind="stable")][: len(empty)]
        weights, sums = weights.copy(), sums.copy()
        for place, (distance, label, of_row, *values) in zip(empty, rows, strict=False):
            if not distance > 0:
                continue
            old = int(label)
            weights[old] -= of_row
            sums[old] -= of_row * np.array(values)
            weights[place], sums[place] = of_row, of_row * np.array(values)
        return weights, sums

    def _pass(
        self, node: Node, weight: Node | None, centres: Vector, shift: Vector
    ) -> tuple[float, Vector, Vector]:
        """Inertia, and the weight and the sum (less `shift`) of the rows of each centre."""
        count, columns = centres.shape
        others = (centres, shift) if weight is None else (centres, shift, weight)
        (line,) = computed([summed_rows("kmeans_pass", node, others, 1 + count * (1 + columns))])
        return float(line[0]), line[1 : 1 + count], line[1 + count :].reshape(count, columns)

    def _tell_few(self) -> None:
        distinct = len(np.unique(self.cluster_centers_, axis=0))
        if distinct < self.n_clusters:
            warnings.warn(
                f"Number of distinct clusters ({distinct}) found smaller than n_clusters "
                f"({self.n_clusters}). "
                "Possibly due to duplicate points in X.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def predict(self, X: Any) -> Any:
        """The number of the nearest centre of each row; lazy for a lazy table.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)

        Returns
        -------
        column of integers
        """
        check_is_fitted(self)
        X = inputs.checked(self, X, reset=False)
        labels = self._labels(inputs.rows(X))
        return labels if inputs.lazy(X) else np.asarray(labels)

    def _labels(self, node: Node) -> Any:
        centres = self.cluster_centers_
        return wrap(each_rows("kmeans_labels", node, (centres, centres.mean(axis=0)), None, np.int32))

    def transform(self, X: Any) -> Any:
        """The distance of each row from each centre.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)

        Returns
        -------
        table of shape (n_samples, n_clusters)
        """
        check_is_fitted(self)
        X = inputs.checked(self, X, reset=False)
        shift = self.cluster_centers_.mean(axis=0)  # data far from zero would lose their digits
        x = (X if inputs.lazy(X) else wrap(inputs.rows(X))) - wrap(Source(shift))
        centres = self.cluster_centers_ - shift
        squares = (x * x).sum(axis=1)[:, None] - 2 * (x @ wrap(Source(np.ascontiguousarray(centres.T))))
        made = np.sqrt(np.maximum(squares + wrap(Source((centres**2).sum(axis=1))), 0.0))
        return made if inputs.lazy(X) else np.asarray(made).astype(X.dtype, copy=False)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the inertia of rows.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
        y : ignored
        sample_weight : column of length n_samples, optional

        Returns
        -------
        float
        """
        check_is_fitted(self)
        X = inputs.checked(self, X, reset=False)
        node = inputs.rows(X)
        weights = inputs.weights(sample_weight, X, X.shape[0])
        weight = None if weights is None else column(weights, node.layout)
        centres = self.cluster_centers_
        return -self._pass(node, weight, centres, centres.mean(axis=0))[0]

    @property
    def _n_features_out(self) -> int:
        return self.cluster_centers_.shape[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
