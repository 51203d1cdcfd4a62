"""The tiles of a run: who still needs them, and when they go.

Tiles of `In` arrays are the user's and tiles of `Out` arrays are the result: both stay. An
`Out` array may have a place of its own (one array in memory, or in a mapped file): its tiles
are copied there as they are made. Under a budget results without a place go to files, which
vanish with them: nobody counts what lies in memory between two runs.
A `Temp` tile goes with its last reader, or becomes that reader's output: a kernel that
can work in place gets the tile for its own when no other task will read it. One that is a part of an
input (a kernel that only cuts) is not copied, if there is no budget, and never overwritten.

Stored tiles are marked read-only, so that a kernel that writes to an operand it was not
given fails instead of spoiling what others read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.engines.budget import Budget
from linnet.engines.mapped_tiles import loaded, place_of, stored
from linnet.errors import InputError
from linnet.programs import BoundProgram, Out, Temp
from linnet.tiles import Index, Tile, TiledArray, TileKey

_WORK: Any = 1000
"""Steps in which to find out whether two results of a kernel overlap; else they count as if they did."""


class TileStore:
    """Tiles by key, and how many tasks will still read each `Temp` tile.

    Different threads may read and write different tiles at once; `release` and `moved` are
    for one thread at a time. A tile that is also on disk may leave memory and come back.
    """

    def __init__(
        self,
        bound: BoundProgram,
        inputs: Mapping[str, TiledArray],
        out: Mapping[str, TiledArray] | None = None,
        budget: Budget | None = None,
    ) -> None:
        arrays = bound.program.arrays
        self.temporary: frozenset[str] = frozenset(
            name for name, role in arrays.items() if isinstance(role, Temp)
        )
        self._outputs = [name for name, role in arrays.items() if isinstance(role, Out)]
        self._out = {name: array.tiles for name, array in (out or {}).items()}
        self._budget = budget
        self._held = 0
        """Bytes of results without a place that stay in memory."""
        self._slots: dict[TileKey, NDArray[Any]] = {}
        self.on_disk: dict[TileKey, Tile] = {}
        """Tiles that lie in mapped files, whether or not they are also in memory."""
        self._tiles: dict[TileKey, Tile] = {}
        self.get = self._tiles.get
        """The tile of a key, or None if it is not there."""
        self._fills: dict[tuple[str, tuple[int, ...], np.dtype[Any]], Tile] = {}
        self._readers: dict[TileKey, int] = {}
        self._lent: set[TileKey] = set()
        """Tiles that are parts of inputs: nobody may overwrite them."""
        for name, array in inputs.items():
            self._tiles.update((key, _read_only(tile)) for key, tile in array.keyed(name))
        if budget is not None:
            self.on_disk.update(
                (key, tile) for key, tile in self._tiles.items() if place_of(tile) is not None
            )

    def put(self, key: TileKey, tile: Tile, readers: int) -> bool:
        """Keep a tile for its readers; False if it is a `Temp` that nobody reads."""
        array = key[0]
        if array in self.temporary:
            if not readers:
                return False
            self._readers[key] = readers
        elif array in self._out:
            tile = self._placed(key, tile)
            if not readers:
                # Where it lies in a file, the copy in memory is needed no more.
                self._tiles[key] = self.on_disk.get(key, tile)
                return True
            tile = tile.view()
        elif not readers:
            tile = self._kept(key, tile)
        tile.setflags(write=False)
        self._tiles[key] = tile
        return True

    def _kept(self, key: TileKey, tile: Tile) -> Tile:
        """A result without a place: in a file, if there is a budget and it has little room left."""
        budget = self._budget
        if budget is None or tile is self.on_disk.get(key):
            return tile
        if self._held + tile.nbytes <= budget.small:
            self._held += tile.nbytes
            return tile
        self.on_disk[key], _ = budget.results.store(tile)
        return self.on_disk[key]

    def spilled(self, key: TileKey, tile: Tile) -> tuple[Tile, NDArray[Any] | None]:
        """A copy on disk of a tile that has none, and the slot it lies in if that can be used again."""
        assert self._budget is not None
        if key[0] in self.temporary:
            return self._budget.scratch.store(tile)
        return self._budget.results.store(tile)[0], None

    def place(self, key: TileKey) -> Tile | None:
        """Where the caller wants a tile to be, if a kernel can write it there: in memory."""
        if key[0] not in self._out:
            return None
        place = self._out[key[0]].get(key[1])
        return None if self._budget is not None and place is not None and place_of(place) else place

    def _placed(self, key: TileKey, tile: Tile) -> Tile:
        """The tile, copied to where the caller wants it; the copy is kept, unless it is in a file."""
        place = self._out[key[0]].get(key[1])
        if place is not None and tile is place:
            return place
        if place is None or place.shape != tile.shape:
            expected = "no tile is" if place is None else f"a tile of shape {place.shape} is"
            raise InputError(
                f"{key} was written with shape {tile.shape}, but in the array given for {key.array} "
                f"{expected} there; give one that is cut as the result is"
            )
        if self._budget is not None and place_of(place) is not None:
            stored(tile, place)
            self.on_disk[key] = place.view()
            return tile if tile.dtype == place.dtype else loaded(place)
        np.copyto(place, tile, casting="same_kind")
        return place

    def moved(self, key: TileKey, old: Tile, new: Tile, slot: NDArray[Any] | None = None) -> bool:
        """The other copy of a tile is the one to use; False if it is gone or was claimed.

        `slot` is the place on disk that a tile was given, if it had none.
        """
        if self._tiles.get(key) is not old or old.flags.writeable:
            return False
        new.setflags(write=False)
        self._tiles[key] = new
        if slot is not None:
            self._slots[key] = slot
        if place_of(new) is not None:
            self.on_disk[key] = new
        return True

    def get_fill(self, array: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Tile | None:
        """A tile of the fill value of an array made before, or None: those of one shape are all alike."""
        return self._fills.get((array, shape, dtype))

    def put_fill(self, array: str, tile: Tile) -> None:
        """Keep a tile of the fill value for others; under a budget it goes with the task that reads it."""
        if self._budget is None:
            self._fills[array, tile.shape, tile.dtype] = tile

    def lends(self, key: TileKey) -> bool:
        """Whether a tile may be a part of an input: it is seen by nobody else, and memory is not counted."""
        return self._budget is None and key[0] in self.temporary

    def lent(self, key: TileKey, tile: Tile) -> Tile:
        """A part of an input, to be kept under this key."""
        self._lent.add(key)
        return tile.view()

    def claim(self, key: TileKey, tile: Tile) -> bool:
        """Whether the task that reads this tile now is the last to do so; if so it may overwrite it."""
        if self._readers.get(key) != 1 or self.on_disk.get(key) is tile or key in self._lent:
            return False
        try:
            tile.setflags(write=True)
        except ValueError:  # a view of memory that is itself read-only
            return False
        return True

    def release(self, keys: Iterable[TileKey]) -> list[tuple[TileKey, int]]:
        """A task has read these tiles, each named once; returns those dropped, with their bytes."""
        dropped: list[tuple[TileKey, int]] = []
        for key in keys:
            left = self._readers.get(key)
            if left is None:
                continue
            if left > 1:
                self._readers[key] = left - 1
            else:
                del self._readers[key]
                size = self._tiles.pop(key).nbytes
                dropped.append((key, size))
                self.on_disk.pop(key, None)
                if key in self._slots and self._budget is not None:
                    self._budget.scratch.give_back(self._slots.pop(key), size)
        return dropped

    def clear(self) -> None:
        """Let go of everything."""
        self._tiles.clear()
        self._fills.clear()

    def results(self) -> dict[str, dict[Index, Tile]]:
        """The tiles of the `Out` arrays, the caller's from now on."""
        found: dict[str, dict[Index, Tile]] = {name: {} for name in self._outputs}
        self._held = 0
        for (array, index), tile in self._tiles.items():
            if array in found:
                given = self._out.get(array)
                if given is None:
                    tile = self._kept(TileKey(array, index), tile)
                    tile.setflags(write=True)
                found[array][index] = tile if given is None else given[index]
        return found


