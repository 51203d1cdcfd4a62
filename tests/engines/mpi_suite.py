"""The shipped suite for engines, on the ranks of an MPI job: run on rank 0 by `test_mpi.py`."""

from __future__ import annotations

import pytest

from linnet.session import current_engine
from linnet.testing.engines import EngineSuite


class TestMPI(EngineSuite):
    @pytest.fixture
    def engine(self):
        return current_engine()
