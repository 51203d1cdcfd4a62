"""Non-negative matrix factorisation by hierarchical alternating least squares.

Factors of rows are found tile by tile; their products with the table, two small matrices, are all that the
factors of columns need (Cichocki and Phan, "Fast local algorithms for large scale nonnegative matrix
factorizations", 2009).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from linnet.arrays.elements.core import wrap
from linnet.arrays.expression.nodes import Node, Source
from linnet.arrays.lowering.evaluate import computed
from linnet.models import inputs
from linnet.models.design import Vector
from linnet.models.passing import each_rows, summed_rows
from linnet.tiles import Layout

_SWEEPS = 4
"""Sweeps over the factors of a row before those of columns change."""


class NMF(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Non-negative factors of a non-negative table: `X ≈ W·H`, by least squares.

    Parameters
    ----------
    n_components : int or None
        None: as many as there are columns.
    max_iter : int
    tol : float
        The fit ends when the error falls by less than this share of the first error.
    alpha_W, alpha_H : float
        Penalties on the factors, times the number of columns and of rows, as scikit-learn means them.
    l1_ratio : float
        The share of the l1 penalty.
    random_state : int, RandomState or None

    Attributes
    ----------
    components_, n_components_, reconstruction_err_, n_iter_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.outer([1.0, 2.0, 3.0], [1.0, 4.0])
    >>> model = NMF(n_components=1, random_state=0).fit(x)
    >>> model.reconstruction_err_ < 1e-6
    True
    """

    components_: Vector

    def __init__(
        self,
        n_components: int | None = None,
        *,
        max_iter: int = 200,
        tol: float = 1e-4,
        alpha_W: float = 0.0,
        alpha_H: float = 0.0,
        l1_ratio: float = 0.0,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.max_iter = max_iter
        self.tol = tol
        self.alpha_W = alpha_W
        self.alpha_H = alpha_H
        self.l1_ratio = l1_ratio
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Any:
        """Find the factors.

        Parameters
        ----------
        X : table of shape (n_samples, n_features), nowhere negative
        y : ignored

        Returns
        -------
        self
        """
        X = inputs.checked(self, X, reset=True)
        node = self._nonnegative(X)
        count = X.shape[1] if self.n_components is None else int(self.n_components)
        if count < 1:
            raise ValueError(f"n_components must be at least 1; got {count}")
        random = check_random_state(self.random_state)
        (mean,) = computed([wrap(node).mean().__node__])
        scale = np.sqrt(max(float(mean), 1e-300) / count)
        h = scale * np.abs(random.standard_normal((count, X.shape[1])))
        w = self._rows(node, np.full((X.shape[0], count), scale), h, 20)
        first, before, iteration = None, np.inf, 0
        for iteration in range(1, self.max_iter + 1):  # noqa: B007 # how many there were
            w = self._rows(node, w, h, _SWEEPS)
            squares, products, own = self._products(node, w)
            self._columns(h, products, own, X.shape[0])
            error = self._error(squares, products, own, h)
            first = error if first is None else first
            if first == 0 or (before - error) <= self.tol * first:
                break
            before = error
        else:
            if self.tol > 0:
                warnings.warn(
                    f"NMF did not converge in {self.max_iter} iterations; raise max_iter or tol",
                    ConvergenceWarning,
                    stacklevel=2,
                )
        self.components_, self.n_components_, self.n_iter_ = h, count, iteration
        squares, products, own = self._products(node, self._rows(node, w, h, 50))
        self.reconstruction_err_: float = self._error(squares, products, own, h)
        return self

    def _nonnegative(self, X: Any) -> Node:
        node = inputs.rows(X)
        (least,) = computed([wrap(node).min().__node__])
        if np.isnan(least):
            raise ValueError("Input X contains NaN or infinity; remove or fill these rows first")
        if least < 0:
            raise ValueError("Negative values in data passed to NMF; all elements of X must be at least 0")
        return node

    def _rows(self, node: Node, w: Vector, h: Vector, sweeps: int) -> Vector:
        """New factors of rows."""
        strength = self.alpha_W * node.shape[1]
        cut = Source(w, Layout((node.layout.boundaries[0], (0, w.shape[1]))))
        made = each_rows(
            "nmf_rows",
            node,
            (cut, h),
            w.shape[1],
            sweeps=sweeps,
            l1=float(strength * self.l1_ratio),
            l2=float(strength * (1 - self.l1_ratio)),
        )
        return computed([made])[0]

    def _products(self, node: Node, w: Vector) -> tuple[float, Vector, Vector]:
        """The squares of the table, `WᵀX` and `WᵀW`."""
        count, columns = w.shape[1], node.shape[1]
        cut = Source(w, Layout((node.layout.boundaries[0], (0, count))))
        (line,) = computed([summed_rows("nmf_pass", node, (cut,), 1 + count * (columns + count))])
        end = 1 + count * columns
        return float(line[0]), line[1:end].reshape(count, columns), line[end:].reshape(count, count)

    def _columns(self, h: Vector, products: Vector, own: Vector, rows: int) -> None:
        """New factors of columns, in place."""
        strength = self.alpha_H * rows
        l1, l2 = strength * self.l1_ratio, strength * (1 - self.l1_ratio)
        for _ in range(_SWEEPS):
            for k in range(len(h)):
                curve = own[k, k] + l2
                if curve > 0:
                    slope = products[k] - own[k] @ h - l1 - l2 * h[k]
                    h[k] = np.maximum(h[k] + slope / curve, 0.0)

    def _error(self, squares: float, products: Vector, own: Vector, h: Vector) -> float:
        """The Frobenius norm of what is left."""
        left = squares - 2 * np.sum(products * h) + np.sum((own @ h) * h)
        return float(np.sqrt(max(left, 0.0)))

    def transform(self, X: Any) -> Any:
        """The factors of rows.

        Parameters
        ----------
        X : table of shape (n_samples, n_features), nowhere negative

        Returns
        -------
        table of shape (n_samples, n_components)
            Lazy for a lazy table.
        """
        check_is_fitted(self)
        X = inputs.checked(self, X, reset=False)
        node = self._nonnegative(X)
        strength = self.alpha_W * node.shape[1]
        start = wrap(node).sum(axis=1)[:, None] * wrap(
            Source(
                np.full(
                    (1, self.n_components_),
                    1 / (self.n_components_ * max(self.components_.sum(axis=1).mean(), 1e-300)),
                )
            )
        )
        cut = start.rechunk({0: tuple(np.diff(node.layout.boundaries[0]).tolist()), 1: -1})
        made = wrap(
            each_rows(
                "nmf_rows",
                node,
                (cut.__node__, self.components_),
                self.n_components_,
                sweeps=200,
                l1=float(strength * self.l1_ratio),
                l2=float(strength * (1 - self.l1_ratio)),
            )
        )
        return made if inputs.lazy(X) else np.asarray(made).astype(X.dtype, copy=False)

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Find the factors, and return those of rows.

        Parameters
        ----------
        X : table of shape (n_samples, n_features), nowhere negative
        y : ignored

        Returns
        -------
        table of shape (n_samples, n_components)
        """
        return self.fit(X).transform(X)

    def inverse_transform(self, X: Any) -> Any:
        """The table that factors of rows stand for.

        Parameters
        ----------
        X : table of shape (n_samples, n_components)

        Returns
        -------
        table of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        return X @ (wrap(Source(self.components_)) if inputs.lazy(X) else self.components_)

    @property
    def _n_features_out(self) -> int:
        return self.components_.shape[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
