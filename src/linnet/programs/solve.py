"""Solvers, generated: given one task, which tasks of another statement touch its tile?

For a pair of accesses (the tile that a *source* names, the tile that a *target* names)
this writes Python text that finds every iteration of the target statement whose tile is
the source's. The equations `target index == source index` are solved one by one:

    1. an equation with a single unknown that is linear in it gives that unknown;
    2. an equation with a single unknown inside `2**x`, `x // c`, `x % c`, `c * x` or `T[x]` is
       turned around (a logarithm, an interval, a stride, a division, an inverse table);
    3. otherwise the outermost unknown loop runs over its range, narrowed by all linear
       conditions after the other unknowns are eliminated from them (Fourier and Motzkin),
       and 1 goes on inside.

Whatever is not implied by the way a value was found is tested as soon as its names are
known. The text uses canonical names only, never a name from the program.
"""

from __future__ import annotations

from collections.abc import Sequence

from linnet.programs.canonical import Canonical, Lines, is_size
from linnet.programs.conditions import (
    LATE,
    Condition,
    can_fail,
    equation,
    is_risky,
    ready,
    row,
)
from linnet.programs.expressions import code, conjuncts, names, positive
from linnet.programs.grammar import COMPARISONS, Apply, Binary, Expr, Int, Lookup, Name
from linnet.programs.linear import Atom, Identity, Linear, eliminate, linear, variable
from linnet.programs.statements import Access, Loop, Statement


