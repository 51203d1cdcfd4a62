"""Random expressions, and the scopes they are written in, for `random_programs`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st


@dataclass(frozen=True)
class Variable:
    """A loop variable or scalar that is never negative."""

    name: str
    below: str | None = None
    """An expression it is less than, when known."""
    loop: bool = True


@dataclass(frozen=True)
class Scope:
    """Where a line is written: the variables it sees and the lines that opened its blocks."""

    variables: tuple[Variable, ...] = ()
    headers: tuple[str, ...] = ()
    visible: tuple[tuple[str, str], ...] = ()
    """Arrays and indices surely written before, in this block or around it."""

    @property
    def loops(self) -> tuple[Variable, ...]:
        return tuple(v for v in self.variables if v.loop)


@dataclass
class Array:
    name: str
    role: str
    rank: int
    nest: int
    """Number of the nest that writes it; -1 for inputs."""
    writes: list[tuple[Scope, str]] = field(default_factory=list)


class ExpressionAuthor:
    """Writes expressions and lines, asking hypothesis for every choice."""

    def __init__(self, draw: Any, affine: bool, wild: bool) -> None:
        self.draw, self.affine, self.wild = draw, affine, wild
        self.lines: list[str] = []
        self.arrays = [Array("A", "In", 2, -1), Array("B", "In", 1, -1)]
        self.names = 0
        self.statements = 0
        self.nest = 0

    def pick(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def chance(self, percent: int) -> bool:
        # Large draws say yes, so that shrinking turns features off.
        return self.draw(st.integers(0, 99)) >= 100 - percent

    def fresh(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def emit(self, scope: Scope, line: str) -> None:
        self.lines.append("    " * (len(scope.headers) + 1) + line)

    def open(self, scope: Scope, header: str, *variables: Variable) -> Scope:
        self.emit(scope, header)
        return replace(scope, variables=scope.variables + variables, headers=(*scope.headers, header))

    # ---- expressions -------------------------------------------------------------

    def name(self, scope: Scope) -> str:
        return self.pick(*(v.name for v in scope.variables), *(["N"] if not scope.variables else []))

    def natural(self, scope: Scope) -> str:
        """An expression that is never negative, fit for an index."""
        if not scope.variables:
            return self.pick("0", "1", "2")
        v, w = self.name(scope), self.name(scope)
        options = [
            v, f"{v} + 1", f"2 * {v}", f"{v} + {w}", "0", "1", f"{v} + 2 * {w} + 1",
            f"{v} // 2", f"{v} % 2", f"({v} + {w}) // 3", f"{v} % 3 + {w}",
            f"min({v}, {w})", f"max({v}, {w}, 1)", f"({v} if {v} < {w} else {w})",
        ]  # fmt: skip
        options += [f"{u.below} - 1 - {u.name}" for u in scope.variables if u.below]
        if not self.affine:
            options += [
                f"{v} * {w}", f"2**{v}", f"{v} + 2**{w}", f"{v} * 2**{w} + 1", f"T[{v} % 4]",
                f"P[{w} % 3] + {v}", f"{v}**2", f"ceil(log2({v} + 1))", f"floor(log2({v} + {w} + 1))",
                f"{v} // ({w} + 1)", f"{v} % ({w} + 2)", f"T[P[{v} % 3] + 1]",
            ]  # fmt: skip
        return self.draw(st.sampled_from(options))

    def number(self, scope: Scope) -> str:
        """Any integer expression."""
        if not scope.variables:
            return self.pick("N", "M", "N - 1", "2")
        v, w = self.name(scope), self.name(scope)
        forms = (v, f"{v} - {w}", f"N - {v}", f"{v} - 1", f"-{v}", f"2 * {v} - M", None)
        return self.pick(*forms) or self.natural(scope)

    def condition(self, scope: Scope, depth: int = 2) -> str:
        if depth and self.chance(30):
            left = self.condition(scope, depth - 1)
            joint = self.pick("not", "and", "or")
            return (
                f"not ({left})"
                if joint == "not"
                else f"({left}) {joint} ({self.condition(scope, depth - 1)})"
            )
        a, op = self.number(scope), self.pick("<", "==", "!=", "<=", ">", ">=")
        forms = (
            f"({a}) % 2 == 0",
            f"{a} {op} 1",
            f"({a}) // 2 {op} 1",
            f"({a}) % 3 != 1",
            f"0 < {a} <= 2",
            None,
            None,
        )
        return self.pick(*forms) or f"{a} {op} {self.number(scope)}"
