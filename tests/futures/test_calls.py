"""Futures as such: submit_call, map, as_completed."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import CancelledError

import pytest

import linnet as ln
from linnet.engines import Threads

ONE = Threads(workers=1)


def test_a_call_runs_by_itself_and_has_a_value():
    future = ln.submit_call(divmod, 7, 2)
    assert future.result() == (3, 1)
    assert future.done()
    assert future.exception() is None
    assert not future.cancel()
    assert repr(future) == "Future(done)"


def test_an_error_is_raised_where_the_result_is_asked_for():
    def fails():
        raise LookupError("nothing there")

    future = ln.submit_call(fails)
    with pytest.raises(LookupError, match="nothing there") as caught:
        future.result()
    assert caught.traceback[-1].name == "fails"
    assert isinstance(future.exception(), LookupError)
    assert repr(future) == "Future(raised LookupError)"


def test_a_time_limit_raises_and_the_call_goes_on():
    gate = threading.Event()
    future = ln.submit_call(gate.wait)
    with pytest.raises(TimeoutError, match="not done after 0.01 s; it goes on"):
        future.result(timeout=0.01)
    gate.set()
    assert future.result() is True


def test_a_call_that_has_not_begun_is_cancelled():
    gate, began = threading.Event(), threading.Event()

    def hold():
        began.set()
        gate.wait()

    with ln.init(ONE):
        first = ln.submit_call(hold)
        began.wait()
        second = ln.submit_call(print, "never")
        third = ln.submit_call(len, second)
        assert second.cancel()
        assert second.cancelled()
        assert not first.cancel()
        gate.set()
        first.result()
    with pytest.raises(CancelledError):
        second.result()
    with pytest.raises(CancelledError):
        third.result()


def test_higher_priorities_begin_first():
    gate, began, order = threading.Event(), threading.Event(), []

    def hold():
        began.set()
        gate.wait()

    with ln.init(ONE):
        ln.submit_call(hold)
        began.wait()
        calls = [
            ln.submit_call(order.append, name, priority=p)
            for name, p in (("low", -1), ("a", 0), ("b", 0), ("high", 5))
        ]
        gate.set()
        for _ in ln.as_completed(calls):
            pass
    assert order == ["high", "a", "b", "low"]


def test_what_somebody_waits_for_runs_first():
    gate, began, order = threading.Event(), threading.Event(), []

    def hold():
        began.set()
        gate.wait()

    with ln.init(ONE):
        ln.submit_call(hold)
        began.wait()
        many = [ln.submit_call(order.append, at) for at in range(5)]
        wanted = ln.submit_call(order.append, "wanted")
        waits = threading.Thread(target=wanted.result)
        waits.start()
        while not wanted._task.watchers:
            pass
        gate.set()
        waits.join()
        for each in many:
            each.result()
    assert order[0] == "wanted"


def test_attempts_are_repeated():
    attempts = []

    def fails_twice(x):
        attempts.append(x)
        if len(attempts) < 3:
            raise OSError("not yet")
        return x

    assert ln.submit_call(fails_twice, 4, retries=2).result() == 4
    attempts.clear()
    with pytest.raises(OSError, match="not yet"):
        ln.submit_call(fails_twice, 4, retries=1).result()


def test_futures_among_arguments_stand_for_their_values():
    one, two = ln.submit_call(abs, -1), ln.submit_call(abs, -2)
    assert ln.submit_call(pow, two, 3).result() == 8
    assert ln.submit_call(sum, [one, two, 10]).result() == 13
    assert ln.submit_call(dict, a=one, b=(two, [one])).result() == {"a": 1, "b": (2, [1])}
    bad = ln.submit_call(int, "x")
    with pytest.raises(ValueError, match="invalid literal"):
        ln.submit_call(pow, 2, bad).result()


def test_calls_that_wait_for_calls_need_no_further_worker():
    def below(depth):
        return 0 if depth == 0 else 1 + ln.submit_call(below, depth - 1).result()

    with ln.init(ONE):
        assert below(200) == 200
        assert ln.submit_call(lambda: sum(ln.map(below, [3, 4, 5]))).result() == 12
        assert (
            ln.submit_call(
                lambda: len(list(ln.as_completed([ln.submit_call(below, 2) for _ in range(5)])))
            ).result()
            == 5
        )


def test_map_gives_values_in_order_and_looks_ahead_a_little():
    taken = []

    def numbers():
        for number in itertools.count():
            taken.append(number)
            yield number

    with ln.init(ONE):
        values = ln.map(lambda x, y: x * y, numbers(), itertools.repeat(2))
        assert [next(values) for _ in range(3)] == [0, 2, 4]
        assert len(taken) < 10
        values.close()
    assert list(ln.map(abs, [])) == []


def test_map_raises_an_error_in_its_place():
    def checked(x):
        if x == 2:
            raise ValueError("two")
        return x

    values = ln.map(checked, range(100))
    assert [next(values), next(values)] == [0, 1]
    with pytest.raises(ValueError, match="two"):
        next(values)


def test_as_completed_gives_each_once_in_the_order_of_completion():
    gates = [threading.Event() for _ in range(3)]
    with ln.init(Threads(workers=3)):
        futures = [ln.submit_call(gate.wait) for gate in gates]
        done = ln.as_completed([*futures, futures[0]])
        for at in (2, 0, 1):
            gates[at].set()
            assert next(done) is futures[at]
        assert list(done) == []
        late = ln.submit_call(threading.Event().wait, 5)
        with pytest.raises(TimeoutError, match="1 of 1 calls are not done in time"):
            next(ln.as_completed([late], timeout=0.01))


def test_calls_see_the_session_of_the_caller():
    with ln.init(ONE) as session:
        from linnet.session import current_engine

        assert ln.submit_call(current_engine).result() is session.engine


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ln.submit_call(3), "runs a function, and was given a int"),
        (lambda: ln.submit_call(abs, 1, retries=-1), "retries=-1: give the number"),
        (lambda: ln.submit_call(abs, 1, priority="high"), "priority='high': give a whole number"),
        (lambda: ln.submit_call(abs, 1, node=3), "node=3: calls run on this machine, whose only node is 0"),
        (lambda: ln.map(abs), "something to call the function on"),
        (lambda: ln.map(3, [1]), "map calls a function"),
        (lambda: ln.as_completed([3]), "takes futures, and was given a int"),
        (lambda: ln.pure(3), "marks a function"),
    ],
)
def test_wrong_arguments_are_refused(call, words):
    with pytest.raises(ln.InputError, match=words):
        call()


@pytest.mark.slow
def test_ctrl_c_ends_the_wait_and_cancels(tmp_path):
    script = textwrap.dedent("""
        import os, signal, threading, time
        import linnet as ln
        @ln.pure
        def hold(x):
            time.sleep(600)
        @ln.parallel
        def program():
            return [hold(i) for i in range(50)]
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            program()
        except KeyboardInterrupt:
            print("interrupted")
        os._exit(0)
    """)
    path = tmp_path / "script.py"
    path.write_text(script)
    done = subprocess.run(
        [sys.executable, str(path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert done.stdout == "interrupted\n", done.stderr
