"""The walks of `walks`, in Python: for builds without a compiler, and to check the compiled ones against."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linnet.planning.placement import Nodes
from linnet.planning.workload import Workload

if TYPE_CHECKING:
    from linnet.planning.policies.walks import Costs

Numbers = NDArray[np.int64]
LATER = -2
"""The wish of a task that is left out: what it makes can be made wherever it is read first."""


class _Rows:
    """Compressed rows as lists: plain integers, which a loop takes faster than NumPy's."""

    def __init__(self, start: NDArray[Any], values: NDArray[Any]) -> None:
        self._start: list[int] = start.tolist()
        self._values: list[int] = values.tolist()

    def __getitem__(self, row: int) -> list[int]:
        return self._values[self._start[row] : self._start[row + 1]]


class _Tables:
    """What every walk looks things up in."""

    def __init__(self, work: Workload, costs: Costs, sizes: Numbers) -> None:
        self.order: list[int] = work.order.tolist()
        self.reads = _Rows(work.read_start, work.read)
        self.writes = _Rows(work.write_start, work.write)
        self.readers = _Rows(work.reader_start, work.reader)
        self.cost: list[list[int]] = costs.task.tolist()
        self.kind: list[int] = costs.kind.tolist()
        self.move: list[int] = costs.move.tolist()
        self.bytes: list[int] = sizes.tolist()
        self.kept: list[bool] = work.kept.tolist()

    def cost_on(self, task: int, node: int) -> int:
        return self.cost[self.kind[node]][task]


def forward(
    work: Workload, count: int, costs: Costs, sizes: Numbers, nodes: Nodes, homes: Nodes, load: Numbers
) -> None:
    """See `Walks.forward`."""
    tables = _Tables(work, costs, sizes)
    node, home, loads = nodes.tolist(), homes.tolist(), load.tolist()
    for task in tables.order:
        local: dict[int, int] = defaultdict(int)
        for tile in tables.reads[task]:
            if home[tile] >= 0:
                local[home[tile]] += tables.move[tile]
        everything = sum(local.values())
        if node[task] < 0:
            if not local:
                continue
            node[task] = min(
                local, key=lambda n: (loads[n] + tables.cost_on(task, n) + everything - local[n], n)
            )
        chosen = node[task]
        loads[chosen] += tables.cost_on(task, chosen) + everything - local.get(chosen, 0)
        for tile in tables.writes[task]:
            home[tile] = chosen
    nodes[:], homes[:], load[:] = node, home, loads


def backward(work: Workload, count: int, costs: Costs, sizes: Numbers, nodes: Nodes, load: Numbers) -> None:
    """See `Walks.backward`."""
    tables = _Tables(work, costs, sizes)
    node, loads = nodes.tolist(), load.tolist()
    for task in reversed(tables.order):
        if node[task] >= 0:
            continue
        readers = {node[r] for tile in tables.writes[task] for r in tables.readers[tile]} - {-1}
        if readers:
            chosen = min(readers, key=lambda n: (loads[n] + tables.cost_on(task, n), n))
            node[task] = chosen
            loads[chosen] += tables.cost_on(task, chosen)
    nodes[:], load[:] = node, loads


@dataclass(slots=True)
class _Loads:
    """The loads of the thesis (eq. 3.2), in elements."""

    memory: list[int]
    into: list[int]
    out: list[int]
    held: list[set[int]] = field(default_factory=list[set[int]])

    def simulated(
        self, tables: _Tables, home: list[int], task: int, node: int, *, keep: bool
    ) -> tuple[int, int]:
        """Eq. 3.2 if a task runs on a node, and that node; with `keep` it does run there."""
        missing = [tile for tile in tables.reads[task] if node not in self.held[tile]]
        moved = sum(tables.bytes[tile] for tile in missing)
        written = sum(tables.bytes[tile] for tile in tables.writes[task])
        sent: dict[int, int] = defaultdict(int)
        for tile in missing:
            sent[home[tile]] += tables.bytes[tile]
        cost = (
            max(max(self.memory), self.memory[node] + moved + written)
            + max(max(self.into), self.into[node] + moved)
            + max(max(self.out), *(self.out[n] + size for n, size in sent.items()), 0)
        )
        if keep:
            self.memory[node] += moved + written
            self.into[node] += moved
            for source, size in sent.items():
                self.out[source] += size
            for tile in missing:
                self.held[tile].add(node)
        return cost, node


