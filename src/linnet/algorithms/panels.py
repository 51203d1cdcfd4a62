"""How matrices are cut for the reduction to a band: what SVD and Hermitian eigenvalues share."""

from __future__ import annotations

from linnet.kernels.linalg.small_spectra import cut_edges
from linnet.tiles import Layout

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
    return cut_edges(columns, max(1, min(size, SLABS)))


def panel_width(layout: Layout) -> int:
    """How wide a panel is: a tile is cut into as many as it can, all alike; the others have no columns.

    A panel narrower than the one before would leave part of the triangle of that one outside of the band.

    >>> [panel_width(Layout.regular((20, 20), tile)) for tile in (8, 10, 7)]
    [2, 5, 7]
    """
    tile = layout.boundaries[1][1]
    return min(tile // count for count in range(1, PANELS + 1) if tile % count == 0)
