"""Walks over all tasks that place them one after another: in C where it was built, else the same in Python.

What a walk decides for a task depends on what it decided for those before, so these loops are no array
operations. Costs are whole numbers (picoseconds): both ways give the same placement, on every machine.
"""

from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.planning.cluster import Cluster
from linnet.planning.compiled import library
from linnet.planning.placement import Nodes
from linnet.planning.policies import plain_walks
from linnet.planning.policies.plain_walks import LATER as LATER
from linnet.planning.simulate import task_seconds
from linnet.planning.workload import Workload

Numbers = NDArray[np.int64]
_PICOSECONDS = 1e12


class _Work(ctypes.Structure):
    """Tasks, tiles and the cluster, as `place.c` describes them."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("tasks", "tiles", "nodes")),
        *((name, ctypes.c_void_p) for name in ("order", "read_start", "read", "write_start", "write")),
        *((name, ctypes.c_void_p) for name in ("reader_start", "reader")),
        *((name, ctypes.c_void_p) for name in ("cost", "kind", "move", "bytes", "kept")),
    )


_NO_PLACE = -2
"""What a compiled walk says where a task has no node and nothing that it reads is anywhere."""


@functools.cache
def _library() -> ctypes.CDLL | None:
    """The compiled walks, or None where they were not built or cannot be loaded."""
    loaded = library("place")
    if loaded is None:
        return None
    for name, others in (("forward", 3), ("backward", 2), ("lshs", 2), ("greedy", 4)):
        function = getattr(loaded, f"linnet_{name}")
        function.argtypes = (ctypes.POINTER(_Work), *(ctypes.c_void_p,) * others)
        function.restype = ctypes.c_int64
    return loaded


@dataclass(frozen=True, slots=True)
class Costs:
    """What tasks and messages cost on a cluster, in whole picoseconds."""

    task: Numbers
    """For each kind of node a row: seconds of each task there, shared by the workers of the node."""
    kind: Numbers
    """Of each node."""
    move: Numbers
    """Of each tile, from a node to another."""

    @classmethod
    def of(cls, work: Workload, cluster: Cluster) -> Costs:
        """The costs of a workload on a cluster."""
        kinds = list(dict.fromkeys(cluster.nodes))
        alone = np.zeros(work.count, np.int32)
        task = np.array(
            [
                task_seconds(work, Cluster([kind], within=cluster.within), alone) / kind.workers
                for kind in kinds
            ]
        )
        kind = np.array([kinds.index(node) for node in cluster.nodes], np.int64)
        between = cluster.between
        move = np.rint((between.latency + work.tile_bytes / between.bandwidth) * _PICOSECONDS)
        return cls(np.rint(task * _PICOSECONDS).astype(np.int64), kind, move.astype(np.int64))


@dataclass(frozen=True, slots=True)
class Walks:
    """A workload ready to be walked over."""

    work: Workload
    cluster: Cluster
    costs: Costs
    compiled: bool = True
    """Whether to take the compiled walks where they are."""

    @classmethod
    def of(cls, work: Workload, cluster: Cluster) -> Walks:
        """A workload on a cluster."""
        return cls(work, cluster, Costs.of(work, cluster))

    def forward(self, nodes: Nodes, homes: Nodes, load: Numbers) -> None:
        """Tasks without a node go to the least loaded of the nodes that made their operands.

        Those whose operands are nowhere yet stay without. `nodes`, `homes` (of tiles) and `load` (of
        nodes, picoseconds) are brought up to date.
        """
        self._walk("forward", self.work.tile_bytes, nodes, homes, load)

    def backward(self, nodes: Nodes, load: Numbers) -> None:
        """Tasks without a node go to the least loaded of the nodes that read what they make."""
        self._walk("backward", self.work.tile_bytes, nodes, load)

    def lshs(self, nodes: Nodes, homes: Nodes) -> None:
        """The thesis' search: `nodes` has those of tasks without a choice, and every input has a home."""
        self._walk("lshs", self.work.tile_items, nodes, homes)

    def greedy(self, wish: Nodes, homes: Nodes) -> Nodes:
        """Every task where it costs least, of the nodes that hold an operand and the one wished for.

        A wish of -1 is none; tasks that wish for `LATER` are left out, without a node.
        """
        memory = np.array([-1 if n.memory is None else n.memory for n in self.cluster.nodes], np.int64)
        nodes = np.full(self.work.count, -1, np.int32)
        self._walk("greedy", self.work.tile_bytes, wish, memory, nodes, homes)
        return nodes

    def _walk(self, name: str, sizes: Numbers, *arrays: NDArray[Any]) -> None:
        loaded = _library() if self.compiled else None
        if loaded is None:
            getattr(plain_walks, name)(self.work, self.cluster.count, self.costs, sizes, *arrays)
            return
        work, costs = self.work, self.costs
        columns: list[NDArray[Any]] = [
            np.ascontiguousarray(column, kind)
            for column, kind in (
                (work.order, np.int64), (work.read_start, np.int64), (work.read, np.int32),
                (work.write_start, np.int64), (work.write, np.int32), (work.reader_start, np.int64),
                (work.reader, np.int32), (costs.task, np.int64), (costs.kind, np.int64),
                (costs.move, np.int64), (sizes, np.int64), (work.kept, np.uint8),
            )
        ]  # fmt: skip
        described = _Work(
            work.count, work.tiles, self.cluster.count, *(column.ctypes.data for column in columns)
        )
        said = getattr(loaded, f"linnet_{name}")(described, *(array.ctypes.data for array in arrays))
        if said == _NO_PLACE:
            raise ValueError("a task that reads nothing has no node, or a tile that is read has no home")
        if said:
            raise MemoryError(f"no memory to place {work.count:,} tasks on {self.cluster.count} nodes")