class PairSolver:
    """Writes the solver for one pair of accesses."""

    def __init__(
        self,
        lines: Lines,
        names: Canonical,
        source: Sequence[Expr],
        source_loops: Sequence[Loop],
        source_guards: Sequence[Expr],
        target: Statement,
        access: Access,
    ) -> None:
        """`source` index, locals and guards are already renamed; `target` is renamed here."""
        self.lines = lines
        self.target = target
        variables = {v: f"t{k}" for k, v in enumerate(target.variables)}
        variables |= {loop.variable: f"u{k}" for k, loop in enumerate(access.locals)}
        side = names.extended(variables)
        self.unknown: list[str] = [variables[v] for v in target.variables]
        self.unknown += [loop.variable for loop in source_loops]
        self.unknown += [variables[loop.variable] for loop in access.locals]
        self.result: list[str] = list(self.unknown[: len(target.variables)])
        self.locals: list[str] = self.unknown[len(target.variables) :]
        self.conditions: list[Condition] = []
        self.ends: dict[str, int] = {}
        """Order of the last condition of each variable's loop."""
        self.fresh: int = 0
        for loop in source_loops:
            self.range(loop)
        for guard in source_guards:
            self.guard(guard)
        for guard in target.guards:
            self.guard(side.rename(guard))
        for loop in map(side.loop, target.loops):
            self.range(loop)
        for guard in access.guards:
            self.guard(side.rename(guard))
        for loop in map(side.loop, access.locals):
            self.range(loop)
        for mine, theirs in zip(access.index, source, strict=True):
            self.conditions.append(equation(linear(side.rename(mine)) - linear(theirs), LATE))

    # -- what is known of the unknowns

    @property
    def equations(self) -> list[Condition]:
        return [c for c in self.conditions if c.kind == "equation"]

    def range(self, loop: Loop) -> None:
        """A variable lies in its loop's range and meets its guards."""
        name, order = loop.variable, len(self.conditions)
        var = variable(name)
        step = loop.step.value if isinstance(loop.step, Int) else None
        if step is None and not positive(loop.step, is_size):
            # the sign of the step is not known here: let Python's range decide
            bounds = (loop.start, loop.stop, loop.step)
            body = f"range({', '.join(code(e, Identity()) for e in bounds)})"
            needs = frozenset[str]().union(*map(names, bounds))
            risky = any(map(can_fail, bounds))
            conditions = [Condition("range", order, body=body, names=needs, own=name, risky_body=risky)]
        elif step is not None and step < 0:
            lowest, highest = linear(loop.stop).plus(1), linear(loop.start)
            conditions = [row(var - lowest, order, name), row(highest - var, order, name)]
        else:
            conditions = [row(var - linear(b), order, name) for b in _alternatives(loop.start, "max")]
            conditions += [
                row(linear(b).plus(-1) - var, order, name) for b in _alternatives(loop.stop, "min")
            ]
        if step not in (1, -1) and conditions[0].kind != "range":
            modulus = str(abs(step)) if step is not None else code(loop.step, Identity())
            form = var - linear(loop.start)
            risky = can_fail(loop.step)
            conditions.append(
                Condition(
                    "multiple", order, form, modulus, names=names(loop.step), own=name, risky_body=risky
                )
            )
        self.conditions += conditions
        for guard in loop.guards:
            self.guard(guard)
        self.ends[name] = len(self.conditions)

    def guard(self, guard: Expr) -> None:
        """A condition of the program: rows and equations where it is linear, else a test."""
        for part in conjuncts(guard):
            order = len(self.conditions)
            match part:
                case Binary("==", left, right):
                    self.conditions.append(equation(linear(left) - linear(right), order))
                case Binary(op, left, right) if op in COMPARISONS and op != "!=":
                    a, b = linear(left), linear(right)
                    bigger, smaller = (a, b) if op in (">", ">=") else (b, a)
                    self.conditions.append(row((bigger - smaller).plus(-1 if op in ("<", ">") else 0), order))
                case _:
                    body, risky = code(part, Identity()), can_fail(part)
                    self.conditions.append(
                        Condition("test", order, body=body, names=names(part), risky_body=risky)
                    )

    # -- the search

    def write(self, mode: str) -> None:
        """Write the solver; `mode` is 'list' (tasks are added to `out`) or 'count' (`n` is)."""
        while True:
            self.flush()
            if not self.unknown:
                self.lines.add(self.found(mode))
                return
            if self.solve_linear() or self.turn_around() or self.drop_local():
                continue
            if self.enumerate(mode):
                return

    def found(self, mode: str) -> str:
        return "n += 1" if mode == "count" else f"out.append({self.task()})"

    def task(self) -> str:
        indices = "".join(f"{name}, " for name in self.result)
        return f"_new(_Task, ({self.target.number}, ({indices.strip()})))"

    def open(self, depends: frozenset[str]) -> bool:
        return not depends.isdisjoint(self.unknown)

    def flush(self) -> None:
        """Test whatever can be tested now."""
        now = ready(self.conditions, self.unknown)
        for one in now:
            self.conditions.remove(one)
        self.require([one.text() for one in now if not one.trivial])

    def safe(self, form: Linear, atom: Atom) -> bool:
        """Whether the rest of `form` can be computed: its loops are known to be inside their ranges."""
        risky = [a for a in form.terms if a != atom and is_risky(a)]
        ends = [self.ends[name] for a in risky for name in a.depends if name in self.ends]
        return not any(0 <= c.order < end for end in ends for c in self.conditions)

    def require(self, texts: Sequence[str]) -> None:
        if texts:
            self.lines.add(f"if {' and '.join(dict.fromkeys(texts))}:")
            self.lines.depth += 1

    def unknowns_of(self, form: Linear) -> list[str]:
        depends = form.depends
        return [u for u in self.unknown if u in depends]

    def solve_linear(self) -> bool:
        """Step 1: an equation that is linear in its only unknown."""
        best: tuple[int, Condition, Atom] | None = None
        for one in self.equations:
            atom = self.holder(one.form)
            if atom is not None and atom.text in self.unknown and self.safe(one.form, atom):
                weight = abs(one.form.terms[atom])
                if best is None or weight < best[0]:
                    best = (weight, one, atom)
        if best is None:
            return False
        _, one, atom = best
        self.conditions.remove(one)
        self.lines.add(f"{atom.text} = {self.isolate(one.form, atom)}")
        self.unknown.remove(atom.text)
        return True

    def holder(self, form: Linear) -> Atom | None:
        """The one term of `form` in which its one unknown stands."""
        if len(self.unknowns_of(form)) != 1:
            return None
        holders = [a for a in form.terms if self.open(a.depends)]
        return holders[0] if len(holders) == 1 else None

    def isolate(self, form: Linear, atom: Atom) -> str:
        """Text of the value `atom` must have where `form` is 0; tests that it is an integer."""
        factor = form.terms[atom]
        rest = form.without(atom)
        value = rest.times(-1) if factor > 0 else rest
        if abs(factor) == 1:
            return value.text()
        self.require([f"{value.text()} % {abs(factor)} == 0"])
        return f"{value.text()} // {abs(factor)}"

    def drop_local(self) -> bool:
        """Put what an equation says of a range's variable in its place: nobody asks for its value."""
        for local in [x for x in self.locals if x in self.unknown]:
            others = [c for c in self.conditions if local in c.depends]
            inside = any(local in a.depends and a.text != local for c in others for a in c.form.terms)
            if inside or any(local in c.names or c.kind == "range" for c in others):
                continue
            for one in self.equations:
                atom = next((a for a in one.form.terms if a.text == local), None)
                if atom is not None and abs(one.form.terms[atom]) == 1:
                    self.conditions.remove(one)
                    value = one.form.without(atom).times(-one.form.terms[atom])
                    self.conditions = [c.replaced(atom, value) for c in self.conditions]
                    self.unknown.remove(local)
                    return True
        return False

    def name(self) -> str:
        self.fresh += 1
        return f"v{self.fresh}"

    def turn_around(self) -> bool:
        """Step 2: an equation whose only unknown sits inside one opaque piece."""
        for one in self.equations:
            atom = self.holder(one.form)
            if atom is not None and self.safe(one.form, atom) and self.invert(one, atom):
                return True
        return False

    def invert(self, one: Condition, atom: Atom) -> bool:
        """Replace `piece == value` by something about what is inside the piece."""
        order = one.order
        match atom.expr:
            case Binary("**", Int(2), inside):
                value = self.take(one, atom)
                self.require([f"{value} > 0", f"{value} & ({value} - 1) == 0"])
                root = self.name()
                self.lines.add(f"{root} = {value}.bit_length() - 1")
                self.conditions.append(equation(linear(inside) - variable(root), order))
            case Binary("//", inside, by) if self.positive(by):
                value = self.take(one, atom)
                lowest = linear(Binary("*", by, Name(value)))
                form = linear(inside)
                self.conditions += [
                    row(form - lowest, order),
                    row((lowest + linear(by)).plus(-1) - form, order),
                ]
            case Binary("%", inside, by) if self.positive(by):
                value = self.take(one, atom)
                modulus = code(by, Identity())
                self.require([f"0 <= {value} < {modulus}"])
                form = linear(inside) - variable(value)
                self.conditions.append(Condition("multiple", order, form, modulus, names=names(by)))
            case Lookup(table, inside):
                value = self.take(one, atom)
                entry = self.name()
                self.lines.add(f"for {entry} in {table}.inverse.get({value}, ()):")
                self.lines.depth += 1
                self.conditions.append(equation(linear(inside) - variable(entry), order))
            case _:
                return False
        return True

    def take(self, one: Condition, atom: Atom) -> str:
        """Give the value that `atom` must have a name of its own; the equation is used up."""
        self.conditions.remove(one)
        value = self.name()
        self.lines.add(f"{value} = {self.isolate(one.form, atom)}")
        return value

    def positive(self, expr: Expr) -> bool:
        """Whether `expr` is known now and greater than 0 wherever the program is defined."""
        return not self.open(names(expr)) and positive(expr, is_size)

    # -- step 3: run over the outermost unknown

    def enumerate(self, mode: str) -> bool:
        """Open a loop over the outermost unknown; says whether nothing was left to do inside."""
        var = self.unknown[0]
        span = next((c for c in self.conditions if c.kind == "range" and c.own == var), None)
        if span is not None:
            self.conditions.remove(span)
            self.unknown.remove(var)
            return self.run_over(var, span.body, mode)
        lower, upper = self.bounds(var)
        stride = self.stride(var)
        start = lower[0] if len(lower) == 1 else f"max({', '.join(lower)})"
        stop = upper[0] if len(upper) == 1 else f"min({', '.join(upper)})"
        step = ""
        if stride is not None:
            # the first value from `start` on that is congruent: var - rest == 0 (mod modulus)
            self.conditions.remove(stride)
            sign = stride.form.terms[next(iter(variable(var).terms))]
            rest = (variable(var) - stride.form.times(sign)).text()
            if not (len(lower) == 1 and start == rest):
                start = f"{start} + ({rest} - {start}) % {stride.modulus}"
            step = f", {stride.modulus}"
        self.unknown.remove(var)
        return self.run_over(var, f"range({start}, {stop}{step})", mode)

    def run_over(self, var: str, span: str, mode: str) -> bool:
        if not (self.unknown or self.conditions):
            if mode == "count":
                self.lines.add(f"n += len({span})")
            else:
                self.lines.add(f"out += [{self.task()} for {var} in {span}]")
            return True
        self.lines.add(f"for {var} in {span}:")
        self.lines.depth += 1
        return False

    def stride(self, var: str) -> Condition | None:
        """A condition `var == ... (mod m)` all of whose other names are known; the loop's own first."""
        strides: list[Condition] = []
        for one in self.conditions:
            if one.kind != "multiple" or self.open(one.depends - {var}) or (one.risky and one.own != var):
                continue
            inside = [a for a in one.form.terms if var in a.depends]
            if [a.text for a in inside] == [var] and abs(one.form.terms[inside[0]]) == 1:
                strides.append(one)
        return min(strides, key=lambda c: c.own != var, default=None)

    def bounds(self, var: str) -> tuple[list[str], list[str]]:
        """Texts of the lowest value of `var` and of the first value beyond, from all linear conditions."""
        lower: dict[str, None] = {}
        upper: dict[str, None] = {}
        for one in [c for c in self.conditions if c.kind == "row"]:
            usable = not one.risky or one.own == var
            if usable and self.unknowns_of(one.form) == [var] and self.bound(one.form, var, lower, upper):
                self.conditions.remove(one)
        for form in self.eliminated(var):
            self.bound(form, var, lower, upper)
        return list(lower), list(upper)

    def bound(self, form: Linear, var: str, lower: dict[str, None], upper: dict[str, None]) -> bool:
        """Add what `form >= 0` says of `var`; True when it says nothing more than that."""
        holders = [a for a in form.terms if var in a.depends]
        if len(holders) != 1:
            return False
        factor, rest = form.terms[holders[0]], form.without(holders[0])
        if holders[0].text == var:
            size = abs(factor)
            if factor > 0:
                text = rest.times(-1).text() if size == 1 else f"-({rest.text()} // {size})"
                lower[text] = None
            else:
                text = rest.plus(1).text() if size == 1 else f"{rest.text()} // {size} + 1"
                upper[text] = None
            return True
        scale = self.scale(holders[0].expr, var)
        if scale is None:
            return False
        # scale * var, with scale > 0 known only when the text runs
        size = f"({abs(factor)} * {scale})"
        if factor > 0 and lower:
            lower[f"(-({rest.text()} // {size}) if {scale} > 0 else {next(iter(lower))})"] = None
        elif factor < 0 and upper:
            upper[f"({rest.text()} // {size} + 1 if {scale} > 0 else {next(iter(upper))})"] = None
        return False

    def scale(self, expr: Expr, var: str) -> str | None:
        """Text of c where `expr` is c * var and c is known and not negative."""
        match expr:
            case Binary("*", Name(id), other) | Binary("*", other, Name(id)) if id == var:
                return code(other, Identity()) if self.positive(other) else None
            case _:
                return None

    def eliminated(self, var: str) -> list[Linear]:
        """Rows in which `var` is the only unknown, made by eliminating the others."""
        usable = [c for c in self.conditions if not c.risky and self.is_linear(c.form, var)]
        rows = [c.form for c in usable if c.kind in ("row", "equation")]
        rows += [c.form.times(-1) for c in usable if c.kind == "equation"]
        others = [u for u in self.unknown if u != var]
        for other in reversed(others):
            rows = eliminate(rows, next(iter(variable(other).terms)))
        return [r for r in rows if self.unknowns_of(r) == [var]]

    def is_linear(self, form: Linear, var: str) -> bool:
        """Whether the unknowns of `form` stand in it as plain terms (or as known * var)."""
        for atom in form.terms:
            inside = [u for u in self.unknown if u in atom.depends]
            plain = not inside or inside == [atom.text]
            if not plain and (inside != [var] or self.scale(atom.expr, var) is None):
                return False
        return True


def _alternatives(expr: Expr, function: str) -> tuple[Expr, ...]:
    """The operands of an outermost max (of a start) or min (of a stop); each is a bound by itself."""
    if isinstance(expr, Apply) and expr.function == function:
        return expr.args
    return (expr,)
