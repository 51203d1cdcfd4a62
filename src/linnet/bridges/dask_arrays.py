"""Dask's arrays: in as tiles that compute one block each, out as blocks that compute one tile each.

Each block runs its own part of the other library's graph, so nothing but a block is in memory for
it. What blocks share is computed for each of them; `persist` before handing over, if that is much.
"""

from __future__ import annotations

import math
import uuid
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from linnet.arrays.elements.core import ArrayBase, recut_as, wrap
from linnet.bridges.parts import Box, from_boxes, from_chunks
from linnet.errors import missing_extra


def converted(obj: Any, chunks: Any) -> Any:
    """A Dask array as tiles, a tile for each of its blocks; None if it is no array.

    Blocks whose lengths Dask does not know are computed once, to learn these.
    """
    import dask
    import dask.array as da

    if not isinstance(obj, da.Array):
        return None
    if any(math.isnan(size) for sizes in obj.chunks for size in sizes):
        known: Any = obj.copy()  # pyright: ignore[reportAttributeAccessIssue] # the user's stays as it is
        obj = known.compute_chunk_sizes()
    (optimised,) = dask.optimize(obj)  # pyright: ignore[reportPrivateImportUsage]
    return wrap(recut_as(from_boxes(_Blocks(optimised), from_chunks(obj.chunks), obj.dtype).__node__, chunks))


@dataclass(frozen=True, eq=False)
class _Blocks:
    """Gives the blocks of a Dask array. It is pickled as Dask pickles the array."""

    array: Any

    def __call__(self, box: Box) -> Any:
        places = (found[side.start] for found, side in zip(self._places, box, strict=True))
        key = (self.array.name, *places)
        (block,) = _get()(self.array.__dask_graph__().cull([key]), [key])
        return block

    @cached_property
    def _places(self) -> list[dict[int, int]]:
        return [_places(sizes) for sizes in self.array.chunks]


def _places(sizes: tuple[int, ...]) -> dict[int, int]:
    """The number of the block that starts at a position; empty blocks have none, unless all are empty."""
    places: dict[int, int] = {}
    start = 0
    for number, size in enumerate(sizes):
        if size or not places:
            places[start] = number
        start += int(size)
    return places


def _get() -> Any:
    """What runs graphs: as the user told Dask to, else the thread of the tile's task."""
    from dask.base import get_scheduler
    from dask.local import get_sync

    return get_scheduler() or get_sync


def to_dask(x: Any) -> Any:
    """A Dask array whose blocks are the tiles of an array; a tile is computed when its block is.

    Parameters
    ----------
    x : array_like

    Returns
    -------
    dask.array.Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.to_dask(ln.asarray(np.arange(6.0), chunks=3)).sum().compute()
    np.float64(15.0)
    """
    try:
        import dask.array as da
    except ImportError as error:
        raise missing_extra("to_dask", "dask", "dask") from error
    if not isinstance(x, ArrayBase):
        raise TypeError(f"to_dask takes an array of linnet's, not {type(x).__name__}; use ln.asarray first")
    array = wrap(x.__node__)  # what is assigned to x later is no concern of the blocks
    name = f"linnet-{uuid.uuid4().hex}"
    meta = np.empty((0,) * array.ndim, array.dtype)
    return da.from_array(_Sliced(array), chunks=array.chunks, name=name, meta=meta)


class _Sliced:
    """An array as Dask reads it: slices are NumPy's."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.shape, self.dtype, self.ndim = array.shape, array.dtype, array.ndim

    def __getitem__(self, key: Any) -> Any:
        return np.asarray(self.array[key])
