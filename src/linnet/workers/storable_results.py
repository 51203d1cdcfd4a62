"""Results of kernels as they can be stored: arrays of what a store holds, which nobody changes any more.

A worker stores results after the kernel has returned, while the next task is computed. A kernel that keeps
what it returns, and writes into it at its next call, would change a tile that is on its way. So results
whose memory somebody else holds are copied. Who holds it is told by CPython's counts of references.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from linnet.tiles import Tile, TileKey
from linnet.tiles.codec import check_dtype

Pairs = list[tuple[TileKey, Tile]]


def settled(results: Pairs, operands: Iterable[Tile]) -> Pairs:
    """Results that are read-only, with memory that is their own, or that of operands, which nobody writes to.

    `results` must be all that the caller holds of them. TypeError says what cannot be stored.

    >>> kept = np.zeros(2)
    >>> ((_, tile),) = settled([(TileKey("B", (0,)), kept[:1])], [])
    >>> kept[0] = 1
    >>> tile
    array([0.])
    """
    if len(results) == 1 and _count(results[0][1]) <= _ALONE and _owns(results[0][1]):
        check_dtype(results[0][1].dtype)
        results[0][1].flags.writeable = False
        return list(results)
    own = [(key, _plain(tile)) for key, tile in results]
    results.clear()
    given = {id(owner) for tile in operands for owner in _owners(tile)}
    objects: dict[int, Any] = {}
    holders: dict[int, int] = {}
    """How many of these results, and of what they are views of, refer to each object."""
    for _, tile in own:
        holders[id(tile)] = holders.get(id(tile), 0) + 1
        for owner in _owners(tile):
            if id(owner) in objects:
                break
            objects[id(owner)] = owner
            base = getattr(owner, "base", None)
            if base is not None:
                holders[id(base)] = holders.get(id(base), 0) + 1
    tile = owner = base = None
    shared = {each for each in objects if _references(objects, each) - _NOBODY > holders[each]}
    found: Pairs = []
    for key, each in own:
        names = [id(owner) for owner in _owners(each)]
        mine = given.intersection(names) or not shared.intersection(names)
        one = each if mine else np.array(each, order="K")
        one.flags.writeable = False
        found.append((key, one))
    return found


def _owns(tile: Tile) -> bool:
    """Whether this is an array as such, with memory of its own."""
    return type(tile) is np.ndarray and tile.base is None


def _plain(tile: Tile) -> Tile:
    """The array itself; TypeError if it is none that a store could give back."""
    if type(tile) is not np.ndarray:
        if isinstance(tile, np.ma.MaskedArray):
            raise TypeError("returned a masked array, and a store keeps no masks: return x.filled(value)")
        tile = np.asarray(tile)
    check_dtype(tile.dtype)
    return tile


def _owners(tile: Tile) -> Iterable[Any]:
    """The array, and whatever it is a view of."""
    owner: Any = tile
    while owner is not None:
        yield owner
        owner = getattr(owner, "base", None)


def _references(objects: dict[int, Any], each: int) -> int:
    return sys.getrefcount(objects[each])


_NOBODY = _references({0: object()}, 0)
"""Of an object that only the dictionary has."""


def _count(tile: Any) -> int:
    return sys.getrefcount(tile)


_PAIRS: list[tuple[str, Any]] = [("", object())]
_ALONE = _count(_PAIRS[0][1])
"""Of an object that only a pair in a list has."""
