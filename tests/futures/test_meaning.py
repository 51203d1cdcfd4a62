"""A parallel function means what the plain function means: directed cases for each part of the language."""

from __future__ import annotations

import math
import random
import threading
import time

import numpy as np
import pytest

import linnet as ln
from linnet.engines import Threads

ENGINES = [Threads(workers=count) for count in (1, 2, 7)]
LOG: list[object] = []


def inc(x):
    return x + 1


def double(x):
    time.sleep(0.001)
    return x * 2


def fails(x):
    raise ValueError(f"no {x}")


def fails_late(x):
    time.sleep(0.05)
    raise KeyError(x)


def log(x):
    LOG.append(x)
    return x


def first(values):
    return values[0]


def identity(x):
    return x


def total(values):
    return sum(values)


class Account:
    """Operators with effects."""

    def __init__(self):
        self.entries = []

    def __add__(self, other):
        self.entries.append(other)
        return self

    def __len__(self):
        LOG.append("len")
        return len(self.entries)

    @property
    def last(self):
        LOG.append("last")
        return self.entries[-1]


# ---------------------------------------------------------------- programs


def branches(x):
    if double(x) > 4:
        y = inc(x)
    elif double(x) == 4:
        y = -inc(x)
    else:
        y = inc(inc(x))
    return y if y % 2 else (y, "even")


def loops(n):
    found = []
    for i in range(n):
        if inc(i) == 3:
            continue
        for j, k in enumerate([double(i), inc(i)]):
            if k > 12:
                break
            found.append((i, j, k))
        else:
            found.append("whole")
    while len(found) > 5 and inc(len(found)) > 3:
        found.pop()
    else:
        found.append(inc(1))
    return found


def containers(n):
    xs = [double(i) for i in range(n) if inc(i) != 2]
    ys = xs
    ys.append(inc(n))
    d = {str(i): double(i) for i in range(n)}
    d["x"] = xs
    d.update({"y": double(5)})
    s = {inc(i) % 3 for i in range(n)}
    t = (xs[0], double(1), *xs[1:])
    a, (b, *c) = t[0], xs
    xs[0], xs[-1] = xs[-1], xs[0]
    del d["0"]
    return xs is ys, xs, d, s, t, a, b, c, xs[1:], sorted(d), [*xs, *s], {**d, "z": 1}


def aliasing(n):
    xs = [1, 2]
    ys = first([xs, [3]])
    before = total(xs)
    ys += [double(n)]
    after = total(xs)
    zs = identity(xs)
    zs[0] = 100
    last = total(ys)
    a = np.zeros(3)
    b = a
    b += double(n)
    c = a + 1
    a[0] = 7
    return xs, ys, zs, before, after, last, a, b, c


def accumulated(n):
    count, text, arrays = 0, "", 0
    for i in range(n):
        count += double(i)
        text += f"{inc(i):>3}|{i!r}"
        arrays += np.arange(3) * double(i)
    kept = arrays
    arrays += 1
    return count, text, arrays, kept


def short_circuits(x):
    values = [
        log(0) and log(1),
        log(2) or log(3),
        not log(""),
        log(1) < log(2) < log(0) < log(9),
        5 < inc(x) < log(7),
    ]
    return values, (log("yes") if inc(x) else log("no"))


def functions(n):
    count = 0

    def add(x, *more, scale=2, **named):
        nonlocal count
        count = count + 1
        return inc(x) * scale + sum(more) + len(named)

    thrice = lambda x: double(x) + x  # noqa: E731
    made = [add(i, double(i), i, scale=3, other=1) for i in range(n)]
    made += sorted([3, 1, 2], key=lambda x: -thrice(x))
    return made, count, max([1, 5, 3], key=add), list(map(thrice, range(3)))


def effects(n):
    for i in range(n):
        log(double(i))
        inc(i)
        log(inc(i))
    return len(LOG)


def drawing(n):
    numbers = random.Random(3)
    return [double(numbers.random()) for _ in range(n)], np.random.default_rng(1).random(n).tolist()


