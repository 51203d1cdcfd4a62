"""Lasso and elastic net: exact zeros, paths of penalties, and cross-validation from one reading of the data.

The objective is scikit-learn's: half the mean of squared residuals, plus `alpha · l1_ratio` times the
absolute values of the coefficients, plus half of `alpha · (1 - l1_ratio)` times their squares.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import check_cv
from sklearn.utils.validation import check_is_fitted

from linnet.arrays.lowering.evaluate import computed
from linnet.models import inputs
from linnet.models.design import WIDE, Design, Model, Rows, Vector, column
from linnet.models.gram import Gram, Sums, Working, products
from linnet.models.linear import r2
from linnet.models.solvers import check_finite


def _design(X: Any, y: Any, sample_weight: Any, intercept: bool) -> Design:
    weight = inputs.weights(sample_weight, X, X.shape[0])
    rows = inputs.rows(X)
    along = None if weight is None else column(weight, rows.layout)
    design = Design(rows, column(y, rows.layout), along, None, intercept)
    design.stored = inputs.stored(X, rows.layout)
    return design


def alpha_grid(found: Gram | Working, l1_ratio: float, count: int, eps: float) -> Vector:
    """Penalties from the one that makes all coefficients 0 down to `eps` of it, evenly by logarithms."""
    if l1_ratio == 0:
        raise ValueError(
            "alphas cannot be chosen for l1_ratio=0: no penalty makes all coefficients 0; give alphas= "
            "yourself"
        )
    largest = float(np.abs(found.c).max(initial=0.0)) / found.weight / l1_ratio
    if largest <= np.finfo(float).resolution:
        return np.full(count, np.finfo(float).resolution)
    return np.geomspace(largest, largest * eps, count)


def _path(
    found: Gram | Working, alphas: Vector, l1_ratio: float, tol: float, most: int, label: str
) -> tuple[Vector, Vector, list[int]]:
    """Coefficients (a column for each penalty), duality gaps and sweeps; each begins where the last ended."""
    coef = np.zeros(len(found.c))
    coefs, gaps, sweeps = np.empty((len(coef), len(alphas))), np.empty(len(alphas)), []
    for place, alpha in enumerate(alphas):
        l1, l2 = (alpha * found.weight * share for share in (l1_ratio, 1 - l1_ratio))
        sweeps.append(found.minimise(l1, l2, coef, tol, most))
        if sweeps[-1] >= most:
            warnings.warn(
                f"{label} did not converge in {most} sweeps at alpha={alpha:g}; raise max_iter, or tol, "
                f"or penalise more",
                ConvergenceWarning,
                stacklevel=4,
            )
        coefs[:, place] = coef
        gaps[place] = found.gap(l1, l2, coef)
    return coefs, gaps, sweeps


def enet_path(
    X: Any,
    y: Any,
    *,
    l1_ratio: float = 0.5,
    eps: float = 1e-3,
    n_alphas: int = 100,
    alphas: Any = None,
    tol: float = 1e-6,
    max_iter: int = 10_000,
    sample_weight: Any = None,
) -> tuple[Vector, Vector, Vector]:
    """Elastic nets for many penalties; the data are not centred, and there is no intercept.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
    y : column of length n_samples
    l1_ratio : float
        The share of the l1 penalty.
    eps, n_alphas
        The smallest penalty over the largest, and how many there are, if `alphas` are not given.
    alphas : sequence of float, optional
        Taken from the largest down.
    tol : float
        How far the gradient may be from that of the minimum, relative to the largest element of `Xᵀy`.
    max_iter : int
        Sweeps over all coordinates, for each penalty.
    sample_weight : column of length n_samples, optional

    Returns
    -------
    alphas : array of shape (n_alphas,)
    coefs : array of shape (n_features, n_alphas)
    dual_gaps : array of shape (n_alphas,)

    Examples
    --------
    >>> import numpy as np
    >>> x, y = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([2.0, 0.1])
    >>> _, coefs, _ = enet_path(x, y, l1_ratio=1.0, alphas=[0.5])
    >>> coefs[:, 0]
    array([1., 0.])
    """
    reader = _Reader()
    X, y = inputs.checked_pair(reader, X, y)
    found = products(_design(X, y, sample_weight, False), "enet_path")
    if alphas is None:
        chosen = alpha_grid(found, l1_ratio, n_alphas, eps)
    else:
        chosen = np.sort(np.asarray(alphas, np.float64))[::-1]
    coefs, gaps, _ = _path(found, chosen, l1_ratio, tol, max_iter, "enet_path")
    return chosen, coefs, gaps


def lasso_path(
    X: Any,
    y: Any,
    *,
    eps: float = 1e-3,
    n_alphas: int = 100,
    alphas: Any = None,
    tol: float = 1e-6,
    max_iter: int = 10_000,
    sample_weight: Any = None,
) -> tuple[Vector, Vector, Vector]:
    """The lasso for many penalties: `enet_path` with `l1_ratio=1`.

    Parameters
    ----------
    X, y, eps, n_alphas, alphas, tol, max_iter, sample_weight
        As in `enet_path`.

    Returns
    -------
    alphas, coefs, dual_gaps
        As in `enet_path`.

    Examples
    --------
    >>> import numpy as np
    >>> alphas, coefs, _ = lasso_path(np.eye(2), np.array([2.0, 0.1]), n_alphas=3)
    >>> coefs.shape
    (2, 3)
    """
    return enet_path(
        X,
        y,
        l1_ratio=1.0,
        eps=eps,
        n_alphas=n_alphas,
        alphas=alphas,
        tol=tol,
        max_iter=max_iter,
        sample_weight=sample_weight,
    )


class _Reader(BaseEstimator):
    """Lets scikit-learn check the arguments of functions."""


class _Sparse(RegressorMixin, BaseEstimator):
    """What all of them do after `fit`."""

    coef_: Vector
    intercept_: float
    fit_intercept: bool

    def predict(self, X: Any) -> Any:
        """The prediction for each row; lazy for a lazy table.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)

        Returns
        -------
        column of length n_samples
        """
        check_is_fitted(self)
        return inputs.predictor(self, X, self.coef_, self.intercept_)[0]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of the variance of y that is explained.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
        y : column of length n_samples
        sample_weight : column of length n_samples, optional

        Returns
        -------
        float
        """
        return r2(y, self.predict(X), sample_weight)

    def _keep(self, found: Gram | Working, coef: Vector) -> None:
        self.coef_ = coef.copy()
        self.intercept_ = float(found.mean - found.means @ coef) if self.fit_intercept else 0.0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class ElasticNet(_Sparse):
    """A linear model with exact zeros.

    Parameters
    ----------
    alpha : float
        The penalty.
    l1_ratio : float
        The share of the l1 penalty in it: 0 to 1.
    fit_intercept : bool
    max_iter : int
        Sweeps over all coordinates.
    tol : float
        How far the gradient may be from that of the minimum, relative to the largest element of `Xᵀy`.

    Attributes
    ----------
    coef_, intercept_, n_iter_, dual_gap_
        As in scikit-learn.
    kkt_residual_ : float
        How far the gradient of the objective is from what the minimum asks for.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[1.0, 0.3], [2.0, -0.2], [3.0, 0.1], [4.0, 0.0]])
    >>> model = ElasticNet(alpha=0.5).fit(x, [1.0, 2.0, 3.0, 4.0])
    >>> float(model.coef_[1])
    0.0
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        max_iter: int = 10_000,
        tol: float = 1e-6,
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
        y : column of length n_samples
        sample_weight : column of length n_samples, optional

        Returns
        -------
        self
        """
        _check_penalty(self.alpha, self.l1_ratio)
        X, y = inputs.checked_pair(self, X, y)
        design = _design(X, y, sample_weight, bool(self.fit_intercept))
        self._sums: Sums | None = None
        self._solve(products(design, type(self).__name__))
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn from one more batch of rows: the model of all rows so far, exactly.

        Parameters
        ----------
        X : table of shape (n_samples, n_features), at most 2048 columns
        y : column of length n_samples
        sample_weight : column of length n_samples, optional

        Returns
        -------
        self
        """
        _check_penalty(self.alpha, self.l1_ratio)
        before: Sums | None = getattr(self, "_sums", None)
        X, y = inputs.checked_pair(self, X, y, reset=before is None)
        if X.shape[1] > WIDE:
            raise ValueError(
                f"partial_fit keeps products of all columns, of which up to {WIDE} are supported; got "
                f"{X.shape[1]}: fit all rows at once"
            )
        design = _design(X, y, sample_weight, bool(self.fit_intercept))
        self._sums = Sums.of(design, type(self).__name__, before)
        self._solve(self._sums.centred(design.intercept))
        return self

    def _solve(self, found: Gram | Working) -> None:
        alphas = np.array([float(self.alpha)])
        coefs, gaps, sweeps = _path(
            found, alphas, self.l1_ratio, self.tol, self.max_iter, type(self).__name__
        )
        self._keep(found, coefs[:, 0])
        self.dual_gap_, self.n_iter_ = float(gaps[0]), max(1, sweeps[0])
        l1, l2 = (self.alpha * found.weight * share for share in (self.l1_ratio, 1 - self.l1_ratio))
        self.kkt_residual_: float = found.residual(l1, l2, self.coef_)


class Lasso(ElasticNet):
    """A linear model with an l1 penalty: `ElasticNet` with `l1_ratio=1`.

    Parameters
    ----------
    alpha, fit_intercept, max_iter, tol
        As for `ElasticNet`.

    Examples
    --------
    >>> import numpy as np
    >>> model = Lasso(alpha=0.5).fit(
    ...     np.array([[1.0, 0.3], [2.0, -0.2], [3.0, 0.1], [4.0, 0.0]]), [1.0, 2.0, 3.0, 4.0]
    ... )
    >>> float(model.coef_[1])
    0.0
    """

    l1_ratio: float = 1.0

    def __init__(
        self, alpha: float = 1.0, *, fit_intercept: bool = True, max_iter: int = 10_000, tol: float = 1e-6
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol


class ElasticNetCV(_Sparse):
    """An elastic net whose penalty is chosen by cross-validation.

    Each fold is read once: errors on rows left out follow from products of columns, for all penalties.

    Parameters
    ----------
    l1_ratio : float or sequence of float
        Shares of the l1 penalty to choose from.
    eps : float
        The smallest penalty over the largest.
    alphas : int or sequence of float
        How many penalties, or which.
    fit_intercept : bool
    cv : int, splitter or iterable, optional
        As in scikit-learn; 5 folds without it.
    max_iter, tol
        As for `ElasticNet`.

    Attributes
    ----------
    alpha_, l1_ratio_, alphas_, mse_path_, coef_, intercept_, n_iter_, dual_gap_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).standard_normal((40, 3))
    >>> model = ElasticNetCV(alphas=20, cv=4).fit(x, x @ [1.0, 0.0, 2.0])
    >>> model.mse_path_.shape
    (20, 4)
    """

    def __init__(
        self,
        *,
        l1_ratio: Any = 0.5,
        eps: float = 1e-3,
        alphas: Any = 100,
        fit_intercept: bool = True,
        cv: Any = None,
        max_iter: int = 10_000,
        tol: float = 1e-6,
    ) -> None:
        self.l1_ratio = l1_ratio
        self.eps = eps
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : table of shape (n_samples, n_features), at most 2048 columns
        y : column of length n_samples
        sample_weight : column of length n_samples, optional

        Returns
        -------
        self
        """
        ratios = np.atleast_1d(np.asarray(self.l1_ratio, np.float64))
        for ratio in ratios:
            _check_penalty(1.0, float(ratio))
        X, y = inputs.checked_pair(self, X, y)
        if X.shape[1] > WIDE:
            raise ValueError(
                f"ElasticNetCV takes up to {WIDE} columns, got {X.shape[1]}; use enet_path on the folds"
            )
        design = _design(X, y, sample_weight, bool(self.fit_intercept))
        whole = Gram.of(design, type(self).__name__)
        folds = _folds(design, self.cv, X.shape[0], y)
        grids = [self._grid(whole, float(ratio)) for ratio in ratios]
        errors = np.stack(
            [self._errors(folds, grid, float(ratio)) for grid, ratio in zip(grids, ratios, strict=True)]
        )
        best, place = np.unravel_index(np.argmin(errors.mean(axis=2)), errors.shape[:2])
        self.alpha_, self.l1_ratio_ = float(grids[best][place]), float(ratios[best])
        self.mse_path_ = errors[0] if np.ndim(self.l1_ratio) == 0 else errors
        self.alphas_: Vector = grids[0] if np.ndim(self.l1_ratio) == 0 else np.stack(grids)
        chosen = grids[best][: place + 1]
        coefs, gaps, sweeps = _path(
            whole, chosen, self.l1_ratio_, self.tol, self.max_iter, type(self).__name__
        )
        self._keep(whole, coefs[:, -1])
        self.dual_gap_, self.n_iter_ = float(gaps[-1]), max(1, sweeps[-1])
        return self

    def _grid(self, whole: Gram, ratio: float) -> Vector:
        if isinstance(self.alphas, int | np.integer):
            return alpha_grid(whole, ratio, int(self.alphas), self.eps)
        return np.sort(np.asarray(self.alphas, np.float64))[::-1]

    def _errors(self, folds: list[tuple[Gram, Gram]], grid: Vector, ratio: float) -> Vector:
        """The mean squared error of each penalty (rows) in each fold (columns)."""
        found = np.empty((len(grid), len(folds)))
        for place, (train, test) in enumerate(folds):
            coefs, _, _ = _path(train, grid, ratio, self.tol, self.max_iter, type(self).__name__)
            for k, coef in enumerate(coefs.T):
                intercept = float(train.mean - train.means @ coef) if self.fit_intercept else 0.0
                found[k, place] = test.error(coef, intercept) / test.weight
        return found


