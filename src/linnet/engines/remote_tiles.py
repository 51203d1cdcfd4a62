"""Arrays whose tiles stay on a cluster: they come when somebody looks, and go when the engine is closed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from linnet.engines.engine import Outputs
from linnet.engines.lifetime import Lifetime
from linnet.errors import EngineClosedError, JobError
from linnet.programs.grammar import fill_of
from linnet.tiles import Index, Layout, Tile, TiledArray

_AT_ONCE = 64
"""Tiles that are brought here together."""
_TIMES = 3
"""How often an array may lose tiles with nodes before one gives up."""


class Lost(JobError):
    """Something was lost with a worker or a node: an order that was not finished, or tiles."""


class Run(Protocol):
    """A run that can be made again."""

    def outputs(self) -> Outputs:
        """What it gives; a JobError that says why, if it cannot be made again."""
        ...


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
        self.ref: Any = ref
        """What the engine calls it by."""
        self.node: int = node
        """Where it was made or put; -1 where the engine chose."""
        self.left: int = left
        """How many of its tiles are still needed."""
        self.own: bool = own
        """Whether it belongs to the run, which may let go of it."""


Place = tuple[Parcel, int]
"""A tile on the cluster: its parcel, and its position in it."""


_NOWHERE: Place = Parcel(None, -1, 0, own=False), 0
"""The place of a tile that is gone."""


def unpacked(value: Any, position: int) -> Tile:
    """One tile of a value."""
    return value[position] if isinstance(value, list) else value


class RemoteTiles(Mapping[Index, Tile]):
    """Tiles of one array that stay on the cluster; each look at one brings a copy, the caller's own.

    Those that are `filled` with one value take no room and lie nowhere. When the engine that keeps the
    others is closed, all are gone.
    """

    def __init__(
        self,
        store: Store,
        places: Mapping[Index, Place],
        filled: Mapping[Index, Tile] | None = None,
        *,
        life: Lifetime | None = None,
        what: str = "an array",
    ) -> None:
        self.store = store
        """Where the others lie."""
        self.places = places
        """Where in it each of them is."""
        self.filled: Mapping[Index, Tile] | dict[Index, Tile] = filled or {}
        """The tiles of one value."""
        self.key: str = store.key
        """What tells the cluster from others."""
        self.life: Lifetime = Lifetime() if life is None else life
        """Of the engine that keeps them."""
        self.what = what
        """The array, for messages."""
        self.origin: tuple[Any, str] | None = None
        """The run that made them (an `Origin`), and what it calls them; None: that is not known."""
        self.life.keep(self)

    def check(self) -> None:
        """Refuse to go on if the engine that kept the tiles was closed."""
        if self.life.is_over():
            raise EngineClosedError(
                f"{self.what} was kept on {self.life.ended}, which was closed: its tiles are gone; make it "
                "again, or compute() what is needed later before the session ends"
            )

    def let_go(self) -> None:
        """The engine was closed: have the cluster free what nobody can ask for any more."""
        self.places = dict.fromkeys(self.places, _NOWHERE)

    def make_again(self) -> None:
        """Tiles were lost with their node: make all of them again, in a run of what made them."""
        try:
            if self.origin is None:
                raise JobError("how it was made is not known")
            run, name = self.origin
            made = run.outputs().tiles(name)
        except JobError as error:
            raise JobError(
                f"tiles of {self.what}, which was persisted, lay on a node that is gone, and cannot be made "
                f"again: {error}. Persist it again, from the expression it came from; compute() what must "
                "outlive a node"
            ) from error
        self.store: Store = made.store
        self.places: Mapping[Index, Place] = made.places

    def _brought(self, indices: Sequence[Index]) -> list[Tile]:
        """Tiles that lie on the cluster; they are made again if they were lost."""
        for _ in range(_TIMES):
            places = [self.places[index] for index in indices]
            try:
                values = self.store.fetch([parcel.ref for parcel, _ in places])
            except Lost:
                self.make_again()
                continue
            return [writeable(unpacked(v, place)) for v, (_, place) in zip(values, places, strict=True)]
        raise JobError(f"tiles of {self.what} were lost {_TIMES} times with their nodes")

    def node(self, index: Index) -> str:
        """The name of the node that a tile was made on; empty if that is not known."""
        number = self.places[index][0].node if index in self.places else -1
        return self.store.names[number] if number >= 0 else ""

    def __getitem__(self, index: Index) -> Tile:
        self.check()
        if index in self.filled:
            return writeable(self.filled[index])
        return self._brought([index])[0]

    def __contains__(self, index: object) -> bool:
        return index in self.places or index in self.filled  # without fetching it

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
        self.check()
        wanted = list(self.places)
        for first in range(0, len(wanted), _AT_ONCE):
            part = wanted[first : first + _AT_ONCE]
            yield from zip(part, self._brought(part), strict=True)
        yield from ((index, writeable(tile)) for index, tile in self.filled.items())

    def __repr__(self) -> str:
        return f"<{len(self)} tiles on {self.key}>"


class RemoteOutputs(Outputs):
    """Outputs of a run on a cluster: `tiles` leaves them there, an array that is asked for comes here."""

    def __getitem__(self, name: str) -> TiledArray:
        if name not in self._arrays:
            tiles = dict(self.tiles(name).items())
            role = self._bound.program.arrays[name]
            grid = self._bound.grid(name) if tiles else None
            self._arrays[name] = TiledArray.from_tiles(tiles, grid=grid, fill=fill_of(role), name=name)
        return self._arrays[name]

    def _with(self, tiles: Mapping[Index, Tile], filled: Mapping[Index, Tile]) -> Mapping[Index, Tile]:
        if not isinstance(tiles, RemoteTiles):
            return super()._with(tiles, filled)
        made = RemoteTiles(tiles.store, tiles.places, filled, life=tiles.life, what=tiles.what)
        made.origin = tiles.origin
        return made

    def left(self, name: str, layout: Layout, dtype: np.dtype[Any]) -> TiledArray:
        """One array whose tiles stay where they are, and know which array they are of."""
        array = super().left(name, layout, dtype)
        if isinstance(array.tiles, RemoteTiles):
            array.tiles.what = f"the array of shape {layout.shape} and dtype {dtype}"
        return array

    def kept_by(self, life: Lifetime, origin: Run | None = None) -> RemoteOutputs:
        """The same; what stays on the cluster is gone when this engine is closed, and came from this run."""
        for name, tiles in self._written.items():
            if isinstance(tiles, RemoteTiles):
                tiles.life = life
                tiles.origin = None if origin is None else (origin, name)
                life.keep(tiles)
        return self


def writeable(tile: Tile) -> Tile:
    """The tile, or a copy of it that may be written to and belongs to nobody else."""
    tile = np.asarray(tile)
    return tile if tile.flags.writeable and tile.flags.owndata else np.array(tile, order="K")
