"""From a design and a model to coefficients: where to begin, which solver, and columns far from zero."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from linnet.arrays.elements.core import as_node, wrap
from linnet.arrays.expression.nodes import Source
from linnet.arrays.lowering.evaluate import computed
from linnet.kernels.models.families import LINKS
from linnet.models.design import WIDE, Classes, Design, Evaluation, Model, Rows, Vector, by_rows, column
from linnet.models.proximal import proximal_newton
from linnet.models.solvers import Progress, Solution, check_finite, lbfgs, newton, solve_positive
from linnet.models.stochastic import Descent, descend

_FAR = 100.0
"""Columns whose mean is so many of their own deviations away from 0 are brought there."""


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """What the user asked for."""

    solver: str
    """auto, newton, irls, lbfgs, proximal or sgd."""
    tol: float
    max_iter: int
    ridge: float = 0.0
    """Half of it times the squares of coefficients is added to the loss; of all rows, not of their mean."""
    lasso: float = 0.0
    """It times their absolute values is added."""
    per_weight: bool = False
    """Whether both are for rows of weight 1 together, as scikit-learn's `alpha` is."""
    verbose: int = 0
    label: str = "fit"
    warm: Vector | None = None
    """Coefficients to begin with, the intercept last."""
    held: float = 0.0
    """The share of rows that "sgd" holds out, to end when these are no longer predicted better."""
    seed: int = 0


_PER_COLUMN = 50
"""Rows for each coefficient that a sample has at least,"""
_MANY = 5_000_000
"""and numbers in a table from which it is worth while."""

SOLVERS = ("auto", "newton", "irls", "lbfgs", "proximal", "sgd")


def check_solver(solver: str, what: str) -> None:
    """Refuse solvers there are none of."""
    if solver not in SOLVERS:
        raise ValueError(f"{what} has no solver {solver!r}; use one of {', '.join(SOLVERS)}")


def fit_rows(design: Design, model: Model, mean: float, request: Request) -> Solution:
    """Coefficients of a generalised linear model, the intercept last, for columns as they were given."""
    loss = Rows(design, model)
    chosen = _chosen(request, design)
    if chosen == "tiled":
        from linnet.models.wide import tiled_newton

        return tiled_newton(design, model, mean, request)
    if chosen == "sgd":
        coef = np.zeros(loss.size) if request.warm is None else request.warm
        if request.warm is None and design.intercept:
            coef[-1] = constant(design, model.link, mean)
        return stochastic(design, model, 1, coef, request)
    curvature = {"irls": "expected", "lbfgs": "none"}.get(chosen, "observed")
    metric: Evaluation | None = None
    if chosen in ("newton", "irls") and request.warm is None:
        warm, metric = _sampled(design, model, mean, request, curvature)
        request = replace(request, warm=warm)
    coef, first = _begin(loss, mean, request, curvature if metric is None else "none")
    check_finite(first, request.label)
    if metric is not None and metric.hessian is not None:
        metric = replace(metric, weight=first.weight, hessian=metric.hessian * (first.weight / metric.weight))
    if first.hessian is not None and design.intercept and bring_near(design, first):
        assert design.shift is not None
        coef[-1] += float(design.shift @ coef[:-1])
        first = loss.evaluate(coef, curvature)
        if leave_flat(design, first.hessian):
            coef[:-1][design.flat] = 0.0
            first = loss.evaluate(coef, curvature)
    scale = first.weight if request.per_weight else 1.0
    penalty = np.full(loss.size, request.ridge * scale)
    lasso = np.full(loss.size, request.lasso * scale)
    if design.intercept:
        penalty[-1] = lasso[-1] = 0.0
    progress = Progress(request.verbose, request.max_iter, request.label)
    how: dict[str, Any] = {"tol": request.tol, "max_iter": request.max_iter, "progress": progress}
    if chosen == "proximal":
        found = proximal_newton(loss, coef, penalty, lasso, first=first, **how)
    elif chosen == "lbfgs":
        found = lbfgs(loss, coef, penalty, **how)
    else:
        found = newton(loss, coef, penalty, curvature=curvature, first=first, metric=metric, **how)
    return found


def stochastic(design: Design, model: Model, classes: int, coef: Vector, request: Request) -> Solution:
    """Stochastic gradient descent as it was asked for."""
    how = Descent(
        request.ridge, request.per_weight, request.tol, request.max_iter, request.held, request.seed
    )
    return descend(
        design, model, classes, coef, how, Progress(request.verbose, request.max_iter, request.label)
    )


