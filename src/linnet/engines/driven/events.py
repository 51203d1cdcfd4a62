"""What a driven run tells its listeners: what workers elsewhere report, with the times they measured."""

from __future__ import annotations

import time
from collections.abc import Callable

from linnet.engines.driven.tasks import Done, Report
from linnet.engines.execute import Done as Told
from linnet.engines.run_events import Telling
from linnet.events import (
    Event,
    Sink,
    TaskFinished,
    TaskReady,
    TaskStarted,
    TileDropped,
    TileRead,
    TileWritten,
)
from linnet.planning.plan import Plan
from linnet.planning.workload import Workload
from linnet.programs import Call, Task

_OF_TASKS = (TaskReady, TaskStarted, TaskFinished, TileRead, TileWritten)


class Reports(Telling):
    """The events of one job, made from reports."""

    def __init__(
        self,
        events: Sink,
        job: str,
        work: Workload,
        call: Callable[[int], Call],
        plan: Plan | None = None,
    ) -> None:
        """`plan` None: placing is left to the engine below."""
        super().__init__(events, job, elsewhere=True)
        self._work, self._call, self._plan = work, call, plan
        self._when: float | None = None
        self._waiting: list[int] | None = None
        self._lanes: dict[tuple[int, str], int] = {}

    def begin(self, nodes: list[int]) -> None:
        """The job begins, on nodes with so many workers; tasks that wait for nobody are ready."""
        self._slots = [sum(nodes[:place]) for place in range(len(nodes))]
        self._workers_of = nodes
        self.started(self._work.bound.program.name, self._work.count, sum(nodes))
        if self._plan is not None:
            self.planned(self._plan)
        if self.wants(TaskReady):
            waiting: list[int] = self._work.tasks.in_degree.tolist()
            self._waiting = waiting
            self.ready(self._task(number) for number, left in enumerate(waiting) if not left)

    def order_ended(self, node: int, tasks: list[int], report: Report, size: Callable[[int], int]) -> None:
        """Tasks were done on a node, one after another."""
        if not any(
            self.wants(kind) for kind in (TaskStarted, TaskFinished, TaskReady, TileRead, TileWritten)
        ):
            return
        slot = self._slot(node, report.lane)
        for number, done in zip(tasks, report.done, strict=True):
            self._task_done(number, done, slot, size)
            if self._waiting is not None:
                self._let_go(number)
        self._when = None

    def tiles_dropped(self, tiles: list[int], size: Callable[[int], int]) -> None:
        """Tiles that nobody needs any more were let go of."""
        if tiles and self.wants(TileDropped):
            self.dropped((self._work.key(tile), size(tile)) for tile in tiles)

    def _task_done(self, number: int, done: Done, slot: int, size: Callable[[int], int]) -> None:
        work, task, call = self._work, self._task(number), self._call(number)
        self._when = done.start
        self.task_started(task, call, slot)
        read = {work.key(tile): size(tile) for tile in work.reads(number).tolist()}
        written = [(work.key(tile), size(tile)) for tile in work.writes(number).tolist()]
        told = Told(read, written, [], done.seconds)
        self.count(call.kernel, slot, told)
        self._when = done.start + done.seconds
        self.task_finished(task, call, slot, told)

    def _let_go(self, number: int) -> None:
        waiting, tasks = self._waiting, self._work.tasks
        assert waiting is not None
        for child in tasks.children(number).tolist():
            waiting[child] -= 1
            if not waiting[child]:
                self.ready([self._task(child)])

    def _task(self, number: int) -> Task:
        return self._work.tasks.task(number)

    def _slot(self, node: int, lane: str) -> int:
        """A number for a worker of a node, by the process and thread it is."""
        if not 0 <= node < len(self._slots):
            node = 0
        lanes = [known for known in self._lanes if known[0] == node]
        place = self._lanes.setdefault((node, lane), len(lanes))
        return self._slots[node] + place % self._workers_of[node]

    def _emit(self, kind: type[Event], *fields: object) -> None:
        if kind in self._events.wanted:
            when = time.time() if self._when is None else self._when
            self._events.emit(kind(self._job, when, *fields))
