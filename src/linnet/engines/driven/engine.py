"""What engines that drive a cluster have in common: a plan for its nodes, and a run that follows it."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from linnet.engines.driven.events import Reports
from linnet.engines.driven.lost_nodes import Assignment
from linnet.engines.driven.run import Crew, Drive
from linnet.engines.driven.tasks import brief
from linnet.engines.driven.tiles import LostKept, check_reach
from linnet.engines.engine import Outputs, check_inputs, check_out
from linnet.engines.lifetime import Kept, Lifetime
from linnet.engines.remaking import Origin
from linnet.engines.remote_tiles import RemoteOutputs, RemoteTiles
from linnet.engines.run_events import JOBS
from linnet.errors import JobError
from linnet.events import Events, Sink
from linnet.planning.choosing import check_policy, choose
from linnet.planning.cluster import Cluster, Node
from linnet.planning.plan import Plan
from linnet.planning.workload import Workload
from linnet.programs import BoundProgram
from linnet.tiles import TiledArray, TileKey

_FRESH = 1.0
"""Seconds for which a look at the cluster is good enough to choose tiles by; runs look again."""
_AGAIN = 3
"""How often a run may lose tiles that an earlier one had kept."""
_KEPT = 16
"""Plans that an engine keeps: a loop that runs one program on new data plans once."""
_KEPT_TASKS = 50_000
"""Tasks of the largest of them."""


class _Planned(NamedTuple):
    """What a run follows."""

    work: Workload
    plan: Plan | None
    assignment: Assignment


class Driven(ABC):
    """An engine that sends tasks to workers elsewhere."""

    tells_tasks = True
    """Whether events of single tasks cost little."""

    shares_memory = False
    deterministic = True
    memory: int | None = None
    """What nodes may hold is in `cluster`."""

    def __init__(self, policy: str) -> None:
        check_policy(policy, "engine")
        self.policy = policy
        """How tasks are placed; "engine" leaves it to the engine below."""
        self._plans: dict[Any, _Planned] = {}
        self._seen_at: tuple[float, Cluster | None] = 0.0, None
        self._lock = threading.Lock()
        self._life = Lifetime()
        self._life.watch(self._gone)

    @abstractmethod
    def _gone(self) -> str:
        """The engine and what became of its cluster, if somebody else shut that down; else nothing."""

    @property
    def workers(self) -> int:
        """Workers of all nodes together."""
        return self.cluster.workers

    @property
    def cluster(self) -> Cluster:
        """The nodes as they are now."""
        self._life.check()
        seen, known = self._seen_at
        if known is None or time.monotonic() > seen + _FRESH:
            known = Cluster(list(self._nodes().values()))
            self._seen_at = time.monotonic(), known
        return known

    def keep(self, kept: Kept) -> None:
        """Something that ends when the engine is closed."""
        self._life.check()
        self._life.keep(kept)

    def nodes(self) -> dict[str, Node]:
        """The nodes that are there, by their names; those that are gone may not be missed at once."""
        self._life.check()
        return self._nodes()

    @abstractmethod
    def moved(self) -> list[int]:
        """Bytes of tiles that came to each node from other nodes, since this was asked last."""

    @abstractmethod
    def _nodes(self) -> dict[str, Node]:
        """The nodes that are there, by their names."""

    @property
    @abstractmethod
    def key(self) -> str:
        """What tells this cluster from others: tiles that are kept on it can be read on it."""

    @abstractmethod
    def _pickled(self, code: object) -> bytes:
        """Functions, by value where they cannot be imported."""

    @abstractmethod
    def _crew(self, job: str, brief: bytes, nodes: dict[str, Node]) -> Crew:
        """The workers of these nodes, for one run."""

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
        self._life.check()
        check_inputs(bound, inputs)
        check_out(bound, out or {})
        check_reach(bound, inputs)
        try:
            with self._prepared():
                made = self._driven_on(bound, inputs, out or {}, Events() if events is None else events)
        except Exception:
            self._life.check()  # somebody closed the engine meanwhile: whatever went wrong follows from it
            raise
        return made.kept_by(self._life, Origin(self, bound, inputs, self.key))

    def _prepared(self) -> AbstractContextManager[None]:
        """What is changed at the engine below while a run goes on."""
        return nullcontext()

    def _driven_on(
        self,
        bound: BoundProgram,
        inputs: Mapping[str, TiledArray],
        out: Mapping[str, TiledArray],
        events: Sink,
    ) -> RemoteOutputs:
        """Run a program; inputs that were kept on nodes which are gone, or go, are made again before."""
        for _ in range(_AGAIN):
            for name in self._lost(inputs):
                self._make_again(inputs[name])
            try:
                return self._driven(bound, inputs, out, events)
            except LostKept as lost:
                for name in lost.arrays:
                    self._make_again(inputs[name])
        raise JobError(f"nodes went {_AGAIN} times with tiles that {bound.program.name} reads")

    def _make_again(self, array: TiledArray) -> None:
        assert isinstance(array.tiles, RemoteTiles)
        array.tiles.make_again()

    def _lost(self, inputs: Mapping[str, TiledArray]) -> list[str]:
        """Inputs that were on this cluster, and of which tiles are not any more."""
        kept = {
            name: array.tiles
            for name, array in inputs.items()
            if isinstance(array.tiles, RemoteTiles) and array.tiles.key == self.key
        }
        if not kept:
            return []
        alive = self._nodes()
        found: list[str] = []
        for name, tiles in kept.items():
            refs = [tiles.places[at][0].ref for at in tiles.places if tiles.node(at) not in alive]
            if refs and not all(self._there(refs)):
                found.append(name)
        return found

    @abstractmethod
    def _there(self, refs: Sequence[Any]) -> list[bool]:
        """Whether the values behind references are on some node that is there."""

    def _driven(
        self,
        bound: BoundProgram,
        inputs: Mapping[str, TiledArray],
        out: Mapping[str, TiledArray],
        events: Sink,
    ) -> RemoteOutputs:
        job = f"{bound.program.name}-{next(JOBS)}"
        nodes = self._nodes()
        planned = self._planned(bound, inputs, nodes)
        work = planned.work
        crew = self._crew(job, brief(bound, inputs, self._pickled), nodes)
        telling = Reports(events, job, work, _calls(work), planned.plan)
        return Drive(work, planned.assignment, inputs, out, crew, telling, self._life).outcome()

    def _homes(self, inputs: Mapping[str, TiledArray], nodes: Sequence[str]) -> dict[TileKey, int]:
        """Nodes of inputs that are on this cluster already."""
        numbers = {name: number for number, name in enumerate(nodes)}
        return {
            TileKey(name, index): numbers[node]
            for name, array in inputs.items()
            if isinstance(array.tiles, RemoteTiles) and array.tiles.key == self.key
            for index in array.tiles
            if (node := array.tiles.node(index)) in numbers
        }

    def plan(self, bound: BoundProgram, inputs: Mapping[str, TiledArray]) -> Plan | None:
        """The plan that a run would follow; None where placing is left to the engine below."""
        self._life.check()
        return self._planned(bound, inputs, self._nodes()).plan

    def _planned(
        self, bound: BoundProgram, inputs: Mapping[str, TiledArray], nodes: dict[str, Node]
    ) -> _Planned:
        homes = self._homes(inputs, list(nodes))
        cluster = Cluster(list(nodes.values()))
        layouts = tuple((name, array.layout, array.dtype) for name, array in sorted(inputs.items()))
        asked = (id(bound), cluster, self.policy, layouts, tuple(sorted(homes.items())))
        with self._lock:
            known = self._plans.get(asked)
        if known is None:
            known = self._made(Workload.of(bound, inputs, homes), cluster)
            if known.work.count <= _KEPT_TASKS:
                with self._lock:
                    self._plans[asked] = known
                    while len(self._plans) > _KEPT:
                        del self._plans[next(iter(self._plans))]
        return known

    def _made(self, work: Workload, cluster: Cluster) -> _Planned:
        order = work.order
        if self.policy == "engine":
            return _Planned(work, None, Assignment(np.full(work.count, -1), np.full(work.tiles, -1), order))
        plan = choose(work, cluster, self.policy)
        placement = plan.placement
        return _Planned(work, plan, Assignment(placement.nodes, placement.homes, order))

    def close(self) -> None:
        """Run nothing any more, and shut down the cluster if the engine started it; see `Engine.close`."""
        self._life.end(repr(self), self._shut_down)

    @abstractmethod
    def _shut_down(self) -> None:
        """Shut down what the engine started itself."""

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
