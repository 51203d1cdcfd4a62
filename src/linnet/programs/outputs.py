"""What a run of a program gives: its `Out` arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from linnet.programs.bound import BoundProgram
from linnet.programs.grammar import Out
from linnet.tiles import Index, Tile, TiledArray


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
        tiles = self.tiles(name)
        if name not in self._arrays:
            role = self._bound.program.arrays[name]
            fill = role.fill if isinstance(role, Out) else None
            grid = self._bound.grid(name) if tiles else None
            self._arrays[name] = TiledArray.from_tiles(tiles, grid=grid, fill=fill, name=name)
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._written)

    def __len__(self) -> int:
        return len(self._written)

    def __repr__(self) -> str:
        return f"Outputs({', '.join(self)})"
