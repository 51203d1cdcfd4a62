"""Newton's method and L-BFGS, on losses that are one pass over the data.

A solver minimises `loss(coef) + penalty`, where the penalty is a number for each coefficient (half of it
times the square). A pass at a trial point tells everything the next iteration needs, so a step that is
accepted costs one reading of the data.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning

from linnet.models.design import Evaluation, Vector

_RANK = 1e-12
"""Pivots below this, of a Hessian with ones on its diagonal, say that columns depend on others."""
_HALVINGS = 40
_NEAR = 0.05
"""A change of coefficients below which the next pass does without a Hessian,"""
_GAINS = 0.2
"""as long as each step is so much shorter than the one before."""


class Loss(Protocol):
    """What solvers ask for."""

    size: int

    def evaluate(self, coef: Vector, curvature: str = "observed") -> Evaluation:
        """Loss, gradient and Hessian at coefficients."""
        ...


@dataclass(slots=True, eq=False)
class Solution:
    """Where a solver ended."""

    coef: Vector
    iterations: int
    converged: bool
    objective: float
    singular: bool = False
    """Whether some columns depend on others, so that coefficients are not unique."""
    last: Evaluation | None = None
    """The pass at `coef`, if there was one."""
    history: list[float] = field(default_factory=list)
    """The objective after each iteration."""


class Progress:
    """Tells iterations, objective and time; and the callback of the user's, which may stop the fit."""

    def __init__(self, verbose: int, limit: int, label: str) -> None:
        self._verbose, self._limit, self._label = verbose, limit, label
        self._began = time.monotonic()

    def __call__(self, iteration: int, objective: float, change: float) -> None:
        if self._verbose:
            spent = time.monotonic() - self._began
            left = spent / max(1, iteration) * (self._limit - iteration)
            print(
                f"{self._label}: iteration {iteration}, objective {objective:.10g}, change {change:.2e}, "
                f"{spent:.1f} s, at most {left:.1f} s left",
                flush=True,
            )


def check_finite(found: Evaluation, what: str) -> None:
    """Refuse data with NaN or infinity, or whose squares are: nothing else makes the first pass so."""
    if not (np.isfinite(found.loss) and np.isfinite(found.gradient).all()):
        raise ValueError(
            f"{what}: the loss at the first point is not finite. Input X or y contains NaN or infinity, or "
            "values too large for float64; remove or fill these rows first"
        )
    if found.hessian is not None and not np.isfinite(found.hessian).all():
        raise ValueError(
            f"{what}: squares of the columns of X are too large for float64; scale these columns first"
        )


def solve_positive(hessian: Vector, right: Vector) -> tuple[Vector, bool]:
    """The solution of `hessian · x = right`; and whether the matrix is singular.

    The diagonal is made 1 first, so columns of any scale do. Where columns depend on others, it is the
    shortest solution in that scale; where the matrix is not positive definite, `LinAlgError` is raised.

    >>> solve_positive(np.array([[4.0, 0.0], [0.0, 1e-20]]), np.array([4.0, 1e-20]))
    (array([1., 1.]), False)
    """
    diagonal = np.diag(hessian).copy()
    if not np.isfinite(diagonal).all() or (diagonal < 0).any():
        raise linalg.LinAlgError("the Hessian is not positive definite")
    alive = diagonal > 0
    scale = np.where(alive, 1 / np.sqrt(np.where(alive, diagonal, 1.0)), 0.0)
    scaled = hessian * scale[:, None] * scale
    scaled[~alive, ~alive] = 1.0
    side = right * (scale if right.ndim == 1 else scale[:, None])
    try:
        factor = linalg.cholesky(scaled, lower=True, check_finite=False)
        if np.diag(factor).min() ** 2 > _RANK * len(factor):
            solved = linalg.cho_solve((factor, True), side, check_finite=False)
            # One step of refinement: the diagonal need not be all that is badly scaled.
            solved += linalg.cho_solve((factor, True), side - scaled @ solved, check_finite=False)
            return solved * (scale if right.ndim == 1 else scale[:, None]), bool((~alive).any())
    except linalg.LinAlgError:
        pass
    values, vectors = linalg.eigh(scaled)
    if values[0] < -1e-8 * max(values[-1], 1.0):
        raise linalg.LinAlgError("the Hessian is not positive definite")
    kept = values > _RANK * len(values) * values[-1]
    inverse = np.where(kept, 1 / np.where(kept, values, 1.0), 0.0)
    turned = vectors.T @ side
    solved = vectors @ (turned * (inverse if right.ndim == 1 else inverse[:, None]))
    return solved * (scale if right.ndim == 1 else scale[:, None]), True


