"""Windows that slide along axes: `sliding_window_view`."""

from __future__ import annotations

import itertools
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import as_node, axis_of, chunked, wrap
from linnet.arrays.expression.builders import blocks, permuted
from linnet.arrays.expression.nodes import Access, Along, Entry, Node, Number, Operand, Piece, Spans
from linnet.arrays.expression.rechunk import overlaps
from linnet.tiles import Layout
from linnet.tiles.layout import Boundaries

if TYPE_CHECKING:
    from linnet.arrays.array import Array


@chunked(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Array:
    """All windows of a shape, on new axes at the end. They overlap in memory, tile by tile.

    Parameters
    ----------
    x : array_like
    window_shape : int or tuple of int
    axis : int or tuple of int, optional
        The axes that windows slide along; None: all.
    subok, writeable : bool
        For NumPy's sake; only False is taken.

    Returns
    -------
    Array, read-only

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> sliding_window_view(asarray(np.arange(4), chunks=2), 3).compute()
    array([[0, 1, 2],
           [1, 2, 3]])
    """
    node = as_node(x)
    lengths = _tuple(window_shape)
    if any(length < 0 for length in lengths):
        raise ValueError("`window_shape` cannot contain negative values")
    if axis is None:
        axes = tuple(range(node.ndim))
        if len(lengths) != len(axes):
            raise ValueError(
                f"Since axis is None, must provide window_shape for all dimensions of `x`; got "
                f"{len(lengths)} window_shape elements and `x.ndim` is {node.ndim}."
            )
    else:
        axes = tuple(axis_of(each, node.ndim) for each in _tuple(axis))
        if len(lengths) != len(axes):
            raise ValueError(
                f"Must provide matching length window_shape and axis; got {len(lengths)} window_shape "
                f"elements and {len(axes)} axes elements."
            )
    if 0 in lengths:
        raise ValueError(
            f"window_shape={window_shape!r}: arrays in tiles have windows of at least one element"
        )
    for place, length in zip(axes, lengths, strict=True):
        if node.shape[place] < length:
            raise ValueError("window shape cannot be larger than input array shape")
    return wrap(_windows(node, axes, lengths))


def _tuple(given: Any) -> tuple[int, ...]:
    return tuple(map(operator.index, given)) if np.iterable(given) else (operator.index(given),)


def _windows(node: Node, axes: tuple[int, ...], lengths: tuple[int, ...]) -> Node:
    if len(set(axes)) < len(axes):  # an axis named again: windows of windows
        return _windows(_windows(node, axes[:-1], lengths[:-1]), axes[-1:], lengths[-1:])
    order = sorted(range(len(axes)), key=axes.__getitem__)
    widths = {axes[place]: lengths[place] for place in order}
    made = _in_order(node, widths)
    if order == list(range(len(axes))):
        return made
    back = [node.ndim + order.index(place) for place in range(len(axes))]
    return permuted(made, (*range(node.ndim), *back))


def _in_order(node: Node, widths: dict[int, int]) -> Node:
    """Windows along ascending axes: tiles of the result begin where tiles of the operand do."""
    edges: list[Boundaries] = []
    access: list[Access] = []
    numbers: list[Number] = []
    for axis, old in enumerate(node.layout.boundaries):
        if axis not in widths:
            edges.append(old)
            access.append(Along(axis))
            continue
        count = old[-1] - widths[axis] + 1
        new = (*(edge for edge in old if edge < count), count)
        spans = [overlaps(old, (0, b - a + widths[axis] - 1), a, 1) for a, b in itertools.pairwise(new)]
        first, last, low, high = (tuple(each[k][0] for each in spans) for k in range(4))
        edges.append(new)
        access.append(Spans(axis, first, last))
        numbers += [Entry(axis, low), Entry(axis, high)]
    attributes = (("axes", tuple(widths)), ("lengths", tuple(widths.values())))
    piece = Piece("windows", (Operand(0, tuple(access)), *numbers), attributes)
    layout = Layout((*edges, *((0, length) for length in widths.values())))
    return blocks((node,), (piece,), layout, node.dtype)


METHODS: dict[str, Any] = {}
__all__ = ["sliding_window_view"]
