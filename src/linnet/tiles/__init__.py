"""Tiles: their keys, how arrays are cut into them, and arrays made of them."""

from linnet.tiles.amounts import amount, count, human
from linnet.tiles.keys import TileKey
from linnet.tiles.layout import Boundaries, Index, Layout, from_sizes, regular
from linnet.tiles.tiled import Tile, TiledArray

__all__ = [
    "Boundaries",
    "Index",
    "Layout",
    "Tile",
    "TileKey",
    "TiledArray",
    "amount",
    "count",
    "from_sizes",
    "human",
    "regular",
]
