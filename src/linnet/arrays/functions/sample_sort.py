"""Sorted tiles exchange their elements: a sample sort with bounded memory.

Every tile is sorted (a run). Evenly spaced samples of the runs give splitters; counting tells where
they fall in each run, so the lengths of all buckets are known before anything moves. Elements equal
to a splitter are divided by the order of their runs, so that buckets stay even however often
a value occurs, and the sort stays stable. Then each run is cut at the splitters and each
bucket merged: a task holds one run, or one bucket.

Parallel sorting by regular sampling is from Shi and Schaeffer, "Parallel sorting by regular
sampling" (1992); with s samples a run, a bucket exceeds its share by no more than 1/s of the runs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import blocks, each_tile, is_free, part, recut
from linnet.arrays.expression.nodes import (
    Along,
    At,
    Blocks,
    Entry,
    Node,
    Operand,
    Piece,
    Source,
    Span,
    Stored,
)
from linnet.arrays.lowering.evaluate import computed, persisted
from linnet.engines.mapped_tiles import let_go
from linnet.session import current_engine
from linnet.tiles import Layout, TiledArray
from linnet.tiles.layout import from_sizes

_MOST_SAMPLES = 4096
_SHARE = 8
"""Runs that must fit into the budget: two tasks hold one each, with its result and what sorting needs.
"""
_RUNS = 16
"""Runs that there should be at least, for all workers to have some."""


def stored_as_they_are(nodes: Sequence[Node]) -> list[Stored]:
    """Nodes with one axis, computed and kept; the layout is that of the tiles that came out.

    For kernels whose results are as long as the values make them.
    """
    found: list[Stored] = []
    for node in persisted(nodes):
        assert isinstance(node, Stored)
        tiles = node.tiles.tiles
        lengths = [tiles[(place,)].shape[0] for place in range(node.grid[0])]
        kept = [place for place, length in enumerate(lengths) if length] or [0]
        layout = Layout((from_sizes([lengths[place] for place in kept]),))
        renumbered = {(new,): tiles[(old,)] for new, old in enumerate(kept)}
        found.append(Stored(TiledArray(layout, node.dtype, renumbered)))
    return found


def shuffle(
    columns: Sequence[Node], count: int, *, samples: Node | None = None, divide_equals: bool = True
) -> tuple[list[Blocks], NDArray[np.intp], Layout]:
    """Arrays with one axis, cut alike, the first of sorted tiles, in pieces of `count` buckets or fewer.

    A piece is at [run, bucket] of each result; also the places where runs are cut, and how the
    buckets lie one behind another. If equal elements need not be divided, all are in one bucket.
    `samples` are those of the runs, if they were taken already.
    """
    keys = columns[0]
    cuts = _cuts(keys, sampled(keys, count) if samples is None else samples, count, divide_equals)
    runs, buckets = cuts.shape[0], cuts.shape[1] - 1
    by_run = Layout((tuple(range(runs + 1)), (0, buckets + 1)))
    where = Source(cuts, by_run)
    piece = Piece("split_run", (Operand(0, (Along(0),)), Operand(1, (Along(0), At(0)))))
    split = [blocks((each, where), (piece,), each.layout, each.dtype, buckets) for each in columns]
    lengths = np.diff(cuts, axis=1).sum(axis=0)
    return split, cuts, Layout((from_sizes(lengths.tolist()),))


def _cuts(keys: Node, samples: Node, count: int, divide_equals: bool) -> NDArray[np.intp]:
    """For each run the places where it is cut, 0 and its length included."""
    lengths = np.diff(keys.layout.boundaries[0])
    ends = np.stack([np.zeros_like(lengths), lengths], axis=1)
    splitters = _splitters(samples, lengths, count)
    if not splitters.size:
        return ends.astype(np.intp)
    found = _found(keys, splitters)
    left, right = found[:, 0], found[:, 1]
    if divide_equals:
        targets = np.arange(1, splitters.size + 1) * int(lengths.sum()) // (splitters.size + 1)
        ranks = np.clip(targets, left.sum(axis=0), right.sum(axis=0))
        equal = right - left
        before = np.cumsum(equal, axis=0) - equal
        inner = left + np.clip(ranks - left.sum(axis=0) - before, 0, equal)
    else:
        inner = right
    # Splitters that nothing lies between would make empty buckets.
    totals = np.concatenate([[0], inner.sum(axis=0), [lengths.sum()]])
    fresh = (np.diff(totals[:-1]) > 0) & (totals[1:-1] < totals[-1])
    return np.concatenate([ends[:, :1], inner[:, fresh], ends[:, 1:]], axis=1).astype(np.intp)


def sampled(runs: Node, count: int) -> Node:
    """Samples of sorted tiles, from which values are taken that divide them into `count` buckets."""
    taken = min(max(16, 4 * count), _MOST_SAMPLES)
    layout = Layout((tuple(range(0, taken * runs.grid[0] + 1, taken)),))
    return each_tile("sample_run", runs, runs.dtype, layout, count=taken)


def _splitters(drawn: Node, lengths: NDArray[Any], count: int) -> NDArray[Any]:
    """Values that cut all runs together into about equal parts."""
    if count <= 1:
        return np.empty((0,), drawn.dtype)
    (samples,) = computed([drawn])
    taken = samples.size // lengths.size
    order = np.argsort(samples, kind="stable")
    # A sample stands for as many elements as lie between it and its neighbours.
    weights = np.cumsum(np.repeat(lengths / taken, taken)[order])
    targets = np.arange(1, count) * (weights[-1] / count)
    return samples[order][np.minimum(np.searchsorted(weights, targets), samples.size - 1)]


def _found(keys: Node, splitters: NDArray[Any]) -> NDArray[np.intp]:
    """For each run how many elements are smaller than each splitter, and how many not larger."""
    if isinstance(keys, Stored) and current_engine().memory is not None:
        return _looked_up(keys, splitters)
    layout = Layout((tuple(range(keys.grid[0] + 1)), (0, 2), (0, splitters.size)))
    piece = Piece("find_splitters", (Operand(0, (Along(0),)), Operand(1, (At(0),))))
    whole = Source(splitters, chunking.whole(splitters.shape))
    (found,) = computed([blocks((keys, whole), (piece,), layout, np.intp)])
    return found


def _looked_up(keys: Stored, splitters: NDArray[Any]) -> NDArray[np.intp]:
    """The same for runs in files: a search looks at few of their elements, the rest need not be read."""
    found = np.empty((keys.grid[0], 2, splitters.size), np.intp)
    for (run,), tile in keys.tiles.tiles.items():
        for side, name in enumerate(("left", "right")):
            found[run, side] = np.searchsorted(tile, splitters, name)  # type: ignore[call-overload]
        let_go(tile)
    return found


def merged(kernel: str, split: Sequence[Blocks], layout: Layout, dtype: Any, **attributes: Any) -> Blocks:
    """A kernel on each bucket: the pieces of all runs that belong to it."""
    arguments = tuple(Operand(which, (Span(0, each.grid[0]), Along(0))) for which, each in enumerate(split))
    return blocks(split, (Piece(kernel, arguments, tuple(attributes.items())),), layout, dtype)


def buckets_for(node: Node) -> int:
    """How many buckets give tiles of about the size of the array's own, or the usual size."""
    longest = max(b - a for a, b in itertools.pairwise(node.layout.boundaries[0]))
    usual = max(1, _usual(node) // max(1, node.dtype.itemsize))
    return math.ceil(node.shape[0] / min(longest, usual)) if node.shape[0] else 1


def _usual(node: Node, columns: int = 1) -> int:
    """Bytes of a run: under a budget as long as two tasks have room for, so that pieces are few."""
    memory = current_engine().memory
    if memory is None:
        return chunking.target()
    most = memory // (_SHARE * columns)
    return min(most, max(chunking.target(), math.prod(node.shape) * node.dtype.itemsize // _RUNS))


def in_runs(node: Node, columns: int = 1) -> Node:
    """An array with one axis, in tiles that are worth sorting each by itself; so many move together."""
    length = max(1, _usual(node, columns) // max(1, node.dtype.itemsize))
    edges = node.layout.boundaries[0]
    longest = max(b - a for a, b in itertools.pairwise(edges))
    if current_engine().memory is None or (length // 2 <= longest <= length and not is_free(node)):
        return node
    return recut(node, Layout.regular(node.shape, length))


def sample_sorted(node: Node) -> Node:
    """An array with one axis, sorted."""
    node = in_runs(node)
    ordered = each_tile("sort_tile", node, node.dtype)
    count = buckets_for(node)
    runs, samples = persisted([ordered, sampled(ordered, count)])
    split, _, layout = shuffle([runs], count, samples=samples)
    return merged("merge_runs", split, layout, node.dtype)


def sample_argsorted(node: Node) -> Node:
    """The positions of elements in sorted order, of equals in the order of the array."""
    node = in_runs(node)
    starts = Entry(0, node.layout.boundaries[0][:-1])
    pairs = blocks(
        (node,), (Piece("sort_pairs", (Operand(0, (Along(0),)), starts)),), node.layout, node.dtype, 2
    )
    ordered = part(pairs, 0, node.dtype)
    count = buckets_for(node)
    runs, positions, samples = persisted([ordered, part(pairs, 1, np.intp), sampled(ordered, count)])
    split, _, layout = shuffle([runs, positions], count, samples=samples)
    return merged("merge_positions", split, layout, np.intp)
