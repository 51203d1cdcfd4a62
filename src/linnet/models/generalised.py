"""Generalised linear models: Poisson, gamma, Tweedie, and any family with any link.

Objectives are scikit-learn's: the mean of half the unit deviances over (weighted) rows, plus
`alpha / 2` times the squares of the coefficients without the intercept.
"""

from __future__ import annotations

from typing import Any

from linnet.kernels.models.families import FAMILIES, LINKS
from linnet.models.design import Model
from linnet.models.glm_base import GLMBase


class _Penalised(GLMBase):
    """With scikit-learn's parameters."""

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        fit_intercept: bool = True,
        solver: str = "auto",
        max_iter: int = 100,
        tol: float = 1e-6,
        warm_start: bool = False,
        verbose: int = 0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.verbose = verbose
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> Any:
        """Learn from one more batch of rows: an epoch of stochastic gradient descent over it.

        Parameters
        ----------
        X, y, sample_weight, offset
            As in `fit`.

        Returns
        -------
        self
        """
        self._learn(X, y, sample_weight, offset)
        return self


class PoissonRegressor(_Penalised):
    """Counts: a Poisson family with a logarithmic link.

    Parameters
    ----------
    alpha : float
        The l2 penalty, as scikit-learn means it; 0 gives standard errors too.
    fit_intercept : bool
    solver : {"auto", "newton", "irls", "lbfgs", "sgd"}
        "sgd" comes near the minimum, in epochs over the rows; the others reach it.
    max_iter : int
    tol : float
        How far coefficients may be off, relative to the larger of 1 and themselves.
    warm_start : bool
        Whether `fit` begins where the last one ended.
    verbose : int
        1 prints a line for each iteration.
    early_stopping : bool
        Whether "sgd" holds rows out, and ends when these are no longer predicted better.
    validation_fraction : float
        The share of rows that are held out.
    random_state : int, RandomState or None
        Of "sgd".

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[0.0], [1.0], [2.0]])
    >>> model = PoissonRegressor(alpha=0).fit(x, [1, 2, 4])
    >>> bool(np.isclose(model.coef_[0], np.log(2)))
    True
    """

    def _model(self) -> Model:
        return Model("poisson", "log")


class GammaRegressor(_Penalised):
    """Positive amounts: a gamma family with a logarithmic link.

    Parameters
    ----------
    alpha, fit_intercept, solver, max_iter, tol, warm_start, verbose and others
        As for `PoissonRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> model = GammaRegressor(alpha=0).fit(np.array([[0.0], [1.0], [2.0]]), [1.0, 2.0, 4.0])
    >>> bool(np.isclose(model.coef_[0], np.log(2)))
    True
    """

    def _model(self) -> Model:
        return Model("gamma", "log")


class TweedieRegressor(_Penalised):
    """Tweedie's family: variance in proportion to a power of the mean.

    Parameters
    ----------
    power : float
        0: normal, 1: Poisson, between 1 and 2: Poisson sums of gamma amounts, 2: gamma, 3: inverse Gaussian.
    alpha, fit_intercept, solver, max_iter, tol, warm_start, verbose and others
        As for `PoissonRegressor`.
    link : {"auto", "identity", "log"}
        "auto" is the identity for `power <= 0`, otherwise the logarithm.

    Examples
    --------
    >>> import numpy as np
    >>> model = TweedieRegressor(power=1.5, alpha=0).fit(np.array([[0.0], [1.0], [2.0]]), [1.0, 2.0, 4.0])
    >>> bool(np.isclose(model.coef_[0], np.log(2)))
    True
    """

    def __init__(
        self,
        *,
        power: float = 0.0,
        alpha: float = 1.0,
        fit_intercept: bool = True,
        link: str = "auto",
        solver: str = "auto",
        max_iter: int = 100,
        tol: float = 1e-6,
        warm_start: bool = False,
        verbose: int = 0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            alpha=alpha,
            fit_intercept=fit_intercept,
            solver=solver,
            max_iter=max_iter,
            tol=tol,
            warm_start=warm_start,
            verbose=verbose,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            random_state=random_state,
        )
        self.link = link
        self.power = power

    def _model(self) -> Model:
        if self.link not in ("auto", "identity", "log"):
            raise ValueError(f"link must be 'auto', 'identity' or 'log'; got {self.link!r}")
        if 0 < self.power < 1:
            raise ValueError(
                f"no distribution has a variance of mu**{self.power}; power must not lie between 0 and 1"
            )
        link = self.link if self.link != "auto" else "identity" if self.power <= 0 else "log"
        if self.power == 0:
            return Model("gaussian", link)
        return Model("tweedie", link, float(self.power))


class GeneralizedLinearModel(_Penalised):
    """Any family with any link, with standard errors, deviance and a summary.

    Parameters
    ----------
    family : {"gaussian", "binomial", "poisson", "gamma", "inverse_gaussian", "tweedie", "negative_binomial"}
    link : str, optional
        "identity", "log", "logit", "probit", "cloglog", "cauchit", "inverse", "inverse_squared", "sqrt";
        without
        one, the usual link of the family.
    parameter : float
        Of Tweedie's family the power of the variance, of the negative binomial the dispersion alpha.
    alpha : float
        The l2 penalty; with one there are no standard errors.
    fit_intercept, solver, max_iter, tol, warm_start, verbose and others
        As for `PoissonRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> model = GeneralizedLinearModel("binomial", "probit").fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])
    >>> model.summary().names
    ('x0', 'intercept')
    """

    def __init__(
        self,
        family: str = "gaussian",
        link: str | None = None,
        *,
        parameter: float = 0.0,
        alpha: float = 0.0,
        fit_intercept: bool = True,
        solver: str = "auto",
        max_iter: int = 100,
        tol: float = 1e-8,
        warm_start: bool = False,
        verbose: int = 0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            alpha=alpha,
            fit_intercept=fit_intercept,
            solver=solver,
            max_iter=max_iter,
            tol=tol,
            warm_start=warm_start,
            verbose=verbose,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            random_state=random_state,
        )
        self.family = family
        self.link = link
        self.parameter = parameter

    def _model(self) -> Model:
        if self.family not in FAMILIES:
            raise ValueError(f"there is no family {self.family!r}; use one of {', '.join(FAMILIES)}")
        link = FAMILIES[self.family].link if self.link is None else self.link
        if link not in LINKS:
            raise ValueError(f"there is no link {link!r}; use one of {', '.join(LINKS)}")
        return Model(self.family, link, float(self.parameter))
