"""The shipped suite for engines, on a cluster in virtual time."""

from __future__ import annotations

import pytest

from linnet.engines.simulated import Simulated
from linnet.planning.cluster import Cluster, Node
from linnet.testing.engines import EngineSuite


@pytest.mark.slow
class TestSimulated(EngineSuite):
    @pytest.fixture
    def engine(self):
        return Simulated(cluster=Cluster(nodes=3, workers=2))


class TestSimulatedByTurns(EngineSuite):
    @pytest.fixture
    def engine(self):
        nodes = [Node(), Node(workers=3, flops=5e10), Node(workers=2, memory=1 << 20)]
        return Simulated(cluster=Cluster(nodes), policy="round-robin")
