"""What the linear elastic net needs of the data: products of columns, read from the data once, or as they
are needed.

With few columns, `XᵀX` and `Xᵀy` of one pass are all that any penalty ever needs. With many, a working set
is kept: the columns that may have a coefficient. Their products are computed when they come in, and one pass
for each round tells which columns outside should have been there (Massias, Gramfort and Salmon, "Celer",
2018, has the idea; the choice here is by the size of the gradient).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.arrays.elements.core import wrap
from linnet.arrays.expression.nodes import Source
from linnet.arrays.lowering.evaluate import computed
from linnet.models.design import WIDE, Design, Evaluation, Model, Rows, Vector
from linnet.models.fitting import bring_near, flat_columns
from linnet.models.proximal import kkt_residual, minimise_quadratic
from linnet.models.solvers import check_finite

_MODEL = Model("gaussian", "identity")
_ROUNDS = 100


class Sums:
    """Sums over rows that products of columns are made from; those of batches are added."""

    def __init__(self, found: Evaluation, shift: Vector | None) -> None:
        assert found.hessian is not None
        self._q, self._c, self._yy = found.hessian, -found.gradient, 2 * found.loss
        self._weight, self.shift = found.weight, shift

    @classmethod
    def of(cls, design: Design, label: str, before: Sums | None = None) -> Sums:
        """One pass, a second if columns lie far from zero; with the sums of batches before added."""
        loss = Rows(design, _MODEL)
        zero = np.zeros(loss.size)
        if before is not None:
            design.shift = before.shift
        found = loss.evaluate(zero)
        check_finite(found, label)
        if before is None and design.intercept and design.shift is None and bring_near(design, found):
            found = loss.evaluate(zero)
        made = cls(found, design.shift)
        if before is not None:
            made._q, made._c = made._q + before._q, made._c + before._c
            made._yy, made._weight = made._yy + before._yy, made._weight + before._weight
        return made

    def centred(self, intercept: bool) -> Gram:
        """Products of columns, less their means where there is an intercept."""
        q, c, weight = self._q, self._c, self._weight
        if not intercept:
            return Gram(q, c, self._yy, np.zeros(len(c)), 0.0, weight)
        means, mean = q[:-1, -1] / weight, c[-1] / weight
        centred = q[:-1, :-1] - weight * np.outer(means, means)
        right, yy = c[:-1] - weight * means * mean, self._yy - weight * mean**2
        # Of a constant column only rounding is left.
        flat = np.diag(centred) <= 1e-12 * np.diag(q)[:-1]
        if self.shift is not None:
            flat |= flat_columns(self.shift, q)
        centred[flat] = 0.0
        centred[:, flat] = 0.0
        right[flat] = 0.0
        shift = 0.0 if self.shift is None else self.shift
        return Gram(centred, right, max(yy, 0.0), means + shift, mean, weight)


class Gram:
    """Centred products of all columns: `q` is `XᵀX`, `c` is `Xᵀy`, `yy` is `yᵀy`."""

    def __init__(self, q: Vector, c: Vector, yy: float, means: Vector, mean: float, weight: float) -> None:
        self.q: Vector = q
        self.c: Vector = c
        self.yy: float = yy
        self.means: Vector = means
        self.mean: float = mean
        self.weight: float = weight

    @classmethod
    def of(cls, design: Design, label: str) -> Gram:
        """One pass; a second, if columns lie far from zero."""
        return Sums.of(design, label).centred(design.intercept)

    def without(self, part: Gram) -> Gram:
        """The products of the rows that are not in a part; both not centred."""
        return Gram(
            self.q - part.q, self.c - part.c, self.yy - part.yy, self.means, 0.0, self.weight - part.weight
        )

    def minimise(self, l1: float, l2: float, coef: Vector, tol: float, most: int) -> int:
        """Coefficients with penalties (of all rows), in place; returns the sweeps."""
        q = self.q + np.diag(np.full(len(coef), l2)) if l2 else self.q
        aim = tol * max(float(np.abs(self.c).max(initial=0.0)), 1e-300)
        return minimise_quadratic(q, self.c, np.full(len(coef), l1), coef, aim, most)

    def residual(self, l1: float, l2: float, coef: Vector) -> float:
        """How far from the minimum coefficients are, for rows of weight 1 together."""
        lasso = np.full(len(coef), l1)
        return kkt_residual(self.q @ coef - self.c + l2 * coef, coef, lasso) / self.weight

    def error(self, coef: Vector, intercept: float) -> float:
        """The sum of squared residuals; of products that are not centred, with their means."""
        quadratic = coef @ self.q @ coef - 2 * self.c @ coef + self.yy
        moved = self.weight * intercept**2 + 2 * intercept * self.weight * (self.means @ coef - self.mean)
        return float(quadratic + moved)

    def gap(self, l1: float, l2: float, coef: Vector) -> float:
        """The duality gap of coefficients, for rows of weight 1 together."""
        product = self.q @ coef
        residual = self.yy + coef @ product - 2 * self.c @ coef
        dual = self.c - product - l2 * coef
        largest = float(np.abs(dual).max(initial=0.0))
        share = l1 / largest if largest > l1 else 1.0
        value = 0.5 * residual * (1 + share**2) + l1 * np.abs(coef).sum() - share * (self.yy - self.c @ coef)
        return float(value + 0.5 * l2 * (1 + share**2) * coef @ coef) / self.weight


class Working:
    """The same for many columns: products of a working set that grows."""

    def __init__(self, design: Design, label: str) -> None:
        self.x: Any = wrap(design.x)
        weight = None if design.weight is None else wrap(design.weight)
        y = wrap(design.y)
        rows = design.x.shape[0]
        total = [rows] if weight is None else computed([weight.sum().__node__])
        self.weight: float = float(total[0])
        columns = design.x.shape[1]
        self.means = np.zeros(columns)
        self.mean: float = 0.0
        self._weights = weight
        if design.intercept:
            sums = [
                (each if weight is None else each * w).sum(axis=0)
                for each, w in ((self.x, None if weight is None else weight[:, None]), (y, weight))
            ]
            found = computed([each.__node__ for each in sums])
            self.means, self.mean = np.asarray(found[0]) / self.weight, float(found[1]) / self.weight
        (self._y,) = computed([(y - self.mean).__node__])
        if not (np.isfinite(self.means).all() and np.isfinite(self._y).all()):
            raise ValueError(
                f"{label}: Input X or y contains NaN or infinity; remove or fill these rows first"
            )
        self._w = None if weight is None else computed([weight.__node__])[0]
        self.yy: float = float(self._y @ self._y if self._w is None else (self._w * self._y) @ self._y)
        self.places = np.zeros(0, np.intp)
        self._chosen: Vector = np.zeros((rows, 0))
        self._q: Vector = np.zeros((0, 0))
        self.c: Vector = self._gradient(self._y)
        if not np.isfinite(self.c).all():
            raise ValueError(f"{label}: Input X contains NaN or infinity; remove or fill these rows first")

    def _gradient(self, residual: Vector) -> Vector:
        """`Xᵀr`, with means taken off: one reading of the data."""
        r = residual if self._w is None else residual * self._w
        (found,) = computed([(self.x.T @ wrap(Source(np.ascontiguousarray(r)))).__node__])
        return np.asarray(found) - self.means * r.sum()

    def _admit(self, places: NDArray[Any]) -> None:
        fresh = np.asarray(self.x[:, wrap(Source(np.ascontiguousarray(places)))])
        fresh = fresh - self.means[places]
        weighted = fresh if self._w is None else fresh * self._w[:, None]
        beside, corner = self._chosen.T @ weighted, fresh.T @ weighted
        self._q = np.block([[self._q, beside], [beside.T, corner]])
        self._chosen = np.concatenate([self._chosen, fresh], axis=1)
        self.places = np.concatenate([self.places, places])

    def minimise(self, l1: float, l2: float, coef: Vector, tol: float, most: int) -> int:
        """Coefficients with penalties (of all rows), in place; returns the sweeps."""
        aim = tol * max(float(np.abs(self.c).max(initial=0.0)), 1e-300)
        sweeps = 0
        for _ in range(_ROUNDS):
            inside = coef[self.places]
            q = self._q + np.diag(np.full(len(inside), l2)) if l2 else self._q
            if len(inside):
                lasso = np.full(len(inside), l1)
                sweeps += minimise_quadratic(q, self.c[self.places], lasso, inside, aim, most)
                coef[self.places] = inside
            gradient = -self._gradient(self._y - self._chosen @ inside)
            excess = np.abs(gradient) - l1
            excess[self.places] = 0.0
            if excess.max(initial=0.0) <= aim:
                return max(sweeps, 1)
            count = min(max(10, len(self.places)), int((excess > aim).sum()))
            self._admit(np.sort(np.argpartition(-excess, count - 1)[:count]))
        return max(sweeps, 1)

    def residual(self, l1: float, l2: float, coef: Vector) -> float:
        """How far from the minimum coefficients are, for rows of weight 1 together."""
        gradient = -self._gradient(self._y - self._chosen @ coef[self.places]) + l2 * coef
        return kkt_residual(gradient, coef, np.full(len(coef), l1)) / self.weight

    def gap(self, l1: float, l2: float, coef: Vector) -> float:
        """The duality gap of coefficients, for rows of weight 1 together."""
        r = self._y - self._chosen @ coef[self.places]
        weighted = r if self._w is None else r * self._w
        largest = float(np.abs(self._gradient(r) - l2 * coef).max(initial=0.0))
        share = l1 / largest if largest > l1 else 1.0
        value = 0.5 * (r @ weighted) * (1 + share**2) + l1 * np.abs(coef).sum() - share * (self._y @ weighted)
        return float(value + 0.5 * l2 * (1 + share**2) * coef @ coef) / self.weight


def products(design: Design, label: str) -> Gram | Working:
    """The products of all columns, or a working set where there are too many."""
    return Gram.of(design, label) if design.x.shape[1] <= WIDE else Working(design, label)
