"""Which functions count as pure, and which parallel functions are refused."""

from __future__ import annotations

import math
import re
import time

import numpy as np
import pytest

import linnet as ln
from linnet.futures import purity
from linnet.futures.purity import ANALYSED, BUILTIN, DECLARED, MATH, NUMPY, ORDERED, kind_of, verdict

TABLE = [1, 2, 3]
FACTOR = 2
NUMBERS = np.random.default_rng(0)


class Odd(Exception):
    """An error of the user's own."""


class Thing:
    value = 3


def arithmetic(x, y=2):
    """Has a docstring."""
    z = x * y + FACTOR
    return -z if z > 3 else abs(z) // 2


def local_changes(values):
    found, counts = [], {}
    for at, each in enumerate(values):
        found.append(each)
        counts[at] = each
    table = np.zeros(3)
    table[1] = 5
    table[2] += 1
    total = 0
    for each in found:
        total += each
    found.sort()
    return found, counts, table, total


def calls_others(x):
    time.sleep(0)
    return arithmetic(x) + math.sqrt(x) + float(np.sum(np.arange(x))) + len(str(x).upper())


def inner_functions(x):
    def twice(y):
        return y * 2

    return (
        sorted([twice(x), 1], key=lambda each: -each)
        + [y + 1 for y in map(twice, [1, 2])]
        + [sum(i for i in [x])]
    )


def raises(x):
    try:
        if x > 2:
            raise Odd(x)
    except ValueError as error:
        return str(error)
    return TABLE[0] + x


def itself(n):
    return 1 if n == 0 else n * itself(n - 1)


def even(n):
    return True if n == 0 else odd(n - 1)


def odd(n):
    return False if n == 0 else even(n - 1)


PURE = [arithmetic, local_changes, calls_others, inner_functions, raises, itself, even, odd]


@pytest.mark.parametrize("f", PURE, ids=lambda f: f.__name__)
def test_functions_whose_source_shows_no_effect_are_pure(f):
    assert verdict(f).reason == ""
    assert kind_of(f) == ANALYSED


def prints(x):
    print(x)


def opens(x):
    return open(x)


def uses_global():
    global FACTOR
    FACTOR = 3


def changes_a_parameter(x):
    x.append(1)


def changes_an_item(x):
    x[0] = 1


def adds_to_a_parameter(x):
    x += [1]
    return x


def adds_to_an_alias(x):
    y = x
    y += [1]
    return y


def changes_what_is_inside(x):
    rows = [x]
    rows[0].append(1)
    return rows


def adds_inside(x):
    rows = [x]
    rows[0] += [1]
    return rows


def changes_a_table():
    TABLE.append(1)


def draws():
    return NUMBERS.random()


def draws_too():
    return np.random.random()


def writes_into(x):
    return np.add(x, 1, x)


def writes_out(x):
    return np.add(x, 1, out=x)


def calls_what_it_is_given(f):
    return f(1)


def gives_a_generator(x):
    return (y for y in x)


def generates(x):
    yield x


def sets_an_attribute(x):
    x.a = 1


def reads_a_class():
    return Thing.value + 1


def makes_an_object():
    return Thing()


def in_a_loop(rows):
    for row in rows:
        row.append(1)


def calls_an_impure_one(x):
    return prints(x)


def imports():
    import os

    return os


def unknown():
    return nothing_of_this_name


def default(x, into=Thing()):  # noqa: B008
    return x


IMPURE = [
    prints, opens, uses_global, changes_a_parameter, changes_an_item, adds_to_a_parameter, adds_to_an_alias,
    changes_what_is_inside, adds_inside, changes_a_table, draws, draws_too, writes_into, writes_out,
    calls_what_it_is_given, gives_a_generator, generates, sets_an_attribute, reads_a_class, makes_an_object,
    in_a_loop, calls_an_impure_one, imports, unknown, default,
]  # fmt: skip


@pytest.mark.parametrize("f", IMPURE, ids=lambda f: f.__name__)
def test_functions_that_may_have_an_effect_are_not(f):
    assert verdict(f).reason
    assert kind_of(f) == ORDERED


def test_listed_functions_have_their_kinds():
    assert kind_of(math.sqrt) == MATH
    assert kind_of(np.dot) == kind_of(np.linalg.svd) == kind_of(np.sin) == NUMPY
    assert kind_of(len) == kind_of(sorted) == BUILTIN
    assert kind_of(time.sleep) == DECLARED
    for f in (print, open, input, next, iter, np.save, np.copyto, np.random.rand, Thing, Thing().__init__):
        assert kind_of(f) == ORDERED


