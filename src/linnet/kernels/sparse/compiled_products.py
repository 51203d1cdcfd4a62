"""Sums of products of sparse tiles in C (`compiled/sparse.c`), where a compiler was there, of some dtypes.

Each function says when it cannot do it: whoever asks then takes SciPy.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.kernels import compiled
from linnet.machine.libraries import loaded
from linnet.tiles.sparse_tile import SparseTile

Tile = NDArray[Any]
_TYPES = {"d": 0, "f": 1, "l": 2, "q": 2}
_LIBRARY = Path(compiled.__file__).with_name("sparse.so")


@functools.cache
def _library() -> ctypes.CDLL | None:
    found = loaded(_LIBRARY)
    if found is not None:
        pointer, number = ctypes.c_void_p, ctypes.c_int64
        found.linnet_sparse_times_vector.argtypes = (ctypes.c_int, number, *(pointer,) * 5)
        found.linnet_sparse_times_vector.restype = ctypes.c_int
        found.linnet_sparse_most.argtypes = (*(number,) * 3, pointer)
        found.linnet_sparse_most.restype = number
        found.linnet_sparse_product.argtypes = (ctypes.c_int, *(number,) * 3, *(pointer,) * 4)
        found.linnet_sparse_product.restype = number
    return found


def _fits(tile: SparseTile, dtype: np.dtype[Any]) -> bool:
    return tile.dtype == dtype and tile.indices.dtype == np.int32 and len(tile.shape) == 2


def compiled_times_vector(tile: SparseTile, column: Tile, total: Tile) -> bool:
    """Add the product of a tile and a matrix of one column to another one; False if C cannot do it."""
    library, kind = _library(), _TYPES.get(total.dtype.char)
    if library is None or kind is None or column.shape[1] != 1 or not _fits(tile, total.dtype):
        return False
    if not total.flags.c_contiguous or len(column) < tile.shape[1] or len(total) < tile.shape[0]:
        return False
    x = np.ascontiguousarray(column, total.dtype)
    arrays = (tile.pointers, tile.indices, tile.values, x, total)
    return bool(
        library.linnet_sparse_times_vector(kind, tile.shape[0], *(each.ctypes.data for each in arrays))
    )


def compiled_product(
    pairs: Sequence[tuple[SparseTile, SparseTile]], shape: tuple[int, int], origin: tuple[int, int], zero: Any
) -> SparseTile | None:
    """The sum of the products of pairs of tiles; None if that must be done elsewhere.

    >>> one = SparseTile.of(np.array([[0.0, 7.0], [4.0, 0.0]]), 0)
    >>> made = compiled_product([(one, one)], (2, 2), (0, 0), np.float64(0))
    >>> [[28.0, 0.0], [0.0, 28.0]] if made is None else made.dense().tolist()
    [[28.0, 0.0], [0.0, 28.0]]
    """
    dtype = np.asarray(zero).dtype
    library, kind = _library(), _TYPES.get(dtype.char)
    if library is None or kind is None or not all(_fits(each, dtype) for pair in pairs for each in pair):
        return None
    places = [
        each.ctypes.data
        for one, other in pairs
        for each in (one.pointers, one.indices, one.values, other.pointers, other.indices, other.values)
    ]
    parts = (ctypes.c_void_p * max(1, len(places)))(*places)
    most = library.linnet_sparse_most(len(pairs), *shape, parts)
    if most >= 2**31:
        return None
    pointers = np.zeros(shape[0] + 1, np.int32)
    indices, values = np.empty(max(1, most), np.int32), np.empty(max(1, most), dtype)
    arrays = (each.ctypes.data for each in (pointers, indices, values))
    stored = library.linnet_sparse_product(kind, len(pairs), *shape, parts, *arrays)
    if stored < 0:
        return None
    return SparseTile(shape, origin, zero, pointers, indices[:stored], values[:stored])
