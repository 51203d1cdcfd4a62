"""Arrays as engines take and return them: a layout, and a tile for each place in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from linnet.errors import InputError
from linnet.records import record
from linnet.tiles.keys import TileKey
from linnet.tiles.layout import Index, Layout, from_sizes

Tile = NDArray[Any]


@record(eq=False)
class TiledArray:
    """An array cut into tiles.

    >>> a = TiledArray.from_numpy(np.arange(12.0).reshape(3, 4), tile=2)
    >>> a
    TiledArray(shape=(3, 4), dtype=float64, grid=2×2)
    >>> a.tile((1, 0))
    array([[8., 9.]])
    >>> a.to_numpy()
    array([[ 0.,  1.,  2.,  3.],
           [ 4.,  5.,  6.,  7.],
           [ 8.,  9., 10., 11.]])
    """

    layout: Layout
    """How it is cut."""
    dtype: np.dtype[Any]
    """Of every tile."""
    tiles: Mapping[Index, Tile]
    """The tiles that are stored, by their place in the grid."""
    fill: float | complex | None = None
    """The value of every element of a tile that is not stored; None: there must be none."""

    @classmethod
    def from_numpy(cls, array: NDArray[Any], tile: int | Sequence[int], *, copy: bool = True) -> TiledArray:
        """Cut an array into tiles of one size, in Fortran order.

        With `copy=False` the tiles are read-only views of the array, in its own order: no
        memory is used, and what is written to the array later shows in the tiles.
        """
        array = np.asarray(array)
        layout = Layout.regular(array.shape, tile)
        tiles: dict[Index, Tile] = {}
        for index in layout.indices():
            view = array[(*layout.slices(index), ...)]
            if copy:
                view = np.array(view, order="F")
            else:
                view.flags.writeable = False
            tiles[index] = view
        return cls(layout, array.dtype, tiles)

    @classmethod
    def over(cls, array: NDArray[Any], layout: Layout) -> TiledArray:
        """An array as a place for results: its tiles are views of it that can be written to.

        >>> a = np.zeros((2, 3))
        >>> TiledArray.over(a, Layout.regular(a.shape, 2)).tile((0, 1))[...] = 5
        >>> a
        array([[0., 0., 5.],
               [0., 0., 5.]])
        """
        if layout.shape != array.shape:
            raise InputError(f"a layout of shape {layout.shape} for an array of shape {array.shape}")
        return cls(layout, array.dtype, layout.views(array))

    @classmethod
    def from_tiles(
        cls,
        tiles: Mapping[Index, Tile],
        *,
        grid: Sequence[int] | None = None,
        fill: float | complex | None = None,
        name: str = "array",
    ) -> TiledArray:
        """Put tiles together; their shapes say how the array is cut.

        `grid` is needed only where tiles at the end are not stored but filled. `name` is for messages.

        >>> TiledArray.from_tiles({(0,): np.ones(2), (1,): np.ones(1)}).shape
        (3,)
        """
        if not tiles:
            raise InputError(f"{name} has no tiles, so its shape is unknown; write at least one tile of it")
        cuts = _grid(tiles, name) if grid is None else tuple(grid)
        boundaries = tuple(from_sizes(_sizes(tiles, axis, count, name)) for axis, count in enumerate(cuts))
        dtype = np.result_type(*{tile.dtype for tile in tiles.values()})
        tiled = cls(Layout(boundaries), dtype, dict(tiles), fill)
        if fill is None:
            missing = [index for index in tiled.layout.indices() if index not in tiles]
            if missing:
                raise InputError(
                    f"{_listed(TileKey(name, index) for index in missing)} not written, and {name} has no "
                    f"fill; write every tile of it, or declare it Out(fill=...)"
                )
        return tiled

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the whole array."""
        return self.layout.shape

    @property
    def grid(self) -> tuple[int, ...]:
        """How many tiles along each axis."""
        return self.layout.grid

    @property
    def ndim(self) -> int:
        """How many axes."""
        return len(self.layout.boundaries)

    @property
    def nbytes(self) -> int:
        """Bytes of the tiles that are stored."""
        return sum(tile.nbytes for tile in self.tiles.values())

    def tile(self, index: Index) -> Tile:
        """One tile; a fresh one of the fill value if it is not stored."""
        stored = self.tiles.get(index)
        if stored is not None:
            return stored
        shape = self.layout.tile_shape(index)
        if self.fill is None:
            raise InputError(f"tile {index} is not stored, and there is no fill value")
        return np.full(shape, self.fill, self.dtype, order="F")

    def transposed(self) -> TiledArray:
        """The array with its axes in reverse order; its tiles are views of these.

        >>> TiledArray.from_numpy(np.arange(6).reshape(2, 3), 2).transposed().to_numpy()
        array([[0, 3],
               [1, 4],
               [2, 5]])
        """
        layout = Layout(self.layout.boundaries[::-1])
        turned = {index[::-1]: tile.T for index, tile in self.tiles.items()}
        return TiledArray(layout, self.dtype, turned, self.fill)

    def keyed(self, name: str) -> Iterator[tuple[TileKey, Tile]]:
        """The stored tiles under their keys in a program that calls this array `name`."""
        return ((TileKey(name, index), tile) for index, tile in self.tiles.items())

    def to_numpy(self, order: str = "C") -> NDArray[Any]:
        """The whole array in one piece, in C or Fortran order."""
        if order not in ("C", "F"):
            raise InputError(f"order {order!r} is not known; use 'C' or 'F'")
        whole = np.empty(self.shape, self.dtype, order="C" if order == "C" else "F")
        for index in self.layout.indices():
            stored = self.tiles.get(index)
            # A filled tile is never made, only its value is spread.
            whole[self.layout.slices(index)] = self.fill if stored is None else stored
        return whole

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("a TiledArray is in pieces: it cannot become one array without a copy")
        whole = self.to_numpy()
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def __repr__(self) -> str:
        grid = "×".join(map(str, self.grid))
        return f"TiledArray(shape={self.shape}, dtype={self.dtype}, grid={grid})"


