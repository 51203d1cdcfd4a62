"""Families and links of generalised linear models, row by row.

A model says that the mean of `y` is `mu = g⁻¹(eta)`, where `eta = x·w + offset`, and that its variance is in
proportion to `V(mu)`. The loss of a row is half its deviance, but for terms that do not depend on `eta`:

    dl/deta    = -(y - mu)·m1 / V                       m1, m2: derivatives of mu by eta
    expected   = m1² / V                                the Fisher information of a row
    observed   = expected + (y - mu)·(m1²·V'/V² - m2/V)

The usual pairs of family and link have formulas of their own, that neither overflow nor lose digits; all
others take these. References: McCullagh and Nelder, "Generalized Linear Models" (1989), chapter 2;
Jørgensen, "The Theory of Dispersion Models" (1997), chapter 4, for Tweedie's family.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

Vector = NDArray[Any]
_ROOT_TWO_PI = float(np.sqrt(2 * np.pi))


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """How the mean follows from the linear predictor."""

    forward: Callable[[Vector], Vector]
    """From the mean to the predictor."""
    inverse: Callable[[Vector], Vector]
    """From the predictor to the mean."""
    first: Callable[[Vector, Vector], Vector]
    """The derivative of the mean, from predictor and mean."""
    second: Callable[[Vector, Vector], Vector]
    """The second derivative."""


def _normal(x: Vector) -> Vector:
    return np.exp(-0.5 * x * x) / _ROOT_TWO_PI


LINKS: dict[str, Link] = {
    "identity": Link(
        lambda mu: mu + 0.0,
        lambda eta: eta + 0.0,
        lambda eta, mu: np.ones_like(eta),
        lambda eta, mu: np.zeros_like(eta),
    ),
    "log": Link(np.log, np.exp, lambda eta, mu: mu, lambda eta, mu: mu),
    "logit": Link(
        special.logit,
        special.expit,
        lambda eta, mu: mu * special.expit(-eta),
        lambda eta, mu: mu * special.expit(-eta) * (special.expit(-eta) - mu),
    ),
    "probit": Link(
        special.ndtri,
        special.ndtr,
        lambda eta, mu: _normal(eta),
        lambda eta, mu: -eta * _normal(eta),
    ),
    "cloglog": Link(
        lambda mu: np.log(-np.log1p(-mu)),
        lambda eta: -np.expm1(-np.exp(eta)),
        lambda eta, mu: np.exp(eta - np.exp(eta)),
        lambda eta, mu: np.exp(eta - np.exp(eta)) * (1 - np.exp(eta)),
    ),
    "cauchit": Link(
        lambda mu: np.tan(np.pi * (mu - 0.5)),
        lambda eta: 0.5 + np.arctan(eta) / np.pi,
        lambda eta, mu: 1 / (np.pi * (1 + eta * eta)),
        lambda eta, mu: -2 * eta / (np.pi * (1 + eta * eta) ** 2),
    ),
    "inverse": Link(
        lambda mu: 1 / mu,
        lambda eta: 1 / eta,
        lambda eta, mu: -mu * mu,
        lambda eta, mu: 2 * mu**3,
    ),
    "inverse_squared": Link(
        lambda mu: mu**-2.0,
        lambda eta: eta**-0.5,
        lambda eta, mu: -0.5 * mu**3,
        lambda eta, mu: 0.75 * mu**5,
    ),
    "sqrt": Link(
        np.sqrt,
        lambda eta: eta * eta,
        lambda eta, mu: 2 * eta,
        lambda eta, mu: np.full_like(eta, 2.0),
    ),
}
"""The links known by name."""


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """A distribution: what its variance is, how far `y` is from a mean, which values `y` may have."""

    variance: Callable[[Vector, float], Vector]
    """V(mu); the second argument is the family's parameter, here and below."""
    slope: Callable[[Vector, float], Vector]
    """V'(mu)."""
    half_deviance: Callable[[Vector, Vector, float], Vector]
    """From y and mu."""
    link: str
    """The usual link."""
    lowest: float
    """The lowest `y` there may be."""
    open_below: bool = False
    """Whether the lowest itself is not allowed."""
    highest: float = np.inf
    mean_above: float = -np.inf
    """Means lie above this, and below `mean_below`."""
    mean_below: float = np.inf
    fixed_scale: bool = False
    """Whether the dispersion is 1 by definition, not estimated."""


