"""Reductions against NumPy: every dtype, chunking, axis and keyword."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import NUMBERS, REAL, chunkings, pairs, tiled

import linnet as ln
from linnet.arrays.expression import chunking

FOLDS = (np.sum, np.prod, np.max, np.min, np.all, np.any, np.mean, np.count_nonzero, np.ptp)


@pytest.fixture(autouse=True, scope="module")
def _tiles_only() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunking, "SMALL", -1)
        yield


def same(function: Any, ours: Any, array: Any, *args: Any, rtol: float = 1e-6, **keywords: Any) -> None:
    """The same result, or the same kind of error."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            wanted = function(array, *args, **keywords)
        except (TypeError, ValueError) as error:
            with pytest.raises(type(error)):
                function(ours, *args, **keywords)
            return
        found = function(ours, *args, **keywords)
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    if wanted.dtype.kind in "fc":
        half = wanted.dtype == np.float16 or wanted.dtype.itemsize <= 4 or wanted.dtype == np.complex64
        np.testing.assert_allclose(
            found.compute(), wanted, rtol=2e-2 if half else rtol, atol=1e-2 if half else 1e-9
        )
    else:
        np.testing.assert_array_equal(found.compute(), wanted)


@st.composite
def cases(draw: Any, dtypes: Any = NUMBERS, **keywords: Any) -> Any:
    array, ours = draw(pairs(dtypes, **keywords))
    axes = [None, *range(-array.ndim, array.ndim)]
    if array.ndim > 1:
        axes.append((0, array.ndim - 1))
    return array, ours, draw(st.sampled_from(axes))


@given(cases(special=False), st.sampled_from(FOLDS), st.booleans())
def test_a_reduction_is_numpys(case: Any, function: Any, keepdims: bool) -> None:
    array, ours, axis = case
    same(function, ours, array, axis=axis, keepdims=keepdims)


@given(cases(REAL), st.sampled_from([np.max, np.min, np.sum, np.any, np.all]))
def test_nan_and_infinities_go_where_numpy_has_them(case: Any, function: Any) -> None:
    array, ours, axis = case
    same(function, ours, array, axis=axis)


@given(cases(special=False), st.sampled_from([np.var, np.std]), st.sampled_from([0, 1]))
def test_variances_are_numpys(case: Any, function: Any, correction: int) -> None:
    array, ours, axis = case
    same(function, ours, array, axis=axis, correction=correction)


@given(cases(REAL), st.sampled_from([np.argmax, np.argmin]))
def test_positions_are_numpys(case: Any, function: Any) -> None:
    array, ours, axis = case
    if not isinstance(axis, tuple):
        same(function, ours, array, axis=axis)


@given(cases(("f8", "i4"), min_side=1, special=False), st.data())
def test_where_and_initial(case: Any, data: Any) -> None:
    array, ours, axis = case
    mask = np.random.default_rng(0).random(array.shape) < 0.6
    hidden = tiled(mask, data.draw(chunkings(mask.shape)))
    for function in (np.sum, np.prod, np.mean, np.var, np.all, np.any):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            wanted = function(array, axis=axis, where=mask)
        found = function(ours, axis=axis, where=hidden)
        np.testing.assert_allclose(found.compute(), wanted, rtol=1e-9, atol=1e-9)
    same(np.max, ours, array, axis=axis, initial=3)
    wanted = np.max(array, axis=axis, where=mask, initial=-1)
    np.testing.assert_array_equal(np.max(ours, axis=axis, where=hidden, initial=-1).compute(), wanted)


NANS = (np.nansum, np.nanprod, np.nanmax, np.nanmin, np.nanmean, np.nanvar, np.nanstd, np.nancumsum)


@pytest.mark.slow
@given(cases(("f4", "f8", "i4"), min_side=1), st.sampled_from(NANS))
def test_nan_versions_are_numpys(case: Any, function: Any) -> None:
    array, ours, axis = case
    array = np.where(np.isinf(array), 0, array).astype(array.dtype)
    ours = tiled(array, ours.chunks)
    if function is not np.nancumsum or isinstance(axis, int):
        same(function, ours, array, axis=axis)


