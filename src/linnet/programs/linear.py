"""Linear forms over the names of a generated function.

    2*t0 - p0 + _P2[t1] + 3

A form is a sum of atoms with integer factors. An atom is a variable, or a piece that is
not linear (opaque), kept as the expression it came from together with the variables it
depends on. An opaque piece stops being an obstacle as soon as its variables are known,
which is how equations like `i + 2**level == v` are solved: `level` first, then `i`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

from linnet.programs.expressions import code, names
from linnet.programs.grammar import Binary, Expr, Int, Name, Unary
from linnet.records import record

MAX_ROWS = 48


@record
class Atom:
    """A variable, or an opaque piece of an expression."""

    text: str
    """Python text; two atoms are the same when their text is."""
    depends: frozenset[str] = field(compare=False)
    expr: Expr = field(compare=False)


@record
class Linear:
    """`sum(factor * atom) + constant`."""

    terms: Mapping[Atom, int]
    constant: int = 0

    def __add__(self, other: Linear) -> Linear:
        terms = dict(self.terms)
        for atom, factor in other.terms.items():
            terms[atom] = terms.get(atom, 0) + factor
        return Linear({a: f for a, f in terms.items() if f}, self.constant + other.constant)

    def __sub__(self, other: Linear) -> Linear:
        return self + other.times(-1)

    def times(self, factor: int) -> Linear:
        if factor == 0:
            return Linear({})
        return Linear({a: f * factor for a, f in self.terms.items()}, self.constant * factor)

    def plus(self, constant: int) -> Linear:
        return Linear(self.terms, self.constant + constant)

    def without(self, atom: Atom) -> Linear:
        return Linear({a: f for a, f in self.terms.items() if a != atom}, self.constant)

    @property
    def depends(self) -> frozenset[str]:
        return frozenset[str]().union(*(a.depends for a in self.terms))

    def text(self) -> str:
        """Python text of the form, in parentheses where it is more than one piece."""
        pieces = _pieces(self.terms.items(), self.constant)
        return pieces if _is_single(pieces) else f"({pieces})"

    def compare(self, op: str) -> str:
        """Python text of `self op 0`, negative terms on the right (comparisons cost less than sums)."""
        left = _pieces([(a, f) for a, f in self.terms.items() if f > 0], max(self.constant, 0))
        right = _pieces([(a, -f) for a, f in self.terms.items() if f < 0], max(-self.constant, 0))
        return f"{left} {op} {right}"

    @property
    def key(self) -> tuple[tuple[tuple[str, int], ...], int]:
        """Equal for equal forms."""
        return tuple(sorted((a.text, f) for a, f in self.terms.items())), self.constant


def variable(name: str) -> Linear:
    """The form that is one variable."""
    return Linear({Atom(name, frozenset((name,)), Name(name)): 1})


def opaque(expr: Expr) -> Linear:
    """The form that is one piece nobody looks into."""
    known = names(expr)
    return Linear({Atom(code(expr, Identity()), known, expr): 1})


def linear(expr: Expr) -> Linear:
    """`expr`, whose names are already those of the generated function, as a linear form."""
    match expr:
        case Int(value):
            return Linear({}, value)
        case Name(id):
            return variable(id)
        case Unary("-", operand):
            return linear(operand).times(-1)
        case Binary("+", left, right):
            return linear(left) + linear(right)
        case Binary("-", left, right):
            return linear(left) - linear(right)
        case Binary("*", left, right):
            a, b = linear(left), linear(right)
            if not a.terms:
                return b.times(a.constant)
            if not b.terms:
                return a.times(b.constant)
            return opaque(expr)
        case _:
            return opaque(expr)


def eliminate(rows: list[Linear], atom: Atom) -> list[Linear]:
    """Rows (forms that are not negative) without `atom`: all that they say of the others.

    Every lower bound of the atom is put below every upper bound (Fourier and Motzkin). Beyond
    `MAX_ROWS` rows nothing is added: fewer conditions only make ranges wider.
    """
    above = [r for r in rows if r.terms.get(atom, 0) > 0]
    below = [r for r in rows if r.terms.get(atom, 0) < 0]
    left = [r for r in rows if atom not in r.terms]
    seen = {r.key for r in left}
    for low in above:
        for high in below:
            combined = low.times(-high.terms[atom]) + high.times(low.terms[atom])
            if combined.terms and combined.key not in seen and len(left) < MAX_ROWS:
                seen.add(combined.key)
                left.append(combined)
    return left


class Identity(dict[str, str]):
    """A renaming that changes nothing."""

    def __missing__(self, key: str) -> str:
        return key


def _pieces(terms: Iterable[tuple[Atom, int]], constant: int) -> str:
    parts: list[str] = []
    for atom, factor in sorted(terms, key=lambda t: -t[1]):
        size = abs(factor)
        body = atom.text if size == 1 else f"{size}*{atom.text}"
        sign = ("+ " if factor > 0 else "- ") if parts else ("" if factor > 0 else "-")
        parts.append(sign + body)
    if constant or not parts:
        sign = ("+ " if constant >= 0 else "- ") if parts else ("" if constant >= 0 else "-")
        parts.append(f"{sign}{abs(constant)}")
    return " ".join(parts)


def _is_single(text: str) -> bool:
    return text.isidentifier() or text.isdigit()
