"""Corners that random programs and a second look found, each against NumPy in several tiles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from against_numpy import Pair, same, tiles_only

import linnet as ln


@pytest.fixture(autouse=True, scope="module")
def _tiles_only() -> Iterator[None]:
    with tiles_only():
        yield


LINE = np.array([3, 1, 1, 0, 5, 7])
MASK = np.array([True, False, True, True, False, True])
IN_ORDER = [
    np.subtract,
    np.divide,
    np.power,
    np.floor_divide,
    np.remainder,
    np.arctan2,
    np.left_shift,
    np.fmod,
]


@pytest.mark.parametrize("ufunc", IN_ORDER)
@pytest.mark.parametrize("dtype", ["i8", "u1", "f4"])
def test_reductions_in_order_with_where_and_initial(ufunc: np.ufunc, dtype: str) -> None:
    dtype = "i2" if ufunc is np.left_shift else dtype
    x, grid = Pair(LINE.astype(dtype), 2), Pair(np.arange(12).reshape(3, 4).astype(dtype), 2)
    same(ufunc.reduce, x, initial=2)
    same(ufunc.reduce, x, initial=2, where=Pair(MASK, 4))
    same(ufunc.reduce, x, initial=2, where=np.zeros(6, bool))
    same(ufunc.reduce, x, where=MASK)  # nothing to begin with: both refuse
    same(ufunc.reduce, x, where=MASK, initial=None)
    same(ufunc.reduce, grid, axis=1, initial=1, where=Pair(np.arange(12).reshape(3, 4) % 3 > 0, 3))
    same(ufunc.reduce, grid, axis=0, initial=1, where=MASK[:4], keepdims=True)


@pytest.mark.parametrize(
    "ufunc", [np.add, np.multiply, np.maximum, np.hypot, np.gcd, np.logaddexp, np.logical_and]
)
def test_a_mask_needs_something_to_begin_with(ufunc: np.ufunc) -> None:
    x = ln.asarray(LINE, chunks=2)
    with pytest.raises(ValueError, match="so to use a where mask one has to specify 'initial'"):
        ufunc.reduce(x, where=MASK, initial=None)


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize(
    "bins", [[0.0, 1, np.nan], [np.nan, 2, 1.0], [np.nan], [1, 1, 2], [3.0, 2, 2, 1], [], [2, 1, 1.5]]
)
def test_digitize_with_nan_among_bins(bins: list[float], right: bool) -> None:
    same(np.digitize, Pair([0.5, np.nan, 2.5, -1, 1, 9], 2), bins, right=right)


def test_lexsort_of_one_line() -> None:
    same(np.lexsort, Pair([3, 1, 2], 2))
    same(np.lexsort, Pair([3, 1, 2], 2), axis=0)
    same(np.lexsort, Pair([3, 1, 2], 2), axis=1)
    same(lambda x: np.lexsort((x,)), Pair([3, 1, 2, 1], 2))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_is_no_integer(value: float) -> None:
    x = ln.asarray(LINE.copy(), chunks=2)
    with pytest.raises((ValueError, OverflowError), match="cannot convert float (NaN|infinity) to integer"):
        x[-1] += value
    assert x.compute().tolist() == LINE.tolist()
    x[-1] += 2.5
    assert x.compute()[-1] == 9


@pytest.mark.parametrize("spec", ["ii->i", "ij->ji", "ij", "ij->j", "ii", "...->..."])
def test_views_by_einsum_keep_their_dtype(spec: str) -> None:
    same(lambda x: np.einsum(spec, x, dtype="f8"), Pair(np.arange(9, dtype="i2").reshape(3, 3), 2))


FOLDS = [
    np.sum,
    np.max,
    np.any,
    np.ptp,
    np.argmax,
    np.cumsum,
    np.nansum,
    np.nanargmin,
    np.count_nonzero,
    np.argsort,
]
OTHERS = [np.mean, np.std, np.median, np.sort, np.flip]


@pytest.mark.parametrize(
    "function", [*FOLDS, *OTHERS, np.add.reduce, np.subtract.reduce, np.bitwise_or.reduce]
)
@pytest.mark.parametrize("axis", [0, -1, 1])
def test_axes_of_an_array_that_has_none(function: Any, axis: int) -> None:
    same(function, Pair(5, ()), axis=axis)
    same(lambda x: np.repeat(x, 2, axis), Pair(5, ()))


def test_clip_has_the_dtype_of_both_bounds() -> None:
    x = Pair([True, False, True], 2)
    for low, high in [(2.5, np.float32(1.5)), (0, np.float32(1.5)), (np.float32(0.5), 2), (0, 2)]:
        same(np.clip, x, low, high)


@pytest.mark.parametrize("dtype", ["m8[s]", "M8[D]", "M8[ns]"])
def test_none_equals_nat(dtype: str) -> None:
    x = Pair(np.array([1, "NaT", 3], dtype), 2)
    same(lambda a: a == None, x)  # noqa: E711
    same(lambda a: a != None, x)  # noqa: E711
    same(lambda a: a == [None, None, "b"], x)


def test_dates_and_durations_in_one_choice() -> None:
    days = Pair(np.array([1, 2, 3], "m8[D]"), 2)
    same(lambda x, c: np.where(c, x, np.array("2020-01-01", "M8[D]")), days, Pair([True, False, True], 1))


@pytest.mark.parametrize("value", [-2, 300, 7])
def test_where_wraps_numbers_as_numpy_does(value: int) -> None:
    same(lambda x, c: np.where(c, x, value), Pair(np.array([1, 2, 3], "u1"), 2), Pair([True, False, True], 1))


@pytest.mark.parametrize("mode", ["raise", "clip"])
@pytest.mark.parametrize("shape", [(0, 1, 2), (0, 0, 2), (2, 0, 0), (2, 0, 1)])
def test_taking_where_nothing_comes_out(shape: tuple[int, ...], mode: str) -> None:
    same(np.take, Pair(np.zeros(shape), tuple(max(n, 1) for n in shape)), [1, 0], axis=1, mode=mode)


def test_other_small_ones() -> None:
    same(np.diff, Pair(3.0, ()), n=0)
    same(np.cov, Pair(np.zeros((0, 1), "c16"), 1))
    same(np.average, Pair(np.zeros((0, 0, 3)), 1), axis=-2, weights=Pair(np.zeros(0), 1))
    with pytest.raises(TypeError, match="arrays of objects"):
        np.correlate(ln.asarray(np.array([1, 2, 3], "m8[s]"), chunks=2), np.array([1, 2], "u8"))


DURATIONS = np.array([[1, 5, -2], [7, 0, 3], [4, 4, 9]], "m8[s]")


@pytest.mark.parametrize("other", ["m8[s]", "m8[ms]", "i8", "i1", "?"])
@pytest.mark.parametrize("function", [np.dot, np.inner, np.vdot, lambda a, b: np.tensordot(a, b, 1)])
def test_products_of_durations_are_products_of_their_counts(function: Any, other: str) -> None:
    x, y = Pair(DURATIONS, 2), Pair(np.arange(-3, 6).reshape(3, 3).astype(other), 2)
    same(function, x, y)
    same(function, y, x)
    same(function, Pair(DURATIONS[0], 2), Pair(np.arange(3).astype(other), 1))


@pytest.mark.parametrize("function", [np.vdot, lambda a, b: np.tensordot(a, b, 0)])
def test_products_of_two_durations_without_axes(function: Any) -> None:
    same(function, Pair(np.array(-25, "m8[D]"), -1), Pair(np.array(2, "u2"), -1))


@pytest.mark.parametrize("other", ["f8", "u8", "c16"])
@pytest.mark.parametrize("chunks", [2, 3])
def test_products_of_durations_that_would_be_objects_are_refused(other: str, chunks: int) -> None:
    x = ln.asarray(np.array([1, "NaT", 3], "m8[s]"), chunks=chunks)
    for function in (np.dot, np.inner, np.vdot, lambda a, b: np.tensordot(a, b, 1)):
        with pytest.raises(TypeError, match=r"products of .*divide durations by one of them first"):
            function(x, np.ones(3, other))


@pytest.mark.parametrize("order", [2, -2, "nuc", 1, "fro"])
def test_norms_of_durations(order: Any) -> None:
    same(np.linalg.norm, Pair(DURATIONS, 2), order)


def test_durations_are_not_among_unsigned_integers() -> None:
    same(np.isin, Pair(np.arange(5, dtype="u8"), 2), DURATIONS[0])


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinite_matrices_have_no_least_squares_and_no_condition(value: float) -> None:
    matrix = np.array([[1.0, 2.0], [3.0, value]])
    assert ln.linalg.cond(ln.asarray(matrix)).compute() == np.inf == np.linalg.cond(matrix)
    with pytest.raises(np.linalg.LinAlgError, match="did not converge in Linear Least Squares"):
        ln.compute(ln.linalg.lstsq(ln.asarray(matrix), np.ones(2)))
    with pytest.raises(np.linalg.LinAlgError, match="not finite"):
        ln.linalg.svdvals(ln.asarray(np.pad(matrix, 2), chunks=2)).compute()


@pytest.mark.parametrize("chunks", [1, 2])
def test_comparing_with_numbers_beyond_the_dtype_under_a_mask(chunks: int) -> None:
    x = ln.asarray(np.array([2, 3], "u8"), chunks=chunks)  # NumPy 2.4 itself crashes here
    out = ln.asarray(np.array([5, 5]), chunks=chunks)
    assert np.less(-2, x, out=out, where=np.array([True, False])).compute().tolist() == [1, 5]


@pytest.mark.parametrize("k", [-2, 0, 1])
@pytest.mark.parametrize("function", [np.diag, np.diagflat])
def test_matrices_of_diagonals_without_elements(function: Any, k: int) -> None:
    same(function, Pair(np.zeros(0, "u4"), -1), k)


def test_positions_may_be_boolean() -> None:
    x = Pair(np.array([True, False, True]), 2)
    same(np.unravel_index, x, (2, 2))
    same(lambda each: np.ravel_multi_index((each, each), (3, 2)), x)


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
@pytest.mark.parametrize("axes", [(-1, 0), (0, 0, 0)])
def test_axes_that_are_transformed_twice(name: str, axes: tuple[int, ...]) -> None:
    same(getattr(np.fft, name), Pair(np.array([1.0, 2, 1, 5, 3, 5]), 4), axes=axes)


@pytest.mark.parametrize("name", ["irfft", "irfftn", "hfft"])
def test_transforms_of_no_points_are_refused_at_once(name: str) -> None:
    same(getattr(np.fft, name), Pair(np.ones((2, 1)), 1))


@pytest.mark.parametrize("shift", [(), 1, (1,), (1, 2)])
@pytest.mark.parametrize("axis", [(), 0, (0,), (1, 0)])
def test_shifts_along_no_axes(shift: Any, axis: Any) -> None:
    same(np.roll, Pair(np.arange(6.0).reshape(2, 3), 1), shift, axis)
    same(np.fft.fftshift, Pair(np.arange(6.0).reshape(2, 3), 1), axis)


def test_polynomials_without_coefficients() -> None:
    for dtype in ("?", "u1", "f4", "i8"):
        same(np.polyval, np.zeros(0, "i8"), Pair(np.ones(3, dtype), 2))


def test_numbers_over_axes() -> None:
    same(np.apply_over_axes, np.sum, Pair(np.array(3, "i2"), ()), 0)
    same(np.apply_over_axes, np.sum, Pair(np.arange(6).reshape(2, 3), 1), [0, -1])
