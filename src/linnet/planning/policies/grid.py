"""Group-by-joins on a grid of nodes: SUMMA, and with layers the 2.5-d and 3-d products.

A task goes to the node at its row and its column; so each tile reaches one row or one column of the grid,
and sums stay where they are. With layers the summed index is cut into as many contiguous pieces, each
computed by another layer of nodes: tiles reach fewer nodes, and partial sums pass from layer to layer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod

import numpy as np

from linnet.planning.cluster import Cluster
from linnet.planning.layout import Grid, factorisations, fitted
from linnet.planning.placement import Nodes, Placement
from linnet.planning.policies.joins import Join, joins
from linnet.planning.policies.spreading import completed, named
from linnet.planning.policies.walks import Walks
from linnet.planning.workload import Workload


@dataclass(frozen=True, slots=True)
class Summa:
    """Joins on a grid of rows, columns and layers; the rest where its operands or its readers are."""

    grid: tuple[int, int, int]
    """Nodes along the rows, the columns and the layers."""
    known: tuple[Workload, list[Join]] | None = field(default=None, compare=False, repr=False)
    """A workload whose joins were found already, and these."""

    @property
    def name(self) -> str:
        return named("grid", self.grid[:2] if self.grid[2] == 1 else self.grid)

    @classmethod
    def variants(cls, work: Workload, cluster: Cluster) -> Iterator[Summa]:
        """One for each grid that can matter; none where the program has no join."""
        all_joins = joins(work)
        if not all_joins:
            return
        if cluster.grid is not None:
            rows, columns, layers = fitted(cluster.grid, 3)
            yield cls((rows, columns, layers), (work, all_joins))
            return
        extents = _extents(all_joins[0])
        grids = [grid for grid in factorisations(cluster.count, 3) if _fits(grid, extents)]
        if not grids:  # more nodes than products: those that leave fewest idle
            used = {g: _used(g, extents) for g in factorisations(cluster.count, 3)}
            grids = [grid for grid, busy in used.items() if busy == max(used.values())]
        for rows, columns, layers in grids:
            yield cls((rows, columns, layers), (work, all_joins))

    def place(self, work: Workload, cluster: Cluster) -> Placement:
        """Place the joins by their coordinates, then the rest."""
        nodes = np.full(work.count, -1, np.int32)
        for join in self._joins(work):
            nodes[join.tasks] = self._nodes(join)
        return completed(Walks.of(work, cluster), nodes, backward_first=False)

    def _joins(self, work: Workload) -> list[Join]:
        return self.known[1] if self.known is not None and self.known[0] is work else joins(work)

    def _nodes(self, join: Join) -> Nodes:
        rows, columns, layers = self.grid
        layer = join.layer * layers // max(join.layers, 1)
        node = ((join.row % rows) * columns + join.column % columns) * layers + layer
        return node.astype(np.int32)

    def estimate(self, work: Workload, cluster: Cluster) -> tuple[float, int]:
        """About the seconds that a placement on this grid takes at least, and about the bytes that it moves.

        Its work, or its messages, are spread evenly. A tile of the first operand reaches every column of
        nodes, one of the second every row, and a partial sum goes through every layer.
        """
        join = self._joins(work)[0]
        used = [min(parts, extent) for parts, extent in zip(self.grid, _extents(join), strict=True)]
        between, rate = cluster.between, sum(node.flops * node.workers for node in cluster.nodes)
        sending = moved = 0.0
        for (tiles, size), copies in zip(_amounts(work, join), (used[1], used[0], used[2]), strict=True):
            sending += (copies - 1) * (tiles * between.latency + size / between.bandwidth)
            moved += (copies - 1) * size
        busy = float(work.flops.sum()) / rate * cluster.count / prod(used)
        return max(busy, sending / cluster.count), int(moved)


def _extents(join: Join) -> tuple[int, int, int]:
    return int(join.row.max()) + 1, int(join.column.max()) + 1, int(join.layer.max() - join.layer.min()) + 1


def _used(grid: Grid, extents: tuple[int, ...]) -> int:
    return prod(min(parts, extent) for parts, extent in zip(grid, extents, strict=True))


def _fits(grid: Grid, extents: tuple[int, ...]) -> bool:
    return all(parts <= extent for parts, extent in zip(grid, extents, strict=True))


def _amounts(work: Workload, join: Join) -> Iterator[tuple[float, float]]:
    """Tiles and bytes of the first operand, the second, and of what one layer writes, about."""
    for array in (join.left, join.right):
        tiles = work.tile_bytes[work.tile_array == work.names.index(array)] if array in work.names else ()
        yield len(tiles), float(np.sum(tiles))
    first, last = work.write_start[join.tasks[0]], work.write_start[join.tasks[-1] + 1]
    layers = len(np.unique(join.layer))
    yield float(last - first) / layers, float(work.tile_bytes[work.write[first:last]].sum()) / layers
