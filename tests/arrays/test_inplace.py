"""Loops that update arrays in place: NumPy's values in one tile and in several, and at what price."""

from __future__ import annotations

import copy
import signal
from typing import Any

import numpy as np
import pytest
import vectorised_programs
from inplace_programs import PROGRAMS, durbin

import linnet as ln
from linnet.arrays.elements import assignment, in_place
from linnet.arrays.expression import chunking
from linnet.arrays.lowering import lower, on_caller_thread


@pytest.fixture(params=["one tile", "a small array", "tiles", "odd tiles"])
def make(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    if request.param == "one tile":
        monkeypatch.setattr(chunking, "SMALL", -1)
    cut = {"tiles": 8, "odd tiles": 5}.get(request.param, -1)
    return lambda array: ln.array(array, chunks=cut)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_programs_have_numpys_values(program: Any, make: Any) -> None:
    n = 13
    found = np.asarray(program(ln, make, n))
    expected = program(np, np.array, n)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("program", vectorised_programs.PROGRAMS, ids=lambda each: each.__name__)
def test_programs_of_whole_arrays_have_numpys_values(program: Any, make: Any) -> None:
    found = np.asarray(program(ln, make, 14)())
    expected = program(np, np.array, 14)()
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


# ---- cheap expressions are computed on the caller's thread


def _expressions(x: Any, y: Any) -> list[Any]:
    return [
        *(
            x[1:-1] + y[:-2] * x[2:],
            (x @ y.T).sum(axis=0),
            x.mean(axis=1),
            x.std(),
            x.T[::-2] + 1,
            x[3] @ y[4],
        ),
        *(
            ln.where(x > y, x, 2 * y)[:, ::-1],
            x[[5, 1, 8]],
            x[np.asarray(x)[:, 0] > 0.5],
            (x * 3).max(axis=0),
        ),
        *(ln.sqrt(x)[1:] - y[:1], ln.concatenate([x, y[2:5]]), ln.exp(x.sum(axis=0)) * y),
    ]


@pytest.mark.slow
@pytest.mark.threads
def test_bits_are_those_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    data = np.random.default_rng(0).standard_normal((2, 40, 37))
    x, y = (ln.asarray(each, chunks=(7, 11)) for each in data)
    for lazy in (lambda each: each, lambda each: each.persist()):
        found = [each.compute() for each in _expressions(lazy(x), lazy(y))]
        with monkeypatch.context() as patch:
            patch.setattr(on_caller_thread, "evaluated", lambda *_, **__: None)
            expected = [each.compute() for each in _expressions(x, y)]
        for one, other in zip(found, expected, strict=True):
            assert one.dtype == other.dtype
            assert np.array_equal(one, other, equal_nan=True)


@pytest.mark.threads
def test_results_are_in_memory_of_their_own() -> None:
    data = np.arange(36.0).reshape(6, 6)
    for x in (ln.asarray(data, chunks=6), ln.asarray(data, chunks=4), ln.asarray(data, chunks=4).persist()):
        for made in (x.T, x[1:], x[None], x.rechunk(3), ln.broadcast_to(x, (2, 6, 6)), x + 0):
            found = made.compute()
            assert found.flags.writeable
            found[...] = -1
            assert np.array_equal(np.asarray(x), np.arange(36.0).reshape(6, 6))


@pytest.mark.threads
def test_mistakes_are_told_as_by_the_engine() -> None:
    def broken(tile: Any) -> Any:
        raise ValueError("not today")

    x = ln.asarray(np.arange(6.0), chunks=2)
    with pytest.raises(Exception, match="not today"):
        (ln.map_blocks(broken, x, dtype="f8") + 1).compute()
    with ln.init("threads", workers=2) as session:
        y = x + 1
        session.engine.close()
        with pytest.raises(ln.errors.EngineClosedError, match="closed"):
            y.compute()


@pytest.mark.slow
@pytest.mark.threads
@pytest.mark.parametrize("chunks", [(40, 25), (100, 100)])
def test_slices_that_grow_and_move_make_no_programs(monkeypatch: pytest.MonkeyPatch, chunks: Any) -> None:
    made = []
    program = lower.Lowering.program
    monkeypatch.setattr(lower.Lowering, "program", lambda self, of: made.append(1) or program(self, of))
    x = ln.array(np.random.default_rng(0).random((100, 100)), chunks=chunks)
    expected = np.asarray(x).copy()
    for i in range(1, 99):
        for array in (x, expected):
            array[i, :i] += array[i - 1, :i] * array[i, i]  # growing
            array[i : i + 2, 3] = array[i - 1 : i + 1, 4] - array[i, i]  # moving
            array[:, i] = array[:, i] - array[:, i].mean() + (array[i] @ array[:, i])  # rows and columns
            array[i, array[i] > 1e3] = 1.0
    np.testing.assert_allclose(np.asarray(x), expected, rtol=1e-12)
    assert not made


@pytest.mark.threads
def test_what_comes_again_and_is_long_becomes_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first time it is computed at once, since slices of another length would be another program."""
    made = []
    program = lower.Lowering.program
    monkeypatch.setattr(lower.Lowering, "program", lambda self, of: made.append(1) or program(self, of))
    monkeypatch.setattr(on_caller_thread, "CHEAP", 1000)
    x = ln.asarray(np.random.default_rng(0).random((61, 67)), chunks=10)
    with ln.init("threads", workers=2):
        found = [(x * 2 + x.sum()).compute() for _ in range(4)]
    assert len(made) == 1
    assert all(np.array_equal(each, found[0]) for each in found)


@pytest.mark.slow
@pytest.mark.threads
def test_a_recurrence_of_numbers_does_not_begin_at_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each number is made of the one before it; a step takes as many kernel calls, however late it comes."""
    calls = []
    call = on_caller_thread._Now.call
    monkeypatch.setattr(
        on_caller_thread._Now, "call", lambda self, *a, **k: calls.append(1) or call(self, *a, **k)
    )
    counts = []
    for n in (30, 60):
        calls.clear()
        found = np.asarray(durbin(ln, lambda array, n=n: ln.array(array, chunks=n // 3), n))
        np.testing.assert_allclose(found, durbin(np, np.array, n), rtol=1e-10)
        counts.append(len(calls))
    assert counts[1] < 2.6 * counts[0]


# ---- what an assignment holds on to


@pytest.mark.threads
def test_long_loops_keep_one_array() -> None:
    """No node is added, however many assignments there are, in whatever tiles."""
    for chunks in (-1, 7):
        x = ln.array(np.ones((20, 20)), chunks=chunks)
        for step in range(100):
            x[1:-1, 1:-1] = (x[:-2, 1:-1] + x[2:, 1:-1]) / 2
            x[0] += step
            x *= 0.5
            x[x > 10] = 10
        assert type(x._node).__name__ == "Source"
        assert x.chunks == ln.array(np.ones((20, 20)), chunks=chunks).chunks


def test_assigned_values_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the array is too long to be brought together, and its values to be computed at once."""
    monkeypatch.setattr(in_place, "TOGETHER", -1)
    monkeypatch.setattr(assignment, "_AT_ONCE", 0)
    seen = []

    def doubled(tile: Any) -> Any:
        seen.append(tile.shape)
        return tile * 2

    x = ln.asarray(np.arange(12.0), chunks=4)
    c = ln.asarray(np.zeros(12), chunks=4)
    value = ln.map_blocks(doubled, x, dtype="f8")
    c[:] = value
    seen.clear()
    later = c + 1
    for _ in range(3):
        assert np.array_equal(np.asarray(c), 2 * np.arange(12.0))
        assert np.array_equal(later.compute(), 2 * np.arange(12.0) + 1)
        assert (c * 2).sum().compute() == 4 * np.arange(12).sum()
    assert len(seen) == 3
    value.compute()
    value.compute()
    assert len(seen) == 9  # a pure expression is not remembered
    c[3] = -1
    assert np.asarray(c)[3] == -1
    assert np.array_equal(later.compute(), 2 * np.arange(12.0) + 1)


def test_operands_without_a_name_are_written_over_and_no_others() -> None:
    data = np.random.default_rng(0).random((200, 200))
    x = ln.array(data)
    held = [x * 2, {"k": x * 3}, copy.copy(x)]
    total = held[0] + held[1]["k"] + held[2] + x * 2 + 1
    assert np.array_equal(np.asarray(total), data * 2 + data * 3 + data + data * 2 + 1)
    for each, times in ((held[0], 2), (held[1]["k"], 3), (held[2], 1), (x, 1)):
        assert np.array_equal(np.asarray(each), data * times)
    named = x * 2
    view = (named + 0)[1:]
    assert np.array_equal(np.asarray(view + 1), data[1:] * 2 + 1)
    assert np.array_equal(np.asarray(view), data[1:] * 2)
    assert np.array_equal(np.asarray((lambda part: part + 1)(named)), data * 2 + 1)
    assert np.array_equal(np.asarray(named), data * 2)


@pytest.mark.slow
def test_control_c_finds_an_assignment_done_or_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    real = in_place.computed

    def interrupted(nodes: Any, **options: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return real(nodes, **options)

    x = ln.array(np.zeros((1500, 1500)), chunks=-1)
    y = ln.array(np.ones((1500, 1500)), chunks=-1)
    value = ln.sin(y) * 2 + ln.cos(y)
    monkeypatch.setattr(in_place, "computed", interrupted)
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        x[:] = value
    monkeypatch.undo()
    assert signal.getsignal(signal.SIGINT) is handler
    np.testing.assert_allclose(x.compute(), np.sin(1.0) * 2 + np.cos(1.0))
