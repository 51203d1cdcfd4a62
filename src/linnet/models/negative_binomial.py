"""Negative binomial regression, whose dispersion is estimated together with the coefficients."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if

from linnet.models.design import Design, Dispersion, Model, Vector
from linnet.models.fitting import (
    as_given,
    covariance_as_given,
    fit_rows,
)
from linnet.models.glm_base import GLMBase
from linnet.models.solvers import Progress, Solution, check_finite, newton
from linnet.models.statistics import (
    Statistics,
    coefficient_names,
    inverse_information,
    null_deviance,
    statistics_of,
)


def _dispersion_given(model: Any) -> bool:
    if model.dispersion == "estimate":
        raise AttributeError(
            "partial_fit cannot estimate the dispersion, which all rows together tell; give "
            "dispersion=<number>, or fit all rows at once (they may be a file, or any lazy array)"
        )
    return True


class NegativeBinomialRegressor(GLMBase):
    """Counts that vary more than Poisson's: variance `mu + alpha·mu²` (NB2), logarithmic link, no penalty.

    Parameters
    ----------
    dispersion : "estimate" or float
        The alpha of the variance; estimated together with the coefficients, as statsmodels does, or given.
    fit_intercept : bool
    max_iter : int
    tol : float
    verbose : int

    Attributes
    ----------
    dispersion_ : float
        The alpha that was estimated or given.
    dispersion_standard_error_ : float
        Of the estimate; NaN where it was given.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(8.0).reshape(-1, 1)
    >>> model = NegativeBinomialRegressor().fit(x, [0, 3, 1, 9, 2, 14, 30, 4])
    >>> model.dispersion_ > 0
    True
    """

    alpha = 0.0
    solver = "auto"

    def __init__(
        self,
        dispersion: Any = "estimate",
        *,
        fit_intercept: bool = True,
        max_iter: int = 100,
        tol: float = 1e-8,
        verbose: int = 0,
    ) -> None:
        self.dispersion = dispersion
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose

    def _model(self) -> Model:
        if hasattr(self, "dispersion_"):
            return Model("negative_binomial", "log", float(self.dispersion_))
        given = 0.0 if self.dispersion == "estimate" else float(self.dispersion)
        return Model("negative_binomial", "log", given)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        given = self.dispersion
        if given != "estimate" and not (isinstance(given, int | float | np.number) and given >= 0):
            raise ValueError(f"dispersion must be 'estimate' or a number of at least 0; got {given!r}")
        if hasattr(self, "dispersion_"):
            del self.dispersion_

    @available_if(_dispersion_given)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> Any:
        """Learn from one more batch of rows, with a dispersion that was given: an epoch of stochastic steps.

        Parameters
        ----------
        X, y, sample_weight, offset
            As in `fit`.

        Returns
        -------
        self
        """
        self._learn(X, y, sample_weight, offset)
        self.dispersion_ = float(self.dispersion)
        self.dispersion_standard_error_ = float("nan")
        return self

    def _fit(self, design: Design, mean: float) -> None:
        given = self.dispersion
        start = (
            Model("poisson", "log")
            if given == "estimate"
            else Model("negative_binomial", "log", float(given))
        )
        found = fit_rows(design, start, mean, self._request())
        self.dispersion_standard_error_ = float("nan")
        if given != "estimate":
            self.dispersion_ = float(given)
            self._tell(found)
            self._keep(design, found)
            self.statistics_ = statistics_of(self, design, self._model(), found.coef, mean)
            return
        self._estimate(design, found, mean)

    def _estimate(self, design: Design, poisson: Solution, mean: float) -> None:
        """Newton's method on coefficients and dispersion together."""
        loss = Dispersion(design)
        chi2, weight = design.statistics(Model("poisson", "log"), poisson.coef)[[1, 3]]
        over = chi2 / max(weight - design.columns, 1.0) - 1
        guess = np.clip(over / max(mean, 1e-3), 1e-3, 1e3)
        coef = np.append(poisson.coef, guess)
        progress = Progress(self.verbose, self.max_iter, type(self).__name__)
        first = loss.evaluate(coef)
        check_finite(first, type(self).__name__)
        nothing = np.zeros(loss.size)
        found = newton(
            loss, coef, nothing, tol=self.tol, max_iter=self.max_iter, first=first, progress=progress
        )
        self.dispersion_ = float(found.coef[-1])
        if self.dispersion_ < 1e-5:
            warnings.warn(
                "the counts vary no more than Poisson's, so the dispersion is 0; this is the fit of "
                "PoissonRegressor",
                ConvergenceWarning,
                stacklevel=5,
            )
            self.dispersion_: float = 0.0
            self._keep(design, poisson)
            self.statistics_ = statistics_of(self, design, self._model(), poisson.coef, mean)
            return
        self._tell(found)
        self._keep(design, found)
        self._keep_statistics(design, loss, found.coef, mean)

    def _keep_statistics(self, design: Design, loss: Dispersion, coef: Vector, mean: float) -> None:
        """Standard errors come from the observed information of all coefficients, as statsmodels has it."""
        information = loss.evaluate(coef).hessian
        assert information is not None
        covariance = covariance_as_given(design, inverse_information(information))
        model = self._model()
        deviance, chi2, likelihood, weight = design.statistics(model, coef)
        self.dispersion_standard_error_: float = float(np.sqrt(max(covariance[-1, -1], 0)))
        names = coefficient_names(self, design.x.shape[1], design.intercept)
        self.statistics_ = Statistics(
            (*names, "dispersion"),
            np.append(as_given(design, coef[:-1]), coef[-1]),
            covariance,
            float(deviance),
            null_deviance(design, model, mean),
            float(chi2),
            1.0,
            float(likelihood),
            float(weight),
            float(weight - design.columns),
            f"{type(self).__name__}: dispersion estimated, log link",
        )

    def _keep(self, design: Design, found: Solution) -> None:
        if len(found.coef) > design.columns:
            found = Solution(found.coef[:-1], found.iterations, found.converged, found.objective)
        super()._keep(design, found)

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """The share of the deviance that is explained; see `GeneralizedLinearModel.score`.

        Parameters
        ----------
        X, y, sample_weight, offset
            As in `fit`.

        Returns
        -------
        float
        """
        return super().score(X, y, sample_weight, offset)
