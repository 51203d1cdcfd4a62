"""Arrays taken again and again: all of an array, or each of its elements, so many times."""

from __future__ import annotations

import itertools
import math

import numpy as np

from linnet.arrays.elements.join_and_split import part_of
from linnet.arrays.elements.reshape import run_edges
from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import blocks, recut
from linnet.arrays.expression.nodes import Access, Along, Entry, Node, Number, Operand, Piece, Source, Spans
from linnet.tiles import Layout
from linnet.tiles.layout import Boundaries, regular


def again(node: Node, counts: tuple[int, ...]) -> Node:
    """All of the array so many times along each axis: a tile of the result is one of its own, or several."""
    axes = tuple(axis for axis, count in enumerate(counts) if count > 1)
    if not axes:
        return node
    held = _tile_bytes(node)
    edges = list(node.layout.boundaries)
    access: list[Access] = [Along(axis) for axis in range(node.ndim)]
    numbers: list[Number] = []
    for axis in axes:
        own, copies = edges[axis], 1
        if len(own) == 2:
            copies = max(1, min(counts[axis], chunking.target() // held))
            held *= copies
        runs = [b - a for a, b in itertools.pairwise(regular(counts[axis], copies))]
        pieces = [(tile, run) for run in runs for tile in range(len(own) - 1)]
        ends = itertools.accumulate((n * (own[tile + 1] - own[tile]) for tile, n in pieces), initial=0)
        edges[axis] = tuple(ends)
        first = tuple(tile for tile, _ in pieces)
        access[axis] = Spans(axis, first, tuple(tile + 1 for tile in first))
        numbers.append(Entry(axis, tuple(n for _, n in pieces)))
    piece = Piece("again", (Operand(0, tuple(access)), *numbers), (("axes", axes),))
    return blocks((node,), (piece,), Layout(tuple(edges)), node.dtype)


def stretched(node: Node, axis: int, count: int) -> Node:
    """Each element along an axis so many times."""
    if count == 1:
        return node
    if not count:
        return part_of(node, axis, 0, 0)
    if not math.prod(node.shape):
        shape = (*node.shape[:axis], count * node.shape[axis], *node.shape[axis + 1 :])
        return Source(np.empty(shape, node.dtype))
    cut, times = _runs(node, axis, count)
    old = node.layout.boundaries
    node = recut(node, Layout((*old[:axis], cut, *old[axis + 1 :])))
    pieces = [(tile, b - a) for tile in range(len(cut) - 1) for a, b in itertools.pairwise(times)]
    ends = itertools.accumulate((n * (cut[tile + 1] - cut[tile]) for tile, n in pieces), initial=0)
    layout = Layout((*old[:axis], tuple(ends), *old[axis + 1 :]))
    first = tuple(tile for tile, _ in pieces)
    access = tuple(
        Spans(axis, first, tuple(tile + 1 for tile in first)) if a == axis else Along(a)
        for a in range(node.ndim)
    )
    arguments = (Operand(0, access), Entry(axis, tuple(n for _, n in pieces)))
    return blocks((node,), (Piece("stretch", arguments, (("axis", axis),)),), layout, node.dtype)


def _runs(node: Node, axis: int, count: int) -> tuple[Boundaries, Boundaries]:
    """How to cut an axis and the number of times it is taken, so that tiles are runs and stay short."""
    edges = node.layout.boundaries[axis]
    held = _tile_bytes(node)
    if count * held <= chunking.target():
        return edges, (0, count)
    longest = max(b - a for a, b in itertools.pairwise(edges))
    cut, times = run_edges((edges[-1], count), max(longest, chunking.target() * longest // held))
    return cut, times


def _tile_bytes(node: Node) -> int:
    lengths = [max(b - a for a, b in itertools.pairwise(edges)) for edges in node.layout.boundaries]
    return math.prod(lengths) * node.dtype.itemsize