def newton(
    loss: Loss,
    coef: Vector,
    penalty: Vector,
    *,
    tol: float,
    max_iter: int,
    curvature: str = "observed",
    first: Evaluation | None = None,
    metric: Evaluation | None = None,
    progress: Progress | None = None,
) -> Solution:
    """Newton's method; with `curvature="expected"` it is iteratively reweighted least squares.

    `metric` is a pass whose Hessian serves as long as steps become shorter by it, of a sample for one;
    `first` need have none then. To a Hessian that is used again is added what gradients have said of the
    curvature since, as BFGS does it.

    It ends when a step changes no coefficient by more than a tenth of `tol` of it (of 1, if it is smaller),
    nor what it adds to the predictor; or when the step after this one would not, by the speed seen so far.
    """
    found = loss.evaluate(coef, curvature) if first is None else first
    objective = float(found.loss + 0.5 * penalty @ coef**2)
    history, before = [objective], np.inf
    held = metric  # the pass whose Hessian is used, if it is not this one
    pairs: list[tuple[Vector, Vector, float]] = []
    for iteration in range(1, max_iter + 1):
        gradient = found.gradient + penalty * coef
        if held is None:
            step, singular, own = _direction(loss, coef, found, gradient, penalty, curvature)
            metric = found
        else:
            step, singular = _again(held, penalty, gradient, pairs)
            metric, own = held, True
        change = _change(step, coef, metric)
        gain = float(-gradient @ step)
        after = _next_change(change, before, held is not None, curvature)
        flat = gain <= 8 * np.finfo(float).eps * abs(objective)
        if (change <= 1e-2 and after <= 0.1 * tol) or (flat and change <= np.sqrt(tol)):
            coef = coef + step
            history.append(objective - 0.5 * gain)
            return Solution(coef, iteration, True, history[-1], singular, None, history)
        # Near the end a Hessian changes little from step to step: passes without one cost a fraction.
        keep = own and not singular and (change <= _NEAR if held is None else change <= _GAINS * before)
        moved = _line_search(loss, coef, step, objective, gain, penalty, "none" if keep else curvature)
        if moved is None:
            small = bool(flat or change <= np.sqrt(tol))
            return Solution(coef, iteration, small, objective, singular, found, history)
        if not keep:
            pairs.clear()
        elif (pair := _pair(moved[0] - coef, moved[1].gradient + penalty * moved[0] - gradient)) is not None:
            pairs.append(pair)
        coef, found, objective = moved
        held = metric if keep else None
        history.append(objective)
        before = change
        if progress is not None:
            progress(iteration, objective, change)
    return Solution(coef, max_iter, False, objective, False, None, history)


def _again(
    held: Evaluation, penalty: Vector, gradient: Vector, pairs: list[tuple[Vector, Vector, float]]
) -> tuple[Vector, bool]:
    """The step by a Hessian of before and what was seen of it since; and whether columns depend on others."""
    assert held.hessian is not None
    hessian, singular = held.hessian + np.diag(penalty), False

    def solved(right: Vector) -> Vector:
        nonlocal singular
        step, singular = solve_positive(hessian, right)
        return step

    return _two_loops(gradient, pairs, solved), singular


def _pair(s: Vector, y: Vector) -> tuple[Vector, Vector, float] | None:
    """A step, how the gradient changed along it, and their product; None if that is lost in rounding."""
    curvature = float(s @ y)
    return (s, y, curvature) if curvature > 1e-14 * float(y @ y) else None


def _next_change(change: float, before: float, held: bool, curvature: str) -> float:
    """What the step after this one would change, by the speed seen so far."""
    if not np.isfinite(before):
        return change
    ratio = min(1.0, change / before)
    # With the Hessian of its own point convergence is quadratic, with an older or the expected one linear.
    return change * (ratio**2 if curvature == "observed" and not held else ratio)


