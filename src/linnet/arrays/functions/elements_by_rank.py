"""The elements at given places of an array, were it sorted: found by counting, nothing is sorted.

A sample tells two bounds between which an element is, very likely. One pass counts what is below
them and brings together what is between: a few in a hundred. The sample is of evenly spaced elements; if
it misled, or elements sought are too many, they are searched digit by digit (`kernels.quantiles`): a
few counting passes, then the few elements that are left. Either way the result is exact.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.arrays.elements.core import wrap
from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import blocks, each_tile, folded, part, permuted
from linnet.arrays.expression.nodes import Along, At, Node, Operand, Piece, Source, Stored
from linnet.arrays.functions.sample_sort import stored_as_they_are
from linnet.arrays.lowering.evaluate import computed, persisted
from linnet.kernels.arrays.quantiles import DIGIT, from_keys
from linnet.tiles import Layout

_FEW = 1 << 17
"""Elements that are brought together to end a search."""

SAMPLES = 1 << 17
"""Elements of a sample."""

_SURE = 3.0
"""Half the distance of bounds in a sample, in roots of its size: six deviations of a place in it."""

_SHARE = 0.2
"""Of the elements that may lie between bounds, for bringing them together to be worth it."""


def order_statistics(node: Node, ranks: NDArray[np.intp]) -> NDArray[Any]:
    """The elements at these places (ascending) of an array of any shape, were it sorted; NaN is last.

    >>> order_statistics(Source(np.array([5.0, 1.0, 3.0])), np.array([0, 2]))
    array([1., 5.])
    """
    if node.dtype.kind == "c":  # no integers are in the order of these
        flat = wrap(node).reshape((-1,))
        ordered: Any = np.sort(flat)
        return ordered[ranks].compute()
    found = _bracketed(node, ranks)
    if found is not None:
        return found
    kept = [axis for axis, length in enumerate(node.shape) if length != 1]
    line = permuted(node, tuple(kept)) if len(kept) < 2 else wrap(node).reshape((-1,)).__node__
    return _by_digits(line if line.ndim else permuted(line, (-1,)), ranks)


# ---- between two bounds


def _bracketed(node: Node, ranks: NDArray[np.intp]) -> NDArray[Any] | None:
    """The elements sought, or None if a sample does not lead to them."""
    size = math.prod(node.shape)
    if size < 4 * SAMPLES:
        return None
    sample = each_tile("spread_tile", node, node.dtype, step=size // SAMPLES)
    (drawn,) = persisted([sample])
    samples = np.sort(np.concatenate(_tiles(drawn)))
    if node.dtype.kind in "fmM":
        samples = samples[samples == samples]  # NaN is no bound
    bounds = _bounds(samples, ranks, size)
    return None if bounds is None else _between(node, ranks, *bounds)


def _tiles(node: Node) -> list[NDArray[Any]]:
    """The tiles of a result of any form, in order."""
    assert isinstance(node, Stored)
    return [node.tiles.tiles[index] for index in sorted(node.tiles.tiles)]


def _bounds(
    samples: NDArray[Any], ranks: NDArray[np.intp], size: int
) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Bounds around the elements sought, ascending and apart; None if too much lies between them."""
    if not samples.size:
        return None
    places = (ranks + 0.5) * (samples.size / size)
    margin = _SURE * math.sqrt(samples.size)
    first = np.floor(places - margin).astype(np.int64)
    last = np.ceil(places + margin).astype(np.int64)
    before = np.concatenate([[0], last[:-1]])
    between = np.minimum(last, samples.size) - np.maximum(np.maximum(first, 0), before)
    if np.maximum(between, 0).sum() > _SHARE * samples.size:
        return None
    least, most = _extremes(samples.dtype)
    inner = np.clip(np.stack([first, last]), 0, samples.size - 1)
    low = np.where(first < 0, least, samples[inner[0]])
    high = np.where(last >= samples.size, most, samples[inner[1]])
    fresh = np.concatenate([[True], low[1:] > high[:-1]])  # those that meet are one
    ends = np.concatenate([np.flatnonzero(fresh)[1:] - 1, [len(high) - 1]])
    return low[fresh], high[ends]


