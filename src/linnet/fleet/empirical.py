"""The law that assumes nothing: Kaplan–Meier, and Turnbull's estimate where lifetimes were polled.

S is a staircase. Its hazard is given as a mean over half an hour on either side. Without a cap, what was
never seen to end counts as never ending: S stays where it is after the last loss, and the mean is infinite.
That is all the data say; a fitted law says more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from linnet.fleet.laws import Floats
from linnet.fleet.model import Answer, Model, answer, hours
from linnet.fleet.observations import Observations

WINDOW = 0.5
"""Half the width, in hours, over which the hazard of a staircase is a mean."""


@dataclass(frozen=True)
class KaplanMeier(Model):
    """S as a staircase, falling at the ages at which servers were lost."""

    ages: Floats
    """Ages at which S falls."""
    left: Floats
    """S from each of these ages on."""
    cap: float | None = None
    """The age at which every server is taken away."""

    @property
    def name(self) -> str:
        """Of the estimate."""
        return "kaplan-meier"

    def _steps(self, t: Floats) -> Floats:
        return np.concatenate([[1.0], self.left])[np.searchsorted(self.ages, t, side="right")]

    def _log_survival(self, t: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(self._steps(t))

    def _integral(self, t: Floats) -> Floats:
        edges, heights = np.concatenate([[0.0], self.ages]), np.concatenate([[1.0], self.left])
        sums = np.concatenate([[0.0], np.cumsum(np.diff(edges) * heights[:-1])])
        step = np.searchsorted(self.ages, t, side="right")
        with np.errstate(invalid="ignore"):
            return sums[step] + np.where(heights[step] > 0, heights[step] * (t - edges[step]), 0.0)

    def hazard(self, age: ArrayLike) -> Answer:
        """Losses per hour, a mean over half an hour on either side of this age; infinite from the cap on."""
        t = hours(age, "age")
        low = np.maximum(t - WINDOW, 0.0)
        high = np.minimum(t + WINDOW, np.nextafter(self.limit, 0))
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = (self._log_survival(low) - self._log_survival(high)) / (high - low)
            gone = (t >= self.limit) | (self._steps(t) == 0)
            return answer(np.where(gone, np.inf, rate))

    def __str__(self) -> str:
        capped = "no cap" if self.cap is None else f"cap {self.cap:g} h"
        return f"kaplan-meier of {len(self.ages)} steps, {capped}, mean {self.mean:.3g} h"


def kaplan_meier(data: Observations, cap: float | None) -> KaplanMeier:
    """The staircase that makes the lifetimes likeliest; whoever was lost comes before the censored."""
    if np.any(data.lost & (data.earlier < data.hours)):
        return _turnbull(data, cap)
    ages, deaths = np.unique(data.hours[data.lost], return_counts=True)
    at_risk = len(data) - np.searchsorted(np.sort(data.hours), ages, side="left")
    return KaplanMeier(ages, np.cumprod(1 - deaths / at_risk), cap)


def _turnbull(data: Observations, cap: float | None) -> KaplanMeier:
    """Turnbull's estimate, by self-consistency: mass is put at the ends of the intervals that end first.

    Each server has an interval (earlier, hours] in which it was lost, or (hours, ∞) if it was not. Mass can
    only be where an interval ends before another begins; each step shares every server out over the places in
    its interval in proportion to the mass there.
    """
    low = np.where(data.lost, data.earlier, data.hours)
    high = np.where(data.lost, data.hours, np.inf)
    exact = data.lost & (data.earlier == data.hours)
    places = _places(low, high, exact)
    inside = (places > low[:, None]) & (places <= high[:, None]) | (
        exact[:, None] & (places == high[:, None])
    )
    mass = np.full(len(places), 1 / len(places))
    for _ in range(5000):
        shares = inside * mass
        renewed = (shares / shares.sum(axis=1, keepdims=True)).mean(axis=0)
        moved, mass = np.abs(renewed - mass).max(), renewed
        if moved < 1e-9:
            break
    finite = np.isfinite(places)
    left = np.maximum(1 - np.cumsum(mass[finite]), 0.0)
    return KaplanMeier(places[finite], np.where(left < 1e-12, 0.0, left), cap)


def _places(low: Floats, high: Floats, exact: np.ndarray) -> Floats:
    """Right ends that come directly after a left end, among all ends in order (and every exact age)."""
    begins = np.unique(low[~exact])
    ends = np.unique(high)
    ends = ends[np.searchsorted(begins, ends, side="left") > 0] if len(begins) else ends
    before = np.searchsorted(begins, ends, side="left")  # begins strictly below each end
    first = np.concatenate([[True], before[1:] > before[:-1]]) if len(ends) else np.zeros(0, bool)
    return np.union1d(ends[first], high[exact])
