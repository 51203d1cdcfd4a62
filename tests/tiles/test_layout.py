"""Chunk arithmetic: cutting and joining, for any shape and tile size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.errors import InputError
from linnet.tiles import Layout, from_sizes, regular

lengths = st.integers(0, 40)
tiles = st.integers(1, 50)


@given(lengths, tiles)
def test_regular_boundaries_cover_the_axis(length, tile):
    edges = regular(length, tile)
    sizes = np.diff(edges)
    assert edges[0] == 0
    assert edges[-1] == length
    assert len(sizes) == max(1, -(-length // tile))
    assert all(size == tile for size in sizes[:-1])
    assert 0 <= sizes[-1] <= tile
    assert sizes[-1] > 0 or length == 0
    assert from_sizes(list(sizes)) == edges


@given(st.lists(st.tuples(lengths, tiles), min_size=0, max_size=3))
def test_tiles_partition_the_array(axes):
    shape = tuple(length for length, _ in axes)
    layout = Layout.regular(shape, [tile for _, tile in axes])
    assert layout.shape == shape
    hits = np.zeros(shape, int)
    for index in layout.indices():
        assert hits[layout.slices(index)].shape == layout.tile_shape(index)
        hits[layout.slices(index)] += 1
        assert index in layout
    assert (hits == 1).all()


@given(st.lists(st.integers(0, 5), min_size=1, max_size=6), st.data())
def test_locate_finds_the_tile_that_holds_an_element(sizes, data):
    layout = Layout((from_sizes(sizes),))
    if layout.shape == (0,):
        return
    position = data.draw(st.integers(0, layout.shape[0] - 1))
    (where,) = layout.slices(layout.locate((position,)))
    assert where.start <= position < where.stop


def test_what_is_refused():
    with pytest.raises(InputError, match="cannot cut an axis of length 3 into tiles of 0"):
        regular(3, 0)
    with pytest.raises(InputError, match=r"tile sizes \(\) along an axis"):
        from_sizes([])
    with pytest.raises(InputError, match=r"tile size \(2, 2\) for an array of shape \(3,\)"):
        Layout.regular((3,), (2, 2))
    with pytest.raises(InputError, match=r"boundaries \(0, 3, 2\) along axis 1: they must start at 0"):
        Layout(((0, 1), (0, 3, 2)))
    layout = Layout.regular((5, 5), 2)
    with pytest.raises(InputError, match=r"no tile \(3, 0\) in a grid of 3×3 tiles"):
        layout.tile_shape((3, 0))
    with pytest.raises(InputError, match=r"no tile \(1,\) in a grid"):
        layout.slices((1,))
    with pytest.raises(InputError, match=r"element \(5, 0\) is outside an array of shape \(5, 5\)"):
        layout.locate((5, 0))
    assert "tile" not in layout
