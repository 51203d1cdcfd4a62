"""Locality: what begins a program is spread in contiguous blocks, and the rest stays where its operands are.

A join of two tiles runs at the less loaded of their producers, anything else at the least loaded one
(TensorPlanner's patterns); so reductions are made in place, and one tile leaves each node.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from linnet.planning.cluster import Cluster
from linnet.planning.layout import Grid
from linnet.planning.placement import Placement
from linnet.planning.policies.spreading import (
    beginning,
    by_loops,
    completed,
    grids_for,
    in_blocks,
    loop_extents,
    named,
)
from linnet.planning.policies.walks import Walks
from linnet.planning.workload import Workload


@dataclass(frozen=True, slots=True)
class Locality:
    """First tasks in blocks of their loops, the others where their operands are."""

    grid: Grid | None = None
    """Of nodes, along the loops of the first tasks; None: the one asked for, or all nodes along the first."""

    @property
    def name(self) -> str:
        return "locality" if self.grid is None else named("locality", self.grid)

    @classmethod
    def variants(cls, work: Workload, cluster: Cluster) -> Iterator[Locality]:
        """One for each grid that can matter for the loops of the first tasks."""
        for grid in grids_for(cluster, loop_extents(work, np.flatnonzero(beginning(work)))):
            yield cls(grid)

    def place(self, work: Workload, cluster: Cluster) -> Placement:
        """Place first tasks, then all others as their operands come to be."""
        nodes = np.full(work.count, -1, np.int32)
        by_loops(work, in_blocks(cluster, self.grid or cluster.grid), np.flatnonzero(beginning(work)), nodes)
        return completed(Walks.of(work, cluster), nodes, backward_first=False)
