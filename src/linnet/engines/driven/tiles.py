"""The tiles of one run on a cluster: where they are, and who will still read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from linnet.engines.remote_tiles import Lost, Parcel, Place, RemoteTiles, Store, unpacked
from linnet.errors import InputError
from linnet.planning.workload import Workload
from linnet.programs import BoundProgram, Out
from linnet.programs.shapes import operands
from linnet.tiles import Index, Tile, TiledArray, TileKey

_AT_ONCE = 64
"""Tiles that are brought here together."""
_FETCH = 1 << 26
"""Bytes of results after which they are brought here while the run goes on."""


class LostKept(Lost):
    """Tiles were lost that an earlier run had kept: `arrays` are the inputs they belong to."""

    def __init__(self, arrays: set[str]) -> None:
        super().__init__(f"tiles of {', '.join(sorted(arrays))} were lost with a node")
        self.arrays = arrays


class Cluster(Store, Protocol):
    """Where parcels lie that may be lost."""

    def there(self, refs: Sequence[Any]) -> list[bool]:
        """Whether the values behind references are on some node that is there."""
        ...


class Holdings:
    """The tiles of one run, by number: where each is, how large, and who will still read it."""

    def __init__(
        self,
        work: Workload,
        inputs: Mapping[str, TiledArray],
        out: Mapping[str, TiledArray],
        crew: Cluster,
    ) -> None:
        self._work, self._inputs, self._out, self._crew = work, inputs, out, crew
        self._places: list[Place | None] = [None] * work.tiles
        self._readers: list[int] = np.diff(work.reader_start).tolist()
        """Of each tile, the tasks that read it and have not finished."""
        self._bytes: list[int] = work.tile_bytes.tolist()
        self._temporary: list[bool] = (~work.kept).tolist()
        self._wanted: list[int] = []
        """Results that are finished and shall come here."""
        self._brought: set[int] = set()
        """Results that came."""
        for tile in np.flatnonzero(work.producer < 0).tolist():
            key = work.key(tile)
            tiles = inputs[key.array].tiles
            if isinstance(tiles, RemoteTiles) and tiles.key == crew.key and key.index in tiles.places:
                parcel, position = tiles.places[key.index]
                name = tiles.node(key.index)
                node = crew.names.index(name) if name in crew.names else -1
                self._places[tile] = Parcel(parcel.ref, node, 0, own=False), position

    # ---- what is known of a tile

    def there(self, tile: int) -> bool:
        """Whether it is on the cluster, or will be when the order that makes it ends."""
        return self._places[tile] is not None

    def available(self, tile: int) -> bool:
        """Whether a task that reads it can be sent."""
        return self._places[tile] is not None or self._work.producer[tile] < 0

    def elsewhere(self, tile: int, node: int) -> bool:
        """Whether it has to come from another node."""
        place = self._places[tile]
        return place is not None and place[0].node not in (node, -1)

    def size(self, tile: int) -> int:
        """Bytes: measured, or expected."""
        return self._bytes[tile]

    def somewhere(self, tile: int) -> bool:
        """Whether it is not known on which node it is."""
        place = self._places[tile]
        return place is not None and place[0].node < 0

    def measured(self, tile: int, size: int, node: int) -> None:
        """A tile was made on a node, and has so many bytes."""
        self._bytes[tile] = size
        place = self._places[tile]
        if place is not None:
            place[0].node = node

    def last_reader(self, tile: int) -> bool:
        """Whether only one task is left that reads this tile, which then is gone."""
        return self._temporary[tile] and self._readers[tile] == 1

    def given(self, tile: int) -> Tile:
        """An input, as the caller gave it."""
        key = self._work.key(tile)
        return self._inputs[key.array].tile(key.index)

    def inputs_by_use(self, order: NDArray[Any]) -> list[int]:
        """Inputs that are not on the cluster, in the order in which tasks read them."""
        work, found = self._work, dict[int, None]()
        for task in order.tolist():
            for tile in work.reads(task).tolist():
                if work.producer[tile] < 0 and self._places[tile] is None:
                    found[tile] = None
        return list(found)

    def outliving(self, made: list[int], tasks: list[int]) -> list[int]:
        """Of the tiles that an order makes, those that are needed when it has ended."""
        own = Counter(tile for task in tasks for tile in self._work.reads(task).tolist())
        return [tile for tile in made if not self._temporary[tile] or self._readers[tile] > own[tile]]

    def gathered(self, tiles: list[int]) -> tuple[list[Parcel], tuple[tuple[tuple[int, TileKey], ...], ...]]:
        """The parcels that tiles are in, and which tiles of each are meant, under their keys."""
        found: dict[int, tuple[Parcel, list[tuple[int, TileKey]]]] = {}
        for tile in tiles:
            place = self._places[tile]
            assert place is not None
            parcel, position = place
            found.setdefault(id(parcel), (parcel, []))[1].append((position, self._work.key(tile)))
        return [parcel for parcel, _ in found.values()], tuple(tuple(keys) for _, keys in found.values())

    # ---- what changes

    def hold(self, parcel: Parcel, tiles: list[int]) -> None:
        """Tiles are in this parcel, one after another."""
        for position, tile in enumerate(tiles):
            self._places[tile] = parcel, position

    def read(self, tasks: list[int]) -> list[int]:
        """Tasks have finished: let go of what nobody else will read. Returns those tiles."""
        dropped: list[int] = []
        for task in tasks:
            for tile in self._work.reads(task).tolist():
                self._readers[tile] -= 1
                if not self._readers[tile] and self._disposable(tile):
                    dropped.append(tile)
                    self._drop(tile)
        return dropped

    def _disposable(self, tile: int) -> bool:
        return self._temporary[tile] or self._work.producer[tile] < 0 or tile in self._brought

    def written(self, tasks: list[int]) -> None:
        """Tasks have finished: results with a place shall come there."""
        work = self._work
        for task in tasks:
            for tile in work.writes(task).tolist():
                if not self._temporary[tile] and work.names[work.tile_array[tile]] in self._out:
                    self._wanted.append(tile)

    def bring(self, *, everything: bool = False) -> None:
        """Copy results to their places, if there are enough of them to be worth it."""
        if not everything and sum(self._bytes[tile] for tile in self._wanted) < _FETCH:
            return
        while self._wanted:
            part = self._wanted[:_AT_ONCE]
            places = [place for tile in part if (place := self._places[tile]) is not None]
            values = self._crew.fetch([parcel.ref for parcel, _ in places])
            del self._wanted[:_AT_ONCE]  # not before they have come: others of them may be lost
            for tile, (_, position), value in zip(part, places, values, strict=True):
                put_in_place(self._work.key(tile), unpacked(value, position), self._out)
                self._brought.add(tile)
                if not self._readers[tile]:
                    self._drop(tile)

    def absent(self) -> list[int]:
        """Results that shall come here, and are not on the cluster any more."""
        places = {tile: place for tile in self._wanted if (place := self._places[tile]) is not None}
        there = self._crew.there([parcel.ref for parcel, _ in places.values()])
        return [tile for tile, found in zip(places, there, strict=True) if not found]

    def _drop(self, tile: int) -> None:
        place = self._places[tile]
        self._places[tile] = None
        if place is not None and place[0].own:
            parcel = place[0]
            parcel.left -= 1
            if not parcel.left:
                self._crew.release([parcel.ref])

    def results(self) -> dict[str, Mapping[Index, Tile]]:
        """The `Out` arrays: those with places are there, others stay on the cluster."""
        work = self._work
        roles = work.bound.program.arrays
        found: dict[str, Mapping[Index, Tile]] = {}
        for name, role in roles.items():
            if not isinstance(role, Out):
                continue
            places: dict[Index, Place] = {}
            written: dict[Index, Tile] = {}
            for tile in self._tiles_of(name):
                key, place = work.key(tile), self._places[tile]
                if name in self._out:
                    written[key.index] = self._out[name].tiles[key.index]
                elif place is not None:
                    places[key.index] = place
            found[name] = written if name in self._out else RemoteTiles(self._crew, places)
        return found

    def _tiles_of(self, name: str) -> list[int]:
        if name not in self._work.names:
            return []
        return np.flatnonzero(self._work.tile_array == self._work.names.index(name)).tolist()

    # ---- losses

    def lose(self, gone: set[int], spoilt: list[int]) -> None:
        """Forget tiles that lay on nodes which are gone, and those that were spoilt.

        What an earlier run kept may be elsewhere too; if it is not, this run cannot go on.
        """
        lost = set(spoilt)
        kept: dict[int, Any] = {}
        for tile, place in enumerate(self._places):
            if place is None or not (place[0].node in gone or tile in lost):
                continue
            if place[0].own:
                self._drop(tile)
            else:
                kept[tile] = place[0].ref
        there = self._crew.there(list(kept.values()))
        absent = [tile for tile, found in zip(kept, there, strict=True) if not found]
        if absent:
            raise LostKept({self._work.key(tile).array for tile in absent})

    def to_do_again(self, finished: NDArray[np.bool_]) -> NDArray[Any]:
        """Tasks to be done, from what is there: unfinished ones, and those whose results were lost."""
        work = self._work
        for tile, place in enumerate(self._places):  # what unfinished tasks would have made is not there
            if place is not None and work.producer[tile] >= 0 and not finished[work.producer[tile]]:
                self._drop(tile)
        wanted = ~finished
        pending = np.flatnonzero(wanted).tolist()
        for tile in np.flatnonzero(work.kept & (work.producer >= 0)).tolist():
            self._want(tile, wanted, pending)
        while pending:
            for tile in work.reads(pending.pop()).tolist():
                self._want(tile, wanted, pending)
        counts = np.zeros(work.tiles, np.int64)
        tasks = np.flatnonzero(wanted)
        for task in tasks.tolist():
            counts[work.reads(task)] += 1
        self._readers = counts.tolist()
        for tile in np.flatnonzero(counts == 0).tolist():
            if self._places[tile] is not None and self._disposable(tile):
                self._drop(tile)
        self._wanted = [tile for tile in self._wanted if self._places[tile] is not None]
        return tasks

    def _want(self, tile: int, wanted: NDArray[np.bool_], pending: list[int]) -> None:
        """See that a tile is there, or will be made."""
        maker = int(self._work.producer[tile])
        needed = self._places[tile] is None and maker >= 0 and tile not in self._brought
        if needed and not wanted[maker]:
            wanted[maker] = True
            pending.append(maker)


def put_in_place(key: TileKey, tile: Tile, out: Mapping[str, TiledArray]) -> None:
    """Copy a result to where the caller wants it."""
    place = out[key.array].tiles.get(key.index)
    if place is None or place.shape != tile.shape:
        expected = "no tile is" if place is None else f"a tile of shape {place.shape} is"
        raise InputError(
            f"{key} was written with shape {tile.shape}, but in the array given for {key.array} "
            f"{expected} there; give one that is cut as the result is"
        )
    np.copyto(place, tile, casting="same_kind")


def check_reach(bound: BoundProgram, inputs: Mapping[str, TiledArray]) -> None:
    """Refuse inputs with fewer tiles than the program reads, or with tiles that are gone."""
    for array in inputs.values():
        if isinstance(array.tiles, RemoteTiles):
            array.tiles.check()
    short = {
        name: array.grid
        for name, array in inputs.items()
        if any(read > given for read, given in zip(bound.grid(name), array.grid, strict=False))
    }
    if not short:
        return
    for task in bound.tasks():
        for key in operands(bound.call(task).args):
            grid = short.get(key.array)
            if grid is not None and any(i >= n for i, n in zip(key.index, grid, strict=False)):
                shown = "×".join(map(str, grid))
                raise InputError(
                    f"{key} is read, but {key.array} was given as {shown} tiles; bind the program to the "
                    f"size of that grid, or cut {key.array} otherwise\n  in {bound.where(task)}"
                )
