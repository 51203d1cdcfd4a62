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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from linnet.programs.expressions import code, conjuncts, names, positive, transform
from linnet.programs.grammar import COMPARISONS, Apply, Binary, Expr, Int, Lookup, Name
from linnet.programs.linear import Atom, Identity, Linear, eliminate, linear, variable
from linnet.programs.statements import Access, Loop, Statement


@dataclass(slots=True)
class Lines:
    """Python text being written, with its indentation."""

    depth: int = 1
    lines: list[str] = field(default_factory=list[str])

    def add(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)


@dataclass(frozen=True, slots=True)
class Canonical:
    """What the names of one side of a pair are called in generated text."""

    sizes: Mapping[str, str]
    tables: Mapping[str, str]
    variables: Mapping[str, str] = field(default_factory=dict[str, str])

    def rename(self, expr: Expr) -> Expr:
        def change(e: Expr) -> Expr | None:
            match e:
                case Name(id):
                    return Name(self.variables.get(id) or self.sizes[id])
                case Lookup(table, index):
                    return Lookup(self.tables[table], transform(index, change))
                case _:
                    return None

        return transform(expr, change)

    def loop(self, loop: Loop) -> Loop:
        return Loop(
            self.variables[loop.variable],
            self.rename(loop.start),
            self.rename(loop.stop),
            self.rename(loop.step),
            tuple(self.rename(g) for g in loop.guards),
        )

    def extended(self, names: Mapping[str, str]) -> Canonical:
        return Canonical(self.sizes, self.tables, {**self.variables, **names})


@dataclass(slots=True)
class _Test:
    """Something still to be tested: a text and the names it needs."""

    text: str
    depends: frozenset[str]
    rank: int
    """Ranges come first, then guards, then what could fail outside them."""