def _change(step: Vector, coef: Vector, found: Evaluation) -> float:
    """How much a step changes coefficients, or predictors: those of large numbers are small."""
    assert found.hessian is not None
    spread = np.sqrt(np.maximum(np.diag(found.hessian), 0) / max(found.weight, 1e-300))
    moved = np.abs(step)
    return float(np.max(np.maximum(moved / np.maximum(1.0, np.abs(coef)), moved * spread), initial=0.0))


def _direction(
    loss: Loss, coef: Vector, found: Evaluation, gradient: Vector, penalty: Vector, curvature: str
) -> tuple[Vector, bool, bool]:
    """The Newton step, whether columns depend on others, and whether it is of the Hessian that was given.

    Where that is not positive definite, it is the step of the expected one.
    """
    assert found.hessian is not None
    try:
        step, singular = solve_positive(found.hessian + np.diag(penalty), -gradient)
        if -gradient @ step >= 0:
            return step, singular, True
    except linalg.LinAlgError:
        pass
    if curvature == "observed":
        expected = loss.evaluate(coef, "expected")
        assert expected.hessian is not None
        try:
            step, singular = solve_positive(expected.hessian + np.diag(penalty), -gradient)
            return step, singular, False
        except linalg.LinAlgError:
            pass
    # Where neither is (a dispersion far off): along the gradient, scaled by what curvature there is.
    diagonal = np.abs(np.diag(found.hessian)) + penalty
    return -gradient / np.where(diagonal > 0, diagonal, 1.0), False, False


def _line_search(
    loss: Loss, coef: Vector, step: Vector, objective: float, gain: float, penalty: Vector, curvature: str
) -> tuple[Vector, Evaluation, float] | None:
    """The first of 1, 1/2, 1/4, ... steps that lowers the objective by enough; None if none does."""
    size = 1.0
    slack = 16 * np.finfo(float).eps * abs(objective)
    for _ in range(_HALVINGS):
        trial = coef + size * step
        found = loss.evaluate(trial, curvature)
        reached = float(found.loss + 0.5 * penalty @ trial**2)
        fine = found.hessian is None or np.isfinite(found.hessian).all()
        if np.isfinite(reached) and fine and reached <= objective - 1e-4 * size * gain + slack:
            return trial, found, reached
        size *= 0.5
        if size * np.max(np.abs(step), initial=0.0) < 1e-300:
            break
    return None


# ---- L-BFGS


def lbfgs(
    loss: Loss,
    coef: Vector,
    penalty: Vector,
    *,
    tol: float,
    max_iter: int,
    memory: int = 10,
    scale: Vector | None = None,
    progress: Progress | None = None,
) -> Solution:
    """L-BFGS with a line search for the strong Wolfe conditions (Nocedal and Wright, algorithms 3.5, 7.4,
    7.5).

    It ends when the largest element of the gradient, over the weight of all rows, is at most `tol`. `scale`
    says how long a step along each coefficient should be.
    """
    scale = np.ones_like(coef) if scale is None else scale

    def value(at: Vector) -> tuple[float, Vector, Evaluation]:
        found = loss.evaluate(at * scale, "none")
        real = at * scale
        total = float(found.loss + 0.5 * penalty @ real**2)
        return total, (found.gradient + penalty * real) * scale, found

    at = coef / scale
    objective, gradient, found = value(at)
    pairs: list[tuple[Vector, Vector, float]] = []
    history = [objective]
    for iteration in range(1, max_iter + 1):
        if np.max(np.abs(gradient), initial=0.0) <= tol * max(found.weight, 1e-300):
            return Solution(at * scale, iteration - 1, True, objective, False, None, history)
        direction = _two_loops(gradient, pairs)
        if direction @ gradient >= 0:
            pairs.clear()
            direction = -gradient
        size = 1.0 if pairs else min(1.0, 1.0 / max(float(np.abs(gradient).sum()), 1e-300))
        reached = _wolfe(value, at, direction, objective, gradient, size)
        if reached is None:
            stuck = np.max(np.abs(gradient)) <= np.sqrt(tol) * found.weight
            return Solution(at * scale, iteration, bool(stuck), objective, False, None, history)
        new, new_objective, new_gradient, found = reached
        pair = _pair(new - at, new_gradient - gradient)
        if pair is not None:
            pairs.append(pair)
            del pairs[:-memory]
        change = float(np.max(np.abs(new - at)))
        at, objective, gradient = new, new_objective, new_gradient
        history.append(objective)
        if progress is not None:
            progress(iteration, objective, change)
    done = bool(np.max(np.abs(gradient), initial=0.0) <= tol * max(found.weight, 1e-300))
    return Solution(at * scale, max_iter, done, objective, False, None, history)


