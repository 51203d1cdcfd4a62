"""A nest when it runs: a list of statements, each with its loops, its guards and the cells it touches.

Names are gone here: arrays are known by keys, scalars are cells of arrays of their own, numbers are
numbers. `binding` makes these; `dependences`, `ordering` and `running` work on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from linnet.loopnests.affine import Affine, Box, sum_text
from linnet.loopnests.language import Expr, Load, walk
from linnet.programs.grammar import At


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """A loop: its variable runs from below to above all of the bounds."""

    name: str
    """Its variable, under a name that no other loop of the nest has."""
    written: str
    """As the user calls it."""
    at_least: tuple[Affine, ...]
    at_most: tuple[Affine, ...]
    start: Affine
    """What it is counted from; only its remainder matters where `step` is not 1 or -1."""
    step: int
    wave: bool
    at: At | None

    def conditions(self) -> list[Affine]:
        """Sums of variables that are not negative inside the loop."""
        own = Affine(((self.name, 1),), 0)
        return [*(own - each for each in self.at_least), *(each - own for each in self.at_most)]

    def text(self, names: dict[str, str]) -> list[str]:
        """Its conditions, as isl reads them."""
        found = [f"{sum_text(each, names)} >= 0" for each in self.conditions()]
        if abs(self.step) != 1:
            own = Affine(((self.name, 1),), 0) - self.start
            found.append(f"({sum_text(own, names)}) mod {abs(self.step)} = 0")
        return found

    def run(self, box: Box, fixed: Mapping[str, int]) -> range:
        """Its values in order, for any values of the loops around it that the box allows."""
        least = max(each.fixed(fixed).ends(box)[0] for each in self.at_least)
        most = min(each.fixed(fixed).ends(box)[1] for each in self.at_most)
        start = self.start.fixed(fixed)
        step = self.step if not start.terms else (1 if self.step > 0 else -1)
        size = abs(step)
        if step > 0:
            return range(least + (start.constant - least) % size, most + 1, step)
        return range(most - (most - start.constant) % size, least - 1, step)


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """One assignment, or update by a monoid, of a cell."""

    number: int
    """Its place in the text of the nest."""
    axes: tuple[Axis, ...]
    """The loops around it, outermost first."""
    guards: tuple[tuple[Expr, bool], ...]
    """Conditions, and what they must be."""
    target: Load
    monoid: str | None
    """None: an assignment."""
    value: Expr
    at: At | None
    label: Expr | None = None
    """Of an arg-min: what `second` becomes."""
    second: Load | None = None

    @property
    def writes(self) -> tuple[Load, ...]:
        """The cells it writes."""
        return (self.target,) if self.second is None else (self.target, self.second)

    @property
    def own(self) -> tuple[Load, ...]:
        """The cells it reads because it updates them."""
        return () if self.monoid is None else self.writes

    @property
    def reads(self) -> tuple[Load, ...]:
        """The other cells it reads."""
        expressions = [self.value, *(guard for guard, _ in self.guards), *self.target.indices]
        if self.label is not None and self.second is not None:
            expressions += [self.label, *self.second.indices]
        return tuple(each for one in expressions for each in walk(one) if isinstance(each, Load))


@dataclass(frozen=True, slots=True, eq=False)
class Nest:
    """Statements in the order of the text."""

    statements: tuple[Statement, ...]
    arrays: dict[str, tuple[int, ...]]
    """Shapes of arrays by their keys."""
    written: dict[str, str]
    """What the user calls them."""
    scalars: dict[str, tuple[str, ...]]
    """Keys of scalars, with the loops (by variable) that each has a cell for."""
