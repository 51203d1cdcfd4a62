"""Writing arrays into stores of other libraries, a tile at a time."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from linnet.arrays.blockwise import called
from linnet.arrays.core import ArrayBase
from linnet.arrays.evaluation import computed
from linnet.arrays.expression import Along, Entry, Node, Number, Operand
from linnet.bridges.parts import missing
from linnet.errors import InputError
from linnet.tiles import Layout


def store(
    sources: Any,
    targets: Any,
    *,
    lock: Any = None,
    compute: bool = True,
    regions: Any = None,
    flush: bool = True,
    **_: Any,
) -> Any:
    """Write arrays into objects that take `target[slices] = tile`; what they share is computed once.

    `regions` says where in each target its array goes. With `compute=False` the result is a
    `dask.delayed` that writes when it is computed, which is what xarray makes its own ones of.
    """
    many = isinstance(sources, tuple | list)
    arrays, places = (list(sources), list(targets)) if many else ([sources], [targets])
    where = list(regions) if isinstance(regions, tuple | list) and many else [regions] * len(arrays)
    if len(arrays) != len(places) or len(arrays) != len(where):
        raise InputError(f"{len(arrays)} arrays, {len(places)} targets, {len(where)} regions: one for each")
    nodes = [_written(*each, lock or None) for each in zip(arrays, places, where, strict=True)]

    def write() -> None:
        computed(nodes)

    if compute:
        return write()
    try:
        from dask.delayed import delayed
    except ImportError as error:
        raise missing("writing later (compute=False)", "linnet[dask]") from error
    return delayed(write)()


def _written(array: Any, target: Any, region: Any, lock: Any) -> Node:
    """A node with a zero for each tile, whose making writes the tile."""
    if not isinstance(array, ArrayBase):
        raise TypeError(f"store takes arrays of linnet's, not {type(array).__name__}")
    node = array.node
    offsets = _offsets(region, node.shape)

    def put(tile: Any, *starts: int) -> Any:
        box = tuple(
            slice(offset + start, offset + start + length)
            for offset, start, length in zip(offsets, starts, tile.shape, strict=True)
        )
        with contextlib.nullcontext() if lock is None else lock:
            target[box or ...] = tile
        return np.zeros((1,) * tile.ndim, np.uint8)

    starts: list[Number] = [Entry(axis, edges[:-1]) for axis, edges in enumerate(node.layout.boundaries)]
    access = tuple(Along(axis) for axis in range(node.ndim))
    counted = Layout.regular(node.grid, 1)
    return called(put, (node,), [Operand(0, access), *starts], counted, np.uint8)


def _offsets(region: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    if region is None:
        return (0,) * len(shape)
    slices = region if isinstance(region, tuple) else (region,)
    if len(slices) != len(shape) or any(each.step not in (None, 1) for each in slices):
        raise InputError(f"region {region!r} of an array of shape {shape}: one slice for each axis, no steps")
    return tuple(each.start or 0 for each in slices)
