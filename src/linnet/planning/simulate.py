"""A placement in virtual time: when each task would run, what would move, and how much memory that takes.

What is simulated is what the engines do. A task can be fetched for when all its operands exist somewhere.
Each node has a few tasks in flight more than it has workers; for these it asks for operands it does not
have, each from the node that can send it soonest, be it one that is only just receiving it: so what many
need spreads as a tree. A node sends one tile at a time and receives one. Workers take the most urgent task
whose operands are there. A copy is dropped after its last reader on that node; the tile itself after the last
one anywhere.

`simulate.c` does the same, in microseconds a task less; where it was not built, `_Run` below is taken.
"""

from __future__ import annotations

import ctypes
import heapq
import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.planning.cluster import Cluster
from linnet.planning.compiled import library
from linnet.planning.placement import Nodes, Placement
from linnet.planning.workload import Numbers, Workload, distinct

Seconds = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Simulated:
    """How a placement would run."""

    start: Seconds
    """Of each task."""
    finish: Seconds
    worker: Nodes
    """Of each task, counted on its node."""
    tile: Numbers
    """Transfers: what moves, from where, where to, when it leaves and when it is there."""
    source: Nodes
    target: Nodes
    sent: Seconds
    arrived: Seconds
    peak: Numbers
    """Bytes of tiles on each node, at most."""

    @property
    def seconds(self) -> float:
        """From the first task to the last."""
        return float(self.finish.max(initial=0.0))


def simulate(
    work: Workload, cluster: Cluster, placement: Placement, seconds: Seconds | None = None
) -> Simulated:
    """Run a placement in virtual time; `seconds` are the times of tasks (None: from their operations)."""
    prepared = _Prepared(work, cluster, placement, seconds)
    compiled = library("simulate")
    if compiled is not None:
        prepared.run_compiled(compiled)
    else:
        _Run(prepared).go()
    return prepared.outcome()


def task_seconds(work: Workload, cluster: Cluster, nodes: Nodes) -> Seconds:
    """How long tasks take on their nodes: operations at the node's rate, and reading at its memory's."""
    rates = np.array([node.flops for node in cluster.nodes])
    sizes = np.add.reduceat(np.append(work.tile_bytes[work.read], 0), work.read_start[:-1])
    sizes = np.where(np.diff(work.read_start) > 0, sizes, 0)
    return work.flops / rates[nodes] + cluster.within.latency + sizes / cluster.within.bandwidth


def check_placement(work: Workload, cluster: Cluster, placement: Placement) -> None:
    """Refuse a placement that leaves something nowhere: the compiled simulation reads it as it is."""
    nodes, homes = placement.nodes, placement.homes
    if nodes.size and not (nodes.min() >= 0 and nodes.max() < cluster.count):
        wrong = int(np.flatnonzero((nodes < 0) | (nodes >= cluster.count))[0])
        raise ValueError(
            f"{work.tasks.task(wrong)} is placed on node {nodes[wrong]} of {cluster.count}; every task "
            f"needs a node from 0 to {cluster.count - 1}"
        )
    read = homes[work.read]
    if read.size and not (read.min() >= 0 and read.max() < cluster.count):
        wrong = int(work.read[np.flatnonzero((read < 0) | (read >= cluster.count))[0]])
        raise ValueError(
            f"{work.key(wrong)} is read, but its home is node {homes[wrong]} of {cluster.count}; every tile "
            f"that is read needs a home from 0 to {cluster.count - 1}"
        )


