"""Reshaping: axes are merged and split in tiles that are runs of elements in row-major order.

A tile of several axes is such a run if it is one element thick along the axes before some axis,
and whole along those after it: `run_edges` cuts an array so. Reshaping old axes into new ones
goes axis by axis where their lengths agree, otherwise through one long axis: the old axes are
merged into it, it is cut anew, and split into the new axes. No tile grows beyond those there
were, save where one row of a tile would be shorter than one element.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import blocks, permuted, recut
from linnet.arrays.expression.nodes import Along, At, Entry, Node, Operand, Piece, Source
from linnet.tiles import Layout
from linnet.tiles.layout import Boundaries, regular

Groups = list[tuple[list[int], list[int]]]


def new_shape(shape: Any, old: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that is asked for, its -1 replaced; NumPy's errors if the elements do not fit."""
    wanted = [operator.index(each) for each in ((shape,) if hasattr(shape, "__index__") else tuple(shape))]
    size = math.prod(old)
    unknown = [place for place, length in enumerate(wanted) if length == -1]
    if len(unknown) > 1:
        raise ValueError("can only specify one unknown dimension")
    rest = math.prod(length for length in wanted if length != -1)
    if unknown and rest > 0 and size % rest == 0:
        wanted[unknown[0]] = size // rest
    if any(length < 0 for length in wanted) or math.prod(wanted) != size:
        given = tuple(shape) if not hasattr(shape, "__index__") else (shape,)
        raise ValueError(f"cannot reshape array of size {size} (shape {old}) into shape {given}")
    return tuple(wanted)


def reshaped(node: Node, shape: tuple[int, ...]) -> Node:
    """The elements in row-major order under another shape of the same size."""
    if shape == node.shape:
        return node
    if not math.prod(shape):
        return Source(np.empty(shape, node.dtype))
    if isinstance(node, Source) and node.data.flags.c_contiguous:
        # The same memory, in tiles as large as they were.
        held = math.prod(map(_longest, node.layout.boundaries))
        edges = None if node._layout is None else Layout(run_edges(shape, held))
        return Source(node.data.reshape(shape), edges)
    long = permuted(node, tuple(axis for axis, length in enumerate(node.shape) if length != 1))
    lengths = tuple(length for length in shape if length != 1)
    # From the last group to the first, so that the numbers of axes before stay as they are.
    for old, new in reversed(groups(long.shape, lengths)):
        parts = tuple(lengths[axis] for axis in new)
        if len(old) > 1:
            long = merged(long, old[0], old[-1] + 1)
        if len(new) > 1:
            long = split(long, old[0], parts)
    counter = itertools.count()
    return permuted(long, tuple(-1 if length == 1 else next(counter) for length in shape))


def reshaped_by_tile(node: Node, shape: tuple[int, ...], chunks: Any) -> Node:
    """Each tile by itself under another shape: nothing moves, and the order of elements is another one."""
    if shape == node.shape:
        return node
    if not math.prod(shape):
        return Source(np.empty(shape, node.dtype))
    wanted = None if chunks is None else chunking.normalized(chunks, shape, node.dtype).boundaries
    long = permuted(node, tuple(axis for axis, length in enumerate(node.shape) if length != 1))
    lengths = tuple(length for length in shape if length != 1)
    places = [axis for axis, length in enumerate(shape) if length != 1]
    for old, new in reversed(groups(long.shape, lengths)):
        first, edges = old[0], long.layout.boundaries
        if len(old) > 1 and len(new) > 1:
            raise ValueError(
                f"reshape_blockwise from {node.shape} to {shape} merges and splits the same axes; do one, "
                "then the other"
            )
        if len(old) > 1:
            inside = edges[first : old[-1] + 1]
            cut = Layout((*edges[:first], _tile_by_tile(inside), *edges[old[-1] + 1 :]))
            long = _moved(long, cut, first, inside, merging=True)
        elif len(new) > 1:
            if wanted is None:
                raise ValueError(f"reshape_blockwise to {shape} splits an axis: say chunks= of the result")
            inside = tuple(wanted[places[axis]] for axis in new)
            if _tile_by_tile(inside) != edges[first]:
                raise ValueError(
                    f"chunks={chunks!r} split the axis of length {edges[first][-1]} in tiles that end at "
                    f"{_tile_by_tile(inside)[1:]}, and it lies in tiles that end at {edges[first][1:]}"
                )
            cut = Layout((*edges[:first], *inside, *edges[first + 1 :]))
            long = _moved(long, cut, first, inside, merging=False)
    counter = itertools.count()
    return permuted(long, tuple(-1 if length == 1 else next(counter) for length in shape))


def _tile_by_tile(inside: Sequence[Boundaries]) -> Boundaries:
    """Boundaries along one axis of the tiles of several, one after another."""
    sizes = [[b - a for a, b in itertools.pairwise(edges)] for edges in inside]
    return (0, *itertools.accumulate(map(math.prod, itertools.product(*sizes))))