def _grid(tiles: Mapping[Index, Tile], name: str) -> tuple[int, ...]:
    ranks = {len(index) for index in tiles}
    if len(ranks) > 1:
        raise InputError(f"tiles of {name} are indexed with {sorted(ranks)} indices; use one number of them")
    return tuple(max(positions) + 1 for positions in zip(*tiles, strict=True))


def _sizes(tiles: Mapping[Index, Tile], axis: int, count: int, name: str) -> list[int]:
    """Sizes of the tiles along one axis; all tiles in one slab of the grid must agree."""
    sizes: dict[int, tuple[int, Index]] = {}
    for index, tile in tiles.items():
        if tile.ndim != len(index):
            raise InputError(
                f"{TileKey(name, index)} has {tile.ndim} axes but {len(index)} indices, so the tiles of "
                f"{name} do not form one array; take them one by one"
            )
        size, other = sizes.setdefault(index[axis], (tile.shape[axis], index))
        if size != tile.shape[axis]:
            raise InputError(
                f"{TileKey(name, other)} and {TileKey(name, index)} do not fit together: "
                f"{size} and {tile.shape[axis]} elements along axis {axis}, so the tiles of {name} "
                f"do not form one array; take them one by one"
            )
    unknown = [position for position in range(count) if position not in sizes]
    if unknown:
        raise InputError(
            f"no tile of {name} at position {unknown[0]} along axis {axis} is written, so its size there is "
            "unknown; write at least one tile there"
        )
    return [sizes[position][0] for position in range(count)]


def _listed(keys: Iterable[TileKey]) -> str:
    """A few keys, and how many more, with the verb that suits."""
    shown = list(keys)
    text = ", ".join(map(repr, shown[:3]))
    if len(shown) > 3:
        text += f" and {len(shown) - 3} more"
    return f"{text} {'is' if len(shown) == 1 else 'are'}"
