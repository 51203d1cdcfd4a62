"""The tiles of a run in memory: who still needs them, and when they go.

Tiles of `In` arrays are the user's and tiles of `Out` arrays are the result: both stay.
A `Temp` tile goes with its last reader, or becomes that reader's output: a kernel that
can work in place gets the tile for its own when no other task will read it.

Stored tiles are marked read-only, so that a kernel that writes to an operand it was not
given fails instead of spoiling what others read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from linnet.programs import BoundProgram, Out, Temp
from linnet.tiles import Index, Tile, TiledArray, TileKey


class TileStore:
    """Tiles by key, and how many tasks will still read each `Temp` tile.

    Different threads may read and write different tiles at once; `release` is for one
    thread at a time.
    """

    def __init__(self, bound: BoundProgram, inputs: Mapping[str, TiledArray]) -> None:
        arrays = bound.program.arrays
        self._temporary = frozenset(name for name, role in arrays.items() if isinstance(role, Temp))
        self._outputs = [name for name, role in arrays.items() if isinstance(role, Out)]
        self._tiles: dict[TileKey, Tile] = {}
        self.get = self._tiles.get
        """The tile of a key, or None if it is not there."""
        self._fills: dict[TileKey, Tile] = {}
        self._readers: dict[TileKey, int] = {}
        for name, array in inputs.items():
            self._tiles.update((key, _read_only(tile)) for key, tile in array.keyed(name))

    def put(self, key: TileKey, tile: Tile, readers: int) -> bool:
        """Keep a tile for its readers; False if it is a `Temp` that nobody reads."""
        if key.array in self._temporary:
            if not readers:
                return False
            self._readers[key] = readers
        tile.flags.writeable = False
        self._tiles[key] = tile
        return True

    def get_fill(self, key: TileKey) -> Tile | None:
        """A tile of the fill value made before, or None."""
        return self._fills.get(key)

    def put_fill(self, key: TileKey, tile: Tile) -> None:
        """Keep a tile of the fill value for whoever else reads it; it is no part of the result."""
        tile.flags.writeable = False
        self._fills[key] = tile

    def claim(self, key: TileKey) -> bool:
        """Whether the task that reads this tile now is the last to do so; if so it may overwrite it."""
        if self._readers.get(key) != 1:
            return False
        tile = self._tiles[key]
        try:
            tile.flags.writeable = True
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
                dropped.append((key, self._tiles.pop(key).nbytes))
        return dropped

    def clear(self) -> None:
        """Let go of everything."""
        self._tiles.clear()
        self._fills.clear()

    def results(self) -> dict[str, dict[Index, Tile]]:
        """The tiles of the `Out` arrays, the caller's from now on."""
        found: dict[str, dict[Index, Tile]] = {name: {} for name in self._outputs}
        for key, tile in self._tiles.items():
            if key.array in found:
                tile.flags.writeable = True
                found[key.array][key.index] = tile
        return found


def detached(result: Tile, operands: list[Tile], taken: list[Tile], siblings: list[Tile]) -> Tile:
    """The result of a kernel, copied if its memory is not its own.

    It may be an operand or a view of one (unless that operand was given to the kernel), share
    memory with another result, or be read-only, as what a kernel has kept from an earlier
    call: overwriting the one later would change the other.
    """
    if not result.flags.writeable:
        return np.array(result, order="K")
    root = memory(result)
    for tile in operands:
        if memory(tile) is root and not any(np.may_share_memory(given, result) for given in taken):
            return np.array(result, order="K")
    for tile in siblings:
        if memory(tile) is root and np.may_share_memory(tile, result):
            return np.array(result, order="K")
    return result


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
