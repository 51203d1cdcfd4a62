"""A run, seen from rank 0: it does its own part, tells what happens, and waits for the others."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgpack
import numpy as np
from numpy.typing import NDArray

import linnet.errors as errors
from linnet.engines.mpi import news
from linnet.engines.mpi.derived import Derived
from linnet.engines.mpi.messages import Header, Kind
from linnet.engines.mpi.orders import Order
from linnet.engines.mpi.parts import Part
from linnet.engines.mpi.root import Held, Root
from linnet.engines.remote_tiles import Parcel, RemoteOutputs, RemoteTiles
from linnet.engines.run_events import Telling
from linnet.errors import JobError, KernelError, LinAlgError, LinnetError, named_kind
from linnet.events import Event, Sink
from linnet.programs import BoundProgram, Out, Task
from linnet.programs.shapes import operands
from linnet.tiles import Index, Tile, TiledArray

_GRACE = 1.0
"""Seconds given to kernels in flight when a run is broken off."""
_LOOK = 0.02
"""Seconds between looks at how far a run is."""


class Counted(NamedTuple):
    """What a rank counted in a run."""

    done: int
    """Tasks."""
    moved: int
    """Bytes of tiles that came from other ranks."""
    given: int
    """Bytes of inputs that came from rank 0."""
    peak: int
    """Bytes of tiles at once, at most."""


class RootPart(Part):
    """A run, seen from rank 0."""

    def __init__(
        self,
        root: Root,
        number: int,
        derived: Derived,
        order: Order,
        inputs: Mapping[str, TiledArray],
        out: Mapping[str, TiledArray],
        events: Sink,
        every: float,
    ) -> None:
        """`every` so many seconds tiles are written down, if any are."""
        super().__init__(root.peers, number, derived, order, inputs, out)
        self._root, self._out, self._placed = root, out, frozenset(order.placed)
        self._tell = Telling(events, order.job, elsewhere=True)
        active = derived.left.active
        self._tasks = int(active.sum())
        self._in_order = news.InOrder(events, order.job, root.peers.size, derived.work.tasks, active)
        self._happened: queue.SimpleQueue[tuple[int, int, list[Event]] | None] = queue.SimpleQueue()
        """News of a rank: how many tasks it has done, and events; None: all is over."""
        self._done = [0] * root.peers.size
        self._counting = threading.Lock()
        self._left = set(range(root.peers.size))
        """Ranks that have not done their share."""
        self._missing = self._awaited()
        """Tiles of outputs that other ranks send."""
        self._error: BaseException | None = None
        self._name, self._every, self._last_save = order.name, every, time.monotonic()
        self._saving: set[int] = set()
        """Ranks that are writing down what they need."""
        self.counts: list[Counted] = [Counted(0, 0, 0, 0)] * root.peers.size
        """What the ranks counted."""

    def _awaited(self) -> set[int]:
        work, homes = self.derived.work, self.derived.placement.homes
        found: set[int] = set()
        for name in self._placed & set(work.names):
            array = work.names.index(name)
            tiles = np.flatnonzero((work.tile_array == array) & (homes > 0))
            found.update(tiles.tolist())
        return found - self.derived.share.brought

    # ---- the caller's thread

    def outcome(self, present: Mapping[int, Tile]) -> RemoteOutputs:
        """Do the run; its outputs, or what went wrong."""
        work, tell = self.derived.work, self._tell
        tell.started(work.bound.program.name, self._tasks, self.derived.cluster.workers)
        if self.derived.plan is not None:
            tell.planned(self.derived.plan)
        self._in_order.begin()
        try:
            self.work.begin(present)
            self._root.add(self.number, self)
            self._watch()
        except BaseException:  # Ctrl-C, most likely
            self._break_off()
            tell.cancelled(sum(self._done))
            raise
        if self._error is not None:
            self._break_off()
            tell.failed(self._error, sum(self._done), self._tasks)
            self._fail()
        if self._checkpoint is not None:
            self._checkpoint.tidy(work)
        tell.finished(self._tasks, self._tasks)
        outputs = self._outputs()
        self._root.end(self.number)
        return outputs

    def _watch(self) -> None:
        """Wait for the end, and tell what happens."""
        over = False
        while not over:
            try:
                happened = self._happened.get(timeout=_LOOK)
            except queue.Empty:
                happened = (0, self.work.done, [])
            over = happened is None
            if happened is not None:
                self._hand_on(*happened)
            self._hand_on(0, self.work.done, self._told.taken())
            self._tell.progress(sum(self._done), self._tasks)
            if self._checkpoint is not None:
                self._save_in_time()
        self._in_order.end()

    def _save_in_time(self) -> None:
        """Have all ranks write down what they need, if it is time and all have done so before."""
        with self._counting:
            due = not self._saving and time.monotonic() - self._last_save > self._every
            if due:
                self._saving = set(self._left)
        if due:
            self._last_save = time.monotonic()
            self._root.save(self.number)
            self.save_all()

    def saved(self) -> None:
        """Rank 0 has written down what it needs."""
        self._rank_saved(0)

    def _rank_saved(self, rank: int) -> None:
        with self._counting:
            self._saving.discard(rank)

    def _hand_on(self, rank: int, done: int, events: list[Event]) -> None:
        self._done[rank] = max(self._done[rank], done)
        if events:
            self._in_order.add(rank, events)

    def _break_off(self) -> None:
        self.work.stop()
        self._root.stop(self.number)
        self.work.stop(_GRACE)
        self.close()

    def _fail(self) -> None:
        error, self._error = self._error, None
        assert error is not None
        try:
            raise error
        finally:
            del error  # whoever keeps the error keeps this frame

    # ---- what happens; called by threads that work, and by the one that talks

    def handle(self, header: Header, source: int, body: Any) -> None:
        """A message for this run."""
        match header.kind:
            case Kind.RESULT:
                self._result(header.number, body)
            case Kind.NEWS:
                self._happened.put((source, header.number, news.unpacked(body)))
            case Kind.PLANNED:
                if header.number != self.derived.checksum:
                    self._end(JobError(_other_plan(source, self.derived.bound)))
            case Kind.FAILED:
                self._end(read_failure(body, self.derived.bound, source))
            case Kind.SAVED:
                self._rank_saved(source)
            case Kind.DONE:
                self._rank_done(source, Counted(*msgpack.unpackb(body)))
            case _:
                super().handle(header, source, body)

    def place(self, header: Header) -> NDArray[Any] | None:
        """The place of a result, if it can be received there."""
        key = self.derived.work.key(header.number)
        place = self.work.tiles.place(key)
        fits = (
            place is not None
            and (place.shape, place.dtype.str) == (header.shape, header.dtype)
            and min(place.strides) > 0
        )
        return place if fits else None

    def _result(self, tile: int, value: Tile) -> None:
        self.work.tiles.collect(self.derived.work.key(tile), value)
        with self._counting:
            self._missing.discard(tile)
        self._end_if_done()

    def _rank_done(self, rank: int, counted: Counted) -> None:
        with self._counting:
            self._left.discard(rank)
            self._saving.discard(rank)
            self.counts[rank] = counted
        self._happened.put((rank, counted.done, []))
        self._end_if_done()

    def _end_if_done(self) -> None:
        with self._counting:
            over = not self._left and not self._missing
        if over:
            self._happened.put(None)

    def _end(self, error: BaseException) -> None:
        with self._counting:
            if self._error is None:
                self._error = error
        self._happened.put(None)

    def ended(self) -> None:
        """Rank 0 has done its own share."""
        self._rank_done(0, Counted(*self.counted()))

    def failed(self, error: BaseException, task: Task | None) -> None:
        """A task of rank 0 failed."""
        self._end(error)

    # ---- results

    def _outputs(self) -> RemoteOutputs:
        work, homes = self.derived.work, self.derived.placement.homes
        here = self.work.tiles.results()
        found: dict[str, Mapping[Index, Tile]] = {}
        for name, role in work.bound.program.arrays.items():
            if not isinstance(role, Out):
                continue
            mine = here[name]
            away: dict[Index, int] = {}
            if name in work.names and name not in self._placed:
                tiles = np.flatnonzero((work.tile_array == work.names.index(name)) & (homes > 0))
                away = {work.key(tile).index: tile for tile in tiles.tolist()}
            found[name] = self._remote(name, mine, away) if away else mine
        return RemoteOutputs(work.bound, found)

    def _remote(self, name: str, mine: Mapping[Index, Tile], away: Mapping[Index, int]) -> RemoteTiles:
        homes = self.derived.placement.homes
        run = self._name or f"unnamed {self.number}"
        refs = {
            index: Held(self._root, 0, self.number, -1, f"{run} {name}{index}", tile)
            for index, tile in mine.items()
        }
        for index, tile in away.items():
            refs[index] = Held(self._root, int(homes[tile]), self.number, tile, f"{run} {name}{index}")
        return RemoteTiles(
            self._root, {index: (Parcel(ref, ref.rank, 0), 0) for index, ref in sorted(refs.items())}
        )


def _other_plan(rank: int, bound: BoundProgram) -> str:
    return (
        f"rank {rank} made another plan for {bound.program.name} than rank 0, from the same program: all "
        "ranks must have the same versions of Linnet, NumPy and Python, on processors of the same kind"
    )


def read_failure(data: Any, bound: BoundProgram, rank: int) -> LinnetError:
    """What went wrong on another rank, as an error of the same kind."""
    kind, message, task = msgpack.unpackb(data, use_list=False)
    made = getattr(errors, kind, None)
    if made in (KernelError, LinAlgError) and task is not None:
        found = Task(*task)
        tiles = tuple(dict.fromkeys(operands(bound.call(found).args)))
        where = bound.where(found)
        if made is LinAlgError:  # what is wrong with a matrix is so everywhere, and said in the same words
            return LinAlgError(message, task=found, tiles=tiles, where=where)
        told = f"{message}\n  on rank {rank}"
        return KernelError.of(named_kind(message), told, task=found, tiles=tiles, where=where)
    if isinstance(made, type) and issubclass(made, LinnetError):
        return made(message)
    where = f"\n  in {bound.where(Task(*task))}" if task is not None else ""
    return JobError(f"rank {rank}: {kind}: {message}{where}")
