"""Linear regression and ridge regression.

One pass gives `XᵀX` and `Xᵀy`; a second one, at the solution, the gradient there, from which the solution is
refined. Where columns nearly depend on others, the square of the table loses too many digits, and least
squares goes through the R of a tall and skinny QR: directly (`Qᵀy`), or indirectly (`R` alone, and
refinement).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from linnet.arrays.elements.core import as_node, wrap
from linnet.arrays.expression.builders import recut
from linnet.arrays.expression.nodes import Source
from linnet.arrays.linalg.factorisations import qr
from linnet.arrays.linalg.low_rank import tsqr
from linnet.arrays.lowering.evaluate import computed
from linnet.models import inputs
from linnet.models.design import Design, Model, Rows, Vector, column
from linnet.models.fitting import as_given, bring_near, flat_columns
from linnet.models.solvers import check_finite, solve_positive
from linnet.models.statistics import Statistics, statistics_of
from linnet.tiles import Layout

_MODEL = Model("gaussian", "identity")
_POOR = 1e-9
"""A pivot of the scaled `XᵀX` below which QR is taken: by then half of the digits are gone."""


def r2(y: Any, predicted: Any, weight: Any = None) -> float:
    """The share of the variance that is explained; the mean over columns of y."""
    from linnet.arrays.namespace import names

    if not any(inputs.lazy(each) for each in (y, predicted)):
        from sklearn.metrics import r2_score

        return float(r2_score(y, predicted, sample_weight=weight))
    known = names()
    y = known["asarray"](y)
    weight = None if weight is None else known["asarray"](weight)
    if weight is not None and y.ndim == 2:
        weight = weight[:, None]
    mean = y.mean(axis=0) if weight is None else (y * weight).sum(axis=0) / weight.sum()
    residual, apart = (y - predicted) ** 2, (y - mean) ** 2
    if weight is not None:
        residual, apart = residual * weight, apart * weight
    below, above = computed([residual.sum(axis=0).__node__, apart.sum(axis=0).__node__])
    return float(np.mean(1 - below / above))


class _LeastSquares(RegressorMixin, BaseEstimator):
    """What both do."""

    coef_: Vector
    intercept_: Any
    fit_intercept: bool
    statistics_: Statistics | None

    def _prepared(self, X: Any, y: Any, sample_weight: Any, *, reset: bool = True) -> tuple[Design, Any, Any]:
        """The design for the first column of y; y, and weights."""
        X, y = inputs.checked_pair(self, X, y, multi_output=True, reset=reset)
        weight = inputs.weights(sample_weight, X, X.shape[0])
        rows = inputs.rows(X)
        along = None if weight is None else column(weight, rows.layout)
        first = y if y.ndim == 1 else y[:, 0]
        design = Design(rows, column(first, rows.layout), along, None, bool(self.fit_intercept))
        design.stored = inputs.stored(X, rows.layout)
        return design, y, weight

    def _solve(self, design: Design, y: Any, ridge: Any) -> tuple[Vector, bool]:
        """Coefficients (a column for each column of y), the intercept last; and whether they are doubtful."""
        loss = Rows(design, _MODEL)
        zero = np.zeros(loss.size)
        found = loss.evaluate(zero)
        check_finite(found, type(self).__name__)
        if design.intercept and bring_near(design, found):
            found = loss.evaluate(zero)
        assert found.hessian is not None
        right = -found.gradient if y.ndim == 1 else _products(design, y)
        penalties = np.broadcast_to(np.asarray(ridge, np.float64), (1 if y.ndim == 1 else y.shape[1],))
        solved = np.empty((loss.size, len(penalties)))
        doubt = False
        for value in np.unique(penalties):
            which = penalties == value
            diagonal = np.full(loss.size, value)
            if design.intercept:
                diagonal[-1] = 0.0
            matrix = found.hessian + np.diag(diagonal)
            part = right.reshape(loss.size, -1)[:, which]
            solved[:, which], singular = solve_positive(matrix, part)
            doubt = doubt or singular or _smallest_pivot(matrix) < _POOR
            if y.ndim == 1 and not doubt:
                slope = loss.evaluate(solved[:, 0], "none").gradient + diagonal * solved[:, 0]
                solved[:, 0] -= solve_positive(matrix, slope)[0]
        return solved, doubt

    def _keep(self, design: Design, coef: Vector, y: Any) -> None:
        columns = design.x.shape[1]
        given = np.stack([as_given(design, each) for each in coef.T])
        self.coef_ = given[:, :columns].copy() if y.ndim == 2 else given[0, :columns].copy()
        ends = given[:, columns] if design.intercept else np.zeros(len(given))
        self.intercept_ = ends.copy() if y.ndim == 2 else float(ends[0])
        if not design.intercept:
            self.intercept_ = 0.0

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Add a batch of rows: the model is that of all rows so far, since products of columns add up.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        self
        """
        sums: tuple[Vector, Vector, Vector | None] | None = getattr(self, "_sums", None)
        design, y, _ = self._prepared(X, y, sample_weight, reset=sums is None)
        design.shift = None if sums is None else sums[2]
        loss = Rows(design, _MODEL)
        found = loss.evaluate(np.zeros(loss.size))
        check_finite(found, type(self).__name__)
        if sums is None and design.intercept and bring_near(design, found):
            found = loss.evaluate(np.zeros(loss.size))
        assert found.hessian is not None
        right = (-found.gradient if y.ndim == 1 else _products(design, y)).reshape(loss.size, -1)
        if sums is not None:
            if sums[1].shape != right.shape:
                raise ValueError(f"y has {right.shape[1]} columns; batches before had {sums[1].shape[1]}")
            found.hessian[...] += sums[0]
            right = right + sums[1]
        self._sums = found.hessian, right, design.shift
        hessian = found.hessian.copy()
        if design.shift is not None:  # what was constant so far may vary in a later batch
            flat = np.append(flat_columns(design.shift, hessian), False)
            hessian[flat] = hessian[:, flat] = 0.0
            right = np.where(flat[:, None], 0.0, right)
        penalties = np.broadcast_to(np.asarray(self._penalty(), np.float64), right.shape[1])
        coef = np.empty_like(right)
        for value in np.unique(penalties):
            diagonal = np.full(loss.size, value)
            if design.intercept:
                diagonal[-1] = 0.0
            which = penalties == value
            coef[:, which], _ = solve_positive(hessian + np.diag(diagonal), right[:, which])
        self._keep(design, coef, y)
        self.statistics_ = None
        return self

    def _penalty(self) -> Any:
        return 0.0

    def predict(self, X: Any) -> Any:
        """The prediction for each row; lazy for a lazy table.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_targets)
        """
        check_is_fitted(self)
        return inputs.predictor(self, X, self.coef_.T, self.intercept_)[0]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of the variance of y that is explained.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
        y : column of length n_samples, or a table of such
        sample_weight : column of length n_samples, optional

        Returns
        -------
        float
        """
        return r2(y, self.predict(X), sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags


def _smallest_pivot(matrix: Vector) -> float:
    """The smallest eigenvalue of a matrix whose diagonal was made 1, as far as Cholesky sees it."""
    diagonal = np.diag(matrix)
    if not (diagonal > 0).all():
        return 0.0
    scale = 1 / np.sqrt(diagonal)
    try:
        return float(np.diag(linalg.cholesky(matrix * scale[:, None] * scale, lower=True)).min() ** 2)
    except linalg.LinAlgError:
        return 0.0


def _products(design: Design, y: Any) -> Vector:
    """`XᵀY` for several columns of y, with a row for the intercept."""
    node = recut(as_node(y), Layout((design.x.layout.boundaries[0], (0, y.shape[1]))))
    x, targets = wrap(design.x), wrap(node).astype(np.float64)
    if design.shift is not None:
        x = x - wrap(Source(design.shift))
    if design.weight is not None:
        targets = targets * wrap(design.weight)[:, None]
    wanted = [(x.T @ targets).__node__]
    if design.intercept:
        wanted.append(targets.sum(axis=0).__node__)
    design.passes += 1
    found = computed(wanted)
    return np.concatenate([found[0], *(each[None] for each in found[1:])])


class LinearRegression(_LeastSquares):
    """Least squares.

    Parameters
    ----------
    fit_intercept : bool
    solver : {"auto", "cholesky", "tsqr", "tsqr-indirect"}
        "cholesky" works on `XᵀX`, refined once; "tsqr" on the QR factors of the table, "tsqr-indirect" on R
        alone; "auto" is "cholesky", and "tsqr" where columns nearly depend on others.

    Attributes
    ----------
    coef_, intercept_, rank_
        As in scikit-learn. Where columns depend on others, the coefficients are the shortest that do.
    statistics_ : Statistics or None
        Standard errors and the like, for one column of y.

    Examples
    --------
    >>> import numpy as np
    >>> model = LinearRegression().fit(np.array([[0.0], [1.0], [2.0]]), [1.0, 3.0, 5.0])
    >>> bool(np.isclose(model.coef_[0], 2.0)), bool(np.isclose(model.intercept_, 1.0))
    (True, True)
    """

    def __init__(self, *, fit_intercept: bool = True, solver: str = "auto") -> None:
        self.fit_intercept = fit_intercept
        self.solver = solver

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
        y : column of length n_samples, or a table of such
        sample_weight : column of length n_samples, optional

        Returns
        -------
        self
        """
        known = ("auto", "cholesky", "tsqr", "tsqr-indirect")
        if self.solver not in known:
            raise ValueError(f"LinearRegression has no solver {self.solver!r}; use one of {', '.join(known)}")
        design, y, weight = self._prepared(X, y, sample_weight)
        self._sums = None
        self.rank_ = design.x.shape[1]
        if self.solver.startswith("tsqr"):
            coef = self._by_qr(design, y)
        else:
            coef, doubt = self._solve(design, y, 0.0)
            if doubt and self.solver == "auto":
                coef = self._by_qr(design, y)
        self._keep(design, coef, y)
        self.statistics_ = None
        if y.ndim == 1 and design.columns <= 2048 and design.x.shape[0] > design.columns:
            total = design.x.shape[0] if weight is None else inputs.summed(weight)
            mean = inputs.summed(y, weight) / total
            self.statistics_ = statistics_of(self, design, _MODEL, coef[:, 0], mean, student=True)
        return self

    def _by_qr(self, design: Design, y: Any) -> Vector:
        """Least squares by a QR factorisation of the table: by Q and R, or by R alone and a refinement."""
        x = wrap(design.x).astype(np.float64)
        several = y if y.ndim == 2 else y[:, None]
        cut = Layout((design.x.layout.boundaries[0], (0, several.shape[1])))
        targets = wrap(recut(as_node(several), cut))
        weight = None if design.weight is None else wrap(design.weight)
        design.shift = None
        centre = np.zeros(targets.shape[1])
        if design.intercept:
            total = x.shape[0] if weight is None else weight.sum()
            sums = [
                (each if weight is None else each * weight[:, None]).sum(axis=0) / total
                for each in (x, targets)
            ]
            means, centre = (np.asarray(each) for each in computed([each.__node__ for each in sums]))
            design.shift = np.ascontiguousarray(means)
            x, targets = x - wrap(Source(means)), targets - wrap(Source(centre))
        if weight is not None:
            root = np.sqrt(weight)[:, None]
            x, targets = x * root, targets * root
        if x.shape[0] < x.shape[1]:
            solved = self._short(x, targets)
        elif self.solver == "tsqr-indirect":
            (r,) = computed([as_node(qr(x, mode="r"))])
            products = x.T @ targets
            (right,) = computed([products.__node__])
            solved = self._from_square(r, right)
            residual = targets - x @ wrap(Source(solved))
            (right,) = computed([(x.T @ residual).__node__])
            solved = solved + self._from_square(r, right)
        else:
            q, r_lazy = tsqr(x)
            r, right = computed([r_lazy.__node__, (q.T @ targets).__node__])
            solved, _, self.rank_, _ = linalg.lstsq(r, right, cond=self._cut(x.shape), lapack_driver="gelsd")
        design.passes += 1
        ends = [centre[None]] if design.intercept else []
        return np.concatenate([solved, *ends])

    def _short(self, x: Any, targets: Any) -> Vector:
        """Fewer rows than columns: the shortest solution, by the factors of the transpose."""
        q, r_lazy = tsqr(x.T.rechunk((-1, x.shape[0])) if x.shape[0] > 64 else x.T)
        r, right = computed([r_lazy.__node__, targets.__node__])
        solved, _, self.rank_, _ = linalg.lstsq(r.T, right, cond=self._cut(x.shape), lapack_driver="gelsd")
        (turned,) = computed([(q @ wrap(Source(np.ascontiguousarray(solved)))).__node__])
        return turned

    def _cut(self, shape: tuple[int, ...]) -> float:
        """Singular values below this, of the largest, are 0 but for rounding."""
        return float(max(shape) * np.finfo(np.float64).eps * 4)

    def _from_square(self, r: Vector, right: Vector) -> Vector:
        """The solution of `RᵀR x = right`, the shortest if R is singular."""
        _, s, vt = np.linalg.svd(r)
        kept = s > s[0] * self._cut(r.shape)
        self.rank_: int = int(kept.sum())
        inverse = np.where(kept, 1 / np.where(kept, s, 1.0), 0.0)
        return vt.T @ ((vt @ right) * (inverse**2)[:, None])

    def summary(self) -> Statistics:
        """Coefficients with standard errors, Student's tests and more; print it.

        Returns
        -------
        Statistics
        """
        check_is_fitted(self)
        if self.statistics_ is None:
            raise ValueError("a summary needs one column of y, and more rows than coefficients")
        return self.statistics_


