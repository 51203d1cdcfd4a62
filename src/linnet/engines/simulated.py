"""A cluster in virtual time: kernels run here, one after another, but when and where the plan says.

Each node has tiles of its own. A task finds only what the plan brought to its node and has not let go of
since; so a run proves its plan right, and its results are those of any other engine. Times are the
simulator's, from a calibration or from what kernels declare.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from linnet.engines.driven.tasks import Brief, Failed, Order, perform
from linnet.engines.driven.tiles import check_reach, put_in_place
from linnet.engines.engine import Outputs, check_inputs, check_out
from linnet.engines.execute import Done
from linnet.engines.lifetime import Lifetime
from linnet.engines.remote_tiles import writeable
from linnet.engines.run_events import JOBS, Telling
from linnet.engines.task_memory import check_memory
from linnet.errors import InputError, LinnetError
from linnet.events import Event, Events, Sink, TaskReady
from linnet.planning.calibration import Calibration
from linnet.planning.choosing import check_policy, choose
from linnet.planning.cluster import Cluster
from linnet.planning.placement import Policy
from linnet.planning.plan import Plan
from linnet.planning.workload import Workload
from linnet.programs import BoundProgram, Call, Out, Task
from linnet.programs.shapes import Shapes, operands
from linnet.tiles import Index, Tile, TiledArray, TileKey

_NODES = 4


class PlanError(LinnetError):
    """A plan that would not work: a task would not find a tile where it runs."""


@dataclass(frozen=True, slots=True, eq=False)
class Simulation:
    """A run in virtual time."""

    plan: Plan
    """What was followed."""
    seconds: float
    """Virtual time from start to end."""
    bytes_in: NDArray[np.int64]
    """Bytes that each node received, counted as they came."""
    peak_memory: NDArray[np.int64]
    """The most bytes of tiles that each node held at once, counted likewise."""


class Simulated:
    """Runs bound programs on a cluster that is not there.

    >>> from linnet.programs import TileProgram
    >>> double = TileProgram.from_source('''
    ... def double(A: In, B: Out, N: int):
    ...     for i in range(N):
    ...         B[i] = add(A[i], A[i])
    ... ''')
    >>> engine = Simulated(cluster=Cluster(nodes=3))
    >>> a = TiledArray.from_numpy(np.arange(5), tile=2)
    >>> engine.run(double.bind(N=3), {"A": a})["B"].to_numpy()
    array([0, 2, 4, 6, 8])
    >>> engine.last.plan.bytes_moved, engine.last.bytes_in.sum()
    (0, np.int64(0))
    """

    tells_tasks = True
    """Whether events of single tasks cost little."""

    shares_memory = False
    deterministic = True

    def __init__(
        self,
        workers: int | None = None,
        memory: float | str | None = None,
        *,
        cluster: Cluster | None = None,
        policy: str | Policy = "auto",
        calibration: Calibration | None = None,
    ) -> None:
        """`cluster` is what to simulate; None: four nodes with `workers` (one) and `memory` each.

        `policy` places tasks, as in `ln.plan`. `calibration` gives the times of kernels; without one they are
        what kernels declare, at the rates of the nodes (`flops`). A task that needs more than its node has
        is refused.
        """
        if cluster is not None and (workers is not None or memory is not None):
            raise InputError("a cluster was given, and also workers or memory; say these of its nodes")
        check_policy(policy)
        if not isinstance(cluster, Cluster | None):
            raise InputError(f"cluster={cluster!r}: give an ln.Cluster, such as ln.Cluster(nodes=4)")
        if not isinstance(calibration, Calibration | None):
            raise InputError(f"calibration={calibration!r}: give one that calibration.calibrate() made")
        self.cluster: Cluster = cluster or Cluster(_NODES, 1 if workers is None else workers, memory)
        self.policy = policy
        self.calibration = calibration
        self.workers: int = self.cluster.workers
        self.memory: int | None = min((n.memory for n in self.cluster.nodes if n.memory), default=None)
        """Bytes for tiles on the smallest node; None: no limit."""
        self.last: Simulation | None = None
        """The latest run."""
        self._life = Lifetime()

    def run(
        self,
        bound: BoundProgram,
        inputs: Mapping[str, TiledArray],
        *,
        out: Mapping[str, TiledArray] | None = None,
        events: Sink | None = None,
    ) -> Outputs:
        """Run every task of the program; see `Engine.run`. Events carry virtual times."""
        self._life.check()
        check_inputs(bound, inputs)
        check_out(bound, out or {})
        check_reach(bound, inputs)
        plan = self.plan(bound, inputs)
        check_memory(plan)
        telling = _Virtual(Events() if events is None else events, f"{bound.program.name}-{next(JOBS)}")
        run = _Run(plan, inputs, out or {}, telling)
        outputs, self.last = run.outcome(), run.simulation()
        return outputs

    def plan(self, bound: BoundProgram, inputs: Mapping[str, TiledArray]) -> Plan:
        """The plan that a run would follow."""
        self._life.check()
        work = Workload.of(bound, inputs)
        seconds = None if self.calibration is None else self.calibration.seconds(work, self.cluster)
        return choose(work, self.cluster, self.policy, seconds)

    def close(self) -> None:
        """Run nothing any more; there is nothing to shut down, and results are in memory."""
        self._life.end(repr(self))

    def zeros(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """An array for `out`."""
        return np.zeros(shape, dtype)

    def __repr__(self) -> str:
        return f"Simulated({self.cluster!r})"


class _Virtual(Telling):
    """Tells of a run at virtual times, counted from when it began."""

    def __init__(self, events: Sink, job: str) -> None:
        super().__init__(events, job, elsewhere=True)
        self.clock = 0.0

    def _seconds(self) -> float:
        return self.clock

    def _emit(self, kind: type[Event], *fields: object) -> None:
        if kind in self._events.wanted:
            self._events.emit(kind(self._job, self._begun_at + self.clock, *fields))


class _Node:
    """The tiles that lie on one node, and how many will still ask for each."""

    def __init__(self) -> None:
        self.tiles: dict[int, Tile] = {}
        self.uses: dict[int, int] = {}
        """What keeps a tile here: tasks that will read it, transfers that will take it from here, and, where
        it was made, transfers from elsewhere."""
        self.received = self.peak = self._held = 0

    def hold(self, size: int) -> None:
        """Take memory, or give it back."""
        self._held += size
        self.peak = max(self.peak, self._held)


class _Run:
    """One run: tasks in the order in which they start, in virtual time."""

    def __init__(
        self, plan: Plan, inputs: Mapping[str, TiledArray], out: Mapping[str, TiledArray], tell: _Virtual
    ) -> None:
        self._plan, self._inputs, self._out, self._tell = plan, inputs, out, tell
        self._work, self._timing, self._bound = plan.work, plan.simulated, plan.work.bound
        self._keys = [plan.work.key(tile) for tile in range(plan.work.tiles)]
        along = [self._keys[tile] for tile in np.flatnonzero(plan.work.along).tolist()]
        self._along = {key: inputs[key.array].tile(key.index) for key in along}
        """Small inputs, which go along with every task."""
        self._brief = Brief(self._bound, Shapes(self._bound, inputs), dict(np.geterr()), ())
        self._lanes = np.cumsum([0, *(node.workers for node in plan.cluster.nodes)])
        self._node: list[int] = plan.placement.nodes.tolist()
        self._home: list[int] = plan.placement.homes.tolist()
        self._nodes = [_Node() for _ in plan.cluster.nodes]
        self._moves: dict[tuple[int, int], list[int]] = {}
        """Transfers by tile and source."""
        self._count_uses()
        self._waiting: list[int] = self._work.tasks.in_degree.tolist()
        self._made: dict[int, tuple[Call, list[tuple[int, Tile]]]] = {}
        """What running tasks will have made when they are finished."""
        self._coming: list[tuple[float, bool, int, Callable[[int], None], int]] = []
        self._turn = itertools.count()
        self._done = self._latest = 0

    def _count_uses(self) -> None:
        work, moves = self._work, self._timing
        tiles = np.repeat(np.arange(work.tiles), np.diff(work.reader_start)).tolist()
        readers = self._plan.placement.nodes[work.reader].tolist()
        for tile, node in zip(tiles, readers, strict=True):
            self._add_use(tile, node)
        for move, (tile, source) in enumerate(zip(moves.tile.tolist(), moves.source.tolist(), strict=True)):
            self._moves.setdefault((tile, source), []).append(move)
            self._add_use(tile, source)
            if source != self._home[tile]:
                self._add_use(tile, self._home[tile])

    def _add_use(self, tile: int, node: int) -> None:
        uses = self._nodes[node].uses
        uses[tile] = uses.get(tile, 0) + 1

    # ---- the run

    def outcome(self) -> Outputs:
        """Run all tasks, and return the outputs or raise what went wrong."""
        tell, total = self._tell, self._work.count
        tell.started(self._bound.program.name, total, self._plan.cluster.workers)
        tell.planned(self._plan)
        self._tell_ready(task for task in range(total) if not self._waiting[task])
        # Of tasks that start at the same moment, those come first that others wait for.
        place = np.empty(total, np.int64)
        place[self._work.order] = np.arange(total)
        try:
            self._load()
            for task in np.lexsort((place, self._timing.start)).tolist():
                self._advance(float(self._timing.start[task]))
                self._latest = task
                self._start(task)
            self._advance(np.inf)
        except Failed as failed:
            call = self._bound.call(failed.task)
            tell.task_failed(failed.task, call, self._lane(self._latest), failed.error)
            tell.failed(failed.error, self._done, total)
            raise failed.error from failed.cause
        except Exception as error:
            tell.failed(error, self._done, total)
            raise
        except BaseException:  # Ctrl-C, most likely
            tell.cancelled(self._done)
            raise
        tell.finished(self._done, total)
        return Outputs(self._bound, self._results())

    def simulation(self) -> Simulation:
        """What was counted."""
        received = np.array([node.received for node in self._nodes])
        peak = np.array([node.peak for node in self._nodes])
        return Simulation(self._plan, self._plan.seconds, received, peak)

    def _later(self, moment: float, what: Callable[[int], None], number: int) -> None:
        # At one moment memory is given back before a transfer takes some, as in the plan.
        heapq.heappush(self._coming, (moment, what == self._send, next(self._turn), what, number))

    def _advance(self, until: float) -> None:
        """Let everything happen that happens by then."""
        while self._coming and self._coming[0][0] <= until:
            self._tell.clock, _, _, what, number = heapq.heappop(self._coming)
            what(number)
        if until < np.inf:
            self._tell.clock = until

    # ---- tasks

    def _start(self, task: int) -> None:
        """Compute a task; others see its results when its virtual time is over."""
        node = self._nodes[self._node[task]]
        reads: list[int] = self._work.reads(task).tolist()
        writes: list[int] = self._work.writes(task).tolist()
        for tile in reads:
            if tile not in node.tiles:
                raise self._absent(tile, task)
        name = self._task(task)
        call = self._bound.call(name)
        self._tell.task_started(name, call, self._lane(task))
        operand = {self._keys[tile]: node.tiles[tile] for tile in reads}
        operand |= {key: self._along[key] for key in operands(call.args) if key in self._along}
        given = tuple(((0, key),) for key in operand)
        order = Order((name,), given, frozenset(), tuple((self._keys[tile],) for tile in writes))
        _, results = perform(self._brief, order, list(operand.values()))
        made: list[tuple[int, Tile]] = list(zip(writes, results, strict=True))
        for tile, result in made:
            node.hold(result.nbytes)
            if self._keys[tile].array in self._out:
                put_in_place(self._keys[tile], result, self._out)
        self._made[task] = call, made
        self._later(float(self._timing.finish[task]), self._finish, task)

    def _finish(self, task: int) -> None:
        call, made = self._made.pop(task)
        number = self._node[task]
        node = self._nodes[number]
        unread: list[tuple[TileKey, int]] = []
        for tile, result in made:
            self._lie(tile, number, result)
            if not node.uses.get(tile) and not self._work.kept[tile]:
                unread += self._dropped(tile, number)
        self._done += 1
        children: list[int] = self._work.tasks.children(task).tolist()
        for child in children:
            self._waiting[child] -= 1
        self._tell_ready(child for child in children if not self._waiting[child])
        reads: list[int] = self._work.reads(task).tolist()
        if not self._tell.silent:
            read = {self._keys[tile]: node.tiles[tile].nbytes for tile in reads}
            written = [(self._keys[tile], result.nbytes) for tile, result in made]
            seconds = float(self._timing.finish[task] - self._timing.start[task])
            done = Done(read, written, unread, seconds)
            self._tell.count(call.kernel, self._lane(task), done)
            self._tell.task_finished(self._task(task), call, self._lane(task), done)
        for tile in reads:
            self._used(tile, number)

    # ---- tiles

    def _load(self) -> None:
        """Inputs are there from the beginning, where the plan has them."""
        for tile, key in enumerate(self._keys):
            if self._work.producer[tile] < 0 and self._home[tile] >= 0 and key not in self._along:
                found = self._inputs[key.array].tile(key.index)
                self._nodes[self._home[tile]].hold(found.nbytes)
                self._lie(tile, self._home[tile], found)

    def _lie(self, tile: int, node: int, found: Tile) -> None:
        """A tile lies on a node from now on: transfers from there can begin."""
        self._nodes[node].tiles[tile] = found
        for move in self._moves.get((tile, node), ()):
            self._later(float(self._timing.sent[move]), self._send, move)

    def _send(self, move: int) -> None:
        tile, target = int(self._timing.tile[move]), int(self._timing.target[move])
        found = self._nodes[int(self._timing.source[move])].tiles[tile]
        self._nodes[target].hold(found.nbytes)
        self._later(float(self._timing.arrived[move]), self._arrive, move)

    def _arrive(self, move: int) -> None:
        tile, source = int(self._timing.tile[move]), int(self._timing.source[move])
        target = int(self._timing.target[move])
        found = self._nodes[source].tiles[tile]
        self._nodes[target].received += found.nbytes
        self._lie(tile, target, found)
        self._used(tile, source)
        if source != self._home[tile]:
            self._used(tile, self._home[tile])

    def _used(self, tile: int, number: int) -> None:
        """One use of a tile on a node is over; what is used no more goes, save where it is kept."""
        node = self._nodes[number]
        node.uses[tile] -= 1
        if not node.uses[tile] and not (self._work.kept[tile] and self._home[tile] == number):
            self._tell.dropped(self._dropped(tile, number))

    def _dropped(self, tile: int, node: int) -> list[tuple[TileKey, int]]:
        size = self._nodes[node].tiles.pop(tile).nbytes
        self._nodes[node].hold(-size)
        return [(self._keys[tile], size)]

    def _absent(self, tile: int, task: int) -> PlanError:
        return PlanError(
            f"{self._keys[tile]} is not on node {self._node[task]} at {self._timing.start[task]:.6f} s, when "
            f"it is read there: policy {self._plan.policy!r} made a plan that cannot be followed\n"
            f"  in {self._bound.where(self._task(task))}"
        )

    def _results(self) -> dict[str, dict[Index, Tile]]:
        """The tiles of the `Out` arrays, the caller's from now on."""
        found: dict[str, dict[Index, Tile]] = {
            name: {} for name, role in self._bound.program.arrays.items() if isinstance(role, Out)
        }
        for tile, key in enumerate(self._keys):
            if key.array in self._out:
                found[key.array][key.index] = self._out[key.array].tiles[key.index]
            elif key.array in found:
                found[key.array][key.index] = writeable(self._nodes[self._home[tile]].tiles[tile])
        return found

    # ---- names

    def _task(self, number: int) -> Task:
        return self._work.tasks.task(number)

    def _lane(self, task: int) -> int:
        """The number of a worker, counted over all nodes."""
        return int(self._lanes[self._node[task]] + self._timing.worker[task])

    def _tell_ready(self, tasks: Iterable[int]) -> None:
        if self._tell.wants(TaskReady):
            self._tell.ready(map(self._task, tasks))
