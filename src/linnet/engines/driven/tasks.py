"""What a worker elsewhere does for a run that is driven from one process: Ray's workers, and Dask's.

A run sends its brief once to each process: the program, the layouts of its inputs, and those of its kernels
that the process may not know. Then come orders, a few tasks each, with tiles of other orders as operands.
"""

from __future__ import annotations

import importlib
import os
import pickle
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple, cast

import numpy as np

from linnet.engines.store import detached
from linnet.engines.worker_blas import blas_threads
from linnet.errors import FileError, JobError, LinnetError
from linnet.kernels import Kernel, registry
from linnet.kernels import get as get_kernel
from linnet.kernels.arrays import user_functions
from linnet.kernels.surroundings import in_a_worker
from linnet.programs import BoundProgram, Call, Task
from linnet.programs.grammar import Attribute
from linnet.programs.results import failure, matched, paired
from linnet.programs.shapes import Shapes, operands
from linnet.tiles import Tile, TiledArray, TileKey

Keys = tuple[TileKey, ...]
_KEPT = 16
"""Briefs that a process keeps: of runs that overlap, and of some that are over."""


class Order(NamedTuple):
    """Tasks for one worker, done one after another."""

    tasks: tuple[Task, ...]
    given: tuple[tuple[tuple[int, TileKey], ...], ...]
    """For each operand of the order, which of the tiles in it are read, and under which keys."""
    taken: frozenset[TileKey]
    """Operands that nobody else will read: they may be overwritten."""
    kept: tuple[Keys, ...]
    """Results that others need, as they are to be put together."""


class Done(NamedTuple):
    """What became of one task."""

    start: float
    """When its kernel began, as `time.time()` tells it."""
    seconds: float
    """Time inside the kernel."""
    written: tuple[int, ...]
    """Bytes of its results."""


class Report(NamedTuple):
    """What became of an order."""

    lane: str
    """The thread that did it: its process and its number."""
    done: tuple[Done, ...]
    node: str = ""
    """Where it was done, as the engine calls it."""


class Failed(Exception):
    """A task failed; the error is the one that the caller of the run is to see."""

    def __init__(self, task: Task, error: LinnetError, cause: Exception | None) -> None:
        super().__init__(task, error, cause)
        self.task: Task = task
        self.error: LinnetError = error
        self.cause: Exception | None = cause


class Broken:
    """Stands where a tile would be, had its task not failed."""


# ---- the brief


@dataclass(frozen=True, slots=True)
class Brief:
    """What all orders of a run have in common."""

    bound: BoundProgram
    shapes: Shapes
    errors: dict[str, Any]
    """How NumPy treats floating-point errors where the run was started."""
    held: tuple[Any, ...]
    """Names of functions of the user's: they are known while they are held."""


def brief(
    bound: BoundProgram, inputs: Mapping[str, TiledArray], by_value: Callable[[object], bytes]
) -> bytes:
    """The brief of a run; `by_value` pickles functions that the other side cannot import."""
    modules: set[str] = set()
    shipped: list[Kernel] = []
    functions: dict[str, Any] = {}
    for statement in bound.program.statements:
        known = get_kernel(statement.kernel)
        module = known.function.__module__
        if module.partition(".")[0] == "linnet":
            modules.add(module)
        else:
            shipped.append(known)
        for _, value in statement.run.keywords:
            if isinstance(value, Attribute) and isinstance(value.value, user_functions.Name):
                functions[str(value.value)] = value.value.function
    layouts = {name: TiledArray(array.layout, array.dtype, {}) for name, array in inputs.items()}
    # Kernels first: a program is loaded only where its kernels are known.
    return pickle.dumps(
        (
            sorted(modules),
            by_value((shipped, functions)),
            pickle.dumps((bound, layouts)),
            np.geterr(),
        )
    )


def opened(sent: bytes) -> Brief:
    """The brief that was sent; kernels that came with it are known in this process from now on."""
    modules, code, data, errors = pickle.loads(sent)
    for module in modules:
        importlib.import_module(module)
    shipped, functions = pickle.loads(code)
    for kernel in cast("list[Kernel]", shipped):
        registry.adopt(kernel)
    held = tuple(user_functions.adopt(name, function) for name, function in functions.items())
    bound, layouts = pickle.loads(data)
    return Brief(bound, Shapes(bound, layouts), errors, held)


class Briefs:
    """The briefs that this process has opened, the latest last."""

    def __init__(self) -> None:
        self._opened: dict[str, Brief] = {}
        self._lock = threading.Lock()

    def get(self, run: str, sent: Callable[[], bytes]) -> Brief:
        """The brief of a run; `sent` fetches it where it was not opened before."""
        with self._lock:
            known = self._opened.pop(run, None)
            if known is None:
                known = opened(sent())
            self._opened[run] = known
            while len(self._opened) > _KEPT:
                del self._opened[next(iter(self._opened))]
        return known


BRIEFS = Briefs()


# ---- the work


