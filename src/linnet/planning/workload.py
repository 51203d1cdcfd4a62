"""A bound program as a plan sees it: tasks, the tiles they read and write, and what both cost.

Everything is a NumPy array over tasks (numbered as in `task_arrays()`) or over tiles (numbered array by
array), so that policies can look at a million tasks in seconds. Shapes, dtypes and operations are what
kernels declare; they are asked once for each kind of call, not for each task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linnet.planning.declared import Declarations
from linnet.planning.schedule import MANY_TASKS, in_order
from linnet.programs import BoundProgram, In, Out
from linnet.programs.enumeration import Enumerator, TaskArrays
from linnet.programs.statements import Access, Statement
from linnet.records import record
from linnet.tiles import Index, TiledArray, TileKey

Numbers = NDArray[np.int64]


SMALL = 1 << 16
"""Bytes of the largest input that goes along: less than a message costs besides."""


@record(eq=False)
class Workload:
    """Tasks and tiles of a bound program.

    >>> from linnet.programs import TileProgram
    >>> twice = TileProgram.from_source('''
    ... def twice(A: In, B: Out, N: int):
    ...     for i in range(N):
    ...         B[i] = add(A[i], A[i])
    ... ''')
    >>> a = TiledArray.from_numpy(np.zeros(10), tile=4)
    >>> work = Workload.of(twice.bind(N=3), {"A": a})
    >>> work.count, work.tiles, work.key(5)
    (3, 6, B[2])
    >>> work.tile_bytes.tolist()
    [32, 32, 16, 32, 32, 16]
    """

    bound: BoundProgram
    tasks: TaskArrays
    """Tasks, and which waits for which."""
    statement: NDArray[np.int32]
    """Of each task."""
    flops: NDArray[np.float64]
    """Operations of each task; where its kernel declares none, the elements it reads and writes."""
    read_start: Numbers
    """Tiles that task t reads are `read[read_start[t]:read_start[t + 1]]`, each once."""
    read: NDArray[np.int32]
    write_start: Numbers
    """Tiles that task t writes are `write[write_start[t]:write_start[t + 1]]`."""
    write: NDArray[np.int32]
    producer: NDArray[np.int32]
    """Of each tile, the task that writes it; -1 for an input."""
    reader_start: Numbers
    """Tasks that read tile k are `reader[reader_start[k]:reader_start[k + 1]]`."""
    reader: NDArray[np.int32]
    names: tuple[str, ...]
    """The arrays, in the order of their tiles."""
    tile_array: NDArray[np.int32]
    """Of each tile, the number of its array in `names`."""
    tile_index: tuple[Numbers, ...]
    """Of each array, the indices of its tiles, one row a tile."""
    first: tuple[int, ...]
    """Of each array, the number of its first tile."""
    tile_items: Numbers
    tile_bytes: Numbers
    kept: NDArray[np.bool_]
    """Tiles of inputs and outputs: they are there when the program is over."""
    given_homes: NDArray[np.int32]
    """The node where an input lies already; -1 where a plan is free to choose."""
    order: Numbers
    """Tasks, each after those it waits for, as `schedule.in_order` has it; where kernels bring tiles from
    elsewhere (`streams`), what is started is finished first."""
    along: NDArray[np.bool_]
    """Small inputs of one tile (numbers, seeds, short vectors): they go along with whoever needs them."""

    @property
    def count(self) -> int:
        """How many tasks there are."""
        return len(self.statement)

    @property
    def tiles(self) -> int:
        """How many tiles there are."""
        return len(self.producer)

    def key(self, tile: int) -> TileKey:
        """A tile by its number."""
        array = int(self.tile_array[tile])
        return TileKey(self.names[array], tuple(self.tile_index[array][tile - self.first[array]].tolist()))

    def reads(self, task: int) -> NDArray[np.int32]:
        """Tiles that a task reads."""
        return self.read[self.read_start[task] : self.read_start[task + 1]]

    def writes(self, task: int) -> NDArray[np.int32]:
        """Tiles that a task writes."""
        return self.write[self.write_start[task] : self.write_start[task + 1]]

    def lean(self) -> Workload:
        """The same without reading what goes along: what remains has a place, and may have to move."""
        if not self.along.any():
            return self
        stays = ~self.along[self.read]
        reader_stays = np.repeat(~self.along, np.diff(self.reader_start))
        tasks = np.repeat(np.arange(self.count), np.diff(self.read_start))
        tiles = np.repeat(np.arange(self.tiles), np.diff(self.reader_start))
        return replace(
            self,
            read_start=_starts(tasks[stays], self.count),
            read=self.read[stays],
            reader_start=_starts(tiles[reader_stays], self.tiles),
            reader=self.reader[reader_stays],
        )

    @classmethod
    def of(
        cls,
        bound: BoundProgram,
        inputs: Mapping[str, TiledArray],
        homes: Mapping[TileKey, int] | None = None,
    ) -> Workload:
        """The workload of a program on inputs cut as these are; `homes` says which lie on a node already."""
        return _Builder(bound, inputs, homes or {}).workload()


class _Numbered(NamedTuple):
    """The tiles of one array, numbered."""

    first: int
    low: list[int]
    extent: list[int]
    keys: Numbers
    """Sorted; a tile's place here is its number, from the first."""
    indices: Numbers
    """One row a tile."""

    def find(self, columns: Sequence[Numbers]) -> Numbers:
        """Numbers of tiles, or -1 where there is none."""
        inside = np.ones(len(columns[0]), bool)
        key = np.zeros(len(columns[0]), np.int64)
        for column, low, extent in zip(columns, self.low, self.extent, strict=True):
            inside &= (column >= low) & (column < low + extent)
            key = key * extent + (column - low)
        place = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
        return np.where(inside & (self.keys[place] == key), place + self.first, -1)


