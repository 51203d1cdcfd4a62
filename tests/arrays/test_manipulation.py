"""Shapes, joining, and elements in other places: against NumPy, on arrays cut in every way."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.arrays.strategies import DATES, NUMBERS, arrays, chunkings, pairs, tiled

from linnet.arrays import Array
from linnet.arrays.elements import insert_and_delete, join_and_split, shapes
from linnet.arrays.expression import chunking

ALL = (*NUMBERS, *DATES)
few = settings(max_examples=max(5, settings().max_examples // 6))
"""For tests that look at many functions in one example: every one is a program of its own."""


def same(ours: Any, theirs: Any) -> None:
    """Equal in shape, dtype and every element, NaN included; lists and tuples one by one."""
    if isinstance(theirs, list | tuple):
        assert type(ours) is type(theirs)
        assert len(ours) == len(theirs)
        for mine, its in zip(ours, theirs, strict=True):
            same(mine, its)
        return
    assert isinstance(ours, Array)
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    got = np.asarray(ours.compute())
    assert got.dtype == theirs.dtype
    np.testing.assert_array_equal(got, theirs)


def agree(function: Any, theirs: Any, ours: Any) -> None:
    """The same result on both, or an error of the same class."""
    try:
        expected = function(theirs)
    except Exception as problem:
        with pytest.raises(type(problem)):
            function(ours)
        return
    same(function(ours), expected)


@st.composite
def shape_pairs(draw: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes of one size, with axes of length 1 here and there."""
    primes = draw(st.lists(st.sampled_from([2, 2, 3, 5]), max_size=5))

    def grouped() -> tuple[int, ...]:
        order = draw(st.permutations(primes))
        count = draw(st.integers(1, max(1, len(order))))
        cuts = sorted(draw(st.lists(st.integers(0, len(order)), min_size=count - 1, max_size=count - 1)))
        ends = [0, *cuts, len(order)]
        return tuple(math.prod(order[a:b]) for a, b in itertools.pairwise(ends))

    return grouped(), grouped()


@few
@given(shape_pairs(), st.data(), st.booleans(), st.sampled_from(["C", "F", "A"]))
def test_reshape(both: Any, data: Any, computed: bool, order: Any) -> None:
    old, new = both
    a = np.arange(math.prod(old)).reshape(old)
    x = tiled(a, data.draw(chunkings(old)))
    x = x + 0 if computed else x
    same(shapes.reshape(x, new, order=order), a.reshape(new, order=order))
    same(np.reshape(x, -1), a.reshape(-1))
    same(x.reshape(*new), a.reshape(new))
    same(np.ravel(x, order), a.ravel(order))
    same(x.flatten(), a.flatten())


@pytest.mark.parametrize("shape", [(5,), (-1, -1), (7, -1), (-2, 12), (0, -1)])
def test_reshape_errors(shape: Any) -> None:
    x = tiled(np.arange(12).reshape(3, 4), 2)
    with pytest.raises(ValueError, match="cannot reshape array of size 12|one unknown"):
        x.reshape(shape)


def test_reshape_of_nothing_and_of_views() -> None:
    same(tiled(np.zeros((0, 4)), 2).reshape(2, 0, 3), np.zeros((2, 0, 3)))
    same(tiled(np.arange(12).reshape(3, 4).T, 2).reshape(2, 6), np.arange(12).reshape(3, 4).T.reshape(2, 6))
    same(tiled(np.array(5), ()).reshape(1, 1), np.array([[5]]))
    big = np.arange(2**17, dtype=float)
    whole = shapes.reshape(tiled(big, None), (2**8, 2**9))
    assert np.shares_memory(np.asarray(whole), big)


def test_reshape_keeps_tiles_small() -> None:
    x = tiled(np.arange(60_000).reshape(100, 600), (10, 100)) + 0
    for shape in ((600, 100), (60_000,), (2, 30_000), (3, 200, 100)):
        assert math.prod(max(lengths) for lengths in x.reshape(shape).chunks) <= 1000


