"""Functions of positions (take, choose, nonzero, searchsorted, ...), with NumPy as the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from index_keys import FORMS, result_of, same, stored
from strategies import DATES, NUMBERS, REAL, arrays, chunkings, tiled

from linnet.arrays.expression import chunking
from linnet.errors import BudgetError
from linnet.session import init


@pytest.fixture(autouse=True, scope="module")
def _no_straight_path() -> Any:
    """Arrays of one tile go the same way as arrays of many."""
    kept, chunking.SMALL = chunking.SMALL, -1
    yield
    chunking.SMALL = kept


FEW = settings(max_examples=20)
"""Each example plans several programs."""


def agree(found: Any, expected: Any) -> None:
    """As `same`, for several results too."""
    if isinstance(expected, tuple):
        assert isinstance(found, tuple)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other)
    else:
        same(found, expected)


def pair(data: Any, dtypes: Any = NUMBERS, **keywords: Any) -> tuple[Any, Any]:
    array = data.draw(arrays(dtypes, **keywords))
    form = data.draw(st.sampled_from(FORMS))
    return array, form(array, data.draw(chunkings(array.shape)))


@FEW
@given(st.data(), st.sampled_from(["raise", "wrap", "clip"]))
def test_take(data: Any, mode: Any) -> None:
    array, x = pair(data)
    axis = data.draw(st.none() | st.integers(-array.ndim - 1, array.ndim))
    index = data.draw(
        hnp.arrays(
            np.int64,
            hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=4),
            elements=st.integers(-3, 3),
        )
    )
    ours = tiled(index, data.draw(chunkings(index.shape))) if data.draw(st.booleans()) else index
    expected = result_of(lambda: np.take(array, index, axis, mode=mode))
    agree(result_of(lambda: np.take(x, ours, axis, mode=mode)), expected)


@FEW
@given(st.data())
def test_along_an_axis(data: Any) -> None:
    array, x = pair(data, min_dims=1, min_side=1)
    axis = data.draw(st.integers(-array.ndim, array.ndim - 1))
    shape = list(array.shape)
    shape[axis] = data.draw(st.integers(0, 4))
    if array.ndim > 1 and data.draw(st.booleans()):
        shape[(axis + 1) % array.ndim] = 1
    length = array.shape[axis]
    index = data.draw(hnp.arrays(np.int64, tuple(shape), elements=st.integers(-length, length - 1)))
    ours = tiled(index, data.draw(chunkings(index.shape))) if data.draw(st.booleans()) else index
    agree(np.take_along_axis(x, ours, axis), np.take_along_axis(array, index, axis))
    value = np.ones(1, array.dtype)[0]
    expected = array.copy()
    np.put_along_axis(expected, index, value, axis)
    np.put_along_axis(x, ours, value, axis)
    same(x, expected)


@pytest.mark.slow
@FEW
@given(st.data())
def test_putting_with_functions(data: Any) -> None:
    array, x = pair(data, ("f8", "i4", "?"), min_dims=1, special=False)
    expected = array.copy()
    mask = data.draw(hnp.arrays(bool, array.shape))
    ours = tiled(mask, data.draw(chunkings(mask.shape))) if data.draw(st.booleans()) else mask
    values = data.draw(hnp.arrays(array.dtype, st.integers(1, 5), elements=st.integers(0, 1)))
    for function in (np.putmask, np.place):
        function(expected, mask, values)
        function(x, ours, values)
        same(x, expected)
    np.putmask(expected, mask, array)
    np.putmask(x, ours, array)
    same(x, expected)
    if array.size:
        index = data.draw(st.lists(st.integers(-array.size, array.size - 1), max_size=5))
        np.put(expected, index, values)
        np.put(x, index, values)
        same(x, expected)


@pytest.mark.slow
@FEW
@given(st.data())
def test_choosing(data: Any) -> None:
    array, x = pair(data, ("i8", "f8"), min_dims=1)
    number = data.draw(hnp.arrays(np.int64, array.shape, elements=st.integers(-1, 3)))
    ours = tiled(number, data.draw(chunkings(number.shape)))
    mode: Any = data.draw(st.sampled_from(["raise", "wrap", "clip"]))
    expected = result_of(lambda: np.choose(number, [array, 7, array * 2], mode=mode))
    agree(result_of(lambda: np.choose(ours, [x, 7, x * 2], mode=mode)), expected)
    conditions = [array > 1, array < 0]
    agree(np.select([x > 1, x < 0], [x, -1], 5), np.select(conditions, [array, -1], 5))
    agree(np.extract(x > 1, x), np.extract(array > 1, array))
    line = data.draw(hnp.arrays(bool, array.shape[0]))
    for axis in (0, None):
        expected = result_of(lambda axis=axis: np.compress(line, array, axis))
        agree(result_of(lambda axis=axis: np.compress(line, x, axis)), expected)


@FEW
@given(st.data())
def test_positions_of_what_is_not_zero(data: Any) -> None:
    array, x = pair(data, (*NUMBERS, *DATES))
    agree(result_of(lambda: np.nonzero(x)), result_of(lambda: np.nonzero(array)))
    agree(np.argwhere(x), np.argwhere(array))
    agree(np.flatnonzero(x), np.flatnonzero(array))
    if array.ndim:
        agree(np.where(x), np.where(array))


@FEW
@given(st.data())
def test_diagonals(data: Any) -> None:
    array, x = pair(data, ("f8", "i4"), min_dims=2, special=False)
    offset = data.draw(st.integers(-7, 7))
    axes = data.draw(st.permutations(range(-array.ndim, 0)))[:2]
    agree(np.diagonal(x, offset, *axes), np.diagonal(array, offset, *axes))
    agree(np.trace(x, offset, *axes), np.trace(array, offset, *axes))
    expected = array.copy()
    for wrap in (False, True):
        outcome = result_of(lambda wrap=wrap: np.fill_diagonal(expected, [3, 4], wrap))
        assert result_of(lambda wrap=wrap: np.fill_diagonal(x, [3, 4], wrap)) is outcome
        same(x, expected)


@FEW
@given(st.data(), st.sampled_from("CF"))
def test_row_major_positions(data: Any, order: Any) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, max_side=5))
    size = int(np.prod(shape))
    flat = data.draw(hnp.arrays(np.int64, st.integers(1, 8), elements=st.integers(0, size - 1)))
    ours = stored(flat, data.draw(chunkings(flat.shape)))
    expected = np.unravel_index(flat, shape, order)
    found = np.unravel_index(ours, shape, order)
    agree(found, expected)
    for mode in ("raise", "wrap", "clip"):
        agree(
            np.ravel_multi_index(found, shape, mode, order),
            np.ravel_multi_index(expected, shape, mode, order),
        )
    with pytest.raises(ValueError, match="is out of bounds for array with size"):
        np.unravel_index(ours + size, shape)


@FEW
@given(st.data(), st.sampled_from(["left", "right"]))
def test_places_in_sorted_arrays(data: Any, side: Any) -> None:
    array = np.sort(data.draw(arrays(REAL, min_dims=1, max_dims=1, max_side=20)))
    x = stored(array, data.draw(chunkings(array.shape)))
    values, v = pair(data, (array.dtype.str,))
    agree(np.searchsorted(x, v, side), np.searchsorted(array, values, side))
    if array.dtype.kind != "b":
        turned = np.arange(len(array))[::-1].copy()
        back = array[::-1].copy()
        agree(np.searchsorted(stored(back, 3), v, side, turned), np.searchsorted(back, values, side, turned))
    bins = np.array([-1, 0, 0, 2])
    for edges in (bins, bins[::-1]):
        agree(np.digitize(v, edges, side == "left"), np.digitize(values, edges, side == "left"))


def test_errors_are_numpys() -> None:
    x = tiled(np.zeros((3, 4)), 2)
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 with size 3"):
        np.take(x, [3], axis=0)
    with pytest.raises(ValueError, match="bins must be monotonically increasing or decreasing"):
        np.digitize(x, [0, 2, 1])
    with pytest.raises(ValueError, match="invalid entry in choice array"):
        np.choose(tiled(np.array([0, 2]), 1), [1, 2])
    with pytest.raises(ValueError, match="axis1 and axis2 cannot be the same"):
        np.diagonal(x, 0, 1, 1)
    with pytest.raises(TypeError, match="put writes into an array of linnet's, not into ndarray"):
        np.put(np.zeros(3), x, x)


def test_a_box_by_rows_and_columns() -> None:
    array = np.arange(24).reshape(4, 6)
    x = tiled(array, (2, 4))
    rows: Any = tiled(np.array([3, 0]), 1)
    columns: Any = np.array([True, False, True, False, False, True])
    same(x[np.ix_(rows, columns)], array[np.ix_([3, 0], columns)])


def test_lazy_indices_larger_than_the_budget_are_refused():
    x = tiled(np.arange(200_000), (50_000,))
    order = -x  # lazy: 1.6 MB once it is known
    with init(memory=1 << 20):
        for use in (
            lambda: x[order],
            lambda: np.take(x, order),
            lambda: np.put(x, order, 0),
            lambda: np.compress(order, x),
        ):
            with pytest.raises(BudgetError, match="lazy index or mask of .*compute\\(\\) it first"):
                use()


@FEW
@given(count=st.integers(1, 5), axis=st.integers(0, 2), chunks=chunkings((3, 4, 2)))
def test_stretching_along_each_axis(count: int, axis: int, chunks: Any):
    a = np.arange(24).reshape(3, 4, 2)
    x = tiled(a, chunks)
    agree(np.repeat(x, count, axis=axis), np.repeat(a, count, axis=axis))
    counts = tuple(count if each == axis else 1 for each in range(3))
    agree(np.tile(x, counts), np.tile(a, counts))


@FEW
@given(
    rows=st.lists(st.integers(-5, 4), max_size=7),
    columns=st.lists(st.integers(-6, 5), max_size=7),
    chunks=chunkings((2, 5, 6)),
)
def test_outer_indices(rows: list[int], columns: list[int], chunks: Any):
    a = np.arange(60).reshape(2, 5, 6)
    box = np.ix_(np.array(rows, int), np.array(columns, int))
    agree(tiled(a, chunks)[(slice(None, None, -1), *box)], a[(slice(None, None, -1), *box)])