def _deviance_of_tweedie(y: Vector, mu: Vector, p: float) -> Vector:
    if p == 0:
        return 0.5 * (y - mu) ** 2
    if p == 1:
        return _deviance_of_poisson(y, mu, p)
    if p == 2:
        return _deviance_of_gamma(y, mu, p)
    own = np.maximum(y, 0) ** (2 - p) / ((1 - p) * (2 - p))
    return own - y * mu ** (1 - p) / (1 - p) + mu ** (2 - p) / (2 - p)


def _deviance_of_poisson(y: Vector, mu: Vector, _: float) -> Vector:
    return special.xlogy(y, y / mu) - y + mu


def _deviance_of_gamma(y: Vector, mu: Vector, _: float) -> Vector:
    return (y - mu) / mu - np.log(y / mu)


def _deviance_of_binomial(y: Vector, mu: Vector, _: float) -> Vector:
    return special.xlogy(y, y / mu) + special.xlogy(1 - y, (1 - y) / (1 - mu))


def _deviance_of_negative_binomial(y: Vector, mu: Vector, alpha: float) -> Vector:
    if alpha == 0:
        return _deviance_of_poisson(y, mu, alpha)
    return special.xlogy(y, y / mu) - (y + 1 / alpha) * (np.log1p(alpha * y) - np.log1p(alpha * mu))


