"""Where the largest and smallest elements are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import as_node, axis_of, names_nothing, wrap
from linnet.arrays.elements.reductions import is_set, reduction
from linnet.arrays.expression.builders import blocks, part
from linnet.arrays.expression.nodes import Access, Along, Entry, Node, Operand, Piece, Span
from linnet.tiles import Layout

if TYPE_CHECKING:
    from linnet.arrays.array import Array


@reduction(np.argmax, out_at=2)
def argmax(x: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Array:
    """The position of the largest element, the first of equals; NaN counts as largest.

    Parameters
    ----------
    x : array_like
    axis : int, optional; None: over all elements, in row-major order
    out : array, optional; where the result goes
    keepdims : whether reduced axes stay, with length 1

    Returns
    -------
    Array of positions

    Examples
    --------
    >>> import linnet as ln
    >>> ln.argmax([[1, 5], [7, 2]], axis=1).compute()
    array([1, 0])
    """
    return wrap(position(as_node(x), "max", axis, is_set(keepdims)))


@reduction(np.argmin, out_at=2)
def argmin(x: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Array:
    """The position of the smallest element, the first of equals; NaN counts as smallest.

    Parameters
    ----------
    x : array_like
    axis : int, optional; None: over all elements, in row-major order
    out : array, optional; where the result goes
    keepdims : whether reduced axes stay, with length 1

    Returns
    -------
    Array of positions

    Examples
    --------
    >>> import linnet as ln
    >>> ln.argmin([[1, 5], [7, 2]], axis=1).compute()
    array([0, 1])
    """
    return wrap(position(as_node(x), "min", axis, is_set(keepdims)))


def position(node: Node, kind: str, axis: Any, keepdims: bool) -> Node:
    """Where the best element is: each tile gives its best and its place, then the best of these is found."""
    axis = None if names_nothing(axis, node.ndim) else axis
    axes = tuple(range(node.ndim)) if axis is None else (axis_of(axis, node.ndim),)
    which = None if axis is None else axes[0]
    edges = node.layout.boundaries
    starts = tuple(Entry(a, edges[a][:-1]) for a in axes)
    access: tuple[Access, ...] = tuple(Along(a) for a in range(node.ndim))
    attributes = (("kind", kind), ("axis", which), ("shape", node.shape if which is None else None))
    found = blocks(
        (node,), (Piece("arg_tile", (Operand(0, access), *starts), attributes),), node.layout, node.dtype, 2
    )
    short = Layout(tuple(tuple(range(len(e))) if a in axes else e for a, e in enumerate(edges)))
    values, places = part(found, 0, node.dtype, short), part(found, 1, np.intp, short)
    kept = [a for a in range(node.ndim) if keepdims or a not in axes]
    tiles: tuple[Access, ...] = tuple(
        Span(0, node.grid[a]) if a in axes else Along(kept.index(a)) for a in range(node.ndim)
    )
    drop = () if keepdims else axes
    piece = Piece(
        "arg_join", (Operand(0, tiles), Operand(1, tiles)), (("kind", kind), ("axis", which), ("drop", drop))
    )
    layout = Layout(tuple((0, 1) if a in axes else edges[a] for a in kept))
    return blocks((values, places), (piece,), layout, np.intp)


METHODS: dict[str, Any] = {"argmax": argmax, "argmin": argmin}
__all__ = [*METHODS]  # pyright: ignore[reportUnsupportedDunderAll]
