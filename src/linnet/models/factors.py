"""Factors of matrices with gaps, and of tensors.

`MatrixFactorization` looks at stored entries alone (Funk's model for ratings, with biases), by alternating
least squares. `CP` is the canonical polyadic decomposition by alternating least squares: each factor follows
from a product of the tensor with all others (MTTKRP), which runs tile by tile (Kolda and Bader, "Tensor
Decompositions and Applications", 2009, section 3.4).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from linnet.arrays.elements.core import as_node, wrap
from linnet.arrays.expression.nodes import Source
from linnet.arrays.lowering.evaluate import computed
from linnet.arrays.namespace import names
from linnet.models import inputs
from linnet.models.design import Vector
from linnet.models.solvers import Progress

_BLOCK = 1 << 22
"""Numbers in the normal equations of a block of rows."""


class MatrixFactorization(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Factors of a matrix of which only some entries are known: mean + biases + `P·Qᵀ`.

    Stored entries of a sparse matrix are known, also zeros; of a dense one, all are. The matrix stays in this
    process; it is worked on by blocks of rows, so that memory holds it, the factors, and one block.

    Parameters
    ----------
    n_components : int
    alpha : float
        The penalty on squares of factors and biases, for each entry of their row or column.
    max_iter : int
    tol : float
        The fit ends when the objective falls by less than this share.
    random_state : int, RandomState or None
    verbose : int

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The factors of columns.
    row_factors_ : array of shape (n_samples, n_components)
    mean_, row_bias_, column_bias_, n_iter_, rmse_

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> x = sparse.csr_array(np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 4.0]))
    >>> model = MatrixFactorization(1, alpha=1e-6, tol=1e-2, random_state=0).fit(x)
    >>> bool(abs(model.predict_entries([2], [2])[0] - 12) < 1e-2)
    True
    """

    components_: Vector

    def __init__(
        self,
        n_components: int = 10,
        *,
        alpha: float = 0.02,
        max_iter: int = 200,
        tol: float = 1e-6,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Any:
        """Find the factors.

        Parameters
        ----------
        X : sparse matrix of shape (n_samples, n_features), or a dense one
        y : ignored

        Returns
        -------
        self
        """
        if self.n_components < 1 or self.alpha < 0:
            raise ValueError(
                f"n_components must be at least 1, alpha at least 0; got {self.n_components}, {self.alpha}"
            )
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64)
        stored = _stored(X)
        if not stored.nnz:
            raise ValueError("the matrix has no stored entries; at least one is needed")
        random = check_random_state(self.random_state)
        self.mean_: float = float(stored.data.mean())
        rows, columns = stored.shape
        turned = stored.T.tocsr()
        # The last column is the bias.
        p = np.zeros((rows, self.n_components + 1))
        q = np.concatenate(
            [0.1 * random.standard_normal((columns, self.n_components)), np.zeros((columns, 1))], axis=1
        )
        progress = Progress(self.verbose, self.max_iter, type(self).__name__)
        before, iteration, error = np.inf, 0, 0.0
        for iteration in range(1, self.max_iter + 1):
            p = self._half(stored, q)
            q = self._half(turned, p)
            objective, error = self._objective(stored, p, q)
            progress(iteration, objective, before - objective)
            if before - objective <= self.tol * max(objective, 1e-300):
                break
            before = objective
        else:
            warnings.warn(
                f"MatrixFactorization did not converge in {self.max_iter} iterations; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.row_factors_, self.row_bias_ = p[:, :-1].copy(), p[:, -1].copy()
        self.components_, self.column_bias_ = q[:, :-1].T.copy(), q[:, -1].copy()
        self.n_iter_, self.rmse_ = iteration, error
        return self

    def _half(self, stored: Any, other: Vector) -> Vector:
        """Factors and bias of each row, from those of the other side: a small system for each row."""
        count = other.shape[1]
        # The unknowns of a row are its factors and its bias, which every entry has once: a column of ones.
        design = np.concatenate([other[:, :-1], np.ones((len(other), 1))], axis=1)
        made = np.zeros((stored.shape[0], count))
        size = max(1, _BLOCK // (count * count))
        pairs = (design[:, :, None] * design[:, None, :]).reshape(len(design), -1)
        for start in range(0, stored.shape[0], size):
            part = stored[start : start + size]
            known = sparse.csr_array((np.ones(part.nnz), part.indices, part.indptr), shape=part.shape)
            target = part.data - self.mean_ - other[part.indices, -1]
            right = sparse.csr_array((target, part.indices, part.indptr), shape=part.shape) @ design
            matrix = np.asarray(known @ pairs).reshape(-1, count, count)
            entries = np.diff(part.indptr)
            matrix[:, np.arange(count), np.arange(count)] += (
                self.alpha * np.maximum(entries, 1)[:, None] + 1e-12
            )
            made[start : start + size] = np.linalg.solve(matrix, right[:, :, None])[:, :, 0]
        return made

    def _objective(self, stored: Any, p: Vector, q: Vector) -> tuple[float, float]:
        """The objective, and the root of the mean squared error."""
        total, entries = 0.0, np.diff(stored.indptr)
        of_columns = np.bincount(stored.indices, minlength=stored.shape[1])
        size = max(1, _BLOCK // max(1, q.shape[1]))
        rows = np.repeat(np.arange(stored.shape[0]), entries)
        for start in range(0, stored.nnz, size):
            part = slice(start, start + size)
            i, j = rows[part], stored.indices[part]
            said = self.mean_ + p[i, -1] + q[j, -1] + np.einsum("ek,ek->e", p[i, :-1], q[j, :-1])
            total += float(((stored.data[part] - said) ** 2).sum())
        penalty = self.alpha * (entries @ (p**2).sum(axis=1) + of_columns @ (q**2).sum(axis=1))
        return total + float(penalty), float(np.sqrt(total / stored.nnz))

    def transform(self, X: Any) -> Vector:
        """The factors of rows that have some entries, with those of columns as they were found.

        Parameters
        ----------
        X : sparse matrix of shape (n_samples, n_features), or a dense one

        Returns
        -------
        array of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        other = np.concatenate([self.components_.T, self.column_bias_[:, None]], axis=1)
        return self._half(_stored(X), other)[:, :-1]

    def predict_entries(self, rows: Any, columns: Any) -> Vector:
        """What the model says of entries of the matrix it was fitted on.

        Parameters
        ----------
        rows, columns : sequences of integers
            Where the entries are.

        Returns
        -------
        array, a number for each
        """
        check_is_fitted(self)
        i, j = np.asarray(rows, np.intp), np.asarray(columns, np.intp)
        products = np.einsum("ek,ke->e", self.row_factors_[i], self.components_[:, j])
        return self.mean_ + self.row_bias_[i] + self.column_bias_[j] + products

    @property
    def _n_features_out(self) -> int:
        return self.components_.shape[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _stored(x: Any) -> Any:
    """The stored entries of a matrix, by rows; of a dense one, all."""
    if inputs.is_sparse(x):
        return sparse.csr_array(x)
    rows, columns = x.shape
    indices = np.tile(np.arange(columns), rows)
    return sparse.csr_array((np.ravel(x), indices, np.arange(rows + 1) * columns), shape=x.shape)


class CP(BaseEstimator):
    """The canonical polyadic decomposition: a tensor as a sum of products of vectors, one for each axis.

    Parameters
    ----------
    rank : int
        How many products.
    max_iter : int
    tol : float
        The fit ends when the share that is explained grows by less than this.
    random_state : int, RandomState or None
    verbose : int

    Attributes
    ----------
    factors_ : list of arrays
        For each axis its length times `rank`; columns have length 1.
    weights_ : array of `rank` numbers
        In descending order.
    explained_ : float
        One minus the norm of what is left over the norm of the tensor.
    n_iter_ : int

    Examples
    --------
    >>> import numpy as np
    >>> x = np.einsum("i,j,k->ijk", [1.0, 2.0], [3.0, 1.0, 1.0], [1.0, 5.0])
    >>> model = CP(rank=1, random_state=0).fit(x)
    >>> round(model.explained_, 6)
    1.0
    """

    def __init__(
        self,
        rank: int = 2,
        *,
        max_iter: int = 500,
        tol: float = 1e-8,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.rank = rank
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Any:
        """Find the factors.

        Parameters
        ----------
        X : array of two or more axes, NumPy's or `ln.Array`
        y : ignored

        Returns
        -------
        self
        """
        if self.rank < 1:
            raise ValueError(f"rank must be at least 1; got {self.rank}")
        if inputs.lazy(X):
            x = X
            self.n_features_in_: Any = X.shape[-1]
        else:
            X = validate_data(self, X, dtype=np.float64, allow_nd=True)
            x = wrap(Source(np.ascontiguousarray(X)))
        if x.ndim < 2 or x.ndim > 12:
            raise ValueError(f"CP takes arrays of 2 to 12 axes, got {x.ndim}")
        (squares,) = computed([as_node((x * x).sum())])
        norm = float(np.sqrt(squares))
        if not np.isfinite(norm):
            raise ValueError("Input X contains NaN or infinity; fill these elements first")
        random = check_random_state(self.random_state)
        factors = [_unit(random.standard_normal((length, self.rank)))[0] for length in x.shape]
        weights = np.ones(self.rank)
        explained, before, iteration = 0.0, -np.inf, 0
        progress = Progress(self.verbose, self.max_iter, type(self).__name__)
        for iteration in range(1, self.max_iter + 1):
            product = np.zeros((0, 0))
            for axis in range(x.ndim):
                product = mttkrp(x, factors, axis)
                gram = np.ones((self.rank, self.rank))
                for other, factor in enumerate(factors):
                    if other != axis:
                        gram = gram * (factor.T @ factor)
                factors[axis], weights = _unit(product @ linalg.pinvh(gram))
            explained = self._explained(norm, factors, weights, product)
            progress(iteration, explained, explained - before)
            if abs(explained - before) <= self.tol:
                break
            before = explained
        else:
            warnings.warn(
                f"CP did not converge in {self.max_iter} iterations; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        order = np.argsort(-weights, kind="stable")
        self.weights_ = weights[order]
        self.factors_ = [factor[:, order] for factor in factors]
        self.explained_, self.n_iter_ = explained, iteration
        return self

    def _explained(self, norm: float, factors: list[Vector], weights: Vector, product: Vector) -> float:
        """From the last MTTKRP, which has the inner product of the tensor and its model."""
        gram = np.outer(weights, weights)
        for factor in factors:
            gram = gram * (factor.T @ factor)
        inner = float(np.sum(product * factors[-1] * weights))
        left = max(norm**2 + float(gram.sum()) - 2 * inner, 0.0)
        return 1 - float(np.sqrt(left)) / norm if norm > 0 else 1.0

    def reconstruct(self) -> NDArray[Any]:
        """The tensor that the factors stand for.

        Returns
        -------
        array
        """
        check_is_fitted(self)
        letters = "abcdefghijkl"[: len(self.factors_)]
        terms = ",".join(f"{each}r" for each in letters)
        return np.einsum(f"r,{terms}->{letters}", self.weights_, *self.factors_, optimize=True)


def _unit(factor: Vector) -> tuple[Vector, Vector]:
    """Columns of length 1, and the lengths they had."""
    lengths = np.linalg.norm(factor, axis=0)
    return factor / np.where(lengths > 0, lengths, 1.0), lengths


def mttkrp(x: Any, factors: list[Vector], axis: int) -> Vector:
    """The tensor, unfolded along an axis, times the Khatri-Rao product of the other factors."""
    letters = "abcdefghijkl"[: x.ndim]
    others = [k for k in range(x.ndim) if k != axis]
    terms = ",".join(f"{letters[k]}r" for k in others)
    lazy = [wrap(Source(np.ascontiguousarray(factors[k]))) for k in others]
    made = names()["einsum"](f"{letters},{terms}->{letters[axis]}r", x, *lazy)
    return np.array(computed([as_node(made)])[0])
