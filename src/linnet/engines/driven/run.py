"""A run on a cluster, driven from this process: it follows a plan, task by task.

Each node has a queue of its tasks, in the order of the plan. A task is sent as soon as everything it reads
was sent before it, finished or not: the engine below waits for operands, so that no node waits for this
process. How many orders a node may have at a time is limited, and short tasks go several to an order.

The pieces: `Crew` is what an engine has to offer; `driven.tasks` runs on its workers; `driven.tiles` knows
where tiles are; `driven.lost_nodes` says what to do again when nodes go.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from linnet.engines.driven.events import Reports
from linnet.engines.driven.lost_nodes import Assignment, reassigned
from linnet.engines.driven.tasks import Failed, Order, Report
from linnet.engines.driven.tiles import Holdings
from linnet.engines.lifetime import Lifetime
from linnet.engines.remote_tiles import Lost, Parcel, RemoteOutputs
from linnet.errors import JobError, ProgramError
from linnet.planning.workload import Workload
from linnet.tiles import Tile, TiledArray

_LOOK = 0.25
"""Seconds without news after which one looks whether nodes are gone."""
_SMALL = 1 << 16
"""Bytes of results that go together in one parcel."""
_AHEAD = 1 << 25
"""Bytes of inputs that are sent to a node at a time."""
_SHORT = 2e-3
"""Seconds in a kernel under which tasks go several to an order: an order costs about as much."""
_BATCH_SECONDS = 1e-2
"""Time in kernels that an order of short tasks should take."""
_BATCH = 64
"""The most tasks of an order."""
_PATIENCE = 30.0
"""Seconds for which a node may leave one without an answer and not be gone."""
_ATTEMPTS = 4
"""How often a task may lose its worker before the run gives up."""


class Ended(NamedTuple):
    """The end of an order."""

    number: int
    report: Report | None
    error: BaseException | None
    """`Failed` where a kernel raised, `Lost` where its worker or operands went."""


class Crew(Protocol):
    """Workers of a cluster, for one run."""

    key: str
    """What tells the cluster from others."""
    names: list[str]
    """Of the nodes; those that come during the run are further ones."""
    workers: list[int]
    """Of each node, how many it has."""
    overwrites: bool
    """Whether a tile that arrives at a kernel may be overwritten where it is."""

    def put(self, tiles: list[Tile], node: int) -> list[Any]:
        """References to tiles that are brought to a node, or anywhere if it is -1; `Lost` if it is gone."""
        ...

    def submit(self, number: int, node: int, order: Order, operands: list[Any]) -> list[Any]:
        """Send an order to a node (-1: anywhere); a reference for each parcel it keeps."""
        ...

    def ended(self, timeout: float) -> list[Ended]:
        """Orders that have ended; waits for one, but not longer than the timeout."""
        ...

    def fetch(self, refs: Sequence[Any]) -> list[Any]:
        """The values behind references."""
        ...

    def release(self, refs: Sequence[Any]) -> None:
        """These values are needed no more."""
        ...

    def cancel(self) -> None:
        """Break off all orders that have not ended; they are not heard of again."""
        ...

    def finish(self) -> None:
        """The run is over, well or not."""
        ...

    def there(self, refs: Sequence[Any]) -> list[bool]:
        """Whether the values behind references are on some node that is there."""
        ...

    def gone(self) -> set[int]:
        """Nodes that are no longer there; `names` and `workers` have those that came for them."""
        ...


class _Sent(NamedTuple):
    """An order on its way."""

    node: int
    tasks: list[int]
    reads: list[int]
    """Tiles of other orders that it reads."""
    taken: list[int]
    """Those of them that it may overwrite."""


class Drive:
    """One run: what was sent, and what comes next."""

    def __init__(
        self,
        work: Workload,
        assignment: Assignment,
        inputs: Mapping[str, TiledArray],
        out: Mapping[str, TiledArray],
        crew: Crew,
        telling: Reports,
        life: Lifetime,
    ) -> None:
        self._work, self._crew, self._tell, self._life = work, crew, telling, life
        self._inputs = inputs
        self._nodes, self._homes, self._order = assignment
        self._tiles = Holdings(work, inputs, out, crew)
        self._finished = np.zeros(work.count, bool)
        self._numbers = 0
        self._sent: dict[int, _Sent] = {}
        self._gone: set[int] = set()
        self._stumbles = 0
        self._seconds: dict[int, float] = {}
        self._attempts: dict[int, int] = {}
        self._queue(np.arange(work.count))

    def _queue(self, tasks: NDArray[Any]) -> None:
        """Put tasks into the queues of their nodes, and inputs in the order in which these want them."""
        wanted = np.zeros(self._work.count, bool)
        wanted[tasks] = True
        order = self._order[wanted[self._order]]
        self._queues: dict[int, deque[int]] = {}
        for node in np.unique(self._nodes[order]).tolist():
            self._queues[node] = deque(order[self._nodes[order] == node].tolist())
        self._busy = dict.fromkeys(self._queues, 0)
        self._arrivals: dict[int, deque[int]] = {}
        for tile in self._tiles.inputs_by_use(order):
            self._arrivals.setdefault(int(self._homes[tile]), deque()).append(tile)

    # ---- the run

    def outcome(self) -> RemoteOutputs:
        """Run all tasks; the outputs, or what went wrong."""
        tell, total = self._tell, self._work.count
        tell.begin(self._crew.workers)
        try:
            while self._done < total or not self._brought():
                self._step()
        except Failed as failed:
            self._crew.cancel()
            tell.task_failed(failed.task, self._work.bound.call(failed.task), 0, failed.error)
            tell.failed(failed.error, self._done, total)
            raise failed.error from failed.cause
        except Exception as error:
            self._crew.cancel()
            tell.failed(error, self._done, total)
            raise
        except BaseException:  # Ctrl-C, most likely
            self._crew.cancel()
            tell.cancelled(self._done)
            raise
        finally:
            self._crew.finish()
        tell.finished(self._done, total)
        return RemoteOutputs(self._work.bound, self._tiles.results())

    @property
    def _done(self) -> int:
        return int(np.count_nonzero(self._finished))

    def _brought(self) -> bool:
        """Bring all results that have a place; False if a node, and what it made, was lost meanwhile."""
        while self._finished.all():
            gone = self._crew.gone()
            if gone != self._gone:
                self._recover(gone, [])
            elif self._fetched(everything=True):
                return True
        return False

    def _fetched(self, *, everything: bool = False) -> bool:
        """Bring results that have a place; False if some were lost, which are then made again."""
        try:
            self._tiles.bring(everything=everything)
        except Lost as error:
            self._stumble(error, self._tiles.absent())
            return False
        return True

    def _step(self) -> None:
        self._life.check()
        try:
            while self._send_round():
                pass
        except Lost as error:  # a node that was to get inputs
            self._stumble(error)
            return
        if not self._sent:
            raise self._cycle()
        ended = self._crew.ended(_LOOK)
        lost = [each for each in ended if isinstance(each.error, Lost)]
        for each in sorted(ended, key=lambda one: one.number):  # a task comes after those it waited for
            if each.error is None and each.report is not None:
                self._end(each.number, each.report)
            elif each.error is not None and not isinstance(each.error, Lost):
                raise each.error
        if lost or not ended:
            gone = self._crew.gone()
            if lost or gone != self._gone:
                self._recover(gone, lost)
        self._tell.progress(self._done, self._work.count)
        self._fetched()

    def _cycle(self) -> ProgramError:
        total = self._work.count
        return ProgramError(
            f"{total - self._done:,} of {total:,} tasks of {self._work.bound.program.name} wait for one "
            "another and can never run; a tile is read before, in program order, it is written"
        )

    # ---- sending

    def _send_round(self) -> bool:
        """Send an order to each node that has room; whether any was sent."""
        return sum(self._send(node) for node in self._queues) > 0

    def _send(self, node: int) -> bool:
        """Send the next order of a node, if it has room for one and the next task can be sent."""
        workers = self._crew.workers[node] if node >= 0 else sum(self._crew.workers)
        if self._busy[node] >= 4 * workers + 4:
            return False
        tasks = self._batch(node)
        if not tasks:
            return False
        reads, made = self._read_and_made(tasks)
        self._put(tile for tile in reads if not self._tiles.there(tile))
        taken = [tile for tile in reads if len(tasks) == 1 and self._tiles.last_reader(tile)]
        kept = self._parcels(self._tiles.outliving(made, tasks), alone=len(tasks) == 1)
        parcels, given = self._tiles.gathered(reads)
        key, task = self._work.key, self._work.tasks.task
        order = Order(
            tuple(map(task, tasks)),
            given,
            frozenset(map(key, taken if self._crew.overwrites else ())),
            tuple(tuple(map(key, tiles)) for tiles in kept),
        )
        number = self._numbers = self._numbers + 1
        refs = self._crew.submit(number, node, order, [parcel.ref for parcel in parcels])
        for ref, tiles in zip(refs, kept, strict=True):
            self._tiles.hold(Parcel(ref, node, len(tiles)), tiles)
        self._sent[number] = _Sent(node, tasks, reads, taken)
        self._busy[node] += 1
        return True

    def _batch(self, node: int) -> list[int]:
        """The next tasks of a node that can be sent together; several, if they are known to be short."""
        queue, work = self._queues[node], self._work
        tasks: list[int] = []
        made: set[int] = set()
        seconds = 0.0
        while queue and len(tasks) < _BATCH:
            number = queue[0]
            expected = self._seconds.get(int(work.statement[number]), _SHORT)
            if tasks and (expected >= _SHORT or seconds + expected > _BATCH_SECONDS):
                break
            outside = [tile for tile in work.reads(number).tolist() if tile not in made]
            if not all(self._tiles.available(tile) for tile in outside):
                break
            if tasks and any(self._tiles.elsewhere(tile, node) for tile in outside):
                break  # what is ready should not wait for what comes from another node
            tasks.append(queue.popleft())
            made.update(work.writes(number).tolist())
            seconds += expected
        return tasks

    def _read_and_made(self, tasks: list[int]) -> tuple[list[int], list[int]]:
        """Tiles that an order reads and does not make itself, each once; and those that it makes."""
        reads: dict[int, None] = {}
        made: dict[int, None] = {}
        for number in tasks:
            reads.update((tile, None) for tile in self._work.reads(number).tolist() if tile not in made)
            made.update(dict.fromkeys(self._work.writes(number).tolist()))
        return list(reads), list(made)

    def _parcels(self, tiles: list[int], *, alone: bool) -> list[list[int]]:
        """Results that others need, put together: small ones in one parcel, others each in its own."""
        if len(tiles) > 1 and sum(map(self._tiles.size, tiles)) <= (_SMALL if alone else 16 * _SMALL):
            return [tiles]
        return [[tile] for tile in tiles]

    def _put(self, tiles: Any) -> None:
        """Bring inputs to their nodes, and with them those that these nodes will want next."""
        for tile in tiles:
            if self._tiles.there(tile):
                continue
            node = int(self._homes[tile])
            arrivals = self._arrivals[node]
            together: list[int] = [tile]
            size = self._tiles.size(tile)
            while arrivals and size <= _AHEAD:
                following = arrivals.popleft()
                if following != tile and not self._tiles.there(following):
                    together.append(following)
                    size += self._tiles.size(following)
            values = [self._tiles.given(each) for each in together]
            for each, ref in zip(together, self._crew.put(values, node), strict=True):
                self._tiles.hold(Parcel(ref, node, 1), [each])

    # ---- ends

    def _end(self, number: int, report: Report) -> None:
        sent = self._sent.pop(number, None)
        if sent is None:  # it was given up, and ended all the same
            return
        self._busy[sent.node] -= 1
        node = sent.node
        if node < 0 and report.node in self._crew.names:
            node = self._crew.names.index(report.node)
        for task, done in zip(sent.tasks, report.done, strict=True):
            self._finished[task] = True
            for tile, size in zip(self._work.writes(task).tolist(), done.written, strict=True):
                self._tiles.measured(tile, size, node)
            self._took(int(self._work.statement[task]), done.seconds)
        self._tell.order_ended(node, sent.tasks, report, self._tiles.size)
        self._tell.tiles_dropped(self._tiles.read(sent.tasks), self._tiles.size)
        self._tiles.written(sent.tasks)

    def _took(self, statement: int, seconds: float) -> None:
        known = self._seconds.get(statement)
        self._seconds[statement] = seconds if known is None else 0.8 * known + 0.2 * seconds

    # ---- losses

    def _recover(self, gone: set[int], lost: list[Ended], absent: Sequence[int] = ()) -> None:
        """Nodes or workers went: place again what they had, and do again what was lost with them."""
        struck = {ended.number for ended in lost} | {
            number for number, sent in self._sent.items() if sent.node in gone
        }
        for number in struck & self._sent.keys():
            for task in self._sent[number].tasks:
                self._attempts[task] = self._attempts.get(task, 0) + 1
                if self._attempts[task] >= _ATTEMPTS:
                    raise self._given_up(task, lost)
        self._crew.cancel()
        spoilt = [*absent, *(tile for sent in self._sent.values() for tile in sent.taken)]
        # Where no node went it is their operands that did, and of some one does not know where they were.
        spoilt += [
            tile
            for number in struck & self._sent.keys()
            for tile in self._sent[number].reads
            if gone == self._gone or self._tiles.somewhere(tile)
        ]
        self._sent.clear()
        self._tiles.lose(gone, spoilt)
        again = self._tiles.to_do_again(self._finished)
        self._finished[again] = False
        left = [node for node in range(len(self._crew.workers)) if node not in gone]
        if not left:
            raise JobError("every node of the cluster is gone; start one, and run the program again")
        if gone != self._gone:
            self._gone = set(gone)
            self._nodes, self._homes = reassigned(self._work, self._nodes, self._homes, gone, left)
        self._queue(again)

    def _stumble(self, error: Lost, absent: Sequence[int] = ()) -> None:
        """A node did not answer; whether it is gone may take a while to be known, if no tile is absent."""
        gone = self._crew.gone()
        if gone == self._gone and not absent:
            self._stumbles += 1
            if self._stumbles > _PATIENCE / _LOOK:
                raise error
            time.sleep(_LOOK)
        self._recover(gone, [], absent)

    def _given_up(self, task: int, lost: list[Ended]) -> JobError:
        name = self._work.tasks.task(task)
        why = f": {lost[0].error}" if lost else ""
        return JobError(
            f"the worker of a task was lost {_ATTEMPTS} times{why}\n  in {self._work.bound.where(name)}\n"
            "it may need more memory than its node has: cut the arrays into smaller tiles"
        )
