"""The cross product of vectors along any axes, and the order in which `einsum` takes products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import ArrayBase, as_node, axis_of, chunked, wrap
from linnet.arrays.elements.elementwise import apply
from linnet.arrays.elements.join_and_split import stack
from linnet.arrays.elements.shapes import moveaxis
from linnet.errors import InputError

if TYPE_CHECKING:
    from linnet.arrays.array import Array


@chunked(np.cross)
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None) -> Array:
    """The cross product of vectors of three elements, which lie along `axisa` and `axisb`.

    `axis` says it for both and for the result, `axisc` for the result alone.

    Parameters
    ----------
    a, b : array_like
        The vectors; shapes that differ are broadcast together.
    axisa, axisb, axisc : int
        The axis of the vectors in `a`, in `b` and in the result.
    axis : int, optional
        All three of them.

    Returns
    -------
    Array

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> cross(asarray([[1, 0, 0], [0, 1, 0]], chunks=1), asarray([0, 1, 0])).compute()
    array([[0, 0, 1],
           [0, 0, 0]])
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    nodes = as_node(a), as_node(b)
    places = [axis_of(each, node.ndim) for each, node in zip((axisa, axisb), nodes, strict=True)]
    if any(node.shape[place] != 3 for node, place in zip(nodes, places, strict=True)):
        raise InputError(
            "cross takes vectors of 3 elements for arrays in tiles; "
            f"got shapes {nodes[0].shape} along axis {axisa} and {nodes[1].shape} along axis {axisb}"
        )
    one, other = (moveaxis(wrap(node), place, -1) for node, place in zip(nodes, places, strict=True))
    parts = [
        apply(
            np.subtract,
            apply(np.multiply, one[..., (k + 1) % 3], other[..., (k + 2) % 3]),
            apply(np.multiply, one[..., (k + 2) % 3], other[..., (k + 1) % 3]),
        )
        for k in range(3)
    ]
    return stack(parts, axis_of(axisc, parts[0].ndim + 1, "axisc"))


@chunked(np.einsum_path)
def einsum_path(*operands: Any, optimize: Any = "greedy", einsum_call: Any = False) -> tuple[list[Any], str]:
    """The order in which `einsum` takes its products, and what it costs: from shapes, nothing is computed.

    Parameters
    ----------
    operands
        Subscripts and arrays, as for `ln.einsum`.
    optimize : optional
        How the order is looked for, as for `np.einsum_path`.
    einsum_call : bool
        As for `np.einsum_path`.

    Returns
    -------
    tuple of a list and a str
        The order of the products, and what it costs in words.

    Examples
    --------
    >>> from linnet.arrays.elements.filled import zeros
    >>> x, y = zeros((10, 9000)), zeros((9000, 10))
    >>> einsum_path("ij,jk,kl->il", x, y, x)[0]
    ['einsum_path', (0, 1), (0, 1)]
    """
    shapes = [_shape_only(each) if isinstance(each, ArrayBase) else each for each in operands]
    return np.einsum_path(*shapes, optimize=optimize, einsum_call=einsum_call)


def _shape_only(array: Any) -> Any:
    """An array of NumPy's with this shape, of one element."""
    return np.broadcast_to(np.zeros((), array.dtype), array.shape)


METHODS: dict[str, Any] = {}
__all__ = ["cross", "einsum_path"]
