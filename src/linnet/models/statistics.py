"""What a fit tells besides coefficients: deviance, standard errors, tests, and a summary in text.

Numbers are those of statsmodels: sample weights count rows (frequencies), the scale is Pearson's chi-square
over the degrees of freedom that are left (1 for binomial, Poisson and negative binomial models), standard
errors come from the expected information.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, stats

from linnet.arrays.expression.builders import filled, recut
from linnet.kernels.models.families import FAMILIES
from linnet.models.design import Design, Model, Rows, Vector
from linnet.models.fitting import Request, as_given, constant, covariance_as_given, fit_rows
from linnet.tiles import Layout


@dataclass(frozen=True, slots=True, eq=False)
class Statistics:
    """Statistics of a fit without a penalty."""

    names: tuple[str, ...]
    """Of the coefficients, the intercept last."""
    coef: Vector
    covariance: Vector
    """Of the coefficients."""
    deviance: float
    null_deviance: float
    """Of the model that has an intercept alone."""
    pearson_chi2: float
    scale: float
    log_likelihood: float
    rows: float
    """The weight of all rows."""
    residual_degrees: float
    model: str
    """What was fitted, in words."""
    student: bool = False
    """Whether tests are Student's, as in ordinary least squares."""

    @property
    def standard_errors(self) -> Vector:
        """The square roots of the variances of coefficients."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0))

    @property
    def z(self) -> Vector:
        """Coefficients over their standard errors."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.coef / self.standard_errors

    @property
    def p_values(self) -> Vector:
        """How likely coefficients at least as far from 0 are, were they 0."""
        if self.student:
            return np.asarray(2 * stats.t.sf(np.abs(self.z), self.residual_degrees))
        return np.asarray(2 * stats.norm.sf(np.abs(self.z)))

    def confidence(self, level: float = 0.95) -> Vector:
        """Lower and upper bound of each coefficient."""
        tail = (1 - level) / 2
        wide = stats.t.isf(tail, self.residual_degrees) if self.student else stats.norm.isf(tail)
        return self.coef[:, None] + np.array([-wide, wide]) * self.standard_errors[:, None]

    @property
    def aic(self) -> float:
        """Akaike's criterion."""
        return -2 * self.log_likelihood + 2 * len(self.coef)

    @property
    def bic(self) -> float:
        """The Bayesian criterion, from the log-likelihood."""
        return -2 * self.log_likelihood + len(self.coef) * math.log(self.rows)

    def __str__(self) -> str:
        head = [
            self.model,
            f"rows {self.rows:g}   residual degrees of freedom {self.residual_degrees:g}   scale "
            f"{self.scale:.6g}",
            f"deviance {self.deviance:.8g}   null deviance {self.null_deviance:.8g}   "
            f"Pearson chi2 {self.pearson_chi2:.8g}",
            f"log-likelihood {self.log_likelihood:.8g}   AIC {self.aic:.8g}   BIC {self.bic:.8g}",
        ]
        width = max(9, *(len(name) for name in self.names))
        letter = "t" if self.student else "z"
        tail = f"P>|{letter}|"
        title = (
            f"{'':{width}}  {'coef':>12} {'std err':>12} {letter:>10} {tail:>8} {'[0.025':>12} {'0.975]':>12}"
        )
        rule = "-" * len(title)
        bounds = self.confidence()
        body = [
            f"{name:{width}}  {c:12.6g} {e:12.6g} {z:10.4g} {p:8.3f} {low:12.6g} {high:12.6g}"
            for name, c, e, z, p, (low, high) in zip(
                self.names, self.coef, self.standard_errors, self.z, self.p_values, bounds, strict=True
            )
        ]
        return "\n".join([*head, rule, title, rule, *body, rule])

    __repr__ = __str__


def coefficient_names(estimator: Any, columns: int, intercept: bool) -> tuple[str, ...]:
    """Names of the columns, or x0, x1, ...; and that of the intercept."""
    known = getattr(estimator, "feature_names_in_", None)
    names = [f"x{k}" for k in range(columns)] if known is None else [str(each) for each in known]
    return (*names, "intercept") if intercept else tuple(names)


def inverse_information(information: Vector) -> Vector:
    """The inverse of an information matrix; the pseudo-inverse where columns depend on others."""
    diagonal = np.diag(information)
    scale = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    inner = linalg.pinvh(information * scale[:, None] * scale)
    return inner * scale[:, None] * scale


def rank_of(information: Vector) -> int:
    """How many coefficients the data determine."""
    diagonal = np.diag(information)
    scale = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    values = linalg.eigvalsh(information * scale[:, None] * scale)
    return int((values > 1e-11 * len(values) * values[-1]).sum())


def statistics_of(
    estimator: Any,
    design: Design,
    model: Model,
    coef: Vector,
    mean: float,
    *,
    student: bool = False,
    scale_by: str = "pearson",
) -> Statistics:
    """The statistics of coefficients as the solver has them (of columns with means taken off)."""
    found = Rows(design, model).evaluate(coef, "expected")
    assert found.hessian is not None
    deviance, chi2, likelihood, weight = design.statistics(model, coef)
    left = weight - rank_of(found.hessian)
    family = FAMILIES[model.family]
    scale = 1.0 if family.fixed_scale else (chi2 / left if left > 0 else float("nan"))
    if not family.fixed_scale and model.family in ("gaussian", "gamma", "inverse_gaussian"):
        # Least squares: the likelihood is that of the scale that makes it largest.
        at = chi2 / weight if (model.family, model.link) == ("gaussian", "identity") else scale
        likelihood = (
            float(design.statistics(model, coef, at)[2]) if np.isfinite(at) and at > 0 else float("nan")
        )
    covariance = covariance_as_given(design, inverse_information(found.hessian)) * scale
    return Statistics(
        coefficient_names(estimator, design.x.shape[1], design.intercept),
        as_given(design, coef),
        covariance,
        float(deviance),
        null_deviance(design, model, mean),
        float(chi2),
        float(scale),
        float(likelihood),
        float(weight),
        float(left),
        f"{type(estimator).__name__}: {model.family} family, {model.link} link",
        student,
    )


def null_deviance(design: Design, model: Model, mean: float) -> float:
    """The deviance of the model that has an intercept alone."""
    count = design.x.shape[0]
    ones = filled((count, 1), 1.0, np.float64)
    layout = Layout((design.x.layout.boundaries[0], (0, 1)))
    alone = Design(recut(ones, layout), design.y, design.weight, design.offset, intercept=False)
    start = np.array([constant(design, model.link, mean)])
    if design.offset is None:
        return float(alone.statistics(model, start)[0])
    request = Request("irls", 1e-10, 100, label="null model", warm=start)
    return float(alone.statistics(model, fit_rows(alone, model, mean, request).coef)[0])
