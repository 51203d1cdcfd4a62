"""`x[...] = v` on arrays in tiles, with NumPy as the oracle."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from index_keys import FORMS, keys, lazily, result_of, same, stored
from strategies import NUMBERS, arrays, chunkings, elements, tiled

from linnet.arrays.elements import assignment, in_place
from linnet.arrays.expression import chunking


@pytest.fixture(autouse=True, scope="module")
def _no_straight_path() -> Any:
    """Arrays of one tile go the same way as arrays of many."""
    kept, chunking.SMALL = chunking.SMALL, -1
    yield
    chunking.SMALL = kept


@st.composite
def values(draw: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Values that can be broadcast to a shape, mostly."""
    kept = shape[draw(st.integers(0, len(shape))) :]
    kept = tuple(1 if draw(st.integers(0, 3)) == 0 else n for n in kept)
    if draw(st.integers(0, 5)) == 0:
        kept = (1, *kept)
    if draw(st.integers(0, 9)) == 0:
        kept = (*kept, 2)
    return draw(hnp.arrays(dtype, kept, elements=elements(dtype, special=False)))


def _put(x: Any, key: Any, value: Any) -> Any:
    x[key] = value
    return x


WAYS = [(1 << 28, 1 << 26), (-1, 1 << 26), (-1, 0)]
"""In one piece, tile by tile, lazily: bytes that an array, and what is written, may have."""


@given(st.data(), st.sampled_from(FORMS), st.sampled_from(FORMS), st.sampled_from(WAYS))
def test_every_key_and_value(data: Any, form: Any, value_form: Any, way: tuple[int, int]) -> None:
    array = data.draw(arrays(NUMBERS, special=False))
    x = form(array.copy(), data.draw(chunkings(array.shape)))
    key = data.draw(keys(array.shape))
    shape = result_of(lambda: array[key])
    value = data.draw(values(() if isinstance(shape, type) else np.shape(shape), array.dtype))
    expected = array.copy()
    outcome = result_of(lambda: _put(expected, key, value))
    ours = value_form(value, data.draw(chunkings(value.shape))) if data.draw(st.booleans()) else value
    before = x + x
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(in_place, "TOGETHER", way[0])
        patch.setattr(assignment, "_AT_ONCE", way[1])
        found = result_of(lambda: _put(x, lazily(data.draw, key), ours))
    if isinstance(outcome, type):
        both = {IndexError, ValueError}  # where both are wrong, which is said first is not NumPy's promise
        assert found is outcome or {found, outcome} == both
        same(x, array)
    else:
        same(x, expected)
        assert x.chunks == before.chunks
    same(before, array + array)


@pytest.mark.slow
@settings(max_examples=40)
@given(st.data(), st.sampled_from(FORMS), st.sampled_from(WAYS))
def test_many_assignments_in_a_row(data: Any, form: Any, way: tuple[int, int]) -> None:
    array = data.draw(arrays(("f8",), special=False, min_dims=1, min_side=1))
    x = form(array.copy(), data.draw(chunkings(array.shape)))
    seen: list[tuple[Any, Any]] = []
    zeros = np.zeros(array.shape)
    fitting = keys(array.shape).filter(lambda key: not isinstance(result_of(lambda: zeros[key]), type))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(in_place, "TOGETHER", way[0])
        patch.setattr(assignment, "_AT_ONCE", way[1])
        for number in range(data.draw(st.integers(1, 40))):
            key = data.draw(fitting)
            array[key] = number
            x[key] = number
            match data.draw(st.integers(0, 7)):
                case 0:
                    seen.append((x * 2, array * 2))
                case 1:
                    seen.append((x[::2], array[::2].copy()))
                case 2:
                    seen.append((x.T, array.T.copy()))
                case 3:
                    x[1:], array[1:] = x[:-1], array[:-1].copy()
                case 4:
                    x += x
                    array += array
        same(x, array)
    for ours, theirs in seen:
        same(ours, theirs)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("part", [np.s_[2::-3], np.s_[3::-1], np.s_[2:1:-1], np.s_[::-2]])
def test_positions_beside_slices_that_go_back(form: Any, part: slice) -> None:
    array = np.zeros((3, 4))
    x = form(array.copy(), (3, 2)).persist()
    for rows in ([0, 2], [1, -3, 1]):
        value = np.arange(array[rows, part].size).reshape(array[rows, part].shape)
        array[rows, part] = value
        x[rows, part] = value
        same(x, array)


