"""One attempt at a task: what it reads, what it computes, what it writes."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic, perf_counter
from typing import Any, cast

import numpy as np

from linnet.errors import InputError, UnwrittenTileError
from linnet.io.web import only
from linnet.kernels import get as get_kernel
from linnet.kernels.surroundings import in_a_worker
from linnet.programs import BoundProgram, Call, In, Task, Temp
from linnet.programs.results import failure, matched
from linnet.programs.shapes import Shapes, operands
from linnet.tiles import Tile, TileKey
from linnet.workers.array_specs import tile_key
from linnet.workers.cache_files import Seen
from linnet.workers.expansion import has_seed
from linnet.workers.files import checking, places
from linnet.workers.names import Seed, name_of
from linnet.workers.queue import Lease
from linnet.workers.spec import JobSpec
from linnet.workers.storable_results import settled
from linnet.workers.traffic import Traffic


@dataclass(slots=True, eq=False)
class Attempt:
    """A task in the hands of a worker."""

    name: str
    task: Task | Seed
    lease: Lease | None
    """None: it is run beside the attempt of another, without a lease."""
    parents: Sequence[str]
    token: int = 0
    number: int = 1
    """How many attempts there were, this one included."""
    deaths: int = 0
    published: Mapping[str, int] = field(default_factory=dict[str, int])
    """The tokens of its parents."""
    call: Call | None = None
    tiles: dict[TileKey, Tile] = field(default_factory=dict[TileKey, Tile])
    """What it reads,"""
    seen: list[Seen] = field(default_factory=list[Seen])
    """and the files that is mapped from, as they were when they were verified."""
    results: list[tuple[TileKey, Tile]] = field(default_factory=list[tuple[TileKey, Tile]])
    """What it computed."""
    seconds: float = 0.0
    """Time inside the kernel."""
    calls_for_more: bool = False
    """Whether what it computed calls for the second part of the job."""


@dataclass(slots=True)
class Batch:
    """Tasks that go through the stages together."""

    attempts: list[Attempt]
    seconds: float = 0.0
    """Of the stage that took longest."""
    tasks: int = field(init=False)
    """How many there were at first."""

    def __post_init__(self) -> None:
        self.tasks = len(self.attempts)

    def took(self, since: float) -> None:
        """A stage is over."""
        self.seconds = max(self.seconds, monotonic() - since)


class Calls:
    """Tasks of one job as calls of kernels."""

    def __init__(self, spec: JobSpec, folder: str, files: Sequence[str] = ()) -> None:
        self.bound: BoundProgram = spec.bound
        self._spec = spec
        self._folder = folder
        self._inputs = spec.inputs
        self._shapes = Shapes(spec.bound, spec.described)
        self._roles = spec.program.arrays
        elsewhere = any("://" in place for place in places(spec.program))
        self._process = os.getpid()
        self._files = checking(files) if elsewhere else None
        """Refuses places of the web to which a server sends kernels on."""

    def parents(self, task: Task | Seed) -> list[str]:
        """Names of the tasks that a task waits for: those that write what it reads; of a seed of the second
        part, the one that decides."""
        if isinstance(task, Task):
            return [name_of(each) for each in self.bound.parents(task)]
        gate = self._spec.gate
        second = gate is not None and task.statement is not None and task.statement >= gate.statement
        return [self._spec.decider] if second else []

    def has_seed(self, seed: Seed) -> bool:
        """Whether a seed is one of this program."""
        return has_seed(self.bound, seed)

    def operands(self, call: Call) -> list[TileKey]:
        """The tiles that a call reads, each once."""
        found: dict[TileKey, None] = {}
        for item in call.args:
            if isinstance(item, TileKey):
                found[item] = None
            elif isinstance(item, tuple | list):
                found.update(dict.fromkeys(operands(item)))
        return list(found)

    def read(self, attempt: Attempt, traffic: Traffic) -> None:
        """Bring what an attempt at a task needs: its call and its tiles."""
        assert isinstance(attempt.task, Task)
        attempt.call = self.bound.call(attempt.task)
        stored: dict[TileKey, str] = {}
        for key in self.operands(attempt.call):
            source = self.source(key, attempt.published)
            if isinstance(source, str):
                stored[key] = source
            else:
                attempt.tiles[key] = source
        for key, (tile, seen) in zip(stored, traffic.stamped(list(stored.values())), strict=True):
            attempt.tiles[key] = tile
            if seen is not None:
                attempt.seen.append(seen)

    def write(self, attempt: Attempt, traffic: Traffic) -> list[tuple[TileKey, Tile]]:
        """Store what an attempt computed, under its token; returns what anybody needs of it."""
        needed = [(key, tile) for key, tile in attempt.results if self.is_needed(key)]
        traffic.write([(tile_key(self._folder, key, attempt.token), tile) for key, tile in needed])
        return needed

    def source(self, key: TileKey, published: Mapping[str, int]) -> str | Tile:
        """Where a tile is stored, or the tile itself if it is filled."""
        role = self._roles[key.array]
        if isinstance(role, In):
            given = self._inputs[key.array]
            if key.index not in given.layout:
                grid = "×".join(map(str, given.layout.grid))
                raise InputError(
                    f"{key} is read, but {key.array} was given as {grid} tiles; bind the program to that grid"
                )
            if key.index in given.absent:
                assert given.fill is not None
                tile = np.full(given.layout.tile_shape(key.index), given.fill, given.dtype, order="F")
                tile.flags.writeable = False
                return tile
            return given.key(self._folder, key)
        writer = self.bound.writer(key)
        if writer is not None:
            return tile_key(self._folder, key, published[name_of(writer)])
        tile = self._shapes.fill(key)
        if tile is None:
            raise UnwrittenTileError(f"{key} is read, but no task writes it")
        return tile

    def lost_input(self, key: TileKey) -> str:
        """Whose tile an input that is not there is, and what can be done."""
        lender = self._inputs[key.array].borrowed
        where = self._inputs[key.array].key(self._folder, key)
        if lender is None:
            return f"{key} (stored as {where}) is missing or damaged; submit the job again"
        return (
            f"{key} is tile {TileKey(lender.array, key.index)} of job {lender.job} (stored as {where}), and "
            "is missing or damaged; only that job can compute it: make its result again, then this one"
        )

    @contextmanager
    def surroundings(self) -> Generator[None]:
        """What kernels find around them: a worker, and the places of the web they may use."""
        with in_a_worker(), only(self._files):
            yield

    def compute(self, attempt: Attempt) -> None:
        """Run the kernel of an attempt whose tiles are there, inside of `surroundings`."""
        call, task = attempt.call, attempt.task
        assert call is not None
        assert isinstance(task, Task)
        kernel = get_kernel(call.kernel)
        arguments = [_filled_in(item, attempt.tiles) for item in call.args]
        start = perf_counter()
        try:
            found = matched(self._returned(kernel.function, arguments, call), kernel.outputs, call)
            attempt.results = settled(found, attempt.tiles.values())
        except (MemoryError, KeyboardInterrupt):
            raise
        except BaseException as error:  # a kernel that exits would take the worker along
            raise failure(error, self.bound, task, call) from error
        attempt.seconds = perf_counter() - start
        attempt.tiles = {}

    def _returned(self, function: Callable[..., Any], arguments: Sequence[Any], call: Call) -> Any:
        """What a kernel returns, in the process that called it.

        A kernel may have forked its process. The other one that comes back from it is no worker, and must not
        go on as if it were: the ledger would be open in two processes.
        """
        try:
            return function(*arguments, **call.attributes)
        finally:
            if os.getpid() != self._process:
                os._exit(0)

    def written(self, call: Call) -> list[TileKey]:
        """The tiles that a call writes."""
        return list(operands(call.outputs))

    def is_needed(self, key: TileKey) -> bool:
        """Whether anybody reads a tile, or it is part of the result."""
        return not isinstance(self._roles[key.array], Temp) or bool(self.bound.readers(key))

    def is_input(self, key: TileKey) -> bool:
        """Whether no task writes a tile."""
        return isinstance(self._roles[key.array], In)

    def is_temporary(self, key: TileKey) -> bool:
        """Whether a tile may be deleted when nobody needs it."""
        return isinstance(self._roles[key.array], Temp)


def _filled_in(item: Any, tiles: Mapping[TileKey, Tile]) -> Any:
    if isinstance(item, TileKey):
        return tiles[item]
    if isinstance(item, list):
        return [_filled_in(each, tiles) for each in cast("list[Any]", item)]
    return item
