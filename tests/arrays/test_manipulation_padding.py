"""Padding in every mode, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.arrays.strategies import arrays, chunkings, tiled

from linnet.arrays.functions import pad

few = settings(max_examples=max(5, settings().max_examples // 3))
REPEATING = ("edge", "reflect", "symmetric", "wrap")


def _checked(a: Any, x: Any, widths: Any, mode: Any, **keywords: Any) -> None:
    try:
        expected = np.pad(a, widths, mode, **keywords)
    except Exception as problem:
        with pytest.raises(type(problem)):
            np.pad(x, widths, mode, **keywords)
        return
    ours = np.pad(x, widths, mode, **keywords)
    assert ours.shape == expected.shape
    assert ours.dtype == expected.dtype
    if mode == "mean":  # summed tile by tile
        np.testing.assert_allclose(ours.compute(), expected, rtol=1e-13, atol=1e-13)
    else:
        np.testing.assert_array_equal(ours.compute(), expected)


@few
@given(arrays(special=False, max_dims=2), st.data())
def test_repeating(a: Any, data: Any) -> None:
    x = tiled(a, data.draw(chunkings(a.shape)))
    width = st.integers(0, 9)
    widths = data.draw(st.lists(st.tuples(width, width), min_size=a.ndim, max_size=a.ndim))
    if a.ndim:
        _checked(a, x, widths, data.draw(st.sampled_from(REPEATING)))


@few
@given(arrays(("i4", "f8", "c8", "M8[D]", "?"), max_dims=2), st.data())
def test_constant(a: Any, data: Any) -> None:
    x = tiled(a, data.draw(chunkings(a.shape)))
    width = data.draw(st.integers(0, 7))
    _checked(a, x, width, "constant")
    if a.ndim and a.dtype.kind != "M":
        _checked(a, x, (width, 1), "constant", constant_values=(1, 2))


@few
@given(arrays(("i4", "i8", "f8"), max_dims=2, min_side=1, min_dims=1, special=False), st.data())
def test_computed(a: Any, data: Any) -> None:
    x = tiled(a, data.draw(chunkings(a.shape)))
    mode = data.draw(st.sampled_from(["maximum", "minimum", "mean", "linear_ramp"]))
    if mode == "linear_ramp":
        _checked(a, x, (3, 1), mode, end_values=(5, -4))
    else:
        _checked(a, x, (2, 3), mode, stat_length=data.draw(st.sampled_from([None, 1, 2, 9])))


@few
@given(arrays(("i4", "f8"), max_dims=2, min_side=2, min_dims=1, special=False), st.data())
def test_odd_reflections(a: Any, data: Any) -> None:
    x = tiled(a, data.draw(chunkings(a.shape)))
    mode = data.draw(st.sampled_from(["reflect", "symmetric"]))
    _checked(a, x, data.draw(st.integers(0, min(a.shape) - 1)), mode, reflect_type="odd")


def test_functions_dicts_and_errors() -> None:
    a = np.arange(12.0).reshape(3, 4)
    x = tiled(a, 2)

    def border(vector: Any, pad_width: Any, axis: int, kwargs: Any) -> None:
        if pad_width[0]:
            vector[: pad_width[0]] = kwargs.get("value", 10)
        if pad_width[1]:
            vector[-pad_width[1] :] = -1

    np.testing.assert_array_equal(np.pad(x, 2, border, value=4).compute(), np.pad(a, 2, border, value=4))
    np.testing.assert_array_equal(np.pad(x, {-1: (1, 2)}).compute(), np.pad(a, ((0, 0), (1, 2))))
    np.testing.assert_array_equal(np.pad(x, 1, "empty").compute()[1:-1, 1:-1], a)
    assert np.pad(x, 1).chunks == ((3, 2), (3, 3))
    assert max(np.pad(x, 1000).chunks[0]) <= 1000
    with pytest.raises(ValueError, match="mode 'mirror' is not supported; expected one of"):
        pad.pad(x, 1, "mirror")
    with pytest.raises(ValueError, match="unsupported keyword"):
        pad.pad(x, 1, "edge", constant_values=3)
    with pytest.raises(ValueError, match="negative"):
        pad.pad(x, -1)
    with pytest.raises(TypeError, match="integral"):
        pad.pad(x, 1.5)
