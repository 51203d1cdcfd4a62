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
        found.linnet_sparse_most.argtypes = (*(number,) * 3, pointer, pointer)
        found.linnet_sparse_most.restype = number
        found.linnet_sparse_product.argtypes = (ctypes.c_int, *(number,) * 3, *(pointer,) * 4)
        found.linnet_sparse_product.restype = number
        found.linnet_sparse_dense_product.argtypes = (ctypes.c_int, *(number,) * 3, pointer, number, pointer)
        found.linnet_sparse_dense_product.restype = ctypes.c_int
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
) -> Tile | None:
    """The sum of the products of pairs of tiles, packed; None if that must be done elsewhere.

    >>> one = SparseTile.of(np.array([[0.0, 7.0], [4.0, 0.0]]), 0)
    >>> made = compiled_product([(one, one)], (2, 2), (0, 0), np.float64(0))
    >>> [[28.0, 0.0], [0.0, 28.0]] if made is None else SparseTile.unpacked(made).dense().tolist()
    [[28.0, 0.0], [0.0, 28.0]]
    """
    dtype = np.asarray(zero).dtype
    library, kind = _library(), _TYPES.get(dtype.char)
    if library is None or kind is None or not all(_fits(each, dtype) for pair in pairs for each in pair):
        return None
    parts = _parts(pairs)
    noted = np.zeros(shape[0] + 1, np.int32)
    most = library.linnet_sparse_most(len(pairs), *shape, parts, noted[1:].ctypes.data)
    if most >= 2**31:
        return None
    tile, memory = SparseTile.room(shape, origin, zero, most)
    tile.pointers[:] = noted
    arrays = (each.ctypes.data for each in (tile.pointers, tile.indices, tile.values))
    stored = library.linnet_sparse_product(kind, len(pairs), *shape, parts, *arrays)
    return None if stored < 0 else tile.filled(memory, stored)


def compiled_dense_product(pairs: Sequence[tuple[SparseTile, SparseTile]], made: Tile) -> bool:
    """Write the sum of the products of pairs of tiles to a matrix; False if that must be done elsewhere."""
    library, kind = _library(), _TYPES.get(made.dtype.char)
    if library is None or kind is None or not all(_fits(each, made.dtype) for pair in pairs for each in pair):
        return False
    if made.strides[1] != made.itemsize or made.strides[0] % made.itemsize:
        return False
    leading = made.strides[0] // made.itemsize
    return bool(
        library.linnet_sparse_dense_product(
            kind, len(pairs), *made.shape, _parts(pairs), leading, made.ctypes.data
        )
    )


def _parts(pairs: Sequence[tuple[SparseTile, SparseTile]]) -> Any:
    """Where pointers, indices and values of each pair lie."""
    places = [
        each.ctypes.data
        for one, other in pairs
        for each in (one.pointers, one.indices, one.values, other.pointers, other.indices, other.values)
    ]
    return (ctypes.c_void_p * max(1, len(places)))(*places)
