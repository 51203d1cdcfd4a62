"""Tiles that are written down as a run goes, so that it can go on from there when it was killed.

From time to time every rank writes down the tiles that it holds and that are still needed; outputs are
written down when they are made. A run is known by its program and by what is in its inputs. When the same run
is started again, on as many ranks or on others, tasks are left out whose results are there or not needed any
more. Tiles are files in a folder, which all ranks must share.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from linnet.engines.mpi.messages import as_bytes, contiguous
from linnet.engines.mpi.share import outputs_of
from linnet.engines.pool import POOL
from linnet.planning.workload import Workload
from linnet.tiles import Tile, TiledArray, TileKey
from linnet.tiles.codec import decoded, encoded
from linnet.workers.stores.directory import DirectoryStore

_LATEST = 3
"""What was needed at so many times is kept: now, and at the two times before."""


@lru_cache(maxsize=8)
def _store(folder: str) -> DirectoryStore:
    return DirectoryStore(folder)


def name_of(program: bytes, inputs: Mapping[str, TiledArray], origins: Mapping[str, list[str]]) -> str:
    """The name of a run: the same for the same program on the same values.

    `origins` names, for inputs that stayed with ranks, the tiles of earlier runs that they are.
    """
    made = xxhash.xxh3_128(program)
    for name, array in sorted(inputs.items()):
        made.update(repr((name, array.layout.boundaries, array.dtype.str, origins.get(name))).encode())
        for index in sorted(array.tiles):
            made.update(as_bytes(contiguous(array.tiles[index])).data)
    return made.hexdigest()


class _Writing(NamedTuple):
    """A tile to be written, or nothing, and what comes after that."""

    key: TileKey | None
    tile: Tile | None
    saved: Callable[[], None]
    failed: Callable[[Exception], None]


class Checkpoint:
    """Tiles of one run that are written down, as one rank sees them; a thread of its own writes them.

    Ranks that hold the same tile write it under names of their own, so that each may delete what it wrote.
    """

    def __init__(self, folder: str, run: str, rank: int) -> None:
        self._store, self._run, self._rank = _store(folder), run, rank
        self._lock = threading.Lock()
        self._names: dict[str, str] | None = None
        self._written: set[TileKey] = set()
        self._needed: deque[set[TileKey]] = deque(maxlen=_LATEST)
        self._waiting: deque[_Writing] = deque()
        self._busy = False

    # ---- reading

    def stored(self, work: Workload) -> NDArray[np.bool_]:
        """Which tiles of a program are there."""
        names = self._there()
        found = np.zeros(work.tiles, bool)
        if names:
            for tile in np.flatnonzero(work.producer >= 0).tolist():
                found[tile] = self._name(work.key(tile)) in names
        return found

    def load(self, key: TileKey) -> Tile:
        """A tile that was written down."""
        name = self._there().get(self._name(key), self._name(key))
        return np.array(decoded(self._store.get(name), name), order="K")

    def _there(self) -> dict[str, str]:
        """Tiles that were there when the run began: their names, and those of their files."""
        with self._lock:
            if self._names is None:
                found = (name for name, _ in self._store.list(f"{self._run}/"))
                self._names = {name.rpartition("=")[0]: name for name in found}
            return self._names

    def _name(self, key: TileKey) -> str:
        return f"{self._run}/{key.array}/{'.'.join(map(str, key.index)) or '-'}"

    def _file(self, key: TileKey) -> str:
        return f"{self._name(key)}={self._rank}"

    # ---- writing

    def save(
        self, key: TileKey, tile: Tile, saved: Callable[[], None], failed: Callable[[Exception], None]
    ) -> None:
        """Write a tile down, unless it was before; then call `saved`, or `failed` if that cannot be."""
        self._queue(_Writing(key, tile, saved, failed))

    def needed(
        self, keys: set[TileKey], saved: Callable[[], None], failed: Callable[[Exception], None]
    ) -> None:
        """All that is needed now was given to be saved: what has not been for some time is deleted.

        When this is called again, all ranks must have written what they were given by then: so there is
        always one time of which all is there.
        """
        self._needed.append(keys)
        if len(self._needed) == _LATEST:
            with self._lock:
                gone = self._written.difference(*self._needed)
                self._written -= gone
            self._store.delete(map(self._file, gone))
        self._queue(_Writing(None, None, saved, failed))

    def _queue(self, writing: _Writing) -> None:
        with self._lock:
            self._waiting.append(writing)
            start, self._busy = not self._busy, True
        if start:
            POOL.start(self._write)

    def _write(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._busy = False
                    return
                key, tile, saved, failed = self._waiting.popleft()
            try:
                if key is not None and tile is not None and key not in self._written:
                    self._store.put(self._file(key), encoded(tile))
                    with self._lock:
                        self._written.add(key)
            except Exception as error:
                failed(error)
            else:
                saved()

    def tidy(self, work: Workload) -> None:
        """The run is over: only its outputs are kept."""
        outputs = {self._name(work.key(tile)) for tile in np.flatnonzero(outputs_of(work)).tolist()}
        names = [name for name, _ in self._store.list(f"{self._run}/")]
        self._store.delete(name for name in names if name.rpartition("=")[0] not in outputs)

    def close(self) -> None:
        """Write nothing more."""
        with self._lock:
            self._waiting.clear()


def forget(folder: str, runs: Iterable[str]) -> None:
    """These runs need not go on any more: delete what was written down of them."""
    store = _store(folder)
    for run in runs:
        store.delete([name for name, _ in store.list(f"{run}/")])
    store.close()
