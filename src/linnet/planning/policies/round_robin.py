"""Tasks in turn: what is to be beaten."""

from __future__ import annotations

import numpy as np

from linnet.planning.cluster import Cluster
from linnet.planning.placement import Placement, placed
from linnet.planning.workload import Workload


class RoundRobin:
    """The tasks, in the order in which they can run, go to the nodes in turn; no look at their operands."""

    name = "round-robin"

    def place(self, work: Workload, cluster: Cluster) -> Placement:
        """Deal out the tasks."""
        nodes = np.empty(work.count, np.int32)
        nodes[work.order] = np.arange(work.count) % cluster.count
        return placed(work, cluster, nodes)
