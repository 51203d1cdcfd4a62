"""A store that is further away than it is: every request takes longer, as it would in a cloud."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from linnet.tiles.codec import Buffer

if TYPE_CHECKING:
    from linnet.workers.store import Store


class Delayed:
    """Another store, with some seconds added to every request."""

    def __init__(self, store: Store, seconds: float) -> None:
        self._store = store
        self._seconds = seconds
        self.url: str = store.url

    def put(self, key: str, parts: Sequence[Buffer]) -> None:
        time.sleep(self._seconds)
        self._store.put(key, parts)

    def get(self, key: str) -> Buffer:
        time.sleep(self._seconds)
        return self._store.get(key)

    def size(self, key: str) -> int | None:
        time.sleep(self._seconds)
        return self._store.size(key)

    def delete(self, keys: Iterable[str]) -> None:
        time.sleep(self._seconds)
        self._store.delete(keys)

    def list(self, prefix: str = "") -> Iterator[tuple[str, int]]:
        time.sleep(self._seconds)
        return self._store.list(prefix)

    def close(self) -> None:
        self._store.close()
