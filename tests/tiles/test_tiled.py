"""Arrays made of tiles."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.errors import InputError
from linnet.tiles import TiledArray, TileKey

DTYPES = ["f4", "f8", "c8", "c16", "i8", "?"]


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 10)), min_size=0, max_size=3),
    st.sampled_from(DTYPES),
    st.booleans(),
    st.sampled_from("CF"),
)
def test_cut_and_join(axes, dtype, copy, order):
    shape = tuple(length for length, _ in axes)
    array = (np.arange(np.prod(shape, dtype=int)) % 7).reshape(shape).astype(dtype)
    tiled = TiledArray.from_numpy(array, [tile for _, tile in axes], copy=copy)
    whole = tiled.to_numpy(order)
    assert np.array_equal(whole, array)
    assert whole.dtype == array.dtype
    assert whole.flags.c_contiguous if order == "C" else whole.flags.f_contiguous
    again = TiledArray.from_tiles(tiled.tiles)
    assert again.layout == tiled.layout
    assert np.array_equal(np.asarray(again), array)
    for tile in tiled.tiles.values():
        assert tile.flags.f_contiguous or not copy
        assert copy != np.shares_memory(tile, array) or not tile.size


def test_views_cannot_be_written():
    array = np.zeros((4, 4))
    tiled = TiledArray.from_numpy(array, 2, copy=False)
    with pytest.raises(ValueError, match="read-only"):
        tiled.tile((0, 0))[0, 0] = 1.0
    array[0, 0] = 5.0
    assert tiled.tile((0, 0))[0, 0] == 5.0


def test_missing_tiles_are_the_fill_or_an_error():
    tiles = {(0, 0): np.ones((2, 2)), (1, 1): np.ones((1, 1))}
    lower = TiledArray.from_tiles(tiles, fill=0)
    assert np.array_equal(lower.tile((0, 1)), np.zeros((2, 1)))
    assert lower.to_numpy().sum() == 5
    assert lower.nbytes == 40
    with pytest.raises(InputError, match=r"O\[0, 1\], O\[1, 0\] are not written, and O has no fill"):
        TiledArray.from_tiles(tiles, name="O")
    with pytest.raises(InputError, match=r"no tile \(2, 0\)"):
        lower.tile((2, 0))


def test_tiles_that_form_no_array_are_named():
    with pytest.raises(InputError, match=r"T\[0, 0\] and T\[0, 1\] do not fit together: 2 and 3 elements"):
        TiledArray.from_tiles({(0, 0): np.ones((2, 2)), (0, 1): np.ones((3, 2))}, name="T")
    with pytest.raises(InputError, match=r"V\[0, 0, 1\] has 2 axes but 3 indices"):
        TiledArray.from_tiles({(0, 0, 1): np.ones((2, 2))}, name="V")
    with pytest.raises(InputError, match=r"no tile of O at position 0 along axis 0 is written"):
        TiledArray.from_tiles({(1, 0): np.ones((2, 2))}, fill=0, name="O")
    with pytest.raises(InputError, match="O has no tiles"):
        TiledArray.from_tiles({}, name="O")
    with pytest.raises(InputError, match=r"indexed with \[1, 2\] indices"):
        TiledArray.from_tiles({(0,): np.ones(2), (0, 0): np.ones((2, 2))})


def test_as_a_numpy_array():
    tiled = TiledArray.from_numpy(np.arange(6).reshape(2, 3), 2)
    assert np.asarray(tiled, dtype="f4").dtype == np.float32
    with pytest.raises(ValueError, match="in pieces"):
        np.array(tiled, copy=False)
    with pytest.raises(InputError, match="order 'X' is not known"):
        tiled.to_numpy("X")
    assert repr(tiled) == "TiledArray(shape=(2, 3), dtype=int64, grid=1×2)"
    assert (tiled.ndim, tiled.grid) == (2, (1, 2))
    assert dict(tiled.keyed("A")).keys() == {TileKey("A", (0, 0)), TileKey("A", (0, 1))}
