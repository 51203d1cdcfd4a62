"""The arrays of a job: those it reads and those somebody asks for, and where their tiles are stored.

Apart from what a job is (`spec`), because every computation makes one of these, wherever it runs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from linnet.records import record
from linnet.tiles import Index, Layout, TileKey

_FOLDER = re.compile(r"[A-Za-z0-9_-]{1,64}(\.[0-9a-f]{16})?")
_ARRAY_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


@record
class Borrowed:
    """Tiles that are in the store already, as an output of another job.

    The job that borrows them reads them where they are. It never deletes them, and cannot make them again.
    """

    job: str
    """The folder of the job that wrote them."""
    array: str
    """What that job calls the array."""
    tokens: Sequence[int]
    """Of the attempt that wrote each tile, in the order of `Layout.indices`; 0: that tile is absent."""

    def __post_init__(self) -> None:
        # A job may come from anywhere: what it borrows must be a tile of a job, and nothing else there is.
        if not _FOLDER.fullmatch(self.job) or not _ARRAY_NAME.fullmatch(self.array):
            raise ValueError(f"tiles borrowed from array {self.array[:80]!r} of job {self.job[:80]!r}")
        if any(type(token) is not int or token < 0 for token in self.tokens):
            raise ValueError(f"borrowed tiles of {self.array} have tokens that are no numbers")


@record
class InputSpec:
    """An array that the job reads."""

    layout: Layout
    dtype: np.dtype[Any]
    fill: float | complex | None = None
    """The value of tiles that are not stored."""
    absent: frozenset[Index] = frozenset()
    """Tiles that are not stored."""
    borrowed: Borrowed | None = None
    """Where the tiles are, if another job has them; None: this job has its own."""

    def __post_init__(self) -> None:
        if self.borrowed is None:
            return
        tokens = self.borrowed.tokens
        if len(tokens) != math.prod(self.layout.grid):
            raise ValueError(f"{len(tokens)} tiles are borrowed for a grid of {self.layout.grid}")
        if tokens.count(0) > len(self.absent):
            raise ValueError(f"tiles borrowed from job {self.borrowed.job} have no token")

    def key(self, folder: str, tile: TileKey) -> str:
        """Where a tile of this input of a job is stored."""
        if self.borrowed is None:
            return tile_key(folder, tile, None)
        position = 0
        for place, count in zip(tile.index, self.layout.grid, strict=True):
            position = position * count + place
        lender = self.borrowed
        return tile_key(lender.job, TileKey(lender.array, tile.index), lender.tokens[position])


@record
class Asked:
    """What somebody wants of a job, if that is arrays and not the outputs of a program as such."""

    arrays: Mapping[str, InputSpec]
    """The outputs that are asked for, and how each is cut."""
    wanted: Any
    """How they are arranged: ["array", name], ["list" or "tuple", [...]], ["named", name, fields, [...]]; and
    ["plain", value] for what is no array."""
    conditions: tuple[str, ...] = ()
    """Outputs of one number each that say how well systems could be solved."""


def tile_key(folder: str, key: TileKey, token: int | None) -> str:
    """Where a tile is stored: that of one attempt, or of an input.

    >>> tile_key("j", TileKey("A", (2, 0)), 17), tile_key("j", TileKey("x", ()), None)
    ('j/A/2.0=17', 'j/x/-=in')
    """
    index = ".".join(map(str, key.index)) or "-"
    return f"{folder}/{key.array}/{index}={'in' if token is None else token}"
