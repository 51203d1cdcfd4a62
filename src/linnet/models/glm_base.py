"""What all generalised linear models do: data checked, coefficients fitted, predictions, statistics."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from linnet.arrays.elements.core import wrap
from linnet.arrays.expression.builders import each_tile
from linnet.kernels.models.families import FAMILIES, LINKS
from linnet.models import inputs
from linnet.models.design import Design, Model, Rows, Vector, column
from linnet.models.fitting import (
    Request,
    as_given,
    check_solver,
    constant,
    fit_rows,
    held_out,
)
from linnet.models.solvers import Solution, warn_of_end, warn_of_rank
from linnet.models.statistics import (
    Statistics,
    null_deviance,
    statistics_of,
)
from linnet.models.stochastic import Moments, one_epoch


def mean_of(eta: Any, link: str) -> Any:
    """The means of predictors; lazily, if these are."""
    if inputs.lazy(eta):
        return wrap(each_tile("glm_mean", eta.__node__, np.float64, link=link))
    with np.errstate(over="ignore"):
        return LINKS[link].inverse(np.asarray(eta, np.float64))


def extremes(y: Any) -> tuple[float, float]:
    """The least and the largest of a column."""
    if inputs.lazy(y):
        from linnet.arrays.lowering.evaluate import computed

        low, high = computed([y.min().__node__, y.max().__node__])
        return float(low), float(high)
    return float(np.min(y)), float(np.max(y))


class GLMBase(RegressorMixin, BaseEstimator):
    """What all generalised linear models do."""

    alpha: Any
    solver: Any
    fit_intercept: Any
    max_iter: Any
    tol: Any
    verbose: Any
    early_stopping: Any = False
    validation_fraction: Any = 0.1
    random_state: Any = None
    coef_: Vector
    intercept_: float
    n_iter_: int
    statistics_: Statistics | None

    def _model(self) -> Model:
        raise TypeError(f"{type(self).__name__} has no family")

    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            NumPy, pandas, polars, SciPy's sparse matrices, `ln.Array`, or a `pathlib.Path` to a file.
        y : column of length n_samples
            What is to be predicted.
        sample_weight : column of length n_samples, optional
            How often each row counts.
        offset : column of length n_samples, optional
            Added to the predictor of each row, with coefficient 1: the logarithm of an exposure, for example.

        Returns
        -------
        self
            With `coef_`, `intercept_`, `n_iter_`; and `statistics_`, if there is no penalty.
        """
        check_solver(self.solver, type(self).__name__)
        self._check_parameters()
        X, y = inputs.checked_pair(self, X, y)
        design, mean = self._design(X, y, sample_weight, offset)
        self._seen: tuple[Moments, int] | None = None
        self._fit(design, mean)
        return self

    def _learn(self, X: Any, y: Any, sample_weight: Any, offset: Any) -> None:
        """One epoch of stochastic gradient descent over a batch of rows."""
        self._check_parameters()
        first = not hasattr(self, "coef_")
        X, y = inputs.checked_pair(self, X, y, reset=first)
        design, mean = self._design(X, y, sample_weight, offset)
        model, seen = self._model(), getattr(self, "_seen", None)
        found = Moments.of(design)
        moments, before = (found, 0) if seen is None else (seen[0].joined(found), seen[1])
        if first:
            coef = np.zeros(design.columns)
            if design.intercept:
                coef[-1] = constant(design, model.link, mean)
        else:
            coef = np.concatenate([self.coef_, [self.intercept_] if design.intercept else []])
        coef = one_epoch(design, model, 1, coef, moments, float(self.alpha), before)
        if not np.isfinite(coef).all():
            raise ValueError("Input X or y contains NaN or infinity; remove or fill these rows first")
        self._seen = moments, before + 1
        self.statistics_ = None
        self._keep(design, Solution(coef, before + 1, True, float("nan")))

    def _check_parameters(self) -> None:
        alpha = self.alpha
        if not (isinstance(alpha, int | float | np.number) and alpha >= 0 and np.isfinite(alpha)):
            raise ValueError(f"alpha must be a finite number of at least 0; got {alpha!r}")
        if self.max_iter < 1:
            raise ValueError(f"max_iter must be at least 1; got {self.max_iter}")
        if not self.tol > 0:
            raise ValueError(f"tol must be positive; got {self.tol}")

    def _design(self, X: Any, y: Any, sample_weight: Any, offset: Any) -> tuple[Design, float]:
        """The data, checked; and the mean of y."""
        count = X.shape[0]
        weight = inputs.weights(sample_weight, X, count)
        self._check_range(y)
        rows = inputs.rows(X)
        layout = rows.layout
        along = [
            None if each is None else column(each, layout) for each in (weight, inputs.offsets(offset, count))
        ]
        design = Design(rows, column(y, layout), along[0], along[1], bool(self.fit_intercept))
        design.stored = inputs.stored(X, layout)
        total = count if weight is None else inputs.summed(weight)
        if not total > 0:
            raise ValueError("all weights of rows are 0; at least one row must count")
        return design, inputs.summed(y, weight) / total

    def _check_range(self, y: Any) -> None:
        model = self._model()
        family = FAMILIES[model.family]
        if np.isinf(family.lowest) and np.isinf(family.highest):
            return
        low, high = extremes(y)
        opened = family.open_below or (model.family == "tweedie" and model.parameter >= 2)
        if low < family.lowest or (opened and low == family.lowest) or high > family.highest:
            least = f"above {family.lowest:g}" if opened else f"at least {family.lowest:g}"
            most = "" if np.isinf(family.highest) else f" and at most {family.highest:g}"
            raise ValueError(
                f"Some value(s) of y are out of the valid range of the {model.family} family: they lie "
                f"between "
                f"{low:g} and {high:g}, and must be {least}{most}"
            )

    def _request(self) -> Request:
        warm = None
        if getattr(self, "warm_start", False) and hasattr(self, "coef_"):
            ends = [self.intercept_] if self.fit_intercept else []
            warm = np.concatenate([self.coef_, ends])
        return Request(
            self.solver,
            self.tol,
            self.max_iter,
            ridge=float(self.alpha),
            per_weight=True,
            verbose=int(self.verbose),
            label=type(self).__name__,
            warm=warm,
            **held_out(self),
        )

    def _fit(self, design: Design, mean: float) -> None:
        model = self._model()
        found = fit_rows(design, model, mean, self._request())
        self._tell(found)
        self._keep(design, found)
        self.statistics_ = None
        if not self.alpha and design.columns <= 2048 and self.solver != "sgd":
            self.statistics_ = statistics_of(self, design, model, found.coef, mean)

    def _tell(self, found: Solution) -> None:
        name = type(self).__name__
        if found.singular and not self.alpha:
            warn_of_rank(name, 5)
        warn_of_end(found, name, self.max_iter)

    def _keep(self, design: Design, found: Solution) -> None:
        coef = as_given(design, found.coef)
        columns = design.x.shape[1]
        self.coef_ = coef[:columns].copy()
        self.intercept_ = float(coef[columns]) if design.intercept else 0.0
        self.n_iter_ = max(1, found.iterations)
        self.objective_history_: list[float] = found.history

    def _eta(self, X: Any, offset: Any = None) -> Any:
        check_is_fitted(self)
        eta, _ = inputs.predictor(self, X, self.coef_, self.intercept_)
        return eta if offset is None else eta + inputs.offsets(offset, eta.shape[0])

    def predict(self, X: Any, offset: Any = None) -> Any:
        """The mean of y for each row; lazy for a lazy table.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
        offset : column of length n_samples, optional
            As in `fit`.

        Returns
        -------
        column of length n_samples
        """
        return mean_of(self._eta(X, offset), self._model().link)

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """The share of the deviance that is explained: 1 - deviance / deviance of the mean.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
        y : column of length n_samples
        sample_weight, offset : columns of length n_samples, optional

        Returns
        -------
        float
        """
        check_is_fitted(self)
        X = inputs.checked(self, X, reset=False)
        y = y if inputs.lazy(y) else np.asarray(y, np.float64)
        self._check_range(y)
        design, mean = self._design(X, y, sample_weight, offset)
        model = self._model()
        ends = [self.intercept_] if design.intercept else []
        reached = design.statistics(model, np.concatenate([self.coef_, ends]))[0]
        constant = null_deviance(Design(design.x, design.y, design.weight, None), model, mean)
        return 1 - float(reached) / constant if constant else float("nan")

    def summary(self) -> Statistics:
        """Coefficients with standard errors, tests and bounds, deviance and information criteria; print it.

        Returns
        -------
        Statistics
            Its text is a table; its attributes have the numbers.
        """
        check_is_fitted(self)
        if self.statistics_ is None:
            raise ValueError(
                f"{type(self).__name__} was fitted with a penalty, and coefficients that are shrunk have "
                f"no standard "
                "errors of this kind; fit with alpha=0 for a summary"
            )
        return self.statistics_

    def iteration(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> Any:
        """One iteration of the fit as a lazy array, to be planned: `ln.plan(model.iteration(X, y))`.

        Parameters
        ----------
        X, y, sample_weight, offset
            As in `fit`.

        Returns
        -------
        ln.Array
            Loss, weight, gradient and Hessian in one line of numbers.
        """
        X, y = inputs.checked_pair(self, X, y)
        design, _ = self._design(X, y, sample_weight, offset)
        return wrap(Rows(design, self._model()).expression(np.zeros(design.columns)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        with contextlib.suppress(
            ValueError, AttributeError
        ):  # parameters that mean nothing are told by `fit`
            tags.target_tags.positive_only = FAMILIES[self._model().family].lowest == 0.0
        return tags
