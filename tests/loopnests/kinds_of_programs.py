"""Random programs of many kinds: sizes from 0, dtypes from Booleans to complex numbers, values at the ends of
their dtypes or not finite, steps that go down or skip, strided and wrapped indices, guards with other branches."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

DTYPES = ("float64", "float32", "int64", "int32", "int16", "int8", "uint8", "uint64", "bool", "complex128")
AXES = {"A": "mn", "B": "nm", "M": "mn", "v": "n", "w": "m", "k": "m"}
WRITTEN = ("A", "B", "v", "w")
READ = ("A", "B", "M", "v", "w")
Variables = list[tuple[str, str]]
"""Loop variables, each with the size it runs to."""


class Programs:
    """One program of a seed, with its arrays."""

    def __init__(self, seed: int) -> None:
        self.random: random.Random = random.Random(seed)
        pick = self.random.choice
        small = self.random.random() < 0.25
        self.sizes: dict[str, int] = {
            name: pick([0, 1, 2, 3, 5]) if small else pick([5, 6, 7]) for name in "mn"
        }
        base = pick(DTYPES)
        self.dtypes: dict[str, str] = {
            name: base if self.random.random() < 0.75 else pick(DTYPES) for name in READ
        } | {"k": "int64"}
        self.at_the_ends: bool = self.random.random() < 0.15
        self.not_finite: bool = self.random.random() < 0.15
        self.text: str = self._program()
        self.arrays: dict[str, np.ndarray[Any, Any]] = self._arrays()
        self.chunks: int | None = pick([None, None, 1, 2, 3])

    def _chance(self, part: float) -> bool:
        return self.random.random() < part

    def _index(self, variables: Variables, size: str) -> str:
        pick = self.random.choice
        length = self.sizes[size]
        if not variables or self._chance(0.08):
            return pick(["0", f"{size} - 1", "1" if length > 1 else "0"])
        name, runs = pick([each for each in variables if each[1] == size] or variables)
        if runs != size and length and self.sizes[runs] > length and self._chance(0.9):
            return f"{name} % {size}"
        if self._chance(0.7):
            return name
        forms = [f"{size} - 1 - {name}"] * 3 + [f"{name} // 2", f"{name} % 2", f"{name} - 1", f"{name} + 1"]
        if length:
            forms += [f"({name} + {pick([1, 2, 3])}) % {size}", f"2 * {name} % {size}", f"2 * {name}"]
        return pick(forms)

    def _element(self, variables: Variables, names: tuple[str, ...]) -> str:
        name = self.random.choice(names)
        return f"{name}[{', '.join(self._index(variables, size) for size in AXES[name])}]"

    def _condition(self, variables: Variables) -> str:
        pick, form = self.random.choice, self.random.random()
        if variables and form < 0.3:
            return f"{pick(variables)[0]} {pick(['<', '>=', '==', '!='])} {pick(['0', '1', '3', 'm - 1', 'n - 2'])}"
        if len(variables) > 1 and form < 0.5:
            return f"{variables[0][0]} {pick(['<', '>=', '==', '<='])} {variables[-1][0]}"
        if variables and form < 0.6:
            return f"{variables[-1][0]} % {pick([2, 3])} == {pick([0, 1])}"
        if form < 0.66:
            return f"({self._condition(variables)}) {pick(['and', 'or'])} ({self._condition(variables)})"
        if form < 0.7:
            return f"not ({self._condition(variables)})"
        names = ("A", "M", "v", "w")
        return f"{self._element(variables, names)} {pick(['>', '<=', '==', '!='])} {pick(['0', '1', '0.3', '2'])}"

    def _value(self, variables: Variables, depth: int = 2) -> str:
        pick, form = self.random.choice, self.random.random()
        if depth == 0 or form < 0.3:
            if self._chance(0.75):
                return self._element(variables, READ)
            if variables and self._chance(0.5):
                return pick(variables)[0]
            return pick(["2", "0.5", "-1", "1", "3", "100", "True", "t"])
        one, other = self._value(variables, depth - 1), self._value(variables, depth - 1)
        if form < 0.7:
            return f"({one} {pick('+-*+*')} {other})"
        if form < 0.78:
            return f"{pick(['min', 'max'])}({one}, {other})"
        if form < 0.86:
            return f"({one} if {self._condition(variables)} else {other})"
        if form < 0.93:
            return (
                f"({one} {pick(['//', '%', '/'])} {pick(['2', '3', '-2', self._element(variables, READ)])})"
            )
        if form < 0.96:
            inside = [*variables, ("q", "n")]
            runs = pick(["n", "n", "1, n", "0", "n - 1, -1, -1"])
            test = f" if {self._condition(inside)}" if self._chance(0.2) else ""
            return (
                f"{pick(['sum', 'max', 'min'])}({self._element(inside, READ)} for q in range({runs}){test})"
            )
        return pick([f"abs({one})", f"(-{one})", f"({one}) ** 2"])

    def _range(self, variables: Variables) -> tuple[str, str]:
        pick, size = self.random.choice, self.random.choice("mn")
        forms = [f"{size}"] * 5 + [f"1, {size}"] * 2 + [f"{size} - 1, -1, -1"] * 2
        forms += [
            f"1, {size} - 1",
            f"{size} - 1, 0, -2",
            f"{pick([0, 1])}, {size}, {pick([2, 3])}",
            f"{size} // 2",
            "3, 3",
        ]
        if variables:
            name, runs = variables[-1]
            forms += [f"{name} + 1, {size}", f"max(0, {name} - 1), min({size}, {name} + 2)"]
            if self._chance(0.2):
                return f"range({pick([name, f'{name}, -1, -1'])})", runs
        return f"range({pick(forms)})", size

    def _block(self, variables: Variables, depth: int, indent: str) -> list[str]:
        return [
            line for _ in range(self.random.choice([1, 1, 2, 2, 3]))
            for line in self._statement(variables, depth, indent)
        ]  # fmt: skip

    def _statement(self, variables: Variables, depth: int, indent: str) -> list[str]:
        pick, form = self.random.choice, self.random.random()
        inner = indent + "    "
        value, target = self._value(variables), self._element(variables, WRITTEN)
        if form < 0.36 and depth:
            runs, size = self._range(variables)
            name = f"i{len(variables)}"
            return [
                f"{indent}for {name} in {runs}:",
                *self._block([*variables, (name, size)], depth - 1, inner),
            ]
        if 0.36 <= form < 0.46 and len(indent) < 20:
            lines = [f"{indent}if {self._condition(variables)}:", *self._block(variables, 0, inner)]
            if self._chance(0.25):
                lines += [f"{indent}elif {self._condition(variables)}:", *self._block(variables, 0, inner)]
            if self._chance(0.5):
                lines += [f"{indent}else:", *self._block(variables, 0, inner)]
            return lines
        if form < 0.52:
            return [f"{indent}t = {value}", f"{indent}{target} {pick(['=', '+='])} {pick(['t', 't * 2'])}"]
        if form < 0.58:
            return [f"{indent}{target} = {pick(['min', 'max'])}({target}, {value})"]
        if form < 0.61:
            return [f"{indent}v[k[{self._index(variables, 'm')}]] += {value}"]
        if form < 0.67:
            return [f"{indent}s {pick(['+=', '+=', '*=', '-='])} {value}"]
        if form < 0.7:
            return [f"{indent}s = {pick(['min', 'max'])}(s, {value})"]
        if form < 0.73:
            return [f"{indent}if {self._condition(variables)}:", f"{inner}continue"]
        if form < 0.76:
            at, word = self._index(variables, "m"), pick(["min", "max"])
            return [f"{indent}w[{at}], g[{at}] = {word}((w[{at}], g[{at}]), ({value}, {variables[0][0]}))"]
        return [f"{indent}{target} {pick(['=', '=', '+=', '-=', '*='])} {value}"]

    def _program(self) -> str:
        start = self.random.choice(["0.0", "0", "1", "False", "-1.5"])
        lines = ["def program(A, B, M, v, w, k, g):", "    m, n = A.shape", f"    s = {start}", "    t = 0"]
        for _ in range(self.random.choice([1, 1, 2])):
            runs, size = self._range([])
            lines += [f"    for i0 in {runs}:", *self._block([("i0", size)], 2, "        ")]
        return "\n".join([*lines, "    return s", ""])

    def _arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        rng = np.random.default_rng(self.random.randrange(10**9))
        made = {"g": np.zeros(self.sizes["m"], np.int64)}
        for name, axes in AXES.items():
            shape, dtype = tuple(self.sizes[each] for each in axes), np.dtype(self.dtypes[name])
            odd: Any = None
            if name == "k":
                array = rng.integers(0, max(self.sizes["n"], 1), shape)
            elif dtype.kind in "iu":
                array = rng.integers(-5 if dtype.kind == "i" else 0, 6, shape).astype(dtype)
                ends = np.iinfo(dtype)
                odd = [ends.min, ends.max, ends.max - 1] if self.at_the_ends else None
            elif dtype.kind == "b":
                array = rng.random(shape) < 0.5
            else:
                array = rng.standard_normal(shape).astype(dtype)
                odd = [np.nan, np.inf, -np.inf, -0.0] if self.not_finite and dtype.kind == "f" else None
            if odd is not None:
                array = np.where(rng.random(shape) < 0.2, rng.choice(np.array(odd, dtype), shape), array)
            made[name] = array.astype(dtype)
        return made
