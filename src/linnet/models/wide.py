"""Newton's method for many columns: the Hessian is cut into tiles, and factored where they are.

One iteration is one program: predictors, weights of rows, `XᵀWX` by tiles, its tiled Cholesky factor, and the
solution of the Newton system. The Hessian is never in one place; what comes back is the step and a few
numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from linnet.arrays.elements.core import as_node, wrap
from linnet.arrays.expression.builders import blocks, part
from linnet.arrays.expression.nodes import Along, Node, Operand, Piece, Source
from linnet.arrays.linalg.factorisations import cholesky
from linnet.arrays.linalg.linear_systems import solve_triangular
from linnet.arrays.linalg.norms_and_products import syrk
from linnet.arrays.lowering.evaluate import computed
from linnet.arrays.namespace import names
from linnet.errors import LinAlgError
from linnet.models.design import Design, Model, Vector
from linnet.models.fitting import Request, constant
from linnet.models.solvers import Progress, Solution

_TILE = 1024
_CONVEX = {("gaussian", "identity"), ("binomial", "logit"), ("poisson", "log"), ("gamma", "log")}
"""Families and links whose loss is convex in every row."""


class Tiled:
    """The data in tiles of rows and columns, and the expressions of an iteration."""

    def __init__(self, design: Design, model: Model, ridge: float) -> None:
        ones = names()["ones"]((design.x.shape[0], 1))
        x = wrap(design.x)
        self.x: Any = names()["concat"]([x, ones], axis=1) if design.intercept else x
        rows = max(_TILE, design.x.layout.boundaries[0][1])
        self.x: Any = self.x.rechunk((rows, _TILE))
        self.size: Any = self.x.shape[1]
        self.model = model
        self.design = design
        cut = {0: self.x.chunks[0]}
        self.y: Any = wrap(design.y).rechunk(cut)
        self.weight: Any | None = None if design.weight is None else wrap(design.weight).rechunk(cut)
        self.offset: Any | None = None if design.offset is None else wrap(design.offset).rechunk(cut)
        self.penalty = np.full(self.size, ridge)
        if design.intercept:
            self.penalty[-1] = 0.0

    def _rows(self, coef: Vector, curvature: str) -> tuple[Any, Any, Any]:
        """Loss, its derivative and its curvature, of each row; lazy."""
        eta = self.x @ wrap(Source(coef))
        if self.offset is not None:
            eta = eta + self.offset
        eta = eta.rechunk({0: self.x.chunks[0]})
        inputs: list[Node] = [eta.__node__, self.y.__node__]
        if self.weight is not None:
            inputs.append(self.weight.__node__)
        arguments = tuple(Operand(k, (Along(0),)) for k in range(len(inputs)))
        attributes = (*self.model.attributes().items(), ("curvature", curvature))
        layout = eta.__node__.layout
        made = blocks(inputs, (Piece("glm_rows", arguments, attributes),), layout, np.float64, 3)
        loss, slope, curve = (wrap(part(made, k, np.float64)) for k in range(3))
        return loss, slope, curve

    def objective(self, coef: Vector) -> tuple[float, Vector]:
        """Loss with the penalty, and gradient."""
        loss, slope, _ = self._rows(coef, "observed")
        self.design.passes += 1
        total, gradient = computed([as_node(loss.sum()), as_node(self.x.T @ slope)])
        return self._penalised(float(total), coef), np.asarray(gradient) + self.penalty * coef

    def _penalised(self, loss: float, coef: Vector) -> float:
        return loss + 0.5 * float(self.penalty @ coef**2)

    def iteration(self, coef: Vector, curvature: str = "observed") -> list[Any]:
        """Loss, gradient and Newton step, as lazy arrays of one program."""
        loss, slope, curve = self._rows(coef, curvature)
        gradient = self.x.T @ slope + wrap(Source(self.penalty * coef))
        if curvature == "expected" or (self.model.family, self.model.link) in _CONVEX:
            # No weight is negative: a matrix and its own transpose, of which one half is computed.
            hessian = syrk((self.x * np.sqrt(curve)[:, None]).T, tile=_TILE)
        else:
            hessian = self.x.T @ (self.x * curve[:, None])
        hessian = hessian.rechunk((_TILE, _TILE))
        diagonal = names()["eye"](self.size, chunks=_TILE) * wrap(Source(self.penalty))
        factor = cholesky(hessian + diagonal)
        below = solve_triangular(factor, -gradient[:, None], lower=True)
        step = solve_triangular(factor.T, below, lower=False)[:, 0]
        return [loss.sum(), gradient, step]


def tiled_newton(design: Design, model: Model, mean: float, request: Request) -> Solution:
    """Newton's method with a Hessian in tiles; ends as `solvers.newton` does."""
    weight = (
        design.x.shape[0]
        if design.weight is None
        else float(computed([as_node(wrap(design.weight).sum())])[0])
    )
    problem = Tiled(design, model, request.ridge * (weight if request.per_weight else 1.0))
    coef = np.zeros(problem.size)
    if design.intercept:
        coef[-1] = constant(design, model.link, mean)
    if request.warm is not None and len(request.warm) == problem.size:
        coef = request.warm.astype(np.float64)
    progress = Progress(request.verbose, request.max_iter, request.label)
    curvature = "expected" if request.solver == "irls" else "observed"
    history: list[float] = []
    for iteration in range(1, request.max_iter + 1):
        objective, gradient, step = _newton_step(problem, coef, curvature, request.label)
        history.append(objective)
        change = float(np.max(np.abs(step) / np.maximum(1.0, np.abs(coef))))
        progress(iteration, objective, change)
        if change <= request.tol:
            return Solution(coef + step, iteration, True, objective, False, None, history)
        moved = _shorter(problem, coef, step, objective, float(-gradient @ step))
        if moved is None:
            return Solution(coef, iteration, change <= np.sqrt(request.tol), objective, False, None, history)
        coef = moved
    return Solution(coef, request.max_iter, False, history[-1], False, None, history)


def _newton_step(problem: Tiled, coef: Vector, curvature: str, label: str) -> tuple[float, Vector, Vector]:
    problem.design.passes += 1
    try:
        found = computed([as_node(each) for each in problem.iteration(coef, curvature)])
    except (LinAlgError, linalg.LinAlgError) as error:
        if curvature == "observed":
            return _newton_step(problem, coef, "expected", label)
        raise LinAlgError(
            f"{label}: the Hessian of {problem.size} coefficients is not positive definite: columns of X "
            f"depend on "
            "others, or there are fewer rows than columns; penalise (alpha, C), or leave columns out"
        ) from error
    loss, gradient, step = (np.asarray(each) for each in found)
    if not (np.isfinite(loss) and np.isfinite(step).all()):
        raise ValueError(f"{label}: Input X or y contains NaN or infinity; remove or fill these rows first")
    return problem._penalised(float(loss), coef), gradient, step


def _shorter(problem: Tiled, coef: Vector, step: Vector, objective: float, gain: float) -> Vector | None:
    """The first of 1, 1/2, 1/4, ... steps that lowers the objective by enough."""
    size, slack = 1.0, 16 * np.finfo(float).eps * abs(objective)
    for _ in range(30):
        reached, _ = problem.objective(coef + size * step)
        if np.isfinite(reached) and reached <= objective - 1e-4 * size * gain + slack:
            return coef + size * step
        size *= 0.5
    return None