def _extremes(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    if dtype.kind == "b":
        return np.False_, np.True_
    if dtype.kind == "f":
        return dtype.type(-np.inf), dtype.type(np.inf)
    whole = np.iinfo(f"i{dtype.itemsize}" if dtype.kind in "mM" else dtype)
    least = whole.min + 1 if dtype.kind in "mM" else whole.min  # before it comes NaT
    return tuple(np.array([least, whole.max]).astype(whole.dtype).view(dtype))


def _between(
    node: Node, ranks: NDArray[np.intp], low: NDArray[Any], high: NDArray[Any]
) -> NDArray[Any] | None:
    """One pass: what is below each pair of bounds, and the elements inside."""
    own = tuple(Along(axis) for axis in range(node.ndim))
    sides = [Source(each, chunking.whole(each.shape)) for each in (low, high)]
    piece = Piece("bracket_tile", (Operand(0, own), Operand(1, (At(0),)), Operand(2, (At(0),))))
    several = blocks((node, *sides), (piece,), node.layout, node.dtype, 2)
    counted, chosen = persisted([part(several, 0, np.int64), part(several, 1, node.dtype)])
    counts = _tiles(counted)
    totals = np.sum(counts, axis=0)
    pieces = [
        np.split(tile, np.cumsum(own[:, 2])[:-1]) for tile, own in zip(_tiles(chosen), counts, strict=True)
    ]
    found = np.empty(ranks.shape, node.dtype)
    which = np.searchsorted(np.cumsum(totals, axis=1)[:, -1], ranks, "right")
    for pair in np.unique(which):
        if pair == len(low):
            return None
        mine = which == pair
        places = ranks[mine] - totals[pair, 0]
        inside = np.concatenate([each[pair] for each in pieces])
        values = _picked_of(places, totals[pair, 1:], low[pair], high[pair], inside)
        if values is None:
            return None
        found[mine] = values
    return found


def _picked_of(
    places: NDArray[Any], counts: NDArray[Any], low: Any, high: Any, inside: NDArray[Any]
) -> NDArray[Any] | None:
    """Elements at places counted from the lower bound; None if one is outside of both."""
    equal, between, _ = counts.tolist()
    if places[0] < 0:
        return None
    values = np.where(places < equal, low, high).astype(inside.dtype)
    within = (places >= equal) & (places < equal + between)
    if within.any():
        wanted = places[within] - equal
        values[within] = np.partition(inside, np.unique(wanted))[wanted]
    return values


# ---- digit by digit


def _by_digits(node: Node, ranks: NDArray[np.intp]) -> NDArray[Any]:
    bits = 8 * node.dtype.itemsize
    shift = -(-bits // DIGIT) * DIGIT - DIGIT
    prefixes = np.zeros(1, np.uint64)
    which = np.zeros(ranks.size, np.intp)
    left = ranks.astype(np.int64)  # to be skipped among the elements with the same leading bits
    while True:
        counts = _counts(node, prefixes, shift)
        found = np.cumsum(counts, axis=1)
        digit = np.array([np.searchsorted(found[w], r, "right") for w, r in zip(which, left, strict=True)])
        left = left - np.where(digit > 0, found[which, digit - 1], 0)
        chosen = (prefixes[which] << np.uint64(DIGIT)) | digit.astype(np.uint64)
        if shift == 0:
            return from_keys(chosen, node.dtype)
        remaining = counts[which, digit]
        prefixes, first, which = np.unique(chosen, return_index=True, return_inverse=True)
        if remaining[first].sum() <= _FEW:
            return _picked(node, prefixes, shift, which, left)
        shift -= DIGIT


def _picked(
    node: Node, prefixes: NDArray[np.uint64], shift: int, which: NDArray[np.intp], left: NDArray[np.int64]
) -> NDArray[Any]:
    """The elements sought, once those that share their leading bits are few."""
    (found,) = stored_as_they_are(
        [_on_tiles("pick_prefixes", node, prefixes, shift, node.layout.boundaries[-1:], np.uint64)]
    )
    keys = np.sort(found.tiles.to_numpy())
    starts = np.searchsorted(keys >> np.uint64(shift), prefixes)
    return from_keys(keys[starts[which] + left], node.dtype)


def _counts(node: Node, prefixes: NDArray[np.uint64], shift: int) -> NDArray[np.int64]:
    """How often each digit occurs behind each of the leading bits."""
    edges = (tuple(range(node.grid[-1] + 1)), (0, prefixes.size), (0, 1 << DIGIT))
    counted = _on_tiles("count_digits", node, prefixes, shift, edges, np.int64)
    (found,) = computed([folded(counted, "sum", (0,), np.int64, inner=np.int64)])
    return found


def _on_tiles(
    kernel: str, node: Node, prefixes: NDArray[np.uint64], shift: int, edges: Any, dtype: Any
) -> Node:
    """A kernel on each tile of a line, whose other axes have length 1."""
    own = (*(At(0),) * (node.ndim - 1), Along(0))
    piece = Piece(kernel, (Operand(0, own), Operand(1, (At(0),))), (("shift", shift),))
    return blocks((node, Source(prefixes, chunking.whole(prefixes.shape))), (piece,), Layout(edges), dtype)
