"""Laws fitted to lifetimes by maximum likelihood, with censoring.

A server lost at age y contributes its density, one that was last seen alive there (or reached the cap)
contributes S(y), and one that was lost between two looks contributes S(earlier) − S(later). Each family says
how numbers without bounds become a law, and where the search may start: likelihoods of mixtures have several
maxima, so it starts from a few places and keeps the best.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from linnet.errors import InputError
from linnet.fleet.laws import (
    Exponential,
    Floats,
    GompertzMakeham,
    Hyperexponential,
    Law,
    Lomax,
    SciSpot,
    Weibull,
)
from linnet.fleet.observations import Observations


@dataclass(frozen=True, slots=True)
class Family:
    """Laws of one form."""

    size: int
    """How many parameters are fitted."""
    law: Callable[[Floats, float], Law]
    """From free numbers, and the longest time in the data, to a law."""
    starts: Callable[[float, float], list[list[float]]]
    """Places to start at, for a rate of losses per hour and the longest time."""
    bounds: Callable[[float], list[tuple[float, float]]]
    """Bounds of the free numbers, for the longest time in the data."""


def _rates(longest: float) -> tuple[float, float]:
    """Logarithms of rates that data as long as this can tell apart from none, and from losses at once."""
    return -6 - np.log(longest), 9.0


def _hyperexponential(kinds: int) -> Family:
    def law(free: Floats, longest: float) -> Law:
        odds = np.concatenate([[0.0], free[kinds:]])
        weights = np.exp(odds - odds.max())
        order = np.argsort(free[:kinds])
        weights = weights[order] / weights.sum()
        return Hyperexponential(tuple(map(float, weights)), tuple(map(float, np.exp(free[:kinds][order]))))

    def starts(rate: float, longest: float) -> list[list[float]]:
        spreads = (3.0, 10.0) if kinds == 2 else (4.0, 12.0)
        base = np.log(rate)
        return [
            [*(base + np.log(spread) * (np.arange(kinds) - 0.4)), *([0.0] * (kinds - 1))]
            for spread in spreads
        ]

    def bounds(longest: float) -> list[tuple[float, float]]:
        return [_rates(longest)] * kinds + [(-9.0, 9.0)] * (kinds - 1)

    return Family(2 * kinds - 1, law, starts, bounds)


def _scispot(free: Floats, longest: float) -> SciSpot:
    """The first number is the logit of F at the longest time seen, so S is above 0 on all data."""
    reached = 1 / (1 + np.exp(-free[0]))
    tau1, tau2 = np.exp(free[1:3])
    b = free[3] * longest
    grown = -np.expm1(-longest / tau1) + np.exp((longest - b) / tau2) - np.exp(-b / tau2)
    return SciSpot(float(reached / grown), float(tau1), float(tau2), float(b))


FAMILIES: dict[str, Family] = {
    "exponential": Family(
        1,
        lambda free, longest: Exponential(float(np.exp(free[0]))),
        lambda rate, longest: [[np.log(rate)]],
        lambda longest: [(-25.0, 12.0)],
    ),
    "weibull": Family(
        2,
        lambda free, longest: Weibull(float(np.exp(free[0])), float(np.exp(free[1]))),
        lambda rate, longest: [[-0.5, -np.log(rate)], [0.3, -np.log(rate)]],
        lambda longest: [(-4.0, 3.0), (-12.0, 25.0)],
    ),
    "gompertz-makeham": Family(
        3,
        lambda free, longest: GompertzMakeham(float(np.exp(free[0])), float(np.exp(free[1])), float(free[2])),
        lambda rate, longest: [
            [np.log(rate) - 1, np.log(rate) + 1, -10 / longest],
            [np.log(rate) - 1, np.log(rate) - 3, 3 / longest],
        ],
        lambda longest: [(_rates(longest)[0] - 6, 9.0), (-25.0, 9.0), (-500 / longest, 240 / longest)],
    ),
    "lomax": Family(
        3,
        lambda free, longest: Lomax(*map(float, np.exp(free))),
        lambda rate, longest: [[-1.0, np.log(longest) - 3, np.log(rate) - 1], [0.5, np.log(longest),
        np.log(rate) - 3]], lambda longest: [(-9.0, 6.0), (-12.0, np.log(longest) + 6), (_rates(longest)[0] -
        6, 9.0)],
    ),
    "hyperexponential2": _hyperexponential(2),
    "hyperexponential3": _hyperexponential(3),
    "scispot": Family(
        4,
        _scispot,
        lambda rate, longest: [
            [0.0, np.log(longest / 20), np.log(longest / 20), 0.95],
            [0.0, np.log(longest / 20), np.log(longest), 0.2],
        ],
        lambda longest: [
            (-12.0, 12.0),
            (np.log(longest) - 9, np.log(longest) + 3),
            (np.log(longest) - 4, np.log(longest) + 3),
            (0.0, 2.0),
        ],
    ),
}  # fmt: skip


def log_likelihoods(law: Law, data: Observations) -> Floats:
    """What each server contributes to the logarithm of the likelihood."""
    at_end = law.log_survival(data.hours)
    found = at_end.copy()
    exact = (
        data.lost & (data.earlier == data.hours) & (at_end > -np.inf)
    )  # nobody is lost after the end of a law
    found[exact] += law.log_hazard(data.hours[exact])
    between = data.lost & (data.earlier < data.hours)
    if between.any():
        before = law.log_survival(data.earlier[between])
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(before > -np.inf, -np.expm1(at_end[between] - before), 0.0)
            found[between] = before + np.log(share)
    return found


def fit_family(name: str, data: Observations, start: Floats | None = None) -> tuple[Law, Floats]:
    """The law of a family that makes `data` likeliest, and its free numbers (a start for similar data)."""
    from scipy.optimize import minimize

    family = FAMILIES[name]
    lost = int(data.lost.sum())
    if not lost:
        raise InputError(
            f"none of the {len(data.hours)} servers was preempted, so no law of preemption can be fitted; "
            "give lifetimes that ended, or a longer history"
        )
    longest, rate = float(data.hours.max()), lost / float(data.hours.sum())
    bounds = family.bounds(longest)
    low, high = np.array(bounds).T

    def cost(free: Floats) -> float:
        with np.errstate(all="ignore"):
            total = -float(np.sum(log_likelihoods(family.law(np.clip(free, low, high), longest), data)))
        return total if np.isfinite(total) else 1e12

    best: tuple[float, Floats] | None = None
    for begin in [start] if start is not None else family.starts(rate, longest):
        free = np.clip(np.asarray(begin, np.float64), low, high)
        value = cost(free)
        for differences in ("2-point", "3-point", "3-point") if start is None else ("2-point",):
            # A line search that met a flat place is begun again, its curvature forgotten.
            found = minimize(
                cost, free, method="L-BFGS-B", jac=differences, bounds=bounds, options={"maxiter": 500}
            )
            gain, value, free = value - float(found.fun), float(found.fun), np.asarray(found.x)
            if gain < 1e-5:
                break
        if best is None or value < best[0]:
            best = value, free
    assert best is not None
    return family.law(best[1], longest), best[1]
