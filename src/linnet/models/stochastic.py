"""Stochastic gradient descent for generalised linear models: epochs over all rows, or one over a batch.

Coefficients are near the minimum, not at it: where they must be exact, take another solver. What it is for:
many columns, rows that arrive batch by batch (`partial_fit`), and stopping when rows that were held out are
no longer predicted better.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linnet.arrays.lowering.evaluate import computed
from linnet.kernels.models.stochastic import HEAD
from linnet.models.design import Design, Model, Vector, column
from linnet.models.passing import summed_rows
from linnet.models.solvers import Progress, Solution

_PATIENCE = 5
"""Epochs without an improvement after which it ends."""


@dataclass(frozen=True, slots=True, eq=False)
class Descent:
    """How to descend."""

    ridge: float
    """Half of it times the squares of coefficients is added to the loss of all rows,"""
    per_weight: bool = False
    """or, with this, to their mean."""
    tol: float = 1e-4
    """An improvement of the objective below this share of it is none."""
    max_iter: int = 100
    held: float = 0.0
    """The share of rows that are held out, by which it is judged when to end; 0 for none."""
    seed: int = 0


@dataclass(slots=True, eq=False)
class Moments:
    """Weight, means and deviations of columns; those of batches can be put together."""

    weight: float
    mean: Vector
    square: Vector
    """Sums of squares around the means."""

    @classmethod
    def of(cls, design: Design) -> Moments:
        """One reading of the data; a second, where columns lie far from zero."""
        found = cls._around(design, np.zeros(design.x.shape[1]))
        if (found.mean**2 * found.weight > 1e8 * found.square).any():
            found = cls._around(design, found.mean)
        return found

    @classmethod
    def _around(cls, design: Design, shift: Vector) -> Moments:
        columns = len(shift)
        others = (shift,) if design.weight is None else (shift, design.weight)
        (line,) = computed([summed_rows("column_moments", design.x, others, 1 + 2 * columns)])
        design.passes += 1
        weight, mean = float(line[0]), line[1 : 1 + columns] / max(line[0], 1e-300)
        if not np.isfinite(line).all():
            raise ValueError(
                "Input X contains NaN or infinity, or values too large for float64; remove or fill these "
                "rows first"
            )
        return cls(weight, shift + mean, np.maximum(line[1 + columns :] - weight * mean**2, 0.0))

    def joined(self, other: Moments) -> Moments:
        """Those of the rows of both (Chan, Golub and LeVeque, 1983)."""
        weight = self.weight + other.weight
        away = other.mean - self.mean
        mean = self.mean + away * (other.weight / weight)
        return Moments(
            weight, mean, self.square + other.square + away**2 * (self.weight * other.weight / weight)
        )

    def standard(self, intercept: bool) -> tuple[Vector, Vector]:
        """What to take off columns, and what to divide them by; nothing is taken off without an intercept."""
        shift = self.mean if intercept else np.zeros_like(self.mean)
        spread = np.sqrt(self.square / self.weight + (0.0 if intercept else self.mean**2))
        flat = spread <= 1e-12 * np.abs(self.mean)
        return np.ascontiguousarray(shift), np.where(flat | (spread == 0), 1.0, spread)


class _Scaled:
    """Epochs over a design, for coefficients as users see them: a row for each class."""

    def __init__(self, design: Design, model: Model, classes: int, moments: Moments, ridge: float) -> None:
        self.design, self.classes = design, classes
        self.how = {**model.attributes(), "classes": classes}
        self.shift, self.spread = moments.standard(design.intercept)
        ends = [1.0] if design.intercept else []
        self.divisor = np.concatenate([self.spread, ends])
        penalty = ridge / self.divisor**2
        if design.intercept:
            penalty[-1] = 0.0
        self.penalty = np.tile(penalty, classes)
        self.size = classes * design.columns

    def inward(self, coef: Vector) -> Vector:
        """For columns that were made standard."""
        shaped = coef.reshape(self.classes, -1) * self.divisor
        if self.design.intercept:
            shaped[:, -1] += coef.reshape(self.classes, -1)[:, :-1] @ self.shift
        return shaped.ravel()

    def outward(self, coef: Vector) -> Vector:
        """For columns as they were given."""
        shaped = coef.reshape(self.classes, -1) / self.divisor
        if self.design.intercept:
            shaped[:, -1] -= shaped[:, :-1] @ self.shift
        return shaped.ravel()

    def epoch(self, coef: Vector, rate: float, seed: int) -> tuple[Vector, float, float]:
        """The next coefficients; the objective of rows learned from, and of those held out (or NaN)."""
        state = np.concatenate([coef, self.penalty, [rate, seed]])
        design = self.design
        before, design.shift = design.shift, self.shift
        node = design.line("glm_epoch", state, HEAD + self.size, spread=self.spread, **self.how)
        line = design.read(node)
        design.shift = before
        extra = 0.5 * float(self.penalty @ coef**2)
        if not line[1] > 0:
            raise ValueError("no row has a weight that is learned from; hold out fewer rows")
        held = float(line[2] / line[3]) if line[3] > 0 else float("nan")
        return line[HEAD:] / line[1], float(line[0] / line[1]) + extra, held

    def rate(self, epoch: int) -> float:
        """The length of a step: shorter where many columns move a predictor together, and later on."""
        return 0.5 / np.sqrt(max(1, self.design.columns)) / (1 + 0.5 * epoch)


def descend(
    design: Design, model: Model, classes: int, coef: Vector, how: Descent, progress: Progress
) -> Solution:
    """Epochs until the objective, or the loss of rows held out, no longer falls; the best coefficients."""
    moments = Moments.of(design)
    if how.held:
        flags = np.random.default_rng(how.seed).random(design.x.shape[0]) < how.held
        if not flags.any():
            raise ValueError(
                f"validation_fraction={how.held} of {len(flags)} rows is none; hold out more of them"
            )
        design.held = column(flags.astype(np.float64), design.x.layout)
    ridge = how.ridge if how.per_weight else how.ridge / max(moments.weight, 1e-300)
    scaled = _Scaled(design, model, classes, moments, ridge)
    at = scaled.inward(coef)
    best, best_at, still, history = np.inf, at, 0, []
    weight = max(moments.weight, 1e-300)
    for epoch in range(how.max_iter):
        after, objective, held = scaled.epoch(at, scaled.rate(epoch), how.seed + epoch)
        # The loss of rows held out is that of the coefficients before; the other is seen on the way.
        judged, shown = (held, at) if how.held else (objective, after)
        if not np.isfinite(after).all() or not np.isfinite(judged):
            raise ValueError("Input X or y contains NaN or infinity; remove or fill these rows first")
        history.append(judged)
        progress(epoch + 1, judged, best - judged)
        still = 0 if judged < best - how.tol * abs(best) or not np.isfinite(best) else still + 1
        if judged < best:
            best, best_at = judged, shown
        at = after
        if still >= _PATIENCE:
            return Solution(scaled.outward(best_at), epoch + 1, True, best * weight, False, None, history)
    return Solution(scaled.outward(best_at), how.max_iter, False, best * weight, False, None, history)


def one_epoch(
    design: Design, model: Model, classes: int, coef: Vector, moments: Moments, ridge: float, before: int
) -> Vector:
    """Coefficients after one epoch over a batch, of which there were so many before."""
    scaled = _Scaled(design, model, classes, moments, ridge)
    return scaled.outward(scaled.epoch(scaled.inward(coef), scaled.rate(before), before)[0])
