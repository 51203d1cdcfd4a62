"""Errors of parallel functions: the first in the order of the program, with the user's lines."""

from __future__ import annotations

import threading
import time
import traceback

import pytest

import linnet as ln
from linnet.engines import Threads

ENGINES = [Threads(workers=count) for count in (1, 2, 7)]
LOG: list[object] = []


def inc(x):
    return x + 1


def fails(x):
    raise ValueError(f"no {x}")


def fails_late(x):
    time.sleep(0.05)
    raise KeyError(x)


def log(x):
    LOG.append(x)
    return x


def test_the_first_error_in_the_order_of_the_program_surfaces():
    @ln.parallel
    def program():
        a = fails_late(1)  # comes first, happens last
        b = fails(2)
        log("never")
        return a, b

    LOG.clear()
    for engine in ENGINES:
        with ln.init(engine), pytest.raises(KeyError, match="1"):
            program()
    assert LOG == []


def test_an_error_shows_even_if_nobody_uses_the_value():
    @ln.parallel
    def program():
        fails(3)
        return "fine"

    with pytest.raises(ValueError, match="no 3"):
        program()


def test_the_traceback_shows_the_users_lines():
    @ln.parallel
    def program(x):
        y = inc(x)
        z = fails(y)  # this line
        w = inc(y)
        return w, z

    with pytest.raises(ValueError, match="no 2") as caught:
        program(1)
    shown = traceback.extract_tb(caught.value.__traceback__)
    mine = [(each.name, each.line) for each in shown if each.filename == __file__]
    assert [name for name, _ in mine][-2:] == ["program", "fails"]
    assert mine[-2][1] == "z = fails(y)  # this line"
    assert mine[-1][1] == 'raise ValueError(f"no {x}")'


def test_what_comes_after_an_error_is_cancelled():
    ran = []
    gate = threading.Event()

    @ln.pure
    def blocks(x):
        gate.wait()
        ran.append(x)

    @ln.parallel
    def program():
        fails(1)
        return [blocks(i) for i in range(20)]

    with ln.init(ENGINES[0]), pytest.raises(ValueError, match="no 1"):
        program()
    gate.set()
    with ln.init(ENGINES[0]):
        ln.submit_call(int).result()
    assert len(ran) <= 2
