"""Which contractions are plain products of two matrices in memory: many tiles of these are made at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from linnet.arrays.expression.nodes import Blocks, Node, Source


def turned_factors(node: Blocks, factors: Sequence[Node]) -> tuple[int, ...] | None:
    """Which factors of a product of two matrices in memory are given by their transposes.

    None: it is another contraction, or is computed tile by tile.
    """
    piece = node.pieces[0]
    if piece.kernel != "contract" or len(factors) != 2 or node.parts or node.ndim != 2:
        return None
    if not all(isinstance(each, Source) for each in factors):
        return None
    if node.dtype.char not in "fdFD" or any(each.dtype != node.dtype for each in factors):
        return None
    operands, result = dict(piece.attributes)["spec"].split("->")
    left, right = operands.split(",")
    if len(result) != 2:
        return None
    row, column = result
    summed = {*left, *right} - {row, column}
    if len(summed) != 1 or {*left} != {row, *summed} or {*right} != {column, *summed}:
        return None
    if _place(factors[0]) == _place(factors[1]):
        return None  # of a matrix with itself, half is computed
    return tuple(place for place, given in enumerate((left, right)) if given[place] in summed)


def _place(node: Node) -> Any:
    """Where an array in memory lies: the same for it and its transpose."""
    assert isinstance(node, Source)
    return node.data.__array_interface__["data"][0], sorted(node.data.strides), sorted(node.data.shape)
