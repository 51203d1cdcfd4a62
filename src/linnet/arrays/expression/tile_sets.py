"""Sets of tiles: boxes that do not overlap, each a product of numbers of tiles along every axis.

Numbers in even steps are a `range`, however many; others, a tuple. Where boxes are so many that tiles
would have to be looked at one by one, and these are too many, the box around them stands for them: to need
more tiles than somebody reads is never wrong.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

Numbers = range | tuple[int, ...]
"""Ascending, each once; a range wherever they are even."""

Box = tuple[Numbers, ...]
"""All combinations of numbers along each axis."""

Tiles = tuple[Box, ...]
"""Boxes without a tile in common."""

MOST_LISTED = 1 << 15
"""Tiles that are looked at one by one."""

_MOST_PAIRS = 256
"""Boxes that are taken from one another."""


def numbers(found: Iterable[int]) -> Numbers:
    """Numbers in order; a range if they are even.

    >>> numbers([4, 0, 2, 2]), numbers([0, 1, 5])
    (range(0, 5, 2), (0, 1, 5))
    """
    ordered = sorted({*found})
    if len(ordered) < 2:
        return range(ordered[0], ordered[0] + 1) if ordered else range(0)
    step = ordered[1] - ordered[0]
    even = range(ordered[0], ordered[-1] + 1, step)
    if len(even) == len(ordered) and all(map(int.__eq__, even, ordered)):
        return even
    return tuple(ordered)


def covered(spans: Iterable[tuple[int, int]]) -> Numbers:
    """The numbers that lie in one of several ranges.

    >>> covered([(0, 2), (1, 3), (3, 4)]), covered([(0, 1), (19, 20), (7, 7)])
    (range(0, 4), range(0, 20, 19))
    """
    runs = _runs(spans)
    if len(runs) > 1:
        runs = _runs(sorted(runs))
    if len(runs) == 1:
        return range(*runs[0])
    return numbers(itertools.chain.from_iterable(itertools.starmap(range, runs)))


def _runs(spans: Iterable[Sequence[int]]) -> list[list[int]]:
    """Ranges that touch the one before them joined with it; empty ones left out."""
    runs: list[list[int]] = []
    first = last = -1
    for start, stop in spans:
        if start >= stop:
            continue
        if first <= start <= last:
            if stop > last:
                last = runs[-1][1] = stop
        else:
            first, last = start, stop
            runs.append([start, stop])
    return runs


def count(tiles: Iterable[Box]) -> int:
    """How many tiles there are.

    >>> count([(range(2), (0, 1, 5))])
    6
    """
    return sum(math.prod(map(len, box)) for box in tiles)


# ---- of two boxes


def common(one: Box, other: Box) -> Box | None:
    """What two boxes share; None if that is nothing.

    >>> common((range(2),), (range(1, 3),)), common((range(1),), (range(1, 3),))
    ((range(1, 2),), None)
    """
    shared: list[Numbers] = []
    for a, b in zip(one, other, strict=True):
        found = _shared(a, b)
        if not found:
            return None
        shared.append(found)
    return tuple(shared)


def _shared(one: Numbers, other: Numbers) -> Numbers:
    if one == other:
        return one
    if isinstance(one, range) and isinstance(other, range):
        if one.step == other.step == 1:
            return range(max(one.start, other.start), min(one.stop, other.stop))
        if one.step == 1 or other.step == 1:
            dense, sparse = (one, other) if one.step == 1 else (other, one)
            first = max(0, -((sparse.start - dense.start) // sparse.step))
            last = max(first, -((sparse.start - dense.stop) // sparse.step))
            return sparse[first:last]
    inside = other if isinstance(other, range) else {*other}
    return numbers(each for each in one if each in inside)


def _without(box: Box, taken: Box) -> list[Box]:
    """A box without what it shares with another: what is left, in boxes."""
    shared = common(box, taken)
    if shared is None:
        return [box]
    left: list[Box] = []
    for axis, (own, gone) in enumerate(zip(box, shared, strict=True)):
        rest = _difference(own, gone)
        if rest:
            left.append((*shared[:axis], rest, *box[axis + 1 :]))
    return left


def _difference(one: Numbers, other: Numbers) -> Numbers:
    """Numbers without some of them."""
    if one == other:
        return ()
    if isinstance(one, range) and isinstance(other, range) and one.step == other.step == 1:
        if one[0] == other[0]:
            return range(other.stop, one.stop)
        if one[-1] == other[-1]:
            return range(one.start, other.start)
    inside = other if isinstance(other, range) else {*other}
    return numbers(each for each in one if each not in inside)


# ---- of several


def union(one: Tiles, other: Tiles) -> Tiles:
    """The tiles of both sets.

    >>> union(((range(2), range(3)),), ((range(2, 4), range(3)),))
    ((range(0, 4), range(0, 3)),)
    >>> union(((range(1), range(1)),), ((range(1, 2), range(1, 2)),))
    ((range(0, 1), range(0, 1)), (range(1, 2), range(1, 2)))
    """
    if not one or _covers(other, one):
        return other
    return one if one == other or _covers(one, other) else joined([*one, *other])


def _covers(one: Tiles, other: Tiles) -> bool:
    """Whether a set is one box, in which all of another lies."""
    return len(one) == 1 and all(common(one[0], box) == box for box in other)


def joined(boxes: Iterable[Box]) -> Tiles:
    """The tiles of boxes that may overlap."""
    several = [box for box in dict.fromkeys(boxes) if all(box)]
    if len(several) ** 2 <= _MOST_PAIRS:
        found: list[Box] = []
        for box in several:
            rest = [box]
            for taken in found:
                rest = [part for each in rest for part in _without(each, taken)]
            found += rest
        return merged(found)
    if count(several) <= MOST_LISTED:
        return of_points({point for box in several for point in itertools.product(*box)})
    return (tuple(map(_around, zip(*several, strict=True))),)


def _around(lines: Sequence[Numbers]) -> Numbers:
    return range(min(line[0] for line in lines), max(line[-1] for line in lines) + 1)


def merged(boxes: Sequence[Box]) -> Tiles:
    """Boxes without a tile in common, those that differ along one axis alone made one.

    >>> merged([(range(1), range(4)), (range(5, 6), range(4))])
    ((range(0, 6, 5), range(0, 4)),)
    """
    found = list(boxes)
    for axis in reversed(range(len(found[0]) if len(found) > 1 else 0)):
        lines: dict[Box, list[Numbers]] = {}
        for box in found:
            lines.setdefault((*box[:axis], *box[axis + 1 :]), []).append(box[axis])
        found = [
            (*rest[:axis], parts[0] if len(parts) == 1 else _together(parts), *rest[axis:])
            for rest, parts in lines.items()
        ]
    return tuple(found)


def _together(parts: Sequence[Numbers]) -> Numbers:
    if all(isinstance(part, range) and part.step == 1 for part in parts):
        return covered((part[0], part[-1] + 1) for part in parts)
    return numbers(itertools.chain.from_iterable(parts))


def of_points(points: Iterable[tuple[int, ...]]) -> Tiles:
    """Single tiles as boxes.

    >>> of_points([(0, 0), (0, 1), (2, 0), (2, 1)])
    ((range(0, 3, 2), range(0, 2)),)
    """
    if () in (single := {*points}):
        return ((),)
    lines: dict[tuple[int, ...], list[int]] = {}
    for point in sorted(single):
        lines.setdefault(point[:-1], []).append(point[-1])
    return merged([(*(range(n, n + 1) for n in rest), numbers(line)) for rest, line in lines.items()])


# ---- triangles


class Stairs(NamedTuple):
    """Tiles in lines, one after the other, whose ends move by as much from each to the next."""

    across: int
    """The axis along which lines are numbered."""
    along: int
    """The axis along which they lie."""
    steps: range
    """Numbers of the lines."""
    start: tuple[int, int]
    """Where line 0 would begin, and how much further each begins than the one before it."""
    stop: tuple[int, int]
    """Where it would end, and how much further each ends."""
    others: Box
    """All tiles along the other axes."""


def triangle(count: int, lower: bool) -> Tiles:
    """The tiles on a diagonal of so many and on one side of it; all, if there are too many to list.

    >>> triangle(2, True)
    ((range(0, 1), range(0, 1)), (range(1, 2), range(0, 2)))
    """
    if count * (count + 1) // 2 > MOST_LISTED:
        return ((range(count), range(count)),)
    return tuple(
        (range(row, row + 1), range(row + 1) if lower else range(row, count)) for row in range(count)
    )


def stairs_of(tiles: Sequence[Box]) -> Stairs | None:
    """Boxes as stairs, if they are: loops can say these however many they are.

    >>> stairs_of(triangle(5, False))
    Stairs(across=0, along=1, steps=range(0, 5), start=(0, 1), stop=(5, 0), others=())
    """
    axes = list(zip(*tiles, strict=True))
    differ = [axis for axis, line in enumerate(axes) if any(each != line[0] for each in line)]
    if len(differ) != 2:
        return None
    others = tuple(line[0] for axis, line in enumerate(axes) if axis not in differ)
    for across, along in (differ, differ[::-1]):
        lines = {box[across][0]: box[along] for box in tiles if len(box[across]) == 1}
        steps = range(min(lines, default=0), max(lines, default=0) + 1)
        if not len(steps) == len(lines) == len(tiles):
            continue
        (start, stop), (later, further) = ((line[0], line[-1] + 1) for line in (lines[n] for n in steps[:2]))
        by, grown = later - start, further - stop
        start, stop = start - by * steps[0], stop - grown * steps[0]
        if all(lines[n] == range(start + by * n, stop + grown * n) for n in steps):
            return Stairs(across, along, steps, (start, by), (stop, grown), others)
    return None


# ---- lists


def listed(tiles: Sequence[Box]) -> tuple[dict[int, tuple[int, ...]], Box] | None:
    """Many boxes as one list: numbers along axes in which they differ, and the box along the others.

    None if the list would be too long.

    >>> listed([(range(1), range(1), range(9)), ((1, 2, 4), range(1, 2), range(9))])
    ({0: (0, 1, 2, 4), 1: (0, 1, 1, 1)}, (range(0, 9),))
    """
    lines = list(zip(*tiles, strict=True))
    differ = [axis for axis, line in enumerate(lines) if any(each != line[0] for each in line)]
    parts = [tuple(box[axis] for axis in differ) for box in tiles]
    if not differ or count(parts) > MOST_LISTED:
        return None
    points = sorted(itertools.chain.from_iterable(itertools.product(*part) for part in parts))
    alike = tuple(line[0] for axis, line in enumerate(lines) if axis not in differ)
    return dict(zip(differ, zip(*points, strict=True), strict=True)), alike