@few
@given(pairs(ALL), st.data())
def test_orders_of_axes(pair: Any, data: Any) -> None:
    a, x = pair
    axis = st.integers(-a.ndim - 1, a.ndim)
    one, other = data.draw(axis), data.draw(axis)
    same(np.transpose(x), np.transpose(a))
    same(x.T, a.T)
    order = data.draw(st.permutations(range(a.ndim)))
    same(x.transpose(*order), a.transpose(*order))
    same(shapes.permute_dims(x, tuple(order)), a.transpose(order))
    agree(lambda z: np.swapaxes(z, one, other), a, x)
    agree(lambda z: np.moveaxis(z, one, other), a, x)
    agree(lambda z: np.rollaxis(z, one, other), a, x)
    agree(np.matrix_transpose, a, x)
    agree(lambda z: np.expand_dims(z, one), a, x)
    agree(lambda z: np.expand_dims(z, (0, 2)), a, x)
    agree(lambda z: np.squeeze(z, one), a, x)
    same(np.squeeze(x), np.squeeze(a))
    for function in (np.atleast_1d, np.atleast_2d, np.atleast_3d):
        same(function(x), function(a))
    same(np.atleast_2d(x, x), np.atleast_2d(a, a))


@few
@given(pairs(ALL, max_dims=2), st.sampled_from([(), (3,), (2, 1), (4, 1, 1), (3, 6)]))
def test_broadcasting(pair: Any, front: tuple[int, ...]) -> None:
    a, x = pair
    agree(lambda z: np.broadcast_to(z, front + a.shape), a, x)
    agree(lambda z: np.broadcast_to(z, front), a, x)
    agree(lambda z: np.broadcast_arrays(z, np.zeros(front)), a, x)


# ---- joining


@few
@given(st.data())
def test_concatenate(data: Any) -> None:
    first = data.draw(arrays(min_dims=1))
    axis = data.draw(st.integers(0, first.ndim - 1))
    parts = [first]
    for _ in range(data.draw(st.integers(0, 2))):
        length = data.draw(st.integers(0, 4))
        shape = (*first.shape[:axis], length, *first.shape[axis + 1 :])
        parts.append(np.ones(shape, data.draw(st.sampled_from(NUMBERS))))
    ours = [tiled(p, data.draw(chunkings(p.shape))) for p in parts]
    same(np.concatenate(ours, axis), np.concatenate(parts, axis))
    same(join_and_split.concat(ours, axis=None), np.concatenate(parts, None))
    for function in (np.vstack, np.hstack, np.dstack, np.column_stack):
        both = [parts[0], parts[0]]
        same(function([ours[0], ours[0]]), function(both))
    for place in (0, -1):
        same(np.stack([ours[0], ours[0]], place), np.stack([parts[0], parts[0]], place))


def test_concatenate_errors_and_keywords() -> None:
    x, y = tiled(np.zeros((2, 3)), 1), tiled(np.zeros((2, 2)), 1)
    with pytest.raises(ValueError, match="array 0 has shape"):
        np.concatenate([x, y])
    with pytest.raises(ValueError, match="at least one array"):
        join_and_split.concatenate([])
    with pytest.raises(ValueError, match="zero-dimensional"):
        join_and_split.concat([x.sum(), y.sum()])
    with pytest.raises(TypeError, match="cannot cast"):
        np.concatenate([x, y], 1, dtype="i4")
    same(np.concatenate([x, y], 1, dtype="i4", casting="unsafe"), np.zeros((2, 5), "i4"))
    out = tiled(np.ones((2, 5)), 2)
    assert np.concatenate([x, y], 1, out=out) is out
    same(out, np.zeros((2, 5)))


def test_block() -> None:
    a, b = np.arange(4).reshape(2, 2), np.ones((2, 3))
    x, y = tiled(a, 1), tiled(b, 2)
    same(np.block([[x, y], [y, x]]), np.block([[a, b], [b, a]]))
    same(np.block([x, 2 * x]), np.block([a, 2 * a]))
    same(np.block(x), np.block(a))
    same(np.block([[x], [7, 8]]), np.block([[a], [7, 8]]))
    with pytest.raises(ValueError, match="mismatched"):
        join_and_split.block([[x], x])
    with pytest.raises(ValueError, match="cannot be empty"):
        join_and_split.block([[x], []])
    with pytest.raises(TypeError, match="Only lists"):
        join_and_split.block(([x], [x]))


