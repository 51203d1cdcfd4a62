"""What policies share: which tasks begin a program or end it, and what becomes of those left over."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from linnet.kernels import get as get_kernel
from linnet.planning.cluster import Cluster
from linnet.planning.layout import Grid, NodeLayout, even_grid, node_grids
from linnet.planning.placement import Nodes, Placement, placed
from linnet.planning.policies.walks import Walks
from linnet.planning.workload import Workload

Mask = NDArray[np.bool_]
Numbers = NDArray[np.int64]


def named(family: str, grid: Grid) -> str:
    """The name of a policy with its grid.

    >>> named("owner", (4, 2))
    'owner 4×2'
    """
    return f"{family} {'×'.join(map(str, grid))}"


def any_of(values: Mask, start: Numbers) -> Mask:
    """For each compressed row, whether any of its values is true."""
    total = np.concatenate([[0], np.cumsum(values)])
    return total[start[1:]] > total[start[:-1]]


def creating(work: Workload) -> Mask:
    """Tasks that bring what others read from outside (files, random numbers): they can do it anywhere."""
    streams = [get_kernel(each.kernel).streams for each in work.bound.program.statements]
    outside = (np.diff(work.read_start) == 0) | np.array(streams, bool)[work.statement]
    by_a_task = work.producer >= 0
    read = np.diff(work.reader_start) > 0
    return (
        outside & ~any_of(by_a_task[work.read], work.read_start) & any_of(read[work.write], work.write_start)
    )


def beginning(work: Workload) -> Mask:
    """Tasks that nothing ties to a node yet: all they read is free to be loaded or made anywhere.

    Creating tasks are none of them: they go where these go.
    """
    makers = creating(work)
    written = work.producer >= 0
    tied = work.given_homes >= 0
    tied[written] = ~makers[work.producer[written]]
    return ~makers & ~any_of(tied[work.read], work.read_start)


def ending(work: Workload) -> tuple[Numbers, Numbers]:
    """Tasks that write a tile of a result, and the first such tile of each."""
    places = np.flatnonzero(work.kept[work.write])
    tasks = work.producer[work.write[places]].astype(np.int64)
    tasks, first = np.unique(tasks, return_index=True)
    return tasks, work.write[places[first]].astype(np.int64)


def by_layout(work: Workload, layout: NodeLayout, tiles: Numbers) -> Nodes:
    """The nodes that a layout gives to tiles, each by its own array's index."""
    nodes = np.zeros(len(tiles), np.int32)
    arrays = work.tile_array[tiles]
    present: list[int] = np.unique(arrays).tolist()
    for array in present:
        mine = arrays == array
        index: Numbers = work.tile_index[array][tiles[mine] - work.first[array]]
        # Tasks that write several tiles are known by the first: places are counted among those.
        places = [np.unique(column, return_inverse=True)[1] for column in index.T]
        nodes[mine] = layout.nodes(np.column_stack(places) if places else index)
    return nodes


def in_blocks(cluster: Cluster, grid: Grid | None = None) -> NodeLayout:
    """Contiguous blocks over a grid, or over all nodes along one axis, faster ones with longer blocks."""
    speeds = tuple(node.flops * node.workers for node in cluster.nodes)
    return NodeLayout(grid or (cluster.count,), True, speeds if len(set(speeds)) > 1 else None)


def by_loops(work: Workload, layout: NodeLayout, tasks: Numbers, nodes: Nodes) -> None:
    """Give tasks the nodes that a layout gives to their loop values, statement by statement."""
    statements = work.statement[tasks]
    present: list[int] = np.unique(statements).tolist()
    for statement in present:
        mine = tasks[statements == statement]
        nodes[mine] = layout.nodes(_loops(work, statement, mine))


def _loops(work: Workload, statement: int, tasks: Numbers) -> Numbers:
    """The loop values of tasks of one statement, without loops that have the same value in all of them."""
    rows: Numbers = work.tasks.indices[statement][tasks - work.tasks.offsets[statement]]
    return rows[:, (rows != rows[:1]).any(axis=0)]


def loop_extents(work: Workload, tasks: Numbers) -> tuple[int, ...]:
    """How many values each loop that varies runs over, for the statement that most of these tasks are of."""
    if not len(tasks):
        return ()
    statement = int(np.bincount(work.statement[tasks]).argmax())
    mine = tasks[work.statement[tasks] == statement]
    rows = _loops(work, statement, mine)
    return tuple((rows.max(axis=0) - rows.min(axis=0) + 1).tolist())


def array_extents(work: Workload, tiles: Numbers) -> tuple[int, ...]:
    """How many tiles there are along each axis, for the array that most of these tiles belong to."""
    if not len(tiles):
        return ()
    index = work.tile_index[int(np.bincount(work.tile_array[tiles]).argmax())]
    return tuple((index.max(axis=0) + 1).tolist())


def grids_for(cluster: Cluster, extents: tuple[int, ...]) -> list[Grid]:
    """The grid that was asked for, or all that can matter."""
    return [cluster.grid] if cluster.grid is not None else node_grids(cluster.count, extents)


def grid_for(cluster: Cluster, extents: tuple[int, ...]) -> Grid:
    """The grid that was asked for, or the most even one."""
    return cluster.grid if cluster.grid is not None else even_grid(cluster.count, extents)


def completed(walks: Walks, nodes: Nodes, *, backward_first: bool) -> Placement:
    """Place what has no node yet: with its readers or with its producers, whichever is asked for first.

    What neither tells is spread in the order of its loops.
    """
    work, cluster = walks.work, walks.cluster
    load = np.zeros(cluster.count, np.int64)
    taken = nodes >= 0
    kinds = walks.costs.kind[nodes[taken]]
    np.add.at(load, nodes[taken], walks.costs.task[kinds, np.flatnonzero(taken)])
    if backward_first and not taken.all():
        walks.backward(nodes, load)
    if (nodes < 0).any():
        # The load of tasks placed so far is counted again as the walk meets them.
        walks.forward(nodes, work.given_homes.copy(), np.zeros(cluster.count, np.int64))
    if (nodes < 0).any():
        walks.backward(nodes, load)
    rest = np.flatnonzero(nodes < 0)
    if len(rest):
        by_loops(work, in_blocks(cluster), rest, nodes)
    return placed(work, cluster, nodes)
