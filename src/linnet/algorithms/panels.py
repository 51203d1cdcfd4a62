"""How matrices are cut for the reduction to a band: what SVD and Hermitian eigenvalues share."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from linnet.errors import InputError
from linnet.kernels import storage
from linnet.kernels.spectra import cut_edges
from linnet.tiles import TiledArray

PANELS = 4
"""Panels to a tile. The band is as wide as a panel: narrow, so that it is chased soon, while in larger tiles
BLAS copies less for each product. With two panels of 96, eigenvalues of n = 3000 took 1.15 times as long."""
GROUP = 96
"""Sweeps of the chase whose reflectors are applied together."""
SLABS = 8
"""Slabs of columns in which vectors are computed."""


def slab_edges(columns: int, size: int) -> tuple[int, ...]:
    """Where the slabs of so many columns begin and end, for a matrix with so many columns.

    >>> slab_edges(20, 100)
    (0, 2, 5, 7, 10, 12, 15, 17, 20)
    """
    return cut_edges(columns, min(size, SLABS))


def panel_width(matrix: TiledArray) -> int:
    """How wide a panel is: a tile is cut into as many as it can, all alike; the others have no columns.

    A panel narrower than the one before would leave part of the triangle of that one outside of the band.

    >>> [panel_width(TiledArray.from_numpy(np.zeros((20, 20)), tile)) for tile in (8, 10, 7)]
    [2, 5, 7]
    """
    sizes = np.diff(matrix.layout.boundaries[1])
    if len(set(sizes[:-1].tolist())) > 1 or sizes[-1] > sizes[0]:
        raise InputError(
            "the reduction to a band takes tiles of one width (the last may be narrower); "
            f"got {sizes.tolist()}"
        )
    tile = int(sizes[0])
    return min(tile // count for count in range(1, PANELS + 1) if tile % count == 0)


def joined(slabs: TiledArray, order: Literal["C", "F"]) -> NDArray[Any]:
    """Vectors that were computed in slabs, in one piece; as `to_numpy`, but in pages of ordinary size.

    >>> joined(TiledArray.from_numpy(np.eye(2), (1, 2)), "F")
    array([[1., 0.],
           [0., 1.]])
    """
    rows, columns = slabs.shape
    shape = (rows, columns) if order == "C" else (columns, rows)
    whole = storage.empty(shape, slabs.dtype)
    whole = whole if order == "C" else whole.T
    for index in slabs.layout.indices():
        whole[slabs.layout.slices(index)] = slabs.tile(index)
    return whole