def lshs(work: Workload, count: int, costs: Costs, sizes: Numbers, nodes: Nodes, homes: Nodes) -> None:
    """See `Walks.lshs`."""
    tables = _Tables(work, costs, sizes)
    node, home = nodes.tolist(), homes.tolist()
    loads = _Loads([0] * count, [0] * count, [0] * count)
    for tile, place in enumerate(home):
        loads.held.append({place} if place >= 0 else set())
        if place >= 0:
            loads.memory[place] += tables.bytes[tile]
    for task in tables.order:
        if node[task] < 0:
            options = set[int]().union(*(loads.held[tile] for tile in tables.reads[task]))
            _, node[task] = min(loads.simulated(tables, home, task, n, keep=False) for n in options)
        loads.simulated(tables, home, task, node[task], keep=True)
        for tile in tables.writes[task]:
            home[tile] = node[task]
            loads.held[tile].add(node[task])
    nodes[:], homes[:] = node, home


@dataclass(slots=True)
class _State:
    """What each node has to do and hold while tasks are placed one by one."""

    tables: _Tables
    limit: list[int]
    busy: list[int]
    into: list[int]
    out: list[int]
    memory: list[int]
    home: list[int]
    held: list[set[int]]
    left: list[int]
    """Of each tile: reads that are still to be placed."""

    def source(self, tile: int) -> int | None:
        """The holder of a tile that has sent least; None if nobody holds it."""
        return min(self.held[tile], key=lambda n: (self.out[n], n), default=None)

    def price(self, task: int, node: int) -> tuple[int, int, int]:
        """Bytes above the node's memory, then the cost, then the node."""
        tables = self.tables
        moved = need = behind = 0
        for tile in tables.reads[task]:
            if node in self.held[tile]:
                continue
            need += tables.bytes[tile]
            source = self.source(tile)
            if source is not None:
                moved += tables.move[tile]
                behind = max(behind, self.out[source] + tables.move[tile])
        need += sum(tables.bytes[tile] for tile in tables.writes[task])
        cost = self.busy[node] + tables.cost_on(task, node) + self.into[node] + 2 * moved + behind
        over = max(0, self.memory[node] + need - self.limit[node]) if self.limit[node] >= 0 else 0
        return over, cost, node

    def run(self, task: int, node: int) -> None:
        tables = self.tables
        self.busy[node] += tables.cost_on(task, node)
        for tile in tables.reads[task]:
            if node not in self.held[tile]:
                source = self.source(tile)
                if source is None:
                    self.home[tile] = node  # what is free is loaded where it is read first
                else:
                    self.into[node] += tables.move[tile]
                    self.out[source] += tables.move[tile]
                self._hold(tile, node)
            self.left[tile] -= 1
            if not self.left[tile]:
                self._let_go(tile)
        for tile in tables.writes[task]:
            self.home[tile] = node
            if self.left[tile] or tables.kept[tile]:
                self._hold(tile, node)

    def _hold(self, tile: int, node: int) -> None:
        self.held[tile].add(node)
        self.memory[node] += self.tables.bytes[tile]

    def _let_go(self, tile: int) -> None:
        """A tile that nobody will read again goes everywhere, but one that is kept stays at home."""
        stays = {self.home[tile]} if self.tables.kept[tile] else set[int]()
        for node in self.held[tile] - stays:
            self.memory[node] -= self.tables.bytes[tile]
        self.held[tile] &= stays


def greedy(
    work: Workload,
    count: int,
    costs: Costs,
    sizes: Numbers,
    wish: Nodes,
    memory: Numbers,
    nodes: Nodes,
    homes: Nodes,
) -> None:
    """See `Walks.greedy`."""
    tables = _Tables(work, costs, sizes)
    home, wishes = homes.tolist(), wish.tolist()
    left: list[int] = np.diff(work.reader_start).tolist()
    held = [{place} if place >= 0 else set[int]() for place in home]
    busy, into, out, used = ([0] * count for _ in range(4))
    state = _State(tables, memory.tolist(), busy, into, out, used, home, held, left)
    for tile, place in enumerate(home):
        if place >= 0:
            state.memory[place] += tables.bytes[tile]
    for task in tables.order:
        if wishes[task] == LATER:
            continue
        options = set[int]().union(*(held[tile] for tile in tables.reads[task]))
        if wishes[task] >= 0:
            options.add(wishes[task])
        best = min((state.price(task, n) for n in options), default=None)
        if best is None or best[0]:  # nobody has an operand, or nobody who has has room: anybody may
            rest = min(state.price(task, n) for n in range(count))
            best = rest if best is None or rest[:2] < best[:2] else best
        nodes[task] = best[2]
        state.run(task, best[2])
    homes[:] = home
