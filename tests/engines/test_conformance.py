"""The shipped suite for engines, on the threads engine."""

from __future__ import annotations

import numpy as np
import pytest

from linnet.engines import Threads
from linnet.testing import odd_tiles
from linnet.testing.engines import EngineSuite
from linnet.tiles import TiledArray


class TestThreads(EngineSuite):
    @pytest.fixture(params=[1, 2, 5])
    def engine(self, request):
        return Threads(request.param)

    @pytest.mark.parametrize("order", ["C", "F"])
    def test_views_of_one_array_reach_the_kernels_without_a_copy(self, engine, order):
        a = np.asarray(np.arange(24.0).reshape(4, 6), order=order)[::2, 1:]
        given = TiledArray.from_numpy(a.ravel("K")[:7], 3, copy=False)
        found = engine.run(odd_tiles.addresses.bind(N=3), {"A": given})["B"].to_numpy()
        assert found.tolist() == [given.tile((i,)).ctypes.data for i in range(3)]


@pytest.mark.slow
class TestThreadsWithABudget(EngineSuite):
    @pytest.fixture(params=["1100", "1 MB"])
    def engine(self, request):
        return Threads(2, memory=request.param)


class TestDeterministicThreads(EngineSuite):
    @pytest.fixture
    def engine(self):
        return Threads(2, deterministic=True)