def objects(n):
    account = Account()
    result = account + double(n)
    same = result + 3
    size = len(account)
    return size, same is account, account.entries, same.last, size


def raising(n):
    values = []
    try:
        values.append(inc(1))
        values.append(fails_late(1))
        values.append(inc(2))
    except KeyError as error:
        log(f"caught {error}")
        values.append("caught")
    else:
        values.append("else")
    finally:
        log("finally")
    x = 1
    try:
        x = fails(n)
        x = 3
    except ValueError:
        x = (x, "old")
    return values, x


def leaving_a_try(n):
    for i in range(n):
        try:
            if inc(i) == 2:
                continue
            if inc(i) == 4:
                break
            y = fails(i) if i == 2 else inc(i)
            log(y)
        except ValueError:
            log("caught")
        finally:
            log(i)
    try:
        return double(n)
    finally:
        log("end")


def arrays(n):
    a = np.arange(12.0).reshape(3, 4)
    b = np.linalg.norm(a @ a.T) + math.sqrt(n)
    c = a[1:, ::2].sum(axis=0)
    out = np.zeros(4)
    np.add(a[0], 1, out)
    np.add(a[1], out, out=out)
    return float(b), c, out, a.shape, np.where(a > 5, a, 0).mean()


def early(n):
    for i in range(n):
        if double(i) > 3:
            return "early", i
    return None


