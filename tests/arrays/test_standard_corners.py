"""Corners of the array API standard, from its text: what a function must take that NumPy does not."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
from against_numpy import tiles_only
from strategies import tiled

import linnet as ln

CUTS = pytest.mark.parametrize("chunks", [None, 2])


@CUTS
@pytest.mark.parametrize("dtype", ["u1", "u8", "i2", "i8"])
def test_repeats_may_have_any_integer_dtype(chunks: int | None, dtype: str) -> None:
    values, counts = np.arange(5), np.array([1, 0, 2, 1, 3])
    x = tiled(values, chunks)
    want = np.repeat(values, counts)
    assert np.array_equal(np.asarray(ln.repeat(x, ln.asarray(counts.astype(dtype)))), want)
    assert np.array_equal(np.asarray(ln.repeat(x, np.array([2], dtype))), np.repeat(values, 2))
    assert ln.repeat(tiled(values[:0], chunks), ln.asarray(counts[:0].astype(dtype))).shape == (0,)


@CUTS
def test_repeats_are_integers_and_not_negative(chunks: int | None) -> None:
    x = tiled(np.arange(5), chunks)
    with pytest.raises(TypeError, match="repeats of float64"):
        ln.repeat(x, [1.5])
    with pytest.raises(ValueError, match="negative"):
        ln.repeat(x, -1)


def test_a_dtype_equals_itself_alone() -> None:
    found = ln.__array_namespace_info__().dtypes()
    for name in found:
        dtype = getattr(ln, name)
        assert found[name] == dtype
        assert dtype not in (None, name)
        assert ln.zeros(1, dtype=dtype).dtype == dtype
        assert [other for other in found if found[other] == dtype] == [name]


@CUTS
def test_without_a_copy_what_is_written_shows(chunks: int | None) -> None:
    x = tiled(np.arange(5), chunks)
    same, own = ln.asarray(x, copy=False), ln.asarray(x, copy=True)
    typed = ln.asarray(x, dtype=ln.int64, copy=False)
    x[1] = 7
    assert int(same[1]) == int(typed[1]) == 7
    assert int(own[1]) == 1
    with pytest.raises(ValueError, match="without a copy"):
        ln.asarray(x, dtype=ln.float32, copy=False)


@CUTS
@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (0, 0), (0,)])
def test_axes_of_masks_may_have_no_length(chunks: int | None, shape: tuple[int, ...]) -> None:
    values = np.arange(6.0).reshape(2, 3)
    mask = np.zeros(shape, bool)
    x = tiled(values, chunks)
    for key in (mask, tiled(mask, chunks)):
        assert x[key].shape == values[mask].shape
        x[key] = 9
        assert np.array_equal(x.compute(), values)
    with pytest.raises(IndexError, match="boolean index did not match"):
        x[np.zeros((0, 2), bool)]


def test_an_array_without_axes_has_running_totals() -> None:
    x = ln.asarray(3.0)
    for way in (nullcontext, tiles_only):
        with way():
            for function in (ln.cumulative_sum, ln.cumulative_prod):
                assert np.asarray(function(x)).tolist() == [3.0]
            assert np.asarray(ln.cumulative_sum(x, include_initial=True)).tolist() == [0.0, 3.0]
