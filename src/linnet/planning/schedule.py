"""Which task runs next: a pure state machine, without threads, clocks or tiles.

Tasks are numbers, as in `task_arrays()`. The most urgent of the ready tasks is the one
with the longest way to the end of the program: if it waits, everything waits.
"""

from __future__ import annotations

import heapq
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]

_NARROW = 16
"""Levels of fewer tasks are walked one by one: array operations would cost more than they save."""


class Graph(Protocol):
    """The tasks and their order, as `task_arrays()` gives them."""

    @property
    def child_start(self) -> Numbers: ...
    @property
    def child(self) -> Numbers: ...
    @property
    def in_degree(self) -> Numbers: ...


class Ranking:
    """Tasks by urgency, as `in_order` has it: it depends on the graph alone, and is worked out once."""

    def __init__(self, graph: Graph, *, sparing: bool = False) -> None:
        count = len(graph.in_degree)
        self.order: Numbers = in_order(graph, sparing=sparing)
        """Tasks, the most urgent first."""
        self.ranks: NDArray[np.int64] = np.empty(count, np.int64)
        """The place of each task in that order."""
        self.ranks[self.order] = np.arange(count)
        self.roots: NDArray[np.int64] = np.sort(self.ranks[graph.in_degree == 0])
        """Places of the tasks that wait for nobody."""


class Schedule:
    """The tasks that are ready, running and done.

    >>> from types import SimpleNamespace
    >>> diamond = SimpleNamespace(  # 0 before 1 and 2, both before 3
    ...     child_start=np.array([0, 2, 3, 4, 4]),
    ...     child=np.array([1, 2, 3, 3]),
    ...     in_degree=np.array([0, 1, 1, 2]),
    ... )
    >>> schedule = Schedule(diamond)
    >>> schedule.take(), schedule.ready
    (0, 0)
    >>> schedule.finish(0)
    [1, 2]
    >>> schedule.take(), schedule.take(), schedule.running
    (1, 2, 2)
    """

    def __init__(self, graph: Graph, ranking: Ranking | None = None) -> None:
        """`ranking` is the graph's, if it is known already."""
        self.total: int = len(graph.in_degree)
        """Tasks in all."""
        self.running: int = 0
        """Tasks taken and not finished."""
        self.done: int = 0
        """Tasks finished."""
        # Views of arrays, not lists: they give plain integers too, and take a tenth of the memory.
        self._start: Any = graph.child_start.data
        self._child = graph.child
        self._waiting: Any = graph.in_degree.copy().data
        ranking = ranking or Ranking(graph)
        # A heap of ranks, so that comparing two tasks is comparing two integers.
        self._rank: Any = ranking.ranks.data
        self._task: Any = ranking.order.data
        self._heap: list[int] = ranking.roots.tolist()

    @property
    def ready(self) -> int:
        """How many tasks wait to be taken."""
        return len(self._heap)

    @property
    def alone(self) -> bool:
        """Whether one task runs and none is ready: until it is done, none will be."""
        return self.running == 1 and not self._heap

    @property
    def finished(self) -> bool:
        """Whether every task is done."""
        return self.done == self.total

    @property
    def stuck(self) -> bool:
        """Whether tasks are left that can never become ready: they wait for one another."""
        return not self._heap and not self.running and not self.finished

    @property
    def next(self) -> int:
        """The most urgent ready task; there must be one."""
        return self._task[self._heap[0]]

    def waiting(self) -> list[int]:
        """Tasks ready now, most urgent first; for reports."""
        return [self._task[rank] for rank in sorted(self._heap)]

    def children(self, task: int) -> int:
        """How many tasks wait for this one."""
        return self._start[task + 1] - self._start[task]

    def rank(self, task: int) -> int:
        """The place of a task in the order of urgency, 0 for the most urgent."""
        return self._rank[task]

    def give_back(self, task: int) -> None:
        """A task that was taken does not run yet, and is ready again."""
        self.running -= 1
        heapq.heappush(self._heap, self._rank[task])

    def take(self) -> int:
        """The most urgent ready task, now running; there must be one."""
        self.running += 1
        return self._task[heapq.heappop(self._heap)]

    def finish(self, task: int) -> list[int]:
        """A running task is done; returns the tasks that this made ready."""
        self.running -= 1
        self.done += 1
        made_ready: list[int] = []
        first, last = self._start[task], self._start[task + 1]
        if first == last:
            return made_ready
        waiting = self._waiting
        for child in self._child[first:last].tolist():
            left = waiting[child] - 1
            waiting[child] = left
            if not left:
                made_ready.append(child)
                heapq.heappush(self._heap, self._rank[child])
        return made_ready


_FEW = 8
"""Results that wait for their readers and are never too many."""
_SHORT_WAY = 16
"""Tasks one after another which need no hurry: factorisations have longer ways, expressions seldom do."""
MANY_TASKS = 200_000
"""Tasks from which on the longest way decides alone: to look at both orders would take too long."""


def in_order(graph: Graph, *, sparing: bool = False, sizes: Numbers | None = None) -> Numbers:
    """Tasks, each after those it waits for: the longest way to the end first.

    What is started is finished first where memory is short (`sparing`), and where no way is long and this
    leaves at most half as many results waiting for their readers (or half as large ones, where the `sizes`
    of what tasks make are known).
    """
    if sparing:
        return finishing(graph)
    heights = longest_paths(graph)
    order = np.argsort(-heights, kind="stable")
    if len(order) > MANY_TASKS or heights.max(initial=0) > _SHORT_WAY:
        return order
    if waiting(graph, order) <= _FEW:
        return order
    other = finishing(graph)
    return other if 2 * waiting(graph, other, sizes) <= waiting(graph, order, sizes) else order


