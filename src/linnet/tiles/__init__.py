"""Tiles: their keys, and the arithmetic of cutting arrays into them."""

from linnet.tiles.keys import TileKey

__all__ = ["TileKey"]
