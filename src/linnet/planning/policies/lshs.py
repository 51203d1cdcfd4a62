"""Load-simulated hierarchical scheduling, as in the thesis and improved."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from linnet.errors import InputError
from linnet.planning.cluster import Cluster
from linnet.planning.layout import NodeLayout, even_grid
from linnet.planning.placement import Placement, placed
from linnet.planning.policies.spreading import (
    array_extents,
    beginning,
    by_layout,
    by_loops,
    creating,
    ending,
    grid_for,
    in_blocks,
    loop_extents,
)
from linnet.planning.policies.walks import LATER, Walks
from linnet.planning.workload import Workload

Numbers = NDArray[np.int64]

MOST = 10_000
"""Tasks that the thesis' search takes: each looks at every node that holds an operand."""


class Thesis:
    """LSHS as in the thesis: for comparison.

    Each input and result lies in blocks over a grid of nodes. Every other task goes to the one of the nodes
    that hold its operands for which max memory + max network in + max network out over all nodes, in
    elements, is least after it ran there (eq. 3.2). Nothing is freed, and time is not looked at.

    The thesis samples the next task at random; here it is the most urgent one, and of equal nodes the first.
    There a sum pairs what lies on one node; here a program says who meets whom, and those are neighbours: so
    blocks are contiguous, not dealt out.
    """

    name = "lshs"

    def place(self, work: Workload, cluster: Cluster) -> Placement:
        """Place all tasks; InputError where there are too many."""
        if work.count > MOST:
            raise InputError(
                f'policy "lshs" (as in the thesis) takes up to {MOST:,} tasks, and there are {work.count:,}; '
                'use "lshs-improved", which takes any number'
            )
        nodes = np.full(work.count, -1, np.int32)
        homes = work.given_homes.copy()
        free = np.flatnonzero((work.producer < 0) & (homes < 0) & (np.diff(work.reader_start) > 0))
        homes[free] = _in_blocks(work, cluster, free)
        tasks, tiles = _laid_out(work)
        nodes[tasks] = _in_blocks(work, cluster, tiles)
        by_loops(
            work, in_blocks(cluster), np.flatnonzero((nodes < 0) & (np.diff(work.read_start) == 0)), nodes
        )
        Walks.of(work, cluster).lshs(nodes, homes)
        return Placement(nodes, homes)


class Improved:
    """LSHS improved: seconds instead of elements, frees and memory counted, the best source for a message.

    A task goes where the work of the node, its messages and those of their source come to the least; the
    nodes that hold an operand are tried, and the one that a layout gives to its result (or, for first
    tasks, to its loops). Nodes without room for it come last.
    """

    name = "lshs-improved"

    def place(self, work: Workload, cluster: Cluster) -> Placement:
        """Place all tasks, one by one."""
        wish = np.full(work.count, -1, np.int32)
        tasks, tiles = ending(work)
        wish[tasks] = by_layout(work, NodeLayout(grid_for(cluster, array_extents(work, tiles))), tiles)
        first = np.flatnonzero(beginning(work))
        by_loops(work, in_blocks(cluster, even_grid(cluster.count, loop_extents(work, first))), first, wish)
        wish[creating(work)] = LATER
        walks = Walks.of(work, cluster)
        nodes = walks.greedy(wish, work.given_homes.copy())
        walks.backward(nodes, np.zeros(cluster.count, np.int64))
        return placed(work, cluster, nodes)


def _in_blocks(work: Workload, cluster: Cluster, tiles: Numbers) -> NDArray[np.int32]:
    """The nodes of tiles: each array in blocks over the grid that suits it."""
    nodes = np.zeros(len(tiles), np.int32)
    arrays = work.tile_array[tiles]
    present: list[int] = np.unique(arrays).tolist()
    for array in present:
        mine = tiles[arrays == array]
        layout = NodeLayout(grid_for(cluster, array_extents(work, mine)), contiguous=True)
        nodes[arrays == array] = by_layout(work, layout, mine)
    return nodes


def _laid_out(work: Workload) -> tuple[Numbers, Numbers]:
    """Tasks whose node a layout gives: those that write a result, or have no operand; and a tile of each."""
    without_operands = np.flatnonzero((np.diff(work.read_start) == 0) & (np.diff(work.write_start) > 0))
    tasks, tiles = ending(work)
    others = np.setdiff1d(without_operands, tasks)
    firsts = work.write[work.write_start[others]].astype(np.int64)
    return np.concatenate([tasks, others]), np.concatenate([tiles, firsts])
