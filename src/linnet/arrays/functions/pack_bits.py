"""Bits packed into bytes, eight to each, and taken out again."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import as_node, axis_of, chunked, wrap
from linnet.arrays.elements.filled import zeros
from linnet.arrays.elements.join_and_split import concatenate, part_of
from linnet.arrays.elements.shapes import ravel
from linnet.arrays.expression.builders import each_tile, recut
from linnet.arrays.expression.nodes import Node
from linnet.errors import InputError
from linnet.tiles import Layout
from linnet.tiles.layout import Boundaries

if TYPE_CHECKING:
    from linnet.arrays.array import Array


def _order(bitorder: Any) -> Any:
    if bitorder not in ("big", "little"):
        raise ValueError(f"'order' must be either 'little' or 'big', got {bitorder!r}")
    return bitorder


def _along(node: Node, axis: int, edges: Boundaries) -> Layout:
    old = node.layout.boundaries
    return Layout((*old[:axis], edges, *old[axis + 1 :]))


def _flat(a: Any, axis: Any) -> tuple[Node, int]:
    node = as_node(a)
    if axis is None:
        return ravel(wrap(node)).__node__, 0
    if not node.ndim:
        raise InputError("an array without axes has no bits along an axis; leave axis out")
    return node, axis_of(axis, node.ndim)


@chunked(np.packbits)
def packbits(a: Any, axis: Any = None, bitorder: Any = "big") -> Array:
    """Bits as bytes, eight along an axis (of the flattened array, if none is told) in each.

    Parameters
    ----------
    a : array_like of bool or int
        What is not zero is 1.
    axis : int, optional
        None: the array is flattened first.
    bitorder : "big" or "little"
        Whether the first bit is the highest of its byte.

    Returns
    -------
    Array of uint8

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> packbits(asarray(np.ones(12, bool), chunks=5)).compute()
    array([255, 240], dtype=uint8)
    """
    node, place = _flat(a, axis)
    order = _order(bitorder)
    if node.dtype.kind not in "biu":
        raise TypeError(f"Expected an input array of integer or boolean data type, got {node.dtype}")
    length = node.shape[place]
    # Cuts move to the next multiple of eight, so that each byte is made of one tile.
    cuts = sorted({min(length, -(-edge // 8) * 8) for edge in node.layout.boundaries[place]})
    node = recut(node, _along(node, place, tuple(cuts) if len(cuts) > 1 else (0, length)))
    layout = _along(node, place, tuple(-(-edge // 8) for edge in node.layout.boundaries[place]))
    return wrap(each_tile("pack_bits", node, np.uint8, layout, axis=place, order=order))


@chunked(np.unpackbits)
def unpackbits(a: Any, axis: Any = None, count: Any = None, bitorder: Any = "big") -> Array:
    """The bits of bytes along an axis (of the flattened array, if none is told): `count` of them.

    Parameters
    ----------
    a : array_like of uint8
    axis : int, optional
        None: the array is flattened first.
    count : int, optional
        How many bits to keep; a negative number leaves so many out at the end.
    bitorder : "big" or "little"
        Whether the first bit is the highest of its byte.

    Returns
    -------
    Array of uint8

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> unpackbits(asarray(np.array([3], np.uint8)), count=-2).compute()
    array([0, 0, 0, 0, 0, 0], dtype=uint8)
    """
    node, place = _flat(a, axis)
    order = _order(bitorder)
    if node.dtype != np.uint8:
        raise TypeError(f"Expected an input array of unsigned byte data type, got {node.dtype}")
    layout = _along(node, place, tuple(8 * edge for edge in node.layout.boundaries[place]))
    bits = each_tile("unpack_bits", node, np.uint8, layout, axis=place, order=order)
    return wrap(bits) if count is None else _counted(bits, place, operator.index(count))


def _counted(bits: Node, axis: int, count: int) -> Any:
    """So many bits along an axis; all but so many, if negative; zeros behind, if there are not enough."""
    length = bits.shape[axis]
    if count < -length:
        raise ValueError(f"-count {-count} is larger than the number of elements {length}")
    if count <= length:
        return wrap(part_of(bits, axis, 0, count if count >= 0 else length + count))
    shape = (*bits.shape[:axis], count - length, *bits.shape[axis + 1 :])
    return concatenate([wrap(bits), zeros(shape, np.uint8)], axis)


METHODS: dict[str, Any] = {}
__all__ = ["packbits", "unpackbits"]
