"""Counting the points of integer sets without visiting them.

A statement's tasks are the integer points of a polyhedron. Summing out one variable at a
time turns "how many" into polynomials (Faulhaber's formula), with one case for each
choice of the tightest lower and upper bound:

    sum over k of 1, i+1 <= k <= j         ->  j - i
    sum over j of (j - i), i+1 <= j < N    ->  a polynomial in i
    sum over i of that, 0 <= i < N         ->  a number

Exact in rational arithmetic. Where a bound has no such form (a step that does not
divide out, a nonlinear bound) the loops are enumerated, all but the innermost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import islpy as isl
import numpy as np

from linnet.programs.enumeration import Enumerator
from linnet.programs.expressions import vectorised
from linnet.programs.sets import PARAM, SET, NotAffine, Sets
from linnet.programs.statements import Statement

Form = tuple[int, ...]
"""Coefficients of the variables, then the constant."""
Polynomial = dict[tuple[int, ...], Fraction]
"""From exponents of the variables to coefficients."""


class NoClosedForm(Exception):
    """The set cannot be summed symbolically."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A polynomial that counts for the points where all `rows` are not negative."""

    rows: tuple[Form, ...]
    polynomial: Polynomial


def count_tasks(sets: Sets, statement: Statement, sizes: Mapping[str, int], fallback: Enumerator) -> int:
    """How many tasks a statement has."""
    try:
        return count_set(fixed(sets, sets.domain(statement.number), sizes))
    except (NotAffine, NoClosedForm, isl.Error):
        return _enumerated(statement, fallback)


def fixed(sets: Sets, points: Any, sizes: Mapping[str, int]) -> Any:
    """A set at given sizes."""
    for k, name in enumerate(sets.sizes):
        points = points.fix_val(PARAM, k, sizes[name])
    return points.project_out(PARAM, 0, len(sets.sizes)) if sets.sizes else points


def count_set(points: Any) -> int:
    """Number of points of a bounded set without parameters."""
    total = Fraction(0)
    for piece in pieces(points, 0):
        if all(row[-1] >= 0 for row in piece.rows):
            total += piece.polynomial.get((), Fraction(0))
    assert total.denominator == 1
    return int(total)


def counts_along(points: Any, values: Any) -> Any:
    """For a set whose first axis is time: number of points at each of `values` (an int array)."""
    total = np.zeros(len(values), dtype=object)
    column = values.astype(object)
    for piece in pieces(points, 1):
        inside = np.ones(len(values), dtype=bool)
        for row in piece.rows:
            inside &= (row[0] * values + row[1]) >= 0
        here = column[inside]
        terms = [c * here**power for (power,), c in piece.polynomial.items()]
        if terms:
            total[inside] += sum(terms)
    return total.astype(np.int64)


def pieces(points: Any, keep: int) -> Iterator[Piece]:
    """Disjoint cases of the number of points, as polynomials in the first `keep` variables."""
    for basic in points.compute_divs().make_disjoint().get_basic_sets():
        rows = _rows(basic.remove_redundancies())
        width = len(rows[0]) - 1 if rows else basic.dim(SET)
        one: Polynomial = {(0,) * width: Fraction(1)}
        yield from _summed(tuple(rows), one, frozenset(range(keep, width)), keep)


def _rows(basic: Any) -> list[Form]:
    """Conditions of a basic set over its variables and its divisions; equalities as two rows."""
    made: list[Form] = []
    total, divisions = basic.dim(SET), basic.dim(isl.dim_type.div)
    for constraint in basic.get_constraints():
        form = [constraint.get_coefficient_val(SET, k).to_python() for k in range(total)]
        form += [
            constraint.get_coefficient_val(isl.dim_type.div, k).to_python() for k in range(divisions)
        ]
        form.append(constraint.get_constant_val().to_python())
        made.append(tuple(form))
        if constraint.is_equality():
            made.append(tuple(-v for v in form))
    # a division q = floor(e / d) is one of the variables, fixed by 0 <= e - d*q < d
    for k in range(divisions):
        division = basic.get_div(k)
        by = division.get_denominator_val().to_python()
        numerator = division.scale_val(division.get_denominator_val())
        form = [numerator.get_coefficient_val(isl.dim_type.in_, j).to_python() for j in range(total)]
        form += [
            numerator.get_coefficient_val(isl.dim_type.div, j).to_python() for j in range(divisions)
        ]
        form.append(numerator.get_constant_val().to_python())
        low = list(form)
        low[total + k] -= by
        high = [-v for v in low]
        high[-1] += by - 1
        made += [tuple(low), tuple(high)]
    if not made and total + divisions == 0:
        return []
    return made


def _summed(rows: tuple[Form, ...], value: Polynomial, left: frozenset[int], keep: int) -> Iterator[Piece]:
    """Sum `value` over the variables `left`, innermost first."""
    tight = _tightened(rows)
    if tight is None:
        return
    if not left:
        final = tuple(tuple(row[k] for k in (*range(keep), -1)) for row in tight)
        yield Piece(final, {powers[:keep]: c for powers, c in value.items()})
        return
    var, lower, upper, rest = _choose(tight, left)
    inner = left - {var}
    for a, b in product(range(len(lower)), range(len(upper))):
        low, high = lower[a], upper[b]
        conditions = list(rest)
        conditions += [_minus(low, other, int(k < a)) for k, other in enumerate(lower) if k != a]
        conditions += [_minus(other, high, int(k < b)) for k, other in enumerate(upper) if k != b]
        conditions.append(_minus(high, low, 0))
        yield from _summed(tuple(conditions), _sum(value, var, low, high), inner, keep)


