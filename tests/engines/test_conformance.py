"""The shipped suite for engines, on the threads engine."""

from __future__ import annotations

import pytest

from linnet.engines import Threads
from linnet.testing.engines import EngineSuite


class TestThreads(EngineSuite):
    @pytest.fixture(params=[1, 2, 5])
    def engine(self, request):
        return Threads(request.param)


class TestThreadsWithABudget(EngineSuite):
    @pytest.fixture(params=["1100", "1 MB"])
    def engine(self, request):
        return Threads(2, memory=request.param)


class TestDeterministicThreads(EngineSuite):
    @pytest.fixture
    def engine(self):
        return Threads(2, deterministic=True)
