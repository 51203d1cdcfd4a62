"""What a run of a program gives: its `Out` arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from linnet.programs.bound import BoundProgram
from linnet.programs.grammar import fill_of
from linnet.tiles import Index, Layout, Tile, TiledArray


class Outputs(Mapping[str, TiledArray]):
    """The `Out` arrays of a run, by name.

    An array is put together when it is asked for: tiles that form no one array (factors of
    ragged tiles, say) are an error then, and can still be had one by one from `tiles`.
    """

    def __init__(self, bound: BoundProgram, written: Mapping[str, Mapping[Index, Tile]]) -> None:
        self._bound = bound
        self._written = written
        self._arrays: dict[str, TiledArray] = {}

    def tiles(self, name: str) -> Mapping[Index, Tile]:
        """The tiles that were written to one array."""
        if name not in self._written:
            raise KeyError(
                f"{self._bound.program.name} has no Out array {name!r}; it has {', '.join(self) or 'none'}"
            )
        return self._written[name]

    def __getitem__(self, name: str) -> TiledArray:
        if name not in self._arrays:
            tiles = dict(self.tiles(name).items())  # they may lie elsewhere: each is brought once
            role = self._bound.program.arrays[name]
            grid = self._bound.grid(name) if tiles else None
            self._arrays[name] = TiledArray.from_tiles(tiles, grid=grid, fill=fill_of(role), name=name)
        return self._arrays[name]

    def left(self, name: str, layout: Layout, dtype: np.dtype[Any]) -> TiledArray:
        """One array, of a cut that is known, whose tiles stay where they are: on a cluster, perhaps."""
        tiles = self.tiles(name)
        fill = fill_of(self._bound.program.arrays[name])
        missing = {
            index: np.broadcast_to(np.array(0 if fill is None else fill, dtype), layout.tile_shape(index))
            for index in layout.indices()
            if index not in tiles
        }
        return TiledArray(layout, dtype, self._with(tiles, missing) if missing else tiles)

    def _with(self, tiles: Mapping[Index, Tile], filled: Mapping[Index, Tile]) -> Mapping[Index, Tile]:
        return {**tiles, **filled}

    def __iter__(self) -> Iterator[str]:
        return iter(self._written)

    def __len__(self) -> int:
        return len(self._written)

    def __repr__(self) -> str:
        return f"Outputs({', '.join(self)})"
