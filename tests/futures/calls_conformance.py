"""What futures promise wherever calls run: every place runs these same tests."""

from __future__ import annotations

import os
import signal
import traceback
import warnings

import numpy as np
import pytest

import linnet as ln

SCALE = 2
TABLE = [1, 2, 3]


def square(x):
    return x * x


def scaled(x):
    return SCALE * x


def table():
    return TABLE


def given(x):
    return x


def tail(x):
    return x[1:]


def divided(a, b):
    return a // b


class Odd(Exception):
    """An error that takes other arguments than it keeps."""

    def __init__(self, name, number):
        super().__init__(f"{name}: {number}")
        self.number = number


@ln.pure
def odd(x):
    try:
        return 1 // 0
    except ZeroDivisionError as error:
        raise Odd("odd", x) from error


@ln.pure
def process(x):
    return os.getpid()


@ln.pure
def inverse(x):
    return np.array(1.0) / x


@ln.pure
def adder(x):
    return lambda y: x + y


@ln.parallel
def fibonacci(n):
    return square(n) if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def nested(n):
    return fibonacci(n) + sum(ln.map(square, range(3)))


@ln.parallel
def diamonds(count):
    x = 1
    for _ in range(count):
        x = sum([square(x + i) for i in range(4)]) % 1000
    return x


@ln.parallel
def first_error(x):
    values = [divided(x, i) for i in (1, 0)]
    return values, odd(x)


@ln.parallel
def aliases(xs, array):
    ys = given(xs)
    ys.append(4)
    zs = table()
    zs.append(5)
    part = tail(array)
    part[0] = 7.0
    return ys is xs, zs is TABLE


def shifted(x, wrong):
    return 1 // (x - wrong) + x if x == wrong else [x]


@ln.parallel
def many(count, wrong):
    return [shifted(x, wrong) for x in range(count)]


@ln.parallel
def calls_what_it_got(x):
    f = adder(x)
    return f(1)


