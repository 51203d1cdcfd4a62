"""What engines that drive a cluster have in common: a plan for its nodes, and a run that follows it."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from linnet.engines.driving import Crew, Drive
from linnet.engines.driving_loss import Assignment
from linnet.engines.driving_tasks import brief
from linnet.engines.driving_telling import Reports
from linnet.engines.driving_tiles import RemoteTiles, check_reach
from linnet.engines.engine import Outputs, check_inputs, check_out
from linnet.events import Events, Sink
from linnet.kernels import get as get_kernel
from linnet.planning.cluster import Cluster
from linnet.planning.schedule import finishing
from linnet.planning.workload import Workload
from linnet.programs import BoundProgram
from linnet.tiles import TiledArray, TileKey

_jobs = itertools.count(1)


class Driven(ABC):
    """An engine that sends tasks to workers elsewhere."""

    memory: int | None = None
    """What nodes may hold is in `cluster`."""
    policy: str
    """How tasks are placed; "engine" leaves it to the engine below."""

    @property
    @abstractmethod
    def cluster(self) -> Cluster:
        """The nodes as they are now."""

    @property
    @abstractmethod
    def key(self) -> str:
        """What tells this cluster from others: tiles that are kept on it can be read on it."""

    @abstractmethod
    def _pickled(self, code: object) -> bytes:
        """Functions, by value where they cannot be imported."""

    @abstractmethod
    def _crew(self, job: str, brief: bytes) -> Crew:
        """The workers, for one run."""

    def run(
        self,
        bound: BoundProgram,
        inputs: Mapping[str, TiledArray],
        *,
        out: Mapping[str, TiledArray] | None = None,
        events: Sink | None = None,
    ) -> Outputs:
        """Run every task of the program; see `Engine.run`.

        Results without a place in `out` stay on the cluster until somebody looks at them. Ctrl-C breaks
        the run off: what waits is taken back, and kernels in flight end unheard.
        """
        check_inputs(bound, inputs)
        check_out(bound, out or {})
        check_reach(bound, inputs)
        job = f"{bound.program.name}-{next(_jobs)}"
        work = Workload.of(bound, inputs, self._homes(inputs))
        crew = self._crew(job, brief(bound, inputs, self._pickled))
        telling = Reports(Events() if events is None else events, job, work, _calls(work))
        return Drive(work, self._assigned(work), inputs, out or {}, crew, telling).outcome()

    def _homes(self, inputs: Mapping[str, TiledArray]) -> dict[TileKey, int]:
        """Nodes of inputs that are on this cluster already."""
        return {
            TileKey(name, index): parcel.node
            for name, array in inputs.items()
            if isinstance(array.tiles, RemoteTiles) and array.tiles.key == self.key
            for index, (parcel, _) in array.tiles.places.items()
        }

    def _assigned(self, work: Workload) -> Assignment:
        """What runs where, and in which order."""
        streams = any(get_kernel(each.kernel).streams for each in work.bound.program.statements)
        order = finishing(work.tasks) if streams else work.order
        if self.policy == "engine":
            free = np.full(work.count, -1), np.full(work.tiles, -1)
            return Assignment(*free, order)
        count = self.cluster.count
        nodes = np.empty(work.count, np.int64)
        nodes[order] = np.arange(work.count) % count
        homes = np.zeros(work.tiles, np.int64)
        first = work.reader_start[:-1]
        read = np.diff(work.reader_start) > 0
        homes[read] = nodes[work.reader[first[read]]]
        return Assignment(nodes, homes, order)

    def zeros(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """An array for `out`, here."""
        return np.zeros(shape, dtype)


def _calls(work: Workload) -> Callable[[int], Any]:
    """The kernel call of a task, by its number."""
    calls = work.bound.calls(work.tasks)

    def call(number: int) -> Any:
        statement = int(work.statement[number])
        return calls[statement](number - int(work.tasks.offsets[statement]))

    return call
