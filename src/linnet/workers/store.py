"""Where tiles are kept: what every store can do, and how one is opened.

A store is a flat set of keys with bytes under them. Nothing more is asked of it (no conditional
writes, no locks), so that any object store and any file system will do: what must be decided
once is decided by the ledger, and attempts never write under the same key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable
from urllib.parse import urlsplit

from linnet.errors import InputError, StoreError
from linnet.io.places import path_of
from linnet.tiles.codec import Buffer
from linnet.workers.stores.directory import DirectoryStore
from linnet.workers.stores.memory import MemoryStore
from linnet.workers.stores.objects import SCHEMES, ObjectStore

__all__ = ["Buffer", "Store", "open_store"]


@runtime_checkable
class Store(Protocol):
    """Bytes under keys.

    Keys are names of letters, digits and `._=-`, separated by `/`, such as `job/A/0.1/17`; a key is never the
    beginning of another one followed by `/`. A store may be used by many threads at once.
    """

    url: str
    """Where it is, as `open_store` takes it; never with secrets."""

    def put(self, key: str, parts: Sequence[Buffer]) -> None:
        """Stores the parts, one after the other: all of them or nothing. Replaces what was there."""
        ...

    def get(self, key: str) -> Buffer:
        """What is stored under the key; MissingTileError if there is nothing."""
        ...

    def size(self, key: str) -> int | None:
        """How many bytes are under the key; None if there is nothing."""
        ...

    def delete(self, keys: Iterable[str]) -> None:
        """Deletes what is under these keys; those that are not there are passed over."""
        ...

    def list(self, prefix: str = "") -> Iterator[tuple[str, int]]:
        """All keys that start with the prefix, each with its size, in no particular order."""
        ...

    def close(self) -> None:
        """Lets go of connections; what is stored stays."""
        ...


def open_store(url: str | Path, **options: Any) -> Store:
    """The store at a URL.

    | URL | is |
    |---|---|
    | a path, `file:///a/path` | a directory, made if it is not there |
    | `memory://name` | the memory of this process |
    | `s3://bucket/prefix`, `gs://…`, `az://…` | an object store; `pip install "linnet-array[s3]"` |
    | `https://host/path` | what a web server has there, for reading |

    Options of object stores stand in the URL (`?endpoint=https://host:port&region=…`) or are given as
    keywords; `linnet.workers.stores.objects` says which. Credentials are best left to the environment.

    >>> open_store("memory://example")
    MemoryStore('memory://example')
    >>> open_store("ftp://example.org")
    Traceback (most recent call last):
    linnet.errors.StoreError: 'ftp' stores are not known: give a path, or a URL that starts with ...
    """
    if isinstance(url, Path) or "://" not in url:
        return DirectoryStore(url)
    parts = urlsplit(url)
    if parts.scheme == "memory":
        return MemoryStore(parts.netloc + parts.path)
    if parts.scheme == "file":
        try:
            return DirectoryStore(path_of(str(url)))
        except InputError as error:
            raise StoreError(f"a store cannot be there: {error}") from None
    if parts.scheme in SCHEMES:
        return ObjectStore(url, options)
    known = ", ".join(f"{scheme}://" for scheme in ("file", "memory", *SCHEMES))
    raise StoreError(f"{parts.scheme!r} stores are not known: give a path, or a URL that starts with {known}")