class Ridge(_LeastSquares):
    """Least squares plus `alpha` times the squares of the coefficients.

    Parameters
    ----------
    alpha : float, or one for each column of y
        The penalty; the intercept has none.
    fit_intercept : bool

    Examples
    --------
    >>> import numpy as np
    >>> model = Ridge(alpha=2.0).fit(np.array([[0.0], [1.0], [2.0]]), [1.0, 3.0, 5.0])
    >>> bool(np.isclose(model.coef_[0], 1.0))
    True
    """

    def __init__(self, alpha: Any = 1.0, *, fit_intercept: bool = True) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
        y : column of length n_samples, or a table of such
        sample_weight : column of length n_samples, optional

        Returns
        -------
        self
        """
        alpha = np.asarray(self.alpha, np.float64)
        if not (np.isfinite(alpha).all() and (alpha >= 0).all()):
            raise ValueError(f"alpha must be finite and at least 0; got {self.alpha!r}")
        design, y, _ = self._prepared(X, y, sample_weight)
        count = 1 if y.ndim == 1 else y.shape[1]
        if alpha.ndim and alpha.shape != (count,):
            raise ValueError(
                f"Number of targets and number of penalties do not correspond: {alpha.shape} != ({count},)"
            )
        self._sums = None
        coef, _ = self._solve(design, y, alpha)
        self._keep(design, coef, y)
        return self

    def _penalty(self) -> Any:
        return self.alpha
