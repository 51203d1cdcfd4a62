"""Runs a nest: every statement becomes an expression of lazy arrays, for all steps that may run at once.

Nothing the user sees changes before the whole nest is built: `Machine.arrays` holds new versions of the
arrays, which the caller takes over in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from linnet.arrays.elements.core import ArrayBase, wrap
from linnet.loopnests import storing
from linnet.loopnests.binding import MISSING, NUMBERS
from linnet.loopnests.language import (
    Binary,
    Call,
    Choose,
    Compare,
    Const,
    Expr,
    Index,
    Load,
    Logic,
    Unary,
    Viewed,
)
from linnet.loopnests.loading import Region, load, region
from linnet.loopnests.ordering import AtOnce, Part, StepByStep
from linnet.loopnests.places import Place, Prepared, conjunction, place
from linnet.loopnests.refusing import Origin
from linnet.loopnests.scalar_functions import known_function
from linnet.loopnests.statements import Axis, Nest, Statement
from linnet.loopnests.storages import StoredArray
from linnet.loopnests.vectors import (
    DividedByZero,
    Vector,
    apply,
    binary,
    call,
    constant,
    logic,
    plain_as,
    truth,
    unary,
    where,
    zero,
)
from linnet.loopnests.whole_numbers import Overflow
from linnet.programs.grammar import At
from linnet.sparse_arrays.array import SparseArray


@dataclass(slots=True)
class Cells:
    """The cells of a scalar: one for each step of the loops it belongs to."""

    vector: Vector
    """Its axes are not used; `plain` is that of all values."""
    offsets: tuple[int, ...]


class Machine:
    """The state of a nest that is being built."""

    def __init__(
        self, nest: Nest, objects: Mapping[str, Any], functions: Mapping[str, Any], origin: Origin,
        starts: Callable[[str], Any], parts: tuple[Part, ...],
        swept: Callable[[Machine, StepByStep], bool] | None = None,
    ) -> None:  # fmt: skip
        """`swept` runs an outermost loop in a way of its own, if it can."""
        self.swept = swept
        self.parts: tuple[Part, ...] = parts
        self.scalars: dict[str, tuple[str, ...]] = kept_axes(nest, parts)
        self.nest: Nest = nest
        self.functions: Mapping[str, Any] = functions
        self.origin: Origin = origin
        self.starts = starts
        self.arrays: dict[str, Any] = {
            key: each if isinstance(each, SparseArray | StoredArray) else wrap(each.__node__)
            for key, each in objects.items()
        }
        self.cells: dict[str, Cells] = {}
        self._prepared: dict[int, Prepared] = {}
        self._whole: dict[str, range] = {}
        for statement in nest.statements:
            for axis in statement.axes:
                if axis.name not in self._whole:
                    self._whole[axis.name] = axis.run(
                        {k: (r[0], r[-1]) if r else (0, 0) for k, r in self._whole.items()}, {}
                    )

    # ---- the order

    def run(self, parts: tuple[Part, ...] | None = None, fixed: Mapping[str, int] | None = None) -> None:
        """Parts of a nest, one after another; all of them if none are given."""
        fixed = fixed or {}
        for part in self.parts if parts is None else parts:
            match part:
                case AtOnce(statement):
                    self.at_once(statement, fixed)
                case StepByStep(axis, body):
                    if not fixed and self.swept is not None and self.swept(self, part):
                        continue
                    for value in self._values(axis, fixed):
                        self.run(body, {**fixed, axis.name: value})

    def steps_of(self, axis: Axis) -> range:
        """The values of an outermost loop."""
        return self._values(axis, {})

    def _values(self, axis: Axis, fixed: Mapping[str, int]) -> range:
        box = {name: (run[0], run[-1]) for name, run in self._whole.items() if run}
        return axis.run(box, fixed)

    def at_once(self, statement: Statement, fixed: Mapping[str, int]) -> None:
        """A statement for all steps of the loops that have no number."""
        prepared = self._prepared.get(statement.number)
        if prepared is None:
            prepared = self._prepared[statement.number] = Prepared(statement)
        own = {axis.name for axis in statement.axes}
        where_ = place(prepared, {name: value for name, value in fixed.items() if name in own})
        if where_ is None:
            return
        try:
            storing.store(Step(self, statement, prepared, where_))
        except (Overflow, OverflowError):
            self.refuse(
                statement, "whole numbers here do not fit 64 bits, or the dtype of the array",
                "compute with floats: write 1.0 instead of 1, or use a wider dtype", statement.at,
            )  # fmt: skip
        except DividedByZero:
            self.refuse(
                statement, "numbers made of loop variables are divided by zero in some step",
                "start the loop where the divisor is not zero", statement.at,
            )  # fmt: skip

    def refuse(self, statement: Statement, message: str, fix: str, at: At | None) -> NoReturn:
        """Raise a `LoopError`."""
        self.origin.refuse(message, fix, at or statement.at)

    # ---- cells of scalars

    def cell_shape(self, key: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Shape and offsets of the cells of a scalar."""
        runs = [self._whole[name] for name in self.scalars[key]]
        ends = [(min(run[0], run[-1]), max(run[0], run[-1])) if run else (0, -1) for run in runs]
        return tuple(last - first + 1 for first, last in ends), tuple(first for first, _ in ends)

    def cells_of(self, key: str, at: At | None) -> Cells:
        """The cells as they are now."""
        found = self.cells.get(key)
        if found is None:
            name = key[1:]
            start = MISSING if self.scalars[key] else self.starts(name)
            if start is MISSING or not isinstance(start, (ArrayBase, *NUMBERS)):
                self.origin.refuse(
                    f"{name!r} is read before it is assigned",
                    "assign it before the loops, or first in the loop",
                    at,
                )
            vector = Vector(start) if isinstance(start, ArrayBase) else constant(start)
            found = self.cells[key] = Cells(vector, ())
        return found


