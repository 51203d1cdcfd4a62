"""A store in the memory of this process, for tests."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence

from linnet.errors import MissingTileError
from linnet.tiles.codec import Buffer
from linnet.workers.stores.keys import checked, checked_prefix

_ALL: dict[str, dict[str, bytes]] = {}
_LOCK = threading.Lock()


class MemoryStore:
    """What was stored under one name, shared by all stores of that name in this process.

    >>> MemoryStore("doc").put("job/A/0/1", [b"some ", b"bytes"])
    >>> bytes(MemoryStore("doc").get("job/A/0/1"))
    b'some bytes'
    >>> MemoryStore("doc").delete(["job/A/0/1"])
    """

    def __init__(self, name: str = "") -> None:
        self.url: str = f"memory://{name}"
        with _LOCK:
            self._held = _ALL.setdefault(name, {})

    def put(self, key: str, parts: Sequence[Buffer]) -> None:
        self._held[checked(key)] = b"".join(parts)

    def get(self, key: str) -> memoryview:
        held = self._held.get(checked(key))
        if held is None:
            raise MissingTileError(f"{key} is not in {self.url}; resume the job to compute it again")
        return memoryview(held)

    def size(self, key: str) -> int | None:
        held = self._held.get(checked(key))
        return None if held is None else len(held)

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._held.pop(checked(key), None)

    def list(self, prefix: str = "") -> Iterator[tuple[str, int]]:
        checked_prefix(prefix)
        for key, held in self._held.copy().items():
            if key.startswith(prefix):
                yield key, len(held)

    def close(self) -> None:
        """Nothing to let go: what is stored stays for other stores of the same name."""

    def __repr__(self) -> str:
        return f"MemoryStore({self.url!r})"
