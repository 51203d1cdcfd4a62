"""What a sparse array is: which of its blocks are stored, and a node whose tiles are these, numbered.

The places of the stored blocks are known when an expression is written, as numbers; what is in them is not.
So which blocks a result has is computed at once, on coordinates, and the expression has tiles for these only:
a block that is absent has no number, no tile and no task. Numbers ascend in the C order of places, which
makes the blocks of a row neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.arrays.expression.builders import blocks
from linnet.arrays.expression.nodes import Access, Entry, Node, Number, Operand, Piece, Spans, Stored
from linnet.tiles import Layout, TiledArray, from_sizes
from linnet.tiles.sparse_tile import SparseTile

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """A sparse array."""

    layout: Layout
    dtype: np.dtype[Any]
    fill: Any
    """A scalar of NumPy's, of that dtype: what absent elements are."""
    places: Places
    """A line for each stored block: its place in the grid. Ascending; there is at least one."""
    packed: Node
    """The stored blocks, each a tile of bytes."""
    all_elements: Callable[[], Node] | None = None
    """Makes the dense array without the stored blocks, if there is such a way; None: from these."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the whole array."""
        return self.layout.shape

    @property
    def ndim(self) -> int:
        """How many axes."""
        return len(self.layout.boundaries)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Bytes of each stored block: known if it is there, else a guess."""
        return np.diff(self.packed.layout.boundaries[0])


def of_tiles(
    layout: Layout, dtype: np.dtype[Any], fill: Any, tiles: dict[tuple[int, ...], SparseTile]
) -> Form:
    """A sparse array in memory; if no block is stored, the first one is, and is empty."""
    if not tiles:
        first = (0,) * len(layout.boundaries)
        nothing = np.zeros(0, np.int64)
        shape = layout.tile_shape(first)
        tiles = {first: SparseTile.at(shape, (0,) * len(shape), fill, nothing, np.zeros(0, dtype))}
    places = sorted(tiles)
    packed = [tiles[place].packed() for place in places]
    return Form(layout, dtype, dtype.type(fill), np.array(places, np.int64), in_memory(packed))


def in_memory(packed: Sequence[NDArray[np.uint8]]) -> Stored:
    """Packed tiles as a node."""
    for tile in packed:
        tile.flags.writeable = False
    cut = Layout((from_sizes([len(tile) for tile in packed]),))
    numbered = {(number,): tile for number, tile in enumerate(packed)}
    return Stored(TiledArray(cut, np.dtype(np.uint8), numbered))


def by_number(
    kernel: str,
    operands: Sequence[tuple[Node, tuple[Access, ...]]],
    numbers: Sequence[Number],
    sizes: Sequence[int] | NDArray[np.int64],
    **attributes: Any,
) -> Node:
    """Blocks made one by one: a call of a kernel for each, on blocks and tiles that tables name."""
    arguments = tuple(Operand(which, access) for which, (_, access) in enumerate(operands))
    piece = Piece(kernel, (*arguments, *numbers), tuple(attributes.items()))
    cut = Layout((from_sizes([max(1, int(size)) for size in sizes]),))
    return blocks([node for node, _ in operands], (piece,), cut, np.uint8)


def table(values: Any) -> tuple[int, ...]:
    """Numbers as a node holds them."""
    return tuple(np.asarray(values).tolist())


def one_each(numbers: Any) -> Spans:
    """The block of a number, for each block of the result."""
    first = np.asarray(numbers)
    return Spans(0, table(first), table(first + 1))


def entry(values: Any) -> Entry:
    """A number for each block of the result."""
    return Entry(0, table(values))


def ascending(places: Places) -> NDArray[np.intp]:
    """The order in which places ascend."""
    return np.lexsort(places.T[::-1])


def numbers_in(places: Places, grid: Sequence[int]) -> NDArray[np.int64]:
    """Places counted in C order."""
    numbers: NDArray[Any] = np.asarray(np.ravel_multi_index(tuple(places.T), tuple(grid)))
    return numbers.astype(np.int64)


def reordered(form: Form, order: NDArray[Any]) -> Node:
    """The stored blocks in another order: of arrays in memory without a task."""
    if (order == np.arange(len(order))).all():
        return form.packed
    if isinstance(form.packed, Stored):
        tiles = form.packed.tiles.tiles
        return in_memory([tiles[(int(number),)] for number in order])
    return by_number("sparse_same", [(form.packed, (one_each(order),))], (), form.sizes[order])


def ranges(keys: NDArray[Any], count: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Of ascending keys: where each of `count` begins, and where it ends."""
    wanted = np.arange(count)
    return np.searchsorted(keys, wanted, "left"), np.searchsorted(keys, wanted, "right")


def starts(layout: Layout, axis: int) -> NDArray[np.int64]:
    """Where tiles begin along an axis."""
    return np.asarray(layout.boundaries[axis][:-1], np.int64)


def lengths(layout: Layout, axis: int) -> NDArray[np.int64]:
    """How long tiles are along an axis."""
    return np.diff(np.asarray(layout.boundaries[axis], np.int64))
