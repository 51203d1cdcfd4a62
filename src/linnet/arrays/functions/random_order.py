"""Rows of long arrays in random order, and samples of them, with bounded memory.

A deck is shuffled exactly if every card is dealt at random to one of several heaps and each heap is
mixed (Rao, 1961; Sandelius, 1962). How many rows each part of the array gives to each heap is drawn
beforehand, with the heaps' sizes given; so all shapes are known before anything moves. A task holds
one part of the array, or one heap. Parts and heaps depend on the shape and dtype alone: the
same seed gives the same order however the array is cut, and whatever the budget.

C. R. Rao, "Generation of random permutations of given number of elements using random sampling
numbers", Sankhya A 23 (1961). M. Sandelius, "A simple randomization procedure", J. Royal Stat. Soc.
B 24 (1962).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.arrays.expression.builders import blocks, recut
from linnet.arrays.expression.nodes import Along, At, Entry, Node, Operand, Piece, Source, Span
from linnet.tiles import Layout
from linnet.tiles.layout import Boundaries, regular

LARGE = 1 << 24
"""Bytes from which on arrays are dealt; the order of shorter ones is drawn in one place."""

PIECE = 1 << 16
"""Bytes that a part gives to a heap, about, if rows are shorter: there are as many parts as heaps."""


_MOST = 1_000_000_000
"""Rows from which on NumPy draws no hypergeometric numbers."""


def is_large(node: Node) -> bool:
    """Whether an array is dealt; decided by its shape and dtype alone."""
    return math.prod(node.shape) * node.dtype.itemsize >= LARGE


def dealt(
    node: Node, axis: int, count: int, key: Source, local: np.random.Generator, *, replace: bool = False
) -> Node:
    """So many rows of an array along an axis, drawn at random, in random order.

    >>> key, local = Source(np.array([1], np.uint64)), np.random.default_rng(0)
    >>> from linnet.arrays.lowering.evaluate import computed
    >>> sorted(computed([dealt(Source(np.arange(6)), 0, 6, key, local)])[0].tolist())
    [0, 1, 2, 3, 4, 5]
    """
    length = node.shape[axis]
    row = math.prod(node.shape) // max(1, length) * node.dtype.itemsize
    parts = _parts(length, row)
    heaps = _parts(count, row)
    cuts = _cuts(np.diff(parts), np.diff(heaps), count, local, replace)
    edges = node.layout.boundaries
    cut = recut(node, Layout((*edges[:axis], parts, *edges[axis + 1 :])))
    own = tuple(Along(a) for a in range(node.ndim))
    by_part = Layout((tuple(range(len(parts))), (0, len(heaps))))
    attributes = (("axis", axis), ("replace", replace), ("share", count / max(1, length)))
    numbers = Entry(axis, tuple(range(len(parts) - 1)))
    deal = Piece(
        "deal_rows",
        (Operand(0, own), Operand(1, (Along(axis), At(0))), Operand(2, (At(0),)), numbers),
        attributes,
    )
    pieces = blocks((cut, Source(cuts, by_part), key), (deal,), cut.layout, node.dtype, len(heaps) - 1)
    heap = tuple(Span(0, len(parts) - 1) if a == axis else Along(a) for a in range(node.ndim))
    mix = Piece(
        "mix_rows",
        (
            Operand(0, (*heap, Along(axis))),
            Operand(1, (At(0),)),
            Entry(axis, tuple(range(len(heaps) - 1))),
        ),
        (("axis", axis),),
    )
    ends = (0, *np.cumsum(np.diff(cuts, axis=1).sum(axis=0)).tolist())
    layout = Layout((*edges[:axis], ends, *edges[axis + 1 :]))
    return blocks((pieces, key), (mix,), layout, node.dtype)


def _parts(length: int, row: int) -> Boundaries:
    """Ends of parts of an axis: as many parts as pieces in each."""
    pieces = max(1, length * row // max(PIECE, row))
    return regular(length, max(1, -(-length // max(1, math.isqrt(pieces)))))


def _cuts(
    parts: NDArray[Any], heaps: NDArray[Any], count: int, local: np.random.Generator, replace: bool
) -> NDArray[np.intp]:
    """For each part, where the rows it gives to each heap end: all tables that fit are equally likely."""
    if replace:
        given = local.multinomial(count, parts / parts.sum())
    elif count == parts.sum():
        given = parts
    elif parts.sum() < _MOST:
        given = local.multivariate_hypergeometric(parts, count, method="marginals")
    else:
        raise ValueError(
            f"choice without replacement draws from fewer than {_MOST:,} rows, not from {parts.sum():,}; "
            "take the first rows of permutation(a)"
        )
    left = heaps.copy()
    table = np.zeros((len(parts), len(heaps) + 1), np.intp)
    for place, total in enumerate(given):
        if count < _MOST:
            drawn = local.multivariate_hypergeometric(left, total, method="marginals")
            left -= drawn
        else:  # heaps of these sizes on average: the order is as random
            drawn = local.multinomial(total, heaps / count)
        table[place, 1:] = np.cumsum(drawn)
    return table
