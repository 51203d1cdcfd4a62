"""The shipped suite for engines, on Dask."""

from __future__ import annotations

import pytest

from linnet.engines.dask import Dask
from linnet.testing.engines import EngineSuite

pytestmark = [pytest.mark.slow, pytest.mark.needs("distributed")]


class TestDask(EngineSuite):
    @pytest.fixture
    def engine(self, dask_client):
        return Dask(client=dask_client)
