"""Where tasks run and where inputs lie: what a policy decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from linnet.planning.cluster import Cluster
from linnet.planning.workload import Workload, distinct

Nodes = NDArray[np.int32]
"""Numbers of nodes."""


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """The node of every task, and the node where every tile comes to be."""

    nodes: Nodes
    """Of each task."""
    homes: Nodes
    """Of each tile: where its task runs; for an input where it is loaded, or -1 if nobody reads it."""


class Policy(Protocol):
    """A way of placing tasks. Equal workloads on equal clusters are placed equally, wherever this runs."""

    @property
    def name(self) -> str: ...

    def place(self, work: Workload, cluster: Cluster) -> Placement:
        """Place every task and every input."""
        ...


def wanted(work: Workload, cluster: Cluster, nodes: Nodes) -> tuple[NDArray[np.int64], Nodes]:
    """Which nodes read which tiles: a tile and a node for each pair, tiles in order, each pair once."""
    tiles = np.repeat(np.arange(work.tiles, dtype=np.int64), np.diff(work.reader_start))
    pairs = distinct(tiles * cluster.count + nodes[work.reader])
    return pairs // cluster.count, (pairs % cluster.count).astype(np.int32)


def placed(work: Workload, cluster: Cluster, nodes: Nodes) -> Placement:
    """A placement of tasks, completed: every input that is free goes to one of the nodes that read it.

    Of these it takes the one that holds least so far. So inputs are spread evenly, and none lies where
    nobody reads it.
    """
    nodes = np.ascontiguousarray(nodes, np.int32)
    homes = work.given_homes.copy()
    written = work.producer >= 0
    homes[written] = nodes[work.producer[written]]
    at_home = ~written & (homes >= 0)
    load: list[int] = (
        np.bincount(homes[at_home], work.tile_bytes[at_home], cluster.count).astype(int).tolist()
    )
    tiles, readers = wanted(work, cluster, nodes)
    free = homes[tiles] < 0
    tiles, readers = tiles[free], readers[free]
    firsts = np.flatnonzero(np.diff(tiles, prepend=-1))
    lasts = np.append(firsts[1:], len(tiles))[: len(firsts)].tolist()
    choice, sizes = readers.tolist(), work.tile_bytes[tiles[firsts]].tolist()
    for first, last, size in zip(firsts.tolist(), lasts, sizes, strict=True):
        best = min(choice[first:last], key=load.__getitem__)
        homes[tiles[first]] = best
        load[best] += size
    return Placement(nodes, homes)


def with_along(work: Workload, placement: Placement) -> Placement:
    """The same, where what goes along has a home too: one of the nodes that read it."""
    homes = placement.homes.copy()
    for tile in np.flatnonzero(work.along & (np.diff(work.reader_start) > 0)).tolist():
        homes[tile] = placement.nodes[work.reader[work.reader_start[tile]]]
    return Placement(placement.nodes, homes)