class _Prepared:
    """Tiles on nodes as pairs, each with a number: what a simulation goes through."""

    def __init__(
        self, work: Workload, cluster: Cluster, placement: Placement, seconds: Seconds | None
    ) -> None:
        count, tiles, nodes = work.count, work.tiles, cluster.count
        self.work, self.cluster = work, cluster
        check_placement(work, cluster, placement)
        self.node = np.ascontiguousarray(placement.nodes, np.int32)
        self.rank = np.empty(count, np.int64)
        self.rank[work.order] = np.arange(count)
        taken = task_seconds(work, cluster, self.node) if seconds is None else seconds
        self.seconds = np.ascontiguousarray(taken, np.float64)
        reading = work.read * np.int64(nodes) + np.repeat(self.node, np.diff(work.read_start))
        there = np.flatnonzero(placement.homes >= 0)
        at_home = there * nodes + placement.homes[there]
        codes = distinct(np.concatenate([reading, at_home]))
        self.pair_tile: Numbers = codes // nodes
        self.pair_node = (codes % nodes).astype(np.int32)
        self.pair_start = np.searchsorted(self.pair_tile, np.arange(tiles + 1))
        self.read_pair = np.searchsorted(codes, reading)
        self.home = np.full(tiles, -1, np.int64)
        self.home[there] = np.searchsorted(codes, at_home)
        by_pair = np.argsort(self.read_pair, kind="stable")
        readers = np.repeat(np.arange(count, dtype=np.int32), np.diff(work.read_start))
        self.waiter = readers[by_pair]
        lengths = np.bincount(self.read_pair, minlength=len(codes))
        self.waiter_start = np.concatenate([[0], np.cumsum(lengths)])
        self.workers = np.array([node.workers for node in cluster.nodes], np.int64)
        self.ahead = 3 * self.workers + 1
        self.start, self.finish = np.zeros(count), np.zeros(count)
        self.worker = np.zeros(count, np.int32)
        self.sent, self.arrived = np.full(len(codes), -1.0), np.full(len(codes), -1.0)
        self.source = np.full(len(codes), -1, np.int32)
        self.memory, self.peak = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)

    def run_compiled(self, compiled: ctypes.CDLL) -> None:
        """Hand everything to the compiled simulation."""
        work, cluster = self.work, self.cluster
        numbers = (work.count, work.tiles, cluster.count, len(self.pair_tile))
        costs = (cluster.between.latency, cluster.between.bandwidth, cluster.dispatch)
        arrays: tuple[NDArray[Any], ...] = (
            *(
                self.node,
                self.rank,
                self.seconds,
                work.read_start,
                self.read_pair,
                work.write_start,
                work.write,
            ),
            *(self.pair_start, self.pair_node, self.pair_tile, self.waiter_start, self.waiter, self.home),
            *(work.tile_bytes, work.kept, self.workers, self.ahead, work.producer),
            *(
                self.start,
                self.finish,
                self.worker,
                self.sent,
                self.arrived,
                self.source,
                self.memory,
                self.peak,
            ),
        )
        arguments = _Given(*numbers, *costs, *(array.ctypes.data for array in arrays))
        if not compiled.linnet_simulate(ctypes.byref(arguments)):
            raise MemoryError(f"no memory to simulate {work.count:,} tasks")

    def outcome(self) -> Simulated:
        """What came out, transfers in the order they left."""
        moved = np.flatnonzero(self.source >= 0)
        moved = moved[np.argsort(self.sent[moved], kind="stable")]
        return Simulated(
            start=self.start,
            finish=self.finish,
            worker=self.worker,
            tile=self.pair_tile[moved],
            source=self.source[moved],
            target=self.pair_node[moved],
            sent=self.sent[moved],
            arrived=self.arrived[moved],
            peak=self.peak,
        )


