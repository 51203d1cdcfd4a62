"""Histograms where bins cannot be told apart, and where masks leave tiles of other lengths empty."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linnet as ln


@pytest.mark.parametrize("chunks", [-1, 1])
def test_bins_that_floats_cannot_tell_apart_are_refused(chunks: int) -> None:
    x = ln.asarray(np.array([2**64 - 1, 2**64 - 2], np.uint64), chunks=chunks)
    for function in (ln.histogram, ln.histogram_bin_edges):
        with pytest.raises(ValueError, match="Too many bins for data range"):
            function(x, bins="rice")
    with pytest.raises(ValueError, match="Too many bins for data range"):
        ln.histogram(ln.asarray(np.array([1.0, 1 + 1e-15]), chunks=chunks), bins=50)


def test_masks_over_uneven_tiles_leave_no_tile_empty() -> None:
    values = np.array([-2.875, 9, -9, 4.875, 4.375, -3.125, -1.5, 1.0, 0.875, -1.875])
    x = ln.asarray(values, chunks=((1, 1, 1, 1, 1, 4, 1),))
    for low, high in ((0, 20), (-1.5, 3), (-9, 20), (4, 5), (30, 40)):
        mask = (values >= low) & (values <= high)
        found = x[(x >= low) & (x <= high)]
        assert (found.compute() == values[mask]).all()
        assert 0 not in found.chunks[0] or not mask.any()
        if mask.any():
            assert ln.compute(found.min(), found.max()) == (values[mask].min(), values[mask].max())
        assert [each.tolist() for each in ln.compute(ln.nonzero((x >= low) & (x <= high)))] == [
            np.flatnonzero(mask).tolist()
        ]


@pytest.mark.filterwarnings("ignore:The number of bins estimated may be suboptimal")
@pytest.mark.parametrize(("dtype", "given"), [("f4", (0, 2)), ("f2", None), ("f2", (0, 2)), ("f8", None)])
@pytest.mark.parametrize("rule", ["stone", "rice", "sqrt"])
def test_rules_for_bins_work_in_the_dtype_of_the_elements(dtype: str, given: Any, rule: str) -> None:
    values = np.array([1, 2, 2, 3, 1.3, 0.1, 2.7], dtype)
    for data in (values[:4], values):
        wanted = np.histogram(data, bins=rule, range=given)
        found = ln.histogram(ln.asarray(data, chunks=3), bins=rule, range=given)
        for ours, theirs in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(np.asarray(ours), theirs)
