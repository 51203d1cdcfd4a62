"""The shipped suite for engines, on stateless workers."""

from __future__ import annotations

import pytest

from linnet.engines.stateless import Stateless
from linnet.testing.engines import EngineSuite

pytestmark = pytest.mark.slow


class TestStatelessThreads(EngineSuite):
    @pytest.fixture
    def engine(self, tmp_path):
        return Stateless(2, store=str(tmp_path / "jobs"), launcher="threads")
