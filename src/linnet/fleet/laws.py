"""Laws of how long a server lives, none of which knows of a cap.

A law is a few numbers and three functions of age in hours: the logarithm of the survival S, the logarithm of
the hazard, and the integral of S. Everything a model answers is made of these. Logarithms, because what is
left of S late in a server's life may be far below what 1 − F could hold.

- exponential: hazard λ
- weibull: hazard (k/λ)(t/λ)^(k−1)
- gompertz-makeham: hazard c + a·e^(bt), b of either sign
- lomax: hazard α/(λ+t) + c: early losses that fade, and a constant
- hyperexponential2, hyperexponential3: S = Σ wᵢ·e^(−rᵢt): servers of two, or three, kinds
- scispot: F(t) = A(1 − e^(−t/τ₁) + e^((t−b)/τ₂)) of the SciSpot paper, less F(0), made a distribution: it
  ends where F reaches 1, and under a cap what is left of S is an atom there

The published F starts above 0, and goes above 1; fits of it leave b free to run to −∞, where the second term
is a straight line. Here F(0) is taken off and b, the time at which the second process begins, is at least 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.floating[Any]]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_FIRST, _LAST, _PANEL = -20.0, 25.0, 0.02
"""Integrals are taken over log time, in panels: heavy tails and steep beginnings are alike there."""


@dataclass(frozen=True)
class Law(ABC):
    """How long servers live. Subclasses are frozen dataclasses, their fields the parameters."""

    name: ClassVar[str]

    @abstractmethod
    def log_survival(self, t: Floats) -> Floats:
        """Logarithm of the probability to live longer than `t` hours, `t` ≥ 0."""

    @abstractmethod
    def log_hazard(self, t: Floats) -> Floats:
        """Logarithm of the rate of losses per hour at age `t`, among those that live."""

    def integral(self, t: Floats) -> Floats:
        """The integral of S from 0 to `t`; `t` may be infinite, and so may be the answer."""
        bounds, sums = self._panels
        with np.errstate(divide="ignore"):
            v = np.clip(np.log(t), _FIRST, _LAST)
        panel = np.clip(((v - _FIRST) / _PANEL).astype(np.int64), 0, len(sums) - 2)
        whole = sums[panel] + self._between(bounds[panel], v)
        far = np.isinf(t)
        if np.any(far):
            # A tail whose last part still counts has no finite integral.
            left = np.exp(_LAST + self.log_survival(np.array([np.exp(_LAST)]))[0])
            whole = np.where(far, sums[-1] if left < 1e-6 * sums[-1] else np.inf, whole)
        return np.where(t <= np.exp(_FIRST), t, whole)

    @cached_property
    def _panels(self) -> tuple[Floats, Floats]:
        bounds = _FIRST + _PANEL * np.arange(round((_LAST - _FIRST) / _PANEL) + 1)
        parts = self._between(bounds[:-1], bounds[1:])
        return bounds, np.exp(_FIRST) + np.concatenate([[0.0], np.cumsum(parts)])

    def _between(self, low: Floats, high: Floats) -> Floats:
        half = (high - low)[..., None] / 2
        v = (high + low)[..., None] / 2 + half * _NODES
        return np.sum(half * _WEIGHTS * np.exp(v + self.log_survival(np.exp(v))), axis=-1)

    @property
    def end(self) -> float:
        """The age nobody passes, were there no cap."""
        return np.inf

    def parameters(self) -> dict[str, float | tuple[float, ...]]:
        """The parameters by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # pyright: ignore[reportArgumentType]


@dataclass(frozen=True)
class Exponential(Law):
    """No memory: the hazard is `rate` at every age."""

    name: ClassVar[str] = "exponential"
    rate: float

    def log_survival(self, t: Floats) -> Floats:
        return -self.rate * t

    def log_hazard(self, t: Floats) -> Floats:
        return np.full_like(t, np.log(self.rate))

    def integral(self, t: Floats) -> Floats:
        return -np.expm1(-self.rate * t) / self.rate


