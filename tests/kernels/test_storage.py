"""Large arrays: zeros are zeros whatever was there before, pages are used again, nothing is kept on a budget."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from linnet.engines import Threads
from linnet.machine import large_arrays
from linnet.programs import In, Out, tile_program
from linnet.tiles import TiledArray

LARGE = 2**23  # float64: 64 MB


def place(x):
    return x.__array_interface__["data"][0]


@pytest.fixture(autouse=True)
def nothing_before():
    with large_arrays.nothing_kept():
        pass


def test_pages_are_used_again_and_zeros_are_zeros():
    first = large_arrays.empty(LARGE, np.float64)
    first[:] = 7.0
    at = place(first)
    del first
    again = large_arrays.zeros((2, LARGE // 2), np.float64)
    assert place(again) == at
    assert not again.any()


def test_pages_are_not_used_again_while_a_view_is_there():
    first = large_arrays.empty(LARGE, np.float64)
    first[:] = 1.0
    view = first[5:10]
    del first
    other = large_arrays.empty(LARGE, np.float64)
    other[:] = 2.0
    assert view.tolist() == [1.0] * 5


def test_pages_of_another_size_are_left():
    first = large_arrays.empty(2 * LARGE, np.float64)
    at = place(first)
    del first
    small = large_arrays.empty(LARGE, np.float64)
    assert place(small) != at
    assert place(large_arrays.empty(2 * LARGE - 5, np.float64)) == at


def test_nothing_is_kept_beyond_the_limit(monkeypatch):
    monkeypatch.setattr(large_arrays._KEPT, "most", 100 * 2**20)
    one, two = large_arrays.empty(LARGE, np.float64), large_arrays.empty(LARGE, np.float64)
    del one, two
    assert sum(map(len, large_arrays._KEPT._pages)) == 64 * 2**20


@tile_program
def doubled(A: In, B: Out, N: int):
    for i in range(N):
        B[i] = copy(A[i])


def test_nothing_is_kept_under_a_budget():
    first = large_arrays.empty(LARGE, np.float64)
    del first
    assert large_arrays._KEPT._pages
    Threads(memory=10**6).run(doubled.bind(N=2), {"A": TiledArray.from_numpy(np.ones(20), 10)})
    assert not large_arrays._KEPT._pages


def test_many_threads_at_once():
    wrong = []

    def work(number):
        for turn in range(20):
            made = large_arrays.empty(LARGE // 2, np.float64)
            made[:1000] = number
            made[-1000:] = turn
            if made[0] != number or made[-1] != turn or (made[:1000] != number).any():
                wrong.append((number, turn))
            del made

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


@pytest.mark.parametrize("dtype", ["f4", "c16", "?", "M8[ns]"])
def test_any_dtype(dtype):
    made = large_arrays.zeros((3, LARGE), dtype)
    assert made.dtype == dtype
    assert made.shape == (3, LARGE)
    assert made.flags.c_contiguous
    assert made.flags.writeable
    assert (made[:, ::1000] == np.zeros((), dtype)).all()