class CallsConformance:
    """Subclasses give `engine`; `outside` says whether calls leave this process."""

    outside = True

    def test_values_are_those_of_the_plain_function(self, engine):
        with ln.init(engine):
            assert diamonds(3) == diamonds.function(3)
            assert list(ln.map(square, range(20))) == [x * x for x in range(20)]
            assert ln.submit_call(divmod, 7, b=2).exception() is not None
            assert calls_what_it_got(3) == 4

    def test_calls_leave_this_process_where_they_should(self, engine):
        with ln.init(engine):
            assert (ln.submit_call(os.getpid).result() != os.getpid()) is self.outside
            assert (ln.submit_call(process, 1).result() != os.getpid()) is self.outside

    def test_recursion_and_nesting_do_not_block_each_other(self, engine):
        with ln.init(engine):
            assert fibonacci(5) == 5
            assert ln.submit_call(nested, 4).result(120) == 3 + 5

    def test_the_first_error_comes_with_the_users_lines(self, engine):
        with ln.init(engine):
            with pytest.raises(ZeroDivisionError) as caught:
                first_error(1)
            text = "".join(traceback.format_exception(caught.value))
            assert "values = [divided(x, i) for i in (1, 0)]" in text
            assert "return a // b" in text
            assert caught.traceback[-1].name == "divided"

    def test_an_error_keeps_its_type_its_attributes_and_its_cause(self, engine):
        with ln.init(engine), pytest.raises(Odd, match="odd: 3") as caught:
            ln.submit_call(odd, 3).result()
        assert caught.value.number == 3
        assert type(caught.value.__cause__) is ZeroDivisionError
        assert caught.value.__cause__.__traceback__ is not None

    def test_a_function_that_returns_what_it_was_given_returns_that_object(self, engine):
        xs, array, before = [1], np.zeros(3), list(TABLE)
        with ln.init(engine):
            assert aliases(xs, array) == (True, True)
        assert xs == [1, 4]
        assert [*before, 5] == TABLE
        assert array.tolist() == [0, 7, 0]
        TABLE[:] = before

    def test_names_mean_what_they_mean_here_now(self, engine, monkeypatch):
        run = ln.parallel(_reads_scale)
        with ln.init(engine):
            assert run(3) == 6
            monkeypatch.setitem(scaled.__globals__, "SCALE", 5)
            assert run(3) == 15

    def test_numpys_treatment_of_errors_goes_along(self, engine):
        run = ln.parallel(_inverts)
        with ln.init(engine):
            with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
                run(0.0)
            with np.errstate(divide="ignore"), warnings.catch_warnings():
                assert run(0.0) == np.inf

    def test_lambdas_and_inner_functions_travel(self, engine):
        factor = 3

        def inner(x):
            return factor * x

        with ln.init(engine):
            assert list(ln.map(lambda x: inner(x) + 1, range(3))) == [1, 4, 7]

    def test_arrays_are_made_in_calls_and_given_to_them(self, engine):
        with ln.init(engine):
            made = ln.submit_call(_lazy, 5)
            assert isinstance(made.result(), ln.Array)
            total = ln.submit_call(_summed, made).result()
            assert float(total) == 20.0

    def test_a_future_is_an_operand_of_array_functions(self, engine):
        with ln.init(engine):
            future = ln.submit_call(np.arange, 4.0)
            assert ln.sum(future).compute() == 6.0
            assert (ln.ones(4) + future).compute().tolist() == [1, 2, 3, 4]
            assert ln.asarray(ln.submit_call(_lazy, 3)).compute().tolist() == [0, 2, 4]

    def test_nodes_are_numbers_of_nodes_that_are_there(self, engine):
        with ln.init(engine):
            assert ln.submit_call(square, 3, node=0).result() == 9
            for wrong in (-1, 99, True, "a"):
                with pytest.raises(ln.InputError, match="node="):
                    ln.submit_call(square, 3, node=wrong)

    def test_attempts_are_repeated(self, engine, tmp_path):
        with ln.init(engine):
            assert ln.submit_call(_third_time, str(tmp_path / "a"), retries=2).result() == 3
            with pytest.raises(LookupError):
                ln.submit_call(_third_time, str(tmp_path / "b"), retries=1).result()

    def test_those_that_are_done_come_first(self, engine):
        with ln.init(engine):
            futures = [ln.submit_call(square, x, priority=x) for x in range(6)]
            assert sorted(each.result() for each in ln.as_completed(futures, timeout=120)) == [
                0,
                1,
                4,
                9,
                16,
                25,
            ]
            assert all(each.done() and not each.cancel() for each in futures)


class OutsideConformance(CallsConformance):
    """Further promises of places outside this process."""

    def test_short_calls_go_together_and_each_has_its_own_value_and_error(self, engine, tmp_path):
        with ln.init(engine):
            assert many(300, -1) == many.function(300, -1)
            with pytest.raises(ZeroDivisionError) as caught:
                many(300, 250)
            assert caught.traceback[-1].name == "shifted"

    def test_what_cannot_be_sent_is_refused_by_name_or_stays_here(self, engine):
        import threading

        with ln.init(engine):
            with pytest.raises(ln.ParallelError, match=r"test_.*cannot be called outside this process.*lock"):
                ln.submit_call(lambda lock: 1, threading.Lock()).result()
            with pytest.raises(ln.ParallelError, match="its value"):
                ln.submit_call(threading.Lock).result()


def _reads_scale(x):
    return scaled(x)


def _inverts(x):
    return inverse(x)


def _lazy(n):
    return 2 * ln.arange(n)


def _summed(x):
    return x.sum().compute()


def _third_time(path):
    with open(path, "a") as file:
        file.write("x")
    if os.path.getsize(path) < 3:
        raise LookupError(path)
    return 3


@ln.pure
def dies_once(path, caller):
    if not os.path.exists(path):
        open(path, "w").close()
        assert os.getpid() != caller
        os.kill(os.getpid(), signal.SIGKILL)
    return "lived"


@ln.pure
def dies(caller):
    assert os.getpid() != caller
    os.kill(os.getpid(), signal.SIGKILL)


@ln.parallel
def dies_once_in_a_call(path, caller):
    return dies_once(path, caller)


@ln.parallel
def dies_in_a_call(caller):
    return dies(caller)
