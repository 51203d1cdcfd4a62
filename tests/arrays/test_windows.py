"""Sliding windows, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import sliding_window_view

import linnet as ln
from linnet.kernels.arrays.sliding_windows import windows


@st.composite
def cases(draw: Any) -> tuple[np.ndarray, Any, Any, Any]:
    shape = draw(st.lists(st.integers(1, 9), min_size=1, max_size=3))
    x = np.arange(np.prod(shape)).reshape(shape) % 7
    x = x.astype(draw(st.sampled_from(["f8", "i2", "?"])))
    axes = draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, max_size=3, unique=True))
    lengths = [draw(st.integers(1, shape[axis])) for axis in axes]
    return x, draw(st.integers(1, 5)), lengths, axes


@given(cases())
def test_windows_are_numpys(case: tuple[np.ndarray, Any, Any, Any]) -> None:
    x, chunks, lengths, axes = case
    found = ln.sliding_window_view(ln.asarray(x, chunks=chunks), lengths, axes)
    expected = sliding_window_view(x, lengths, axes)
    np.testing.assert_array_equal(found.compute(), expected)
    total = np.where(found, 1, 2).sum(axis=-1) if x.dtype == bool else (found * 2 + 1).sum(axis=-1)
    wanted = np.where(expected, 1, 2).sum(axis=-1) if x.dtype == bool else (expected * 2 + 1).sum(axis=-1)
    np.testing.assert_allclose(total.compute(), wanted)


def test_an_axis_named_twice_and_all_axes() -> None:
    x = np.arange(24).reshape(4, 6)
    tiled = ln.asarray(x, chunks=2)
    np.testing.assert_array_equal(
        sliding_window_view(tiled, (2, 3), axis=(1, 1)), sliding_window_view(x, (2, 3), axis=(1, 1))
    )
    np.testing.assert_array_equal(sliding_window_view(tiled, (2, 3)), sliding_window_view(x, (2, 3)))


def test_windows_take_no_more_memory_than_their_elements() -> None:
    made = windows([np.arange(500.0), np.arange(500.0)], 0, 599, axes=(0,), lengths=(100,))
    assert made.strides == (8, 8)
    with pytest.raises(ValueError, match="cannot set WRITEABLE"):
        made.setflags(write=True)  # the engine asks so before it lets a kernel overwrite a tile


@pytest.mark.parametrize(
    ("window", "axis", "words"),
    [
        (5, 0, "window shape cannot be larger than input array shape"),
        (-1, 0, "cannot contain negative values"),
        (0, 0, "windows of at least one element"),
        (2, None, "must provide window_shape for all dimensions"),
        ((2, 2), 0, "matching length window_shape and axis"),
    ],
)
def test_mistakes(window: Any, axis: Any, words: str) -> None:
    x = ln.asarray(np.zeros((4, 4)), chunks=2)
    with pytest.raises(ValueError, match=words):
        sliding_window_view(x, window, axis)
