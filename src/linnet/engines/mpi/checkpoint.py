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


def tile_name(run: str, key: TileKey) -> str:
    """Where a tile of a run is stored."""
    return f"{run}/{key.array}/{'.'.join(map(str, key.index)) or '-'}"


class _Writing(NamedTuple):
    """A tile to be written."""

    key: TileKey
    tile: Tile
    saved: Callable[[], None]
    failed: Callable[[Exception], None]


class Checkpoint:
    """Tiles of one run that are written down, as one rank sees them; a thread of its own writes them."""

    def __init__(self, folder: str, run: str) -> None:
        self._store, self._run = _store(folder), run
        self._lock = threading.Lock()
        self._written: set[TileKey] = set()
        self._waiting: deque[_Writing] = deque()
        self._busy = False

    def stored(self, work: Workload) -> NDArray[np.bool_]:
        """Which tiles of a program are there."""
        names = {name for name, _ in self._store.list(f"{self._run}/")}
        found = np.zeros(work.tiles, bool)
        if names:
            for tile in np.flatnonzero(work.producer >= 0).tolist():
                found[tile] = tile_name(self._run, work.key(tile)) in names
        return found

    def load(self, key: TileKey) -> Tile:
        """A tile that was written down."""
        name = tile_name(self._run, key)
        tile = np.array(decoded(self._store.get(name), name), order="K")
        with self._lock:
            self._written.add(key)
        return tile

    def save(
        self, key: TileKey, tile: Tile, saved: Callable[[], None], failed: Callable[[Exception], None]
    ) -> None:
        """Write a tile down, unless it was before; then call `saved`, or `failed` if that cannot be."""
        with self._lock:
            self._waiting.append(_Writing(key, tile, saved, failed))
            start, self._busy = not self._busy, True
        if start:
            POOL.start(self._write)

    def _write(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._busy = False
                    return
                each = self._waiting.popleft()
                new = each.key not in self._written
                self._written.add(each.key)
            try:
                if new:
                    self._store.put(tile_name(self._run, each.key), encoded(each.tile))
            except Exception as error:
                each.failed(error)
            else:
                each.saved()

    def tidy(self, work: Workload) -> None:
        """The run is over: only its outputs are kept."""
        outputs = {tile_name(self._run, work.key(tile)) for tile in np.flatnonzero(outputs_of(work)).tolist()}
        names = [name for name, _ in self._store.list(f"{self._run}/")]
        self._store.delete(name for name in names if name not in outputs)

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
