"""The part of one rank in one run: which task is next, which tiles to fetch, which to hand on.

Tiles are fetched in the order in which they are needed, as far ahead as memory allows: as the plan expects it
to be used, or as much as was given. What the most urgent tasks need is fetched, and they are run, memory or
not. So nothing can get stuck: among all tasks that are not done, the first in the order of the plan has its
operands somewhere, and every rank on the way fetches them for it.
"""

from __future__ import annotations

import contextvars
import heapq
import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from linnet.engines.execute import Done, Executor
from linnet.engines.mpi.derived import Derived
from linnet.engines.mpi.messages import Kind
from linnet.engines.mpi.orders import Order
from linnet.engines.mpi.share import STORE, Share
from linnet.engines.mpi.tiles import RankTiles
from linnet.engines.pool import POOL
from linnet.engines.run_events import Telling
from linnet.engines.worker_blas import BlasThreads
from linnet.kernels.surroundings import in_a_worker
from linnet.programs import Task
from linnet.tiles import Tile, TiledArray, TileKey


class Post(Protocol):
    """How a rank reaches the others."""

    def want(self, source: int, tiles: list[int]) -> None:
        """Ask a rank for tiles."""
        ...

    def give(self, target: int, tile: int, value: Tile, sent: Callable[[], None]) -> None:
        """Send a tile that a rank asked for."""
        ...

    def bring(self, tile: int, value: Tile, sent: Callable[[], None]) -> None:
        """Send a tile of an output to rank 0."""
        ...

    def load(self, tiles: list[int]) -> None:
        """Read tiles that were written down by an earlier run."""
        ...

    def save(self, tile: int, value: Tile, saved: Callable[[], None]) -> None:
        """Write a tile down."""
        ...

    def ended(self) -> None:
        """All is done and sent."""
        ...

    def failed(self, error: BaseException, task: Task | None) -> None:
        """Something went wrong, in a task perhaps."""
        ...


