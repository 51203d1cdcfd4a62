"""`x[...]` on arrays in tiles, with NumPy as the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from index_keys import FORMS, keys, lazily, result_of, same, stored
from strategies import DATES, NUMBERS, arrays, chunkings, tiled

import linnet as ln
from linnet.arrays.elements import gather
from linnet.arrays.expression import chunking


@pytest.fixture(autouse=True, scope="module")
def _no_straight_path() -> Any:
    """Arrays of one tile go the same way as arrays of many."""
    kept, chunking.SMALL = chunking.SMALL, -1
    yield
    chunking.SMALL = kept


@given(st.data(), st.sampled_from(FORMS))
def test_every_key(data: Any, form: Any) -> None:
    array = data.draw(arrays((*NUMBERS, *DATES)))
    x = form(array, data.draw(chunkings(array.shape)))
    key = data.draw(keys(array.shape))
    expected = result_of(lambda: array[key])
    same(result_of(lambda: x[lazily(data.draw, key)]), expected)


@pytest.mark.parametrize("neighbours", [0, 4])
@given(data=st.data())
def test_index_arrays_in_any_order(neighbours: int, data: Any) -> None:
    """Longer arrays in more tiles; without leave to read neighbours together, elements are shuffled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gather, "_NEIGHBOURS", neighbours)
        _any_order(data)


def _any_order(data: Any) -> None:
    array = np.arange(data.draw(st.integers(1, 60)) * 3).reshape(-1, 3)
    x = stored(array, data.draw(chunkings(array.shape)))
    index = data.draw(st.lists(st.integers(-len(array), len(array) - 1), min_size=1, max_size=80))
    same(x[index], array[index])
    same(x[:, [2, 0]][index], array[:, [2, 0]][index])
    other = data.draw(st.lists(st.integers(-3, 2), min_size=len(index), max_size=len(index)))
    same(x[index, other], array[index, other])


def test_a_random_order_is_shuffled_through_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunking, "TARGET", 1 << 12)
    rng = np.random.default_rng(0)
    array = rng.standard_normal((4000, 7))
    order = rng.permutation(4000)
    x = stored(array, (100, 4))
    kernels = {piece.kernel for piece in x[order].__node__.operands[0].pieces}
    assert kernels == {"split_rows"}
    same(x[order], array[order])
    same(x[np.sort(order[:500])], array[np.sort(order[:500])])


def test_only_the_tiles_that_are_needed_are_read() -> None:
    array = np.arange(1000.0)
    x = stored(array, 10)
    tiles = x.__node__.tiles.tiles
    for index in list(tiles):
        if index not in ((3,), (70,)):
            del tiles[index]
    assert x[[705, 31]].compute().tolist() == [705.0, 31.0]
    assert x[30:40].compute().tolist() == array[30:40].tolist()


@given(st.data(), st.sampled_from(FORMS))
def test_a_mask_made_of_the_array_itself(data: Any, form: Any) -> None:
    array = data.draw(arrays(("f8", "i4"), min_dims=1))
    x = form(array, data.draw(chunkings(array.shape)))
    same(x[x > 1], array[array > 1])


def test_a_known_index_out_of_bounds_is_refused_at_the_call() -> None:
    x = tiled(np.zeros((6, 4)), 2)
    with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 with size 6"):
        x[[1, 9]]
    with pytest.raises(IndexError, match="index -5 is out of bounds for axis 1 with size 4"):
        x[:, -5]
    with pytest.raises(IndexError, match="too many indices for array"):
        x[0, 0, 0]
    with pytest.raises(IndexError, match="boolean index did not match indexed array along axis 1"):
        x[np.ones((6, 5), bool)]
    with pytest.raises(IndexError, match="could not be broadcast together with shapes"):
        x[[0, 1], [0, 1, 2]]
    with pytest.raises(IndexError, match="must be of integer"):
        x[[0.5]]


@pytest.mark.parametrize("shape", [(0, 4), (2, 4)])
@pytest.mark.parametrize("position", [0, 5, -1, -5])
@pytest.mark.parametrize("chosen", [[], [2]])
def test_positions_beside_a_mask_that_chooses_nothing(
    shape: tuple[int, int], position: int, chosen: list[int]
) -> None:
    plain = np.arange(float(np.prod(shape))).reshape(shape)
    mask = np.isin(np.arange(4), chosen)
    for which in (mask, ln.asarray(mask, chunks=2) & True):
        x = ln.asarray(plain, chunks=2) * 1.0
        try:
            wanted = plain[[position], mask]
        except IndexError:
            with pytest.raises(IndexError, match="out of bounds"):
                x[[position], which]
            continue
        assert np.array_equal(x[[position], which].compute(), wanted)
        x[[position], which] += 1
        assert np.array_equal(x.compute(), plain + (mask & (np.arange(shape[0])[:, None] == position % 2)))


@given(st.data(), st.sampled_from(FORMS))
def test_iteration_and_membership(data: Any, form: Any) -> None:
    array = data.draw(arrays(("f8", "i4", "?"), min_dims=1))
    x = form(array, data.draw(chunkings(array.shape)))
    rows = list(x)
    assert len(rows) == len(array)
    for found, expected in zip(rows, array, strict=True):
        same(found, expected)
    assert (3 in x) == (3 in array)


def test_an_array_without_axes_is_not_iterated() -> None:
    with pytest.raises(TypeError, match="iteration over a 0-d array"):
        iter(tiled(np.array(1.0), ()))


def test_an_array_without_axes_that_was_persisted_is_indexed():
    total = ln.asarray(np.arange(4.0), chunks=2).sum().persist()
    assert float(np.asarray(total[()])) == 6
    assert str(total[...]) == "6.0"
