"""Results that stay in the store until nobody reads them, or until whoever keeps them is closed.

A job of `ln.submit` keeps its results until it is deleted. An engine has no such job to delete: every run is
one, and is forgotten when it ends. So its results are held from this side: the tiles of an array are deleted
when the last object that reads them is gone, when their keeper is closed, or when the process ends.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from linnet.errors import EngineClosedError, StoreError
from linnet.programs.outputs import Outputs
from linnet.tiles import Index, Layout, Tile, TiledArray
from linnet.workers.host_folders import attached, remove_abandoned
from linnet.workers.results import StoredTiles
from linnet.workers.store import open_store


class Keeper:
    """Keeps results in one store, on behalf of `owner`, whose name is for messages.

    Without a place it makes a directory, which it removes when it is closed or the process ends. That of a
    process that was killed is removed by the next one who makes one.
    """

    def __init__(self, place: str | None, owner: str) -> None:
        self.owner = owner
        """For whom."""
        self._process = os.getpid()
        self._remove_folder: weakref.finalize[..., Keeper] | None = None
        if place is None:
            own = f"linnet-{os.getuid()}-jobs-{os.urandom(8).hex()}"
            folder, alive = attached([Path(tempfile.gettempdir())], own)
            self._remove_folder = weakref.finalize(self, _remove, folder, alive, self._process)
            remove_abandoned(folder)
            place = str(folder / "jobs")
        self.place = place
        """Where jobs whose results are to be kept must be."""
        self._store = open_store(self.place)
        self._holds: weakref.WeakSet[_Hold] = weakref.WeakSet()
        self._left: deque[str] = deque()
        """Keys that the store did not delete; it is asked again the next time."""

    def keep(self, tiles: StoredTiles) -> KeptTiles:
        """The tiles of an output, deleted when the last object made from this one is gone."""
        hold = _Hold(self, tiles)
        self._holds.add(hold)
        return KeptTiles(tiles, hold)

    def delete(self, tiles: StoredTiles) -> None:
        """Delete the tiles of an output; what the store does not delete now is left for the next time."""
        if os.getpid() != self._process:  # a forked process lets go of its copies, not of its parent's tiles
            return
        self._left.extend(tiles.stored_keys())
        with suppress(StoreError):
            self._delete_left()

    def _delete_left(self) -> None:
        keys: list[str] = []
        with suppress(IndexError):  # others may do the same at the same time
            while True:
                keys.append(self._left.popleft())
        try:
            self._store.delete(keys)
        except StoreError:
            self._left.extend(keys)
            raise

    def close(self) -> None:
        """Delete everything that is kept; whoever asks for it afterwards is told so."""
        for hold in list(self._holds):
            hold.release()
        if self._remove_folder is not None:
            self._remove_folder()
            return
        if os.getpid() == self._process:
            self._delete_left()
        self._store.close()

    def __repr__(self) -> str:
        return f"<{len(self._holds)} results of {self.owner} in {self._store.url}>"


def _remove(folder: Path, alive: int, process: int) -> None:
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(alive)


class _Hold:
    """What keeps the tiles of one output in the store: they are deleted when it is gone."""

    def __init__(self, keeper: Keeper, tiles: StoredTiles) -> None:
        self.keeper = keeper
        self._delete = weakref.finalize(self, keeper.delete, tiles)

    @property
    def alive(self) -> bool:
        """Whether the tiles are still there."""
        return self._delete.alive

    def release(self) -> None:
        """Delete them now."""
        self._delete()


class KeptTiles(Mapping[Index, Tile]):
    """The tiles of a result that stays in the store; each look at one brings a copy, the caller's own.

    Those that are `filled` with one value take no room and lie nowhere.
    """

    def __init__(self, stored: StoredTiles, hold: _Hold, filled: Mapping[Index, Tile] | None = None) -> None:
        self.stored = stored
        """Where they lie."""
        self.filled: Mapping[Index, Tile] | dict[Index, Tile] = filled or {}
        """The tiles of one value."""
        self.what = "an array"
        """The array, for messages."""
        self._hold = hold

    @property
    def keeper(self) -> Keeper:
        """Who keeps them."""
        return self._hold.keeper

    def with_filled(self, filled: Mapping[Index, Tile]) -> KeptTiles:
        """The same tiles, and others that have one value."""
        return KeptTiles(self.stored, self._hold, {**self.filled, **filled})

    def __getitem__(self, index: Index) -> Tile:
        if index in self.filled:
            return np.array(self.filled[index], order="F")
        if index in self.stored.tokens and not self._hold.alive:
            raise EngineClosedError(
                f"{self.what} was kept in the store of {self.keeper.owner}, which was closed: its tiles are "
                "gone; make it again, or compute() what is needed later before the session ends"
            )
        return np.array(self.stored[index], order="K")

    def __contains__(self, index: object) -> bool:
        return index in self.stored or index in self.filled  # without reading it

    def __iter__(self) -> Iterator[Index]:
        yield from self.stored
        yield from self.filled

    def __len__(self) -> int:
        return len(self.stored) + len(self.filled)

    def __repr__(self) -> str:
        return f"<{len(self)} tiles in {self.stored.store.url}>"


class KeptOutputs(Outputs):
    """Outputs that may be kept in the store: `tiles` leaves them there, an array asked for comes here."""

    def _with(self, tiles: Mapping[Index, Tile], filled: Mapping[Index, Tile]) -> Mapping[Index, Tile]:
        if isinstance(tiles, KeptTiles):
            return tiles.with_filled(filled)
        return super()._with(tiles, filled)

    def left(self, name: str, layout: Layout, dtype: np.dtype[Any]) -> TiledArray:
        """One array whose tiles stay where they are, and know which array they are of."""
        array = super().left(name, layout, dtype)
        if isinstance(array.tiles, KeptTiles):
            array.tiles.what = f"the array of shape {layout.shape} and dtype {dtype}"
        return array
