"""Arrays into whatever takes `target[slices] = tile`: NumPy's arrays, data sets of h5py, arrays of zarr."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

from linnet.arrays.elements.core import as_node
from linnet.arrays.expression.nodes import Along, Entry, Node, Number, Operand, Source, Stored
from linnet.arrays.functions.map_blocks import called
from linnet.arrays.lowering.evaluate import computed, persisted
from linnet.errors import InputError
from linnet.session import current_engine
from linnet.tiles import Layout


def store(sources: Any, targets: Any, lock: Any = True, regions: Any = None) -> None:
    """Write arrays into objects that take `target[slices] = tile`; what they share is computed once.

    One array and its target, or as many of each. `regions` says where in each target its array goes: a
    slice for each axis. Tiles are written side by side if `lock=False`, else one at a time; a lock of
    your own serves too. Where workers do not share the memory of this process, tiles are computed
    there and written here.

    Parameters
    ----------
    sources : Array or sequence of them
    targets : object or sequence of them
        What takes `target[slices] = tile`.
    lock : bool or lock
        Whether one tile is written at a time; or a lock of your own.
    regions : tuple of slices or sequence of these, optional
        Where in each target its array goes.

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> target = np.zeros(5)
    >>> store(asarray(np.arange(3.0), chunks=2), target, regions=(slice(1, 4),))
    >>> target
    array([0., 0., 1., 2., 0.])
    """
    nodes, places, boxes = matched(sources, targets, regions)
    for each in zip(nodes, places, boxes, strict=True):
        _check_room(*each)
    held = threading.Lock() if lock is True else lock or None
    if current_engine().shares_memory:
        computed([written(*each, held) for each in zip(nodes, places, boxes, strict=True)])
        return
    for node, target, offsets in zip(persisted(nodes), places, boxes, strict=True):
        for index in node.layout.indices():
            box = [(edges[k], edges[k + 1]) for edges, k in zip(node.layout.boundaries, index, strict=True)]
            data = node.data[tuple(slice(*each) for each in box)] if isinstance(node, Source) else None
            tile = node.tiles.tile(index) if isinstance(node, Stored) else data
            _put(target, offsets, held, tile, *(start for start, _ in box))


def matched(sources: Any, targets: Any, regions: Any) -> tuple[list[Node], list[Any], list[tuple[int, ...]]]:
    """Arrays, their targets, and where in these they begin."""
    many = isinstance(sources, tuple | list)
    arrays, places = (list(sources), list(targets)) if many else ([sources], [targets])
    several = many and isinstance(regions, tuple | list) and not all(isinstance(r, slice) for r in regions)
    where = list(regions) if several else [regions] * len(arrays)
    if len(arrays) != len(places) or len(arrays) != len(where):
        raise InputError(f"{len(arrays)} arrays, {len(places)} targets, {len(where)} regions: one for each")
    nodes = [as_node(each) for each in arrays]
    return nodes, places, [_offsets(region, node.shape) for node, region in zip(nodes, where, strict=True)]


def written(node: Node, target: Any, offsets: tuple[int, ...], lock: Any) -> Node:
    """A node with a zero for each tile, whose making writes the tile."""
    starts: list[Number] = [Entry(axis, edges[:-1]) for axis, edges in enumerate(node.layout.boundaries)]
    access = tuple(Along(axis) for axis in range(node.ndim))
    counted = Layout.regular(node.grid, 1)
    return called(_Put(target, offsets, lock), (node,), [Operand(0, access), *starts], counted, np.uint8)


@dataclass(frozen=True, eq=False)
class _Put:
    """Writes a tile into a target."""

    target: Any
    offsets: tuple[int, ...]
    lock: Any

    def __call__(self, tile: Any, *starts: int) -> Any:
        _put(self.target, self.offsets, self.lock, tile, *starts)
        return np.zeros((1,) * tile.ndim, np.uint8)


def _put(target: Any, offsets: tuple[int, ...], lock: Any, tile: Any, *starts: int) -> None:
    box = tuple(
        slice(offset + start, offset + start + length)
        for offset, start, length in zip(offsets, starts, np.shape(tile), strict=True)
    )
    with contextlib.nullcontext() if lock is None else lock:
        target[box or ...] = tile


def _offsets(region: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    if region is None:
        return (0,) * len(shape)
    slices = region if isinstance(region, tuple) else (region,)
    if len(slices) != len(shape) or any(each.step not in (None, 1) for each in slices):
        raise InputError(f"region {region!r} of an array of shape {shape}: one slice for each axis, no steps")
    starts = tuple(each.start or 0 for each in slices)
    lengths = [
        None if each.stop is None else each.stop - start for each, start in zip(slices, starts, strict=True)
    ]
    if min(starts, default=0) < 0 or any(n not in (None, own) for n, own in zip(lengths, shape, strict=True)):
        raise InputError(f"region {region!r} has not the shape {shape} of the array that goes there")
    return starts


def _check_room(node: Node, target: Any, offsets: tuple[int, ...]) -> None:
    """Refuse a target that is too small: NumPy's own would drop what lies beyond its end."""
    shape = getattr(target, "shape", None)
    ends = tuple(offset + length for offset, length in zip(offsets, node.shape, strict=True))
    if shape is not None and (
        len(shape) != len(ends) or any(e > n for e, n in zip(ends, shape, strict=True))
    ):
        raise InputError(f"an array of shape {node.shape} at {offsets} of a target of shape {tuple(shape)}")


METHODS: dict[str, Any] = {"store": store}
__all__ = ["store"]
