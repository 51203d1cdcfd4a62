"""Other ways to index an array: `x.blocks` by tiles, `x.vindex` by points."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from linnet.arrays.elements.core import wrap
from linnet.arrays.elements.index_keys import Mask, New, Points, Range, Take, parsed
from linnet.arrays.elements.indexing import indexed
from linnet.arrays.elements.join_and_split import joined, part_of
from linnet.arrays.expression.builders import permuted


class BlockView:
    """Tiles of an array by their place in the grid.

    >>> from linnet.arrays.elements.creation import asarray
    >>> asarray(np.arange(6), chunks=2).blocks[1].compute()
    array([2, 3])
    """

    def __init__(self, array: Any) -> None:
        self._array = array

    @property
    def shape(self) -> tuple[int, ...]:
        """How many tiles along each axis."""
        return self._array.grid

    @property
    def size(self) -> int:
        """How many tiles."""
        return int(np.prod(self.shape, dtype=object))

    def __getitem__(self, index: Any) -> Any:
        node = self._array.__node__
        given = index if isinstance(index, tuple) else (index,)
        if Ellipsis in given:
            place = given.index(Ellipsis)
            given = (*given[:place], *(slice(None),) * (node.ndim - len(given) + 1), *given[place + 1 :])
        if len(given) > node.ndim:
            raise IndexError(f"{len(given)} indices for tiles of an array with {node.ndim} axes")
        for axis, each in enumerate(given):
            if each is None:
                raise IndexError("tiles have no new axes; index with integers, slices and lists")
            chosen = np.atleast_1d(np.arange(node.grid[axis])[each]).tolist()
            edges = node.layout.boundaries[axis]
            if not chosen:
                node = part_of(node, axis, 0, 0)
            elif chosen == list(range(chosen[0], chosen[0] + len(chosen))):
                node = part_of(node, axis, edges[chosen[0]], edges[chosen[-1] + 1])
            else:
                node = joined([part_of(node, axis, edges[k], edges[k + 1]) for k in chosen], axis)
        return wrap(node)

    def ravel(self) -> list[Any]:
        """All tiles, the last axis fastest, each an array."""
        return [self[index] for index in itertools.product(*(range(n) for n in self.shape))]


class PointView:
    """Elements at points: index arrays run together wherever they stand, and their axes come first.

    >>> from linnet.arrays.elements.creation import asarray
    >>> x = asarray(np.arange(24).reshape(2, 3, 4), chunks=2)
    >>> x.vindex[[0, 1], :, [3, 0]].compute()
    array([[ 3,  7, 11],
           [12, 16, 20]])
    """

    def __init__(self, array: Any) -> None:
        self._array = array

    def __getitem__(self, key: Any) -> Any:
        node = self._array.__node__
        items = parsed(key, node.shape)
        if any(isinstance(item, Mask | New) for item in items):
            raise IndexError(f"vindex takes integers, arrays of integers and slices, not {key!r}")
        points = [item for item in items if isinstance(item, Points | Take)]
        if not points:
            raise IndexError(f"vindex[{key!r}] names no points; x[...] takes slices alone")
        slices = [item for item in items if isinstance(item, Range)]
        turned = permuted(node, tuple(item.axis for item in (*points, *slices)))
        chosen = [item.positions if isinstance(item, Points) else item.position for item in points]
        return wrap(indexed(turned, (*chosen, *(item.part for item in slices))))


METHODS: dict[str, Any] = {
    "blocks": property(BlockView),
    "partitions": property(BlockView),
    "vindex": property(PointView),
}
__all__ = ["BlockView"]
