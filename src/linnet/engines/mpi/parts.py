"""The runs of one rank, and what other ranks have to say to them."""

from __future__ import annotations

import queue
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import msgpack
import numpy as np
from numpy.typing import NDArray

from linnet.engines.mpi import news
from linnet.engines.mpi.checkpoint import Checkpoint
from linnet.engines.mpi.derived import Derived, Plans, going_on
from linnet.engines.mpi.messages import Header, Kind, check_sendable
from linnet.engines.mpi.orders import Order, held_inputs, learn, read_order
from linnet.engines.mpi.peers import Peers
from linnet.engines.mpi.work import Work
from linnet.engines.pool import POOL
from linnet.engines.run_events import Telling
from linnet.engines.worker_blas import blas_threads
from linnet.errors import LinnetError
from linnet.events import Progress
from linnet.programs import Task
from linnet.tiles import Tile, TiledArray


class Part:
    """One run on this rank, between its work and the other ranks."""

    def __init__(
        self,
        peers: Peers,
        number: int,
        derived: Derived,
        order: Order,
        inputs: Mapping[str, TiledArray],
        out: Mapping[str, TiledArray],
    ) -> None:
        node = derived.cluster.nodes[peers.rank]
        self._peers = peers
        self.number: int = number
        self.derived: Derived = derived
        self._told = news.Told(order.wanted)
        self._stack = ExitStack()
        self._checkpoint = Checkpoint(order.folder, order.name, peers.rank) if order.folder else None
        self.work: Work = Work(
            derived,
            order,
            inputs,
            out,
            Telling(self._told, order.job),
            self._stack.enter_context(blas_threads(node.workers)),
            self,
            rank=peers.rank,
            workers=node.workers,
            memory=node.memory,
        )

    def handle(self, header: Header, source: int, body: Any) -> None:
        """A message for this run."""
        match header.kind:
            case Kind.WANT:
                self.work.wanted(source, np.frombuffer(body, np.int64).tolist())
            case Kind.TILE | Kind.INPUT:
                self.work.arrived(header.number, body, header.kind)
            case _:
                raise AssertionError(f"{header} from rank {source}")

    def place(self, header: Header) -> NDArray[Any] | None:
        """Where a tile goes; None: memory of its own."""
        return None

    def tell(self) -> None:
        """Hand on what happened since the last time."""

    def close(self) -> None:
        """Let go of everything."""
        self._stack.close()
        self.work.tiles.clear()
        if self._checkpoint is not None:
            self._checkpoint.close()

    def counted(self) -> list[int]:
        """Tasks done; bytes from other ranks, of inputs from rank 0, of tiles at once at most."""
        work = self.work
        return [work.done, work.moved, work.given, work.tiles.peak]

    # ---- what its work asks for

    def want(self, source: int, tiles: list[int]) -> None:
        """Ask a rank for tiles."""
        self._peers.send(source, Kind.WANT, self.number, body=np.array(tiles, np.int64).tobytes())

    def give(self, target: int, tile: int, value: Tile, sent: Callable[[], None]) -> None:
        """Send a tile that a rank asked for."""
        check_sendable(value)
        derived = self.derived
        first = derived.work.producer[tile] < 0 and derived.placement.homes[tile] == target
        self._peers.send(target, Kind.INPUT if first else Kind.TILE, self.number, tile, value, sent)

    def bring(self, tile: int, value: Tile, sent: Callable[[], None]) -> None:
        """Send a tile of an output to rank 0."""
        check_sendable(value)
        self._peers.send(0, Kind.RESULT, self.number, tile, value, sent)

    def load(self, tiles: list[int]) -> None:
        """Read tiles that were written down by an earlier run."""
        POOL.start(lambda: self._load(tiles))

    def _load(self, tiles: list[int]) -> None:
        assert self._checkpoint is not None
        try:
            for tile in tiles:
                self.work.arrived(tile, self._checkpoint.load(self.derived.share.keys[tile]))
        except Exception as error:
            self.failed(error, None)

    def save(self, tile: int, value: Tile, saved: Callable[[], None]) -> None:
        """Write a tile down, on another thread."""
        assert self._checkpoint is not None
        self._checkpoint.save(self.derived.share.keys[tile], value, saved, self._not_saved)

    def _not_saved(self, error: Exception) -> None:
        self.failed(error, None)

    def save_all(self) -> None:
        """Write down all that is needed."""
        assert self._checkpoint is not None
        held, keys = self.work.hold_written(), self.derived.share.keys
        for tile, value in held:
            self.save(tile, value, lambda tile=tile: self.work.let_go(tile))
        results = {keys[tile] for tile in self.derived.share.results}
        self._checkpoint.needed(results | {keys[tile] for tile, _ in held}, self.saved, self._not_saved)

    def saved(self) -> None:
        """All that was needed is written down."""
        self._peers.send(0, Kind.SAVED, self.number)

    def ended(self) -> None:
        """All is done and sent."""
        raise AssertionError

    def failed(self, error: BaseException, task: Task | None) -> None:
        """Something went wrong."""
        raise AssertionError


