"""Who writes each tile of an array: the join at the heart of enumeration."""

from __future__ import annotations

from typing import Any

import numpy as np

from linnet.programs.expressions import IntArray
from linnet.programs.statements import Access, Statement
from linnet.records import record

_DENSE = 1 << 22
"""A table of this many tiles is made without asking how many of them are used."""


@record
class Part:
    """The tiles that one access writes."""

    statement: Statement
    access: Access
    rows: IntArray
    """Row of the statement's table that each write belongs to."""
    tasks: IntArray
    """Number of the task of each write."""
    index: list[IntArray]


class Written:
    """Who writes each tile of one array."""

    def __init__(self, array: str, parts: list[Part]) -> None:
        self.array = array
        self.parts = parts
        self.table: IntArray = np.empty(0, np.int64)
        self.sorted: IntArray | None = None
        self.twice: tuple[int, int] | None = None
        """Places of two writes of the same tile."""
        self.empty: bool = not sum(len(p.tasks) for p in parts)
        if self.empty:
            return
        axes = range(len(parts[0].index))
        joined = [np.concatenate([p.index[k] for p in parts]) for k in axes]
        task = np.concatenate([p.tasks for p in parts])
        self.low: list[int] = [int(c.min()) for c in joined]
        self.high: list[int] = [int(c.max()) for c in joined]
        self.extent: list[int] = [h - low + 1 for low, h in zip(self.low, self.high, strict=True)]
        volume = 1
        for extent in self.extent:
            volume *= extent
        if volume >= 2**62:
            raise OverflowError(
                f"array {array!r} spans {volume:.1e} tiles, more than can be numbered; use denser indices"
            )
        keys = self.keys(joined)
        if volume <= max(_DENSE, 16 * len(task)):
            self.table = np.full(volume, -1, dtype=task.dtype)
            self.table[keys] = task
            if np.count_nonzero(self.table >= 0) != len(keys):
                self.twice = _repeated(keys)
            self.sorted = None
        else:
            order = np.argsort(keys, kind="stable")
            self.table, self.sorted = task[order], keys[order]
            self.twice = _repeated(keys)

    def part(self, place: int) -> tuple[Part, int]:
        """The access that made a write, and which of its writes it is."""
        for part in self.parts:
            if place < len(part.tasks):
                return part, place
            place -= len(part.tasks)
        raise IndexError(place)

    @staticmethod
    def nobody(number: Any) -> IntArray:
        """An empty column of task numbers."""
        return np.zeros(0, dtype=np.int64).astype(number)

    def keys(self, columns: list[IntArray]) -> IntArray:
        key = columns[0] - self.low[0]
        for column, low, extent in zip(columns[1:], self.low[1:], self.extent[1:], strict=True):
            key = key * extent + (column - low)
        return key

    def find(self, index: list[IntArray]) -> IntArray:
        """The number of the task that writes each tile, or -1."""
        count = len(index[0]) if index else 0
        if self.empty:
            return np.full(count, -1, dtype=np.int64)
        inside = np.ones(count, dtype=bool)
        for column, low, high in zip(index, self.low, self.high, strict=True):
            inside &= (column >= low) & (column <= high)
        everywhere = bool(inside.all())
        keys = self.keys(index if everywhere else [c[inside] for c in index])
        if self.sorted is None:
            writer = self.table[keys]
        else:
            place = np.minimum(np.searchsorted(self.sorted, keys), len(self.sorted) - 1)
            writer = np.where(self.sorted[place] == keys, self.table[place], -1)
        if everywhere:
            return writer
        there = np.full(count, -1, dtype=self.table.dtype)
        there[inside] = writer
        return there


def _repeated(keys: IntArray) -> tuple[int, int] | None:
    """Places of two equal keys, or None."""
    order = np.argsort(keys, kind="stable")
    same = np.flatnonzero(np.diff(keys[order]) == 0)
    return (int(order[same[0]]), int(order[same[0] + 1])) if len(same) else None
