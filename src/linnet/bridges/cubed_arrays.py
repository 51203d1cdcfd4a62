"""Cubed's arrays: in through the store that Cubed computes into, out as blocks that compute one tile each."""

from __future__ import annotations

import shutil
import tempfile
import threading
import weakref
from typing import Any

import numpy as np

from linnet.arrays.elements.core import ArrayBase, recut_as, wrap
from linnet.bridges.parts import Box, from_boxes, from_chunks
from linnet.errors import MissingExtraError


class _Computed:
    """A Cubed array, computed into a folder when a part of it is first asked for.

    Cubed's plans end in a store, whatever part of the result one wants; so it runs once, in memory
    that it bounds itself, and tiles are read from the store. The folder goes with the object.
    """

    def __init__(self, array: Any) -> None:
        self._array = array
        self._lock = threading.Lock()
        self._opened: Any = None

    def __reduce__(self) -> Any:
        return _Computed, (self._array,)

    def __call__(self, box: Box) -> Any:
        with self._lock:
            if self._opened is None:
                self._opened = self._run()
        return self._opened[box]

    def _run(self) -> Any:
        import cubed
        import zarr

        folder = tempfile.mkdtemp(prefix="linnet-cubed-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        cubed.to_zarr(self._array, folder)
        return zarr.open_array(folder, mode="r")


def converted(obj: Any, chunks: Any) -> Any:
    """A Cubed array as tiles, a tile for each of its chunks; None if it is no array."""
    import cubed

    if not isinstance(obj, cubed.Array):
        return None
    tiled = from_boxes(_Computed(obj), from_chunks(obj.chunks), obj.dtype)
    return wrap(recut_as(tiled.__node__, chunks))


def to_cubed(x: Any, spec: Any = None) -> Any:
    """A Cubed array whose chunks are the tiles of an array; a tile is computed when its chunk is.

    Cubed's chunks have one length along an axis, the last one shorter; other tiles are cut anew.

    Parameters
    ----------
    x : array_like
    spec : cubed.Spec, optional
        Cubed's memory and place for its own files.

    Returns
    -------
    cubed.Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.to_cubed(ln.asarray(np.arange(6.0), chunks=4)).chunks
    ((4, 2),)
    """
    try:
        import cubed
    except ImportError as error:
        raise MissingExtraError("to_cubed needs cubed; install it with: pip install cubed") from error
    if not isinstance(x, ArrayBase):
        raise TypeError(f"to_cubed takes an array of linnet's, not {type(x).__name__}; use ln.asarray first")
    array = wrap(recut_as(x.__node__, tuple(max(sizes) for sizes in x.chunks)))  # pyright: ignore[reportAttributeAccessIssue]

    def tile(block: Any, block_id: Any = None) -> Any:
        return np.asarray(array.blocks[block_id])

    if not array.ndim:
        return cubed.from_array(np.asarray(array), spec=spec)
    return cubed.map_blocks(tile, dtype=array.dtype, chunks=array.chunks, spec=spec)
