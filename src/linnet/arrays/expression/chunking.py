"""How arrays are cut: `chunks=` as users write it, and the choice when they leave it to us.

The choice depends on shape, dtype and the memory budget, never on the number of workers: the same
expression under the same budget gives the same bits everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from linnet.errors import InputError
from linnet.session import current_engine
from linnet.tiles import Layout
from linnet.tiles.amounts import amount
from linnet.tiles.layout import Boundaries, from_sizes, regular

SMALL = 1 << 18
"""Bytes up to which an array in one tile is left to NumPy, whatever is done with it,"""

LINEAR = 64
"""and how many times longer it may be where NumPy looks at each element once, or a few times."""

TARGET = 1 << 23
"""Bytes of a tile that is cut automatically: large against the cost of a task, small against memory."""

_SHARE = 20
"""Such tiles that must fit into the budget, if there is one: a few tasks with their operands and results."""

_LEAST = 1 << 14
"""Bytes of a tile below which no budget goes."""

_STEP = 256
"""Automatic lengths are multiples of this, so that blocks of random numbers fit into them."""

Chunks = int | str | None | Sequence[Any] | dict[int, Any]


def target() -> int:
    """Bytes of a tile that is cut automatically: `TARGET`, or less under a small budget.

    >>> from linnet.session import init
    >>> with init(memory="20 MB"):
    ...     target()
    1000000
    """
    memory = current_engine().memory
    return TARGET if memory is None else min(TARGET, max(_LEAST, memory // _SHARE))


def automatic(shape: tuple[int, ...], itemsize: int) -> Layout:
    """Tiles of about `target()` bytes, as square as the shape allows.

    >>> automatic((50_000, 2_000), 8).grid
    (49, 2)
    >>> automatic((2_000_000, 50), 8).grid
    (97, 1)
    """
    return _automatic(shape, itemsize, target())


@lru_cache(maxsize=4096)
def _automatic(shape: tuple[int, ...], itemsize: int, size: int) -> Layout:
    return Layout(tuple(map(regular, shape, _lengths(shape, size / max(itemsize, 1), [True] * len(shape)))))


def _lengths(shape: tuple[int, ...], elements: float, free: list[bool]) -> list[int]:
    """The length of tiles of so many elements along each free axis."""
    elements = max(1.0, elements)
    lengths = [max(1, length) for length in shape]
    open_axes = sorted((axis for axis, is_free in enumerate(free) if is_free), key=lambda a: shape[a])
    for done, axis in enumerate(open_axes):
        # The shortest axes first: those that fit stay whole and leave more to the longer ones.
        side = max(1, int(elements ** (1 / (len(open_axes) - done)) + 1e-9))
        if side < lengths[axis]:
            step = _STEP if side >= _STEP else 1
            lengths[axis] = side // step * step
        elements = max(1.0, elements / lengths[axis])
    return lengths


@lru_cache(maxsize=1024)
def whole(shape: tuple[int, ...]) -> Layout:
    """One tile."""
    return Layout(tuple((0, length) for length in shape))


def normalized(chunks: Chunks, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Layout:
    """The layout that `chunks=` asks for.

    An integer is the length of tiles along every axis; a tuple has an entry for each axis: an
    integer, a tuple of all the lengths, "auto", or -1 or None for the whole axis. An amount such as
    "10 MB" is "auto" for tiles of at most so many bytes. A dict names some axes, the others stay whole.
    Chunks without elements are left out; an axis of length 0 is one.

    >>> normalized((4, -1), (10, 6), np.dtype("f8")).grid
    (3, 1)
    >>> normalized("1 MB", (1000, 1000), np.dtype("f8")).grid
    (4, 4)
    >>> normalized({0: (3, 7)}, (10, 6), np.dtype("f8")).boundaries
    ((0, 3, 10), (0, 6))
    """
    if isinstance(chunks, str) and chunks == "auto":
        return automatic(shape, dtype.itemsize)
    entries = _entries(chunks, shape)
    free = [isinstance(entry, str) for entry in entries]
    if any(free):
        given = math.prod(
            max(1, _longest(e, n)) for e, n, f in zip(entries, shape, free, strict=True) if not f
        )
        limits = [amount(e, "chunks") for e in entries if isinstance(e, str) and e != "auto"]
        size = min(limits) if limits else target()
        lengths = _lengths(shape, size / max(dtype.itemsize, 1) / given, free)
        entries = [n if f else e for e, n, f in zip(entries, lengths, free, strict=True)]
    return Layout(tuple(_axis(e, n, axis) for axis, (e, n) in enumerate(zip(entries, shape, strict=True))))


def _entries(chunks: Chunks, shape: tuple[int, ...]) -> list[Any]:
    if isinstance(chunks, dict):
        for axis in chunks:
            if not -len(shape) <= axis < len(shape):
                raise InputError(f"chunks={chunks!r} names axis {axis} of an array of shape {shape}")
        named = {axis % len(shape): value for axis, value in chunks.items()}
        return [named.get(axis, -1) for axis in range(len(shape))]
    if chunks is None or isinstance(chunks, str) or hasattr(chunks, "__index__"):
        entries: list[Any] = [chunks] * len(shape)
    else:
        entries = list(chunks)  # pyright: ignore[reportArgumentType]
        if len(shape) == 1 and len(entries) > 1 and all(hasattr(e, "__index__") for e in entries):
            entries = [tuple(entries)]  # (3, 3, 4): the lengths along the one axis
    if len(entries) != len(shape):
        raise InputError(
            f"chunks={chunks!r} has {len(entries)} entries for an array of shape {shape}; "
            "give one number, or an entry for each axis"
        )
    return entries


def _longest(entry: Any, length: int) -> int:
    if entry is None or (hasattr(entry, "__index__") and int(entry) == -1):
        return length
    return min(int(entry), length) if hasattr(entry, "__index__") else max(entry, default=1)


def _axis(entry: Any, length: int, axis: int) -> Boundaries:
    if entry is None:
        return (0, length)
    if hasattr(entry, "__index__"):
        size = int(entry)
        if size == -1:
            return (0, length)
        if size < 0 or (length and not size):
            raise InputError(f"chunks of length {size} along axis {axis}; a chunk has at least one element")
        return regular(length, max(size, 1))
    sizes = [int(size) for size in entry]
    if sum(sizes) != length or min(sizes, default=0) < 0:
        raise InputError(
            f"chunks {tuple(sizes)} along axis {axis} add up to {sum(sizes)}, the axis has {length} elements"
            if sum(sizes) != length
            else f"chunks {tuple(sizes)} along axis {axis}: the length of a chunk is not negative"
        )
    filled = [size for size in sizes if size]
    return from_sizes(filled) if filled else (0, 0)


def sizes(layout: Layout) -> tuple[tuple[int, ...], ...]:
    """Lengths of the tiles along each axis: what `.chunks` shows.

    >>> sizes(Layout.regular((10, 6), 4))
    ((4, 4, 2), (4, 2))
    """
    return tuple(tuple(np.diff(edges).tolist()) for edges in layout.boundaries)
