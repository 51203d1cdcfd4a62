"""Where statements run: for each loop the values that it takes, and a mask where that is no box.

Loops that run step by step have a number, all others a range. Triangles, bands and guards make the ranges as
short as a box can be; what they leave out inside the box is masked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from linnet.loopnests.affine import Affine, conditions
from linnet.loopnests.language import Expr, Load, walk
from linnet.loopnests.statements import Statement
from linnet.loopnests.vectors import Vector, apply, binary, constant


class Prepared:
    """What a statement's conditions are, worked out once."""

    def __init__(self, statement: Statement) -> None:
        self.statement = statement
        self.limits: list[Affine] = [each for axis in statement.axes for each in axis.conditions()]
        self.tests: list[tuple[Expr, bool]] = []
        """Guards on loop variables that are no sums."""
        self.values: list[tuple[Expr, bool]] = []
        """Guards on values."""
        for guard, holds in statement.guards:
            found = conditions(guard, holds)
            if found is not None:
                self.limits.extend(found)
            elif any(isinstance(each, Load) for each in walk(guard)):
                self.values.append((guard, holds))
            else:
                self.tests.append((guard, holds))


@dataclass(frozen=True)
class Place:
    """The steps in which a statement runs at once."""

    fixed: Mapping[str, int]
    ranges: Mapping[str, range]
    """Ascending."""
    limits: tuple[Affine, ...]
    """Sums of variables that must not be negative, and are in part of the box."""
    strides: tuple[tuple[Affine, int], ...]
    """Sums that must be multiples of a number."""

    @cached_property
    def box(self) -> dict[str, tuple[int, int]]:
        """The ends of the ranges."""
        return {name: (each[0], each[-1]) for name, each in self.ranges.items()}

    def variable(self, name: str) -> Vector:
        """The values of a loop variable."""
        if name in self.fixed:
            return constant(self.fixed[name])
        run = self.ranges[name]
        return Vector(np.arange(run.start, run.stop, run.step), (name,), "i")

    def sum(self, one: Affine) -> Vector:
        """The values of a sum of variables."""
        made = constant(one.constant)
        for name, factor in one.terms:
            made = binary("+", made, binary("*", constant(factor), self.variable(name)))
        return made

    def positions(self, one: Affine) -> Vector:
        """The values of a sum of variables, as an array of NumPy's however long."""
        total: Any = np.int64(one.constant)
        for number, (name, factor) in enumerate(one.terms):
            run = self.ranges[name]
            shape = [-1 if number == axis else 1 for axis in range(len(one.terms))]
            total = total + factor * np.arange(run.start, run.stop, run.step).reshape(shape)
        return Vector(np.asarray(total), one.names)

    def mask(self) -> Vector | None:
        """Where inside the box the statement runs; None: everywhere."""
        parts = [binary(">=", self.sum(each), constant(0)) for each in self.limits]
        parts += [
            binary("==", binary("%", self.sum(each), constant(size)), constant(0))
            for each, size in self.strides
        ]
        return conjunction([Vector(each.data, each.axes) for each in parts])


def conjunction(parts: list[Vector]) -> Vector | None:
    """All of several conditions; None if there are none."""
    made: Vector | None = None
    for each in parts:
        made = each if made is None else apply(np.logical_and, made, each)
    return made


def place(prepared: Prepared, fixed: Mapping[str, int]) -> Place | None:
    """Where a statement runs, given the loops that run step by step; None: nowhere."""
    statement = prepared.statement
    ranges: dict[str, range] = {}
    box: dict[str, tuple[int, int]] = {}
    strides: list[tuple[Affine, int]] = []
    known = dict(fixed)
    for axis in statement.axes:
        start = axis.start.fixed(known)
        if abs(axis.step) != 1 and start.terms:
            own = Affine(((axis.name, 1),), 0).fixed(known)
            strides.append((own - start, abs(axis.step)))
        if axis.name in known:
            continue
        run = axis.run(box, known)
        if not run:
            return None
        ranges[axis.name] = run if run.step > 0 else run[::-1]
        box[axis.name] = (ranges[axis.name][0], ranges[axis.name][-1])
    limits = [each.fixed(known) for each in prepared.limits]
    for axis in statement.axes:  # what the fixed values leave out
        start = axis.start.fixed(known)
        if axis.name in known and not start.terms and (known[axis.name] - start.constant) % abs(axis.step):
            return None
    if not narrowed(limits, ranges, box):
        return None
    left = tuple(each for each in dict.fromkeys(limits) if each.terms and each.ends(box)[0] < 0)
    return Place(known, ranges, left, tuple(each for each in strides if each[0].terms))


def narrowed(limits: list[Affine], ranges: dict[str, range], box: dict[str, tuple[int, int]]) -> bool:
    """Make ranges as short as the limits allow; False if nothing is left."""
    for _ in range(4):
        changed = False
        for limit in limits:
            low, high = limit.ends(box)
            if high < 0:
                return False
            if low >= 0:
                continue
            for name, factor in limit.terms:
                # Without this variable the sum is at most `rest`: the variable makes up for what is missing.
                rest = high - factor * (box[name][1] if factor > 0 else box[name][0])
                run = ranges[name]
                if factor > 0:
                    least = -(rest // factor)
                    skipped = -((run[0] - least) // run.step) if least > run[0] else 0
                    shorter = run[skipped:]
                else:
                    most = rest // -factor
                    shorter = run[: max(0, (most - run[0]) // run.step + 1)] if most < run[-1] else run
                if not shorter:
                    return False
                if len(shorter) != len(run):
                    ranges[name], box[name], changed = shorter, (shorter[0], shorter[-1]), True
                    high = limit.ends(box)[1]
        if not changed:
            return True
    return True