def detached(result: Tile, operands: list[Tile], taken: list[Tile], siblings: list[Tile]) -> Tile:
    """The result of a kernel, copied if its memory is not its own.

    It may be an operand or a view of one (unless that operand was given to the kernel), share
    memory with another result, or be read-only, as what a kernel has kept from an earlier
    call: overwriting the one later would change the other.
    """
    if not result.flags.writeable:
        return np.array(result, order="K")
    if result.base is None and not siblings:
        # An array with memory of its own; all operands but those taken are read-only.
        return result
    root = memory(result)
    for tile in operands:
        if memory(tile) is root and not any(np.may_share_memory(given, result) for given in taken):
            return np.array(result, order="K")
    for tile in siblings:
        if memory(tile) is root and _overlap(tile, result):
            return np.array(result, order="K")
    return result


def _overlap(a: Tile, b: Tile) -> bool:
    """Whether two results share an element; parts of one matrix by columns lie between one another."""
    try:
        return np.shares_memory(a, b, max_work=_WORK)
    except np.exceptions.TooHardError:
        return True


def _read_only(tile: Tile) -> Tile:
    """The tile, or a view of it, that cannot be written to."""
    if tile.flags.writeable:
        tile = tile.view()
        tile.flags.writeable = False
    return tile


def memory(tile: Tile) -> Any:
    """The object that owns the memory of a tile."""
    owner: Any = tile
    while (base := getattr(owner, "base", None)) is not None:
        owner = base
    return owner
