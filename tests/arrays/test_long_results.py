"""Operations on long arrays at once: bits do not depend on the workers, and memory is used again when it is free."""

from __future__ import annotations

import gc
import warnings
from typing import Any

import numpy as np
import pytest

import linnet as ln
from linnet.arrays.elements.long_results import _pieces
from linnet.machine import large_arrays
from linnet.machine.helping_threads import side_by_side

UFUNCS: list[Any] = [
    np.exp,
    np.sin,
    np.cos,
    np.log,
    np.sqrt,
    np.tanh,
    np.arctan2,
    np.power,
    np.divide,
    np.add,
]
SHAPES = [(600_011,), (701, 499)]


def _operands(ufunc: Any, shape: tuple[int, ...], dtype: str) -> list[Any]:
    """Numbers of all sizes, some of which take other ways through NumPy than most."""
    rng = np.random.default_rng(3)
    made = [rng.standard_normal(shape) * 10.0 ** rng.integers(-4, 6, shape) for _ in range(2)]
    if dtype == "i4":
        made = [abs(each) for each in made]  # NumPy refuses integers to negative powers
    else:
        made[0][..., ::1013] = np.inf
        made[1][..., 7::997] = np.nan
    return [each.astype(dtype) for each in made[: ufunc.nin]]


@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4"])
def test_bits_do_not_depend_on_the_workers(ufunc: Any, shape: tuple[int, ...], dtype: str) -> None:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = _operands(ufunc, shape, dtype)
        wanted = ufunc(*given)
        for workers in (1, 2, 5):
            with ln.init("threads", workers=workers):
                found = np.asarray(ufunc(*(ln.array(each, chunks=-1) for each in given)))
            assert found.dtype == wanted.dtype
            assert found.tobytes() == wanted.tobytes()


def test_results_that_somebody_holds_stay() -> None:
    x = ln.array(np.arange(400_000.0), chunks=-1)
    held = [np.asarray(x + k) for k in range(8)]
    for _ in range(20):
        _ = np.asarray(x * 3 - x)
    for k, each in enumerate(held):
        np.testing.assert_array_equal(each, np.arange(400_000.0) + k)


def test_memory_is_used_again() -> None:
    x = ln.array(np.arange(1_000_000.0), chunks=-1)
    y = x + 1
    place = np.asarray(y).ctypes.data
    del y
    gc.collect()
    again = [np.asarray(x + k) for k in range(2, 4)]
    assert place in [each.ctypes.data for each in again]
    np.testing.assert_array_equal(again[1], np.arange(1_000_000.0) + 3)


def test_what_stays_warm_is_limited() -> None:
    pages = [large_arrays.again((1 << 21,), "f8") for _ in range(8)]
    pages.clear()
    gc.collect()
    kept = large_arrays._KEPT
    assert sum(map(len, kept._warm)) <= large_arrays._WARM
    with large_arrays.nothing_kept():
        assert not kept._warm


@pytest.mark.parametrize("order", ["F", "C"])
def test_operands_in_columns_and_in_rows(order: Any) -> None:
    a = np.asarray(np.random.default_rng(0).random((700, 600)), order=order)
    x = ln.array(a, chunks=-1)
    for found, wanted in [
        (np.exp(x), np.exp(a)),
        (x.T / (x.T + 1), a.T / (a.T + 1)),
        (x[:, ::-1] + x[::2, :][:1], a[:, ::-1] + a[::2, :][:1]),
        (x[:, :1] - x[:1], a[:, :1] - a[:1]),
        (np.add(x, 1000, dtype="f4"), np.add(a, 1000, dtype="f4")),
    ]:
        np.testing.assert_array_equal(np.asarray(found), wanted)
        assert found.dtype == wanted.dtype


def test_numbers_that_decide_the_dtype() -> None:
    a = np.arange(300_000, dtype="u1")
    x = ln.array(a, chunks=-1)
    for number in (200, -1, 1.5, np.float32(2), np.int64(3), True):
        try:
            wanted = a * number
        except OverflowError:
            with pytest.raises(OverflowError):
                _ = x * number
            continue
        found = np.asarray(x * number)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


def test_errors_of_numbers_are_raised_in_every_piece() -> None:
    for place in (0, 599_999):
        a = np.ones(600_000)
        a[place] = -1
        x = ln.array(a, chunks=-1)
        with np.errstate(invalid="raise"), ln.init("threads", workers=2), pytest.raises(FloatingPointError):
            np.log(x)


@pytest.mark.parametrize(("engine", "pieces"), [("threads", 2), ("simulated", 0)])
def test_workers_elsewhere_do_not_help(engine: str, pieces: int) -> None:
    a = np.ones(1 << 18, "u1")
    with ln.init(engine, workers=2):
        assert len(_pieces(np.exp, (a,), np.empty(a.shape, "f2"))) == pieces
        assert np.exp(ln.array(a, chunks=-1)).dtype == np.exp(a).dtype


def test_helpers_are_waited_for() -> None:
    done: list[int] = []

    def fail() -> None:
        raise KeyError("first")

    with pytest.raises(KeyError, match="first"):
        side_by_side([fail, lambda: done.append(1), lambda: done.append(2)])
    assert sorted(done) == [1, 2]
    with pytest.raises(KeyError, match="first"):
        side_by_side([lambda: done.append(3), fail])
