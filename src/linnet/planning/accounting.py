"""What a placement moves, counted without running it, not even in virtual time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linnet.planning.cluster import Cluster
from linnet.planning.placement import Nodes, Placement, wanted
from linnet.planning.workload import Numbers, Workload


@dataclass(frozen=True, slots=True, eq=False)
class Transfers:
    """Tiles that go from a node to another, those of one tile after one another in the order they go."""

    tile: Numbers
    source: Nodes
    target: Nodes
    bytes: Numbers

    def __len__(self) -> int:
        return len(self.tile)

    def into(self, nodes: int) -> Numbers:
        """Bytes into each node."""
        return np.bincount(self.target, self.bytes, nodes).astype(np.int64)

    def out_of(self, nodes: int) -> Numbers:
        """Bytes out of each node."""
        return np.bincount(self.source, self.bytes, nodes).astype(np.int64)

    def between(self, nodes: int) -> Numbers:
        """Bytes from each node (rows) to each other (columns)."""
        cells = self.source.astype(np.int64) * nodes + self.target
        return np.bincount(cells, self.bytes, nodes * nodes).astype(np.int64).reshape(nodes, nodes)


def transfers(work: Workload, cluster: Cluster, placement: Placement) -> Transfers:
    """Every tile goes once to every node that reads it and where it is not made.

    The nodes that need it first get it first, and who has it sends it on: after every round twice as many
    have it. So nobody sends it more often than the binary logarithm of its copies.

    >>> from linnet.testing import kernels as programs
    >>> from linnet.tiles import TiledArray
    >>> work = Workload.of(programs.slow.bind(N=4), {"A": TiledArray.from_numpy(np.zeros(4), 4)})
    >>> placement = Placement(np.arange(4, dtype=np.int32), np.zeros(work.tiles, np.int32))
    >>> moved = transfers(work, Cluster(4), placement)
    >>> [*zip(moved.source.tolist(), moved.target.tolist(), strict=True)]
    [(0, 1), (0, 2), (1, 3)]
    """
    tiles, nodes = wanted(work, cluster, placement.nodes)
    away = placement.homes[tiles] != nodes
    tiles, nodes = tiles[away], nodes[away]
    if not len(tiles):
        return Transfers(tiles, nodes, nodes, tiles)
    order = np.lexsort((_first_need(work, cluster, placement, tiles, nodes), tiles))
    tiles, nodes = tiles[order], nodes[order]
    firsts = np.flatnonzero(np.diff(tiles, prepend=-1))
    lengths = np.diff(np.append(firsts, len(tiles)))
    begins = np.repeat(firsts, lengths)
    turn = np.arange(len(tiles)) - begins + 1  # its home is holder 0
    sender = turn - (1 << np.log2(np.maximum(turn, 1)).astype(np.int64))
    source = np.where(sender == 0, placement.homes[tiles], nodes[np.maximum(begins + sender - 1, 0)])
    return Transfers(tiles, source.astype(np.int32), nodes, work.tile_bytes[tiles])


def _first_need(
    work: Workload, cluster: Cluster, placement: Placement, tiles: Numbers, nodes: Nodes
) -> Numbers:
    """For each tile and node, the place in the order of the first task there that reads it."""
    rank = np.empty(work.count, np.int64)
    rank[work.order] = np.arange(work.count)
    reading = np.repeat(np.arange(work.tiles, dtype=np.int64), np.diff(work.reader_start))
    codes = reading * cluster.count + placement.nodes[work.reader]
    wanted_codes = tiles * cluster.count + nodes
    place = np.searchsorted(wanted_codes, codes)
    there = (place < len(wanted_codes)) & (wanted_codes[np.minimum(place, len(wanted_codes) - 1)] == codes)
    first = np.full(len(tiles), work.count, np.int64)
    np.minimum.at(first, place[there], rank[work.reader[there]])
    return first
