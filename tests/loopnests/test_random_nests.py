"""Random nests: each equals its plain run, or is refused; nothing in between."""

from __future__ import annotations

import linecache
import types
import warnings

import numpy as np
import pytest
from comparing import equal
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import linnet as ln

SHAPES = {"A": (6, 7), "B": (7, 6), "M": (6, 7), "v": (7,), "w": (6,), "k": (6,)}
WRITTEN = ("A", "B", "v", "w")


@st.composite
def index(draw, variables: list[str], length: int) -> str:
    """An index that mostly stays inside an axis."""
    if not variables or draw(st.integers(0, 9)) == 0:
        return str(draw(st.integers(0, length - 1)))
    v = draw(st.sampled_from(variables))
    form = draw(st.integers(0, 11))
    if form < 7:
        return v
    if form == 7:
        return f"{v} - 1"
    if form == 8:
        return f"{v} + 1"
    if form == 9:
        return f"{length - 1} - {v}"
    if form == 10:
        return f"({v} + 2) % {length}"
    return f"{v} // 2"


@st.composite
def element(draw, variables: list[str], names: tuple[str, ...]) -> str:
    name = draw(st.sampled_from(names))
    return f"{name}[{', '.join(draw(index(variables, n)) for n in SHAPES[name])}]"


@st.composite
def value(draw, variables: list[str], depth: int = 2) -> str:
    form = draw(st.integers(0, 13)) if depth else draw(st.integers(0, 5))
    if form < 4:
        return draw(element(variables, ("A", "B", "M", "v", "w")))
    if form == 4:
        return draw(st.sampled_from(["2", "0.5", "-1", *variables]))
    if form == 5:
        return "t" if draw(st.booleans()) and "t" in variables else "1.5"
    one, other = draw(value(variables, depth - 1)), draw(value(variables, depth - 1))
    if form < 11:
        return f"({one} {draw(st.sampled_from(['+', '-', '*', '*', '+']))} {other})"
    if form == 11:
        return f"{draw(st.sampled_from(['min', 'max']))}({one}, {other})"
    if form == 12:
        return f"({one} if {draw(condition(variables))} else {other})"
    return f"abs({one})"


@st.composite
def condition(draw, variables: list[str]) -> str:
    form = draw(st.integers(0, 4))
    if form == 0 and variables:
        return f"{draw(st.sampled_from(variables))} {draw(st.sampled_from(['<', '>=', '==', '!=']))} {draw(st.integers(0, 4))}"
    if form == 1 and len(variables) > 1:
        return f"{variables[0]} {draw(st.sampled_from(['<', '>=', '==']))} {variables[1]}"
    if form == 2 and variables:
        return f"{variables[-1]} % 2 == 0"
    return f"{draw(element(variables, ('M', 'v')))} > {draw(st.sampled_from(['0', '0.3']))}"


@st.composite
def bounds(draw, variables: list[str]) -> str:
    form = draw(st.integers(0, 9))
    if form < 5:
        return "range(1, 5)"
    if form == 5:
        return "range(6)"
    if form == 6 and variables:
        return f"range(1, {variables[-1]} + 1)" if draw(st.booleans()) else f"range({variables[-1]}, 5)"
    if form == 7:
        return "range(4, 0, -1)"
    if form == 8:
        return "range(1, 6, 2)"
    return f"range(max(1, {variables[-1]} - 1), min(5, {variables[-1]} + 2))" if variables else "range(1, 4)"


@st.composite
def block(draw, variables: list[str], depth: int, indent: str) -> list[str]:
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 2))):
        form = draw(st.integers(0, 11))
        if form < 4 and depth:
            name = f"i{len(variables)}"
            lines.append(f"{indent}for {name} in {draw(bounds(variables))}:")
            lines += draw(block([*variables, name], depth - 1, indent + "    "))
        elif form == 4:
            lines.append(f"{indent}if {draw(condition(variables))}:")
            lines += draw(block(variables, 0, indent + "    "))
        elif form == 5:
            lines.append(f"{indent}t = {draw(value(variables, 1))}")
            lines.append(f"{indent}{draw(element(variables, WRITTEN))} += t")
        elif form == 6:
            target = draw(element(variables, WRITTEN))
            lines.append(
                f"{indent}{target} = {draw(st.sampled_from(['min', 'max']))}({target}, {draw(value(variables))})"
            )
        elif form == 7:
            lines.append(f"{indent}v[k[{draw(index(variables, 6))}]] += {draw(value(variables, 1))}")
        elif form == 8:
            lines.append(f"{indent}s += {draw(value(variables, 1))}")
        else:
            op = draw(st.sampled_from(["=", "=", "+=", "-=", "+="]))
            lines.append(f"{indent}{draw(element(variables, WRITTEN))} {op} {draw(value(variables))}")
    return lines


@st.composite
def programs(draw) -> str:
    lines = ["def program(A, B, M, v, w, k):", "    s = 0.0"]
    for _ in range(draw(st.integers(1, 2))):
        lines.append(f"    for i0 in {draw(bounds([]))}:")
        lines += draw(block(["i0"], 2, "        "))
    return "\n".join([*lines, "    return s", ""])


COUNT = [0, 0]


def made(text: str) -> types.FunctionType:
    """A function whose text can be looked up."""
    COUNT[0] += 1
    file = f"<random {COUNT[0]}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict[str, object] = {"ln": ln, "__name__": "random"}
    exec(compile(text, file, "exec"), space)
    return space["program"]


def compared(text: str, seed: int) -> str:
    """How a program fares: "same" or "refused"."""
    rng = np.random.default_rng(seed)
    arrays = {name: rng.standard_normal(shape) for name, shape in SHAPES.items()}
    arrays["k"] = rng.integers(0, 7, 6)
    function = made(text)
    mine = {name: each.copy() for name, each in arrays.items()}
    try:
        got = ln.loops(function)(**mine)
    except ln.LoopError as error:
        assert error.line > 0
        for name, each in arrays.items():
            np.testing.assert_array_equal(mine[name], each)
        return "refused"
    plain = {name: each.copy() for name, each in arrays.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = function(**plain)
    if not all(np.isfinite(each).all() and np.abs(each).max() < 1e100 for each in plain.values()):
        return "same"
    equal(got, expected, 1e-7)
    for name, each in plain.items():
        equal(mine[name], each, 1e-7)
    return "same"


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(), st.integers(0, 3))
def test_a_random_nest_is_the_same_or_refused(text, seed):
    note(text)
    compared(text, seed)


@pytest.mark.long
@settings(max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(), st.integers(0, 3))
def test_many_random_nests_are_the_same_or_refused(text, seed):
    note(text)
    compared(text, seed)
