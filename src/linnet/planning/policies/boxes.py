"""Joins in boxes: rows × columns × layers is cut in two, again and again, until every node has a box.

A grid serves few nodes badly whose number does not divide the number of tiles: three nodes that share four
rows of tiles have two, one and one of them. Here each cut is made where work is shared best and where it
parts fewest bytes, between two lines of tasks or within a line: seconds for the one and for the other are
added up. So boxes differ in their sides, and may have a step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from linnet.planning.cluster import Cluster
from linnet.planning.placement import Nodes, Placement
from linnet.planning.policies.joins import Join, joins
from linnet.planning.policies.spreading import completed
from linnet.planning.policies.walks import Walks
from linnet.planning.simulate import task_seconds
from linnet.planning.workload import Workload

Numbers = NDArray[np.int64]
Seconds = NDArray[np.float64]

MOST = 20_000
"""Tasks of joins up to which cuts are tried; with more of them a grid shares them well enough."""


@dataclass(frozen=True, slots=True)
class Boxes:
    """Joins in boxes of about the same work, one for each node; the rest with its operands or readers."""

    known: tuple[Workload, list[Join]] | None = field(default=None, compare=False, repr=False)
    """A workload whose joins were found already, and these."""

    name = "boxes"

    @classmethod
    def variants(cls, work: Workload, cluster: Cluster) -> Iterator[Boxes]:
        """One; none where the program has no join, or too many of them."""
        all_joins = joins(work)
        if all_joins and sum(len(join.tasks) for join in all_joins) <= MOST:
            yield cls((work, all_joins))

    def place(self, work: Workload, cluster: Cluster) -> Placement:
        """Cut the joins into boxes, then place the rest."""
        all_joins = self.known[1] if self.known is not None and self.known[0] is work else joins(work)
        nodes = np.full(work.count, -1, np.int32)
        _Cutting(work, cluster, all_joins).cut(nodes)
        return completed(Walks.of(work, cluster), nodes, backward_first=False)


class _Cutting:
    """The joins of a workload, to be cut into boxes."""

    def __init__(self, work: Workload, cluster: Cluster, found: list[Join]) -> None:
        self._bandwidth = cluster.between.bandwidth
        self._speeds = np.array([node.flops * node.workers for node in cluster.nodes])
        self._speeds /= self._speeds[0]
        self._tasks = np.concatenate([join.tasks for join in found])
        places = [[getattr(join, name) for join in found] for name in ("row", "column", "layer")]
        self._places = np.stack([np.concatenate(each) for each in places])
        taken = task_seconds(work, cluster, np.zeros(work.count, np.int32))[self._tasks]
        self._seconds = taken / cluster.nodes[0].workers
        self._reader, self._tile, self._bytes = self._shared(work)

    def _shared(self, work: Workload) -> tuple[Numbers, Numbers, Numbers]:
        """What boxes may have in common: tiles that are read, and sums, which come together in one place.

        A place among the tasks and a number for each that a task has a part in, and the bytes of each number.
        """
        starts, ends = work.read_start[self._tasks], work.read_start[self._tasks + 1]
        readers = np.repeat(np.arange(len(self._tasks)), ends - starts)
        tiles = np.concatenate([work.read[a:b] for a, b in zip(starts, ends, strict=True)])
        read, tile = np.unique(tiles, return_inverse=True)
        columns = int(self._places[1].max()) + 1
        cells, cell = np.unique(self._places[0] * columns + self._places[1], return_inverse=True)
        sizes = np.zeros(len(cells), np.int64)
        np.maximum.at(sizes, cell, work.tile_bytes[work.write[work.write_start[self._tasks]]])
        return (
            np.concatenate([readers, np.arange(len(self._tasks))]),
            np.concatenate([tile, cell + len(read)]),
            np.concatenate([work.tile_bytes[read], sizes]),
        )

    def cut(self, nodes: Nodes) -> None:
        """Give every task of a join the node of its box."""
        count = len(self._speeds)
        parts = [(np.arange(len(self._tasks)), np.arange(count))]
        while parts:
            mine, left = parts.pop()
            if len(left) == 1 or not len(mine):
                nodes[self._tasks[mine]] = left[0]
                continue
            half = len(left) // 2
            speeds = self._speeds[left]
            first = self._best(mine, float(speeds[:half].sum()), float(speeds[half:].sum()))
            parts += [(mine[first], left[:half]), (mine[~first], left[half:])]

    def _best(self, mine: Numbers, one: float, other: float) -> NDArray[np.bool_]:
        """Which of these tasks to cut off for nodes of these speeds, the rest being for the others."""
        inside = np.full(len(self._tasks), -1)
        inside[mine] = np.arange(len(mine))
        taking = inside[self._reader] >= 0
        reader, tile = inside[self._reader[taking]], self._tile[taking]
        cheapest, best = np.inf, np.zeros(len(mine), bool)
        for order, ends in self._cuts(mine, one / (one + other)):
            done = np.cumsum(self._seconds[mine][order])
            for end in ends:
                first = np.zeros(len(mine), bool)
                first[order[:end]] = True
                before = float(done[end - 1]) if end else 0.0
                busy = max(before / one, (float(done[-1]) - before) / other)
                both = np.zeros((2, len(self._bytes)), bool)
                both[first[reader].astype(int), tile] = True
                cost = busy + float(self._bytes[both.all(axis=0)].sum()) / self._bandwidth
                if cost < cheapest * (1 - 1e-9):
                    cheapest, best = cost, first
        return best

    def _cuts(self, mine: Numbers, share: float) -> Iterator[tuple[Numbers, list[int]]]:
        """Orders of the tasks, by lines along one axis or another, and where to cut in each of them."""
        places, seconds = self._places[:, mine], self._seconds[mine]
        for axes in permutations(range(3)):
            order = np.lexsort([places[axis] for axis in reversed(axes)])
            done: NDArray[np.float64] = np.cumsum(seconds[order])
            fair = int(np.searchsorted(done, share * float(done[-1])))
            lines: Numbers = np.flatnonzero(np.diff(places[axes[0]][order])) + 1
            line = int(np.searchsorted(lines, fair))
            around: list[int] = lines[max(line - 1, 0) : line + 2].tolist()
            yield order, sorted({min(max(end, 1), len(mine) - 1) for end in (fair, fair + 1, *around)})
