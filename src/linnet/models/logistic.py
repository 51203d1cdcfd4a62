"""Logistic regression, for two classes and for many."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from linnet.arrays.elements.core import wrap
from linnet.models import inputs
from linnet.models.class_labels import batch_codes, class_weights, encoded
from linnet.models.design import WIDE, Classes, Design, Model, Rows, column
from linnet.models.fitting import (
    Request,
    all_right,
    as_given,
    check_solver,
    classes_near,
    fit_rows,
    held_out,
    no_zeros,
    stochastic,
)
from linnet.models.glm_base import mean_of
from linnet.models.proximal import proximal_newton
from linnet.models.solvers import Progress, Solution, check_finite, lbfgs, newton, warn_of_end, warn_of_rank
from linnet.models.statistics import Statistics, statistics_of
from linnet.models.stochastic import Moments, one_epoch

_SEPARABLE = 1e-6
"""A loss for each row below which the classes are as good as told apart,"""
_SUSPECT = 0.05
"""and one below which it is looked whether they are."""


class LogisticRegression(ClassifierMixin, BaseEstimator):
    """Classes with probabilities: `C` times the log loss, plus half the squares of the coefficients.

    Parameters
    ----------
    C : float
        How much the data count against the penalty, as scikit-learn means it; `np.inf` for no penalty, which
        gives standard errors (two classes).
    l1_ratio : float
        The share of the l1 penalty, which makes coefficients exactly 0, in the whole: 0 to 1.
    tol : float
        How far coefficients may be off, relative to the larger of 1 and themselves; for "lbfgs" the largest
        element of the gradient of the mean loss.
    fit_intercept : bool
    class_weight : dict or "balanced", optional
        Weights of classes; "balanced" makes all weigh the same.
    solver : {"auto", "newton", "irls", "lbfgs", "proximal", "sgd"}
        "sgd" comes near the minimum, in epochs over the rows; the others reach it.
    max_iter : int
    warm_start : bool
    verbose : int
    early_stopping : bool
        Whether "sgd" holds rows out, and ends when these are no longer predicted better.
    validation_fraction : float
        The share of rows that are held out.
    random_state : int, RandomState or None
        Of "sgd".

    Attributes
    ----------
    classes_, coef_, intercept_, n_iter_
        As in scikit-learn.
    statistics_ : Statistics or None
        Standard errors and the like, for two classes without a penalty.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = LogisticRegression().fit(x, ["no", "no", "yes", "yes"])
    >>> model.predict([[0.2], [2.9]]).tolist()
    ['no', 'yes']
    """

    classes_: NDArray[Any]
    coef_: NDArray[Any]
    intercept_: NDArray[Any]
    statistics_: Statistics | None

    def __init__(
        self,
        C: float = 1.0,
        *,
        l1_ratio: float = 0.0,
        tol: float = 1e-6,
        fit_intercept: bool = True,
        class_weight: Any = None,
        solver: str = "auto",
        max_iter: int = 100,
        warm_start: bool = False,
        verbose: int = 0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.l1_ratio = l1_ratio
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.verbose = verbose
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            NumPy, pandas, polars, SciPy's sparse matrices, `ln.Array`, or a `pathlib.Path` to a file.
        y : column of length n_samples
            The class of each row.
        sample_weight : column of length n_samples, optional
            How often each row counts.
        offset : column of length n_samples, optional
            Added to the predictor of each row; for two classes only.

        Returns
        -------
        self
        """
        self._check_parameters()
        X, y = inputs.checked_pair(self, X, y, numeric=False)
        if not inputs.lazy(y):
            check_classification_targets(y)
        classes, codes = encoded(y)
        if len(classes) < 2:
            raise ValueError(
                "This solver needs samples of at least 2 classes in the data, but the data contains only one "
                f"class: {classes[0]!r}"
            )
        if offset is not None and len(classes) > 2:
            raise ValueError(f"offset is for two classes, but y has {len(classes)}")
        design = self._design(X, codes, classes, sample_weight, offset)
        self.classes_ = classes
        self.statistics_ = None
        self._seen: Any = None
        if len(classes) == 2:
            self._fit_two(design, codes)
        else:
            self._fit_many(design)
        return self

    def _check_parameters(self) -> None:
        check_solver(self.solver, type(self).__name__)
        if not (isinstance(self.C, int | float | np.number) and self.C > 0):
            raise ValueError(f"C must be a positive number, or np.inf for no penalty; got {self.C!r}")
        if not 0 <= self.l1_ratio <= 1:
            raise ValueError(f"l1_ratio must lie between 0 and 1; got {self.l1_ratio!r}")
        if self.max_iter < 1 or not self.tol > 0:
            raise ValueError(f"max_iter must be at least 1, tol positive; got {self.max_iter} and {self.tol}")

    def _design(self, X: Any, codes: Any, classes: Any, sample_weight: Any, offset: Any) -> Design:
        count = X.shape[0]
        weight = inputs.weights(sample_weight, X, count)
        if self.class_weight is not None:
            of_rows = class_weights(self.class_weight, classes, codes, weight)
            weight = of_rows if weight is None else weight * of_rows
        rows = inputs.rows(X)
        along = [
            None if each is None else column(each, rows.layout)
            for each in (weight, inputs.offsets(offset, count))
        ]
        design = Design(rows, column(codes, rows.layout), along[0], along[1], bool(self.fit_intercept))
        design.stored = inputs.stored(X, rows.layout)
        return design

    def _request(self) -> Request:
        strength = 0.0 if np.isinf(self.C) else 1 / float(self.C)
        return Request(
            self.solver,
            self.tol,
            self.max_iter,
            ridge=strength * (1 - self.l1_ratio),
            lasso=strength * self.l1_ratio,
            verbose=int(self.verbose),
            label=type(self).__name__,
            warm=self._warm(),
            **held_out(self),
        )

    def _warm(self) -> Any:
        if not (self.warm_start and hasattr(self, "coef_")):
            return None
        parts = [self.coef_, self.intercept_[:, None]] if self.fit_intercept else [self.coef_]
        return np.concatenate(parts, axis=1).ravel()

    def _fit_two(self, design: Design, codes: Any) -> None:
        model = Model("binomial", "logit")
        mean = inputs.summed(codes) / design.x.shape[0]
        request = self._request()
        found = fit_rows(design, model, mean, request)
        self._tell(found, self._apart(design, found))
        coef = as_given(design, found.coef)
        columns = design.x.shape[1]
        self.coef_ = coef[None, :columns].copy()
        self.intercept_ = coef[columns:].copy() if design.intercept else np.zeros(1)
        self._end(found)
        if np.isinf(self.C) and design.columns <= WIDE and self.solver != "sgd":
            self.statistics_ = statistics_of(self, design, model, found.coef, mean)

    def _fit_many(self, design: Design) -> None:
        request = self._request()
        loss = Classes(design, len(self.classes_), lifted=not request.lasso)
        coef = np.zeros(loss.size) if request.warm is None or len(request.warm) != loss.size else request.warm
        by_column = np.ones((loss.classes, design.columns))
        if design.intercept:
            by_column[:, -1] = 0.0
        if request.lasso > 0 and request.solver not in ("auto", "proximal"):
            raise no_zeros(request.solver)
        if request.solver == "sgd":
            found = stochastic(design, Model("binomial", "logit"), loss.classes, coef, request)
            self._tell(found, False)
            self._keep_many(design, found)
            return
        penalty, lasso = (each * by_column.ravel() for each in (request.ridge, request.lasso))
        progress = Progress(request.verbose, request.max_iter, request.label)
        how: dict[str, Any] = {"tol": request.tol, "max_iter": request.max_iter, "progress": progress}
        small = loss.size <= WIDE
        plain = "none" if request.solver == "lbfgs" or not small else "observed"
        first = loss.evaluate(coef, plain)
        check_finite(first, request.label)
        if first.hessian is not None and design.intercept:
            coef, first = classes_near(loss, coef, first)
        if request.lasso > 0:
            if not small:
                raise ValueError(
                    f"an l1 penalty on {loss.size} coefficients (classes times columns) is not supported; "
                    f"up to {WIDE} are"
                )
            found = proximal_newton(loss, coef, penalty, lasso, first=first, **how)
        elif plain == "none":
            found = lbfgs(loss, coef, penalty, **how)
        else:
            found = newton(loss, coef, penalty, first=first, **how)
        self._tell(found, self._apart(design, found))
        self._keep_many(design, found)

    def _keep_many(self, design: Design, found: Solution) -> None:
        shaped = as_given(design, found.coef.reshape(len(self.classes_), -1))
        columns = design.x.shape[1]
        self.coef_ = shaped[:, :columns].copy()
        self.intercept_ = shaped[:, columns].copy() if design.intercept else np.zeros(len(shaped))
        self._end(found)

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, offset: Any = None
    ) -> Any:
        """Learn from one more batch of rows: an epoch of stochastic gradient descent over it.

        The penalty is that of `C` for all rows that were seen so far.

        Parameters
        ----------
        X, y, sample_weight, offset
            As in `fit`.
        classes : array, optional
            All classes there will be; the first call needs them.

        Returns
        -------
        self
        """
        self._check_parameters()
        if self.l1_ratio and np.isfinite(self.C):
            raise ValueError("partial_fit makes no exact zeros, which l1_ratio asks for; set l1_ratio=0")
        first = not hasattr(self, "classes_")
        X, y = inputs.checked_pair(self, X, y, numeric=False, reset=first)
        self.classes_, codes = batch_codes(getattr(self, "classes_", None), classes, y)
        design = self._design(X, codes, self.classes_, sample_weight, offset)
        learn(self, design, 1 if len(self.classes_) == 2 else len(self.classes_))
        return self

    def _apart(self, design: Design, found: Solution) -> bool:
        """Whether nothing keeps coefficients from growing: no penalty, and every row in its class."""
        rows = design.x.shape[0]
        if np.isfinite(self.C) or self.solver == "sgd" or found.objective > _SUSPECT * rows:
            return False
        return found.objective <= _SEPARABLE * rows or all_right(design, found.coef, len(self.classes_))

    def _end(self, found: Solution) -> None:
        self.n_iter_ = np.array([max(1, found.iterations)], np.int32)
        self.objective_history_: list[float] = found.history

    def _tell(self, found: Solution, apart: bool) -> None:
        name = type(self).__name__
        if apart:
            warnings.warn(
                f"{name}: the classes can be told apart without an error, so the coefficients grow "
                f"without limit and "
                "mean nothing; give a penalty (a finite C)",
                ConvergenceWarning,
                stacklevel=4,
            )
            return
        if found.singular and np.isinf(self.C):
            warn_of_rank(name, 5)
        warn_of_end(found, name, self.max_iter)

    def decision_function(self, X: Any, offset: Any = None) -> Any:
        """The predictor of each row: positive for the second of two classes, a column for each of many.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
        offset : column of length n_samples, optional

        Returns
        -------
        array
            Lazy for a lazy table.
        """
        check_is_fitted(self)
        two = len(self.classes_) == 2
        coef = self.coef_[0] if two else np.ascontiguousarray(self.coef_.T)
        intercept = self.intercept_[0] if two else self.intercept_
        eta, _ = inputs.predictor(self, X, coef, intercept)
        return eta if offset is None else eta + inputs.offsets(offset, eta.shape[0])

    def predict(self, X: Any, offset: Any = None) -> Any:
        """The likeliest class of each row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
        offset : column of length n_samples, optional

        Returns
        -------
        array of length n_samples
            Lazy for a lazy table.
        """
        eta = self.decision_function(X, offset)
        if inputs.lazy(eta):
            from linnet.arrays.namespace import names

            place = (eta > 0).astype(np.intp) if eta.ndim == 1 else eta.argmax(axis=1)
            if self.classes_.dtype.kind in "OSU":
                raise TypeError(
                    f"classes of dtype {self.classes_.dtype} cannot be in a lazy array; "
                    "take decision_function or predict_proba, or number the classes"
                )
            return names()["take"](names()["asarray"](self.classes_), place)
        place = (eta > 0).astype(np.intp) if eta.ndim == 1 else eta.argmax(axis=1)
        return self.classes_[place]

    def predict_proba(self, X: Any, offset: Any = None) -> Any:
        """The probability of each class, in the order of `classes_`.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
        offset : column of length n_samples, optional

        Returns
        -------
        array of shape (n_samples, n_classes)
            Lazy for a lazy table.
        """
        eta = self.decision_function(X, offset)
        if inputs.lazy(eta):
            from linnet.arrays.namespace import names

            if eta.ndim == 1:
                return names()["stack"]([mean_of(-eta, "logit"), mean_of(eta, "logit")], axis=1)
            grown = names()["exp"](eta - eta.max(axis=1, keepdims=True))
            return grown / grown.sum(axis=1, keepdims=True)
        if eta.ndim == 1:
            return np.stack([mean_of(-eta, "logit"), mean_of(eta, "logit")], axis=1)
        grown = np.exp(eta - eta.max(axis=1, keepdims=True))
        return grown / grown.sum(axis=1, keepdims=True)

    def predict_log_proba(self, X: Any, offset: Any = None) -> Any:
        """The logarithms of `predict_proba`.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
        offset : column of length n_samples, optional

        Returns
        -------
        array of shape (n_samples, n_classes)
        """
        return np.log(self.predict_proba(X, offset))

    def summary(self) -> Statistics:
        """Coefficients with standard errors, deviance and more, for two classes without a penalty; print it.

        Returns
        -------
        Statistics
        """
        check_is_fitted(self)
        if self.statistics_ is None:
            raise ValueError(
                "LogisticRegression has standard errors for two classes without a penalty; fit with C=np.inf"
            )
        return self.statistics_

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The (weighted) share of rows whose class is predicted.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
        y : column of length n_samples
        sample_weight : column of length n_samples, optional

        Returns
        -------
        float
        """
        said = self.predict(X)
        if not inputs.lazy(said):
            return float(super().score(X, np.asarray(y), sample_weight))
        right = said == y
        if sample_weight is None:
            return float(right.mean())
        return inputs.summed(right, sample_weight) / inputs.summed(sample_weight)

    def iteration(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """One iteration of the fit as a lazy array, to be planned: `ln.plan(model.iteration(X, y))`.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        ln.Array
        """
        X, y = inputs.checked_pair(self, X, y, numeric=False)
        classes, codes = encoded(y)
        design = self._design(X, codes, classes, sample_weight, None)
        two = len(classes) == 2
        loss = Rows(design, Model("binomial", "logit")) if two else Classes(design, len(classes))
        return wrap(loss.expression(np.zeros(loss.size)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def learn(estimator: LogisticRegression, design: Design, rows: int) -> None:
    """One epoch over a batch; coefficients have so many rows."""
    found, seen = Moments.of(design), getattr(estimator, "_seen", None)
    moments, before = (found, 0) if seen is None else (seen[0].joined(found), seen[1])
    ends = [estimator.intercept_[:, None]] if hasattr(estimator, "coef_") and design.intercept else []
    known = np.concatenate([estimator.coef_, *ends], axis=1) if hasattr(estimator, "coef_") else None
    coef = np.zeros(rows * design.columns) if known is None else known.ravel()
    ridge = 0.0 if np.isinf(estimator.C) else 1 / (float(estimator.C) * moments.weight)
    coef = one_epoch(design, Model("binomial", "logit"), rows, coef, moments, ridge, before)
    if not np.isfinite(coef).all():
        raise ValueError("Input X or y contains NaN or infinity; remove or fill these rows first")
    shaped = coef.reshape(rows, -1)
    columns = design.x.shape[1]
    estimator.coef_ = shaped[:, :columns].copy()
    estimator.intercept_ = shaped[:, columns].copy() if design.intercept else np.zeros(rows)
    estimator.n_iter_ = np.array([before + 1], np.int32)
    estimator.statistics_, estimator._seen = None, (moments, before + 1)
