"""Chunk arithmetic of files: which chunks a box meets, and tiles that never split one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Box = tuple[slice, ...]


@dataclass(frozen=True, slots=True)
class Described:
    """What a file holds, as far as it is known without reading its data."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    """Of the array as it is read: in the byte order of this machine."""
    unit: tuple[int, ...] | None
    """Lengths of what is read whole or not at all (a compressed chunk); None: it can be cut anywhere."""
    attributes: dict[str, Any] = field(default_factory=dict)
    """What a task needs besides its box, to read it anywhere."""


def merged(unit: Sequence[int], shape: Sequence[int], itemsize: int, target: float) -> tuple[int, ...]:
    """Lengths of tiles, in whole units, of at most `target` bytes where units are that small.

    The shortest sides grow first, so that tiles become as square as the units allow.

    >>> merged((1, 180, 360), (1000, 180, 360), 8, 2**23)
    (16, 180, 360)
    >>> merged((4096, 4096), (8192, 8192), 8, 2**23)
    (4096, 4096)
    """
    sides = [max(1, min(u, n)) for u, n in zip(unit, shape, strict=True)]
    while True:
        room = target / itemsize / math.prod(sides)
        open_axes = [axis for axis, n in enumerate(shape) if sides[axis] < n]
        for axis in sorted(open_axes, key=lambda axis: (sides[axis], -axis)):
            # At most doubled at a time, so that the sides grow together.
            longer = min(shape[axis], int(sides[axis] * min(2.0, room)) // unit[axis] * unit[axis])
            if longer > sides[axis]:
                sides[axis] = longer
                break
        else:
            return tuple(sides)


def snapped(edges: Sequence[int], step: int, start: int = 0) -> tuple[int, ...]:
    """Boundaries moved to the nearest multiples of a step, counted from `-start`; the ends stay.

    >>> snapped((0, 5, 9, 12), 4)
    (0, 4, 8, 12)
    >>> snapped((0, 6, 12), 4, start=2)
    (0, 6, 12)
    """
    length = edges[-1]
    inner = {round((edge + start) / step) * step - start for edge in edges[1:-1]}
    return (0, *sorted(edge for edge in inner if 0 < edge < length), length)


def meeting(box: Box, chunk: Sequence[int]) -> Iterator[tuple[tuple[int, ...], Box, Box]]:
    """The chunks that a box meets: the place of each, what is taken of it, and where in the box that lies.

    >>> list(meeting((slice(3, 9),), (4,)))
    [((0,), (slice(3, 4, None),), (slice(0, 1, None),)), ((1,), (slice(0, 4, None),), (slice(1, 5, None),)), \
((2,), (slice(0, 1, None),), (slice(5, 6, None),))]
    """
    axes: list[list[tuple[int, slice, slice]]] = []
    for part, length in zip(box, chunk, strict=True):
        along: list[tuple[int, slice, slice]] = []
        for place in range(part.start // length, -(-part.stop // length) if part.stop > part.start else 0):
            first = max(part.start, place * length)
            last = min(part.stop, (place + 1) * length)
            inside = slice(first - place * length, last - place * length)
            along.append((place, inside, slice(first - part.start, last - part.start)))
        axes.append(along)
    for combination in itertools.product(*axes):
        yield (
            tuple(each[0] for each in combination),
            tuple(each[1] for each in combination),
            tuple(each[2] for each in combination),
        )


def runs(shape: Sequence[int], box: Box) -> tuple[int, Iterator[int]]:
    """A box of an array in C order as runs of elements that lie together: their length, and where they begin.

    >>> length, starts = runs((4, 6), (slice(1, 3), slice(0, 6)))
    >>> length, list(starts)
    (12, [6])
    """
    lengths = [part.stop - part.start for part in box]
    axis = len(shape) - 1
    while axis > 0 and lengths[axis] == shape[axis]:
        axis -= 1
    strides = [math.prod(shape[a + 1 :]) for a in range(len(shape))]
    together = math.prod(lengths[max(axis, 0) :])
    outer = [range(part.start, part.stop) for part in box[: max(axis, 0)]]
    base = sum(part.start * stride for part, stride in list(zip(box, strides, strict=True))[max(axis, 0) :])

    def starts() -> Iterator[int]:
        if together:
            for index in itertools.product(*outer):
                yield base + sum(i * stride for i, stride in zip(index, strides, strict=False))

    return together, starts()
