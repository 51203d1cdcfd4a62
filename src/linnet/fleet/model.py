"""What a law of lifetimes answers, once it has a cap: the model every plan of the fleet is made with.

A model needs two functions of age, log S and the integral of S; all the rest is here. Hours throughout. The
cap is an atom: S(t) is the law's below it and 0 from it on, so a server that reaches the cap is lost there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from linnet.errors import InputError
from linnet.fleet.laws import Floats, Law
from linnet.reports.html_facts import facts_as_html

if TYPE_CHECKING:
    from linnet.fleet.checkpoints import CheckpointPlan
    from linnet.fleet.comparison import Comparison
    from linnet.fleet.drift import Drift
    from linnet.fleet.lifetimes import Lifetimes

Answer: TypeAlias = "float | Floats"
"""A float where scalars were asked about, an array where arrays were."""


def hours(value: ArrayLike, what: str) -> Floats:
    """Times as an array of floats; negative ones and NaN are refused."""
    found = np.asarray(value, np.float64)
    if not np.all(found >= 0):
        raise InputError(f"{what} must be hours of at least 0, not {value!r}")
    return found


def answer(value: Floats | np.float64) -> Answer:
    """A scalar as a Python float."""
    found = np.asarray(value)
    return float(found) if found.ndim == 0 else found


def fraction(value: float, what: str) -> float:
    """A number between 0 and 1."""
    if not 0 <= value <= 1:
        raise InputError(f"{what} must lie between 0 and 1, not {value!r}")
    return float(value)


class Model(ABC):
    """How long servers live, with a cap or without. `Lifetimes.fit` makes one."""

    cap: float | None
    """The age at which every server is taken away, if there is one."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What the law is called."""

    @abstractmethod
    def _log_survival(self, t: Floats) -> Floats:
        """log S(t) for t ≥ 0, without the cap."""

    @abstractmethod
    def _integral(self, t: Floats) -> Floats:
        """The integral of S from 0 to t, without the cap."""

    @abstractmethod
    def hazard(self, age: ArrayLike) -> Answer:
        """Losses per hour at this age, among the servers that reach it; infinite from the cap on."""

    @property
    def limit(self) -> float:
        """The age nobody passes: the cap, or infinity."""
        return np.inf if self.cap is None else self.cap

    def log_survival(self, age: ArrayLike) -> Answer:
        """Logarithm of `survival`, exact where that is too small for a float."""
        t = hours(age, "age")
        return answer(np.where(t < self.limit, self._log_survival(t), -np.inf))

    def survival(self, age: ArrayLike) -> Answer:
        """Probability that a server lives longer than `age` hours; 0 from the cap on.

        Parameters
        ----------
        age : hours, a number or an array

        Returns
        -------
        float or array of the shape of `age`

        Examples
        --------
        >>> from linnet.fleet import Lifetimes
        >>> life = Lifetimes([1, 2, 4, 8, 9, 30], [True, True, True, True, True, False], cap=24)
        >>> model = life.fit("exponential")
        >>> round(model.survival(5), 3), model.survival(24)
        (0.594, 0.0)
        """
        return answer(np.exp(self.log_survival(age)))

    def integral(self, age: ArrayLike) -> Answer:
        """Hours a server is expected to live below `age`: the integral of `survival` from 0 to `age`."""
        return answer(self._integral(np.minimum(hours(age, "age"), self.limit)))

    @property
    def mean(self) -> float:
        """Expected lifetime in hours, the cap included; infinite if the law says that some live for ever."""
        return float(self._integral(np.array(self.limit)))

    def quantile(self, q: ArrayLike) -> Answer:
        """The age by which a share `q` of all servers is lost (at the cap those that are left)."""
        share = np.asarray(q, np.float64)
        if not np.all((share >= 0) & (share <= 1)):
            raise InputError(f"q must lie between 0 and 1, not {q!r}")
        with np.errstate(divide="ignore"):
            return answer(self._age_at(np.log1p(-share)))

    def _age_at(self, log_survival: Floats) -> Floats:
        """The smallest age at which log S is no more than this, found by halving."""
        low = np.zeros(log_survival.shape)
        high = np.full(log_survival.shape, 2.0**-20)
        for _ in range(80):  # far enough for any age that is not infinite
            more = (np.asarray(self.log_survival(high)) > log_survival) & (high < 2.0**59)
            if not more.any():
                break
            low, high = np.where(more, high, low), np.where(more, 2 * high, high)
        never = np.asarray(self.log_survival(high)) > log_survival
        for _ in range(60):
            middle = (low + high) / 2
            after = np.asarray(self.log_survival(middle)) > log_survival
            low, high = np.where(after, middle, low), np.where(after, high, middle)
        found = np.where(log_survival >= 0, 0.0, high)
        return np.where(never, np.inf, found)

    def sample(
        self,
        size: int | tuple[int, ...] | None = None,
        rng: np.random.Generator | int | None = None,
        age: float = 0,
    ) -> Answer:
        """Lifetimes drawn at random: total ages at the end, of servers that have reached `age`.

        Parameters
        ----------
        size : how many, or a shape; None for one number
        rng : a generator, or a seed
        age : hours the servers have lived already
        """
        already = float(np.asarray(self.log_survival(age)))
        if already == -np.inf:
            raise InputError(f"no server reaches an age of {age} h under this model")
        draws = np.log1p(-np.random.default_rng(rng).random(size))
        return answer(np.maximum(self._age_at(np.asarray(already + draws)), age))

    def failure_probability(self, length: ArrayLike, age: ArrayLike = 0) -> Answer:
        """Probability that a server of this age is lost within `length` hours: 1 − S(age + length)/S(age).

        Parameters
        ----------
        length, age : hours, numbers or arrays that broadcast

        Returns
        -------
        float or array; 1 where `age + length` reaches the cap
        """
        return answer(-np.expm1(-self._lost_hazard(hours(length, "length"), hours(age, "age"))))

    def _lost_hazard(self, length: Floats, age: Floats) -> Floats:
        """The hazard between two ages: log S(age) − log S(age + length)."""
        start, end = np.asarray(self.log_survival(age)), np.asarray(self.log_survival(age + length))
        with np.errstate(invalid="ignore"):
            return np.where(end == -np.inf, np.inf, start - end)

    def gang_failure(self, length: ArrayLike, ages: ArrayLike, together: float = 0.0) -> Answer:
        """Probability that any of several servers is lost within `length` hours.

        Parameters
        ----------
        length : hours, a number or an array
        ages : the servers' ages; they are taken along the last axis
        together : share of the hazard that strikes all of them at once (a zone that is reclaimed): 0 for
            servers
            that are lost independently, 1 for servers that are always lost together. `Lifetimes.together`
            measures it

        Returns
        -------
        float, or an array of the shape of `length` and `ages` without its last axis
        """
        share = fraction(together, "together")
        each = self._lost_hazard(hours(length, "length")[..., None], hours(ages, "ages"))
        if not each.shape[-1]:
            return answer(np.zeros(each.shape[:-1]))
        largest = each.max(axis=-1)
        apart = each.sum(axis=-1) if share < 1 else largest
        with np.errstate(invalid="ignore"):
            joint = np.where(np.isinf(largest), np.inf, (1 - share) * apart + share * largest)
        return answer(-np.expm1(-joint))

    def sample_gang(
        self, servers: int, together: float = 0.0, size: int = 1, rng: np.random.Generator | int | None = None
    ) -> Floats:
        """Lifetimes of servers launched at once, a share `together` of their hazard common to all.

        Each server alone follows the model; an array of `size` rows with a column for each server.
        """
        share, random = fraction(together, "together"), np.random.default_rng(rng)
        with np.errstate(divide="ignore", invalid="ignore"):
            own = np.log1p(-random.random((size, servers))) / (1 - share) if share < 1 else np.array(-np.inf)
            common = np.log1p(-random.random((size, 1))) / share if share else np.array(-np.inf)
            return np.broadcast_to(self._age_at(np.maximum(own, common)), (size, servers)).copy()

    def expected_time(self, length: ArrayLike, age: ArrayLike = 0, restart: ArrayLike = 0) -> Answer:
        """Hours until a job is done that begins again on a fresh server whenever its server is lost.

        Parameters
        ----------
        length : hours of the job
        age : age of the server it begins on
        restart : hours that each loss costs besides the work

        Returns
        -------
        float or array; infinite where no fresh server can live as long as the job
        """
        work, begun, lost = hours(length, "length"), hours(age, "age"), hours(restart, "restart")
        fresh = np.asarray(self.survival(work))
        with np.errstate(divide="ignore", invalid="ignore"):
            again = (np.asarray(self.integral(work)) + (1 - fresh) * lost) / fresh
            again = np.where(fresh > 0, again, np.inf)
            alive = np.asarray(self.survival(begun))
            spent = (np.asarray(self.integral(begun + work)) - np.asarray(self.integral(begun))) / alive
            spent = np.where(alive > 0, spent, 0.0)
            fails = np.asarray(self.failure_probability(work, begun))
            return answer(spent + np.where(fails > 0, fails * (lost + again), 0.0))

    def checkpoints(
        self, work: float, cost: float, restart: float = 0, age: float = 0, step: float = 1 / 60
    ) -> CheckpointPlan:
        """When to save a job's state so that it is expected to be done soonest; see
        `linnet.fleet.checkpoints`.

        Parameters
        ----------
        work : hours of the job
        cost : hours to save its state
        restart : hours that each loss costs besides the work done since the last checkpoint
        age : age of the server it begins on
        step : checkpoints are at multiples of this; one minute
        """
        from linnet.fleet.checkpoints import plan_checkpoints

        return plan_checkpoints(self, work, cost, restart, age, step)

    def drift(self, newer: Lifetimes, level: float = 0.01) -> Drift:
        """Whether lifetimes that came later still follow this model; see `linnet.fleet.drift`."""
        from linnet.fleet.drift import drift

        return drift(self, newer, level)


