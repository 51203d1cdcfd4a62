"""`ln.grid` and `ln.wavefront`: nested loops in one line, in plain Python as well as inside `@ln.loops`."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator
from typing import Any


class Grid:
    """The steps of nested loops, the last running fastest."""

    __slots__ = ("ranges",)

    def __init__(self, ranges: tuple[range, ...]) -> None:
        self.ranges: tuple[range, ...] = ranges

    def __iter__(self) -> Iterator[Any]:
        return iter(self.ranges[0]) if len(self.ranges) == 1 else itertools.product(*self.ranges)

    def __len__(self) -> int:
        made = 1
        for each in self.ranges:
            made *= len(each)
        return made

    def __repr__(self) -> str:
        return f"grid({', '.join(map(repr, self.ranges))})"


def _range(given: Any) -> range:
    if isinstance(given, range):
        return given
    try:
        if isinstance(given, tuple):
            if not 2 <= len(given) <= 3:
                raise ValueError(f"a range of a grid is (start, stop) or (start, stop, step), not {given!r}")
            return range(*map(operator.index, given))
        return range(operator.index(given))
    except TypeError:
        raise TypeError(
            f"a range of a grid is a whole number, (start, stop[, step]) or a range, not {given!r}"
        ) from None


def grid(*ranges: int | tuple[int, ...] | range) -> Grid:
    """Nested loops in one line; the last range runs fastest.

    Parameters
    ----------
    *ranges
        For each loop how far it runs: an integer, ``(start, stop)``, ``(start, stop, step)`` or a `range`.

    Returns
    -------
    Grid
        Gives tuples of indices; integers if there is one range.

    Examples
    --------
    >>> list(grid(2, (1, 3)))
    [(0, 1), (0, 2), (1, 1), (1, 2)]
    >>> list(grid((4, 0, -2)))
    [4, 2]
    """
    if not ranges:
        raise TypeError("a grid needs at least one range: grid(n)")
    return Grid(tuple(map(_range, ranges)))


def wavefront(*ranges: int | tuple[int, ...] | range) -> Grid:
    """The loops of `grid`, for recurrences: each step may read what earlier steps wrote near it.

    Inside `ln.loops` the steps on a diagonal run together. In plain Python it is `grid`.

    Parameters
    ----------
    *ranges
        As for `grid`.

    Returns
    -------
    Grid
        Gives the same indices in the same order.

    Examples
    --------
    >>> list(wavefront(2, 2))
    [(0, 0), (0, 1), (1, 0), (1, 1)]
    """
    return grid(*ranges)
