"""What a solver knows of its unknowns, and when it is safe to ask.

Each condition is text to be tested once its names are known. Most can be tested at any
time. Some cannot: `2**x`, `T[x]`, `log2(x)` and division fail where the program would never
have computed them. So conditions keep the order in which the program's own loops and guards
stand, and a risky one is tested only after everything before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from linnet.programs.expressions import walk
from linnet.programs.grammar import Apply, Binary, Expr, Int, Lookup
from linnet.programs.linear import Atom, Linear
from linnet.records import record

EARLY = -1
"""Order of a condition that is cheap and cannot fail: equal indices."""
LATE = 1 << 30
"""Order of a condition that comes after all loops and guards."""


_NOTHING = Linear({})


@record
class Condition:
    """Something that must hold of the unknowns."""

    kind: Literal["row", "equation", "multiple", "range", "test"]
    """form >= 0; form == 0; form % modulus == 0; own in text; text."""
    order: int
    form: Linear = _NOTHING
    modulus: str = ""
    body: str = ""
    names: frozenset[str] = frozenset()
    """Names in `modulus` and `body`."""
    own: str = ""
    """The variable in whose range this is a part."""
    risky_body: bool = False

    @property
    def depends(self) -> frozenset[str]:
        own = frozenset((self.own,)) if self.kind == "range" else frozenset[str]()
        return self.form.depends | self.names | own

    @property
    def risky(self) -> bool:
        return self.risky_body or any(is_risky(atom) for atom in self.form.terms)

    @property
    def trivial(self) -> bool:
        """Whether it holds by itself."""
        if self.kind == "row":
            return not self.form.terms and self.form.constant >= 0
        return self.kind == "equation" and not self.form.terms and not self.form.constant

    def text(self) -> str:
        match self.kind:
            case "row":
                return self.form.compare(">=")
            case "equation":
                return self.form.compare("==")
            case "multiple":
                return f"{self.form.text()} % {self.modulus} == 0"
            case "range":
                return f"{self.own} in {self.body}"
            case "test":
                return self.body

    def replaced(self, atom: Atom, value: Linear) -> Condition:
        """The condition with a variable replaced by a form."""
        factor = self.form.terms.get(atom, 0)
        if not factor:
            return self
        own = "" if self.own == atom.text else self.own
        return replace(self, form=self.form.without(atom) + value.times(factor), own=own)


def row(form: Linear, order: int, own: str = "") -> Condition:
    """`form` is not negative."""
    return Condition("row", order, form, own=own)


def equation(form: Linear, order: int) -> Condition:
    """`form` is 0; as early as can be, unless it is risky."""
    condition = Condition("equation", order, form)
    return condition if condition.risky else replace(condition, order=EARLY)


def is_risky(atom: Atom) -> bool:
    """Whether computing an atom can fail."""
    return not atom.text.isidentifier() and can_fail(atom.expr)


def can_fail(expr: Expr) -> bool:
    """Whether `expr` has no value for some integers."""
    for part in walk(expr):
        match part:
            case Lookup() | Apply("ceil_log2" | "floor_log2" | "log" | "log2"):
                return True
            case Binary("//" | "%" | "/", _, by) if not (isinstance(by, Int) and by.value > 0):
                return True
            case Binary("**", _, by) if not (isinstance(by, Int) and 0 <= by.value < 8):
                return True
            case _:
                pass
    return False


def ready(conditions: Sequence[Condition], unknown: Sequence[str]) -> list[Condition]:
    """Conditions that can be tested now, in order."""
    chosen: list[Condition] = []
    blocked = LATE + 1
    """Order of the first condition of the loops and guards that must still wait."""
    for one in conditions:
        if not one.depends.isdisjoint(unknown) and 0 <= one.order < blocked:
            blocked = one.order
    for one in sorted(conditions, key=lambda c: c.order):
        if not one.depends.isdisjoint(unknown):
            continue
        if one.risky and one.order > blocked:
            continue
        chosen.append(one)
    return chosen
