"""Distinct elements: of a tile, of a bucket of sorted pieces, and what two sets have in common."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.kernels.registry import kernel

Tile = NDArray[Any]


_PLACES = np.dtype(np.intp)


def _together(pieces: Sequence[Sequence[int]], *_: Any, **__: Any) -> tuple[int, ...]:
    return (sum(piece[0] for piece in pieces),)


# ---- values alone


@kernel(
    "distinct_tile",
    shape=lambda shape, **_: tuple(shape),
    flops=lambda shape, **_: 20.0 * math.prod(shape),
    scratch=1.2,
)
def distinct_tile(x: Tile, *, equal_nan: bool = True) -> Tile:
    """The distinct elements of a tile in order, and nothing else.

    By sorting: NumPy's own `unique` keeps a table of the elements, which takes six times their memory.

    >>> distinct_tile(np.array([7, 3, 7]))
    array([3, 7])
    """
    return _once(np.sort(x), equal_nan)


@kernel(
    "distinct_bucket",
    shape=_together,
    dtype=lambda pieces, **_: pieces[0],
    flops=lambda pieces, **_: 20.0 * _together(pieces)[0],
    scratch=1.2,
)
def distinct_bucket(pieces: list[Tile], *, equal_nan: bool = True) -> Tile:
    """The distinct elements of all pieces.

    >>> distinct_bucket([np.array([3, 7]), np.array([7])])
    array([3, 7])
    """
    merged = np.concatenate(pieces)
    merged.sort()
    return _once(merged, equal_nan)


def _once(ordered: Tile, equal_nan: bool) -> Tile:
    """Of neighbours in order that are equal the first; of all NaN too, if they count as equal."""
    first = np.ones(ordered.shape, bool)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    if equal_nan and ordered.size and ordered.dtype.kind in "fcmM" and np.isnan(ordered[-1]):
        # NaN come last, those of complex numbers behind one another in some order.
        first[np.searchsorted(np.isnan(ordered), True) + 1 :] = False
    return ordered if first.all() else ordered[first]


# ---- values with what belongs to them


def _tile_columns(dtype: Any, *_: Any, columns: tuple[str, ...], **__: Any) -> list[Any]:
    return [dtype, *(_PLACES for _ in columns)]


@kernel(
    "unique_tile",
    shape=lambda shape, *_, columns, **__: [tuple(shape)] * (1 + len(columns)),
    dtype=_tile_columns,
    flops=lambda shape, *_, **__: 20.0 * math.prod(shape),
    scratch=3.0,
)
def unique_tile(
    x: Tile, start: int, *, equal_nan: bool = True, columns: tuple[str, ...] = ("first", "counts", "inverse")
) -> list[Tile]:
    """The distinct elements of a tile in order, then what `columns` names: where each is "first" in the
    whole array, how often it occurs ("counts"), for each element which of them it is ("inverse").

    >>> unique_tile(np.array([7, 3, 7]), 10)
    [array([3, 7]), array([11, 10]), array([1, 2]), array([1, 0, 1])]
    """
    # Only what is asked for: sorting alone is many times faster than sorting positions.
    asked: dict[str, Any] = {word: name in columns for name, word in _WORDS.items()}
    values, *found = np.unique(x, **asked, equal_nan=equal_nan)
    made = dict(zip([name for name, word in _WORDS.items() if asked[word]], found, strict=True))
    if "first" in made:
        made["first"] = made["first"] + start
    return [values, *(made[name] for name in columns)]


_WORDS = {"first": "return_index", "inverse": "return_inverse", "counts": "return_counts"}
"""Columns, with the word NumPy has for them, in the order in which it returns them."""


def _grouped(pieces: list[Tile], equal_nan: bool) -> tuple[Tile, Tile, Tile, Tile]:
    """Distinct values, the group of each element, the elements in the order of groups, where groups start."""
    values, group = np.unique(np.concatenate(pieces), return_inverse=True, equal_nan=equal_nan)
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(values.size))
    return values, group, order, starts


def _bucket_columns(pieces: Any, *_: Any, **__: Any) -> list[Any]:
    return [pieces[0], _PLACES, _PLACES]


_JOINS: dict[str, np.ufunc] = {"first": np.minimum, "counts": np.add}


@kernel(
    "unique_bucket",
    shape=lambda pieces, *_, columns, **__: [_together(pieces)] * (1 + len(columns)),
    dtype=lambda pieces, *_, columns, **__: [pieces[0], *(_PLACES for _ in columns)],
    flops=lambda pieces, *_, **__: 20.0 * _together(pieces)[0],
    scratch=2.0,
)
def unique_bucket(
    pieces: list[Tile],
    *others: list[Tile],
    equal_nan: bool = True,
    columns: tuple[str, ...] = ("first", "counts"),
) -> list[Tile]:
    """The distinct elements of all pieces: values, then the columns: where each is "first", or how often
    it occurs ("counts").

    >>> one, two = np.array([3, 7]), np.array([7])
    >>> unique_bucket([one, two], [np.array([1, 0]), np.array([5])], [np.array([1, 2]), np.array([4])])
    [array([3, 7]), array([1, 0]), array([1, 6])]
    """
    values, _, order, starts = _grouped(pieces, equal_nan)
    found: list[Tile] = [values]
    for name, other in zip(columns, others, strict=True):
        joined = np.concatenate(other)
        found.append(_JOINS[name].reduceat(joined[order], starts) if values.size else joined)
    return found


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
    dtype=_bucket_columns,
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
    # NaN equals itself in a union alone: it is in no intersection, and that of one set not in the other.
    values, _, order, starts = _grouped(pieces, keep == (1, 2, 3))
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
    if x.dtype.kind in "iu" and test.dtype.kind in "iu" and np.result_type(x, test).kind == "f":
        # Together they would be rounded: what does not fit equals nothing here.
        limits = np.iinfo(x.dtype)
        test = test[(test >= limits.min) & (test <= limits.max)].astype(x.dtype)
    return np.isin(x, test)
