"""Arrays whose axis has to lie in one tile, and how much memory there is for it."""

from __future__ import annotations

import itertools
import math
from typing import Any

from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import recut
from linnet.arrays.expression.nodes import Node
from linnet.errors import BudgetError
from linnet.session import current_engine
from linnet.tiles import Layout, human
from linnet.tiles.amounts import total_memory


def budget() -> int:
    """Bytes that may be used at once: the engine's budget, or half of the machine's memory."""
    given = current_engine().memory
    if given is not None:
        return given
    return total_memory() // 2


def fits_whole(node: Node, axes: tuple[int, ...], share: int = 8) -> bool:
    """Whether tiles that hold these axes whole are small against the budget."""
    line = math.prod(node.shape[axis] for axis in axes) * node.dtype.itemsize
    return line * share <= budget()


def whole_along(node: Node, axes: tuple[int, ...]) -> Node:
    """The node cut so that each of its tiles holds these axes whole; where it is so, as it is.

    >>> from linnet.arrays.expression.nodes import Source
    >>> import numpy as np
    >>> whole_along(Source(np.zeros((4, 6)), Layout.regular((4, 6), 2)), (1,)).grid
    (2, 1)
    """
    if all(node.grid[axis] == 1 for axis in axes):
        return node
    edges = tuple(
        (0, n) if a in axes else e
        for a, (n, e) in enumerate(zip(node.shape, node.layout.boundaries, strict=True))
    )
    layout = Layout(edges)
    largest = math.prod(max(b - a for a, b in itertools.pairwise(e)) for e in edges)
    if largest * node.dtype.itemsize > 2 * chunking.target():
        entries = tuple(-1 if axis in axes else "auto" for axis in range(node.ndim))
        layout = chunking.normalized(entries, node.shape, node.dtype)
    return recut(node, layout)


def one_tile(node: Node, name: str, gather: bool) -> Node:
    """The node in a single tile; refused above the budget unless the user said `gather=True`."""
    size = math.prod(node.shape) * node.dtype.itemsize
    if not gather and 2 * size > budget():
        raise BudgetError(
            f"{name} has to gather its operand of {human(size)} in one place, and the budget is "
            f"{human(budget())}; say gather=True to do it all the same"
        )
    return recut(node, chunking.whole(node.shape))


def gathered(function: Any, nodes: list[Node], name: str, gather: bool) -> Any:
    """NumPy's function on whole arrays, brought together in one place."""
    from linnet.arrays.lowering.evaluate import computed

    return function(*computed([one_tile(node, name, gather) for node in nodes]))
