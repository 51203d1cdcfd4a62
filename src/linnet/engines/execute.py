"""One task: its operands, its kernel, its results, and what to say when it fails."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from linnet import kernels
from linnet.engines.shapes import Shapes, operands
from linnet.engines.store import TileStore, detached, memory
from linnet.errors import (
    InputError,
    KernelError,
    LinAlgError,
    LinnetError,
    SingleAssignmentError,
    UnwrittenTileError,
)
from linnet.kernels import Kernel
from linnet.programs import BoundProgram, Call, In, Out, Task
from linnet.tiles import Tile, TiledArray, TileKey


class Done(NamedTuple):
    """What a task did."""

    read: dict[TileKey, int]
    """The tiles it read, with their bytes."""
    written: list[tuple[TileKey, int]]
    """The tiles it produced, with their bytes."""
    unread: list[tuple[TileKey, int]]
    """Those of them that were dropped at once, because nobody reads them."""
    seconds: float
    """Time inside the kernel."""


class Executor:
    """Runs tasks of a bound program against a store; from several threads at once."""

    def __init__(self, bound: BoundProgram, inputs: Mapping[str, TiledArray], store: TileStore) -> None:
        self._bound = bound
        self._inputs = inputs
        self._store = store
        self._kernels = {each.kernel: kernels.get(each.kernel) for each in bound.program.statements}
        # A program that was not proved right is watched: every tile written once, none missing.
        self._writers: dict[TileKey, Task] | None = None if bound.program.proven else {}
        self._shapes = Shapes(bound, inputs)
        self._fill_lock = threading.Lock()

    def run(self, task: Task, call: Call, children: int) -> Done:
        """Run one task; `children` is how many tasks read what it writes."""
        kernel = self._kernels[call.kernel]
        read: dict[TileKey, int] = {}
        tiles: list[Tile] = []
        arguments = [self._argument(item, task, read, tiles) for item in call.args]
        taken: list[Tile] = []
        attributes = call.attributes
        if kernel.inplace:
            overwrite = self._overwrite(kernel, call, arguments, taken, len(read) < len(tiles))
            if overwrite:
                attributes = {**attributes, "overwrite": overwrite}
        start = time.perf_counter()
        try:
            result = kernel.function(*arguments, **attributes)
        except Exception as error:
            raise self._failure(error, task, call) from error
        seconds = time.perf_counter() - start
        written: list[tuple[TileKey, int]] = []
        unread: list[tuple[TileKey, int]] = []
        for key, tile in zip(
            call.outputs, self._results(result, kernel, task, call, tiles, taken), strict=True
        ):
            readers = children if kernel.outputs == 1 else len(self._bound.readers(key))
            if self._writers is not None:
                self._claim_writer(key, task)
            written.append((key, tile.nbytes))
            if not self._store.put(key, tile, readers):
                unread.append(written[-1])
        return Done(read, written, unread, seconds)

    # ---- operands

    def _argument(self, item: Any, task: Task, read: dict[TileKey, int], tiles: list[Tile]) -> Any:
        if isinstance(item, TileKey):
            tile = self._store.get(item)
            if tile is None:
                tile = self._missing(item, task)
            read[item] = tile.nbytes
            tiles.append(tile)
            return tile
        if isinstance(item, list):
            return [self._argument(each, task, read, tiles) for each in item]
        return item

    def _missing(self, key: TileKey, task: Task) -> Tile:
        """The fill value, or the error that says why the tile is not there."""
        role = self._bound.program.arrays[key.array]
        if isinstance(role, Out) and role.fill is not None and self._bound.writer(key) is None:
            with self._fill_lock:
                tile = self._store.get_fill(key)
                if tile is None:
                    shape, dtype = self._shapes.filled(key)
                    tile = np.full(shape, role.fill, dtype, order="F")
                    self._store.put_fill(key, tile)
                return tile
        where = self._bound.where(task)
        if isinstance(role, In):
            grid = "×".join(map(str, self._inputs[key.array].grid))
            raise InputError(
                f"{key} is read, but {key.array} was given as {grid} tiles; "
                f"bind the program to the size of that grid, or cut {key.array} otherwise\n  in {where}"
            )
        raise UnwrittenTileError(f"{key} is read, but no task has written it\n  in {where}")

    def _overwrite(
        self, kernel: Kernel, call: Call, arguments: list[Any], taken: list[Tile], repeated: bool
    ) -> tuple[int, ...]:
        """Positions of operands that nobody else needs; their tiles are added to `taken`."""
        free: list[int] = []
        for position in kernel.inplace:
            key = call.args[position] if position < len(call.args) else None
            if not isinstance(key, TileKey):
                continue
            # A tile that is also another operand of this very call is needed by it.
            if repeated and sum(other == key for other in operands(call.args)) > 1:
                continue
            if self._store.claim(key):
                free.append(position)
                taken.append(arguments[position])
        return tuple(free)

    # ---- results

    def _results(
        self, result: Any, kernel: Kernel, task: Task, call: Call, tiles: list[Tile], taken: list[Tile]
    ) -> list[Tile]:
        if kernel.outputs == 1:
            results = (result,)
        elif isinstance(result, tuple | list) and len(result) == kernel.outputs:
            results = result
        else:
            given = f"{len(result)} results" if isinstance(result, tuple | list) else type(result).__name__
            raise self._failure(
                TypeError(f"returned {given}; its declaration says outputs={kernel.outputs}"), task, call
            )
        made: list[Tile] = []
        for each in results:
            if not isinstance(each, np.ndarray):
                if not isinstance(each, np.generic | int | float | complex):
                    raise self._failure(
                        TypeError(f"returned a {type(each).__name__}; a tile is a NumPy array"), task, call
                    )
                each = np.asarray(each)
            tile = detached(each, tiles, taken)
            # Two results in one memory: overwriting the one later would change the other.
            if any(memory(tile) is memory(other) and np.may_share_memory(tile, other) for other in made):
                tile = np.array(tile, order="K")
            made.append(tile)
        return made

    def _claim_writer(self, key: TileKey, task: Task) -> None:
        assert self._writers is not None
        first = self._writers.setdefault(key, task)
        if first is not task:
            raise SingleAssignmentError(
                f"{key} is written twice\n  in {self._bound.where(first)}\n  in {self._bound.where(task)}"
            )

    # ---- failures

    def _failure(self, error: Exception, task: Task, call: Call) -> LinnetError:
        where = self._bound.where(task)
        keys = tuple(dict.fromkeys(operands(call.args)))
        shown = ", ".join(map(repr, keys[:6])) + (f" and {len(keys) - 6} more" if len(keys) > 6 else "")
        place = f"{call.kernel}({shown}) -> {', '.join(map(repr, call.outputs))}\n  in {where}"
        if isinstance(error, np.linalg.LinAlgError):
            return LinAlgError(f"{error}: {place}", task=task, tiles=keys, where=where)
        return KernelError(
            f"kernel {call.kernel!r} raised {type(error).__name__}: {error}\n  at {place}",
            task=task,
            tiles=keys,
            where=where,
        )
