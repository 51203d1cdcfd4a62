"""Where elements are: positions of what is not zero, places in sorted arrays, and row-major positions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.choose_and_select import extremes
from linnet.arrays.elements.computed_indices import known
from linnet.arrays.elements.core import as_node, chunked, wrap
from linnet.arrays.elements.elementwise import apply, cast
from linnet.arrays.elements.gather import as_mask, counted, positions, slabs
from linnet.arrays.elements.indexing import indexed
from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import blocks, concatenated, constant, filled, folded, mapped, permuted
from linnet.arrays.expression.nodes import Along, Node, Operand, Piece
from linnet.arrays.lowering.evaluate import persisted
from linnet.tiles import Layout

if TYPE_CHECKING:
    from linnet.arrays.array import Array


def _positions(node: Node) -> list[Node]:
    mask = as_mask(node)
    return positions(counted(mask, slabs(mask, mask.ndim)))


@chunked(np.nonzero, times=chunking.LINEAR)
def nonzero(a: Any) -> tuple[Array, ...]:
    """Positions of what is not zero, along each axis. How many there are is found out at once.

    Parameters
    ----------
    a : array_like

    Returns
    -------
    tuple of Arrays, one for each axis

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> [each.compute().tolist() for each in nonzero(asarray([[0, 5], [7, 0]], chunks=1))]
    [[0, 1], [1, 0]]
    """
    node = as_node(a)
    if not node.ndim:
        raise ValueError(
            "Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(scalar).nonzero() instead."
        )
    return tuple(wrap(each) for each in _positions(node))


@chunked(np.argwhere, times=chunking.LINEAR)
def argwhere(a: Any) -> Array:
    """Positions of what is not zero, a row for each.

    Parameters
    ----------
    a : array_like

    Returns
    -------
    Array of positions, a row for each element that is not zero

    Examples
    --------
    >>> import linnet as ln
    >>> ln.argwhere([[0, 5], [7, 0]]).compute()
    array([[0, 1],
           [1, 0]])
    """
    node = as_node(a)
    if not node.ndim:
        return wrap(filled((int(bool(known(wrap(node))[()])), 0), 0, np.int64))
    columns = [permuted(each, (0, -1)) for each in _positions(node)]
    return wrap(concatenated(columns, 1, np.int64))


@chunked(np.flatnonzero, times=chunking.LINEAR)
def flatnonzero(a: Any) -> Array:
    """Positions of what is not zero, in row-major order.

    Parameters
    ----------
    a : array_like

    Returns
    -------
    Array of positions in row-major order

    Examples
    --------
    >>> import linnet as ln
    >>> ln.flatnonzero([[0, 5], [7, 0]]).compute()
    array([1, 2])
    """
    node = as_node(a)
    if not node.ndim:
        node = permuted(node, (-1,))
    return wrap(_joined(_positions(node), node.shape))


def _joined(lines: Sequence[Node], shape: Sequence[int]) -> Node:
    """Positions along axes as positions in row-major order."""
    found = lines[0]
    for line, length in zip(lines[1:], shape[1:], strict=True):
        scaled = mapped("multiply", [found, constant(length, np.int64)], np.int64)
        found = mapped("add", [scaled, line], np.int64)
    return found


@chunked(np.ravel_multi_index)
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Array:
    """Positions along axes as one position in row-major (or with "F" column-major) order.

    Parameters
    ----------
    multi_index : tuple of arrays of integers, one for each axis
    dims : the shape they are positions in
    mode : "raise", "wrap" or "clip"; what becomes of positions outside
    order : "C" or "F"

    Returns
    -------
    Array of positions

    Examples
    --------
    >>> import linnet as ln
    >>> ln.ravel_multi_index(([0, 1], [2, 0]), (2, 3)).compute()
    array([2, 3])
    """
    lengths = (dims,) if hasattr(dims, "__index__") else tuple(dims)
    lines = [as_node(each) for each in multi_index]
    modes = mode if isinstance(mode, tuple) else (mode,) * len(lengths)
    if len(lines) != len(lengths):
        raise ValueError(f"parameter multi_index must be a sequence of length {len(lengths)}")
    if any(line.dtype.kind not in "iub" for line in lines):
        raise TypeError("only int indices permitted")
    settled = [_within(cast(l, np.int64), n, m) for l, n, m in zip(lines, lengths, modes, strict=True)]
    if order == "F":
        settled, lengths = settled[::-1], lengths[::-1]
    return wrap(_joined(settled, lengths))


def _within(line: Node, length: int, mode: str) -> Node:
    if mode == "wrap":
        return mapped("remainder", [line, constant(length, np.int64)], np.int64)
    if mode == "clip":
        return apply(np.minimum, apply(np.maximum, wrap(line), 0), length - 1).__node__
    (line,) = persisted([line])
    low, high = extremes(line)
    if math.prod(line.shape) and (low < 0 or high >= length):
        raise ValueError("invalid entry in coordinates array")
    return line


@chunked(np.unravel_index)
def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Array, ...]:
    """A position in row-major (or with "F" column-major) order as positions along axes.

    Parameters
    ----------
    indices : array of integers
    shape : the shape they are positions in
    order : "C" or "F"

    Returns
    -------
    tuple of Arrays, one for each axis

    Examples
    --------
    >>> import linnet as ln
    >>> [each.compute().tolist() for each in ln.unravel_index([2, 3], (2, 3))]
    [[0, 1], [2, 0]]
    """
    (line,) = persisted([as_node(indices)])
    lengths = (shape,) if hasattr(shape, "__index__") else tuple(shape)
    if line.dtype.kind not in "iub":
        raise TypeError("only int indices permitted")
    line = cast(line, np.int64) if line.dtype == bool else line
    size = math.prod(lengths)
    low, high = extremes(line)
    if math.prod(line.shape) and (low < 0 or high >= size):
        raise ValueError(f"index {low if low < 0 else high} is out of bounds for array with size {size}")
    rest: Any = wrap(cast(line, np.int64))
    found: list[Any] = []
    for length in lengths if order == "F" else lengths[::-1]:
        found.append(apply(np.remainder, rest, max(1, length)))
        rest = apply(np.floor_divide, rest, max(1, length))
    return tuple(found if order == "F" else found[::-1])


# ---- sorted arrays


@chunked(np.searchsorted)
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Array:
    """Where values belong in a sorted array: in each of its tiles they are counted, and the counts added.

    Parameters
    ----------
    a : sorted vector
    v : array_like; the values to place
    side : "left" or "right"; before or behind equal elements
    sorter : array of integers, optional; the order in which `a` is sorted

    Returns
    -------
    Array of positions, of the shape of `v`

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> searchsorted(asarray([1, 3, 5, 7], chunks=2), asarray([0, 4, 7], chunks=1)).compute()
    array([0, 2, 3])
    """
    node, values = as_node(a), as_node(v)
    if node.ndim != 1:
        raise ValueError(
            "object too deep for desired array"
            if node.ndim
            else "object of too small depth for desired array"
        )
    if side not in ("left", "right"):
        raise ValueError(f"side must be 'left' or 'right' (got {side!r})")
    np.searchsorted(np.ones(1, node.dtype), np.ones(1, values.dtype))  # refuses what has no common order
    if sorter is not None:
        node = indexed(node, sorter)
    number = node.grid[0]
    layout = Layout((tuple(range(number + 1)), *values.layout.boundaries))
    access = tuple(Along(axis + 1) for axis in range(values.ndim))
    piece = Piece("search", (Operand(0, (Along(0),)), Operand(1, access)), (("side", side),))
    counts = blocks((node, values), (piece,), layout, np.int64)
    return wrap(folded(counts, "sum", (0,), np.int64))


@chunked(np.digitize)
def digitize(x: Any, bins: Any, right: bool = False) -> Array:
    """The number of the bin each element is in.

    Parameters
    ----------
    x : array_like
    bins : vector of edges that rise or fall
    right : whether bins have their right edge and not their left one

    Returns
    -------
    Array of integers; 0 and len(bins) are outside

    Examples
    --------
    >>> import linnet as ln
    >>> ln.digitize([0.5, 2.5, 9.0], [0, 1, 2, 3]).compute()
    array([1, 3, 4])
    """
    node, edges = as_node(x), known(bins)
    if node.dtype.kind == "c":
        raise TypeError("x may not be complex")
    if edges.ndim != 1:
        raise ValueError("object too deep for desired array")
    np.digitize(np.ones(1, node.dtype), edges)  # refuses what is no real number, or in no order
    side = "left" if right else "right"
    # NumPy goes by the first two edges that differ, and takes what is beside a NaN for falling.
    steps = np.flatnonzero(edges[1:] != edges[:-1])
    if not len(steps) or edges[steps[0]] < edges[steps[0] + 1]:
        return searchsorted(edges, wrap(node), side)
    return apply(np.subtract, len(edges), searchsorted(edges[::-1], wrap(node), side))


METHODS: dict[str, Any] = {"nonzero": nonzero, "searchsorted": searchsorted}
__all__ = [
    "argwhere",
    "digitize",
    "flatnonzero",
    "nonzero",
    "ravel_multi_index",
    "searchsorted",
    "unravel_index",
]
