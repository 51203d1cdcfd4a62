"""Sorting tiles, cutting sorted ones at splitters, and merging what lies between two splitters.

NaN and NaT are larger than anything, as in NumPy; its `searchsorted` agrees with its `sort` on that.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.kernels.arrays.moves import room
from linnet.kernels.registry import kernel

Tile = NDArray[Any]


def _same(shape: Sequence[int], *_: Any, **__: Any) -> tuple[int, ...]:
    return tuple(shape)


def _work(shape: Sequence[int], *_: Any, **__: Any) -> float:
    size = math.prod(shape)
    return size * math.log2(size + 2)


def _positions(*_: Any, **__: Any) -> np.dtype[Any]:
    return np.dtype(np.intp)


def _kind(stable: bool) -> Any:
    return "stable" if stable else None


@kernel("sort_tile", shape=_same, flops=_work, scratch=0.5)
def sort_tile(x: Tile, *, axis: int = 0, stable: bool = False) -> Tile:
    """`np.sort` along an axis.

    >>> sort_tile(np.array([3.0, np.nan, 1.0]))
    array([ 1.,  3., nan])
    """
    return np.sort(x, axis=axis, kind=_kind(stable))


@kernel("argsort_tile", shape=_same, dtype=_positions, flops=_work, scratch=0.5)
def argsort_tile(x: Tile, *, axis: int = 0, stable: bool = True) -> Tile:
    """`np.argsort` along an axis.

    >>> argsort_tile(np.array([[3, 1], [2, 2]]), axis=1)
    array([[1, 0],
           [0, 1]])
    """
    return np.argsort(x, axis=axis, kind=_kind(stable))


@kernel("partition_tile", shape=_same, flops=lambda shape, **_: float(math.prod(shape)))
def partition_tile(x: Tile, *, kth: tuple[int, ...], axis: int) -> Tile:
    """`np.partition` along an axis.

    >>> partition_tile(np.array([3, 1, 2]), kth=(0, 1), axis=0)
    array([1, 2, 3])
    """
    return np.partition(x, kth, axis=axis)


@kernel("argpartition_tile", shape=_same, dtype=_positions, flops=lambda shape, **_: float(math.prod(shape)))
def argpartition_tile(x: Tile, *, kth: tuple[int, ...], axis: int) -> Tile:
    """`np.argpartition` along an axis.

    >>> argpartition_tile(np.array([3, 1, 2]), kth=(0, 1), axis=0)
    array([1, 2, 0])
    """
    return np.argpartition(x, kth, axis=axis)


@kernel("lexsort_tiles", shape=_same, dtype=_positions, flops=_work)
def lexsort_tiles(*keys: Tile, axis: int) -> Tile:
    """`np.lexsort`: the last key counts most.

    >>> lexsort_tiles(np.array([1, 0, 1]), np.array([2, 2, 1]), axis=0)
    array([2, 1, 0])
    """
    return np.asarray(np.lexsort(keys, axis=axis))


@kernel(
    "sort_pairs",
    shape=lambda shape, *_: [tuple(shape)] * 2,
    dtype=lambda dtype, *_, **__: [dtype, np.dtype(np.intp)],
    flops=_work,
    scratch=1.0,
)
def sort_pairs(x: Tile, start: int) -> list[Tile]:
    """A tile with one axis sorted, and where in the whole array its elements were.

    >>> sort_pairs(np.array([7, 3]), 10)
    [array([3, 7]), array([11, 10])]
    """
    order = np.argsort(x, kind="stable")
    return [x[order], order + start]


# ---- between tiles


@kernel("sample_run", shape=lambda shape, *, count: (count,), flops=lambda *_, **__: 0.0)
def sample_run(run: Tile, *, count: int) -> Tile:
    """Elements of a sorted tile, evenly spaced.

    >>> sample_run(np.arange(10), count=3)
    array([1, 5, 8])
    """
    places = (2 * np.arange(count, dtype=np.int64) + 1) * run.size // (2 * count)
    return run[places]


@kernel(
    "find_splitters",
    shape=lambda run, splitters: (1, 2, *splitters),
    dtype=_positions,
    flops=lambda *_: 0.0,
)
def find_splitters(run: Tile, splitters: Tile) -> Tile:
    """How many elements of a sorted tile are smaller than each splitter, and how many not larger.

    >>> find_splitters(np.array([1, 3, 3, 5]), np.array([3, 4]))
    array([[[1, 3],
            [3, 3]]])
    """
    return np.stack([np.searchsorted(run, splitters, side) for side in ("left", "right")])[None]


def _split_shapes(run: Sequence[int], cuts: Sequence[int]) -> list[tuple[int, ...]]:
    """What pieces take on average: how long each is depends on the values."""
    count = cuts[1] - 1
    return [(-(-run[0] // count),)] * count


@kernel("split_run", shape=_split_shapes, dtype=lambda run, cuts: run, flops=lambda *_: 0.0)
def split_run(run: Tile, cuts: Tile) -> list[Tile]:
    """A tile cut at given places; the pieces are parts of it, which the engine copies where it must.

    >>> split_run(np.arange(4), np.array([[0, 1, 4]]))
    [array([0]), array([1, 2, 3])]
    """
    (places,) = cuts
    return [run[a:b] for a, b in itertools.pairwise(places)]


def _total(pieces: Sequence[Sequence[int]], *_: Any, **__: Any) -> tuple[int, ...]:
    return (sum(piece[0] for piece in pieces),)


def _merge_work(pieces: Sequence[Sequence[int]], *_: Any, **__: Any) -> float:
    return _work(_total(pieces))


@kernel("merge_runs", shape=_total, dtype=lambda pieces: pieces[0], flops=_merge_work, into=True)
def merge_runs(pieces: list[Tile], *, into: Tile | None = None) -> Tile:
    """Sorted pieces as one sorted tile.

    >>> merge_runs([np.array([1, 4]), np.array([2])])
    array([1, 2, 4])
    """
    merged = room((sum(piece.size for piece in pieces),), pieces[0].dtype, into)
    np.concatenate(pieces, out=merged)
    merged.sort()
    return merged


@kernel("merge_positions", shape=_total, dtype=_positions, flops=_merge_work, scratch=1.5)
def merge_positions(pieces: list[Tile], positions: list[Tile]) -> Tile:
    """The positions that belong to sorted pieces, in the order of their merged values.

    Of equal values those of earlier pieces come first.

    >>> merge_positions([np.array([1, 4]), np.array([1])], [np.array([0, 1]), np.array([2])])
    array([0, 2, 1])
    """
    order = np.argsort(np.concatenate(pieces), kind="stable")
    return np.concatenate(positions)[order]


# ---- the largest


def _top(shape: Sequence[int], k: int, axis: int) -> tuple[int, ...]:
    return tuple(min(abs(k), n) if a == axis else n for a, n in enumerate(shape))


@kernel(
    "top_tile",
    shape=lambda shape, *_, k, axis: [_top(shape, k, axis)] * 2,
    dtype=lambda dtype, *_, **__: [dtype, np.dtype(np.intp)],
    flops=lambda shape, *_, **__: float(math.prod(shape)),
)
def top_tile(x: Tile, start: int, *, k: int, axis: int) -> list[Tile]:
    """The k largest elements along an axis (-k: the smallest), best first, and their positions.

    >>> top_tile(np.array([5, 9, 7]), 10, k=2, axis=0)
    [array([9, 7]), array([11, 12])]
    """
    order = _best(x, k, axis)
    return [np.take_along_axis(x, order, axis), order + start]


@kernel(
    "top_join",
    shape=lambda x, positions, *, k, axis: [_top(x, k, axis)] * 2,
    dtype=lambda dtype, *_, **__: [dtype, np.dtype(np.intp)],
    flops=lambda shape, *_, **__: float(math.prod(shape)),
)
def top_join(x: Tile, positions: Tile, *, k: int, axis: int) -> list[Tile]:
    """The best of the best of tiles: values and positions.

    >>> top_join(np.array([9, 7, 8]), np.array([11, 12, 4]), k=2, axis=0)
    [array([9, 8]), array([11,  4])]
    """
    order = _best(x, k, axis)
    return [np.take_along_axis(x, order, axis), np.take_along_axis(positions, order, axis)]


def _best(x: Tile, k: int, axis: int) -> Tile:
    """Where the k best elements are, best first, of equals the one that comes first."""
    length, count = x.shape[axis], min(abs(k), x.shape[axis])
    if k < 0:
        return np.argsort(x, axis=axis, kind="stable").take(np.arange(count), axis=axis)
    backwards = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    return length - 1 - np.flip(backwards, axis).take(np.arange(count), axis=axis)