def groups(old: tuple[int, ...], new: tuple[int, ...]) -> Groups:
    """Which old axes become which new ones: the shortest runs of axes with as many elements.

    >>> groups((6, 4, 5), (2, 3, 20))
    [([0], [0, 1]), ([1, 2], [2])]
    """
    found: Groups = []
    i = j = 0
    while i < len(old) and j < len(new):
        ours, theirs, left, right = [i], [j], old[i], new[j]
        while left != right:
            if left < right:
                i += 1
                ours.append(i)
                left *= old[i]
            else:
                j += 1
                theirs.append(j)
                right *= new[j]
        found.append((ours, theirs))
        i, j = i + 1, j + 1
    return found


def run_edges(shape: Sequence[int], most: int) -> tuple[Boundaries, ...]:
    """A cut into runs of at most `most` elements, if that is at least one: see above.

    >>> run_edges((3, 4, 5), 10)
    ((0, 1, 2, 3), (0, 2, 4), (0, 5))
    """
    edges: list[Boundaries] = []
    inner = 1
    for length in reversed(shape):
        if inner > most:  # an axis after this one is cut
            edges.append(regular(length, 1))
        elif inner * length <= most:
            edges.append((0, length))
        else:
            edges.append(regular(length, max(1, most // inner)))
            inner = most
        inner = inner * length
    return tuple(reversed(edges))


def _is_run(edges: Sequence[Boundaries]) -> bool:
    """Whether tiles are runs already."""
    cut = [axis for axis, e in enumerate(edges) if len(e) > 2]
    if not cut:
        return True
    return all(len(edges[axis]) - 1 == edges[axis][-1] for axis in range(cut[-1]))


def _longest(edges: Boundaries) -> int:
    return max(b - a for a, b in itertools.pairwise(edges))


def merged(node: Node, first: int, last: int) -> Node:
    """Axes `first` to `last` as one."""
    edges = node.layout.boundaries
    inside = edges[first:last]
    if not _is_run(inside):
        inside = run_edges(node.shape[first:last], math.prod(map(_longest, inside)))
        node = recut(node, Layout((*edges[:first], *inside, *edges[last:])))
    cut = Layout((*edges[:first], _flat(inside), *edges[last:]))
    return _moved(node, cut, first, inside, merging=True)


def split(node: Node, axis: int, lengths: tuple[int, ...]) -> Node:
    """An axis as several."""
    edges = node.layout.boundaries
    inner = math.prod(lengths[1:])
    if all(edge % inner == 0 for edge in edges[axis]):
        inside: tuple[Boundaries, ...] = (
            tuple(edge // inner for edge in edges[axis]),
            *((0, length) for length in lengths[1:]),
        )
    else:
        inside = run_edges(lengths, _longest(edges[axis]))
        node = recut(node, Layout((*edges[:axis], _flat(inside), *edges[axis + 1 :])))
    cut = Layout((*edges[:axis], *inside, *edges[axis + 1 :]))
    return _moved(node, cut, axis, inside, merging=False)


def _flat(inside: Sequence[Boundaries]) -> Boundaries:
    """Boundaries along the one long axis of runs along several."""
    cut = max((axis for axis, e in enumerate(inside) if len(e) > 2), default=0)
    inner = math.prod(e[-1] for e in inside[cut + 1 :])
    outer = math.prod(e[-1] for e in inside[:cut])
    row = inside[cut]
    return (0, *((turn * row[-1] + edge) * inner for turn in range(outer) for edge in row[1:]))


def _moved(node: Node, layout: Layout, first: int, inside: Sequence[Boundaries], *, merging: bool) -> Node:
    """Each run under its new axes. One piece for each place of the axes before the one that is cut."""
    cut = max((axis for axis, e in enumerate(inside) if len(e) > 2), default=0)
    row = len(inside[cut]) - 1
    rank = len(layout.boundaries)
    count = len(inside)
    lengths = [
        Entry(axis, tuple(b - a for a, b in itertools.pairwise(edges)))
        for axis, edges in enumerate(layout.boundaries)
    ]
    pieces: list[Piece] = []
    for turn, place in enumerate(itertools.product(*(range(len(e) - 1) for e in inside[:cut]))):
        low, high = [0] * rank, list(layout.grid)
        after = (At(0),) * (count - cut - 1)
        if merging:
            low[first], high[first] = turn * row, (turn + 1) * row
            group = (*map(At, place), Along(first, 1, -turn * row), *after)
            behind = tuple(Along(axis) for axis in range(first + 1, rank))
        else:
            low[first : first + cut] = place
            high[first : first + cut] = [index + 1 for index in place]
            group = (Along(first + cut, 1, turn * row),)
            behind = tuple(Along(axis) for axis in range(first + count, rank))
        access = (*(Along(axis) for axis in range(first)), *group, *behind)
        pieces.append(Piece("reshape", (Operand(0, access), *lengths), (), tuple(low), tuple(high)))
    return blocks((node,), pieces, layout, node.dtype)