def _numbered(first: int, parts: Sequence[Sequence[Numbers]], axes: int) -> _Numbered:
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    low = [int(column.min()) for column in columns]
    extent = [int(column.max()) - least + 1 for column, least in zip(columns, low, strict=True)]
    key = np.zeros(len(columns[0]), np.int64)
    for column, least, size in zip(columns, low, extent, strict=True):
        key = key * size + (column - least)
    keys, place = np.unique(key, return_index=True)
    # An array without axes has one tile, which the enumeration keeps at 0.
    indices = np.column_stack([column[place] for column in columns])[:, :axes]
    return _Numbered(first, low, extent, keys, indices)


class _Pairs:
    """Tasks and tiles that belong together, collected statement by statement."""

    def __init__(self) -> None:
        self._tasks: list[Numbers] = []
        self._tiles: list[Numbers] = []

    def add(self, tasks: Numbers, tiles: Numbers) -> None:
        self._tasks.append(tasks)
        self._tiles.append(tiles)

    def rows(self, count: int) -> tuple[Numbers, Numbers]:
        """Tiles of each task as compressed rows, in the order they were added."""
        tasks, tiles = _joined(self._tasks), _joined(self._tiles)
        order = np.argsort(tasks, kind="stable")
        return _starts(tasks, count), tiles[order]


def _joined(parts: list[Numbers]) -> Numbers:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _starts(rows: Numbers, count: int) -> Numbers:
    return np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=count))])


