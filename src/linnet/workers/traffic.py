"""Tiles between a worker, the cache of its host, and the store; with what was moved counted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from linnet.tiles import Tile
from linnet.tiles.codec import Compression, decoded, encoded, size_of
from linnet.workers.cache import TileCache
from linnet.workers.store import Store

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
        self._compression: Compression | None = compression
        self._pool = ThreadPoolExecutor(threads, "tiles") if threads > 1 else None
        self._lock = threading.Lock()
        self._small: dict[str, Tile] = {}
        self._facts: dict[str, float] = dict.fromkeys([*_BYTES, *_BYTES.values()], 0.0)

    def read(self, keys: Sequence[str]) -> list[Tile]:
        """The tiles under these keys."""
        return self._each(self._read_one, keys)

    def _read_one(self, key: str) -> Tile:
        tile = self._held(key)
        if tile is not None:
            self._count("hits", tile.nbytes)
            return tile
        data = self._store.get(key)
        tile = decoded(data, key)
        self._count("reads", memoryview(data).nbytes)
        self._hold(key, tile)
        return tile

    def _held(self, key: str) -> Tile | None:
        tile = self._small.get(key)
        return self._cache.get(key) if tile is None and self._cache is not None else tile

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