def held_out(estimator: Any) -> dict[str, Any]:
    """What an estimator's parameters say of rows to hold out and of the seed, as keywords of `Request`."""
    if not estimator.early_stopping:
        share = 0.0
    elif estimator.solver != "sgd":
        raise ValueError(
            f'early_stopping holds rows out while solver="sgd" goes over the others; the solver is '
            f"{estimator.solver!r}, which ends at its tolerance"
        )
    else:
        share = float(estimator.validation_fraction)
        if not 0 < share < 1:
            raise ValueError(f"validation_fraction must lie between 0 and 1; got {share}")
    return {"held": share, "seed": int(check_random_state(estimator.random_state).randint(2**31 - 1))}


def no_zeros(solver: str) -> ValueError:
    """The error of a solver that was asked for an l1 penalty."""
    return ValueError(
        f"the solver {solver!r} makes no exact zeros, which an l1 penalty asks for; "
        'use solver="proximal" or "auto"'
    )


def _chosen(request: Request, design: Design) -> str:
    if request.lasso > 0:
        if request.solver not in ("auto", "proximal"):
            raise no_zeros(request.solver)
        return "proximal"
    wide = design.columns > WIDE
    if request.solver == "auto" or (request.solver in ("newton", "irls") and wide):
        return "tiled" if wide else "newton"
    return "newton" if request.solver == "proximal" else request.solver


def _sampled(
    design: Design, model: Model, mean: float, request: Request, curvature: str
) -> tuple[Vector | None, Evaluation | None]:
    """The coefficients of a twentieth of the rows, and the pass there; where there are many rows in memory.

    They are as near as the square root of the number of rows says, which saves passes over all of them, and
    so is the Hessian. Without the pass where columns lie so far from zero that their means must come off
    first.
    """
    rows, columns = design.x.shape
    if not isinstance(design.x, Source) or rows < 20 * _PER_COLUMN * design.columns or rows * columns < _MANY:
        return None, None
    every = slice(None, None, 20)
    x = by_rows(Source(design.x.data[every]))
    others = [
        None if each is None else column(wrap(each)[every], x.layout)
        for each in (design.y, design.weight, design.offset)
    ]
    assert others[0] is not None
    part = Design(x, others[0], others[1], others[2], design.intercept)
    loss = Rows(part, model)
    coef, first = _begin(loss, mean, request, curvature)
    if not (np.isfinite(first.loss) and np.isfinite(first.gradient).all()):
        return None, None
    scale = first.weight if request.per_weight else 0.05
    penalty = np.full(loss.size, request.ridge * scale)
    if design.intercept:
        penalty[-1] = 0.0
    found = newton(loss, coef, penalty, tol=1e-2, max_iter=20, curvature=curvature, first=first)
    usable = found.converged and not found.singular and np.isfinite(found.coef).all()
    if not usable or np.abs(found.coef).max() >= 1e3:
        return None, None
    there = loss.evaluate(found.coef, curvature)
    near = design.intercept and _means_far(there) is not None
    return found.coef, None if near or there.weight <= 0 else there


def _begin(loss: Rows, mean: float, request: Request, curvature: str) -> tuple[Vector, Evaluation]:
    """The first coefficients, and the pass there."""
    coef = np.zeros(loss.size)
    design, model = loss.design, loss.model
    if request.warm is not None and request.warm.shape == coef.shape:
        coef = request.warm.astype(np.float64)
    elif design.intercept and model.link not in ("inverse", "inverse_squared"):
        possible = model.family != "binomial" or 0 < mean < 1
        coef[-1] = constant(design, model.link, mean) if possible else 0.0
    found = loss.evaluate(coef, curvature)
    if np.isfinite(found.loss) or model.link in ("logit",):
        return coef, found
    start = loss.start(mean)  # means at these coefficients are impossible: begin with means near y
    assert start.hessian is not None
    if np.isfinite(start.gradient).all():
        coef, _ = solve_positive(start.hessian, -start.gradient)
        tried = loss.evaluate(coef, curvature)
        if not np.isfinite(tried.loss) and design.intercept:
            coef = np.zeros(loss.size)
            coef[-1] = constant(design, model.link, mean)
            tried = loss.evaluate(coef, curvature)
        return coef, tried
    return coef, found


def forward(link: str, mean: float) -> float:
    """The predictor of a mean; 0 where there is none."""
    with np.errstate(all="ignore"):
        value = float(LINKS[link].forward(np.array([mean], np.float64))[0])
    return value if np.isfinite(value) else 0.0


