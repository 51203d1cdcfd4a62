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
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import product
from math import comb, gcd
from typing import Any

import islpy as isl
import numpy as np

from linnet.programs.columns import vectorised
from linnet.programs.enumeration import Enumerator, TooManyRows
from linnet.programs.integer_sets import PARAM, SET, NotAffine, Sets, greatest
from linnet.programs.statements import Statement

Form = tuple[int, ...]
"""Coefficients of the variables, then the constant."""
Polynomial = dict[tuple[int, ...], Fraction]
"""From exponents of the variables to coefficients."""


_FEW = 5_000
"""Up to this many rows listing is faster than summing polynomials."""


class NoClosedForm(Exception):
    """The set cannot be summed symbolically."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A case: the number of points is `polynomial(x)` where all `rows` are not negative at x.

    x stands for the time: x = (link[0] * time + link[1]) / link[2], where that is an integer.
    Without a time, x does not occur.
    """

    rows: tuple[tuple[int, int], ...]
    polynomial: dict[int, Fraction]
    link: tuple[int, int, int]


def count_tasks(
    sets: Sets, statements: Sequence[Statement], sizes: Mapping[str, int], enumerator: Enumerator
) -> tuple[int, ...]:
    """How many tasks each statement has."""
    few = replace(enumerator, most=_FEW)
    return tuple(_tasks(sets, statement, sizes, few, enumerator) for statement in statements)


def _tasks(
    sets: Sets, statement: Statement, sizes: Mapping[str, int], few: Enumerator, enumerator: Enumerator
) -> int:
    try:
        return _enumerated(statement, few)
    except TooManyRows:
        pass
    try:
        return count_set(fixed(sets, sets.domain(statement.number), sizes))
    except (NotAffine, NoClosedForm, isl.Error):
        return _enumerated(statement, enumerator)


def fixed(sets: Sets, points: Any, sizes: Mapping[str, int]) -> Any:
    """A set at given sizes."""
    sets.grant()
    for k, name in enumerate(sets.sizes):
        points = points.fix_val(PARAM, k, sizes[name])
    return points.project_out(PARAM, 0, len(sets.sizes)) if sets.sizes else points


def extent(
    sets: Sets, statement: int, kind: str, slot: int, sizes: Mapping[str, int]
) -> tuple[int, ...] | None:
    """One more than the greatest tile index of an access, along each axis; None if it is not affine."""
    try:
        tiles = fixed(sets, sets.access(statement, kind, slot).range(), sizes)
        if tiles.is_empty():
            return (0,) * tiles.dim(SET)
        return tuple(greatest(tiles, k) + 1 for k in range(tiles.dim(SET)))
    except (NotAffine, isl.Error):
        return None


def count_set(points: Any) -> int:
    """Number of points of a bounded set without parameters."""
    total = sum((p.polynomial.get(0, Fraction(0)) for p in _pieces(points, None)), Fraction(0))
    assert total.denominator == 1
    return int(total)


def counts_along(points: Any, times: Any) -> Any:
    """For a set whose first axis is time: number of points at each of `times` (an int array)."""
    total = np.zeros(len(times), dtype=object)
    for piece in _pieces(points, 0):
        scale, shift, by = piece.link
        top = scale * times + shift
        inside = top % by == 0
        x = top // by
        for factor, constant in piece.rows:
            inside &= (factor * x + constant) >= 0
        here = x[inside].astype(object)
        if len(here):
            total[inside] += sum(c * here**power for power, c in piece.polynomial.items())
    return total.astype(np.int64)


def _pieces(points: Any, time: int | None) -> Iterator[Piece]:
    """Disjoint cases of the number of points, as polynomials in the axis `time`."""
    for basic in points.compute_divs().make_disjoint().get_basic_sets():
        width = basic.dim(SET) + basic.dim(isl.dim_type.div)
        one: Polynomial = {(0,) * width: Fraction(1)}
        left = frozenset(range(width)) - {time}
        yield from _summed(tuple(_rows(basic.remove_redundancies())), one, left, time, (1, 0, 1))


def _rows(basic: Any) -> list[Form]:
    """Conditions of a basic set over its variables and its divisions; equalities as two rows."""
    rows: list[Form] = []
    total, divisions = basic.dim(SET), basic.dim(isl.dim_type.div)
    for constraint in basic.get_constraints():
        form = [constraint.get_coefficient_val(SET, k).to_python() for k in range(total)]
        form += [constraint.get_coefficient_val(isl.dim_type.div, k).to_python() for k in range(divisions)]
        form.append(constraint.get_constant_val().to_python())
        rows.append(tuple(form))
        if constraint.is_equality():
            rows.append(tuple(-v for v in form))
    # a division q = floor(e / d) is one of the variables, fixed by 0 <= e - d*q < d
    for k in range(divisions):
        division = basic.get_div(k)
        by = division.get_denominator_val().to_python()
        numerator = division.scale_val(division.get_denominator_val())
        form = [numerator.get_coefficient_val(isl.dim_type.in_, j).to_python() for j in range(total)]
        form += [numerator.get_coefficient_val(isl.dim_type.div, j).to_python() for j in range(divisions)]
        form.append(numerator.get_constant_val().to_python())
        low = list(form)
        low[total + k] -= by
        high = [-v for v in low]
        high[-1] += by - 1
        rows += [tuple(low), tuple(high)]
    if not rows and total + divisions == 0:
        return []
    return rows


