"""Random programs give what the serial semantics gives: value, error, effects in their order, arguments changed.

The oracle is an interpreter of that semantics (`serial_interpreter`), which Python itself must agree with.

Programs share variables between nested loops, alias and change lists and dicts, call functions that are pure,
declared, that fail, that log, that draw from a generator; they return early, raise, and catch.
"""

from __future__ import annotations

import linecache
import random
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from serial_interpreter import interpreted

import linnet as ln
from linnet.engines import Threads

ENGINES = [Threads(workers=count) for count in (1, 2, 7)]
EACH = 40
"""Programs of one example: 50 examples are 2,000 programs, the 2,500 of the long profile are 100,000."""


def inc(x):
    return x + 1


def mix(x, y):
    total = 0
    for each in (x, y):
        total += each * 3
    return total % 101


def slow(x):
    time.sleep(0.0002 * (x % 3))
    return x - 1


def fails(x):
    if x % 5 == 3:
        raise ValueError(f"no {x}")
    return x * 2


def late(x):
    time.sleep(0.0005)
    if x % 4 == 1:
        raise KeyError(x)
    return x + 2


def total(values):
    return sum(values)


def pair(x):
    return x, x + 1


def same(values):
    return values


def fresh(x):
    return [x, x + 1]


def array(x):
    return np.arange(3) + x


def summed(values):
    return int(values.sum())


def starred(x, *rest, scale=2, **named):
    return (x + sum(rest) * scale + len(named)) % 89


def swapped(values):
    return values[::-1]


class Box:
    """An object with an attribute, which the program makes itself."""

    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return f"Box({self.value!r})"


@ln.pure
def declared(x):
    time.sleep(0.0001)
    return x * 7 % 13


FUNCTIONS = ["inc", "slow", "fails", "late", "declared", "logged", "drawn", "local", "twice", "deeper"]
NUMBERS, LISTS, DICTS = ["a", "b", "c"], ["xs", "ys", "zs"], ["d"]


