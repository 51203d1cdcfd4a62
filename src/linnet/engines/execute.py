"""One task: its operands, its kernel, its results, and what to say when it fails."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from linnet.engines.store import TileStore, detached, memory
from linnet.engines.task_list import TaskList
from linnet.errors import (
    FileError,
    InputError,
    UnwrittenTileError,
)
from linnet.kernels import Kernel
from linnet.kernels import get as get_kernel
from linnet.programs import BoundProgram, Call, In
from linnet.programs.results import failure, matched, paired
from linnet.programs.shapes import Shapes, operands
from linnet.tiles import Tile, TiledArray, TileKey

_NONE: list[Any] = []
"""Shared, and never changed."""


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

    def __init__(
        self, bound: BoundProgram, plan: TaskList, inputs: Mapping[str, TiledArray], store: TileStore
    ) -> None:
        self._bound = bound
        self._plan = plan
        self._inputs = inputs
        self._store = store
        self._kernels = {each.kernel: get_kernel(each.kernel) for each in bound.program.statements}
        self._shapes = Shapes(bound, inputs)
        self._fill_lock = threading.Lock()

    def run(self, number: int, call: Call, children: int) -> Done:
        """Run the task of this number; `children` is how many tasks read what it writes."""
        kernel = self._kernels[call.kernel]
        read: dict[TileKey, int] = {}
        tiles: list[Tile] = []
        arguments: list[Any] = []
        stored = self._store.get
        for item in call.args:
            if type(item) is TileKey and (tile := stored(item)) is not None:
                read[item] = tile.nbytes
                tiles.append(tile)
                arguments.append(tile)
            else:
                arguments.append(self._argument(item, number, read, tiles))
        taken: list[Tile] = []
        attributes = call.attributes
        if kernel.inplace and self._store.temporary:
            overwrite = self._overwrite(kernel, call, arguments, taken, len(read) < len(tiles))
            if overwrite:
                attributes = {**attributes, "overwrite": overwrite}
        place = None
        if kernel.into and (place := self._place(call.outputs[0])) is not None:
            attributes = {**attributes, "into": place}
        start = perf_counter()
        try:
            result = kernel.function(*arguments, **attributes)
        except FileError:
            raise  # it names the file and the place in it: where in the program adds nothing
        except Exception as error:
            raise failure(error, self._bound, self._plan.task(number), call) from error
        seconds = perf_counter() - start
        put = self._store.put
        if type(result) is np.ndarray and kernel.outputs == 1 and type(key := call.outputs[0]) is TileKey:
            # With one output, whoever reads from this task reads that tile.
            tile = result if result is place else self._own(key, result, read, tiles, taken, _NONE)
            written = [(key, tile.nbytes)]
            return Done(read, written, _NONE if put(key, tile, children) else written, seconds)
        written, unread, made = [], [], []
        try:
            results = matched(result, kernel.outputs, call)
        except TypeError as error:
            raise failure(error, self._bound, self._plan.task(number), call) from None
        for key, each in results:
            placed = place is not None and each is self._store.place(key)
            tile = each if placed else self._own(key, each, read, tiles, taken, made)
            made.append(tile)
            written.append((key, tile.nbytes))
            readers = children if len(results) == 1 else len(self._bound.readers(key))
            if not put(key, tile, readers):
                unread.append(written[-1])
        return Done(read, written, unread, seconds)

    def _own(
        self,
        key: TileKey,
        result: Tile,
        read: Mapping[TileKey, int],
        tiles: list[Tile],
        taken: list[Tile],
        siblings: list[Tile],
    ) -> Tile:
        """The result as it is kept: a copy, if its memory belongs to others and may change or be seen."""
        if result.base is not None and self._store.lends(key):
            root = memory(result)
            lenders = (self._store.get(each) for each in read if each[0] in self._inputs)
            if any(tile is not None and memory(tile) is root for tile in lenders):
                return self._store.lent(key, result)
        return detached(result, tiles, taken, siblings)

    # ---- operands

    def _argument(self, item: Any, number: int, read: dict[TileKey, int], tiles: list[Tile]) -> Any:
        if isinstance(item, TileKey):
            tile = self._store.get(item)
            if tile is None:
                tile = self._missing(item, number)
            read[item] = tile.nbytes
            tiles.append(tile)
            return tile
        if isinstance(item, list):
            return [self._argument(each, number, read, tiles) for each in item]
        return item

    def _missing(self, key: TileKey, number: int) -> Tile:
        """The fill value, or the error that says why the tile is not there."""
        role = self._bound.program.arrays[key.array]
        if self._shapes.is_filled(key):
            with self._fill_lock:
                shape, dtype = self._shapes.describe(key)
                tile = self._store.get_fill(key.array, shape, dtype)
                if tile is None:
                    tile = self._shapes.fill(key)
                    assert tile is not None
                    self._store.put_fill(key.array, tile)
                return tile
        where = self._bound.where(self._plan.task(number))
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
        args, temporary = call.args, self._store.temporary
        for position in kernel.inplace:
            if position >= len(args):
                continue
            pairs = paired(args[position], arguments[position])
            # A tile that is also another operand of this very call is needed by it.
            if repeated and any(sum(other == key for other in operands(args)) > 1 for key, _ in pairs):
                continue
            if pairs and all(key[0] in temporary and self._store.claim(key, tile) for key, tile in pairs):
                free.append(position)
                taken.extend(tile for _, tile in pairs)
        return tuple(free)

    def _place(self, keys: Any) -> Any:
        """Where the caller wants a tile, or each tile of a range; None if they have no such places."""
        if type(keys) is TileKey:
            return self._store.place(keys)
        places = [self._place(each) for each in keys]
        return None if any(each is None for each in places) else places