@pytest.mark.slow
def test_a_loop_of_assignments_writes_in_place() -> None:
    """However many there are, no node is added and nothing copied twice."""
    for form in FORMS:
        x = form(np.zeros(1000), 100)
        for number in range(200):
            x[number] = number
            x[number] += 1
            x[number + 1 : number + 3] = x[number : number + 2] + 1
        data = id(x._node.data)
        x[5] = -1
        x[6:9] = x[5:8]
        x[7] *= 2
        assert id(x._node.data) == data
        assert x.grid == (10,)
        assert x[:4].compute().tolist() == [1.0, 2.0, 3.0, 4.0]


def test_whoever_holds_an_older_version_keeps_it() -> None:
    """In whatever way it is held: by a slice, an expression, another name, NumPy, a job that computes it."""
    for chunks in (-1, 3):
        x = tiled(np.arange(10.0), chunks)
        x[0] = 0  # memory of its own
        held = [x[2:4], x[2:4] + x[3:5], copy.copy(x), x.T, np.asarray(x), memoryview(np.asarray(x))]
        held += [x[2:4][1:], x.reshape(2, 5), iter(x), x[np.newaxis, 2:4]]
        expected = [np.asarray(each).copy() for each in held[:6]]
        later = [np.asarray(each).copy() for each in (held[6], held[7], held[9])]
        x[:] = -1
        x += 5
        for each, value in zip(held[:6], expected, strict=True):
            assert np.array_equal(np.asarray(each), value)
        for each, value in zip((held[6], held[7], held[9]), later, strict=True):
            assert np.array_equal(np.asarray(each), value)
        assert np.asarray(x).tolist() == [4.0] * 10


def test_memory_that_was_given_is_copied_once() -> None:
    array = np.arange(12.0)
    frozen = np.arange(12.0)
    frozen.flags.writeable = False
    for own in (array, array[2:], frozen, np.frombuffer(bytearray(96)), np.broadcast_to(1.0, (12,))):
        before = own.copy()
        x = tiled(own, 5)
        x[3] = 100
        data = id(x._node.data)
        x[4] = 200
        assert id(x._node.data) == data
        x += 1
        assert np.array_equal(own, before)
        assert np.asarray(x)[[3, 4]].tolist() == [101, 201]


def test_only_the_tiles_that_are_touched_are_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_place, "TOGETHER", 0)  # it is too long to be brought together
    x = stored(np.zeros(1000), 100)
    before = x.__node__.tiles
    y = x + 1
    x[250:260] = 7
    after = x.__node__.tiles
    assert [index for index in before.tiles if after.tiles[index] is not before.tiles[index]] == [(2,)]
    assert y.compute().max() == 1


def test_the_users_own_memory_is_not_written_to() -> None:
    array = np.zeros(6)
    x = tiled(array, 2)
    value = np.ones(2)
    x[2:4] = value
    value[:] = 5
    assert array.tolist() == [0] * 6
    assert x.compute().tolist() == [0, 0, 1, 1, 0, 0]


def test_values_are_cast_as_numpy_casts_them() -> None:
    x = tiled(np.zeros(4, np.uint8), 2)
    x[0] = 3.7
    x[1:3] = tiled(np.array([1.5, 2.5]), 1)
    assert x.compute().tolist() == [3, 1, 2, 0]
    with pytest.raises(OverflowError, match="Python integer 300 out of bounds for uint8"):
        x[0] = 300
    with pytest.raises(ValueError, match="could not broadcast input array from shape"):
        x[0:2] = np.arange(3)
    with pytest.raises(ValueError, match="cannot assign 3 input values to the 2 output values"):
        x[np.array([True, True, False, False])] = [1, 2, 3]


def test_small_arrays_share_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunking, "SMALL", 1 << 18)
    x = tiled(np.zeros((2, 3)), 3)
    x[0, 0] = 1
    y: Any = np.reshape(x, (6,))
    row = x[0]
    x[0, 0] = 5
    assert y.compute()[0] == row.compute()[0] == 1
    x += 1
    assert x[0, 0].compute() == 6