class Writer:
    """Writes one program."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.loops = 0
        self.size = 0

    def program(self) -> str:
        self.lines = [
            "def program(a, b, xs, logged, drawn, within):",
            "    c, ys, zs, d, total_, r = 0, [1, 2], xs, {0: 1}, 0, np.zeros(3)",
            "    nest, box = {'xs': xs, 'own': [4, 5]}, Box(3)",
            "    def local(x):",
            "        y = inc(x)",
            *(["        if y > 6: return fails(y)"] if self.random.random() < 0.3 else []),
            *(["        nonlocal c", "        c = c + 1"] if self.random.random() < 0.3 else []),
            "        return slow(y) + b",
            "    twice = lambda x: inc(inc(x)) + a",
            "    def deeper(x, step=2):",
            "        def inner(y):",
            "            return declared(y) + step * c",
            "        return inner(x) if x % 2 else inner(inc(x))",
        ]
        self.block(1, 3 + self.random.randrange(5), loop=False)
        self.lines.append(f"    return a, b, c, xs, ys, zs, d, total_, r, nest, box, {self.number(1)}")
        return "\n".join(self.lines) + "\n"

    def number(self, depth: int) -> str:
        choose = self.random.random()
        if depth <= 0 or choose < 0.25:
            return self.random.choice([*NUMBERS, *NUMBERS, "1", "2", "7"])
        if choose < 0.55:
            return f"{self.random.choice(FUNCTIONS)}({self.number(depth - 1)})"
        if choose < 0.6:
            return f"mix({self.number(depth - 1)}, {self.number(depth - 1)})"
        if choose < 0.75:
            return f"({self.number(depth - 1)} {self.random.choice('+-*')} {self.number(depth - 1)}) % 97"
        if choose < 0.8:
            return f"{self.random.choice(LISTS)}[{self.random.choice(['0', '-1', '1', 'a % 3'])}]"
        if choose < 0.84:
            return self.random.choice([f"len({self.values(1)})", f"total({self.values(1)})"])
        if choose < 0.88:
            return f"d.get({self.number(0)}, {self.number(depth - 1)})"
        if choose < 0.91:
            return f"({self.number(depth - 1)} if {self.truth(1)} else {self.number(depth - 1)})"
        if choose < 0.94:
            name = self.random.choice(FUNCTIONS)
            return f"len(f'{{{name}({self.number(0)}):>4}}|{{{self.values(0)}!r}}')"
        if choose < 0.955:
            return f"max({self.number(depth - 1)}, {self.number(depth - 1)})"
        if choose < 0.985:
            return self.random.choice(
                [
                    f"starred({self.number(depth - 1)}, *{self.values(0)}[:2], scale={self.number(0)})",
                    f"starred(*fresh({self.number(depth - 1)}), **{{'scale': {self.number(0)}, 'k': 1}})",
                    f"starred(1, {self.number(0)}, k={self.number(depth - 1)})",
                    "box.value % 50",
                    f"sum([i * j for i in range(3) for j in fresh({self.number(0)} % 5) if i != j])",
                    f"len({{i % 3: declared(i) for i in range({self.number(0)} % 5)}})",
                    f"sum({{slow(i) for i in {self.random.choice(LISTS)}[:4]}})",
                    f"(lambda x, y={self.number(0)}: declared(x) + y)({self.number(0)})",
                ]
            )
        return f"summed(array({self.number(depth - 1)}))"

    def values(self, depth: int) -> str:
        choose = self.random.random()
        if depth <= 0 or choose < 0.4:
            return self.random.choice(LISTS)
        if choose < 0.5:
            return f"[{self.number(1)}, {self.number(1)}]"
        if choose < 0.65:
            over = self.random.choice(["range(3)", f"{self.random.choice(LISTS)}[:3]"])
            return f"[{self.random.choice(FUNCTIONS)}(i) for i in {over} if {self.random.choice(['True', 'i % 2', 'inc(i) > 1'])}]"
        if choose < 0.75:
            return f"same({self.values(depth - 1)})"
        if choose < 0.8:
            return f"fresh({self.number(1)})"
        if choose < 0.85:
            return self.random.choice(
                ["nest['xs']", "nest['own']", f"swapped({self.values(depth - 1)})", f"[*{self.values(0)}, a]"]
            )
        if choose < 0.92:
            return f"{self.random.choice(LISTS)}[:{self.number(0)} % 4]"
        return f"sorted({self.values(depth - 1)})"

    def truth(self, depth: int) -> str:
        choose = self.random.random()
        if choose < 0.5:
            return f"{self.number(depth)} {self.random.choice(['<', '>', '==', '<=', '!='])} {self.number(depth)}"
        if choose < 0.6:
            return f"{self.number(1)} < {self.number(1)} < {self.number(1)}"
        if choose < 0.7:
            return f"{self.number(1)} in {self.random.choice(LISTS)}"
        if choose < 0.8:
            return f"xs is {self.random.choice(LISTS)}"
        if choose < 0.9:
            return f"({self.truth(0)} {self.random.choice(['and', 'or'])} {self.truth(0)})"
        return f"not {self.number(1)} % 2"

    def block(self, depth: int, count: int, *, loop: bool) -> None:
        for _ in range(count):
            self.statement(depth, loop=loop)

    def say(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def statement(self, depth: int, *, loop: bool) -> None:
        self.size += 1
        choose = self.random.random()
        if depth > 3 or self.size > 25:
            choose = choose * 0.62
        if choose < 0.16:
            self.say(depth, f"{self.random.choice(NUMBERS)} = {self.number(3)}")
        elif choose < 0.2:
            self.say(
                depth,
                f"a, b = {self.random.choice([f'pair({self.number(2)})', f'{self.number(2)}, {self.number(2)}', 'b, a'])}",
            )
        elif choose < 0.28:
            self.say(depth, f"{self.random.choice(['total_', 'total_', 'a'])} += {self.number(2)}")
        elif choose < 0.3:
            self.say(depth, f"r += {self.random.choice([f'array({self.number(1)})', f'{self.number(1)}'])}")
        elif choose < 0.33:
            self.say(depth, f"{self.random.choice(LISTS)} = {self.values(2)}")
        elif choose < 0.38:
            self.say(depth, self.change())
        elif choose < 0.42:
            self.say(depth, f"{self.random.choice(LISTS)}.append({self.number(2)})")
        elif choose < 0.45:
            self.say(
                depth,
                f"{self.random.choice(LISTS)} += {self.random.choice(['[1]', f'[{self.number(2)}]', f'fresh({self.number(1)})'])}",
            )
        elif choose < 0.49:
            self.say(
                depth,
                f"{self.random.choice(LISTS)}[{self.random.choice(['0', '-1'])}] {self.random.choice(['=', '+='])} {self.number(2)}",
            )
        elif choose < 0.53:
            self.say(depth, f"d[{self.number(1)}] = {self.number(2)}")
        elif choose < 0.56:
            self.say(
                depth,
                f"{self.random.choice(LISTS)}.{self.random.choice(['pop()', 'sort()', 'reverse()', 'insert(0, inc(a))', 'extend(ys[:2])'])}",
            )
        elif choose < 0.6:
            self.say(depth, f"logged({self.number(2)})")
        elif choose < 0.62:
            leave = (
                self.random.choice(["break", "continue", f"return {self.number(2)}"])
                if loop
                else f"return {self.number(2)}"
            )
            self.say(depth, f"if {self.truth(1)}: {leave}")
        elif choose < 0.74:
            self.say(depth, f"if {self.truth(2)}:")
            self.block(depth + 1, 2, loop=loop)
            if self.random.random() < 0.5:
                self.say(depth, "else:")
                self.block(depth + 1, 1, loop=loop)
        elif choose < 0.86:
            self.loop(depth)
        elif choose < 0.94:
            self.attempt(depth, loop=loop)
        elif choose < 0.97:
            kept = self.random.choice(["", " as c", " as (a, b)"])
            both = f"within({self.number(1)}), " if self.random.random() < 0.3 else ""
            self.say(depth, f"with {both}within({self.number(2)}){kept}:")
            self.block(depth + 1, 2, loop=loop)
        else:
            self.say(
                depth,
                f"raise RuntimeError(str({self.number(1)}))"
                if self.random.random() < 0.5
                else f"assert {self.truth(1)}, {self.number(1)}",
            )

    def change(self) -> str:
        """A statement that changes part of something."""
        values, number = self.random.choice([*LISTS, "nest['xs']", "nest['own']"]), self.number(1)
        return self.random.choice(
            [
                f"{values}[:1] = fresh({number})", f"{values}[1:] += [{number}]", f"del {values}[0]", f"del {values}[-1:]",
                f"box.value = {number}", f"box.value += {number}", f"box = Box({number})", f"nest['own'] = {self.values(1)}",
                f"nest['own'].append({number})", f"nest['xs'] = {self.values(0)}", f"d.pop({number}, None)", f"del d[{number}]",
                f"d.setdefault({number}, {self.number(1)})", f"c, *ys = {self.values(1)}", f"a, (b, c) = {number}, pair({self.number(1)})",
                "r[1:] *= 2", f"r[{number} % 3] += {self.number(1)}", f"d[a] = d.get(a, 0) + {number}", f"a = b = {number}",
            ]
        )  # fmt: skip

    def loop(self, depth: int) -> None:
        self.loops += 1
        name = f"k{self.loops}"
        kind = self.random.random()
        if kind < 0.4:
            self.say(depth, f"for {self.random.choice(['a', name])} in range({self.random.randrange(1, 5)}):")
        elif kind < 0.6:
            self.say(depth, f"for {self.random.choice(['b', name])} in list({self.values(1)})[:4]:")
        elif kind < 0.75:
            self.say(depth, f"for {name}, c in enumerate({self.values(1)}[:4]):")
        else:
            self.say(depth, f"{name} = 0")
            self.say(depth, f"while {name} < 3 and {self.truth(1)}:")
            self.say(depth + 1, f"{name} += 1")
        self.block(depth + 1, 2, loop=True)
        if self.random.random() < 0.2:
            self.say(depth, "else:")
            self.block(depth + 1, 1, loop=False)

    def attempt(self, depth: int, *, loop: bool) -> None:
        self.say(depth, "try:")
        self.block(depth + 1, 2, loop=loop)
        if self.random.random() < 0.8:
            self.say(
                depth,
                f"except {self.random.choice(['ValueError', 'KeyError', '(ValueError, KeyError)', 'Exception'])} as error:",
            )
            self.say(depth + 1, "logged(str(error))")
            self.block(depth + 1, 1, loop=loop)
            if self.random.random() < 0.3:
                self.say(depth, "else:")
                self.block(depth + 1, 1, loop=loop)
        else:
            self.say(depth, "finally:")
            self.say(depth + 1, f"logged({self.number(1)})")
            if self.random.random() < 0.3:
                self.say(
                    depth + 1,
                    self.random.choice(["c = inc(c)", f"ys.append({self.number(1)})", self.change()]),
                )


def made(seed: int) -> tuple[Any, str]:
    """The plain function of a random program, and its source."""
    text = Writer(seed).program()
    file = f"<random program {seed}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names = dict(globals())
    exec(compile(text, file, "exec", dont_inherit=True), names)
    return names["program"], text


def outcome(function: Any) -> tuple[Any, ...]:
    """What comes of a call: value or error, what was logged in which order, and what became of arguments."""
    log: list[Any] = []
    numbers = random.Random(5)

    def logged(x):
        log.append(x)
        return len(log)

    def drawn(x):
        return numbers.randrange(10) + x

    class Within:
        """Notes that it is entered and left, and keeps errors of one kind to itself."""

        def __init__(self, x):
            self.x = x

        def __enter__(self):
            log.append(("enter", self.x))
            return (self.x, 1) if self.x % 2 else self.x

        def __exit__(self, kind, error, trace):
            log.append(("exit", kind, str(error)))
            return kind is KeyError

    values = [3, 1]
    try:
        value: Any = repr(function(1, 2, values, logged, drawn, Within))
    except Exception as error:
        value = type(error), str(error), type(error.__context__)
    return value, log, values


def check(seeds: range) -> None:
    for seed in seeds:
        plain, text = made(seed)
        expected = outcome(interpreted(text, "program", plain.__globals__))
        assert outcome(plain) == expected, f"seed {seed}: Python itself differs\n{text}"
        together = ln.parallel(plain)
        for engine in ENGINES:
            with ln.init(engine):
                found = outcome(together)
            assert found == expected, f"seed {seed}, {engine.workers} workers\n{text}"
        linecache.cache.pop(f"<random program {seed}>")


PARTS = 10
EXAMPLES = {"check": 1, "long": 250}.get(settings.get_current_profile_name(), 5)
"""Of EACH programs in each part: 2,000 in the ordinary run, 100,000 in the long one."""


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(PARTS))
@settings(max_examples=EXAMPLES)
@given(start=st.integers(0, 2**40))
def test_random_programs_give_what_the_plain_function_gives(part: int, start: int):
    check(range((part << 44) + start, (part << 44) + start + EACH))


@pytest.mark.slow
def test_some_programs_every_time():
    check(range(20))
