"""How results of picking are cut: in step with the operand's tiles, or with those they are combined with."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import linnet as ln
from linnet.arrays.elements.gather import _in_step


def lazy(values: np.ndarray, chunks: object) -> ln.Array:
    return ln.map_blocks(np.copy, ln.asarray(values, chunks=chunks), dtype=values.dtype)


@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=40).map(sorted), st.integers(1, 9), st.integers(1, 4)
)
def test_positions_in_order_are_cut_where_their_tiles_change(
    tiles: list[int], length: int, most: int
) -> None:
    edges = _in_step(np.asarray(tiles), length, most)
    assert edges[0] == 0
    assert edges[-1] == len(tiles)
    for start, stop in itertools.pairwise(edges):
        assert 0 < stop - start <= length
        read = tiles[start:stop]
        assert read[-1] - read[0] < most
        assert read[-1] - read[0] + 1 <= 2 * len(set(read))


@given(
    st.integers(1, 60), st.integers(1, 20), st.lists(st.integers(0, 59), min_size=1, max_size=40).map(sorted)
)
def test_sorted_picks_are_numpys(length: int, chunk: int, wanted: list[int]) -> None:
    x = np.arange(length * 2.0).reshape(length, 2)
    positions = [each for each in wanted if each < length]
    found = lazy(x, (chunk, 1))[positions]
    np.testing.assert_array_equal(found.compute(), x[positions])


def test_months_of_days_are_read_a_tile_at_a_time() -> None:
    days = np.arange(730)
    x = lazy(np.random.default_rng(0).normal(size=(730, 3)), (73, -1))
    january = x[np.flatnonzero(days % 365 < 31)]
    assert january.chunks[0] == (31, 31)


def test_what_is_picked_of_little_takes_the_cut_of_what_it_meets() -> None:
    days = np.arange(730)
    values = np.random.default_rng(0).normal(size=(730, 4))
    x = lazy(values, (100, 2))
    normal = lazy(np.arange(48.0).reshape(12, 4), (1, 4))
    anomaly = x - normal[days % 12]
    assert anomaly.chunks == x.chunks
    np.testing.assert_array_equal(anomaly.compute(), values - np.arange(48.0).reshape(12, 4)[days % 12])
