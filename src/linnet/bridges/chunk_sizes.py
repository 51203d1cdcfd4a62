"""Lengths of chunks as Dask's users write them, with the chunks of a file in mind."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from linnet.arrays.expression import chunking
from linnet.errors import InputError
from linnet.tiles.amounts import amount


def normalized(
    chunks: Any, shape: Any = None, limit: Any = None, dtype: Any = None, previous: Any = None
) -> tuple[tuple[int, ...], ...]:
    """All the lengths that `chunks` stands for.

    Along axes that are left to us ("auto", or an amount such as "64 MB") lengths are multiples of
    those in `previous`, where it has some.

    >>> normalized((2, -1, None), shape=(5, 4, 3))
    ((2, 2, 1), (4,), (3,))
    >>> normalized(("auto", -1), shape=(100_000, 1_000), dtype="f4", previous=(30, 1_000))[0][:2]
    (2070, 2070)
    """
    if shape is None:
        if not all(isinstance(entry, tuple | list) for entry in chunks):
            raise InputError(f"chunks={chunks!r}: without a shape, give the lengths of all chunks")
        shape = tuple(map(sum, chunks))
    kind = np.dtype(float if dtype is None else dtype)
    if isinstance(chunks, Mapping):
        chunks = tuple(chunks.get(axis) for axis in range(len(shape)))
    entries = list(_each(chunks, shape))
    amounts = {entry for entry in entries if isinstance(entry, str) and entry != "auto"}
    if amounts:
        limit = min(amount(each, "chunks") for each in amounts)
        entries = ["auto" if isinstance(entry, str) else entry for entry in entries]
    if "auto" in entries and 0 not in shape:
        entries = _chosen(entries, shape, kind.itemsize, limit or chunking.TARGET, _each(previous, shape))
    return chunking.sizes(chunking.normalized(tuple(entries), tuple(shape), kind))


def _each(chunks: Any, shape: Sequence[int]) -> Sequence[Any]:
    """An entry for each axis."""
    if chunks is None or isinstance(chunks, str) or hasattr(chunks, "__index__"):
        return [chunks] * len(shape)
    if len(shape) == 1 and len(chunks) > 1 and all(hasattr(each, "__index__") for each in chunks):
        return [tuple(chunks)]
    if len(chunks) != len(shape):
        raise InputError(f"chunks={chunks!r} has {len(chunks)} entries for an array of shape {tuple(shape)}")
    return chunks


def _longest(entry: Any, length: int) -> int:
    """The longest chunk an entry means, no longer than the axis."""
    if entry is None or entry == -1 or entry == "auto":
        return length
    longest = int(entry) if hasattr(entry, "__index__") else max(entry, default=1)
    return max(1, min(longest, length))


def _chosen(
    entries: list[Any], shape: Sequence[int], itemsize: int, limit: int, previous: Sequence[Any]
) -> list[Any]:
    """Lengths in place of "auto": stored chunks side by side, along the last axes first."""
    known = [
        entry == "auto" and stored not in (None, "auto", -1)
        for entry, stored in zip(entries, previous, strict=True)
    ]
    if not any(known) and limit == chunking.TARGET:
        return entries
    room = max(1, limit // max(itemsize, 1))
    lengths = [
        (_longest(stored, n) if has else 1) if entry == "auto" else _longest(entry, n)
        for entry, stored, has, n in zip(entries, previous, known, shape, strict=True)
    ]
    for axis in reversed(range(len(shape))):
        if entries[axis] == "auto":
            others = math.prod(lengths) // lengths[axis]
            times = max(1, room // (others * lengths[axis]))
            lengths[axis] = min(shape[axis], lengths[axis] * times)
    return [length if entry == "auto" else entry for entry, length in zip(entries, lengths, strict=True)]


def grouped(groups: Sequence[int], longest: int) -> tuple[int, ...]:
    """Lengths of tiles for groups that must not be cut: as many side by side as `longest` allows.

    >>> grouped([3, 2, 4, 9, 1], longest=6)
    (5, 4, 9, 1)
    """
    lengths: list[int] = []
    for size in groups:
        if lengths and lengths[-1] + size <= longest:
            lengths[-1] += size
        elif size:
            lengths.append(size)
    return tuple(lengths)
