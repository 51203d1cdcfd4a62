"""The shipped suite for engines, on Ray."""

from __future__ import annotations

import pytest

from linnet.engines.ray import Ray
from linnet.testing.engines import EngineSuite

pytestmark = [pytest.mark.slow, pytest.mark.needs("ray")]


@pytest.mark.usefixtures("ray_cluster")
class TestRay(EngineSuite):
    @pytest.fixture
    def engine(self):
        return Ray()
