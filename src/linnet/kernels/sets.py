"""Distinct elements: of a tile, of a bucket of sorted pieces, and what two sets have in common."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.kernels.registry import kernel

Tile = NDArray[Any]


def _columns(dtype: Any, *_: Any, **__: Any) -> list[Any]:
    return [dtype, np.dtype(np.intp), np.dtype(np.intp), np.dtype(np.intp)]


@kernel(
    "unique_tile",
    shape=lambda shape, *_, **__: [tuple(shape)] * 4,
    dtype=_columns,
    flops=lambda shape, *_, **__: 20.0 * math.prod(shape),
    scratch=3.0,
)
def unique_tile(x: Tile, start: int, *, equal_nan: bool = True, places: bool = True) -> list[Tile]:
    """The distinct elements of a tile in order: where each is first, how often it occurs, and for
    each element which of them it is. Without `places` all are said to be first at `start`, and no
    element which it is: sorting alone is many times faster than sorting positions.

    >>> unique_tile(np.array([7, 3, 7]), 10)
    [array([3, 7]), array([11, 10]), array([1, 2]), array([1, 0, 1])]
    """
    if not places:
        values, counts = np.unique(x, return_counts=True, equal_nan=equal_nan)
        return [values, np.full(values.shape, start, np.intp), counts, np.empty((0,), np.intp)]
    values, first, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, equal_nan=equal_nan
    )
    return [values, first + start, counts, inverse]


def _together(pieces: Sequence[Sequence[int]]) -> tuple[int, ...]:
    return (sum(piece[0] for piece in pieces),)


def _grouped(pieces: list[Tile], equal_nan: bool) -> tuple[Tile, Tile, Tile, Tile]:
    """Distinct values, the group of each element, the elements in the order of groups, where groups start."""
    values, group = np.unique(np.concatenate(pieces), return_inverse=True, equal_nan=equal_nan)
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(values.size))
    return values, group, order, starts


@kernel(
    "unique_bucket",
    shape=lambda pieces, *_, **__: [_together(pieces)] * 3,
    dtype=lambda pieces, *_, **__: _columns(pieces[0])[:3],
    flops=lambda pieces, *_, **__: 20.0 * _together(pieces)[0],
    scratch=2.0,
)
def unique_bucket(
    pieces: list[Tile], first: list[Tile], counts: list[Tile], *, equal_nan: bool = True
) -> list[Tile]:
    """The distinct elements of all pieces: values, where each is first, how often it occurs.

    >>> one, two = np.array([3, 7]), np.array([7])
    >>> unique_bucket([one, two], [np.array([1, 0]), np.array([5])], [np.array([1, 2]), np.array([4])])
    [array([3, 7]), array([1, 0]), array([1, 6])]
    """
    values, _, order, starts = _grouped(pieces, equal_nan)
    if not values.size:
        return [values, np.concatenate(first), np.concatenate(counts)]
    return [
        values,
        np.minimum.reduceat(np.concatenate(first)[order], starts),
        np.add.reduceat(np.concatenate(counts)[order], starts),
    ]


@kernel(
    "rank_bucket",
    shape=lambda pieces, offset, **_: [tuple(piece) for piece in pieces],
    dtype=lambda *_, **__: np.dtype(np.intp),
    flops=lambda pieces, *_, **__: 20.0 * _together(pieces)[0],
    scratch=2.0,
)
def rank_bucket(pieces: list[Tile], offset: int, *, equal_nan: bool = True) -> list[Tile]:
    """For each piece which of the distinct elements its own are; `offset` come in earlier buckets.

    >>> rank_bucket([np.array([3, 7]), np.array([7])], 10)
    [array([10, 11]), array([11])]
    """
    _, group, _, _ = _grouped(pieces, equal_nan)
    ends = np.cumsum([piece.size for piece in pieces])
    return [each.copy() for each in np.split(group + offset, ends[:-1])]


@kernel(
    "inverse_tile",
    shape=lambda ranks, inverse: tuple(inverse),
    dtype=lambda *_, **__: np.dtype(np.intp),
    flops=lambda ranks, inverse: float(math.prod(inverse)),
)
def inverse_tile(ranks: list[Tile], inverse: Tile) -> Tile:
    """For each element of a tile which of all distinct elements it is.

    >>> inverse_tile([np.array([4]), np.array([9])], np.array([1, 0, 1]))
    array([9, 4, 9])
    """
    return np.concatenate(ranks)[inverse]


@kernel(
    "common_bucket",
    shape=lambda pieces, *_, **__: [_together(pieces)] * 3,
    dtype=lambda pieces, *_, **__: _columns(pieces[0])[:3],
    flops=lambda pieces, *_, **__: 20.0 * _together(pieces)[0],
    scratch=2.0,
)
def common_bucket(
    pieces: list[Tile], first: list[Tile], sides: list[Tile], *, keep: tuple[int, ...]
) -> list[Tile]:
    """Values by the sets they occur in (1: the first, 2: the second, 3: both), with their first
    places in each.

    >>> common_bucket(
    ...     [np.array([3, 7]), np.array([7])],
    ...     [np.array([1, 0]), np.array([5])],
    ...     [np.array([1, 1]), np.array([2])],
    ...     keep=(3,),
    ... )
    [array([7]), array([0]), array([5])]
    """
    values, _, order, starts = _grouped(pieces, True)
    if not values.size:
        empty = np.empty(0, np.intp)
        return [values, empty, empty.copy()]
    side, place = np.concatenate(sides)[order], np.concatenate(first)[order]
    far = np.iinfo(np.intp).max
    kept = np.isin(np.bitwise_or.reduceat(side, starts), keep)
    places = [np.minimum.reduceat(np.where(side == which, place, far), starts)[kept] for which in (1, 2)]
    return [values[kept], *places]


@kernel(
    "isin_tile",
    shape=lambda x, test: tuple(x),
    dtype=lambda *_, **__: np.dtype(bool),
    flops=lambda x, test: 20.0 * math.prod(x),
)
def isin_tile(x: Tile, test: Tile) -> Tile:
    """Which elements occur in `test`.

    >>> isin_tile(np.array([1, 2, 3]), np.array([3, 1]))
    array([ True, False,  True])
    """
    return np.isin(x, test)