def constant(design: Design, link: str, mean: float) -> float:
    """About the intercept of a model without columns: the predictor of the mean, less what offsets add."""
    if design.offset is None:
        return forward(link, mean)
    offset, weight = wrap(design.offset), None if design.weight is None else wrap(design.weight)
    total = design.x.shape[0] if weight is None else weight.sum()
    shares = offset if weight is None else offset * weight
    if link != "log":
        (middle,) = computed([as_node(shares.sum() / total)])
        return forward(link, mean) - float(middle)
    (largest,) = computed([as_node(offset.max())])
    grown = np.exp(offset - float(largest))  # exposures; the largest is 1
    (middle,) = computed([as_node((grown if weight is None else grown * weight).sum() / total)])
    return forward(link, mean) - float(largest) - float(np.log(max(float(middle), 1e-300)))


def bring_near(design: Design, first: Evaluation) -> bool:
    """Take means off columns that lie far from zero: their products would lose the digits that differ."""
    means = _means_far(first)
    if means is not None:
        design.shift = np.ascontiguousarray(means)
    return means is not None


def _means_far(found: Evaluation) -> Vector | None:
    """The means of columns, where some lie far from zero; the intercept is the last column."""
    hessian = found.hessian
    assert hessian is not None
    total = hessian[-1, -1]
    if not total > 0:
        return None
    means = hessian[:-1, -1] / total
    spread = np.sqrt(np.maximum(np.diag(hessian)[:-1] / total - means**2, 0))
    return means if (np.abs(means) > _FAR * np.maximum(spread, 1e-300)).any() else None


def flat_columns(shift: Vector, hessian: Vector) -> NDArray[np.bool_]:
    """Columns that vary by no more than rounding around what was taken off."""
    columns = len(shift)
    total = max(float(hessian[columns, columns]), 1e-300)
    means = hessian[:columns, columns] / total
    variance = np.diag(hessian)[:columns] / total - means**2
    return variance <= (4 * np.finfo(np.float64).eps * shift) ** 2


def leave_flat(design: Design, hessian: Vector | None) -> bool:
    """Let constant columns say nothing: beside an intercept they have no coefficient of their own."""
    assert design.shift is not None
    assert hessian is not None
    flat = flat_columns(design.shift, hessian)
    design.flat = flat if flat.any() else None
    return design.flat is not None


def _over_classes(loss: Classes, found: Evaluation) -> Evaluation:
    """The Hessians of all classes added, without what was put along directions that classes share."""
    assert found.hessian is not None
    size = loss.design.columns
    by_class = found.hessian.reshape(loss.classes, size, loss.classes, size)
    common = np.einsum("kikj->ij", by_class) - by_class.sum(axis=(0, 2)) / loss.classes
    return Evaluation(found.loss, found.weight, found.gradient, common)


def classes_near(loss: Classes, coef: Vector, first: Evaluation) -> tuple[Vector, Evaluation]:
    """`bring_near` for many classes: coefficients and the pass there, after means were taken off."""
    design = loss.design
    if not bring_near(design, _over_classes(loss, first)):
        return coef, first
    assert design.shift is not None
    shaped = coef.reshape(loss.classes, -1).copy()
    shaped[:, -1] += shaped[:, :-1] @ design.shift
    first = loss.evaluate(shaped.ravel())
    if leave_flat(design, _over_classes(loss, first).hessian):
        shaped[:, :-1][:, design.flat] = 0.0
        first = loss.evaluate(shaped.ravel())
    return shaped.ravel(), first


def all_right(design: Design, coef: Vector, classes: int) -> bool:
    """Whether every row that counts is in the class that coefficients say: one reading of the data."""
    x, y = wrap(design.x), wrap(design.y)
    shaped = as_given(design, coef.reshape(-1 if classes == 2 else classes, design.columns))
    eta = x @ wrap(Source(np.ascontiguousarray(shaped[:, : x.shape[1]].T)))
    if design.intercept:
        eta = eta + wrap(Source(np.ascontiguousarray(shaped[:, -1])))
    if design.offset is not None:
        eta = eta + wrap(design.offset)[:, None]
    wrong = ((eta[:, 0] > 0) if classes == 2 else eta.argmax(axis=1)) != y
    if design.weight is not None:
        wrong = wrong & (wrap(design.weight) > 0)
    design.passes += 1
    return not bool(computed([as_node(wrong.any())])[0])


def as_given(design: Design, coef: Vector) -> Vector:
    """Coefficients for the columns as they were given, from those of columns with means taken off.

    One vector, or a row for each class.
    """
    if design.shift is None:
        return coef
    turned = coef.copy()
    columns = design.x.shape[1]
    turned[..., columns] -= coef[..., :columns] @ design.shift
    return turned


def covariance_as_given(design: Design, covariance: Vector) -> Vector:
    """Likewise for the covariance of coefficients."""
    if design.shift is None:
        return covariance
    turn = np.eye(len(covariance))
    columns = design.x.shape[1]
    turn[columns, :columns] = -design.shift
    return turn @ covariance @ turn.T
