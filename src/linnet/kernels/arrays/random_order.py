"""Rows in random order, in two steps: every tile deals its rows to heaps, every heap is mixed.

The generator of a tile or heap is seeded with the key of the array and its number, so that it deals
and mixes in the same way wherever it runs, and alike for tiles side by side.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import SFC64, Generator, SeedSequence
from numpy.typing import NDArray

from linnet.kernels.registry import kernel

Tile = NDArray[Any]


def _generator(key: Tile, step: int, number: int) -> Generator:
    return Generator(SFC64(SeedSequence([*key.tolist(), step, number])))


def _dealt_shapes(
    x: Sequence[int], cuts: Sequence[int], *_: Any, axis: int, share: float, **__: Any
) -> list[tuple[int, ...]]:
    """What heaps get on average: how much each gets is drawn."""
    count = cuts[1] - 1
    ends = [int(x[axis] * share * place / count) for place in range(count + 1)]
    return [(*x[:axis], b - a, *x[axis + 1 :]) for a, b in itertools.pairwise(ends)]


@kernel(
    "deal_rows",
    shape=_dealt_shapes,
    dtype=lambda x, *_, **__: x,
    flops=lambda *_, **__: 0.0,
    scratch=0.5,
)
def deal_rows(
    x: Tile, cuts: Tile, key: Tile, number: int, *, axis: int, replace: bool, share: float
) -> list[Tile]:
    """Rows of a tile, drawn at random, in heaps; `cuts` says where heaps end in the order of drawing.

    `share` is how many of all rows are drawn, about.

    >>> cuts, key = np.array([[0, 2, 5]]), np.array([7], np.uint64)
    >>> heaps = deal_rows(np.arange(5), cuts, key, 0, axis=0, replace=False, share=1.0)
    >>> [heap.size for heap in heaps], sorted(np.concatenate(heaps).tolist())
    ([2, 3], [0, 1, 2, 3, 4])
    """
    (places,) = cuts
    generator = _generator(key, 0, number)
    length = x.shape[axis]
    if replace:
        order = generator.integers(length, size=places[-1])
    else:
        order = generator.permutation(length)
    return [x.take(order[a:b], axis=axis) for a, b in itertools.pairwise(places)]


def _mixed_shape(heap: Sequence[Sequence[int]], *_: Any, axis: int) -> tuple[int, ...]:
    return tuple(sum(each[a] for each in heap) if a == axis else n for a, n in enumerate(heap[0]))


@kernel(
    "mix_rows",
    shape=_mixed_shape,
    dtype=lambda heap, *_, **__: heap[0],
    flops=lambda heap, *_, **__: float(sum(map(math.prod, heap))),
    into=True,
)
def mix_rows(heap: list[Tile], key: Tile, number: int, *, axis: int, into: Tile | None = None) -> Tile:
    """The rows of a heap in random order.

    >>> heap = [np.arange(3), np.arange(3, 5)]
    >>> sorted(mix_rows(heap, np.array([7], np.uint64), 0, axis=0).tolist())
    [0, 1, 2, 3, 4]
    """
    shape = _mixed_shape([each.shape for each in heap], axis=axis)
    fits = into is not None and into.shape == shape and into.dtype == heap[0].dtype
    made = into if fits and into is not None else np.empty(shape, heap[0].dtype)
    order = _generator(key, 1, number).permutation(shape[axis])
    start = 0
    # Each piece goes straight to its places: the heap is never in memory twice.
    for each in heap:
        stop = start + each.shape[axis]
        made[(*(slice(None),) * axis, order[start:stop])] = each
        start = stop
    return made