@dataclass(frozen=True)
class FittedModel(Model):
    """A law with the parameters that make the lifetimes likeliest."""

    law: Law
    """The law, its parameters as fields."""
    cap: float | None = None
    """The age at which every server is taken away."""
    log_likelihood: float = np.nan
    """Of the lifetimes it was fitted to."""
    size: int = 0
    """How many parameters were fitted; the cap is not counted."""
    servers: int = 0
    """How many lifetimes it was fitted to."""
    comparison: Comparison | None = field(default=None, repr=False, compare=False)
    """The table it was chosen from."""

    @property
    def name(self) -> str:
        """The family's."""
        return self.law.name

    @property
    def aic(self) -> float:
        """Akaike's criterion, 2k − 2 log L: the smaller the better."""
        return 2 * self.size - 2 * self.log_likelihood

    def _repr_html_(self) -> str:
        told = {
            "law": repr(self.law),
            "cap": "none" if self.cap is None else f"{self.cap:g} h",
            "mean": f"{self.mean:.3g} h",
            "fitted to": f"{self.servers:,} servers",
            "AIC": f"{self.aic:.1f}",
            "a job of 6 h on a fresh server fails with probability": f"{self.failure_probability(6):.3f}",
        }
        return facts_as_html("Law of lifetimes", told)

    def _log_survival(self, t: Floats) -> Floats:
        return self.law.log_survival(t)

    def _integral(self, t: Floats) -> Floats:
        return self.law.integral(t)

    def hazard(self, age: ArrayLike) -> Answer:
        """Losses per hour at this age, among the servers that reach it; infinite from the cap on."""
        t = hours(age, "age")
        end = min(self.limit, self.law.end)
        inside = t < end
        with np.errstate(over="ignore", divide="ignore"):
            return answer(np.where(inside, np.exp(self.law.log_hazard(np.where(inside, t, 0.0))), np.inf))

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={_short(value)}" for name, value in self.law.parameters().items())
        capped = "no cap" if self.cap is None else f"cap {self.cap:g} h"
        of = f"AIC {self.aic:.1f} of {self.servers} servers, " if self.servers else ""
        return f"{self.name}({shown}), {capped}, {of}mean {self.mean:.3g} h"


def _short(value: float | Sequence[float]) -> str:
    if isinstance(value, Sequence):
        return "(" + ", ".join(f"{each:.4g}" for each in value) + ")"
    return f"{value:.4g}"
