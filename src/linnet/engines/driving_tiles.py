"""Tiles that lie on a cluster: where they are, who will still read them, and how they come back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from linnet.engines.engine import Outputs
from linnet.errors import InputError, JobError
from linnet.planning.workload import Workload
from linnet.programs import BoundProgram, Out
from linnet.programs.shapes import operands
from linnet.tiles import Index, Tile, TiledArray, TileKey

_AT_ONCE = 64
"""Tiles that are brought here together."""
_FETCH = 1 << 26
"""Bytes of results after which they are brought here while the run goes on."""


class Lost(JobError):
    """Something was lost with a worker or a node: an order that was not finished, or tiles."""


class Store(Protocol):
    """Where parcels lie."""

    key: str
    """What tells one cluster from others."""
    names: list[str]
    """Of the nodes, by their numbers; a run may number them otherwise than the one before."""

    def fetch(self, refs: Sequence[Any]) -> list[Any]:
        """The values behind references; `Lost` if one is not there any more."""
        ...

    def release(self, refs: Sequence[Any]) -> None:
        """These values are needed no more."""
        ...


class Parcel:
    """One value on the cluster: a tile, or a list of small ones."""

    __slots__ = ("left", "node", "own", "ref")

    def __init__(self, ref: Any, node: int, left: int, *, own: bool = True) -> None:
        self.ref = ref
        """What the engine calls it by."""
        self.node = node
        """Where it was made or put; -1 where the engine chose."""
        self.left = left
        """How many of its tiles are still needed."""
        self.own = own
        """Whether it belongs to the run, which may let go of it."""


Place = tuple[Parcel, int]
"""A tile on the cluster: its parcel, and its position in it."""


def unpacked(value: Any, position: int) -> Tile:
    """One tile of a value."""
    return value[position] if isinstance(value, list) else value


class RemoteTiles(Mapping[Index, Tile]):
    """Tiles of one array that stay on the cluster; each look at one brings a copy, the caller's own.

    Those that are `filled` with one value take no room and lie nowhere.
    """

    def __init__(
        self, store: Store, places: Mapping[Index, Place], filled: Mapping[Index, Tile] | None = None
    ) -> None:
        self.store = store
        """Where the others lie."""
        self.places = places
        """Where in it each of them is."""
        self.filled = filled or {}
        """The tiles of one value."""
        self.key = store.key
        """What tells the cluster from others."""

    def node(self, index: Index) -> str:
        """The name of the node that a tile was made on; empty if that is not known."""
        number = self.places[index][0].node if index in self.places else -1
        return self.store.names[number] if number >= 0 else ""

    def __getitem__(self, index: Index) -> Tile:
        if index in self.filled:
            return writeable(self.filled[index])
        parcel, position = self.places[index]
        return writeable(unpacked(self.store.fetch([parcel.ref])[0], position))

    def __iter__(self) -> Iterator[Index]:
        yield from self.places
        yield from self.filled

    def __len__(self) -> int:
        return len(self.places) + len(self.filled)

    def items(self) -> Any:
        """All tiles with their indices; they come several at a time."""
        return self._fetched()

    def values(self) -> Any:
        """All tiles; they come several at a time."""
        return (tile for _, tile in self._fetched())

    def _fetched(self) -> Iterator[tuple[Index, Tile]]:
        wanted = list(self.places.items())
        for first in range(0, len(wanted), _AT_ONCE):
            part = wanted[first : first + _AT_ONCE]
            values = self.store.fetch([parcel.ref for _, (parcel, _) in part])
            for (index, (_, position)), value in zip(part, values, strict=True):
                yield index, writeable(unpacked(value, position))
        yield from ((index, writeable(tile)) for index, tile in self.filled.items())

    def __repr__(self) -> str:
        return f"<{len(self)} tiles on {self.key}>"


class RemoteOutputs(Outputs):
    """Outputs of a run on a cluster: `tiles` leaves them there, an array that is asked for comes here."""

    def __getitem__(self, name: str) -> TiledArray:
        if name not in self._arrays:
            tiles = dict(self.tiles(name).items())
            role = self._bound.program.arrays[name]
            fill = role.fill if isinstance(role, Out) else None
            grid = self._bound.grid(name) if tiles else None
            self._arrays[name] = TiledArray.from_tiles(tiles, grid=grid, fill=fill, name=name)
        return self._arrays[name]

    def _with(self, tiles: Mapping[Index, Tile], filled: Mapping[Index, Tile]) -> Mapping[Index, Tile]:
        if not isinstance(tiles, RemoteTiles):
            return super()._with(tiles, filled)
        return RemoteTiles(tiles.store, tiles.places, filled)


class Holdings:
    """The tiles of one run, by number: where each is, how large, and who will still read it."""

    def __init__(
        self,
        work: Workload,
        inputs: Mapping[str, TiledArray],
        out: Mapping[str, TiledArray],
        crew: Store,
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
            part, self._wanted = self._wanted[:_AT_ONCE], self._wanted[_AT_ONCE:]
            places = [place for tile in part if (place := self._places[tile]) is not None]
            values = self._crew.fetch([parcel.ref for parcel, _ in places])
            for tile, (_, position), value in zip(part, places, values, strict=True):
                put_in_place(self._work.key(tile), unpacked(value, position), self._out)
                self._brought.add(tile)
                if not self._readers[tile]:
                    self._drop(tile)

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
        """Forget tiles that lay on nodes which are gone, and those that were spoilt."""
        lost = set(spoilt)
        for tile, place in enumerate(self._places):
            if place is None or not (place[0].node in gone or tile in lost):
                continue
            if not place[0].own:
                raise JobError(
                    f"{self._work.key(tile)} was kept on a node that is gone; compute that array again"
                )
            self._drop(tile)

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


def writeable(tile: Tile) -> Tile:
    """The tile, or a copy of it that may be written to and belongs to nobody else."""
    tile = np.asarray(tile)
    return tile if tile.flags.writeable and tile.flags.owndata else np.array(tile, order="K")


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
    """Refuse inputs with fewer tiles than the program reads."""
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
