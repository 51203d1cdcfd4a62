"""Chunk arithmetic against brute force."""

from __future__ import annotations

import itertools
import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from linnet.io.cuts import meeting, merged, runs, snapped

lengths = st.integers(1, 40)


@given(st.lists(st.tuples(st.integers(1, 9), lengths), min_size=1, max_size=3), st.integers(1, 4000))
def test_merged_units_are_whole_and_no_larger_than_the_target(axes: list[tuple[int, int]], target: int):
    unit, shape = zip(*axes, strict=True)
    found = merged(unit, shape, 8, target)
    for side, step, length in zip(found, unit, shape, strict=True):
        assert side == length or side % step == 0
        assert min(step, length) <= side <= max(step, length)
    alone = all(side == min(step, n) for side, step, n in zip(found, unit, shape, strict=True))
    assert alone or math.prod(found) * 8 <= target


@given(st.lists(lengths, min_size=1, max_size=6), st.integers(1, 10), st.integers(0, 10))
def test_snapped_edges_split_no_chunk(sizes: list[int], step: int, start: int):
    edges = tuple(itertools.accumulate(sizes, initial=0))
    found = snapped(edges, step, start)
    assert found[0] == 0
    assert found[-1] == edges[-1]
    assert list(found) == sorted(set(found))
    assert all((edge + start) % step == 0 for edge in found[1:-1])


@given(st.lists(st.tuples(lengths, lengths, st.integers(1, 9)), min_size=1, max_size=2))
def test_chunks_that_meet_a_box_hold_each_of_its_elements_once(axes: list[tuple[int, int, int]]):
    box = tuple(slice(min(a, b), max(a, b)) for a, b, _ in axes)
    chunk = tuple(c for _, _, c in axes)
    whole = np.arange(math.prod([50] * len(axes))).reshape([50] * len(axes))
    seen = np.full([part.stop - part.start for part in box], -1)
    for index, inside, target in meeting(box, chunk):
        corner = [i * c for i, c in zip(index, chunk, strict=True)]
        source = tuple(slice(k + s.start, k + s.stop) for k, s in zip(corner, inside, strict=True))
        assert (seen[target] == -1).all()
        seen[target] = whole[source]
    assert np.array_equal(seen, whole[box])


@given(st.lists(st.tuples(lengths, st.integers(0, 40), st.integers(0, 40)), min_size=0, max_size=3))
def test_runs_are_the_elements_of_a_box_in_order(axes: list[tuple[int, int, int]]):
    shape = tuple(n for n, _, _ in axes)
    box = tuple(slice(min(a, b, n), min(max(a, b), n)) for n, a, b in axes)
    whole = np.arange(math.prod(shape)).reshape(shape)
    length, starts = runs(shape, box)
    found = [k for start in starts for k in range(start, start + length)]
    assert found == whole[(*box, ...)].reshape(-1).tolist()
