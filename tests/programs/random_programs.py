"""Random tile programs for hypothesis.

A program is a few loop nests, one after another. Left to chance alone almost every
program would write a tile twice, so a `careful` program is built to be valid:

- writes use index maps that are injective in the loops around them (a permutation
  of the loop variables, scaled and skewed), or one map split over `if`/`else`;
- reads take inputs, tiles just written in an enclosing block, any tile of an
  `Out(fill=0)` or `Temp(fill=0)` completed by an earlier nest, or a version before the present one.

A `wild` program draws writes and reads freely; the oracle then says whether it is
valid. Index expressions are never negative by construction; guards and bounds may
be. `affine=True` keeps to what can be proved for all sizes: affine expressions,
`//` and `%` by constants, `min` and `max`, constant steps.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from random_expressions import Array, ExpressionAuthor, Scope, Variable

KERNELS = {1: ("t_one", "t_uno"), 2: ("t_two",), 3: ("t_three",)}
TABLES = {"T": (0, 2, 3, 5), "P": (2, 0, 1)}
"""T rises, as chunk boundaries do; P is a permutation."""


@dataclass(frozen=True)
class Sample:
    """A generated program and how to bind it."""

    source: str
    sizes: tuple[str, ...]
    constants: dict[str, tuple[int, ...]]
    """Tables known when the program is defined."""
    tables: dict[str, tuple[int, ...]]
    """Tables given when it is bound."""


class Author(ExpressionAuthor):
    """Writes one program."""

    # ---- blocks ------------------------------------------------------------------

    def loop(self, scope: Scope) -> Scope:
        """Open a loop whose variable is never negative."""
        name = self.fresh("i")
        v = self.name(scope) if scope.variables else "1"
        n = self.pick("N", "N", "M")
        spans = [
            (f"range({n})", n), (f"range(1, {n})", n), (f"range({v}, {n})", n),
            (f"range({v} + 1, {n})", n), (f"range({v} + 1)", f"{v} + 1"), ("range(3)", "3"),
            (f"range(0, {n}, 2)", n), (f"range({n} - 1, -1, -1)", n), (f"range({v}, -1, -2)", f"{v} + 1"),
            (f"range(max(0, {v} - 1), min({n}, {v} + 2))", n), (f"range({n} // 2)", f"{n} // 2"),
            (f"range({n} - {v})", None), (f"range(1, {n} + 1, 3)", f"{n} + 1"),
            (f"range({v} % 2, {n}, 2)", n), (f"range({n} - 1, {v}, -1)", n),
        ]  # fmt: skip
        if not self.affine:
            spans += [
                (f"range(0, {n}, 2**({v} + 1))", n), (f"range(ceil(log2({n} + 1)))", None),
                (f"range(T[{v} % 3], T[{v} % 3 + 1])", "5"), (f"range({v}, {n}, {v} + 1)", n),
                (f"range(0, {n}, max(1, {v}))", n), (f"range(2**{v} - 1, {n})", n), (f"range({n} - 1, -1, -{v} - 1)", n),
            ]  # fmt: skip
        span, below = self.pick(*spans)
        return self.open(scope, f"for {name} in {span}:", Variable(name, below))

    def let(self, scope: Scope) -> Scope:
        """A scalar: assigned once, then perhaps again from itself, or differently in two branches."""
        name = self.fresh("x")
        if self.chance(25):
            self.emit(self.open(scope, f"if {self.condition(scope)}:"), f"{name} = {self.natural(scope)}")
            self.emit(self.open(scope, "else:"), f"{name} = {self.natural(scope)}")
        else:
            self.emit(scope, f"{name} = {self.natural(scope)}")
        if self.chance(20):
            self.emit(scope, f"{name} = {name} + {self.name(scope)}")
        return replace(scope, variables=(*scope.variables, Variable(name, None, loop=False)))

    def block(self, scope: Scope, depth: int) -> Scope:
        """Statements, loops and guards; returns the scope as it is after the block's last line."""
        for _ in range(self.draw(st.integers(1, 2))):
            if self.statements >= 5:
                break
            shape = self.pick("statement", "loop", "loop", "if", "split", "let") if depth else "statement"
            if shape == "loop":
                self.block(self.loop(scope), depth - 1)
            elif shape == "if":
                self.guards(scope, depth)
            elif shape == "split" and scope.loops:
                self.split(scope)
            else:
                if shape == "let" and scope.variables:
                    scope = self.let(scope)
                scope = self.statement(scope)
        if not self.lines or self.lines[-1].rstrip().endswith(":"):
            scope = self.statement(scope)
        return scope

    def guards(self, scope: Scope, depth: int) -> None:
        self.block(self.open(scope, f"if {self.condition(scope)}:"), depth - 1)
        if self.chance(30):
            self.block(self.open(scope, f"elif {self.condition(scope)}:"), depth - 1)
        if self.chance(40):
            self.block(self.open(scope, "else:"), depth - 1)

    def split(self, scope: Scope) -> None:
        """Two or three writers of one array: the same map on disjoint parts of the domain."""
        array = self.new_array(len(scope.loops))
        index = ", ".join(self.injective(scope))
        arms = ["if {}:", "elif {}:", "else:"] if self.chance(30) else ["if {}:", "else:"]
        for arm in arms:
            inner = self.open(scope, arm.format(self.condition(scope)))
            self.call(inner, [(array, index)])
        if arms[-1] == "else:":
            array.writes.append((scope, index))

    # ---- statements --------------------------------------------------------------

    def new_array(self, rank: int, role: str | None = None) -> Array:
        role = role or self.pick("Out(fill=0)", "Out(fill=0)", "Temp(fill=0)", "Out", "Temp")
        array = Array(self.fresh("O"), role, rank, self.nest)
        self.arrays.append(array)
        return array

    def injective(self, scope: Scope, skip: int = 0) -> list[str]:
        """An index, one axis per loop variable, that differs wherever the loop variables do."""
        axes: list[str] = []
        placed: list[str] = []
        for v in self.draw(st.permutations(scope.loops[skip:])):
            base = self.pick(v.name, v.name, f"2 * {v.name}", f"{v.name} + 1")
            if v.below and self.chance(15):
                base = f"{v.below} - 1 - {v.name}"
            if placed and self.chance(25):
                base = f"{base} + {self.pick(*placed)}"
            if not self.affine and self.chance(10):
                base = f"2**{v.name}" if base == v.name else base
            axes.append(base)
            placed.append(v.name)
        return axes or ["0"]

    def statement(self, scope: Scope) -> Scope:
        """One kernel call; returns the scope with its outputs visible."""
        outputs: list[tuple[Array, str]] = []
        for _ in range(self.pick(1, 1, 1, 2, 3)):
            outputs.append(self.target(scope, outputs))
        self.call(scope, outputs)
        seen = tuple((array.name, index) for array, index in outputs)
        for array, index in outputs:
            array.writes.append((scope, index))
        return replace(scope, visible=scope.visible + seen)

    def target(self, scope: Scope, taken: list[tuple[Array, str]]) -> tuple[Array, str]:
        own = [a for a in self.arrays if a.nest == self.nest and not a.role.startswith('Temp("')]
        if self.wild and own and self.chance(50):
            array = self.pick(*own)
            return array, ", ".join(self.natural(scope) for _ in range(array.rank))
        axes = self.injective(scope)
        if self.chance(20):
            # Several writers, or several outputs, of one array, told apart by a constant axis.
            shared = [a for a in own if a.name.startswith("O") and a.rank == len(axes) + 1 and a.writes]
            if shared and self.chance(60):
                array = self.pick(*shared)
                tag = 10 + self.statements * 4 + len(taken)
                return array, ", ".join([str(tag), *axes])
            return self.new_array(len(axes) + 1), ", ".join([str(len(taken)), *axes])
        if self.chance(15):
            span = self.pick("0:2", f"0:{self.name(scope)}", "1:N", "0:M:2", "2:N:3")
            return self.new_array(len(axes) + 1), ", ".join([*axes, span])
        return self.new_array(len(axes)), ", ".join(axes)

    def call(self, scope: Scope, outputs: list[tuple[Array, str]]) -> None:
        """Write a kernel call with random operands."""
        args = [self.operand(scope) for _ in range(self.pick(1, 2, 2, 3))]
        if self.chance(15):
            args.append(self.number(scope))
        if self.chance(10):
            args.append(f"axis={self.pick('0', '1', repr('left'), '(0, 1)')}")
        kernel = self.pick(*KERNELS[len(outputs)])
        left = ", ".join(f"{array.name}[{index}]" for array, index in outputs)
        self.emit(scope, f"{left} = {kernel}({', '.join(args)})")
        self.statements += 1

    def operand(self, scope: Scope) -> str:
        done = [a for a in self.arrays if a.nest < self.nest and (a.role == "In" or "fill" in a.role)]
        if self.wild and self.chance(40):
            done = [a for a in self.arrays if not a.role.startswith('Temp("')]
        elif scope.visible and self.chance(35):
            array, index = self.pick(*scope.visible)
            return f"{array}[{index}]"
        made = [a for a in done if a.writes]
        if made and self.chance(75):
            array = self.pick(*made)
            # An index that counts down (N - 1 - i) would be negative elsewhere.
            rising = [(where, index) for where, index in array.writes if "-" not in index]
            if rising and self.chance(60):
                return f"{array.name}[{self.echo(scope, *self.pick(*rising))}]"
        else:
            array = self.pick(*reversed(done))
        return f"{array.name}[{', '.join(self.axis(scope) for _ in range(array.rank))}]"

    def echo(self, scope: Scope, writer: Scope, index: str) -> str:
        """The index of an earlier write with its variables replaced, so that reads often hit."""
        if not scope.variables:
            return re.sub(r"\b(i|x|level)\d+\b|\b[ijk]\b", "0", index)
        for v in writer.variables:
            swap = self.pick(self.name(scope), self.name(scope), "0", f"({self.name(scope)} + 1)")
            index = re.sub(rf"\b{v.name}\b", swap.replace("i", "#"), index)
        return index.replace("#", "i")

    def axis(self, scope: Scope) -> str:
        """One axis of an operand: an index or, at times, a range."""
        if not self.chance(15):
            return self.natural(scope)
        start, stop = self.natural(scope), self.number(scope)
        return self.pick(f"0:{stop}", f"{start}:{stop}", f"{start}:N", f"{start}:{stop}:2")

    # ---- whole nests -------------------------------------------------------------

    def generic(self) -> None:
        self.block(self.loop(Scope()) if self.chance(85) else Scope(), self.pick(1, 2, 3))

    def mirror(self) -> None:
        """Repeat the loops around an earlier write and read exactly what it wrote."""
        written = [
            (array, scope, index)
            for array in self.arrays
            for scope, index in array.writes
            if array.nest < self.nest and all(v.loop for v in scope.variables)
            and not any(h.startswith(("el", "else")) for h in scope.headers)
        ]  # fmt: skip
        if not written:
            return self.generic()
        array, old, index = self.pick(*written)
        scope = Scope()
        remaining = list(old.variables)
        for header in old.headers:
            variables = (remaining.pop(0),) if header.startswith("for") else ()
            scope = self.open(scope, header, *variables)
        if self.chance(40):
            scope = self.open(scope, f"if {self.condition(scope)}:")
        self.statement(replace(scope, visible=((array.name, index),)))
        return None

    def versions(self) -> None:
        """X[i + 1, ...] from tiles of version i, i the outermost loop."""
        scope = self.loop(Scope())
        outer = scope.loops[0].name
        down = ", -" in scope.headers[0]
        inner = self.loop(scope) if self.chance(70) else scope
        axes = self.injective(inner, skip=1) if len(inner.loops) > 1 else []
        array = self.new_array(1 + len(axes), self.pick("Out(fill=0)", "Temp(fill=0)"))
        write, read = (outer, f"{outer} + 1") if down else (f"{outer} + 1", outer)
        operands = [
            f"{array.name}[{', '.join([read, *(self.axis(inner) for _ in axes)])}]"
            for _ in range(self.pick(1, 2))
        ]
        if self.chance(30):
            inner = self.open(inner, f"if {self.condition(inner)}:")
        self.emit(inner, f"{array.name}[{', '.join([write, *axes])}] = t_one({', '.join(operands)})")
        self.statements += 1
        array.writes.append((inner, ", ".join([write, *axes])))

    def shrinking(self) -> None:
        """Temp("A"): each version is written on a part of where the last one was."""
        low, high = self.pick("0", "i", "i + 1"), self.pick("N", "N - i")
        temp = Array(self.fresh("S"), 'Temp("A")', 3, self.nest)
        self.arrays.append(temp)
        s, r = temp.name, self.pick("i", "i", "i + 1") if self.wild else "i"
        scope = self.open(Scope(), "for i in range(N):", Variable("i", "N"))
        scope = self.open(scope, f"for j in range({low}, {high}):", Variable("j", "N"))
        scope = self.open(scope, f"for k in range({self.pick(low, 'j')}, {high}):", Variable("k", "N"))
        extra = self.pick(f"A[{self.axis(scope)}, {self.axis(scope)}]", f"{s}[{r}, j, k]")
        if low == "i + 1" and self.chance(50):
            extra = f"{s}[{r}, {self.pick('j', 'i + 1')}, k]"
        self.emit(scope, f"{s}[i + 1, j, k] = t_one({s}[{r}, j, k], {extra})")
        self.statements += 1

    def tree(self) -> None:
        """A reduction over 2**level, as in TSQR, with the last odd tile passed on."""
        array = self.new_array(2, self.pick("Out", "Temp", "Out(fill=0)"))
        r, i, level, j = array.name, self.fresh("i"), self.fresh("level"), self.fresh("i")
        n = self.pick("N", "M")
        base = self.pick("2", "2", "3") if self.wild else "2"
        top = Scope()
        self.emit(self.open(top, f"for {j} in range({n}):"), f"{r}[{j}, 0] = t_one(A[{j}, 0])")
        scope = self.open(top, f"for {level} in range(ceil(log2({n} + 1))):")
        inner = self.open(scope, f"for {i} in range(0, {n}, {base}**({level} + 1)):")
        pair = f"{r}[{i}, {level} + 1] = t_one({r}[{i}, {level}], {r}[{i} + {base}**{level}, {level}])"
        if self.wild and self.chance(20):
            self.emit(inner, pair)
        else:
            self.emit(self.open(inner, f"if {i} + {base}**{level} < {n}:"), pair)
            self.emit(self.open(inner, "else:"), f"{r}[{i}, {level} + 1] = t_uno({r}[{i}, {level}])")
        self.statements += 3

    def write(self) -> Sample:
        for _ in range(self.pick(1, 2, 2, 3)):
            nests = [self.generic, self.generic, self.mirror, self.versions, self.shrinking]
            self.pick(*nests, *([] if self.affine else [self.tree]))()
            self.nest += 1
        body = "\n".join(self.lines)
        used = set(re.findall(r"\w+", body))
        if any('Temp("A")' in a.role for a in self.arrays):
            used.add("A")
        sizes = tuple(n for n in ("N", "M") if n in used) or ("N",)
        tables = {name: values for name, values in TABLES.items() if name in used}
        late = {name: values for name, values in tables.items() if self.chance(40)}
        parameters = [f"{a.name}: {a.role}" for a in self.arrays if a.name in used]
        parameters += [f"{n}: int" for n in sizes] + [f"{name}: Table" for name in late]
        head = f"def sample({', '.join(parameters)}):\n"
        if len(sizes) == 2 and self.chance(15):
            head += f"    assert {self.pick('M >= N', 'N >= 1', 'N <= 3')}\n"
        constants = {name: values for name, values in tables.items() if name not in late}
        return Sample(head + body + "\n", sizes, constants, late)


@st.composite
def programs(draw: Any, *, affine: bool = False, wild: bool | None = None) -> Sample:
    """A random program; `wild` None draws which kind."""
    if wild is None:
        wild = draw(st.integers(0, 3)) == 3
    return Author(draw, affine, wild).write()


def examples(count: int) -> settings:
    """Settings for tests over random programs, which are slow to draw, large, and slow to make smaller.

    A failing program is shown as it was drawn; the tests marked `long` make theirs smaller.
    """
    return settings(
        max_examples=count,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.explicit, Phase.reuse, Phase.generate),
    )


def many_examples(count: int) -> settings:
    """For tests marked `long`: new examples at every run, and failures made smaller."""
    phases = (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink)
    return settings(examples(count), derandomize=False, phases=phases)