class Work:
    """Tasks and tiles of one rank, guarded by one lock, and the threads that run tasks."""

    def __init__(
        self,
        derived: Derived,
        order: Order,
        inputs: Mapping[str, TiledArray],
        out: Mapping[str, TiledArray],
        telling: Telling,
        blas: BlasThreads,
        post: Post,
        *,
        rank: int,
        workers: int,
        memory: int | None,
    ) -> None:
        """`inputs` has the tiles that lie here; `memory` is a limit for tiles that were made or came here."""
        share = self._share = derived.share
        self._calls, self._work = derived.calls, derived.work
        self._errors: dict[str, Any] = dict(order.errors)
        self._tell, self._blas, self._post = telling, blas, post
        self._rank = rank
        self._results = _Results(share, frozenset(order.placed), rank, saves=bool(order.folder))
        self.tiles: RankTiles = RankTiles(derived.bound, inputs, out, self._uses, collects=rank == 0)
        self._executor = Executor(derived.bound, derived.calls, derived.inputs, self.tiles)
        self._memory = memory
        self._limit = int(derived.peaks[rank]) if memory is None else memory
        self._waiting = list(share.waiting)
        self._ready: list[int] = []
        self._finished = bytearray(len(share.tasks))
        self._low = 0
        """The most urgent of the tasks that are not finished."""
        self._next = 0
        """The first of the tiles to fetch that was not asked for."""
        self._expected: dict[int, int] = {}
        """Tiles that were asked for and are not here, with their bytes."""
        self._asked = 0
        """The sum of these."""
        self._here: set[int] = set()
        self._asking: dict[int, list[int]] = {}
        """Who waits for tiles that are not here yet."""
        self._sending = sum(map(len, share.going.values()))
        self._sending += len(self._results.sent) + len(self._results.saved)
        """Tiles that are still to be sent, or written down."""
        self._free = list(range(rank * workers, (rank + 1) * workers))[::-1]
        self._workers = workers
        self._stopping = self._over = False
        self.done: int = 0
        """Tasks finished."""
        self.moved: int = 0
        """Bytes of tiles that came from other ranks."""
        self.given: int = 0
        """Bytes of inputs that came from rank 0."""
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)

    def _uses(self, key: TileKey) -> int:
        tile = self._share.numbers[key]
        results = self._results
        return self._share.uses.get(tile, 0) + (tile in results.kept) + (tile in results.saved)

    # ---- what others want of it

    def begin(self, present: Mapping[int, Tile]) -> None:
        """Start; `present` has inputs that lie here from an earlier run."""
        share = self._share
        with self._lock:
            for tile, value in present.items():
                if tile in share.keys:
                    self.tiles.borrow(share.keys[tile], value)
            fetched = {each.tile for each in share.coming}
            producer = self._work.producer
            self._here.update(tile for tile in share.uses if producer[tile] < 0 and tile not in fetched)
            self._ready = [index for index, left in enumerate(self._waiting) if not left]
            self._fetch()
            slots = self._called()
            self._end_if_done()
        self._start(slots)

    def wanted(self, target: int, tiles: list[int]) -> None:
        """A rank asks for tiles; it gets them as soon as they are here."""
        with self._lock:
            if self._stopping:
                return
            for tile in tiles:
                if tile in self._here:
                    self._give(tile, target)
                else:
                    self._asking.setdefault(tile, []).append(target)

    def arrived(self, tile: int, value: Tile, kind: Kind | None = None) -> None:
        """A tile that was asked for is here: from a rank, or from where it was written down."""
        with self._lock:
            if self._stopping:
                return
            self._asked -= self._expected.pop(tile, 0)
            self.given += value.nbytes if kind is Kind.INPUT else 0
            self.moved += value.nbytes if kind is Kind.TILE else 0
            self.tiles.put(self._share.keys[tile], value, 0)
            self._is_here(tile)
            self._fetch()
            slots = self._called()
            self._end_if_done()
        self._start(slots)

    def hold_written(self) -> list[tuple[int, Tile]]:
        """Tiles that tasks have written and that are needed here; each is held until `let_go`."""
        with self._lock:
            written = [tile for tile in self._here if self._work.producer[tile] >= 0]
            held = ((tile, self.tiles.hold(self._share.keys[tile])) for tile in written)
            return [] if self._stopping else [(tile, value) for tile, value in held if value is not None]

    def let_go(self, tile: int) -> None:
        """A tile that was held is not any more."""
        with self._lock:
            dropped = self.tiles.release([self._share.keys[tile]])
        self._tell.dropped(dropped)

    def stop(self, patience: float = 0.0) -> None:
        """Begin nothing more; kernels in flight get so many seconds to end."""
        with self._idle:
            self._stopping = True
            self._ready.clear()
            self._asking.clear()
            self._idle.wait_for(lambda: len(self._free) == self._workers, patience)

    # ---- tiles; the lock is held

    def _is_here(self, tile: int) -> None:
        self._here.add(tile)
        for index in self._share.readers.get(tile, ()):
            self._waiting[index] -= 1
            if not self._waiting[index]:
                heapq.heappush(self._ready, index)
        for target in self._asking.pop(tile, ()):
            self._give(tile, target)
        if tile in self._results.sent:
            self._post.bring(tile, self._value(tile), lambda: self._sent(tile))
        if tile in self._results.saved:
            self._post.save(tile, self._value(tile), lambda: self._sent(tile))

    def _give(self, tile: int, target: int) -> None:
        self._post.give(target, tile, self._value(tile), lambda: self._sent(tile))

    def _value(self, tile: int) -> Tile:
        value = self.tiles.get(self._share.keys[tile])
        assert value is not None
        return value

    def _sent(self, tile: int) -> None:
        """A tile has reached another rank, or was written down."""
        with self._lock:
            self._sending -= 1
            if self._stopping:
                return
            dropped = self.tiles.release([self._share.keys[tile]])
            self._fetch()
            slots = self._called()
            self._end_if_done()
        self._tell.dropped(dropped)
        self._start(slots)

    def _fetch(self) -> None:
        """Ask for tiles: those that urgent tasks wait for, and others while there is room."""
        coming = self._share.coming
        if self._next == len(coming):
            return
        urgent = self._low + self._workers
        horizon = self._share.place[urgent] if urgent < len(self._share.place) else self._work.count
        wanted: dict[int, list[int]] = {}
        while self._next < len(coming):
            each = coming[self._next]
            if each.need > horizon and self.tiles.held + self._asked + each.bytes > self._limit:
                break
            self._asked += each.bytes
            self._expected[each.tile] = each.bytes
            wanted.setdefault(each.source, []).append(each.tile)
            self._next += 1
        for source, tiles in wanted.items():
            if source == STORE:
                self._post.load(tiles)
            else:
                self._post.want(source, tiles)

    # ---- tasks

    def _called(self) -> list[int]:
        """Workers that should come; the lock is held."""
        return [self._free.pop() for _ in range(min(len(self._free), len(self._ready)))]

    def _start(self, slots: list[int]) -> None:
        for slot in slots:
            context = contextvars.copy_context()
            POOL.start(lambda slot=slot, context=context: context.run(self._run, slot))

    def _run(self, slot: int) -> None:
        """Run tasks while there are some."""
        self._blas.limit()
        finished: tuple[int, Done] | None = None
        index: int | None = None
        try:
            with np.errstate(**self._errors), in_a_worker():
                while (index := self._step(slot, finished)) is not None:
                    finished = index, self._execute(index, slot)
        except BaseException as error:
            with self._idle:
                self._free.append(slot)
                self._idle.notify_all()
                stopped, self._stopping = self._stopping, True
            if not stopped:
                task = None if index is None else self._calls.task(self._share.tasks[index])
                self._post.failed(error, task)

    def _step(self, slot: int, finished: tuple[int, Done] | None) -> int | None:
        """Hand in a finished task, and take the most urgent one that may run; None: this worker has left."""
        dropped: list[tuple[TileKey, int]] = []
        with self._idle:
            if finished is not None and not self._stopping:
                dropped = self._finish(*finished)
            index = self._taken()
            if index is None:
                self._free.append(slot)
                self._idle.notify_all()
            slots = self._called() if index is not None else []
            self._end_if_done()
        self._start(slots)
        self._tell.dropped(dropped)
        return index

    def _finish(self, index: int, done: Done) -> list[tuple[TileKey, int]]:
        self.done += 1
        self._finished[index] = True
        while self._low < len(self._finished) and self._finished[self._low]:
            self._low += 1
        for key, _ in done.written:
            self._is_here(self._share.numbers[key])
        dropped = self.tiles.release(done.read)
        self._fetch()
        return dropped

    def _taken(self) -> int | None:
        if not self._ready or self._stopping:
            return None
        if self._memory is not None and self._ready[0] != self._low:
            task = self._share.tasks[self._ready[0]]
            made = int(self._work.tile_bytes[self._work.writes(task)].sum())
            if self.tiles.held + made > self._memory:
                return None
        return heapq.heappop(self._ready)

    def _execute(self, index: int, slot: int) -> Done:
        number = self._share.tasks[index]
        call = self._calls.call(number)
        if self._tell.silent:
            return self._executor.run(number, call, 0)
        task = self._calls.task(number)
        self._tell.task_started(task, call, slot)
        try:
            done = self._executor.run(number, call, 0)
        except BaseException as error:
            self._tell.task_failed(task, call, slot, error)
            raise
        self._tell.task_finished(task, call, slot, done)
        return done

    def _end_if_done(self) -> None:
        """The lock is held."""
        fetched = self._next == len(self._share.coming) and not self._expected
        done = self.done == len(self._finished) and fetched and not self._sending
        if done and not self._over and not self._stopping:
            self._over = True
            self._post.ended()

    def held(self) -> dict[int, Tile]:
        """Tiles of outputs that stay here."""
        return {tile: self._value(tile) for tile in self._results.kept - self._results.sent}


class _Results:
    """What becomes of the outputs that a rank writes."""

    def __init__(self, share: Share, placed: frozenset[str], rank: int, *, saves: bool) -> None:
        there = share.results if rank else frozenset[int]()
        brought = {tile for tile in there if share.keys[tile].array in placed}
        self.sent = frozenset(brought - share.brought)
        """Tiles that are sent to rank 0 for their own sake."""
        self.kept = frozenset(there - brought) | self.sent
        """Tiles that are needed once more when all tasks have read them: to be sent, or to stay."""
        loaded = {each.tile for each in share.coming if each.source == STORE}
        self.saved = share.results - loaded if saves else frozenset[int]()
        """Tiles that are written down."""