class _Builder:
    """Makes a workload."""

    def __init__(
        self, bound: BoundProgram, inputs: Mapping[str, TiledArray], homes: Mapping[TileKey, int]
    ) -> None:
        self._bound, self._inputs, self._homes = bound, inputs, homes
        self._enumerator: Enumerator = bound.enumerator()
        self._statements = bound.program.statements
        self._columns = self._enumerator.listed()
        counts = [len(columns[""]) for columns in self._columns]
        self._offsets = np.cumsum([0, *counts])
        self._arrays: dict[str, _Numbered] = {}

    def workload(self) -> Workload:
        bound, count = self._bound, int(self._offsets[-1])
        self._number()
        write_start, write = self._pairs("writes").rows(count)
        operand_start, operand = self._pairs("reads").rows(count)
        tiles = self.count
        tasks = self._enumerator.arrays(self._columns)
        statement = np.repeat(np.arange(len(self._statements), dtype=np.int32), np.diff(self._offsets))
        order = in_order(tasks, sparing=bound.program.streams)
        declared = Declarations(bound, self._inputs, self)
        flops = declared.flops(tasks, order, (operand_start, operand), (write_start, write))
        if not bound.program.streams and count <= MANY_TASKS:
            written = np.concatenate([[0], np.cumsum(declared.bytes[write])])
            order = in_order(tasks, sizes=written[write_start[1:]] - written[write_start[:-1]])
        producer = np.full(tiles, -1, np.int32)
        producer[write] = np.repeat(np.arange(count, dtype=np.int32), np.diff(write_start))
        # A tile that a task names twice is read once.
        codes = distinct(np.repeat(np.arange(count), np.diff(operand_start)) * max(tiles, 1) + operand)
        readers, read = codes // max(tiles, 1), codes % max(tiles, 1)
        by_tile = np.argsort(read, kind="stable")
        homes = self._given_homes(tiles)
        return Workload(
            bound=bound,
            tasks=tasks,
            statement=statement,
            flops=flops,
            read_start=_starts(readers, count),
            read=read.astype(np.int32),
            write_start=write_start,
            write=write.astype(np.int32),
            producer=producer,
            reader_start=_starts(read, tiles),
            reader=readers[by_tile].astype(np.int32),
            names=tuple(self._arrays),
            tile_array=self._arrays_of_tiles(tiles),
            tile_index=tuple(array.indices for array in self._arrays.values()),
            first=tuple(array.first for array in self._arrays.values()),
            tile_items=declared.items,
            tile_bytes=declared.bytes,
            kept=self._kept(tiles),
            given_homes=homes,
            order=order,
            along=self._along(declared.bytes, homes),
        )

    @property
    def count(self) -> int:
        """How many tiles there are."""
        return sum(len(array.keys) for array in self._arrays.values())

    def key(self, tile: int) -> TileKey:
        """A tile by its number."""
        for name, array in self._arrays.items():
            if tile < array.first + len(array.keys):
                return TileKey(name, self._index(name, tile - array.first))
        raise IndexError(tile)

    def numbered(self, array: str) -> tuple[int, Numbers]:
        """The number of the first tile of an array, and the indices of all of them, one row a tile."""
        known = self._arrays.get(array)
        return (0, np.zeros((0, 0), np.int64)) if known is None else (known.first, known.indices)

    def _index(self, array: str, place: int) -> Index:
        return tuple(self._arrays[array].indices[place].tolist())

    def _number(self) -> None:
        """Number tiles: of inputs those that are read, of other arrays those that are written."""
        first = 0
        for name, role in self._bound.program.arrays.items():
            kind = "reads" if isinstance(role, In) else "writes"
            accesses = [
                (self._columns[statement.number], access)
                for statement in self._statements
                for access in _accesses(statement, kind)
                if access.array == name
            ]
            parts = [self._enumerator.tiles(columns, access)[1] for columns, access in accesses]
            parts = [part for part in parts if len(part[0])]
            if parts:
                self._arrays[name] = _numbered(first, parts, len(accesses[0][1].index))
                first += len(self._arrays[name].keys)

    def _pairs(self, kind: str) -> _Pairs:
        """Which tasks read or write which tiles; tiles that nobody writes are made where they are read."""
        pairs = _Pairs()
        for statement in self._statements:
            columns = self._columns[statement.number]
            for access in _accesses(statement, kind):
                if access.array not in self._arrays or not len(columns[""]):
                    continue
                rows, index = self._enumerator.tiles(columns, access)
                tiles = self._arrays[access.array].find(index)
                rows = np.arange(len(columns[""])) if rows is None else rows
                pairs.add(rows[tiles >= 0] + self._offsets[statement.number], tiles[tiles >= 0])
        return pairs

    def _arrays_of_tiles(self, tiles: int) -> NDArray[np.int32]:
        lengths = [len(array.keys) for array in self._arrays.values()]
        assert sum(lengths) == tiles
        return np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)

    def _kept(self, tiles: int) -> NDArray[np.bool_]:
        roles = self._bound.program.arrays
        stays = np.array([isinstance(roles[name], In | Out) for name in self._arrays], bool)
        return stays[self._arrays_of_tiles(tiles)] if tiles else np.zeros(0, bool)

    def _along(self, sizes: Numbers, homes: NDArray[np.int32]) -> NDArray[np.bool_]:
        along = np.zeros(len(sizes), bool)
        for name, array in self._arrays.items():
            if name in self._inputs and len(array.keys) == 1:
                along[array.first] = sizes[array.first] <= SMALL and homes[array.first] < 0
        return along

    def _given_homes(self, tiles: int) -> NDArray[np.int32]:
        homes = np.full(tiles, -1, np.int32)
        for key, node in self._homes.items():
            if key.array in self._arrays:
                columns = [np.array([i]) for i in key.index or (0,)]
                tile = int(self._arrays[key.array].find(columns)[0])
                if tile >= 0:
                    homes[tile] = node
        return homes


def distinct(codes: Numbers) -> Numbers:
    """Each number once, sorted. (`np.unique` hashes them, which takes several times as long.)"""
    codes = np.sort(codes)
    return codes[np.flatnonzero(np.diff(codes, prepend=-1))]


def _accesses(statement: Statement, kind: str) -> tuple[Access, ...]:
    accesses: Any = getattr(statement, kind)
    return accesses
