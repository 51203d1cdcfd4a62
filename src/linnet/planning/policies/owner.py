"""Owner computes: the node that a layout gives a tile of the result computes all that only leads to it.

For a matrix product this is the deterministic recursive algorithm of the thesis (chapter 4): each node
receives a row and a column of blocks, and sums stay within nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from linnet.planning.cluster import Cluster
from linnet.planning.layout import Grid, NodeLayout
from linnet.planning.placement import Placement
from linnet.planning.policies.joins import joins
from linnet.planning.policies.spreading import (
    array_extents,
    by_layout,
    completed,
    ending,
    grid_for,
    grids_for,
    named,
)
from linnet.planning.policies.walks import Walks
from linnet.planning.workload import Workload


@dataclass(frozen=True, slots=True)
class Owner:
    """Results by a block-cyclic layout, everything else with whoever reads it.

    Where no statement joins operands, every tile takes as long as any other, and dealing them out in turn
    gains nothing: neighbours stay together, for the sums and products that may follow.
    """

    grid: Grid | None = None
    """Of nodes; None: the one asked for, or the most even one."""

    @property
    def name(self) -> str:
        return "owner" if self.grid is None else named("owner", self.grid)

    @classmethod
    def variants(cls, work: Workload, cluster: Cluster) -> Iterator[Owner]:
        """One for each grid that can matter for the results."""
        for grid in grids_for(cluster, array_extents(work, ending(work)[1])):
            yield cls(grid)

    def place(self, work: Workload, cluster: Cluster) -> Placement:
        """Place results, then all tasks from the last to the first."""
        nodes = np.full(work.count, -1, np.int32)
        tasks, tiles = ending(work)
        grid = self.grid or grid_for(cluster, array_extents(work, tiles))
        nodes[tasks] = by_layout(work, NodeLayout(grid, contiguous=not joins(work)), tiles)
        return completed(Walks.of(work, cluster), nodes, backward_first=True)