def _summed(
    rows: tuple[Form, ...],
    value: Polynomial,
    left: frozenset[int],
    time: int | None,
    link: tuple[int, int, int],
) -> Iterator[Piece]:
    """Sum `value` over the variables `left`, those with the fewest cases first."""
    tight = _tightened(rows)
    if tight is None:
        return
    if not left:
        conditions = tuple((row[time], row[-1]) for row in tight) if time is not None else ()
        polynomial = {powers[time] if time is not None else 0: c for powers, c in value.items()}
        yield Piece(conditions, polynomial, link)
        return
    linked = _linked(tight, left, time) if time is not None else None
    if linked is not None and time is not None:
        # c*x + a*time + b == 0 with a = 1 or -1: x takes the place of time
        x, c, a, b = linked
        form = tuple(
            -a * c if k == x else -a * b if k == len(tight[0]) - 1 else 0 for k in range(len(tight[0]))
        )
        changed = tuple(_replaced(row, time, form) for row in tight)
        p, q, d = link
        yield from _summed(changed, value, left - {x}, x, (-a * p, -a * q - b * d, c * d))
        return
    var, lower, upper, rest = _choose(tight, left)
    inner = left - {var}
    for a, b in product(range(len(lower)), range(len(upper))):
        low, high = lower[a], upper[b]
        conditions = list(rest)
        conditions += [_minus(low, other, int(k < a)) for k, other in enumerate(lower) if k != a]
        conditions += [_minus(other, high, int(k < b)) for k, other in enumerate(upper) if k != b]
        conditions.append(_minus(high, low, 0))
        yield from _summed(tuple(conditions), _sum(value, var, low, high), inner, time, link)


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
        *factors, constant = row
        factor = gcd(*factors)
        if factor == 0:
            if constant < 0:
                return None
            continue
        direction = tuple(v // factor for v in factors)
        constant = constant // factor
        kept[direction] = min(kept.get(direction, constant), constant)
    for direction, constant in kept.items():
        against = kept.get(tuple(-v for v in direction))
        if against is not None and constant + against < 0:
            return None
    return tuple((*direction, constant) for direction, constant in kept.items())


def _minus(left: Form, right: Form, strict: int) -> Form:
    """Row that says left - right >= strict."""
    row = [a - b for a, b in zip(left, right, strict=True)]
    row[-1] -= strict
    return tuple(row)


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


def _linked(rows: tuple[Form, ...], left: frozenset[int], time: int) -> tuple[int, int, int, int] | None:
    """(x, c, a, b) of an equation c*x + a*time + b == 0 with |c| > 1 and |a| == 1."""
    for row in rows:
        inside = [k for k in left if row[k]]
        fits = len(inside) == 1 and abs(row[inside[0]]) > 1 and abs(row[time]) == 1
        if fits and tuple(-v for v in row) in rows:
            return inside[0], row[inside[0]], row[time], row[-1]
    return None


def _replaced(row: Form, var: int, form: Form) -> Form:
    """`row` with a variable replaced by a form."""
    return tuple(
        (0 if k == var else v) + row[var] * f for k, (v, f) in enumerate(zip(row, form, strict=True))
    )


def _as_polynomial(form: Form) -> Polynomial:
    width = len(form) - 1
    polynomial: Polynomial = {
        tuple(int(j == k) for j in range(width)): Fraction(v) for k, v in enumerate(form[:-1]) if v
    }
    if form[-1]:
        polynomial[(0,) * width] = Fraction(form[-1])
    return polynomial


def _at(degree: int, form: Form) -> Polynomial:
    """1^degree + ... + n^degree at n = form."""
    result: Polynomial = {}
    power: Polynomial = {(0,) * (len(form) - 1): Fraction(1)}
    linear = _as_polynomial(form)
    for coefficient in _faulhaber(degree):
        if coefficient:
            result = _add(result, power, coefficient)
        power = _times(power, linear)
    return result


def _add(left: Polynomial, right: Polynomial, factor: Fraction) -> Polynomial:
    total = dict(left)
    for powers, c in right.items():
        total[powers] = total.get(powers, Fraction(0)) + factor * c
    return total


def _times(left: Polynomial, right: Polynomial) -> Polynomial:
    product: Polynomial = {}
    for a, x in left.items():
        for b, y in right.items():
            key = tuple(i + j for i, j in zip(a, b, strict=True))
            product[key] = product.get(key, Fraction(0)) + x * y
    return product


@cache
def _faulhaber(degree: int) -> tuple[Fraction, ...]:
    """Coefficients of the polynomial n -> 1^degree + ... + n^degree, from n^0 up."""
    # solve S(n) - S(n - 1) = n^degree from the highest power down
    wanted = [Fraction(0)] * (degree + 1) + [Fraction(0)]
    wanted[degree] = Fraction(1)
    coefficients = [Fraction(0)] * (degree + 2)
    for k in range(degree + 1, 0, -1):
        coefficients[k] = wanted[k - 1] / k
        for j in range(k - 1):  # n^k - (n-1)^k contributes to lower powers
            wanted[j] -= coefficients[k] * comb(k, j) * (-1) ** (k - j + 1)
    return tuple(coefficients)


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