def kept_axes(nest: Nest, parts: tuple[Part, ...]) -> dict[str, tuple[str, ...]]:
    """The loops that each scalar needs cells for: not those around all its statements that run step by step,
    since no step sees what another left."""
    around: dict[int, frozenset[StepByStep]] = {}

    def walk(some: tuple[Part, ...], stepped: frozenset[StepByStep]) -> None:
        for part in some:
            if isinstance(part, AtOnce):
                around[part.statement.number] = stepped
            else:
                walk(part.body, stepped | {part})

    walk(parts, frozenset())
    found: dict[str, tuple[str, ...]] = {}
    for key, axes in nest.scalars.items():
        uses = [
            around[each.number] for each in nest.statements
            if any(one.array == key for one in (*each.writes, *each.reads)) and each.number in around
        ]  # fmt: skip
        # The same loop may run twice, for parts after each other: then cells must last from one to the other.
        common = {part.axis.name for part in (frozenset.intersection(*uses) if uses else ())}
        found[key] = tuple(name for name in axes if name not in common)
    return found


@dataclass(slots=True)
class Step:
    """A statement while it is built."""

    machine: Machine
    statement: Statement
    prepared: Prepared
    place: Place
    inside: tuple[Vector, ...] = ()
    """Where the branches of conditional expressions around what is evaluated are taken."""
    guarding: bool = False
    """Whether a guard of the statement is evaluated: the guards after it do not protect it."""

    def evaluate(self, node: Expr) -> Vector:
        """The values of an expression."""
        match node:
            case Const(value):
                return constant(value)
            case Index(name):
                return self.place.variable(name)
            case Load():
                return self.load(node)
            case Viewed(_, value):
                return self.evaluate(value)
            case Unary(op, operand):
                return unary(op, self.evaluate(operand))
            case Binary(op, left, right):
                return binary(op, self.evaluate(left), self._divisor(op, self.evaluate(right)))
            case Compare(op, left, right):
                return binary(op, self.evaluate(left), self.evaluate(right))
            case Logic(op, left, right):
                first = self.evaluate(left)
                return logic(op, first, self._within(first, op == "and").evaluate(right))
            case Choose(condition, yes, no):
                test = self.evaluate(condition)
                chosen = [
                    self._within(test, holds).evaluate(each) for each, holds in ((yes, True), (no, False))
                ]
                return where(test, *chosen)
            case Call(word, arguments):
                function = self.machine.functions[word]
                known = known_function(function, len(arguments))
                assert known is not None
                if known.ufunc == "int" or known.plain == "i":
                    return call(known.ufunc, known.plain, [self._protected(each) for each in arguments])
                return call(known.ufunc, known.plain, [self.evaluate(each) for each in arguments], function)
            case _:
                raise AssertionError(node)

    def _within(self, test: Vector, holds: bool) -> Step:
        """The same step inside a branch that is taken where a test holds, or where it does not."""
        test = Vector(np.asarray(test.data)) if test.is_number else test
        one = truth(test) if holds else apply(np.logical_not, truth(test))
        return replace(self, inside=(*self.inside, one))

    def _divisor(self, op: str, right: Vector) -> Vector:
        """Whole numbers made of loop variables, with 1 where guards on loop variables keep a division from
        being done."""
        if op not in ("/", "//", "%") or not right.plain or isinstance(right.data, ArrayBase):
            return right
        if np.all(right.data):
            return right
        masks = self._masks(known_now=True)
        known = conjunction(masks)
        return right if known is None else where(known, right, plain_as(constant(1), right.plain))

    def _protected(self, node: Expr) -> Vector:
        """Fractions that will become whole numbers, with 0 where nobody asks for them: they might be none."""
        found = self.evaluate(node)
        if found.dtype.kind != "f" or found.is_number:
            return found
        mask = conjunction(self._masks(known_now=not isinstance(found.data, ArrayBase)))
        return found if mask is None else where(mask, found, zero(found))

    def region(self, cell: Load) -> Region:
        """Which cells an access means in this place."""
        if cell.array in self.machine.nest.scalars:
            shape, offsets = self.machine.cell_shape(cell.array)
            own = self.machine.scalars[cell.array]
            indices = tuple(each for each in cell.indices if isinstance(each, Index) and each.name in own)
            return region(indices, shape, self.place, self.position, offsets)
        return region(cell.indices, self.machine.nest.arrays[cell.array], self.place, self.position)

    def position(self, index: Expr, length: int) -> Vector:
        """Positions that are no sum of loop variables; where the statement does not run they are 0, if they
        are computed or beyond the axis somewhere."""
        found = self.evaluate(index)
        if found.dtype.kind not in "iu":
            self.machine.refuse(
                self.statement, f"an index has the dtype {found.dtype}; indices are whole numbers",
                "convert it: int(...), or use an array of integers", index.at,
            )  # fmt: skip
        computed = isinstance(found.data, ArrayBase)
        if not computed and np.all((np.asarray(found.data) >= -length) & (np.asarray(found.data) < length)):
            return found
        mask = conjunction(self._masks(known_now=not computed))
        if mask is not None:
            found = where(mask, found, zero(found))
        return found

    def load(self, cell: Load) -> Vector:
        """The values of an access."""
        if cell.array in self.machine.nest.scalars:
            cells = self.machine.cells_of(cell.array, cell.at)
            if not self.machine.scalars[cell.array]:
                return cells.vector
            data, axes = load(cells.vector.data, self.region(cell))
            return Vector(data, axes, cells.vector.plain, cells.vector.limit)
        data, axes = load(self.machine.arrays[cell.array], self.region(cell))
        return Vector(data, axes)

    def value_mask(self) -> Vector | None:
        """Where the guards on values hold."""
        return conjunction(self._guards((*self.prepared.tests, *self.prepared.values)))

    def _guards(self, guards: Iterable[tuple[Expr, bool]]) -> list[Vector]:
        """Where each guard holds; the earlier ones protect the later ones."""
        found: list[Vector] = []
        for guard, holds in guards:
            one = truth(replace(self, inside=(*self.inside, *found), guarding=True).evaluate(guard))
            found.append(one if holds else apply(np.logical_not, one))
        return found

    def _masks(self, known_now: bool) -> list[Vector]:
        """All that says whether what is evaluated is needed; on request only what is known now."""
        found = [each for each in (self.place.mask(), *self.inside) if each is not None]
        if not self.guarding:
            found += self._guards(self.prepared.tests)
            found += [] if known_now else self._guards(self.prepared.values)
        return [each for each in found if not (known_now and isinstance(each.data, ArrayBase))]