PROGRAMS = [
    branches, loops, containers, aliasing, accumulated, short_circuits, functions, effects, drawing, objects,
    raising, leaving_a_try, arrays, early,
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("plain", PROGRAMS, ids=lambda f: f.__name__)
def test_the_value_and_the_effects_are_those_of_the_plain_function(plain):
    for n in (0, 1, 2, 5):
        LOG.clear()
        try:
            expected = repr(plain(n))
        except Exception as error:
            expected = repr(error)
        effects_before = list(LOG)
        for engine in ENGINES:
            LOG.clear()
            with ln.init(engine):
                try:
                    found = repr(ln.parallel(plain)(n))
                except Exception as error:
                    found = repr(error)
            assert found == expected
            assert effects_before == LOG


def test_pure_calls_run_side_by_side():
    """Each waits for the other."""
    both = threading.Barrier(2, timeout=60)

    @ln.pure
    def meet(x):
        both.wait()
        return x

    @ln.parallel
    def program():
        a = meet(1)
        b = meet(2)
        return a + b

    with ln.init(ENGINES[1]):
        assert program() == 3


def test_loops_that_append_and_add_do_not_wait():
    many = threading.Barrier(4, timeout=60)

    @ln.pure
    def meet(x):
        many.wait()
        return x

    @ln.parallel
    def program():
        xs, count, more = [], 0, {}
        for i in range(4):
            y = meet(i) + 1
            count += y
            xs.append(y)
            more[i] = (y, f"{y}")
        return xs, count, more

    with ln.init(ENGINES[2]):
        assert program() == ([1, 2, 3, 4], 10, {i: (i + 1, f"{i + 1}") for i in range(4)})


def test_functions_with_a_visible_body_need_no_declaration():
    together = ln.parallel(diamonds)
    with ln.init(ENGINES[1]):
        began = time.perf_counter()
        assert together(3) == diamonds(3)
    assert together.function is diamonds
    assert began


def diamonds(n):
    x = 0
    for _ in range(n):
        parts = [double(x + i) for i in range(4)]
        x = total(parts)
    return x


def test_methods_and_closures_can_be_parallel():
    offset = 3

    class Station:
        scale = 2

        @ln.parallel
        def measure(self, n):
            return [double(i) * self.scale + offset for i in range(n)]

    assert Station().measure(3) == [3, 7, 11]
    offset = 4
    assert Station().measure(2) == [4, 8]


def test_a_function_that_is_returned_goes_on_working():
    @ln.parallel
    def program(n):
        y = double(n)
        xs = [double(1)]

        def later(x):
            xs.append(inc(x))
            return y + x, xs

        return later

    later = program(4)
    assert later(1) == (9, [2, 2])
    assert later(2) == (10, [2, 2, 3])


def test_a_result_of_unknown_kind_given_to_a_function_that_is_not_declared_is_refused():
    @ln.pure
    def open_account():
        time.sleep(0.01)
        return Account()

    def size(account):
        return len(account)

    @ln.parallel
    def program():
        return size(open_account())

    with pytest.raises(
        ln.ParallelError, match="size was given the result of a call, of type Account.*put @ln.pure above"
    ):
        program()


def test_arguments_of_unknown_kind_make_calls_run_in_order():
    def size(account):
        return len(account)

    @ln.parallel
    def program(account):
        a = size(account)
        account + 1
        return a, size(account)

    assert program(Account()) == (0, 1)


def test_arrays_of_ours_are_values():
    def standardised(x):
        return (x - x.mean()) / x.std()

    @ln.parallel
    def program(n):
        arrays = [standardised(ln.arange(10.0) + i) for i in range(n)]
        x = arrays[0]
        y = x + 1
        x[0] = 5
        return [a.compute().round(3).tolist() for a in arrays], (y.sum() + x[0]).compute()

    assert repr(program(3)) == repr(program.function(3))


def test_a_loop_that_calls_nothing_ends_after_an_error():
    @ln.parallel
    def program():
        fails_late(7)
        while True:
            pass

    with pytest.raises(KeyError, match="7"):
        program()


def test_a_view_of_a_dict_shows_what_is_stored_later():
    @ln.parallel
    def program():
        d = {0: double(1)}
        values = d.values()
        for k in range(1, 4):
            d[k] = double(k)
        return sum(values), list(d.items())

    assert program() == (14, [(0, 2), (1, 2), (2, 4), (3, 6)])


@ln.pure
def applied(f, x):
    time.sleep(0.01)
    return f(x)


@pytest.mark.slow
def test_functions_inside_that_others_call_see_variables_of_their_time():
    @ln.parallel
    def program(n):
        xs, count = [1], 0
        found = []
        for i in range(n):
            found.append(applied(lambda x: (x, len(xs), count), i))  # noqa: B023
            xs.append(double(i))
            count = count + inc(i)
        return found, xs, count

    for engine in ENGINES:
        with ln.init(engine):
            assert program(4) == program.function(4)


@pytest.mark.slow
def test_a_sum_that_has_two_names_changes_under_both():
    @ln.parallel
    def program(n):
        a = b = np.zeros(3) + applied(double, n)
        a += applied(inc, n)
        c = b * 2
        pair = (np.ones(2) + applied(double, n), 1)
        d, _ = pair
        d += applied(inc, n)
        return a, b, c, d, pair

    for engine in ENGINES:
        with ln.init(engine):
            assert repr(program(4)) == repr(program.function(4))


def test_iterators_are_used_up_in_order():
    def taken(values):
        return sum(values)

    @ln.parallel
    def program(values):
        numbers = iter(values)
        found = [next(numbers)]
        for each in numbers:
            found.append(double(each))
            if each == 3:
                break
        return found, taken(numbers), list(zip(found, map(inc, found), strict=True))

    assert program([1, 2, 3, 4, 5]) == program.function([1, 2, 3, 4, 5])


def test_with_enters_and_leaves_in_the_order_of_the_program():
    log = []

    class Noted:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            log.append(f"enter {self.name}")
            return [self.name]

        def __exit__(self, kind, error, trace):
            log.append(f"leave {self.name}, {kind.__name__ if kind else None}")
            return kind is ZeroDivisionError

    def inverse(x):
        return 1 // x

    def run(xs):
        found = []
        with Noted("a") as (first,), Noted("b"):
            for x in xs:
                found += [inverse(x)]
            log.append("end")
            return found, first
        return found, len(found)

    for xs in ([1, 2], [1, 0, 2]):
        log.clear()
        expected, noted = run(xs), list(log)
        log.clear()
        assert ln.parallel(run)(xs) == expected
        assert log == noted