class _Given(ctypes.Structure):
    """A simulation, as `simulate.c` describes it."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("tasks", "tiles", "nodes", "pairs")),
        *((name, ctypes.c_double) for name in ("latency", "bandwidth", "dispatch")),
        *((f"array_{number}", ctypes.c_void_p) for number in range(26)),
    )


_ABSENT, _COMING, _HERE, _GONE = range(4)


class _Run:
    """The simulation in Python, step by step as in `simulate.c`."""

    def __init__(self, given: _Prepared) -> None:
        work, cluster = given.work, given.cluster
        self._given = given
        self._node: list[int] = given.node.tolist()
        self._rank: list[int] = given.rank.tolist()
        self._order: list[int] = work.order.tolist()
        self._reads = _rows(work.read_start, given.read_pair)
        self._writes = _rows(work.write_start, work.write)
        self._pairs = _rows(given.pair_start, np.arange(len(given.pair_tile)))
        self._waiters = _rows(given.waiter_start, given.waiter)
        self._tile_of: list[int] = given.pair_tile.tolist()
        self._node_of: list[int] = given.pair_node.tolist()
        self._home: list[int] = given.home.tolist()
        self._bytes: list[int] = work.tile_bytes.tolist()
        self._kept: list[bool] = work.kept.tolist()
        self._seconds: list[float] = given.seconds.tolist()
        self._ahead: list[int] = given.ahead.tolist()
        self._link, self._dispatch = cluster.between, cluster.dispatch
        self._fetch: list[list[int]] = [[] for _ in cluster.nodes]
        self._runnable: list[list[int]] = [[] for _ in cluster.nodes]
        self._free = [list(range(node.workers)) for node in cluster.nodes]
        self._lacking = [len(reads) for reads in self._reads]
        self._admitted = bytearray(work.count)
        self._state = bytearray(len(given.pair_tile))
        self._available = [0.0] * len(given.pair_tile)
        self._holds = [len(waiters) for waiters in self._waiters]
        self._in_flight = [0] * cluster.count
        self._out_free, self._in_free = [0.0] * cluster.count, [0.0] * cluster.count
        self._events: list[tuple[float, int, int]] = []
        self._turn = 0
        self._now = self._dispatcher = 0.0
        self._producer: list[int] = work.producer.tolist()

    def go(self) -> None:
        """Run everything."""
        for tile, home in enumerate(self._home):
            if home >= 0:
                self._holds[home] += len(self._pairs[tile]) - 1 + (self._producer[tile] >= 0)
        for tile, home in enumerate(self._home):
            if self._producer[tile] < 0 and home >= 0:
                self._take(home)
                self._exists(tile)
        for task, reads in enumerate(self._reads):
            if not reads:
                heapq.heappush(self._fetch[self._node[task]], self._rank[task])
        for node in range(len(self._fetch)):
            self._settle(node)
        tasks = len(self._reads)
        while self._events:
            self._now, _, what = heapq.heappop(self._events)
            if what < tasks:
                self._finished(what)
            else:
                self._arrived(what - tasks)

    def _plan(self, time: float, what: int) -> None:
        heapq.heappush(self._events, (time, self._turn, what))
        self._turn += 1

    def _take(self, pair: int) -> None:
        given, node = self._given, self._node_of[pair]
        given.memory[node] += self._bytes[self._tile_of[pair]]
        given.peak[node] = max(given.peak[node], given.memory[node])

    def _let_go(self, pair: int) -> None:
        self._holds[pair] -= 1
        tile = self._tile_of[pair]
        if self._holds[pair] > 0 or (self._kept[tile] and self._home[tile] == pair):
            return
        self._given.memory[self._node_of[pair]] -= self._bytes[tile]
        self._state[pair] = _GONE

    def _send(self, pair: int) -> None:
        tile, there = self._tile_of[pair], self._node_of[pair]
        holders = [other for other in self._pairs[tile] if self._state[other] in (_COMING, _HERE)]
        soonest, best = min((max(self._available[o], self._out_free[self._node_of[o]]), o) for o in holders)
        source = self._node_of[best]
        begin = max(self._now, soonest, self._in_free[there])
        end = begin + self._link.seconds(self._bytes[tile])
        self._out_free[source] = self._in_free[there] = end
        self._state[pair] = _COMING
        self._available[pair] = end
        self._holds[best] += 1
        given = self._given
        given.source[pair], given.sent[pair], given.arrived[pair] = source, begin, end
        self._take(pair)
        self._plan(end, len(self._reads) + pair)

    def _settle(self, node: int) -> None:
        """Fetch for the next tasks, and begin those that can run."""
        fetch, runnable, free = self._fetch[node], self._runnable[node], self._free[node]
        while fetch and self._in_flight[node] < self._ahead[node]:
            task = self._order[heapq.heappop(fetch)]
            self._in_flight[node] += 1
            self._admitted[task] = 1
            for pair in self._reads[task]:
                if self._state[pair] == _ABSENT:
                    self._send(pair)
            self._lacking[task] = sum(self._state[pair] != _HERE for pair in self._reads[task])
            if not self._lacking[task]:
                heapq.heappush(runnable, self._rank[task])
        while free and runnable:
            self._begin(self._order[heapq.heappop(runnable)], heapq.heappop(free))

    def _begin(self, task: int, worker: int) -> None:
        self._dispatcher = start = max(self._now, self._dispatcher) + self._dispatch
        given = self._given
        given.worker[task], given.start[task] = worker, start
        given.finish[task] = start + self._seconds[task]
        for tile in self._writes[task]:
            self._take(self._home[tile])
        self._plan(start + self._seconds[task], task)

    def _exists(self, tile: int) -> None:
        home = self._home[tile]
        self._state[home] = _HERE
        self._available[home] = self._now
        for pair in self._pairs[tile]:
            for task in self._waiters[pair]:
                self._lacking[task] -= 1
                if not self._lacking[task]:
                    heapq.heappush(self._fetch[self._node_of[pair]], self._rank[task])

    def _finished(self, task: int) -> None:
        node = self._node[task]
        heapq.heappush(self._free[node], int(self._given.worker[task]))
        self._in_flight[node] -= 1
        for tile in self._writes[task]:
            self._exists(tile)
            self._let_go(self._home[tile])  # the task itself held it until now
        for pair in self._reads[task]:
            self._let_go(pair)
        for tile in self._writes[task]:
            for pair in self._pairs[tile]:
                if self._node_of[pair] != node:
                    self._settle(self._node_of[pair])
        self._settle(node)

    def _arrived(self, pair: int) -> None:
        node, tile = self._node_of[pair], self._tile_of[pair]
        self._state[pair] = _HERE
        for task in self._waiters[pair]:
            if self._admitted[task]:
                self._lacking[task] -= 1
                if not self._lacking[task]:
                    heapq.heappush(self._runnable[node], self._rank[task])
        for other in self._pairs[tile]:
            if self._node_of[other] == self._given.source[pair]:
                self._let_go(other)
        self._let_go(self._home[tile])  # it kept the tile for this node
        self._settle(node)


def _rows(start: Numbers, what: NDArray[Any]) -> list[list[int]]:
    """Compressed rows as lists."""
    listed: list[int] = what.tolist()
    return [listed[first:last] for first, last in itertools.pairwise(start.tolist())]