def _two_loops(
    gradient: Vector,
    pairs: list[tuple[Vector, Vector, float]],
    solved: Callable[[Vector], Vector] | None = None,
) -> Vector:
    """The direction of L-BFGS, by a Hessian that `solved` divides by and pairs of steps and gradients.

    Without `solved` that Hessian is a number times the identity, as the last pair has it.
    """
    direction = -gradient
    kept: list[float] = []
    for s, y, curvature in reversed(pairs):
        kept.append(float(s @ direction) / curvature)
        direction = direction - kept[-1] * y
    if solved is not None:
        direction = solved(direction)
    elif pairs:
        _, y, curvature = pairs[-1]
        direction = direction * (curvature / float(y @ y))
    for (s, y, curvature), alpha in zip(pairs, reversed(kept), strict=True):
        direction = direction + (alpha - float(y @ direction) / curvature) * s
    return direction


def _wolfe(
    value: Callable[[Vector], tuple[float, Vector, Evaluation]],
    at: Vector,
    direction: Vector,
    objective: float,
    gradient: Vector,
    size: float,
) -> tuple[Vector, float, Vector, Evaluation] | None:
    """A step with enough decrease and a slope that is nearly flat."""
    slope = float(gradient @ direction)
    low, low_value, low_slope, high = 0.0, objective, slope, np.inf
    best: tuple[Vector, float, Vector, Evaluation] | None = None
    slack = 8 * np.finfo(float).eps * abs(objective)
    for _ in range(30):
        point = at + size * direction
        reached, new_gradient, found = value(point)
        new_slope = float(new_gradient @ direction) if np.isfinite(reached) else np.inf
        if (
            not np.isfinite(reached)
            or reached > objective + 1e-4 * size * slope + slack
            or (reached >= low_value + slack and low > 0)
        ):
            high = size
        else:
            best = (point, reached, new_gradient, found)
            if abs(new_slope) <= 0.9 * abs(slope):
                return best
            if new_slope >= 0:
                high = size
            else:
                low, low_value, low_slope = size, reached, new_slope
        if np.isinf(high):
            size *= 2.0
            continue
        # The minimum of the parabola through what is known, kept inside the interval.
        width = high - low
        curve = (reached - low_value - low_slope * (size - low)) if size != low else np.nan
        guess = (
            low - 0.5 * low_slope * (size - low) ** 2 / curve if np.isfinite(curve) and curve > 0 else np.nan
        )
        inside = low + 0.1 * width < guess < high - 0.1 * width
        size = float(guess) if inside else low + 0.5 * width
        if width * np.max(np.abs(direction)) < 1e-300:
            break
    return best


def warn_of_end(solution: Solution, what: str, max_iter: int, hint: str = "") -> None:
    """scikit-learn's warning, where a solver did not reach its tolerance."""
    if not solution.converged:
        warnings.warn(
            f"{what} did not converge in {solution.iterations} of at most {max_iter} iterations; raise "
            f"max_iter, "
            f"scale the columns of X, or penalise more.{hint}",
            ConvergenceWarning,
            stacklevel=3,
        )


def warn_of_rank(what: str, stacklevel: int = 3) -> None:
    """A warning that coefficients are not unique."""
    warnings.warn(
        f"{what}: columns of X depend on others (or are constant), so the coefficients are not unique; the "
        "shortest solution is given. Leave columns out, or penalise",
        ConvergenceWarning,
        stacklevel=stacklevel,
    )
