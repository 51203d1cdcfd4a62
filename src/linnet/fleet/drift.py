"""Whether servers still die as the model says: an alarm for markets that change.

A model says how many losses to expect among the servers watched, in each band of ages: the sum of the hazard
they lived through there. Losses observed are compared with these by a chi-squared test, which censored
servers enter as they should: they are expected to be lost for as long as they were watched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linnet.fleet.laws import Floats
from linnet.fleet.model import Model, fraction

if TYPE_CHECKING:
    from linnet.fleet.lifetimes import Lifetimes

FEWEST = 5.0
"""Losses expected in a band of ages, at least: the test is good from there on."""


@dataclass(frozen=True, slots=True)
class Drift:
    """What became of a model."""

    alarm: bool
    """Whether the servers no longer follow it."""
    p_value: float
    """How likely a difference as large as this is if they do."""
    observed: tuple[int, ...]
    """Losses in each band of ages."""
    expected: tuple[float, ...]
    """Losses the model expected there."""
    ages: tuple[float, ...]
    """Where the bands begin, in hours, and where the last one ends."""

    def __str__(self) -> str:
        lines = ["the servers no longer follow the model" if self.alarm else "the servers follow the model"]
        lines[0] += f" (p = {self.p_value:.3g})"
        for low, high, seen, meant in zip(
            self.ages[:-1], self.ages[1:], self.observed, self.expected, strict=True
        ):
            lines.append(f"  {low:6.2f} to {high:6.2f} h: {seen} lost, {meant:.1f} expected")
        return "\n".join(lines)


def drift(model: Model, newer: Lifetimes, level: float = 0.01) -> Drift:
    """Compare lifetimes with a model.

    Parameters
    ----------
    model : what was believed so far
    newer : lifetimes it was not fitted to
    level : the alarm is raised below this probability: so often it is false
    """
    from scipy.stats import chi2

    data = newer.observations
    limit = model.limit
    middle = (data.hours + data.earlier) / 2
    watched = np.minimum(np.where(data.lost, middle, data.hours), np.nextafter(limit, 0))
    lost = data.lost & (middle < limit)
    total = float(np.sum(-np.asarray(model.log_survival(watched))))
    bands = int(np.clip(total // FEWEST, 1, 8))
    ages = _bands(model, watched, bands)
    lived = -np.asarray(model.log_survival(np.minimum(ages[:, None], watched)))
    expected = np.diff(lived, axis=0).sum(axis=1)
    observed = np.histogram(watched[lost], ages)[0]
    statistic = float(np.sum((observed - expected) ** 2 / np.maximum(expected, 1e-12)))
    p_value = float(chi2.sf(statistic, bands))
    return Drift(
        p_value < fraction(level, "level"), p_value, tuple(map(int, observed)), tuple(map(float, expected)),
        tuple(map(float, ages)),
    )  # fmt: skip


def _bands(model: Model, watched: Floats, bands: int) -> Floats:
    """Ages between which equally many losses are expected."""
    grid = np.unique(np.concatenate([[0.0], watched]))
    hazard = -np.asarray(model.log_survival(np.minimum(grid[:, None], watched))).sum(axis=1)
    wanted = np.append(np.arange(bands) / bands * hazard[-1], hazard[-1])
    ages: Floats = np.asarray(np.interp(wanted, hazard, grid), np.float64)
    ages[-1] = np.nextafter(grid[-1], np.inf)
    return ages