@dataclass(frozen=True)
class Weibull(Law):
    """S = exp(−(t/scale)^shape): a hazard that falls (shape < 1) or rises as a power of age."""

    name: ClassVar[str] = "weibull"
    shape: float
    scale: float

    def log_survival(self, t: Floats) -> Floats:
        return -((t / self.scale) ** self.shape)

    def log_hazard(self, t: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(self.shape / self.scale) + (self.shape - 1) * np.log(t / self.scale)

    def integral(self, t: Floats) -> Floats:
        from scipy.special import gamma, gammainc

        power = np.where(np.isinf(t), np.inf, t / self.scale) ** self.shape
        return self.scale * gamma(1 + 1 / self.shape) * gammainc(1 / self.shape, power)


@dataclass(frozen=True)
class GompertzMakeham(Law):
    """Hazard `constant` + `early`·e^(`growth`·t); with a negative growth, losses early in life."""

    name: ClassVar[str] = "gompertz-makeham"
    constant: float
    early: float
    growth: float

    def log_survival(self, t: Floats) -> Floats:
        with np.errstate(over="ignore"):
            ratio = np.expm1(self.growth * t) / self.growth if self.growth else t
            return -(self.constant * t + self.early * ratio)

    def log_hazard(self, t: Floats) -> Floats:
        return np.logaddexp(np.log(self.constant), np.log(self.early) + self.growth * t)


@dataclass(frozen=True)
class Lomax(Law):
    """Hazard `shape`/(`scale` + t) + `constant`."""

    name: ClassVar[str] = "lomax"
    shape: float
    scale: float
    constant: float

    def log_survival(self, t: Floats) -> Floats:
        return -self.shape * np.log1p(t / self.scale) - self.constant * t

    def log_hazard(self, t: Floats) -> Floats:
        return np.log(self.shape / (self.scale + t) + self.constant)


@dataclass(frozen=True)
class Hyperexponential(Law):
    """A share `weights[i]` of all servers is lost at the rate `rates[i]`."""

    weights: tuple[float, ...]
    rates: tuple[float, ...]

    @property
    def name(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """With the number of kinds."""
        return f"hyperexponential{len(self.rates)}"

    def _sum(self, coefficients: Floats, t: Floats) -> Floats:
        """log Σ cᵢ·e^(−rᵢt), the slowest term taken out so that it never underflows."""
        rates = np.array(self.rates)
        slowest = rates.min()
        terms = np.multiply.outer(t, slowest - rates)
        return np.log(np.exp(terms) @ coefficients) - slowest * t

    def log_survival(self, t: Floats) -> Floats:
        return self._sum(np.array(self.weights), t)

    def log_hazard(self, t: Floats) -> Floats:
        return self._sum(np.array(self.weights) * self.rates, t) - self.log_survival(t)

    def integral(self, t: Floats) -> Floats:
        rates = np.array(self.rates)
        return -np.expm1(-np.multiply.outer(t, rates)) @ (np.array(self.weights) / rates)


@dataclass(frozen=True)
class SciSpot(Law):
    """The SciSpot paper's law, F(0) taken off: F(t) = A(1 − e^(−t/τ₁) + e^((t−b)/τ₂) − e^(−b/τ₂))."""

    name: ClassVar[str] = "scispot"
    a: float
    tau1: float
    tau2: float
    b: float

    @property
    def _late(self) -> float:
        return self.a * float(np.exp(-self.b / self.tau2))

    def _cumulative(self, t: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return -self.a * np.expm1(-t / self.tau1) + self._late * np.expm1(t / self.tau2)

    @cached_property
    def end(self) -> float:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Where F reaches 1."""
        from scipy.optimize import brentq

        high = self.tau2 * np.log1p(1 / self._late)  # the second process alone has reached 1 here
        return float(brentq(lambda t: float(self._cumulative(np.array(t))) - 1, 0.0, high, xtol=1e-13))

    def log_survival(self, t: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(0.0, 1 - self._cumulative(t)))

    def log_hazard(self, t: Floats) -> Floats:
        with np.errstate(over="ignore"):
            density = self.a / self.tau1 * np.exp(-t / self.tau1) + self._late / self.tau2 * np.exp(
                t / self.tau2
            )
        return np.log(density) - self.log_survival(t)

    def integral(self, t: Floats) -> Floats:
        t = np.minimum(t, self.end)
        first = self.a * (t + self.tau1 * np.expm1(-t / self.tau1))
        return t - first - self._late * (self.tau2 * np.expm1(t / self.tau2) - t)


@dataclass(frozen=True)
class Scaled(Law):
    """Another law with its hazard times `factor` at every age: S^factor."""

    law: Law
    factor: float

    @property
    def name(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Of the law that is scaled."""
        return f"{self.law.name} × {self.factor:.3g}"

    def log_survival(self, t: Floats) -> Floats:
        return self.factor * self.law.log_survival(t)

    def log_hazard(self, t: Floats) -> Floats:
        return np.log(self.factor) + self.law.log_hazard(t)

    @property
    def end(self) -> float:
        """Of the law that is scaled."""
        return self.law.end

    def parameters(self) -> dict[str, float | tuple[float, ...]]:
        """Those of the law, and the factor."""
        return {**self.law.parameters(), "factor": self.factor}
