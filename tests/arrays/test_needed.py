"""Tiles that nobody needs are not computed, and those that somebody needs are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linnet as ln
from linnet.arrays.lowering.kept_programs import lowered


def tasks(x: Any) -> int:
    """How many tasks the program of an array has."""
    return lowered([x.__node__])[0].bound.count()


def made(x: Any, kernel: str = "sample") -> int:
    """How many tiles of random numbers an array is made of; or calls of another kernel."""
    bound = lowered([x.__node__])[0].bound
    return sum(bound.call(task).kernel == kernel for task in bound.tasks())


def lazy(shape: tuple[int, ...], chunks: Any) -> Any:
    return ln.random.default_rng(0).standard_normal(shape, chunks=chunks)


def test_a_slice_computes_the_tiles_it_lies_in_and_no_others():
    x = lazy((1000, 1000), 100)
    assert tasks(x[:10, :10]) == 1 + 1
    assert tasks((x + 1)[950:, 150:250]) == 2 + 2 + 1
    assert tasks(x[5]) == 10 + 10 + 10


def test_a_reduction_needs_its_axis_and_no_more_than_was_asked_of_the_rest():
    x = lazy((1000, 1000), 100)
    whole, part = tasks(x.sum(axis=0)), tasks(x.sum(axis=0)[:100])
    assert part < whole / 5


def test_readers_that_need_different_tiles_get_both():
    x = lazy((400, 400), 100)
    both = x[:100, :100] + x[300:, 300:]
    values = x.compute()
    assert np.array_equal(both.compute(), values[:100, :100] + values[300:, 300:])


@pytest.mark.slow
@given(st.data())
def test_parts_of_expressions_are_what_they_are_of_the_whole(data: st.DataObject):
    shape = (data.draw(st.integers(1, 12)), data.draw(st.integers(1, 12)))
    x = lazy(shape, data.draw(st.integers(1, 5)))
    steps = [
        lambda a: a + a[:1],
        lambda a: a.T,
        lambda a: a.sum(axis=0, keepdims=True) * a,
        lambda a: ln.concat([a, a * 2], axis=0),
        lambda a: ln.cumulative_sum(a, axis=1),
        lambda a: ln.flip(a, axis=0),
        lambda a: ln.sort(a, axis=1),
        lambda a: a - a.mean(axis=1, keepdims=True),
    ]
    for step in data.draw(st.lists(st.sampled_from(steps), max_size=4)):
        x = step(x)
    key = tuple(
        slice(low, data.draw(st.integers(low, n))) for n in x.shape for low in [data.draw(st.integers(0, n))]
    )
    assert np.array_equal(x[key].compute(), x.compute()[key])


def test_readers_of_two_corners_do_not_compute_what_lies_between():
    x = lazy((2000, 2000), 100)
    assert made(x[:100, :100] + x[1900:, 1900:]) == 2


# ---- picked by position


KEYS = {
    "rows": ([0, 1999], slice(None)),
    "rows_in_another_order": ([1999, 0, 1999], slice(None)),
    "columns": (slice(None), [3, 700]),
    "points": ([0, 1999, 150, 1950], [7, 0, 140, 30]),
    "points_of_a_grid": (np.array([[0, 1950], [950, 3]]), np.array([[0, 1999], [5, 999]])),
    "outer": np.ix_([0, 1, 1950], [1999, 500]),
    "mixed": ([3, 1234], slice(100, 250)),
}


@pytest.fixture(scope="module")
def values() -> np.ndarray:
    return lazy((2000, 2000), 100).compute()


@pytest.mark.slow
@pytest.mark.parametrize("name", KEYS)
def test_only_tiles_that_hold_an_index_are_read(name: str, values: np.ndarray):
    key = KEYS[name]
    x = lazy((2000, 2000), 100)
    rows, columns = (np.arange(2000)[k] if isinstance(k, slice) else np.asarray(k) for k in key)
    if any(isinstance(k, slice) for k in key):
        rows, columns = np.ix_(rows, columns)
    held = np.unique(np.stack(np.broadcast_arrays(rows // 100, columns // 100)).reshape(2, -1), axis=1)
    assert made(x[key]) == held.shape[1]
    assert np.array_equal(x[key].compute(), values[key])


def test_tiles_are_read_for_two_rows_of_a_large_grid():
    x = lazy((4000, 4000), 200)
    assert made(x[[0, 3999]]) == 40
    assert made(ln.take(x, [0, 3999], axis=1)) == 40
    assert made(ln.compress(np.isin(np.arange(4000), [5, 2700]), x, axis=0)) == 40
    assert made(np.take(x, [0, 4000 * 4000 - 1])) == 2
    assert made((x.sum(axis=0) + 1)[[0, 3999]]) == 40
    assert made((x + 1).T[[0, 3999]]) == 40


def test_a_diagonal_reads_its_own_tiles():
    x = lazy((2000, 1500), 100)
    assert made(ln.diagonal(x)) == 15
    assert made(ln.trace(x, 500)) == 10
    assert made(ln.diagonal(lazy((40, 300, 300), (20, 20, 20)), axis1=1, axis2=2)) == 2 * 15


@pytest.mark.slow
@settings(max_examples=20)
@given(st.data())
def test_picked_elements_are_numpys_and_cost_the_tiles_they_lie_in(data: st.DataObject):
    shape = tuple(data.draw(st.lists(st.integers(1, 9), min_size=2, max_size=3)))
    chunks = data.draw(st.integers(1, 4))
    x = lazy(shape, chunks)
    count = data.draw(st.integers(1, 12))
    key = tuple(
        np.array(data.draw(st.lists(st.integers(0, n - 1), min_size=count, max_size=count)))
        for n in shape[:2]
    )
    found = x[key] * 2 + x[key]
    np.testing.assert_array_equal(found.compute(), x.compute()[key] * 2 + x.compute()[key])
    held = {*zip(*(k // chunks for k in key), strict=True)}
    assert made(found) == len(held) * int(np.prod(x.grid[2:]))


@pytest.mark.slow
def test_masks_known_beforehand_read_the_tiles_in_which_they_are_true(values: np.ndarray):
    x = lazy((2000, 2000), 100)
    few = np.zeros((2000, 2000), bool)
    few[3, 1700] = few[3, 7] = few[1950, 20] = True
    quarter = np.zeros((2000, 2000), bool)
    quarter[350:850, 1200:1390] = True
    rows = np.zeros(2000, bool)
    rows[:300] = rows[1700:] = True
    for mask, tiles in ((few, 3), (quarter, 6 * 2), (rows, 6 * 20), (rows & False, 0), (few & False, 0)):
        assert made(x[mask]) == tiles
        assert np.array_equal(x[mask].compute(), values[mask])
    assert made(x[:, rows]) == 6 * 20
    assert made(np.extract(few, x)) == 3


def test_under_a_lazy_mask_slabs_without_a_true_element_are_not_read():
    x = lazy((2000, 300), 100)
    mask = ln.arange(2000, chunks=100) // 500 == 2
    assert made(x[mask]) == 5 * 3
    assert np.array_equal(x[mask].compute(), x.compute()[1000:1500])
    assert x[ln.arange(2000, chunks=100) < 0].compute().shape == (0, 300)


@pytest.mark.slow
@pytest.mark.parametrize("step", [1, 7, 100, 101, 250, 1000, -1, -130, -999])
def test_slices_with_steps_read_the_tiles_that_hold_their_elements(step: int):
    x = lazy((2000, 300), 100)
    part = x[13::step] if step > 0 else x[1977::step]
    held = np.unique(np.arange(2000)[13::step] // 100 if step > 0 else np.arange(2000)[1977::step] // 100)
    assert made(part) == 3 * len(held)
    values = x.compute()
    assert np.array_equal(part.compute(), values[13::step] if step > 0 else values[1977::step])


def test_a_thin_slice_of_much_is_thinned_tile_by_tile():
    x = lazy((1 << 26,), 1 << 20)
    assert made(x[:: 1 << 12], "cut") == 64 + 1  # not one task that reads all 512 MB


def test_take_along_axis_reads_the_tiles_of_positions_known_beforehand():
    x = lazy((600, 600), 100)
    first = np.tile([3, -1], (600, 1))
    assert made(np.take_along_axis(x, first, axis=1)) == 6 * 2
    assert np.array_equal(
        np.take_along_axis(x, first, axis=1).compute(), np.take_along_axis(x.compute(), first, axis=1)
    )
    line = np.full((1, 600), 250)
    assert made(np.take_along_axis(x, line, axis=0)) == 6


def test_assigned_elements_do_not_make_a_part_read_more(values: np.ndarray):
    x = lazy((2000, 2000), 100) + 0
    expected = values.copy()
    x[[0, 1999], [3, 1500]] = 7
    x[[5, 1800]] = -1
    expected[[0, 1999], [3, 1500]] = 7
    expected[[5, 1800]] = -1
    key = ([0, 1999, 5], [3, 1500, 3])
    assert made(x[key]) == 2
    assert np.array_equal(x[key].compute(), expected[key])
    assert np.array_equal(x[::900, ::900].compute(), expected[::900, ::900])
    assert made(x[::900, ::900]) == 9


# ---- printing


def test_printing_costs_what_the_corners_cost():
    seen: list[tuple[int, ...]] = []

    def counting(tile: np.ndarray) -> np.ndarray:
        seen.append(tile.shape)
        return tile + 1

    x = ln.map_blocks(counting, ln.ones((200_000, 200_000), chunks=1000), dtype=np.float64)
    expected = str(np.broadcast_to(2.0, (200_000, 200_000)))
    assert str(x) == expected
    assert len(seen) == 4
    assert f"{x.T}" == expected
    assert len(seen) == 8
    assert "200000" in repr(x)
    assert len(seen) == 8
