"""Which tiles are in memory, when there is a budget: a state machine beside the schedule.

A task starts only when its tiles fit beside those of the tasks that run; tiles nobody uses
at the moment make room, the one needed latest first. When a tile is needed next is known
before it happens: its readers are, and the order in which they will be taken.

What counts: intermediate tiles, results, whatever lies in mapped files, and what is remembered
of every tile. Arrays the caller holds in memory are the caller's. `admit` and `end` are called with
the run's lock held; `prepare`, which copies from and to disk, without it.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager

from linnet.engines.budget import Budget, Needs
from linnet.engines.mapped_tiles import loaded
from linnet.engines.store import TileStore
from linnet.engines.task_list import TaskList
from linnet.planning.schedule import Schedule
from linnet.programs import BoundProgram, Call, Out, Temp
from linnet.programs.shapes import operands
from linnet.tiles import TiledArray, TileKey

_NEVER = 2**62
_LOADERS = 16
"""Locks for tiles that are loaded: two tasks that need the same tile at once load it once."""

_REMEMBERED = 600
"""Bytes for each tile of a program, in memory or not: its key, size, readers, place on disk. Measured."""
_MOST_REMEMBERED = 4
"""A part of the budget that these are counted to at most, lest no room be left for the tiles."""


class Residency:
    """Tiles in memory, tiles in use, and room set aside for results."""

    def __init__(
        self,
        budget: Budget,
        needs: Needs,
        bound: BoundProgram,
        plan: TaskList,
        schedule: Schedule,
        store: TileStore,
        given: Mapping[str, TiledArray],
    ) -> None:
        """`given` holds the arrays the caller provides: inputs, and outputs with a place of their own."""
        self._budget = budget.bytes
        remembered = min(_REMEMBERED * needs.tiles, budget.bytes // _MOST_REMEMBERED)
        self._room = budget.bytes - remembered
        self._scratch = budget.scratch
        self._needs = needs
        self._bound = bound
        self._plan = plan
        self._schedule = schedule
        self._store = store
        roles = bound.program.arrays
        made = {name for name, role in roles.items() if isinstance(role, Temp | Out) and name not in given}
        self._made = frozenset(made)
        self._loading = [threading.Lock() for _ in range(_LOADERS)]
        self._resident: dict[TileKey, int] = {}
        self._pins: dict[TileKey, int] = {}
        self._reserved: dict[int, int] = {}
        self._used = 0
        self._pinned = 0
        self._uses: dict[TileKey, list[int]] = {}
        self._heap: list[tuple[int, TileKey]] = []
        self._finished = bytearray(schedule.total)
        self._victims: dict[int, list[TileKey]] = {}
        self.spilled: int = 0
        """Bytes written to disk so far."""

    # ---- with the lock held

    def admit(self, number: int) -> bool:
        """Whether the task can start now; if so its tiles are held until `end`."""
        call = self._plan.call(number)
        sizes = {key: self._size(key) for key in operands(call.args) if self._counts(key)}
        largest = max(sizes.values(), default=0)
        # What nobody wrote is a fill, made for this task alone.
        fills = {key for key in operands(call.args) if self._store.get(key) is None}
        reserve = self._needs.scratch(call) + sum(self._needs.bytes(key) or 0 for key in fills)
        for key in operands(call.outputs):
            size = self._needs.bytes(key)
            reserve += largest if size is None else size
        more = sum(size for key, size in sizes.items() if key not in self._pins)
        held = self._pinned + sum(self._reserved.values())
        if held + more + reserve > (self._room if self._reserved else self._budget):
            if not self._reserved:
                raise self._needs.refusal(self._plan.task(number), call, more + reserve, self._budget)
            return False
        for key, size in sizes.items():
            self._pin(key, size)
        self._reserved[number] = reserve
        self._used += reserve
        self._victims[number] = self._choose()
        return True

    def end(self, number: int, read: Mapping[TileKey, int], written: list[tuple[TileKey, int]]) -> None:
        """A task is done: what it read may go, what it wrote is there."""
        self._used -= self._reserved.pop(number)
        self._finished[self._schedule.rank(number)] = 1
        for key in read:
            if key in self._pins:
                self._unpin(key)
        for key, size in written:
            if self._counts(key) and self._in_memory(key):
                self._resident[key] = size
                self._used += size
                if len(written) == 1:  # with several results, who reads which is worked out for each
                    self._uses[key] = self._readers_of(number)
                heapq.heappush(self._heap, (-self._next_use(key), key))

    def _counts(self, key: TileKey) -> bool:
        """Whether a tile takes memory of the budget: one that was made here, or that lies in a file."""
        return key.array in self._made or key in self._store.on_disk

    def _in_memory(self, key: TileKey) -> bool:
        tile = self._store.get(key)
        return tile is not None and tile is not self._store.on_disk.get(key)

    def _size(self, key: TileKey) -> int:
        tile = self._store.get(key)
        return 0 if tile is None else tile.nbytes

    def _pin(self, key: TileKey, size: int) -> None:
        if key not in self._resident:
            self._resident[key] = size
            self._used += size
        if key not in self._pins:
            self._pinned += size
        self._pins[key] = self._pins.get(key, 0) + 1

    def _unpin(self, key: TileKey) -> None:
        self._pins[key] -= 1
        if self._pins[key]:
            return
        del self._pins[key]
        size = self._resident[key]
        self._pinned -= size
        if self._store.get(key) is None:  # that was its last reader
            self._leave(key)
            self._uses.pop(key, None)
        else:
            heapq.heappush(self._heap, (-self._next_use(key), key))

    def _leave(self, key: TileKey) -> None:
        self._used -= self._resident.pop(key)

    def _choose(self) -> list[TileKey]:
        """Tiles that leave memory so that the rest fits, those needed latest first."""
        chosen: list[TileKey] = []
        while self._used > self._room and self._heap:
            latest, key = heapq.heappop(self._heap)
            if key not in self._resident or key in self._pins:
                continue
            now = -self._next_use(key)
            if now != latest:
                heapq.heappush(self._heap, (now, key))
                continue
            self._leave(key)
            chosen.append(key)
        return chosen

    def _next_use(self, key: TileKey) -> int:
        """Where in the order of tasks the next reader of a tile stands."""
        uses = self._uses.get(key)
        if uses is None:
            readers = self._bound.readers(key)
            uses = self._uses[key] = sorted(self._schedule.rank(self._plan.arrays.number(t)) for t in readers)
        while uses and self._finished[uses[0]]:
            del uses[0]
        return uses[0] if uses else _NEVER

    def _readers_of(self, number: int) -> list[int]:
        return sorted(map(self._schedule.rank, self._plan.arrays.children(number).tolist()))

    # ---- without the lock

    def prepare(self, number: int, call: Call, lock: AbstractContextManager[object]) -> None:
        """Bring the tiles of an admitted task into memory, after those chosen have left it."""
        for key in self._victims.pop(number):
            self._drop(key, lock)
        on_disk = self._store.on_disk
        for key in operands(call.args):
            if key not in on_disk:
                continue
            with self._loading[hash(key) % _LOADERS]:
                tile = self._store.get(key)
                if tile is not None and tile is on_disk.get(key):
                    copy = loaded(tile)
                    with lock:
                        self._store.moved(key, tile, copy)

    def _drop(self, key: TileKey, lock: AbstractContextManager[object]) -> None:
        """Let go of a tile in memory; one that is not on disk is written there first."""
        tile, copy = self._store.get(key), self._store.on_disk.get(key)
        if tile is None or tile is copy:
            return
        slot = None
        if copy is None:
            copy, slot = self._store.spilled(key, tile)
            self.spilled += tile.nbytes
        with lock:
            # Meanwhile a task may have asked for it, or its last reader has come and gone.
            kept = key not in self._pins and self._store.moved(key, tile, copy, slot)
        if slot is not None and not kept:
            self._scratch.give_back(slot, tile.nbytes)
