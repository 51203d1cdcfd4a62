"""Results of one kernel call that are parts of one array: kept as they are, unless they overlap."""

from __future__ import annotations

import numpy as np
import pytest

from linnet.engines import Threads
from linnet.engines.store import detached
from linnet.kernels import kernel
from linnet.programs import In, Out, Temp, tile_program
from linnet.tiles import TiledArray


@kernel("o_two_parts", outputs=2)
def two_parts(x, by):
    """The upper and the lower rows of a matrix by columns; `by` of them are in both."""
    whole = np.asfortranarray(x)
    half = len(whole) // 2
    return whole[: half + by], whole[half:]


@kernel("o_zeroed", inplace=0)
def zeroed(x, *, overwrite=()):
    result = x if 0 in overwrite else x.copy()
    result[...] = 0
    return result


@kernel("o_copied")
def copied(x, after):
    return x + 0


@tile_program
def parted(A: In, B: Out, C: Out, T: Temp, by: int):
    T[0], T[1] = o_two_parts(A[0, 0], by)
    B[0] = o_zeroed(T[0])
    C[0] = o_copied(T[1], B[0])


@pytest.mark.parametrize("by", [0, 1, 2])
def test_what_is_overwritten_changes_no_other_result(by):
    a = np.arange(12.0).reshape(4, 3)
    found = Threads(1).run(parted.bind(by=by), {"A": TiledArray.from_numpy(a, (4, 3))})
    assert np.array_equal(found.tiles("B")[(0,)], np.zeros((2 + by, 3)))
    assert np.array_equal(found.tiles("C")[(0,)], a[2:])


def test_only_parts_that_overlap_are_copied():
    whole = np.zeros((6, 4), order="F")
    upper, lower = whole[:3], whole[3:]
    assert detached(lower, [], [], [upper]) is lower
    overlapping = whole[2:]
    assert not np.shares_memory(detached(overlapping, [], [], [upper]), whole)
