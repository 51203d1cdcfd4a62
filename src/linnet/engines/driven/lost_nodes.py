"""Where tasks go when nodes are gone."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linnet.planning.workload import Workload

Numbers = NDArray[Any]


class Assignment(NamedTuple):
    """What a run follows."""

    nodes: Numbers
    """Of each task; -1 where the engine chooses."""
    homes: Numbers
    """Of each input tile."""
    order: Numbers
    """Tasks, each after those it waits for."""


def reassigned(
    work: Workload, nodes: Numbers, homes: Numbers, gone: set[int], left: list[int]
) -> tuple[Numbers, Numbers]:
    """Nodes of tasks and homes of inputs when some nodes are gone; what the others had stays with them.

    A task goes where most of what it reads is made, among the nodes that have taken least so far: these
    are not to take more than their share by one task.
    """
    dead = np.isin(nodes, list(gone))
    nodes, homes = nodes.copy(), homes.copy()
    load = dict.fromkeys(left, 0.0)
    share = float(work.flops[dead].sum()) / len(left)
    for task in work.order[dead[work.order]].tolist():
        read = work.reads(task)
        weights = np.where(work.producer[read] >= 0, nodes[work.producer[read]], homes[read])
        held = {node: float(work.tile_bytes[read][weights == node].sum()) for node in left}
        open_to = [node for node in left if load[node] <= share]
        best = max(open_to or left, key=lambda node: (held[node], -load[node]))
        nodes[task] = best
        load[best] += float(work.flops[task])
    stray = np.flatnonzero(np.isin(homes, list(gone)))
    for tile in stray.tolist():
        readers = work.reader[work.reader_start[tile] : work.reader_start[tile + 1]]
        homes[tile] = nodes[readers[0]] if len(readers) else left[0]
    return nodes, homes
