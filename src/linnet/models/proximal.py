"""Proximal Newton: exact zeros for any family.

Each iteration replaces the loss by its parabola at the coefficients (one pass gives it), minimises that with
the l1 penalty by coordinate descent on the small matrix, and takes the step, or half of it, if the objective
falls (Lee, Sun and Saunders, "Proximal Newton-type methods for minimizing composite functions", 2014). A
linear model is its own parabola: one pass is enough.
"""

from __future__ import annotations

import numpy as np

from linnet.kernels.models.descent import descend
from linnet.models.design import Evaluation, Vector
from linnet.models.solvers import Loss, Progress, Solution

_HALVINGS = 40


def kkt_residual(gradient: Vector, coef: Vector, lasso: Vector) -> float:
    """How far coefficients are from being the minimum; `gradient` is that of all but the l1 penalty.

    >>> kkt_residual(np.array([-1.0, 0.5]), np.array([2.0, 0.0]), np.ones(2))
    0.0
    """
    at_zero = np.maximum(np.abs(gradient) - lasso, 0.0)
    elsewhere = np.abs(gradient + lasso * np.sign(coef))
    return float(np.max(np.where(coef == 0, at_zero, elsewhere), initial=0.0))


def minimise_quadratic(
    q: Vector, c: Vector, lasso: Vector, coef: Vector, tol: float, most: int = 10_000
) -> int:
    """Coordinate descent until the KKT residual is at most `tol`; changes `coef`, returns the sweeps."""
    sweeps, aim = 0, tol
    for _ in range(30):
        sweeps += descend(q, c, lasso, coef, aim, max(1, most - sweeps))
        if sweeps >= most or kkt_residual(q @ coef - c, coef, lasso) <= tol:
            break
        aim *= 0.1  # steps were short, but many of them add up
    return sweeps


def proximal_newton(
    loss: Loss,
    coef: Vector,
    penalty: Vector,
    lasso: Vector,
    *,
    tol: float,
    max_iter: int,
    first: Evaluation | None = None,
    progress: Progress | None = None,
) -> Solution:
    """Minimise `loss + penalty·coef²/2 + lasso·|coef|`, until the KKT residual per weight is below `tol`."""
    found = loss.evaluate(coef) if first is None else first
    objective = _objective(found, coef, penalty, lasso)
    history = [objective]
    for iteration in range(1, max_iter + 1):
        assert found.hessian is not None
        gradient = found.gradient + penalty * coef
        residual = kkt_residual(gradient, coef, lasso)
        if residual <= tol * max(found.weight, 1e-300):
            return Solution(coef, max(1, iteration - 1), True, objective, False, found, history)
        q = found.hessian + np.diag(penalty)
        low = float(np.linalg.eigvalsh(q)[0]) if (np.diag(q) <= 0).any() else 0.0
        if low < 0:
            q = q + np.diag(np.full(len(q), -1.5 * low))
        trial = coef.copy()
        aim = 0.01 * min(tol * found.weight, residual)
        minimise_quadratic(q, q @ coef - gradient, lasso, trial, max(aim, 1e-15 * abs(gradient).max()))
        step = trial - coef
        gain = float(-(gradient @ step) - lasso @ (np.abs(trial) - np.abs(coef)))
        moved = _line_search(loss, coef, step, objective, gain, penalty, lasso)
        if moved is None:
            close = residual <= 1e3 * tol * max(found.weight, 1e-300)
            return Solution(coef, iteration, bool(close), objective, False, found, history)
        coef, found, objective = moved
        history.append(objective)
        if progress is not None:
            progress(iteration, objective, float(np.max(np.abs(step))))
    gradient = found.gradient + penalty * coef
    done = kkt_residual(gradient, coef, lasso) <= tol * max(found.weight, 1e-300)
    return Solution(coef, max_iter, done, objective, False, found, history)


def _objective(found: Evaluation, coef: Vector, penalty: Vector, lasso: Vector) -> float:
    return float(found.loss + 0.5 * penalty @ coef**2 + lasso @ np.abs(coef))


def _line_search(
    loss: Loss, coef: Vector, step: Vector, objective: float, gain: float, penalty: Vector, lasso: Vector
) -> tuple[Vector, Evaluation, float] | None:
    size = 1.0
    slack = 16 * np.finfo(float).eps * abs(objective)
    for _ in range(_HALVINGS):
        trial = coef + size * step
        trial[(coef + step == 0) & (size == 1.0)] = 0.0
        found = loss.evaluate(trial)
        reached = _objective(found, trial, penalty, lasso)
        if np.isfinite(reached) and reached <= objective - 1e-4 * size * gain + slack:
            return trial, found, reached
        size *= 0.5
    return None