def attempt(
    run: str, sent: Callable[[], bytes], order: Order, values: Sequence[Any]
) -> tuple[Report | Failed | None, list[Any]]:
    """Do an order: what to tell of it, and the values that others need.

    A failure is told and not raised: engines would write it to their logs again and again, once for each
    order that waits for this one. Those find something broken among their operands, and tell nothing.
    """
    if any(isinstance(value, Broken) for value in values):
        return None, [Broken()] * len(order.kept)
    try:
        return perform(BRIEFS.get(run, sent), order, values)
    except Failed as failed:
        return failed, [Broken()] * len(order.kept)
    except Exception as error:  # most likely a module that is not there
        told = JobError(
            f"a worker cannot run this program, {type(error).__name__}: {error}; workers need the modules "
            "that its kernels use"
        )
        return Failed(order.tasks[0], told, _sendable(error)), [Broken()] * len(order.kept)


def perform(brief: Brief, order: Order, values: Sequence[Any]) -> tuple[Report, list[Any]]:
    """Do the tasks of an order; returns the report, and results as `order.kept` wants them.

    A value, of operands as of results, is a tile, or a list of tiles.
    """
    tiles: dict[TileKey, Tile] = {}
    for value, wanted in zip(values, order.given, strict=True):
        for position, key in wanted:
            tiles[key] = _read_only(value[position] if isinstance(value, list) else value)
    with np.errstate(**brief.errors), blas_threads(1), in_a_worker():
        done = tuple(_Task(brief, task, tiles, order.taken).run() for task in order.tasks)
    lane = f"{os.getpid()}-{threading.get_ident()}"
    return Report(lane, done), [_packed([tiles[key] for key in keys]) for keys in order.kept]


def _packed(tiles: list[Tile]) -> Any:
    return tiles[0] if len(tiles) == 1 else tiles


class _Task:
    """One task among the tiles of an order."""

    def __init__(
        self, brief: Brief, task: Task, tiles: dict[TileKey, Tile], taken: frozenset[TileKey]
    ) -> None:
        self._brief, self._task, self._tiles, self._may_take = brief, task, tiles, taken
        self._read: list[Tile] = []

    def run(self) -> Done:
        call = self._brief.bound.call(self._task)
        kernel = get_kernel(call.kernel)
        arguments = [self._argument(item) for item in call.args]
        taken = self._take(kernel, call, arguments)
        attributes = call.attributes
        if taken:
            attributes = {**attributes, "overwrite": tuple(taken)}
        begun, start = time.time(), time.perf_counter()
        try:
            result = kernel.function(*arguments, **attributes)
            seconds = time.perf_counter() - start
            results = matched(result, kernel.outputs, call)
        except FileError as error:  # it names the file and the place in it
            raise Failed(self._task, error, None) from error
        except Exception as error:
            told = failure(error, self._brief.bound, self._task, call)
            raise Failed(self._task, told, _sendable(error)) from error
        made: list[Tile] = []
        for key, each in results:
            tile = detached(each, self._read, list(chain(*taken.values())), made)
            tile.setflags(write=False)
            made.append(tile)
            self._tiles[key] = tile
        return Done(begun, seconds, tuple(tile.nbytes for tile in made))

    def _argument(self, item: Any) -> Any:
        if isinstance(item, TileKey):
            tile = self._tiles.get(item)
            if tile is None:
                tile = self._brief.shapes.fill(item)
                assert tile is not None, item
                self._tiles[item] = tile
            self._read.append(tile)
            return tile
        return [self._argument(each) for each in item] if isinstance(item, list) else item

    def _take(self, kernel: Kernel, call: Call, arguments: list[Any]) -> dict[int, list[Tile]]:
        """The tiles of operands that the kernel may overwrite, by the positions of these."""
        found: dict[int, list[Tile]] = {}
        for position in kernel.inplace:
            if position >= len(call.args):
                continue
            pairs = paired(call.args[position], arguments[position])
            if pairs and all(self._is_free(key, tile, call) for key, tile in pairs):
                found[position] = [tile for _, tile in pairs]
        return found

    def _is_free(self, key: TileKey, tile: Tile, call: Call) -> bool:
        if key not in self._may_take or sum(other == key for other in operands(call.args)) > 1:
            return False
        try:
            tile.setflags(write=True)
        except ValueError:  # it lies in memory that cannot be written to
            return False
        return True


def _read_only(tile: Tile) -> Tile:
    """The tile, or a view of it, that cannot be written to: it may be the user's own.

    One that came in the middle of a message may lie across the words of memory. NumPy is slow on such, and
    kernels give what they make of it another order, and so other bits: it is copied.
    """
    if not tile.flags.aligned:
        tile = np.array(tile, order="K")
    if tile.flags.writeable:
        tile = tile.view()
        tile.setflags(write=False)
    return tile


def _sendable(error: Exception) -> Exception | None:
    """The error itself, if it comes back from a pickle as it was."""
    try:
        again = pickle.loads(pickle.dumps(error))
    except Exception:
        return None
    return error if type(again) is type(error) and str(again) == str(error) else None
