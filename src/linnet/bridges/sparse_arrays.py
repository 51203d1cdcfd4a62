"""Sparse arrays of SciPy and of the `sparse` package, made dense a tile at a time.

The coordinates of what is stored are sorted by the tile they fall into, once; a tile is then its
share of them, put into zeros. So memory holds the stored elements and the tiles in use.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.arrays.expression import chunking
from linnet.bridges.parts import Box, from_boxes
from linnet.tiles import Layout


def converted(obj: Any, chunks: Any) -> Any:
    """A sparse array or matrix as an array; None if it is none."""
    coordinates = _coordinates(obj)
    if coordinates is None:
        return None
    coords, data, fill = coordinates
    shape = tuple(int(length) for length in obj.shape)
    layout = chunking.normalized("auto" if chunks is None else chunks, shape, data.dtype)
    return from_boxes(_Dense(layout, coords, data, fill), layout, data.dtype)


def _coordinates(obj: Any) -> tuple[list[NDArray[Any]], NDArray[Any], Any] | None:
    """Positions along each axis, the elements there, each once, and what is elsewhere."""
    package = type(obj).__module__.partition(".")[0]
    if package == "scipy":
        from scipy import sparse

        if not sparse.issparse(obj):
            return None
        coo: Any = obj.tocoo(copy=True)  # pyright: ignore[reportAttributeAccessIssue]
        coo.sum_duplicates()
        return list(coo.coords), coo.data, coo.dtype.type(0)
    import sparse as pydata

    if not isinstance(obj, pydata.SparseArray):
        return None
    coo = pydata.COO(obj)
    return list(coo.coords), coo.data, coo.fill_value


class _Dense:
    """Gives the tiles of a layout."""

    def __init__(self, layout: Layout, coords: list[NDArray[Any]], data: NDArray[Any], fill: Any) -> None:
        self._edges = layout.boundaries
        self._grid = layout.grid
        self._fill = fill
        places = [
            np.searchsorted(np.asarray(edges), line, side="right") - 1
            for edges, line in zip(layout.boundaries, coords, strict=True)
        ]
        tiles = np.ravel_multi_index(places, self._grid) if places else np.zeros(len(data), np.intp)
        order = np.argsort(tiles, kind="stable")
        self._coords = [line[order] for line in coords]
        self._data = data[order]
        count = int(np.prod(self._grid, dtype=np.intp))
        self._ends = np.searchsorted(tiles[order], np.arange(count + 1))

    def __call__(self, box: Box) -> NDArray[Any]:
        place = [edges.index(side.start) for edges, side in zip(self._edges, box, strict=True)]
        number = int(np.ravel_multi_index(place, self._grid)) if place else 0
        share = slice(self._ends[number], self._ends[number + 1])
        block = np.full([side.stop - side.start for side in box], self._fill, self._data.dtype)
        inside = tuple(line[share] - side.start for line, side in zip(self._coords, box, strict=True))
        block[inside] = self._data[share] if inside else self._data[:1].sum()
        return block
