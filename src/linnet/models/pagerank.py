"""PageRank by power iteration: a product of the matrix of links with a vector for each iteration."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from linnet.arrays.elements.core import as_node, wrap
from linnet.arrays.expression.nodes import Source
from linnet.arrays.lowering.evaluate import computed
from linnet.models import inputs
from linnet.models.design import Vector
from linnet.models.solvers import Progress


class PageRank(BaseEstimator):
    """How important the nodes of a graph are: where somebody who follows links at random is found.

    Parameters
    ----------
    damping : float
        The chance to follow a link, and not to begin anew anywhere.
    max_iter : int
    tol : float
        The fit ends when ranks change by less than this, in total.
    personalization : sequence of float, optional
        How likely each node is where somebody begins anew; all alike without it.
    verbose : int

    Attributes
    ----------
    ranks_ : array
        A number for each node; their sum is 1.
    n_iter_ : int

    Examples
    --------
    >>> import numpy as np
    >>> links = np.array([[0, 1, 0], [0, 0, 1], [0, 1, 0]])
    >>> PageRank().fit(links).ranks_.round(4)
    array([0.05  , 0.4865, 0.4635])
    """

    ranks_: Vector

    def __init__(
        self,
        damping: float = 0.85,
        *,
        max_iter: int = 1000,
        tol: float = 1e-10,
        personalization: Any = None,
        verbose: int = 0,
    ) -> None:
        self.damping = damping
        self.max_iter = max_iter
        self.tol = tol
        self.personalization = personalization
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Any:
        """Find the ranks.

        Parameters
        ----------
        X : square matrix
            Row i has the weights of links from node i, none negative: NumPy's, SciPy's sparse, or `ln.Array`.
        y : ignored

        Returns
        -------
        self
        """
        if not 0 <= self.damping < 1:
            raise ValueError(f"damping must be at least 0 and below 1; got {self.damping}")
        if inputs.lazy(X):
            X = inputs.check_table(self, X, reset=True)
        else:
            X = validate_data(self, X, accept_sparse="csr", dtype=np.float64)
        count = X.shape[0]
        if X.shape[1] != count:
            raise ValueError(f"a graph has a square matrix of links, got shape {X.shape}")
        out, least = self._out(X)
        if not np.isfinite(out).all():
            raise ValueError("Input X contains NaN or infinity; links have finite weights")
        if least < 0:
            raise ValueError("Negative values in data passed to PageRank; weights of links are at least 0")
        self._iterate(X, out, self._start(count))
        return self

    def _start(self, count: int) -> Vector:
        if self.personalization is None:
            return np.full(count, 1 / count)
        given = np.asarray(self.personalization, np.float64)
        if given.shape != (count,) or (given < 0).any() or not given.sum() > 0:
            raise ValueError(f"personalization must be {count} numbers, none negative, not all 0")
        return given / given.sum()

    def _out(self, X: Any) -> tuple[Vector, float]:
        """The weight of all links from each node, and the least weight of any."""
        if inputs.is_sparse(X):
            return np.asarray(X.sum(axis=1)).ravel(), float(X.data.min()) if X.nnz else 0.0
        x = X if inputs.lazy(X) else wrap(Source(X))
        sums, least = computed([as_node(x.sum(axis=1)), as_node(x.min())])
        return np.asarray(sums, np.float64), float(least)

    def _iterate(self, X: Any, out: Vector, anew: Vector) -> None:
        lazy = None if inputs.is_sparse(X) else (X if inputs.lazy(X) else wrap(Source(X))).T
        share = np.where(out > 0, 1 / np.where(out > 0, out, 1.0), 0.0)
        ranks = anew.copy()
        progress = Progress(self.verbose, self.max_iter, type(self).__name__)
        iteration = 0
        for iteration in range(1, self.max_iter + 1):
            given = ranks * share
            if lazy is None:
                arrived = np.asarray(X.T @ given)
            else:
                (arrived,) = computed([as_node(lazy @ wrap(Source(given)))])
            lost = float(ranks[out == 0].sum())  # who finds no link begins anew
            fresh = self.damping * (arrived + lost * anew) + (1 - self.damping) * anew
            fresh /= fresh.sum()
            change = float(np.abs(fresh - ranks).sum())
            ranks = fresh
            progress(iteration, change, change)
            if change <= self.tol:
                break
        else:
            warnings.warn(
                f"PageRank did not converge in {self.max_iter} iterations; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.ranks_, self.n_iter_ = ranks, iteration

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = True
        tags.input_tags.positive_only = True
        return tags
