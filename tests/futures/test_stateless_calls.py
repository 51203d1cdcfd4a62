"""Calls on stateless workers: functions by import name, values as data."""

from __future__ import annotations

import datetime
import decimal
import os
import pathlib
import threading
from fractions import Fraction

import calls_conformance as conformance
import numpy as np
import pytest

import linnet as ln
from linnet.engines.stateless import Stateless
from linnet.futures import named_calls
from linnet.futures.data import Reader, Writer
from linnet.futures.travelling import Call, StaysHere


@pytest.mark.slow
class TestStateless(conformance.CallsConformance):
    """Workers are threads here, so that the suite takes no minutes; processes are tried below."""

    outside = False

    @pytest.fixture(scope="class")
    @classmethod
    def engine(cls):
        engine = Stateless(workers=2, launcher="threads")
        yield engine
        engine.close()

    def test_lambdas_and_inner_functions_travel(self, engine):
        """They do not: nothing that travels can run. Where they are pure, they are called here."""
        with ln.init(engine):
            with pytest.raises(ln.ParallelError, match="must stand at the top of a module"):
                ln.submit_call(lambda x: x, 3).result()
            assert ln.parallel(_calls_a_lambda)(3) == 4

    def test_what_may_run_what_it_is_given_is_refused(self, engine):
        with ln.init(engine), pytest.raises(ln.ParallelError, match="may run what it is given"):
            ln.submit_call(eval, "1 + 1").result()

    def test_values_that_are_no_data_are_refused_by_name(self, engine):
        with ln.init(engine):
            with pytest.raises(ln.ParallelError, match=r"_thread.lock is no value that travels as data"):
                ln.submit_call(conformance.square, threading.Lock()).result()
            with pytest.raises(ln.ParallelError, match="its value: _thread.lock"):
                ln.submit_call(threading.Lock).result()

    def test_closing_tells_who_waits(self):
        import time

        engine = Stateless(workers=1, launcher="threads")
        with ln.init(engine):
            future = ln.submit_call(time.sleep, 1)
            engine.close()
            with pytest.raises(ln.EngineClosedError):
                future.result(60)


def _calls_a_lambda(x):
    return conformance.given((lambda y: y + 1)(x))


@pytest.mark.slow
def test_calls_are_made_in_other_processes(tmp_path):
    with ln.init("stateless", workers=1):
        first, second = [ln.submit_call(os.getpid), ln.submit_call(conformance.process, 1)]
        assert first.result(120) != os.getpid()
        assert second.result(120) != os.getpid()


VALUES = [
    None, True, 3, 1 << 80, -(1 << 63), 2.5, float("inf"), 1 - 2j, "é", b"\x00", ..., NotImplemented,
    range(1, 9, 2), slice(None, 3), decimal.Decimal("1.10"), Fraction(1, 3), pathlib.PurePosixPath("/a/b"),
    datetime.date(2024, 2, 29), datetime.datetime(2024, 1, 1, 2, 3, 4, 5, fold=1), datetime.time(1, 2, 3),
    datetime.timedelta(-1, 5, 7), (1, [2, {"a": (3,), 4: {5, 6}}], frozenset({7})), float, np.float32,
    np.dtype("<i2"), np.float64(1.5), np.datetime64("2024-01-01"), np.int8(-3),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_come_back_as_they_were(value):
    again = Reader().value(Writer().bytes(value))
    assert type(again) is type(value)
    assert again == value


@pytest.mark.parametrize(
    "array", [np.arange(6.0).reshape(2, 3), np.zeros((0, 3), "i4"), np.asfortranarray(np.eye(3)), np.array("ab"),
              np.arange(12)[::3], np.array(2.0 + 1j)], ids=lambda each: f"{each.dtype}{each.shape}"
)  # fmt: skip
def test_arrays_come_back_as_they_were(array):
    again = Reader().value(Writer().bytes(array))
    assert again.dtype == array.dtype
    assert again.flags.writeable
    assert again.flags.f_contiguous or not array.flags.f_contiguous
    np.testing.assert_array_equal(again, array)


def test_objects_that_are_one_stay_one():
    xs = [1]
    xs.append(xs)
    again = Reader().value(Writer().bytes({"a": xs, "b": (xs, xs)}))
    assert again["a"] is again["b"][0] is again["b"][1] is again["a"][1]
    theirs = [xs, {}]
    body = Writer(theirs).bytes((xs, [xs]))
    assert Reader(["mine", None]).value(body) == ("mine", ["mine"])


@pytest.mark.parametrize(
    "value", [object(), len, ln, lambda: 0, [print], np.array([None]), type("Own", (int,), {})(3), ValueError]
)
def test_what_could_run_is_not_written(value):
    with pytest.raises(StaysHere):
        Writer().bytes(value)


def test_a_worker_with_another_version_of_what_is_read_makes_no_call(monkeypatch):
    from linnet.kernels.arrays import user_functions

    monkeypatch.setattr(user_functions, "_allowed", {"calls_conformance"})
    letter, _ = named_calls.packed(Call(conformance.scaled, (3,), {}, True))
    assert _answered(letter) == [named_calls.VALUE, 6]
    monkeypatch.setattr(conformance, "SCALE", 7)
    assert _answered(letter)[0] == named_calls.STAYS
    assert "another version" in _answered(letter)[1]


def test_a_module_that_is_not_allowed_is_not_called(monkeypatch):
    from linnet.kernels.arrays import user_functions

    monkeypatch.setattr(user_functions, "_allowed", set())
    monkeypatch.setattr(user_functions, "_names", {})
    letter, _ = named_calls.packed(Call(conformance.square, (3,), {}, True))
    kind, why = _answered(letter)
    assert kind == named_calls.STAYS
    assert "is not in this process" in why
    user_functions.allow("calls_conformance")
    assert _answered(letter) == [named_calls.VALUE, 9]


def _answered(letter):
    import msgpack

    return msgpack.unpackb(named_calls.answer(letter.body))
