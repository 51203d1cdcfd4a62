"""Laws compared on the same lifetimes, and which of them is taken.

AIC says how well a law fits for its number of parameters; ten-fold cross-validation says how well it
foretells servers it has not seen. The law of the smallest AIC is taken among those whose cross-validation is
not clearly (by more than one standard error of the difference) worse than the best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from linnet.fleet.empirical import KaplanMeier
from linnet.fleet.fitting import FAMILIES, fit_family, log_likelihoods
from linnet.fleet.laws import Floats
from linnet.fleet.model import FittedModel, Model
from linnet.fleet.observations import Observations
from linnet.reports.html_facts import table_as_html

FOLDS = 10
A_PARAMETER = 5
"""Losses there must be for each parameter of a law that is compared; the exponential law always is."""


@dataclass(frozen=True)
class Candidate:
    """One row of the table."""

    model: FittedModel
    """The law fitted to all lifetimes."""
    validation: float
    """Ten-fold cross-validated log-likelihood per server."""
    distance: float
    """Largest distance to Kaplan–Meier."""
    behind: float
    """How many standard errors its cross-validation is below the best."""


@dataclass(frozen=True)
class Comparison:
    """The table of all laws, the best AIC first."""

    rows: tuple[Candidate, ...]
    """The laws compared."""
    servers: int
    """How many lifetimes there are."""
    lost: int
    """How many of them ended by preemption below the cap."""

    @property
    def chosen(self) -> Candidate:
        """The smallest AIC among those whose cross-validation is not clearly worse than the best."""
        return next(row for row in self.rows if row.behind <= 1)

    @property
    def model(self) -> FittedModel:
        """The model of the chosen row; it knows the table."""
        return replace(self.chosen.model, comparison=self)

    def __str__(self) -> str:
        lines = [
            f"{self.servers} servers, {self.lost} of them preempted before any cap",
            f"  {'law':<18} {'parameters':>10} {'AIC':>9} {'10-fold log L':>14} {'to Kaplan-Meier':>16} "
            f"{'mean h':>8}",
        ]
        for row in self.rows:
            mark = "*" if row is self.chosen else " "
            model = row.model
            lines.append(
                f"{mark} {model.name:<18} {model.size:>10} {model.aic:>9.1f} {row.validation:>14.4f} "
                f"{row.distance:>16.4f} {model.mean:>8.3g}"
            )
        lines.append("* taken: the smallest AIC that cross-validation does not contradict")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        title = f"{self.servers:,} servers, {self.lost:,} of them preempted before any cap"
        columns = ["law", "parameters", "AIC", "10-fold log L", "to Kaplan-Meier", "mean h"]
        rows = [
            [
                row.model.name, str(row.model.size), f"{row.model.aic:.1f}", f"{row.validation:.4f}",
                f"{row.distance:.4f}", f"{row.model.mean:.3g}",
            ]
            for row in self.rows
        ]  # fmt: skip
        return table_as_html(title, columns, rows, marked=self.rows.index(self.chosen))


def fitted(name: str, data: Observations, cap: float | None) -> tuple[FittedModel, Floats]:
    """A model of one family, and where a fit to similar data should start."""
    law, free = fit_family(name, data)
    total = float(log_likelihoods(law, data).sum())
    return FittedModel(law, cap, total, FAMILIES[name].size, len(data)), free


def held_out(name: str, data: Observations, free: Floats) -> Floats:
    """Each server's log-likelihood under the law fitted to the nine tenths it is not in.

    The parts are `numpy.random.default_rng(0).permutation(n)[i::10]`.
    """
    order = np.random.default_rng(0).permutation(len(data))
    found = np.empty(len(data))
    for fold in range(FOLDS):
        out = order[fold::FOLDS]
        inside = np.ones(len(data), np.bool_)
        inside[out] = False
        law, _ = fit_family(name, data[inside], free)
        found[out] = log_likelihoods(law, data[out])
    return found


def distance(model: Model, empirical: KaplanMeier, polled: bool = False) -> float:
    """The largest distance between two survivals, on both sides of every step below the cap.

    Where lifetimes were polled, nothing is known between two looks, and only the lower side is compared.
    """
    ages = empirical.ages[empirical.ages < model.limit]
    if not len(ages):
        return 0.0
    at = np.asarray(model.survival(ages))
    heights = np.concatenate([[1.0], empirical.left[: len(ages)]])
    end = np.nextafter(model.limit, 0) if model.cap is not None else float(ages[-1])
    last = abs(float(np.asarray(model.survival(end))) - heights[-1])
    before = 0.0 if polled else float(np.abs(at - heights[:-1]).max())
    return float(max(np.abs(at - heights[1:]).max(), before, last))


def compare(
    data: Observations, cap: float | None, empirical: KaplanMeier, names: Sequence[str]
) -> Comparison:
    """Fit every law named and put them into a table.

    Laws with more parameters than so few losses can tell are left out, and below ten losses nothing is held
    out.
    """
    lost = int(data.lost.sum())
    found: list[tuple[FittedModel, Floats]] = []
    for name in names:
        if FAMILIES[name].size * A_PARAMETER > lost and len(names) > 1 and name != "exponential":
            continue
        model, free = fitted(name, data, cap)
        found.append((model, held_out(name, data, free) if lost >= FOLDS else np.full(len(data), np.nan)))
    best = max((each for _, each in found), key=lambda each: float(each.mean()))
    polled = bool(np.any(data.lost & (data.earlier < data.hours)))
    rows = [
        Candidate(model, float(each.mean()), distance(model, empirical, polled), _behind(best, each))
        for model, each in found
    ]
    rows.sort(key=lambda row: row.model.aic)
    return Comparison(tuple(rows), len(data), lost)


def _behind(best: Floats, each: Floats) -> float:
    """How many standard errors of the difference one law's servers are below those of the best."""
    if each is best or len(each) < 2:
        return 0.0
    if not np.all(np.isfinite(each)):
        return np.inf if np.any(np.isinf(each)) else 0.0  # impossible servers; or nothing was held out
    short = best - each
    error = float(short.std(ddof=1)) / np.sqrt(len(each))
    return float(short.mean()) / error if error > 0 else 0.0