FAMILIES: dict[str, Family] = {
    "gaussian": Family(
        lambda mu, _: np.ones_like(mu),
        lambda mu, _: np.zeros_like(mu),
        lambda y, mu, _: 0.5 * (y - mu) ** 2,
        "identity",
        -np.inf,
    ),
    "binomial": Family(
        lambda mu, _: mu * (1 - mu),
        lambda mu, _: 1 - 2 * mu,
        _deviance_of_binomial,
        "logit",
        0.0,
        highest=1.0,
        mean_above=0.0,
        mean_below=1.0,
        fixed_scale=True,
    ),
    "poisson": Family(
        lambda mu, _: mu,
        lambda mu, _: np.ones_like(mu),
        _deviance_of_poisson,
        "log",
        0.0,
        mean_above=0.0,
        fixed_scale=True,
    ),
    "gamma": Family(
        lambda mu, _: mu * mu,
        lambda mu, _: 2 * mu,
        _deviance_of_gamma,
        "log",
        0.0,
        open_below=True,
        mean_above=0.0,
    ),
    "inverse_gaussian": Family(
        lambda mu, _: mu**3,
        lambda mu, _: 3 * mu * mu,
        lambda y, mu, _: 0.5 * (y - mu) ** 2 / (mu * mu * y),
        "log",
        0.0,
        open_below=True,
        mean_above=0.0,
    ),
    "tweedie": Family(
        lambda mu, p: mu**p,
        lambda mu, p: p * mu ** (p - 1),
        _deviance_of_tweedie,
        "log",
        0.0,
        mean_above=0.0,
    ),
    "negative_binomial": Family(
        lambda mu, alpha: mu + alpha * mu * mu,
        lambda mu, alpha: 1 + 2 * alpha * mu,
        _deviance_of_negative_binomial,
        "log",
        0.0,
        mean_above=0.0,
        fixed_scale=True,
    ),
}
"""The families known by name. Tweedie's parameter is the power of its variance, the negative binomial's the
dispersion alpha of `V = mu + alpha·mu²`."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """What a pass needs of each row."""

    loss: Vector
    gradient: Vector
    """The derivative of the loss by the predictor."""
    curvature: Vector | None
    """The second derivative, observed or expected; None if nobody asked."""


def rows(
    family: str, link: str, parameter: float, eta: Vector, y: Vector, curvature: str = "observed"
) -> Rows:
    """Loss and derivatives of rows; `curvature` is "observed", "expected" or "none".

    >>> found = rows("binomial", "logit", 0.0, np.array([0.0]), np.array([1.0]))
    >>> float(found.loss[0]), float(found.gradient[0]), float(found.curvature[0])
    (0.6931471805599453, -0.5, 0.25)
    """
    special_case = _PAIRS.get((family, link))
    if special_case is not None:
        return special_case(parameter, eta, y, curvature)
    known, mean = FAMILIES[family], LINKS[link]
    mu = mean.inverse(eta)
    m1 = mean.first(eta, mu)
    v = known.variance(mu, parameter)
    loss = known.half_deviance(y, mu, parameter)
    outside = (mu <= known.mean_above) | (mu >= known.mean_below)
    loss = np.where(outside | np.isnan(loss), np.inf, loss)  # a step that leads there is too long
    away = (y - mu) / v
    expected = m1 * m1 / v
    if curvature == "observed":
        expected = expected + away * (m1 * m1 * known.slope(mu, parameter) / v - mean.second(eta, mu))
    return Rows(loss, -away * m1, None if curvature == "none" else expected)


def _binomial_logit(_: float, eta: Vector, y: Vector, curvature: str) -> Rows:
    small = np.exp(-np.abs(eta))
    grown = 1 + small
    loss = np.log1p(small) + np.maximum(eta, 0) - y * eta
    mu = np.where(eta >= 0, 1.0, small) / grown
    return Rows(loss, mu - y, None if curvature == "none" else small / (grown * grown))


def _poisson_log(_: float, eta: Vector, y: Vector, curvature: str) -> Rows:
    mu = np.exp(eta)
    return Rows(mu - y * eta, mu - y, None if curvature == "none" else mu)


def _gamma_log(_: float, eta: Vector, y: Vector, curvature: str) -> Rows:
    share = y * np.exp(-eta)
    weight = None if curvature == "none" else share if curvature == "observed" else np.ones_like(eta)
    return Rows(eta + share, 1 - share, weight)


def _gaussian_identity(_: float, eta: Vector, y: Vector, curvature: str) -> Rows:
    away = eta - y
    return Rows(0.5 * away * away, away, None if curvature == "none" else np.ones_like(eta))


def _tweedie_log(p: float, eta: Vector, y: Vector, curvature: str) -> Rows:
    if p in (1.0, 2.0):
        return (_poisson_log if p == 1 else _gamma_log)(p, eta, y, curvature)
    if p == 0:
        mu = np.exp(eta)
        expected = mu * mu
        weight = expected if curvature == "expected" else expected + (mu - y) * mu
        return Rows(0.5 * (y - mu) ** 2, (mu - y) * mu, None if curvature == "none" else weight)
    of_y, of_mu = y * np.exp((1 - p) * eta), np.exp((2 - p) * eta)
    weight = None
    if curvature != "none":
        weight = of_mu if curvature == "expected" else (p - 1) * of_y + (2 - p) * of_mu
    return Rows(of_mu / (2 - p) - of_y / (1 - p), of_mu - of_y, weight)


def _negative_binomial_log(alpha: float, eta: Vector, y: Vector, curvature: str) -> Rows:
    if alpha == 0:
        return _poisson_log(alpha, eta, y, curvature)
    mu = np.exp(eta)
    grown = 1 + alpha * mu
    loss = (y + 1 / alpha) * np.log1p(alpha * mu) - y * eta
    weight = None
    if curvature != "none":
        weight = mu / grown if curvature == "expected" else mu * (1 + alpha * y) / (grown * grown)
    return Rows(loss, (mu - y) / grown, weight)


_PAIRS: dict[tuple[str, str], Callable[[float, Vector, Vector, str], Rows]] = {
    ("binomial", "logit"): _binomial_logit,
    ("poisson", "log"): _poisson_log,
    ("gamma", "log"): _gamma_log,
    ("gaussian", "identity"): _gaussian_identity,
    ("tweedie", "log"): _tweedie_log,
    ("negative_binomial", "log"): _negative_binomial_log,
}


def log_likelihood(family: str, parameter: float, scale: float, y: Vector, mu: Vector, w: Vector) -> float:
    """The log-likelihood of rows with weights `w` (of frequency), as statsmodels counts it.

    >>> round(log_likelihood("poisson", 0.0, 1.0, np.array([2.0]), np.array([2.0]), np.ones(1)), 6)
    -1.306853
    """
    if family == "gaussian":
        each = -0.5 * ((y - mu) ** 2 / scale + np.log(2 * np.pi * scale))
    elif family == "binomial":
        each = special.xlogy(y, mu) + special.xlogy(1 - y, 1 - mu)
    elif family == "poisson":
        each = special.xlogy(y, mu) - mu - special.gammaln(y + 1)
    elif family == "gamma":
        shape = 1 / scale
        each = shape * np.log(shape * y / mu) - shape * y / mu - np.log(y) - special.gammaln(shape)
    elif family == "inverse_gaussian":
        each = -0.5 * ((y - mu) ** 2 / (scale * y * mu * mu) + np.log(scale * y**3) + np.log(2 * np.pi))
    elif family == "negative_binomial" and parameter > 0:
        a = 1 / parameter
        each = special.gammaln(y + a) - special.gammaln(a) - special.gammaln(y + 1)
        each = each + special.xlogy(y, parameter * mu) - (y + a) * np.log1p(parameter * mu)
    elif family == "negative_binomial":
        return log_likelihood("poisson", 0.0, 1.0, y, mu, w)
    else:  # the density of Tweedie's family has no closed form
        return float("nan")
    return float(w @ each)
