"""A plan: where each task runs, what moves, how long it takes; a value to look at before anything runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, NamedTuple, SupportsIndex, TypeVar, overload

import numpy as np

from linnet.planning.accounting import Transfers, transfers
from linnet.planning.bounds import UNKNOWN, Bound
from linnet.planning.cluster import Cluster
from linnet.planning.placement import Placement
from linnet.planning.simulate import Seconds, Simulated, simulate
from linnet.planning.views import Table, rivals, table, text
from linnet.planning.views_html import html
from linnet.planning.views_trace import write
from linnet.planning.workload import Numbers, Workload
from linnet.programs import Task
from linnet.tiles import TileKey, human

Row = TypeVar("Row")


class Rows(int, Generic[Row]):
    """A number of things, which can also be looked at one by one.

    >>> squares = Rows.of(3, lambda k: k * k)
    >>> squares == 3, squares[1], list(squares)
    (True, 1, [0, 1, 4])
    """

    _row: Callable[[int], Row]

    @classmethod
    def of(cls, count: int, row: Callable[[int], Row]) -> Rows[Row]:
        """So many, each made when it is asked for."""
        rows = cls(count)
        rows._row = row
        return rows

    def __len__(self) -> int:
        return int(self)

    def __iter__(self) -> Iterator[Row]:
        return (self._row(number) for number in range(int(self)))

    @overload
    def __getitem__(self, place: SupportsIndex) -> Row: ...
    @overload
    def __getitem__(self, place: slice) -> list[Row]: ...
    def __getitem__(self, place: SupportsIndex | slice) -> Row | list[Row]:
        numbers = range(int(self))
        if isinstance(place, slice):
            return [self._row(number) for number in numbers[place]]
        return self._row(numbers[place])


class PlacedTask(NamedTuple):
    """A task, where it runs, and when it would."""

    task: Task
    kernel: str
    node: int
    start: float
    finish: float


class Transfer(NamedTuple):
    """A tile that goes from a node to another."""

    tile: TileKey
    source: int
    target: int
    bytes: int


class Cost(NamedTuple):
    """What a plan costs, and what the plans it was preferred to would have."""

    seconds: float
    bytes_moved: int
    peak_memory: int
    """On the node that holds most."""
    pruned: str = ""
    """Why it was not looked at to the end."""
    loading: float = 0.0
    """Seconds until every node has loaded its inputs."""
    over: int = 0
    """Bytes above the memory of the node that has too little."""

    @property
    def total(self) -> float:
        """Seconds with loading: what is compared."""
        return self.seconds + self.loading


@dataclass(eq=False, repr=False)
class Plan:
    """Tasks, each with a node, and what that costs."""

    work: Workload
    cluster: Cluster
    policy: str
    """The policy that placed the tasks."""
    placement: Placement
    rivals: Mapping[str, Cost] = field(default_factory=dict[str, Cost])
    """What other policies would have cost."""
    bound: Bound = UNKNOWN
    """How little any plan moves."""
    task_seconds: Seconds | None = None
    """How long tasks take; None: from their operations."""
    loading: float = 0.0
    """Seconds until every node has loaded its inputs; `seconds` begin after that."""

    @cached_property
    def moved(self) -> Transfers:
        """What goes from a node to another, as arrays."""
        return transfers(self.work, self.cluster, self.placement)

    @cached_property
    def simulated(self) -> Simulated:
        """The plan in virtual time."""
        return simulate(self.work, self.cluster, self.placement, self.task_seconds)

    @property
    def tasks(self) -> Rows[PlacedTask]:
        """How many tasks there are; and each of them."""
        return Rows[PlacedTask].of(self.work.count, self._task)

    @property
    def transfers(self) -> Rows[Transfer]:
        """How many tiles go from a node to another; and each of them."""
        return Rows[Transfer].of(len(self.moved), self._transfer)

    @property
    def bytes_moved(self) -> int:
        """Bytes that go from a node to another, in all."""
        return int(self.moved.bytes.sum())

    @property
    def bytes_in(self) -> Numbers:
        """Bytes into each node."""
        return self.moved.into(self.cluster.count)

    @property
    def bytes_out(self) -> Numbers:
        """Bytes out of each node."""
        return self.moved.out_of(self.cluster.count)

    @property
    def peak_memory(self) -> Numbers:
        """Bytes of tiles on each node, at most."""
        return self.simulated.peak

    @property
    def seconds(self) -> float:
        """How long it would take."""
        return self.simulated.seconds

    @property
    def lower_bound(self) -> int | None:
        """Bytes that any plan moves in which as many nodes take part; None if no closed form is known."""
        return self.bound.bytes

    @cached_property
    def cost(self) -> Cost:
        """What is compared with other plans."""
        moved = int(self.work.tile_bytes[self.simulated.tile].sum())
        peak = self.peak_memory
        limits = [np.inf if node.memory is None else node.memory for node in self.cluster.nodes]
        over = int(np.maximum(peak - np.array(limits), 0).max(initial=0.0))
        return Cost(self.seconds, moved, int(peak.max(initial=0)), loading=self.loading, over=over)

    def explain(self) -> str:
        """The plan in a few lines, the least that must move, and what other policies would cost."""
        bound = self.bound
        if bound.bytes is None:
            least = f"{bound.kind}: {bound.why or 'no closed form is known'}"
        else:
            least = f"{bound.kind}, shared among {bound.nodes} nodes: at least {human(bound.bytes)} move"
            if bound.memory_dependent:
                least += f", {human(int(bound.memory_dependent))} of these because memory is short"
        parts = [text(self), f"  bound      {least}", f"  chosen     {self._reason()}"]
        return "\n".join([*parts, "", str(rivals(self))]) if self.rivals else "\n".join(parts)

    def _reason(self) -> str:
        """Why this policy."""
        if not self.rivals:
            return f"{self.policy} was all there was to choose"
        left = sum(1 for cost in self.rivals.values() if cost.pruned)
        told = f"the cheapest of {len(self.rivals) + 1} plans; {left} of them needed no simulation"
        if self.cost.over:
            told += f"; every one needs more memory than there is, this one {human(self.cost.over)}"
        return told

    def table(self) -> Table:
        """What each node does: a list of dictionaries, which prints as a table."""
        return table(self)

    def trace(self, path: str | os.PathLike[str]) -> None:
        """Write the plan in virtual time to a file that https://ui.perfetto.dev shows."""
        write(self, path)

    def __repr__(self) -> str:
        return text(self)

    def _repr_html_(self) -> str:
        return html(self)

    def _task(self, number: int) -> PlacedTask:
        work, simulated = self.work, self.simulated
        kernel = work.bound.program.statements[int(work.statement[number])].kernel
        times = float(simulated.start[number]), float(simulated.finish[number])
        return PlacedTask(work.tasks.task(number), kernel, int(self.placement.nodes[number]), *times)

    def _transfer(self, number: int) -> Transfer:
        moved = self.moved
        ends = int(moved.source[number]), int(moved.target[number])
        return Transfer(self.work.key(int(moved.tile[number])), *ends, int(moved.bytes[number]))