def test_a_declaration_counts_for_anything_that_can_be_called():
    marked = ln.pure(prints_too)
    assert marked is prints_too
    assert kind_of(marked) == DECLARED
    reader = ln.pure(NUMBERS.bytes)
    assert kind_of(reader) == DECLARED
    assert kind_of(NUMBERS.bit_generator.random_raw) == ORDERED
    purity._declared.clear()


def prints_too(x):
    print(x)


def test_a_name_that_means_something_else_now_is_looked_at_again():
    names: dict[str, object] = {}
    exec("", names)
    global helper
    helper = arithmetic
    assert kind_of(uses_helper) == ANALYSED
    helper = prints
    assert kind_of(uses_helper) == ORDERED


def uses_helper(x):
    return helper(x)


def test_a_wrapper_is_judged_by_its_own_source():
    import functools

    def wrapping(f):
        @functools.wraps(f)
        def wrapper(*args):
            print(args)
            return f(*args)

        return wrapper

    assert kind_of(wrapping(arithmetic)) == ORDERED


REFUSED = {
    "yield": ("def f(x):\n    yield x\n", "a generator gives its values", 2),
    "generator": ("def f(x):\n    return sum(y for y in x)\n", "write a list comprehension", 2),
    "async": ("async def f(x):\n    return x\n", "`async` functions cannot run as futures", 1),
    "await": ("def f(x):\n    async def g():\n        await x\n    return g\n", "`await` leaves", 3),
    "global": ("def f(x):\n    global y\n    y = x\n", "`global` changes what others see", 2),
    "attribute": ("def f(x):\n    x.a = 1\n", "`x.a = ...` changes an object that others hold", 2),
    "augmented": ("def f(x):\n    x.a += 1\n", "`x.a = ...` changes an object that others hold", 2),
    "outside": ("import os\ndef f(x):\n    os.a = 1\n", "changes an object that others hold", 3),
    "class": ("def f(x):\n    class A:\n        pass\n", "classes cannot be defined here", 2),
    "match": ("def f(x):\n    match x:\n        case 1:\n            pass\n", "write `if` and `elif`", 2),
    "walrus": ("def f(x):\n    return (y := x)\n", "assign in a statement before", 2),
    "locals": ("def f(x):\n    return locals()\n", "`locals` looks at the variables", 2),
    "except": (
        "def f(x):\n    try:\n        x\n    except x():\n        pass\n",
        "must be classes, by name",
        4,
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_run_as_futures_is_refused_when_decorating(name, tmp_path):
    text, words, line = REFUSED[name]
    file = tmp_path / "program.py"
    file.write_text(text)
    names: dict[str, object] = {}
    exec(compile(text, str(file), "exec"), names)
    with pytest.raises(ln.ParallelError, match=re.escape(words)) as caught:
        ln.parallel(names["f"])  # type: ignore[arg-type]
    shown = str(caught.value)
    assert f"program.py:{line}:" in shown
    assert "^" in shown
    assert shown.startswith("parallel function 'f': ")
    assert isinstance(caught.value, ln.ProgramError)


def test_all_that_is_wrong_is_shown_together(tmp_path):
    file = tmp_path / "program.py"
    file.write_text("def f(x):\n    x.a = 1\n    yield x\n")
    names: dict[str, object] = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    with pytest.raises(ln.ParallelError, match="2 problems"):
        ln.parallel(names["f"])  # type: ignore[arg-type]


def test_what_is_no_function_with_a_source_is_refused():
    with pytest.raises(ln.ParallelError, match="takes a Python function, and was given a builtin"):
        ln.parallel(len)
    with pytest.raises(ln.ParallelError, match="it is a lambda; write it with `def`"):
        ln.parallel(lambda x: x)
    names: dict[str, object] = {}
    exec("def f(x):\n    return x\n", names)
    with pytest.raises(ln.ParallelError, match="its source cannot be read"):
        ln.parallel(names["f"])  # type: ignore[arg-type]


def test_a_source_that_was_changed_meanwhile_is_not_believed(tmp_path):
    file = tmp_path / "program.py"
    file.write_text("def f(x):\n    return x + 1\n")
    names: dict[str, object] = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    file.write_text("def f(x):\n    return x + 2\n")
    with pytest.raises(ln.ParallelError, match="its source has changed since it was defined"):
        ln.parallel(names["f"])  # type: ignore[arg-type]
    assert kind_of(names["f"]) == ORDERED
