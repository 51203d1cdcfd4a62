"""Cutting arrays in other ways under a memory budget: straight, or through pieces on disk."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import linnet as ln
from linnet.arrays.elements.core import wrap
from linnet.arrays.expression.builders import each_tile
from linnet.arrays.expression.nodes import Blocks
from linnet.arrays.expression.rechunk import grouped
from linnet.errors import BudgetError
from linnet.tiles import Layout

pytestmark = pytest.mark.slow


def unfree(x, chunks):
    """An array that cannot simply be cut anew: its tiles are made by a kernel."""
    node = ln.asarray(x, chunks=chunks).__node__
    return wrap(each_tile("copy", node, node.dtype))


shapes = st.lists(st.integers(1, 12), min_size=1, max_size=3).map(tuple)


@st.composite
def two_cuts(draw):
    shape = draw(shapes)
    cuts = [tuple(draw(st.integers(1, n)) for n in shape) for _ in range(2)]
    return shape, cuts[0], cuts[1]


@given(two_cuts(), st.integers(1, 40))
def test_any_cut_becomes_any_other_within_a_budget(cuts, factor):
    shape, old, new = cuts
    x = np.arange(math.prod(shape), dtype=np.int32).reshape(shape)
    slabs = 4 * 8 * max(math.prod(old), math.prod(new))
    with ln.init(workers=2, memory=slabs * factor):
        made = unfree(x, old).rechunk(new)
        assert np.array_equal(made.compute(), x)
        assert made.chunks == ln.asarray(x, chunks=new).chunks


@given(two_cuts(), st.integers(1, 200))
def test_slabs_are_unions_of_tiles_that_fit(cuts, most):
    shape, old, new = cuts
    own, other = Layout.regular(shape, old), Layout.regular(shape, new)
    made = grouped(own, other, most)
    for mine, all_edges in zip(made.boundaries, own.boundaries, strict=True):
        assert set(mine) <= set(all_edges)
        assert (mine[0], mine[-1]) == (all_edges[0], all_edges[-1])
    largest = math.prod(made.tile_shape((0,) * len(shape)))
    assert largest <= max(most, math.prod(own.tile_shape((0,) * len(shape))))


def test_rows_to_columns_go_through_pieces():
    x = np.random.default_rng(0).standard_normal((400, 300))
    with ln.init(workers=2, memory=240_000):  # a quarter of the array
        made = unfree(x, (4, -1)).rechunk((-1, 3))
        slabs = made.__node__.inputs[0]
        assert isinstance(slabs, Blocks)
        assert slabs.grid == (1, 50)  # slabs of columns are as large as the budget allows
        assert np.array_equal(made.compute(), x)
    straight = unfree(x, (4, -1)).rechunk((-1, 3))
    assert straight.__node__.inputs[0].grid == (100, 1)


def test_files_are_not_read_in_short_runs(tmp_path):
    whole = np.memmap(tmp_path / "x.bin", "f8", "w+", shape=(300, 400))
    whole[...] = np.arange(120_000.0).reshape(300, 400)
    with ln.init(workers=2, memory="1 MB"):
        rows = ln.asarray(whole, chunks=(10, -1))
        columns = rows.rechunk((-1, 10))
        assert isinstance(columns.__node__, Blocks)
        assert np.array_equal(columns.compute(), whole)
        assert not isinstance(rows.rechunk((30, -1)).__node__, Blocks)
    assert not isinstance(rows.rechunk((-1, 10)).__node__, Blocks)


def test_tiles_that_cannot_fit_are_refused():
    x = np.zeros((1000, 100))
    with (
        ln.init(workers=2, memory="100 kB"),
        pytest.raises(BudgetError, match="one task needs .* and the budget is 100.0 kB"),
    ):
        unfree(x, (10, -1)).rechunk((-1, 50)).compute()


@given(st.integers(1, 300), st.integers(1, 20), st.integers(1, 60), st.booleans(), st.data())
def test_long_steps_within_a_budget(length, chunk, step, backwards, data):
    x = np.arange(length * 2.0).reshape(length, 2)
    start = data.draw(st.integers(0, length - 1))
    part = slice(start, None, -step if backwards else step)
    with ln.init(workers=2, memory=5 * 16 * chunk):
        made = unfree(x, (chunk, 1))[part, ::-1]
        assert np.array_equal(made.compute(), x[part, ::-1])


def test_long_steps_take_a_tile_at_a_time():
    x = np.arange(100_000.0)
    with ln.init(workers=2, memory="100 kB"):  # an eighth of the array
        made = unfree(x, 1000)[5::900]
        assert np.array_equal(made.compute(), x[5::900])