def test_an_all_nan_line_has_no_position() -> None:
    with pytest.raises(ValueError, match="All-NaN"):
        np.nanargmax(tiled(np.array([[1.0, np.nan], [np.nan, np.nan]]), 1), axis=1)


def test_an_empty_maximum_is_numpys_error_at_the_call() -> None:
    with pytest.raises(ValueError, match="zero-size"):
        np.max(tiled(np.zeros((3, 0)), 1), axis=1)


def test_out_takes_a_new_version_and_leaves_others() -> None:
    place = tiled(np.zeros(3), 1)
    before = place + 0
    made = np.sum(tiled(np.ones((2, 3)), 1), axis=0, out=place)
    assert made is place
    assert place.compute().tolist() == [2, 2, 2]
    assert before.compute().tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="out="):
        np.sum(tiled(np.ones((2, 3)), 1), axis=1, out=place)


def test_average_weighs() -> None:
    array, weights = np.arange(12.0).reshape(3, 4), np.arange(1.0, 5.0)
    found, total = np.average(tiled(array, 2), axis=1, weights=weights, returned=True)
    np.testing.assert_allclose(found.compute(), np.average(array, axis=1, weights=weights))
    assert total.compute().tolist() == [10, 10, 10]
    with pytest.raises(ZeroDivisionError):
        np.average(tiled(array, 2), axis=1, weights=weights * 0)


UFUNCS = (np.add, np.multiply, np.maximum, np.subtract, np.logaddexp, np.hypot, np.logical_or)


@given(cases(("f8", "i4"), min_dims=1, min_side=1, special=False), st.sampled_from(UFUNCS))
def test_methods_of_ufuncs(case: Any, ufunc: Any) -> None:
    array, ours, axis = case
    axis = axis if isinstance(axis, int) else 0
    same(ufunc.reduce, ours, array, axis=axis)
    if ufunc not in (np.hypot, np.logical_or):
        same(ufunc.accumulate, ours, array, axis=axis)
    np.testing.assert_allclose(ufunc.outer(ours, array[0]).compute(), ufunc.outer(array, array[0]))


@given(cases(("i4", "f8", "m8[s]"), min_dims=1, special=False), st.data())
def test_parts_of_an_axis_are_reduced_as_numpys(case: Any, data: Any) -> None:
    array, ours, _ = case
    axis = data.draw(st.integers(0, array.ndim - 1))
    if not array.shape[axis]:
        return
    starts = data.draw(st.lists(st.integers(0, array.shape[axis] - 1), max_size=6))
    ufunc = data.draw(st.sampled_from([np.add, np.maximum, np.subtract]))
    same(ufunc.reduceat, ours, array, np.array(starts, int), axis=axis)


@given(cases(min_dims=1, special=False), st.sampled_from([np.cumsum, np.cumprod]))
def test_cumulative_functions_are_numpys(case: Any, function: Any) -> None:
    array, ours, axis = case
    if isinstance(axis, int):
        same(function, ours, array, axis=axis)


def test_cumulative_sums_with_their_start() -> None:
    array = np.arange(12).reshape(3, 4)
    found = np.cumulative_sum(tiled(array, 2), axis=1, include_initial=True)
    np.testing.assert_array_equal(found.compute(), np.cumulative_sum(array, axis=1, include_initial=True))


@pytest.mark.parametrize("dtype", ["f8", "c16", "f4"])
def test_a_sum_told_along_with_the_moments_has_the_same_bits(dtype):
    data = np.random.default_rng(0).standard_normal((4000, 30)).astype(dtype)
    x = ln.asarray(data, chunks=(300, 30))
    both = ln.compute(x.sum(axis=0), x.mean(axis=0), x.std(axis=0), x.var(axis=0, ddof=1))
    alone = [each.compute() for each in (x.sum(axis=0), x.mean(axis=0), x.std(axis=0), x.var(axis=0, ddof=1))]
    for together, apart in zip(both, alone, strict=True):
        assert np.array_equal(together, apart)
    assert np.allclose(both[2], data.std(axis=0), rtol=1e-5)
