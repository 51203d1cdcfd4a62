"""Layouts: which node holds which tile of an array, by the tile's index alone.

Nodes stand in a grid. Tiles are dealt to them along each axis in turn (cyclic), so that neighbours lie on
different nodes and triangles are shared out evenly; or in contiguous blocks, so that neighbours stay
together. Within a node tiles go to its workers in turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from linnet.errors import InputError

Numbers = NDArray[np.int64]
Grid = tuple[int, ...]
"""How many nodes there are along each axis."""


@dataclass(frozen=True, slots=True)
class NodeLayout:
    """Tiles over a grid of nodes.

    >>> layout = NodeLayout((2, 2))
    >>> layout.nodes(np.array([[0, 0], [0, 1], [2, 3], [3, 2]])).tolist()
    [0, 1, 1, 2]
    >>> NodeLayout((2, 2), contiguous=True).nodes(np.array([[0, 0], [1, 1], [2, 3], [3, 2]])).tolist()
    [0, 0, 3, 3]
    """

    grid: Grid
    contiguous: bool = False
    """Whether neighbours stay together."""
    shares: tuple[float, ...] | None = None
    """What each node does of the whole, where all stand along one axis; None: all alike."""

    def nodes(self, index: Numbers) -> NDArray[np.int32]:
        """The node of each tile, a row of indices a tile."""
        rows, axes = len(index), int(index.shape[1])
        if not rows or not axes:
            return np.zeros(rows, np.int32)
        grid = fitted(self.grid, axes)
        node = np.zeros(rows, np.int64)
        for column, parts in zip(index.T, grid, strict=True):
            part = blocks(column, parts, self.shares) if self.contiguous else column % parts
            node = node * parts + part
        nodes: NDArray[np.int32] = node.astype(np.int32)
        return nodes

    def workers(self, index: Numbers, workers: int) -> NDArray[np.int32]:
        """The worker of each tile within its node: the tiles of a node go to its workers in turn.

        >>> index = np.array([[i, j] for i in range(4) for j in range(4)])
        >>> NodeLayout((2, 2)).workers(index, 4).reshape(4, 4)[2].tolist()  # A[2, 3]: the fourth of its node
        [2, 2, 3, 3]
        """
        nodes = self.nodes(index)
        order = np.argsort(nodes, kind="stable")
        ordered = nodes[order]
        place = np.arange(len(order)) - np.searchsorted(ordered, ordered)
        worker_of_tile = np.empty(len(order), np.int32)
        worker_of_tile[order] = place % workers
        return worker_of_tile


def blocks(column: Numbers, parts: int, shares: tuple[float, ...] | None = None) -> Numbers:
    """Contiguous blocks of nearly equal length, or as long as their shares: which one each value belongs to.

    >>> blocks(np.arange(7), 3).tolist()
    [0, 0, 1, 1, 2, 2, 2]
    >>> blocks(np.arange(8), 2, (1.0, 3.0)).tolist()
    [0, 0, 1, 1, 1, 1, 1, 1]
    """
    low = int(column.min())
    length = int(column.max()) - low + 1
    edges = length * np.arange(1, parts) // parts
    if shares is not None and len(shares) == parts:
        edges = np.rint(length * np.cumsum(shares)[:-1] / sum(shares)).astype(np.int64)
    return np.searchsorted(edges, column - low, side="right")


def fitted(grid: Grid, axes: int) -> Grid:
    """A grid for arrays of so many axes: what is too much is joined to the last axis, what is missing is 1.

    >>> fitted((4, 2), 1), fitted((4, 2), 3)
    ((8,), (4, 2, 1))
    """
    if len(grid) > axes:
        return (*grid[: axes - 1], prod(grid[axes - 1 :]))
    return (*grid, *(1,) * (axes - len(grid)))


def factorisations(count: int, axes: int) -> Iterator[Grid]:
    """All grids of so many axes for `count` nodes.

    >>> list(factorisations(4, 2))
    [(1, 4), (2, 2), (4, 1)]
    """
    if axes == 1:
        yield (count,)
        return
    for first in range(1, count + 1):
        if count % first == 0:
            for rest in factorisations(count // first, axes - 1):
                yield (first, *rest)


def node_grids(count: int, extents: Sequence[int]) -> list[Grid]:
    """The grids of `count` nodes that can matter for an array (or loops) of these extents.

    A grid with more nodes along an axis than there are tiles leaves nodes idle: such a grid is taken
    only if every other does so too, and then only those that leave the fewest idle.

    >>> node_grids(4, (8, 8))
    [(1, 4), (2, 2), (4, 1)]
    >>> node_grids(4, (8, 1)), node_grids(5, (3, 3))
    ([(4, 1)], [(1, 5), (5, 1)])
    """
    if count < 1:
        raise InputError(f"a grid of {count} nodes: there is at least one")
    if not extents:
        return [(count,)]
    busy = {
        grid: prod(min(parts, extent) for parts, extent in zip(grid, extents, strict=True))
        for grid in factorisations(count, len(extents))
    }
    most = max(busy.values())
    return [grid for grid, used in busy.items() if used == most]


def even_grid(count: int, extents: Sequence[int]) -> Grid:
    """Of the grids that can matter the one whose axes are most alike, longer ones first.

    >>> even_grid(16, (8, 8)), even_grid(8, (8, 8)), even_grid(16, (100, 1)), even_grid(8, (5, 5, 5))
    ((4, 4), (4, 2), (16, 1), (2, 2, 2))
    """
    return max(node_grids(count, extents), key=lambda grid: (-sum(grid), grid))