def _choose(rows: tuple[Form, ...], left: frozenset[int]) -> tuple[int, list[Form], list[Form], list[Form]]:
    """A variable all of whose bounds are integral, with its bounds; the one with fewest cases."""
    best: tuple[int, int, list[Form], list[Form], list[Form]] | None = None
    for var in sorted(left, reverse=True):
        lower: list[Form] = []
        upper: list[Form] = []
        rest: list[Form] = []
        for row in rows:
            factor = row[var]
            if factor == 0:
                rest.append(row)
            elif abs(factor) == 1:
                bound = tuple(-factor * v if k != var else 0 for k, v in enumerate(row))
                (lower if factor > 0 else upper).append(bound)
            else:
                break
        else:
            cases = len(lower) * len(upper)
            if cases and (best is None or cases < best[0]):
                best = (cases, var, lower, upper, rest)
    if best is None:
        raise NoClosedForm
    return best[1:]


def _tightened(rows: tuple[Form, ...]) -> tuple[Form, ...] | None:
    """Rows divided by common factors and each once; None when one of them never holds."""
    kept: dict[Form, int] = {}
    for row in rows:
        factor = int(np.gcd.reduce([abs(v) for v in row[:-1]])) if len(row) > 1 else 0
        if factor == 0:
            if row[-1] < 0:
                return None
            continue
        direction = tuple(v // factor for v in row[:-1])
        constant = row[-1] // factor
        kept[direction] = min(kept.get(direction, constant), constant)
    return tuple((*direction, constant) for direction, constant in kept.items())


def _minus(left: Form, right: Form, strict: int) -> Form:
    """Row that says left - right >= strict."""
    made = [a - b for a, b in zip(left, right, strict=True)]
    made[-1] -= strict
    return tuple(made)


def _sum(value: Polynomial, var: int, low: Form, high: Form) -> Polynomial:
    """Sum of `value` over `var` from `low` to `high` (linear forms)."""
    below = (*low[:-1], low[-1] - 1)
    degrees = {powers[var] for powers in value}
    spans = {d: _add(_at(d, high), _at(d, below), Fraction(-1)) for d in degrees}
    result: Polynomial = {}
    for powers, factor in value.items():
        rest = tuple(0 if k == var else p for k, p in enumerate(powers))
        for others, c in spans[powers[var]].items():
            key = tuple(a + b for a, b in zip(rest, others, strict=True))
            result[key] = result.get(key, Fraction(0)) + factor * c
    return {k: c for k, c in result.items() if c}


def _at(degree: int, form: Form) -> Polynomial:
    """1^degree + ... + n^degree at n = form."""
    width = len(form) - 1
    result: Polynomial = {}
    power: Polynomial = {(0,) * width: Fraction(1)}
    linear: Polynomial = {tuple(int(j == k) for j in range(width)): Fraction(v) for k, v in enumerate(form[:-1]) if v}
    if form[-1]:
        linear[(0,) * width] = Fraction(form[-1])
    for coefficient in _faulhaber(degree):
        if coefficient:
            result = _add(result, power, coefficient)
        power = _times(power, linear)
    return result


def _add(left: Polynomial, right: Polynomial, factor: Fraction) -> Polynomial:
    made = dict(left)
    for powers, c in right.items():
        made[powers] = made.get(powers, Fraction(0)) + factor * c
    return made


def _times(left: Polynomial, right: Polynomial) -> Polynomial:
    made: Polynomial = {}
    for a, x in left.items():
        for b, y in right.items():
            key = tuple(i + j for i, j in zip(a, b, strict=True))
            made[key] = made.get(key, Fraction(0)) + x * y
    return made


@cache
def _faulhaber(degree: int) -> tuple[Fraction, ...]:
    """Coefficients of the polynomial n -> 1^degree + ... + n^degree, from n^0 up."""
    # solve S(n) - S(n - 1) = n^degree from the highest power down
    wanted = [Fraction(0)] * (degree + 1) + [Fraction(0)]
    wanted[degree] = Fraction(1)
    made = [Fraction(0)] * (degree + 2)
    for k in range(degree + 1, 0, -1):
        made[k] = wanted[k - 1] / k
        for j in range(k - 1):  # n^k - (n-1)^k contributes to lower powers
            wanted[j] -= made[k] * _binomial(k, j) * (-1) ** (k - j + 1)
    return tuple(made)


def _binomial(n: int, k: int) -> int:
    made = 1
    for i in range(k):
        made = made * (n - i) // (i + 1)
    return made


def _enumerated(statement: Statement, enumerator: Enumerator) -> int:
    """Count by listing all loops but the innermost, whose length is taken."""
    loops: Sequence[Any] = statement.loops
    if not loops or loops[-1].guards:
        return len(enumerator.columns(loops, statement.guards)[""])
    table = enumerator.columns(loops[:-1], statement.guards)
    if not len(table[""]):
        return 0
    values = {**enumerator.sizes, **table}
    bounds = (loops[-1].start, loops[-1].stop, loops[-1].step)
    start, stop, step = (np.asarray(vectorised(e, values, enumerator.tables), dtype=np.int64) for e in bounds)
    lengths = np.maximum(0, -((start - stop) // step))
    return int(np.broadcast_to(lengths, (len(table[""]),)).sum())