def waiting(graph: Graph, order: Numbers, sizes: Numbers | None = None) -> float:
    """The most results that wait for a reader at a time, if tasks run one by one in this order.

    With the `sizes` of what tasks make: the most that all these results take together.

    >>> from types import SimpleNamespace
    >>> graph = SimpleNamespace(  # 0 before 2, 1 before 3
    ...     child_start=np.array([0, 1, 2, 2, 2]), child=np.array([2, 3]), in_degree=np.array([0, 0, 1, 1])
    ... )
    >>> waiting(graph, np.array([0, 1, 2, 3])), waiting(graph, np.array([0, 2, 1, 3]))
    (2.0, 1.0)
    """
    count = len(order)
    read = np.flatnonzero(np.diff(graph.child_start))
    if not len(read):
        return 0.0
    place = np.empty(count, np.int64)
    place[order] = np.arange(count)
    last = np.maximum.reduceat(place[graph.child], graph.child_start[read])
    weights = np.ones(len(read)) if sizes is None else sizes[read]
    made, gone = (np.bincount(places, weights, minlength=count) for places in (place[read], last))
    return float((made - gone).cumsum().max())


def longest_paths(graph: Graph) -> Numbers:
    """For each task, how many tasks lie on the longest way from it to the end, itself included.

    Tasks on a cycle get 0.

    >>> from types import SimpleNamespace
    >>> longest_paths(
    ...     SimpleNamespace(child_start=np.array([0, 1, 1]), child=np.array([1]), in_degree=np.array([0, 1]))
    ... )
    array([2, 1])
    """
    start, child = graph.child_start, graph.child
    starts: Any = start.data  # views of the same memory that give plain integers
    children: Any = child.data
    heights = np.zeros(len(graph.in_degree), np.int64)
    height: Any = heights.data
    for level in reversed(_levels(graph)):
        if len(level) <= _NARROW:
            for task in level.tolist():
                best = 0
                for position in range(starts[task], starts[task + 1]):
                    below = height[children[position]]
                    if below > best:
                        best = below
                height[task] = best + 1
        else:
            edges, counts = _edges(start, level)
            best = np.zeros(len(level), np.int64)
            if len(edges):
                some = counts > 0
                firsts = (np.cumsum(counts) - counts)[some]
                best[some] = np.maximum.reduceat(heights[child[edges]], firsts)
            heights[level] = best + 1
    return heights


def finishing(graph: Graph) -> Numbers:
    """Tasks in an order that finishes what is started: what a task needs comes right before it.

    From each end of the program, in turn, one goes back to what it needs and was not there yet;
    so few results wait for their readers. Tasks on a cycle come last.

    >>> from types import SimpleNamespace
    >>> finishing(  # 0 before 2, 1 before 3
    ...     SimpleNamespace(
    ...         child_start=np.array([0, 1, 2, 2, 2]),
    ...         child=np.array([2, 3]),
    ...         in_degree=np.array([0, 0, 1, 1]),
    ...     )
    ... )
    array([0, 2, 1, 3])
    """
    count = len(graph.in_degree)
    lengths = np.diff(graph.child_start)
    parents = np.repeat(np.arange(count), lengths)[np.argsort(graph.child, kind="stable")].data
    starts = np.concatenate([[0], np.cumsum(np.bincount(graph.child, minlength=count))]).data
    place = starts[:-1].tolist()  # for each task the next of its parents to look at
    seen = bytearray(count)
    order: list[int] = []
    for end in np.flatnonzero(lengths == 0).tolist():
        path = [end]
        while path:
            task = path[-1]
            if place[task] < starts[task + 1]:
                parent = parents[place[task]]
                place[task] += 1
                if not seen[parent]:
                    seen[parent] = 1
                    path.append(parent)
            else:
                order.append(path.pop())
        seen[end] = 1
    if len(order) < count:
        left = np.ones(count, bool)
        left[order] = False
        order += np.flatnonzero(left).tolist()
    return np.array(order, np.int64)


def _levels(graph: Graph) -> list[Numbers]:
    """Tasks by their distance from the roots; each comes after all its parents."""
    start, child = graph.child_start, graph.child
    starts: Any = start.data
    children: Any = child.data
    missing = graph.in_degree.copy()
    left: Any = missing.data
    level = np.flatnonzero(missing == 0)
    levels: list[Numbers] = []
    while len(level):
        levels.append(level)
        if len(level) <= _NARROW:
            next_level: list[int] = []
            for task in level.tolist():
                for position in range(starts[task], starts[task + 1]):
                    reached = children[position]
                    left[reached] -= 1
                    if not left[reached]:
                        next_level.append(reached)
            level = np.array(next_level, np.int64)
        else:
            reached = child[_edges(start, level)[0]]
            # bincount would cost as much as there are tasks, at every level.
            hit, times = np.unique(reached, return_counts=True)
            missing[hit] -= times
            level = hit[missing[hit] == 0]
    return levels


def _edges(start: Numbers, tasks: Numbers) -> tuple[Numbers, Numbers]:
    """Positions in `child` of all edges out of these tasks, and how many each task has."""
    firsts = start[tasks]
    counts = start[tasks + 1] - firsts
    offsets = np.cumsum(counts) - counts
    shifts = cast("Numbers", np.repeat(firsts - offsets, counts))
    return shifts + np.arange(len(shifts)), counts
