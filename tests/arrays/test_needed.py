"""Tiles that nobody needs are not computed, and those that somebody needs are."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import linnet as ln
from linnet.arrays.lowering import lowered


def tasks(x: Any) -> int:
    """How many tasks the program of an array has."""
    return lowered([x.node])[0].bound.count()


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
