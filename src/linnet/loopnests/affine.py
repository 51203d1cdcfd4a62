"""Sums of loop variables with whole coefficients: what indices and bounds are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from linnet.loopnests.language import Binary, Compare, Const, Expr, Index, Logic, Unary

Box = Mapping[str, tuple[int, int]]
"""The least and the greatest value of each variable."""


@dataclass(frozen=True, slots=True)
class Affine:
    """`constant + Σ coefficient · variable`."""

    terms: tuple[tuple[str, int], ...]
    """Variables in alphabetical order; no coefficient is 0."""
    constant: int

    def __add__(self, other: Affine) -> Affine:
        found = dict(self.terms)
        for name, factor in other.terms:
            found[name] = found.get(name, 0) + factor
        return _made(found, self.constant + other.constant)

    def times(self, factor: int) -> Affine:
        """Every number multiplied."""
        return _made({name: each * factor for name, each in self.terms}, self.constant * factor)

    def __sub__(self, other: Affine) -> Affine:
        return self + other.times(-1)

    def plus(self, number: int) -> Affine:
        """With another constant."""
        return Affine(self.terms, self.constant + number)

    @property
    def names(self) -> tuple[str, ...]:
        """The variables."""
        return tuple(name for name, _ in self.terms)

    def fixed(self, values: Mapping[str, int]) -> Affine:
        """With some variables known."""
        if not any(name in values for name, _ in self.terms):
            return self
        rest = {name: factor for name, factor in self.terms if name not in values}
        known = sum(factor * values[name] for name, factor in self.terms if name in values)
        return _made(rest, self.constant + known)

    def ends(self, box: Box) -> tuple[int, int]:
        """Its least and greatest value in a box.

        >>> Affine((("i", 2), ("j", -1)), 1).ends({"i": (0, 3), "j": (0, 5)})
        (-4, 7)
        """
        low = high = self.constant
        for name, factor in self.terms:
            first, last = box[name]
            low += factor * (first if factor > 0 else last)
            high += factor * (last if factor > 0 else first)
        return low, high


def _made(terms: Mapping[str, int], constant: int) -> Affine:
    return Affine(tuple(sorted((name, factor) for name, factor in terms.items() if factor)), constant)


def affine(node: Expr) -> Affine | None:
    """An expression of constants and loop variables as a sum; None if it is none.

    >>> affine(Binary("-", Index("i"), Const(1)))
    Affine(terms=(('i', 1),), constant=-1)
    """
    match node:
        case Const(value) if isinstance(value, int):
            return Affine((), int(value))
        case Index(name):
            return Affine(((name, 1),), 0)
        case Unary("-" | "+" as op, operand):
            inner = affine(operand)
            return inner if inner is None or op == "+" else inner.times(-1)
        case Binary("+" | "-" | "*" as op, left, right):
            one, other = affine(left), affine(right)
            if one is None or other is None:
                return None
            if op != "*":
                return one + other if op == "+" else one - other
            if not one.terms:
                return other.times(one.constant)
            return one.times(other.constant) if not other.terms else None
        case _:
            return None


def conditions(node: Expr, holds: bool = True) -> list[Affine] | None:
    """A condition as sums that are not negative, all at once; None if it is no such condition.

    >>> conditions(Compare("<", Index("i"), Const(4)))
    [Affine(terms=(('i', -1),), constant=3)]
    """
    match node:
        case Unary("not", operand):
            return conditions(operand, not holds)
        case Logic(op, left, right) if (op == "and") == holds:
            one, other = conditions(left, holds), conditions(right, holds)
            return None if one is None or other is None else one + other
        case Compare(op, left, right):
            one, other = affine(left), affine(right)
            if one is None or other is None:
                return None
            if not holds:
                op = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}[op]
            below = other - one
            return {
                "<": [below.plus(-1)],
                "<=": [below],
                ">": [below.times(-1).plus(-1)],
                ">=": [below.times(-1)],
                "==": [below, below.times(-1)],
            }.get(op)
        case _:
            return None


def as_text(node: Expr, names: Mapping[str, str]) -> str | None:
    """A number made of loop variables, as isl reads it; None if isl cannot express it.

    >>> as_text(Binary("//", Index("i"), Const(2)), {"i": "s0"})
    'floor((1*s0 + (0))/2)'
    """
    plain = affine(node)
    if plain is not None:
        return f"({sum_text(plain, names)})"
    match node:
        case Const(value) if isinstance(value, int):
            return f"({int(value)})"
        case Index(name):
            return names[name]
        case Unary("-", operand):
            inner = as_text(operand, names)
            return None if inner is None else f"(-{inner})"
        case Binary("+" | "-" as op, left, right):
            one, other = as_text(left, names), as_text(right, names)
            return None if one is None or other is None else f"({one} {op} {other})"
        case Binary("*", left, right):
            one, other = as_text(left, names), as_text(right, names)
            known = isinstance(left, Const) or isinstance(right, Const)
            return None if one is None or other is None or not known else f"({one} * {other})"
        case Binary("//" | "%" as op, left, Const(value)) if isinstance(value, int) and value > 0:
            inner = as_text(left, names)
            if inner is None:
                return None
            return f"floor({inner}/{value})" if op == "//" else f"({inner} mod {value})"
        case _:
            return None


def condition_text(node: Expr, names: Mapping[str, str]) -> str | None:
    """A condition on loop variables, as isl reads it; None if isl cannot express it."""
    match node:
        case Unary("not", operand):
            inner = condition_text(operand, names)
            return None if inner is None else f"(not {inner})"
        case Logic(op, left, right):
            one, other = condition_text(left, names), condition_text(right, names)
            return None if one is None or other is None else f"({one} {op} {other})"
        case Compare(op, left, right):
            one, other = as_text(left, names), as_text(right, names)
            sign = {"==": "="}.get(op, op)
            return None if one is None or other is None else f"({one} {sign} {other})"
        case Const(value):
            return "(0 = 0)" if value else "(0 = 1)"
        case _:
            return None


def sum_text(one: Affine, names: Mapping[str, str]) -> str:
    """A sum as isl reads it."""
    return " + ".join([*(f"{factor}*{names[name]}" for name, factor in one.terms), f"({one.constant})"])