class _Member(Part):
    """A run on a rank other than 0."""

    def __init__(
        self, runs: Members, number: int, derived: Derived, order: Order, names: tuple[Any, ...]
    ) -> None:
        super().__init__(runs.peers, number, derived, order, {}, {})
        self._names = names  # functions of the user's are known while these are held
        self._runs = runs
        self._progress = 0

    def tell(self) -> None:
        events, done = self._told.taken(), self.work.done
        if events or (Progress in self._told.wanted and done != self._progress):
            self._progress = done
            self._peers.send(0, Kind.NEWS, self.number, done, news.packed(events))

    def ended(self) -> None:
        self.tell()
        held = self.work.held()
        for value in held.values():
            check_sendable(value)
        self._runs.keep(self.number, held)
        self._runs.end(self.number)
        self._peers.send(0, Kind.DONE, self.number, body=msgpack.packb(self.counted()))

    def failed(self, error: BaseException, task: Task | None) -> None:
        self.tell()
        self._runs.end(self.number)
        self._peers.send(0, Kind.FAILED, self.number, body=packed_failure(error, task))


def packed_failure(error: BaseException, task: Task | None) -> bytes:
    """An error as rank 0 hears of it; where it was raised, if that is not said in it."""
    known = isinstance(error, LinnetError)
    trace = "" if known else "\n" + "".join(traceback.format_tb(error.__traceback__)).rstrip()
    return msgpack.packb([type(error).__name__, f"{error}{trace}", task])


class Runs:
    """The runs of this rank by their numbers.

    A message to a run may come before this rank has made its plan, or heard of the run: it is kept.
    """

    def __init__(self, peers: Peers) -> None:
        self.peers = peers
        self.plans: Plans = Plans(peers.rank)
        self.lock: threading.Lock = threading.Lock()
        self._parts: dict[int, Part] = {}
        self._announced: set[int] = set()
        self._latest = 0
        self._early: dict[int, list[tuple[Header, int, Any]]] = {}

    def announce(self, number: int) -> None:
        """There will be a run of this number; numbers rise."""
        with self.lock:
            self._latest = number
            self._announced.add(number)
            self.peers.runs += 1

    def add(self, number: int, part: Part) -> None:
        """A run has begun; it is closed at once if it is over already."""
        with self.lock:
            there = number in self._announced
            if there:
                self._parts[number] = part
            early = self._early.pop(number, [])
        if not there:
            part.work.stop()
            part.close()
        else:
            for message in early:
                self._hand_over(part, *message)

    def get(self, number: int) -> Part | None:
        """A run that has begun and is not over."""
        with self.lock:
            return self._parts.get(number)

    def deliver(self, header: Header, source: int, body: Any) -> None:
        """Give a message to its run."""
        with self.lock:
            part = self._parts.get(header.run)
            if part is None and (header.run in self._announced or header.run > self._latest):
                self._early.setdefault(header.run, []).append((header, source, body))
        if part is not None:
            self._hand_over(part, header, source, body)

    def _hand_over(self, part: Part, header: Header, source: int, body: Any) -> None:
        try:
            part.handle(header, source, body)
        except Exception as error:  # a run that fails must not end the thread that talks
            part.failed(error, None)

    def end(self, number: int) -> bool:
        """A run is over here; False if it was before."""
        with self.lock:
            if number not in self._announced:
                return False
            self._announced.discard(number)
            self._early.pop(number, None)
            part = self._parts.pop(number, None)
            self.peers.runs -= 1
        if part is not None:
            part.close()
        return True

    def tick(self) -> None:
        """Let the runs tell what happened."""
        with self.lock:
            parts = list(self._parts.values())
        for part in parts:
            part.tell()


