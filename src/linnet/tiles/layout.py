"""How arrays are cut into tiles: boundaries along each axis, nothing else.

Boundaries are positions `0 = b0 ≤ b1 ≤ … ≤ bn = length`; tile `i` covers `b[i]` to
`b[i + 1]`. Positions, not sizes, because all that is asked of them (slices, which tile
holds an element) is then a lookup. An axis of length 0 is one empty tile, so that an
empty array still has tiles, and programs on it need no special case.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any, cast

from numpy.typing import NDArray

from linnet.errors import InputError
from linnet.records import record

Boundaries = tuple[int, ...]
Index = tuple[int, ...]


def regular(length: int, tile: int) -> Boundaries:
    """Boundaries of tiles of one size, the last one ragged.

    >>> regular(10, 4)
    (0, 4, 8, 10)
    >>> regular(0, 4)
    (0, 0)
    """
    if length < 0 or tile < 1:
        raise InputError(f"cannot cut an axis of length {length} into tiles of {tile}; a tile is at least 1")
    return (*range(0, max(length, 1), tile), length)


def from_sizes(sizes: Sequence[int]) -> Boundaries:
    """Boundaries of tiles of the given sizes.

    >>> from_sizes([4, 4, 2])
    (0, 4, 8, 10)
    """
    if not sizes or min(sizes) < 0:
        raise InputError(f"tile sizes {tuple(sizes)} along an axis: give at least one, none of them negative")
    return tuple(itertools.accumulate(sizes, initial=0))


@record
class Layout:
    """The cut of an array: boundaries along each axis.

    >>> layout = Layout.regular((10, 6), 4)
    >>> layout.grid, layout.shape
    ((3, 2), (10, 6))
    >>> layout.tile_shape((2, 1))
    (2, 2)
    """

    boundaries: tuple[Boundaries, ...]
    """Along each axis."""
    is_whole: bool = field(init=False, repr=False, compare=False)
    """Whether there is one tile, which is the whole array: asked for at every small operation."""

    def __post_init__(self) -> None:
        for axis, edges in enumerate(self.boundaries):
            if len(edges) < 2 or edges[0] != 0 or any(b < a for a, b in itertools.pairwise(edges)):
                raise InputError(
                    f"boundaries {edges} along axis {axis}: they must start at 0, never fall, "
                    "and hold at least one tile"
                )
        object.__setattr__(self, "is_whole", all(len(edges) == 2 for edges in self.boundaries))

    @classmethod
    def regular(cls, shape: Sequence[int], tile: int | Sequence[int]) -> Layout:
        """Tiles of one size, given for all axes or for each."""
        sizes = (tile,) * len(shape) if isinstance(tile, int) else tuple(tile)
        if len(sizes) != len(shape):
            raise InputError(
                f"tile size {tuple(sizes)} for an array of shape {tuple(shape)}: "
                "give one number, or one for each axis"
            )
        return cls(tuple(regular(length, size) for length, size in zip(shape, sizes, strict=True)))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the whole array."""
        return tuple(edges[-1] for edges in self.boundaries)

    @property
    def grid(self) -> tuple[int, ...]:
        """How many tiles along each axis."""
        return tuple(len(edges) - 1 for edges in self.boundaries)

    def tile_shape(self, index: Index) -> tuple[int, ...]:
        """Shape of one tile."""
        self.check(index)
        return tuple(edges[i + 1] - edges[i] for edges, i in zip(self.boundaries, index, strict=True))

    def slices(self, index: Index) -> tuple[slice, ...]:
        """Where in the whole array one tile lies."""
        self.check(index)
        return tuple(slice(edges[i], edges[i + 1]) for edges, i in zip(self.boundaries, index, strict=True))

    def views(self, array: NDArray[Any]) -> dict[Index, NDArray[Any]]:
        """An array of this shape in tiles, each a view of it.

        >>> import numpy as np
        >>> Layout.regular((5,), 2).views(np.arange(5))[2,]
        array([4])
        """
        parts = [[slice(a, b) for a, b in itertools.pairwise(edges)] for edges in self.boundaries]
        places = itertools.product(*map(range, self.grid))
        # The ellipsis keeps an array without axes an array.
        pieces = itertools.product(*parts, (Ellipsis,))
        return {index: array[piece] for index, piece in zip(places, pieces, strict=True)}

    def locate(self, position: Sequence[int]) -> Index:
        """The tile that holds the element at a position.

        >>> Layout.regular((10, 6), 4).locate((9, 3))
        (2, 0)
        """
        inside = len(position) == len(self.boundaries) and all(
            0 <= p < length for p, length in zip(position, self.shape, strict=True)
        )
        if not inside:
            raise InputError(f"element {tuple(position)} is outside an array of shape {self.shape}")
        return tuple(bisect_right(edges, p) - 1 for edges, p in zip(self.boundaries, position, strict=True))

    def indices(self) -> Iterator[Index]:
        """All tiles, the last axis fastest."""
        return itertools.product(*(range(n) for n in self.grid))

    def __contains__(self, index: object) -> bool:
        if not isinstance(index, tuple) or len(cast("Index", index)) != len(self.boundaries):
            return False
        for i, edges in zip(cast("Index", index), self.boundaries, strict=True):
            if not 0 <= i < len(edges) - 1:
                return False
        return True

    def check(self, index: Index) -> None:
        """Refuse an index outside the grid."""
        if index not in self:
            grid = "×".join(map(str, self.grid)) or "one"
            raise InputError(f"there is no tile {index} in a grid of {grid} tiles")