@dataclass(slots=True)
class _Congruence:
    """`form` is a multiple of `modulus`."""

    form: Linear
    modulus: str
    moduli: frozenset[str]
    """Names in the text of `modulus`."""

    @property
    def depends(self) -> frozenset[str]:
        return self.form.depends | self.moduli


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
        self.unknown = [variables[v] for v in target.variables]
        self.unknown += [loop.variable for loop in source_loops]
        self.unknown += [variables[loop.variable] for loop in access.locals]
        self.result = list(self.unknown[: len(target.variables)])
        self.locals = self.unknown[len(target.variables) :]
        self.rows: list[Linear] = []
        """Linear forms that are not negative."""
        self.equations: list[Linear] = []
        self.tests: list[_Test] = []
        self.strides: dict[str, _Congruence] = {}
        self.spans: dict[str, _Test] = {}
        """Ranges whose step has no known sign, as text."""
        self.congruences: list[_Congruence] = []
        self.fresh = 0
        for guard in source_guards:
            self.condition(guard)
        for loop in [*map(side.loop, target.loops), *source_loops, *map(side.loop, access.locals)]:
            self.range(loop)
        for guard in (*target.conditions, *access.guards):
            self.condition(side.rename(guard))
        for mine, theirs in zip(access.index, source, strict=True):
            self.equations.append(linear(side.rename(mine)) - linear(theirs))

    # -- what is known of the unknowns

    def range(self, loop: Loop) -> None:
        """A variable lies in its loop's range."""
        var = variable(loop.variable)
        step = loop.step.value if isinstance(loop.step, Int) else None
        if step is None and not positive(loop.step, is_size):
            # the sign of the step is not known here: let Python's range decide
            bounds = ", ".join(code(e, Identity()) for e in (loop.start, loop.stop, loop.step))
            needs = names(loop.start) | names(loop.stop) | names(loop.step)
            self.spans[loop.variable] = _Test(f"range({bounds})", needs, 1)
            return
        if step is not None and step < 0:
            lowest, highest = linear(loop.stop).plus(1), linear(loop.start)
            self.rows += [var - lowest, highest - var]
        else:
            self.rows += [var - linear(b) for b in _alternatives(loop.start, "max")]
            self.rows += [linear(b).plus(-1) - var for b in _alternatives(loop.stop, "min")]
        if step not in (1, -1):
            modulus = str(abs(step)) if step is not None else code(loop.step, Identity())
            form = var - linear(loop.start)
            self.strides[loop.variable] = _Congruence(form, modulus, names(loop.step))

    def condition(self, guard: Expr) -> None:
        """A condition of the target: rows and equations where it is linear, else a test."""
        for part in conjuncts(guard):
            match part:
                case Binary(op, left, right) if op in COMPARISONS and op != "!=":
                    a, b = linear(left), linear(right)
                    if op == "==":
                        self.equations.append(a - b)
                    else:
                        bigger, smaller = (a, b) if op in (">", ">=") else (b, a)
                        self.rows.append((bigger - smaller).plus(-1 if op in ("<", ">") else 0))
                case _:
                    self.tests.append(_Test(code(part, Identity()), names(part), 1))

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
        """Test whatever has become known, cheapest and safest first."""
        ready: list[_Test] = []
        for row in [r for r in self.rows if not self.open(r.depends)]:
            self.rows.remove(row)
            if row.terms or row.constant < 0:
                ready.append(_Test(row.compare(">="), row.depends, 0))
        for variable_, stride in list(self.strides.items()):
            if not self.open(stride.depends):
                del self.strides[variable_]
                ready.append(_Test(f"{stride.form.text()} % {stride.modulus} == 0", stride.depends, 1))
        for name, span in list(self.spans.items()):
            if not self.open(span.depends | {name}):
                del self.spans[name]
                ready.append(_Test(f"{name} in {span.text}", span.depends, 1))
        for one in [t for t in self.tests if not self.open(t.depends)]:
            self.tests.remove(one)
            ready.append(one)
        for equation in [e for e in self.equations if not self.open(e.depends)]:
            self.equations.remove(equation)
            if equation.terms or equation.constant:
                plain = all(a.text.isidentifier() for a in equation.terms)
                ready.append(_Test(equation.compare("=="), equation.depends, 0 if plain else 2))
        for one in [c for c in self.congruences if not self.open(c.depends)]:
            self.congruences.remove(one)
            ready.append(_Test(f"{one.form.text()} % {one.modulus} == 0", one.depends, 2))
        self.require([t.text for t in sorted(ready, key=lambda t: t.rank)])

    def require(self, texts: Sequence[str]) -> None:
        if texts:
            self.lines.add(f"if {' and '.join(dict.fromkeys(texts))}:")
            self.lines.depth += 1

    def unknowns_of(self, form: Linear) -> list[str]:
        depends = form.depends
        return [u for u in self.unknown if u in depends]

    def solve_linear(self) -> bool:
        """Step 1: an equation that is linear in its only unknown."""
        best: tuple[int, Linear, Atom] | None = None
        for equation in self.equations:
            left = self.unknowns_of(equation)
            if len(left) != 1:
                continue
            holders = [a for a in equation.terms if left[0] in a.depends]
            if len(holders) == 1 and holders[0].text == left[0]:
                weight = abs(equation.terms[holders[0]])
                if best is None or weight < best[0]:
                    best = (weight, equation, holders[0])
        if best is None:
            return False
        _, equation, atom = best
        self.equations.remove(equation)
        self.lines.add(f"{atom.text} = {self.isolate(equation, atom)}")
        self.unknown.remove(atom.text)
        return True

    def isolate(self, equation: Linear, atom: Atom) -> str:
        """Text of the value `atom` must have; tests that it is an integer."""
        factor = equation.terms[atom]
        rest = equation.without(atom)
        value = rest.times(-1) if factor > 0 else rest
        if abs(factor) == 1:
            return value.text()
        self.require([f"{value.text()} % {abs(factor)} == 0"])
        return f"{value.text()} // {abs(factor)}"

    def drop_local(self) -> bool:
        """Put what an equation says of a range's variable in its place: nobody asks for its value."""
        for local in [x for x in self.locals if x in self.unknown]:
            if local in self.spans or any(local in t.depends for t in (*self.tests, *self.spans.values())):
                continue
            forms = [*self.rows, *self.equations, *(c.form for c in self.congruences)]
            forms += [c.form for c in self.strides.values()]
            if any(local in a.depends and a.text != local for f in forms for a in f.terms):
                continue
            for equation in self.equations:
                atom = next((a for a in equation.terms if a.text == local), None)
                if atom is not None and abs(equation.terms[atom]) == 1:
                    self.equations.remove(equation)
                    self.replace(atom, equation.without(atom).times(-equation.terms[atom]))
                    return True
        return False

    def replace(self, atom: Atom, value: Linear) -> None:
        """`atom` is `value` wherever it stands, and no longer unknown."""

        def put(form: Linear) -> Linear:
            return form.without(atom) + value.times(form.terms.get(atom, 0))

        self.rows = [put(r) for r in self.rows]
        self.equations = [put(e) for e in self.equations]
        if atom.text in self.strides:
            self.congruences.append(self.strides.pop(atom.text))
        self.congruences = [_Congruence(put(c.form), c.modulus, c.moduli) for c in self.congruences]
        self.strides = {v: _Congruence(put(c.form), c.modulus, c.moduli) for v, c in self.strides.items()}
        self.unknown.remove(atom.text)

    def name(self) -> str:
        self.fresh += 1
        return f"v{self.fresh}"

    def turn_around(self) -> bool:
        """Step 2: an equation whose only unknown sits inside one opaque piece."""
        for equation in self.equations:
            left = self.unknowns_of(equation)
            if len(left) != 1:
                continue
            holders = [a for a in equation.terms if left[0] in a.depends]
            if len(holders) == 1 and self.invert(equation, holders[0]):
                return True
        return False

    def invert(self, equation: Linear, atom: Atom) -> bool:
        """Replace `piece == value` by something about what is inside the piece."""
        match atom.expr:
            case Binary("**", Int(2), inside):
                value = self.take(equation, atom)
                self.require([f"{value} > 0", f"{value} & ({value} - 1) == 0"])
                root = self.name()
                self.lines.add(f"{root} = {value}.bit_length() - 1")
                self.equations.append(linear(inside) - variable(root))
            case Binary("//", inside, by) if self.positive(by):
                value = self.take(equation, atom)
                lowest = linear(Binary("*", by, Name(value)))
                form = linear(inside)
                self.rows += [form - lowest, (lowest + linear(by)).plus(-1) - form]
            case Binary("%", inside, by) if self.positive(by):
                value = self.take(equation, atom)
                modulus = code(by, Identity())
                self.require([f"0 <= {value} < {modulus}"])
                form = linear(inside) - variable(value)
                self.congruences.append(_Congruence(form, modulus, names(by)))
            case Lookup(table, inside):
                value = self.take(equation, atom)
                entry = self.name()
                self.lines.add(f"for {entry} in {table}.inverse.get({value}, ()):")
                self.lines.depth += 1
                self.equations.append(linear(inside) - variable(entry))
            case _:
                return False
        return True

    def take(self, equation: Linear, atom: Atom) -> str:
        """Give the value that `atom` must have a name of its own; the equation is used up."""
        self.equations.remove(equation)
        value = self.name()
        self.lines.add(f"{value} = {self.isolate(equation, atom)}")
        return value

    def positive(self, expr: Expr) -> bool:
        """Whether `expr` is known now and greater than 0 wherever the program is defined."""
        return not self.open(names(expr)) and positive(expr, is_size)

    # -- step 3: run over the outermost unknown

    def enumerate(self, mode: str) -> bool:
        """Open a loop over the outermost unknown; says whether nothing was left to do inside."""
        var = self.unknown[0]
        if var in self.spans:
            self.unknown.remove(var)
            return self.run_over(var, self.spans.pop(var).text, mode)
        lower, upper = self.bounds(var)
        stride = self.strides.get(var)
        step = ""
        if stride is not None and not self.open(stride.depends - {var}):
            del self.strides[var]
        else:
            stride = self.aligned(var)
            if stride is not None:
                self.congruences.remove(stride)
        start = lower[0] if len(lower) == 1 else f"max({', '.join(lower)})"
        stop = upper[0] if len(upper) == 1 else f"min({', '.join(upper)})"
        if stride is not None:
            # the first value from `start` on that is congruent: var - rest == 0 (mod modulus)
            rest = (variable(var) - stride.form).text()
            if not (len(lower) == 1 and start == rest):
                start = f"{start} + ({rest} - {start}) % {stride.modulus}"
            step = f", {stride.modulus}"
        self.unknown.remove(var)
        return self.run_over(var, f"range({start}, {stop}{step})", mode)

    def run_over(self, var: str, span: str, mode: str) -> bool:
        left = (
            self.unknown,
            self.rows,
            self.equations,
            self.tests,
            self.strides,
            self.congruences,
            self.spans,
        )
        if not any(left):
            if mode == "count":
                self.lines.add(f"n += len({span})")
            else:
                self.lines.add(f"out += [{self.task()} for {var} in {span}]")
            return True
        self.lines.add(f"for {var} in {span}:")
        self.lines.depth += 1
        return False

    def aligned(self, var: str) -> _Congruence | None:
        """A condition `var == ... (mod m)` all of whose other names are known."""
        for one in self.congruences:
            inside = [a for a in one.form.terms if var in a.depends]
            if not self.open(one.depends - {var}) and [a.text for a in inside] == [var]:
                if one.form.terms[inside[0]] == -1:
                    self.congruences.remove(one)
                    one = _Congruence(one.form.times(-1), one.modulus, one.moduli)
                    self.congruences.append(one)
                if one.form.terms[inside[0]] == 1:
                    return one
        return None

    def bounds(self, var: str) -> tuple[list[str], list[str]]:
        """Texts of the lowest value of `var` and of the first value beyond, from all linear conditions."""
        lower: dict[str, None] = {}
        upper: dict[str, None] = {}
        for row in list(self.rows):
            if self.unknowns_of(row) == [var] and self.bound(row, var, lower, upper, own=True):
                self.rows.remove(row)
        for row in self.eliminated(var):
            self.bound(row, var, lower, upper, own=False)
        return list(lower), list(upper)

    def bound(self, row: Linear, var: str, lower: dict[str, None], upper: dict[str, None], own: bool) -> bool:
        """Add what one row says of `var`; True when the row says nothing more than that."""
        holders = [a for a in row.terms if var in a.depends]
        if len(holders) != 1:
            return False
        factor, rest = row.terms[holders[0]], row.without(holders[0])
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
        rows = [r for r in self.rows if self.is_linear(r, var)]
        others = [u for u in self.unknown if u != var]
        for equation in [e for e in self.equations if self.is_linear(e, var)]:
            rows += [equation, equation.times(-1)]
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


def is_size(name: str) -> bool:
    """Whether a canonical name is that of a size."""
    return name.startswith("p")


def _alternatives(expr: Expr, function: str) -> tuple[Expr, ...]:
    """The operands of an outermost max (of a start) or min (of a stop); each is a bound by itself."""
    if isinstance(expr, Apply) and expr.function == function:
        return expr.args
    return (expr,)