class Members(Runs):
    """What a rank other than 0 does: it waits for runs, and for messages to them."""

    def __init__(self, peers: Peers) -> None:
        super().__init__(peers)
        self._held: dict[int, dict[int, Tile]] = {}
        """Tiles of outputs that stayed here, by run and number."""
        self._orders: queue.SimpleQueue[tuple[int, bytes] | None] = queue.SimpleQueue()

    def serve(self) -> None:
        """Do what rank 0 says, until it says that this is all."""
        self.peers.start(self)
        while (order := self._orders.get()) is not None:
            number, data = order
            try:
                self._begin(number, data)
            except Exception as error:
                if self.end(number):
                    self.peers.send(0, Kind.FAILED, number, body=packed_failure(error, None))
        self.peers.quit()

    def keep(self, number: int, held: dict[int, Tile]) -> None:
        """Tiles of outputs stay here."""
        if held:
            self._held[number] = held

    # ---- called by the thread that talks

    def place(self, header: Header, source: int) -> NDArray[Any] | None:
        """Tiles get memory of their own here."""
        return None

    def handle(self, header: Header, source: int, body: Any) -> None:
        """A message: for a run, or of one."""
        run = header.run
        match header.kind:
            case Kind.START:
                self._hand_on(header, bytes(body))
                self.announce(run)
                self._orders.put((run, bytes(body)))
            case Kind.STOP:
                self._hand_on(header, b"")
                part = self.get(run)
                if part is not None:
                    part.work.stop()
                self.end(run)
            case Kind.SAVE:
                self._hand_on(header, b"")
                part = self.get(run)
                if part is not None:
                    part.save_all()
            case Kind.QUIT:
                self._hand_on(header, b"")
                self._orders.put(None)
            case Kind.FETCH:
                self.peers.send(source, Kind.HELD, run, header.number, self._held[run][header.number])
            case Kind.DROP:
                kept = self._held.get(run, {})
                for tile in np.frombuffer(body, np.int64).tolist():
                    kept.pop(tile, None)
                if not kept:
                    self._held.pop(run, None)
            case _:
                self.deliver(header, source, body)

    def _hand_on(self, header: Header, body: bytes) -> None:
        for target in below(self.peers.rank, self.peers.size):
            self.peers.send(target, header.kind, header.run, header.number, body)

    def _begin(self, number: int, data: bytes) -> None:
        plan, order = read_order(data)
        names = learn(order)
        derived = going_on(self.plans.get(plan), order.stored, self.peers.rank)
        part = _Member(self, number, derived, order, names)
        self.peers.send(0, Kind.PLANNED, number, derived.checksum)
        part.work.begin(self._present(derived, order))
        self.add(number, part)

    def _present(self, derived: Derived, order: Order) -> dict[int, Tile]:
        """Inputs that stayed here from earlier runs."""
        numbers, homes = derived.share.numbers, derived.work.given_homes
        return {
            numbers[key]: self._held[run][tile]
            for key, (run, tile) in held_inputs(order, derived.inputs).items()
            if key in numbers and homes[numbers[key]] == self.peers.rank
        }


def below(rank: int, size: int) -> Sequence[int]:
    """The ranks to which one hands on what comes from rank 0: a tree.

    >>> [below(rank, 7) for rank in range(4)]
    [[1, 2, 4], [3, 5], [6], []]
    """
    found: list[int] = []
    step = 1
    while step <= rank:
        step *= 2
    while rank + step < size:
        found.append(rank + step)
        step *= 2
    return found
