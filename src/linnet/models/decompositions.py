"""Principal components and truncated singular value decompositions.

Tall tables go through products of their columns (one pass, or two where means are taken off) or through the
R of a tall and skinny QR, which keeps all digits; the largest few singular values of wide ones can be found
by random projections.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from linnet.arrays.elements.core import as_node, wrap
from linnet.arrays.expression.nodes import Node, Source
from linnet.arrays.linalg.eigen_and_singular import svd
from linnet.arrays.linalg.factorisations import qr
from linnet.arrays.linalg.low_rank import svd_compressed
from linnet.arrays.lowering.evaluate import computed
from linnet.models import inputs
from linnet.models.design import WIDE, Vector
from linnet.models.passing import gram


def signed(components: Vector) -> Vector:
    """Rows with signs such that the element largest in absolute value is positive."""
    largest = np.argmax(np.abs(components), axis=1)
    signs = np.sign(components[np.arange(len(components)), largest])
    return components * np.where(signs == 0, 1.0, signs)[:, None]


def _refuse_nan(sums: Vector) -> None:
    if not np.isfinite(sums).all():
        raise ValueError("Input X contains NaN or infinity; remove or fill these rows first")


def _spectrum(products: Vector, means: Vector, count: float) -> tuple[Vector, Vector, float]:
    """Variances from the largest down, their directions as rows, and the sum: from sums over rows."""
    values, vectors = linalg.eigh((products - count * np.outer(means, means)) / (count - 1))
    values = np.maximum(values[::-1], 0.0)
    return values, vectors.T[::-1], float(values.sum())


def _right_vectors(
    x: Any, count: int, solver: str, random_state: Any, iterations: int
) -> tuple[Vector, Vector]:
    """The largest singular values of a lazy table, and their right singular vectors as rows."""
    if solver == "randomized":
        seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
        _, s, vt = svd_compressed(x, count, iterator="QR", n_power_iter=iterations, seed=seed)
        values, vectors = computed([as_node(s), as_node(vt)])
        return np.asarray(values), np.asarray(vectors)
    rows, columns = x.shape
    if rows >= columns and columns <= WIDE:
        (r,) = computed([as_node(qr(x, mode="r"))])
        _, values, vectors = linalg.svd(np.asarray(r, np.float64))
    else:
        _, s, vt = svd(x, full_matrices=False)
        values, vectors = (np.asarray(each) for each in computed([as_node(s), as_node(vt)]))
    return values[:count], vectors[:count]


class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Principal components.

    Parameters
    ----------
    n_components : int, float or None
        How many; a number between 0 and 1 is the share of the variance to be explained; None: all.
    whiten : bool
        Whether transformed columns have variance 1.
    svd_solver : {"auto", "covariance_eigh", "full", "randomized"}
        "covariance_eigh" works on products of columns: fast for tall tables, exact to half of the digits for
        the smallest components; "full" on the table itself; "randomized" finds the largest few. "auto" takes
        the first for tables ten times as tall as wide, and of at most 2048 columns, otherwise "full".
    iterated_power : int
        Power iterations of the randomised solver.
    random_state : int, RandomState or None

    Attributes
    ----------
    components_, explained_variance_, explained_variance_ratio_, singular_values_, mean_, n_components_,
    noise_variance_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])
    >>> PCA(n_components=1).fit(x).explained_variance_ratio_.round(6)
    array([1.])
    """

    components_: Vector
    mean_: Vector

    def __init__(
        self,
        n_components: Any = None,
        *,
        whiten: bool = False,
        svd_solver: str = "auto",
        iterated_power: int = 4,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.whiten = whiten
        self.svd_solver = svd_solver
        self.iterated_power = iterated_power
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Any:
        """Find the components.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        known = ("auto", "covariance_eigh", "full", "randomized")
        if self.svd_solver not in known:
            raise ValueError(f"PCA has no svd_solver {self.svd_solver!r}; use one of {', '.join(known)}")
        X = inputs.checked(self, X, reset=True, ensure_min_samples=2)
        rows, columns = X.shape
        count = self._count(rows, columns)
        solver = self.svd_solver
        if solver == "auto":
            solver = "covariance_eigh" if rows >= 10 * columns and columns <= WIDE else "full"
        node = inputs.rows(X)
        self._sums: tuple[float, Vector, Vector, Vector] | None = None
        if solver == "covariance_eigh":
            variances, vectors, total = self._by_products(node)
        else:
            variances, vectors, total = self._by_table(node, solver, count)
        self._keep(variances, signed(vectors), total, rows, count)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Any:
        """Learn from one more batch of rows: the components of all rows so far, by products of columns.

        Parameters
        ----------
        X : table of shape (n_samples, n_features), at most 2048 columns
            The first batch has at least two rows, and as many as there are components.
        y : ignored

        Returns
        -------
        self
        """
        if self.svd_solver not in ("auto", "covariance_eigh"):
            raise ValueError(
                f'partial_fit adds products of columns, which svd_solver="covariance_eigh" works on; it is '
                f'{self.svd_solver!r}, which needs all rows at once: take "auto", or fit'
            )
        before = getattr(self, "_sums", None)
        X = inputs.checked(self, X, reset=before is None, ensure_min_samples=2 if before is None else 1)
        if X.shape[1] > WIDE:
            raise ValueError(
                f"partial_fit keeps products of all columns, of which up to {WIDE} are supported; got "
                f"{X.shape[1]}: fit all rows at once"
            )
        seen = 0 if before is None else int(before[0])
        wanted = self._count(seen + X.shape[0], X.shape[1])
        node = inputs.rows(X)
        if before is None:
            rows, sums, _ = gram(node)
            _refuse_nan(sums)
            shift = sums / rows
        else:
            shift = before[3]
        rows, sums, products = gram(node, shift)
        _refuse_nan(sums)
        if before is not None:
            rows, sums, products = rows + before[0], sums + before[1], products + before[2]
        self._sums = rows, sums, products, shift
        left = sums / rows
        self.mean_ = shift + left
        variances, vectors, total = _spectrum(products, left, rows)
        self._keep(variances, signed(vectors), total, int(rows), wanted)
        return self

    def _count(self, rows: int, columns: int) -> Any:
        given: Any = self.n_components
        most = min(rows, columns)
        if given is None:
            return most
        whole = isinstance(given, numbers.Integral)
        if whole and 1 <= int(given) <= most:
            return int(given)
        if not whole and isinstance(given, numbers.Real) and 0 < float(given) < 1:
            if self.svd_solver == "randomized":
                raise ValueError("a share of the variance needs all components; take svd_solver='full'")
            return float(given)
        raise ValueError(
            f"n_components={given!r} must be between 1 and min(n_samples, n_features)={most}, or a share "
            f"of the "
            "variance between 0 and 1"
        )

    def _by_products(self, node: Node) -> tuple[Vector, Vector, float]:
        """Eigenvectors of the covariance; means are taken off before, where columns lie far from zero."""
        count, sums, products = gram(node)
        _refuse_nan(sums)
        means = sums / count
        spread = np.sqrt(np.maximum(np.diag(products) / count - means**2, 0))
        if (np.abs(means) > 10 * spread).any():
            count, again, products = gram(node, means)
            left = again / count
            means = means + left
        else:
            left = means
        self.mean_ = means
        return _spectrum(products, left, count)

    def _by_table(self, node: Node, solver: str, count: Any) -> tuple[Vector, Vector, float]:
        x = wrap(node).astype(np.float64)
        (means,) = computed([x.mean(axis=0).__node__])
        _refuse_nan(np.asarray(means))
        self.mean_ = np.asarray(means)
        centred = x - wrap(Source(self.mean_))
        wanted = count if isinstance(count, int) and solver == "randomized" else min(x.shape)
        values, vectors = _right_vectors(centred, wanted, solver, self.random_state, self.iterated_power)
        variances = values**2 / (x.shape[0] - 1)
        if solver != "randomized":
            return variances, vectors, float(variances.sum())
        (total,) = computed([(centred * centred).sum().__node__])
        return variances, vectors, float(total) / (x.shape[0] - 1)

    def _keep(self, variances: Vector, vectors: Vector, total: float, rows: int, count: Any) -> None:
        most = min(rows, vectors.shape[1])
        shares = variances / total if total > 0 else np.zeros_like(variances)
        if isinstance(count, float):
            count = int(np.searchsorted(np.cumsum(shares), count, side="right")) + 1
        count = min(count, most)
        self.n_components_: int = count
        self.n_samples_ = rows
        self.components_ = np.ascontiguousarray(vectors[:count])
        self.explained_variance_ = variances[:count].copy()
        self.explained_variance_ratio_ = shares[:count].copy()
        self.singular_values_ = np.sqrt(variances[:count] * (rows - 1))
        left = most - count
        self.noise_variance_: float = float(max(total - variances[:count].sum(), 0.0) / left) if left else 0.0

    def transform(self, X: Any) -> Any:
        """Rows in terms of the components; lazy for a lazy table.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)

        Returns
        -------
        table of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        matrix = self.components_.T
        if self.whiten:
            scale = np.sqrt(self.explained_variance_)
            matrix = matrix / np.where(scale > np.finfo(float).eps, scale, np.finfo(float).eps)
        X = inputs.checked(self, X, reset=False)
        if inputs.lazy(X):
            return (X - wrap(Source(self.mean_))) @ wrap(Source(np.ascontiguousarray(matrix)))
        if inputs.is_sparse(X):
            return (np.asarray(X @ matrix) - self.mean_ @ matrix).astype(X.dtype, copy=False)
        made = (X - self.mean_) @ matrix
        return made.astype(X.dtype, copy=False)

    def inverse_transform(self, X: Any) -> Any:
        """Rows as they were, as far as the components tell.

        Parameters
        ----------
        X : table of shape (n_samples, n_components)

        Returns
        -------
        table of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        matrix = self.components_
        if self.whiten:
            matrix = np.sqrt(self.explained_variance_)[:, None] * matrix
        if inputs.lazy(X):
            return inputs.mapped_rows(X.__node__, matrix, self.mean_)
        return np.asarray(X) @ matrix + self.mean_

    @property
    def _n_features_out(self) -> int:
        return self.components_.shape[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class TruncatedSVD(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """The largest singular values with their vectors; columns are not centred.

    Parameters
    ----------
    n_components : int
    algorithm : {"exact", "randomized"}
        "exact" goes through a QR factorisation, or the tiled SVD of wide tables.
    n_iter : int
        Power iterations of the randomised algorithm.
    random_state : int, RandomState or None

    Attributes
    ----------
    components_, singular_values_, explained_variance_, explained_variance_ratio_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> TruncatedSVD(n_components=1).fit(np.diag([1.0, 3.0, 2.0])).singular_values_.round(6)
    array([3.])
    """

    components_: Vector

    def __init__(
        self, n_components: int = 2, *, algorithm: str = "exact", n_iter: int = 5, random_state: Any = None
    ) -> None:
        self.n_components = n_components
        self.algorithm = algorithm
        self.n_iter = n_iter
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Any:
        """Find the components.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        if self.algorithm not in ("exact", "randomized"):
            raise ValueError(f"TruncatedSVD has no algorithm {self.algorithm!r}; use 'exact' or 'randomized'")
        X = inputs.checked(self, X, reset=True, ensure_min_features=2)
        if not 1 <= self.n_components <= X.shape[1]:
            raise ValueError(f"n_components({self.n_components}) must be <= n_features({X.shape[1]}).")
        x = wrap(inputs.rows(X)).astype(np.float64)
        count = min(self.n_components, *X.shape)
        values, vectors = _right_vectors(x, count, self.algorithm, self.random_state, self.n_iter)
        _refuse_nan(values)
        self.components_ = signed(np.asarray(vectors))
        self.singular_values_ = np.asarray(values)
        turned = x @ wrap(Source(np.ascontiguousarray(self.components_.T)))
        variances, total = computed([turned.var(axis=0).__node__, x.var(axis=0).sum().__node__])
        self.explained_variance_ = np.asarray(variances)
        self.explained_variance_ratio_ = np.asarray(variances) / (float(total) or 1.0)
        return self

    def transform(self, X: Any) -> Any:
        """Rows in terms of the components; lazy for a lazy table.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)

        Returns
        -------
        table of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        X = inputs.checked(self, X, reset=False)
        if inputs.lazy(X):
            return X @ wrap(Source(np.ascontiguousarray(self.components_.T)))
        return np.asarray(X @ self.components_.T).astype(X.dtype, copy=False)

    def inverse_transform(self, X: Any) -> Any:
        """Rows as they were, as far as the components tell.

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
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
