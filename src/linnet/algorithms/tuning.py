"""How matrices are cut, when the user does not say.

The answer depends on the shape, the dtype, a fixed target and the memory budget if there is one,
never on the number of workers or on the machine: how a matrix is cut decides in which order its
numbers are added, and results must be the same bits wherever they are computed.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from linnet.errors import InputError
from linnet.tiles import Layout
from linnet.tiles.layout import regular

SHORTCUT = 1024
"""A matrix with fewer rows and columns than this goes straight to LAPACK."""

SPECTRAL_SHORTCUT = 2048
"""The same for singular values and eigenvalues, whose two stages pay off later."""

_ALIGNED = 32
"""Tile sizes are multiples of this: vectors and pages of kernels come out even."""
_TILES = 8
"""Along its longer axis a matrix has at least so many tiles, so that cores have work side by side."""

_HELD = 5
"""Lines of tiles that must fit into a budget: a task holds two, and two tasks are to run side by side."""

_LAPACK_COPIES = 8
"""Matrices of its size for which LAPACK needs room to find all vectors of one."""

_MANY, _SHORT = 32, 32
"""A cut of the user's is not kept if it has more tiles along an axis and these are shorter than this."""

# Sides of square float64 tiles: (smallest worth a task, largest worth a copy).
_SIDES = {
    "gemm": (256, 1024),
    "cholesky": (192, 1024),
    "triangular": (192, 512),
    "lu": (128, 640),
    "qr": (128, 448),
    "svd": (256, 256),
    "eigh": (320, 320),
}


def tile_size(
    shape: Sequence[int], dtype: DTypeLike = np.float64, kind: str = "gemm", memory: int | None = None
) -> int:
    """The side of the square tiles into which a matrix of this shape is cut for an algorithm.

    `kind` is one of gemm, cholesky, triangular, lu, qr, svd, eigh. Wider elements get smaller
    tiles, of about as many bytes; so do computations for which there are only so many bytes of
    `memory`.

    >>> tile_size((4096, 4096), np.float64, "gemm"), tile_size((8192, 8192), np.float32, "cholesky")
    (512, 1024)
    >>> tile_size((8192, 8192), np.float64, "cholesky", memory=50_000_000)
    128
    """
    if kind not in _SIDES:
        raise InputError(f"no tile size is known for {kind!r}; there are {', '.join(_SIDES)}")
    low, high = _SIDES[kind]
    longest = max((*shape, 1))
    # The width of a band decides how soon it is chased: it is the same for all dtypes.
    scale = 1.0 if low == high else (8 / np.dtype(dtype).itemsize) ** 0.5
    side = min(max(ceil(longest / _TILES), low * scale), high * scale)
    side = ceil(side / _ALIGNED)
    if memory is not None:
        side = min(side, memory // (_HELD * longest * np.dtype(dtype).itemsize * _ALIGNED))
    return max(1, side) * _ALIGNED


def even_side(length: int, side: int) -> int:
    """A side that cuts a length into as many tiles, the last of them nearly as large as the others.

    >>> even_side(5000, 384), even_side(4096, 512)
    (360, 512)
    """
    return ceil(length / ceil(length / side) / 8) * 8 if length else side


def side_of(layout: Layout) -> int | None:
    """The side of the square tiles of a cut, the last of which may be shorter; None if it has no such tiles.

    >>> side_of(Layout.regular((10, 7), 4)), side_of(Layout.regular((10, 7), (4, 3)))
    (4, None)
    """
    rows, columns = layout.boundaries
    side = max(rows[1], columns[1])
    alike = rows == regular(rows[-1], max(1, side)) and columns == regular(columns[-1], max(1, side))
    return side if alike else None


def tile_side(tile: Any) -> int:
    """The length of tiles that a user asks for.

    >>> tile_side(np.int64(7))
    7
    """
    try:
        side = operator.index(tile)
    except TypeError:
        raise InputError(f"tile={tile!r}: give the length of square tiles, a whole number") from None
    if side < 1:
        raise InputError(f"tile={tile}: a tile has at least one row and one column")
    return side


def square_cut(
    layout: Layout, dtype: np.dtype[np.generic], kind: str, *, tile: int | None, own: bool, memory: int | None
) -> Layout:
    """How a matrix that is cut by `layout` is cut for an algorithm: into tiles that are square.

    `tile` is what the user asks for. Without it a cut of the user's `own` is kept if it suits.
    """
    shape = layout.shape
    if tile is not None:
        return Layout.regular(shape, tile)
    if own:
        side = side_of(layout)
        if side is not None and (max(layout.grid) <= _MANY or side >= _SHORT):
            return Layout.regular(shape, side)
    side = tile_size(shape, dtype, kind, memory)
    return Layout.regular(shape, even_side(max(shape), side) if kind in ("lu", "triangular") else side)


def goes_whole(
    shape: Sequence[int], itemsize: int, grid: Sequence[int], *, own: bool, spectral: bool, memory: int | None
) -> bool:
    """Whether LAPACK takes a matrix of this shape whole: it is short, and nobody cut it."""
    if 0 in shape:
        return True
    if own and max(grid) > 1:
        return False
    longest = max(shape)
    if longest < SHORTCUT:
        return True
    fits = memory is None or _LAPACK_COPIES * itemsize * shape[0] * shape[1] <= memory
    return spectral and longest < SPECTRAL_SHORTCUT and fits