@few
@given(pairs(ALL), st.one_of(st.integers(0, 4), st.lists(st.integers(-3, 7), max_size=3)), st.integers(-3, 3))
def test_split(pair: Any, where: Any, axis: int) -> None:
    a, x = pair
    agree(lambda z: np.array_split(z, where, axis), a, x)
    agree(lambda z: np.split(z, where, axis), a, x)
    agree(lambda z: np.hsplit(z, where), a, x)
    agree(lambda z: np.vsplit(z, where), a, x)
    agree(lambda z: np.dsplit(z, where), a, x)
    agree(lambda z: np.unstack(z, axis=axis), a, x)


# ---- other places


@few
@given(pairs(ALL), st.data())
def test_roll_and_flip(pair: Any, data: Any) -> None:
    a, x = pair
    axis = data.draw(st.one_of(st.none(), st.integers(-a.ndim - 1, a.ndim)))
    shift = data.draw(st.integers(-8, 8))
    agree(lambda z: np.roll(z, shift, axis), a, x)
    agree(lambda z: np.roll(z, (shift, 1), (0, -1)), a, x)
    agree(lambda z: np.flip(z, axis), a, x)
    agree(np.flipud, a, x)
    agree(np.fliplr, a, x)
    agree(lambda z: np.rot90(z, shift), a, x)
    agree(lambda z: np.rot90(z, shift, (1, 0)), a, x)
    assert np.roll(x, 1, 0 if a.ndim else None).chunks == x.chunks


@few
@given(pairs(ALL, max_side=4), st.data(), st.sampled_from([8, 64, 1 << 23]))
def test_tile_and_repeat(pair: Any, data: Any, target: int) -> None:
    a, x = pair
    reps = data.draw(st.one_of(st.integers(0, 4), st.lists(st.integers(0, 3), max_size=4)))
    axis = data.draw(st.one_of(st.none(), st.integers(-a.ndim - 1, a.ndim)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunking, "TARGET", target)
        agree(lambda z: np.tile(z, reps), a, x)
        agree(lambda z: np.repeat(z, 3, axis), a, x)
        agree(lambda z: np.repeat(z, 0, axis), a, x)
        length = a.size if axis is None else a.shape[axis % max(1, a.ndim)] if a.ndim else 1
        counts = data.draw(st.lists(st.integers(0, 3), min_size=length, max_size=length + 1))
        agree(lambda z: np.repeat(z, counts, axis), a, x)
        agree(lambda z: np.resize(z, (3, 5)), a, x)


@few
@given(
    pairs(("i2", "f4", "c8", "?"), special=False, max_side=4), pairs(("i2", "f8"), special=False, max_side=4)
)
def test_kron(one: Any, other: Any) -> None:
    same(np.kron(one[1], other[1]), np.kron(one[0], other[0]))


@few
@given(pairs(ALL), st.data())
def test_delete_insert_append(pair: Any, data: Any) -> None:
    a, x = pair
    axis = data.draw(st.one_of(st.none(), st.integers(-a.ndim, max(0, a.ndim - 1))))
    place = st.integers(-7, 7)
    index = data.draw(
        st.one_of(
            place,
            st.lists(place, max_size=4),
            st.builds(slice, st.none() | place, st.none() | place, st.sampled_from([None, 1, 2, -1, -2])),
        )
    )
    agree(lambda z: np.delete(z, index, axis), a, x)
    agree(lambda z: np.insert(z, index, 1, axis), a, x)
    if axis is None:
        agree(lambda z: np.insert(z, 0, a.ravel(), axis), a, x)
    agree(lambda z: np.append(z, a, axis), a, x)


@few
@given(pairs(("i2", "f8", "?")), st.sampled_from(["fb", "f", "B"]), st.sampled_from([None, 0, -1]))
def test_trim_zeros(pair: Any, trim: str, axis: Any) -> None:
    a, x = pair
    agree(lambda z: np.trim_zeros(z, trim, axis), a, x)


def test_insert_places_values_as_numpy_does() -> None:
    a = np.arange(6).reshape(3, 2)
    x = tiled(a, 1)
    for index, values in ((1, [7, 8, 9]), ([1], [[7], [8], [9]]), (1, [[7], [8], [9]]), ([1, 0], 5)):
        same(np.insert(x, index, values, 1), np.insert(a, index, values, 1))
    mask = np.array([True, False, True])
    same(np.delete(x, mask, 0), np.delete(a, mask, 0))
    with pytest.raises(IndexError, match="out of bounds for axis 0 with size 3"):
        insert_and_delete.delete(x, 5, 0)
