"""Short rows are taken several at a time: the same values as NumPy's, whatever the operands are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.kernels.arrays import cache_pieces, short_rows
from linnet.kernels.arrays.folds import fold
from linnet.kernels.arrays.fused import fused


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """So that a tile has many."""
    monkeypatch.setattr(cache_pieces, "PIECE", 4096)
    monkeypatch.setattr(cache_pieces, "SMALL_PIECE", 4096)


def integers(shape, seed=0):
    return np.random.default_rng(seed).integers(-9, 9, shape)


@pytest.mark.parametrize("width", [1, 3, 50, 512, 513])
@pytest.mark.parametrize("count", [1, 64, 97])
def test_rows_with_an_operand_that_is_the_same_for_all(count, width):
    x, row = integers((count, 1 + 40_000 // (count * width), width)), integers((width,), 1)
    steps = (("multiply", 0, 1), ("add", 2, 0))
    made = fused(x, row, loads=(None, None), steps=steps, results=(("map", 3), ("sum", 3, (0, 1), None)))
    assert np.array_equal(made[0], x * row + x)
    assert np.array_equal(made[1], (x * row + x).sum(axis=(0, 1), keepdims=True))


@given(
    st.sampled_from([(1 << 11, 20), (3, 1 << 10, 12), (2, 2, 1 << 11, 5), (1 << 10, 3, 11)]),
    st.data(),
)
def test_any_axes_and_operands_smaller_than_the_tile(shape, data):
    x = integers(shape)
    kept = [data.draw(st.booleans()) for _ in shape]
    y = integers([n if keep else 1 for n, keep in zip(shape, kept, strict=True)], 2)
    turned = data.draw(st.permutations(range(len(shape))))
    x = np.ascontiguousarray(x.transpose(turned)).transpose(np.argsort(turned))
    axes = tuple(a for a in range(len(shape)) if data.draw(st.booleans())) or (0,)
    steps = (("subtract", 0, 1), ("square", 2))
    results = (("map", 3), ("sum", 3, axes, None), ("max", 3, axes, None), ("moments", 3, axes, None))
    squares, total, largest, moments = fused(x, y, loads=(None, None), steps=steps, results=results)
    expected = (x - y) ** 2
    assert np.array_equal(squares, expected)
    assert np.array_equal(total, expected.sum(axis=axes, keepdims=True))
    assert np.array_equal(largest, expected.max(axis=axes, keepdims=True))
    count = moments[0].ravel()[0]
    assert np.allclose(moments[2] / count, expected.var(axis=axes, keepdims=True))


def test_rows_go_into_a_place_of_another_form():
    x, row = integers((4096, 20)), integers((20,), 1)
    whole = np.zeros((4096, 40), x.dtype)
    steps = (("add", 0, 1), ("negative", 2))
    fused(x, row, loads=(None, None), steps=steps, results=(("map", 3),), into=whole[:, :20])
    assert np.array_equal(whole[:, :20], -(x + row))
    assert not whole[:, 20:].any()


def test_states_of_rows_are_joined_in_pairs():
    x = np.arange(12.0).reshape(1, 12)
    assert short_rows.joined(x, fold("sum"), 4).tolist() == [[0 + 3 + 6 + 9, 1 + 4 + 7 + 10, 2 + 5 + 8 + 11]]