def _folds(design: Design, cv: Any, count: int, y: Any) -> list[tuple[Gram, Gram]]:
    """For each fold the centred products of its training rows, and the plain ones of its test rows.

    Folds are read one at a time, with weights that are 0 outside; training rows are all rows without them.
    """
    parts: list[tuple[Gram, Gram]] = []
    own = None if design.weight is None else np.asarray(computed([design.weight])[0])
    labels = np.zeros(count)
    folder: Any = check_cv(cv, labels)
    for train, test in folder.split(np.zeros((count, 1)), labels):
        found = []
        for rows in (train, test):
            mask = np.zeros(count)
            mask[rows] = 1.0 if own is None else own[rows]
            cut = Design(
                design.x, design.y, column(mask, design.x.layout), None, design.intercept, design.shift
            )
            cut.stored = design.stored
            found.append(cut)
        parts.append((Gram.of(found[0], "ElasticNetCV"), _plain(found[1])))
    return parts


def _plain(design: Design) -> Gram:
    """Products that are not centred, of columns as they were given, and the means."""
    shift, design.shift = design.shift, None
    loss = Rows(design, Model("gaussian", "identity"))
    found = loss.evaluate(np.zeros(loss.size))
    check_finite(found, "ElasticNetCV")
    assert found.hessian is not None
    design.shift = shift
    columns = design.x.shape[1]
    q, c, weight = found.hessian[:columns, :columns], -found.gradient[:columns], found.weight
    means = found.hessian[:columns, columns] / weight if design.intercept else np.zeros(columns)
    mean = -found.gradient[columns] / weight if design.intercept else 0.0
    return Gram(q, c, 2 * found.loss, means, float(mean), weight)


def _check_penalty(alpha: Any, l1_ratio: Any) -> None:
    if not (isinstance(alpha, int | float | np.number) and alpha >= 0 and np.isfinite(alpha)):
        raise ValueError(f"alpha must be a finite number of at least 0; got {alpha!r}")
    if not 0 <= l1_ratio <= 1:
        raise ValueError(f"l1_ratio must lie between 0 and 1; got {l1_ratio!r}")
