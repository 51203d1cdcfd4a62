"""Tiles between a worker, the cache of its host, and the store; with what was moved counted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from linnet.tiles import Tile
from linnet.tiles.codec import Compression, decoded, encoded, size_of
from linnet.workers.cache import TileCache
from linnet.workers.cache_files import Seen, stamp_of, was_changed
from linnet.workers.store import Store
from linnet.workers.stores.directory import DirectoryStore

_BYTES = {"reads": "bytes_read", "hits": "bytes_hit", "writes": "bytes_written"}

_SMALL = 8192
"""Bytes of tiles that each process keeps for itself,"""
_SMALL_ONES = 2000
"""and how many of them."""


class Traffic:
    """Reads and writes tiles of one job, several at a time where the store is far away."""

    def __init__(
        self, store: Store, cache: TileCache | None, compression: Compression | None, threads: int
    ) -> None:
        self._store = store
        self._cache = cache
        self._files = store.file if isinstance(store, DirectoryStore) else None
        """Where the store maps tiles from."""
        self._compression: Compression | None = compression
        self._pool = ThreadPoolExecutor(threads, "tiles") if threads > 1 else None
        self._lock = threading.Lock()
        self._small: dict[str, Tile] = {}
        self._facts: dict[str, float] = dict.fromkeys([*_BYTES, *_BYTES.values()], 0.0)

    def read(self, keys: Sequence[str]) -> list[Tile]:
        """The tiles under these keys."""
        return [tile for tile, _ in self.stamped(keys)]

    def stamped(self, keys: Sequence[str]) -> list[tuple[Tile, Seen | None]]:
        """The tiles under these keys, each with the file it is mapped from as it was when that was verified.

        Who changes that file in its place later changes the tile, too: `changed` tells.
        """
        return self._each(self._read_one, keys)

    @staticmethod
    def changed(seen: Iterable[Seen]) -> bool:
        """Whether any of these files was changed since."""
        return any(was_changed(path, stamp) for path, stamp in seen)

    def _read_one(self, key: str) -> tuple[Tile, Seen | None]:
        found = self._held(key)
        if found is not None:
            self._count("hits", found[0].nbytes)
            return found
        path = self._files(key) if self._files is not None else ""
        before = stamp_of(path) if path else None  # what is changed while it is verified is seen later
        data = self._store.get(key)
        tile = decoded(data, key)
        self._count("reads", memoryview(data).nbytes)
        self._hold(key, tile)
        return tile, None if before is None or tile.nbytes <= _SMALL else (path, before)

    def _held(self, key: str) -> tuple[Tile, Seen | None] | None:
        tile = self._small.get(key)
        if tile is not None:
            return tile, None
        return self._cache.stamped(key) if self._cache is not None else None

    def _hold(self, key: str, tile: Tile) -> None:
        """Keep a tile at hand: for all workers of this host, unless it is so small that a file costs more."""
        if self._cache is None:
            return
        if tile.nbytes > _SMALL:
            self._cache.put(key, tile)
            return
        with self._lock:
            self._small[key] = tile
            if len(self._small) > _SMALL_ONES:
                del self._small[next(iter(self._small))]

    def write(self, tiles: Sequence[tuple[str, Tile]]) -> None:
        """Store tiles under keys; return when all of them are."""
        self._each(self._write_one, tiles)

    def _write_one(self, item: tuple[str, Tile]) -> None:
        key, tile = item
        parts = encoded(tile, self._compression)
        self._store.put(key, parts)
        self._count("writes", size_of(parts))
        self._hold(key, tile)

    def delete(self, keys: Iterable[str]) -> None:
        """Delete tiles that nobody needs."""
        gone = list(keys)
        if gone:
            self._store.delete(gone)
            with self._lock:
                for key in gone:
                    self._small.pop(key, None)
            if self._cache is not None:
                self._cache.discard(gone)

    def _each(self, do: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        if self._pool is None or len(items) < 2:
            return [do(item) for item in items]
        return list(self._pool.map(do, items))

    def _count(self, what: str, size: int) -> None:
        with self._lock:
            self._facts[what] += 1
            self._facts[_BYTES[what]] += size

    @property
    def facts(self) -> dict[str, float]:
        """What was moved so far."""
        with self._lock:
            return dict(self._facts)

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
