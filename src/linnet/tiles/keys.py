"""The name of a tile inside a program."""

from __future__ import annotations

from typing import NamedTuple


class TileKey(NamedTuple):
    """One tile of one array of a program.

    >>> TileKey("A", (2, 0))
    A[2, 0]
    """

    array: str
    """Name of the array, as the program calls it."""
    index: tuple[int, ...]  # pyright: ignore[reportIncompatibleMethodOverride]  hides tuple.index, unused
    """Position in the grid, one integer per axis."""

    def __repr__(self) -> str:
        return f"{self.array}[{', '.join(map(str, self.index))}]"
