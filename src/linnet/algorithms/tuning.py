"""How large tiles are, when the user does not say.

The answer depends on the shape, the dtype, a fixed target and the memory budget if there is one,
never on the number of workers or on the machine: how a matrix is cut decides in which order its
numbers are added, and results must be the same bits wherever they are computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import numpy as np
from numpy.typing import DTypeLike

from linnet.errors import InputError

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

# Sides of square float64 tiles: (smallest worth a task, largest worth a copy).
_SIDES = {
    "gemm": (256, 1024),
    "cholesky": (192, 1024),
    "triangular": (192, 512),
    "lu": (128, 640),
    "qr": (128, 448),
    "svd": (64, 128),
    "eigh": (64, 128),
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
    scale = (8 / np.dtype(dtype).itemsize) ** 0.5
    side = min(max(ceil(longest / _TILES), low * scale), high * scale)
    side = ceil(side / _ALIGNED)
    if memory is not None:
        side = min(side, memory // (_HELD * longest * np.dtype(dtype).itemsize * _ALIGNED))
    return max(1, side) * _ALIGNED
