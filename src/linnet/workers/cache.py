"""Tiles held in memory for all workers of one host, within a limit for all of them together.

Each tile is a file in shared memory, encoded but never compressed, which whoever needs it maps: a tile is
there once, however many workers use it. Where the store is a directory of this machine the file is a second
name of the stored one, and nothing is copied: the system holds its pages in memory already. But then whoever
changes the stored file changes the cache, too. So each process verifies a tile when it maps it, and again
when the file is another or was changed since; one that is damaged is let go.

The files are the truth. Beside them there is a count of bytes, which may be too high when a worker was
killed (never too low) and is made right when room is needed; changes to it are made under a lock that
the system gives back when its holder dies. So a worker can be killed at any point. A cache that cannot take
a tile (the file system is full, somebody removed it) leaves it out: nothing depends on it but speed.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import mmap
import os
import shutil
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from linnet.errors import DamagedTileError
from linnet.tiles.amounts import amount
from linnet.tiles.codec import decoded, encoded, size_of
from linnet.workers.cache_files import Seen, Stamp, created, found_in, pages_of, stamp, stamp_of, touch
from linnet.workers.host_folders import attached, remove_abandoned
from linnet.workers.store import Store
from linnet.workers.stores.directory import DirectoryStore, contents, write
from linnet.workers.stores.keys import checked

SHARED_MEMORY = Path("/dev/shm")
INSIDE = ".caches"
"""Where caches are in the directory of a store."""
MAX_MAPPED = 2048
"""How many tiles a process keeps mapped; the system allows some 65,000 mappings."""
LOOK_SECONDS = 0.1
"""How often a process looks whether tiles it has mapped were put out by others."""

_STATE = struct.Struct("<QQ")  # bytes held; how often tiles were put out
_FREED = 16  # room is made for a sixteenth of the limit at once, so that files are seldom listed


class TileCache:
    """The cache of one job on this host.

    `name` says whose tiles these are: all who give the same name share them. `limit` is in bytes, for
    all of them together; the least recently used tiles are put out first. `base` is the directory in which it
    makes its own; shared memory if none is given. `files` tells the path of a stored tile that
    can have a second name there. `cache_for` chooses these three.

    >>> import numpy as np
    >>> cache = TileCache("an example", "1 MB")
    >>> cache.put("job/A/0/1", np.arange(3.0))
    True
    >>> cache.get("job/A/0/1"), cache.get("job/A/1/1")
    (array([0., 1., 2.]), None)
    >>> cache.hits, cache.misses, cache.used
    (1, 1, 4096)
    >>> cache.close()
    """

    def __init__(
        self,
        name: str,
        limit: int | str,
        *,
        base: str | os.PathLike[str] | None = None,
        files: Callable[[str], str] | None = None,
    ) -> None:
        self.limit: int = amount(limit, "limit")
        self.hits: int = 0
        """How many tiles were found,"""
        self.misses: int = 0
        """how many were not,"""
        self.hit_bytes: int = 0
        """how many bytes those found have,"""
        self.put_bytes: int = 0
        """and how many bytes went in."""
        self._mutex = threading.RLock()
        self._mapped: dict[str, _Mapped] = {}
        self._files = files
        self._looked = 0.0
        self._generation = 0
        own = f"linnet-{os.getuid()}-{hashlib.blake2b(name.encode(), digest_size=10).hexdigest()}"
        self.path, self._alive = attached([Path(base)] if base else _bases(), own)
        self._tiles = f"{self.path}/tiles"
        self._creator = os.getpid()
        self._open()
        remove_abandoned(self.path)

    # ---- reading

    def get(self, key: str) -> NDArray[Any] | None:
        """The tile, read-only; None if it is not held, or is not any more what was put there."""
        found = self.stamped(key)
        return None if found is None else found[0]

    def stamped(self, key: str) -> tuple[NDArray[Any], Seen] | None:
        """The same, with the file it is mapped from as it was when the tile was found sound."""
        path = self._file(key)
        with self._mutex:
            self._forget_what_is_gone()
            mapped = self._mapped.get(key)
            if mapped is None or mapped.stamp != stamp_of(path):
                self._mapped.pop(key, None)
                mapped = self._map(key, path)
                if mapped is None:
                    self.misses += 1
                    return None
                self._mapped[key] = mapped
                if len(self._mapped) > MAX_MAPPED:
                    del self._mapped[next(iter(self._mapped))]
            self.hits += 1
            self.hit_bytes += mapped.tile.nbytes
        touch(path)
        return mapped.tile, (path, mapped.stamp)

    def _map(self, key: str, path: str) -> _Mapped | None:
        try:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            found = stamp(os.fstat(file))  # before it is verified: what is changed meanwhile is seen later
            return _Mapped(decoded(contents(file), key), found)
        except (OSError, DamagedTileError):
            self.discard([key])  # the store may have the tile, or whoever needs it finds that it is lost
            return None
        finally:
            os.close(file)

    def _forget_what_is_gone(self) -> None:
        """Lets go of tiles that others put out, since their memory is free only when nobody maps it."""
        generation = self._read_state()[1]
        if generation == self._generation or time.monotonic() - self._looked < LOOK_SECONDS:
            return
        self._looked, self._generation = time.monotonic(), generation
        self._mapped = {key: each for key, each in self._mapped.items() if os.path.exists(self._file(key))}

    # ---- writing

    def put(self, key: str, tile: NDArray[Any]) -> bool:
        """Holds the tile, putting out others if it must; whether it is held then."""
        path = self._file(checked(key))
        if os.path.exists(path):
            touch(path)
            return True
        try:
            held = (self._files is not None and self._link(self._files(key), path, tile)) or self._write(
                path, tile
            )
        except OSError:
            return False
        self.put_bytes += tile.nbytes if held else 0
        return held

    def _link(self, file: str, path: str, tile: NDArray[Any]) -> bool:
        """Gives the stored tile a second name, if it is not compressed."""
        try:
            size = os.stat(file).st_size
            if size < tile.nbytes or pages_of(size) > self.limit:
                return False
            with self._locked():
                if not self._make_room(pages_of(size)):
                    return False
                self._change(pages_of(size))  # first: the count may be too high, never too low
                try:
                    os.link(file, path)
                except OSError:
                    self._change(-pages_of(size))
                    raise
        except FileExistsError:
            return True
        except OSError:  # on another file system, or deleted meanwhile
            return False
        touch(path)
        return True

    def _write(self, path: str, tile: NDArray[Any]) -> bool:
        parts = encoded(tile)
        size = size_of(parts)
        if pages_of(size) > self.limit:
            return False
        unfinished = f"{self._tiles}/.{os.urandom(12).hex()}"
        with self._locked():
            if not self._make_room(pages_of(size)):
                return False
            self._change(pages_of(size))  # first: the count may be too high, never too low
            try:
                file = created(unfinished, size)
            except OSError:
                self._change(-pages_of(size))
                raise
        try:
            write(file, parts)
            with self._locked():  # whoever counts sees it under one of its names
                os.rename(unfinished, path)
        except BaseException:
            with self._locked():
                self._remove(unfinished)
            raise
        finally:
            os.close(file)
        return True

    def discard(self, keys: Iterable[str]) -> None:
        """Lets go of these tiles; those that are not held are passed over."""
        paths = {key: self._file(checked(key)) for key in keys}
        with self._mutex:
            for key in paths:
                self._mapped.pop(key, None)
        there = [path for path in paths.values() if os.path.exists(path)]
        if not there:
            return
        # Removed and counted under one lock: whoever counts anew in between would count it twice.
        with self._locked():
            for path in there:
                self._remove(path)

    def _remove(self, path: str) -> None:
        """Removes a file and what it counts for. The lock is held."""
        with contextlib.suppress(OSError):
            size = os.stat(path).st_size
            os.unlink(path)
            self._change(-pages_of(size), 1)

    def clear(self) -> None:
        """Lets go of all tiles, whoever put them here."""
        with self._mutex:
            self._mapped.clear()
        with self._locked():
            for entry in self._entries():
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)
            self._write_state(0, self._read_state()[1] + 1)

    def close(self) -> None:
        """Lets go of the cache; the last one to do so removes it."""
        with self._mutex:
            self._mapped.clear()
            if self._alive < 0:
                return
            if os.getpid() == self._creator:  # a forked process shares the lock of its parent
                with contextlib.suppress(OSError):
                    fcntl.flock(self._alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(self.path, ignore_errors=True)
                    if self.path.parent.name == INSIDE:
                        os.rmdir(self.path.parent)
            os.close(self._alive)
            os.close(self._state_file)
            self._alive = self._state_file = -1

    @property
    def used(self) -> int:
        """Bytes held for all who share the cache; whole pages count."""
        return self._read_state()[0]

    def __len__(self) -> int:
        """How many tiles are held."""
        return sum(not entry.name.startswith(".") for entry in self._entries())

    def __repr__(self) -> str:
        return f"TileCache({str(self.path)!r}, limit={self.limit})"

    # ---- the files

    def _file(self, key: str) -> str:
        return f"{self._tiles}/{key.replace('/', ',')}" if len(key) < 250 else f"{self._tiles}/{_digest(key)}"

    def _entries(self) -> list[os.DirEntry[str]]:
        with contextlib.suppress(OSError), os.scandir(self._tiles) as entries:
            return list(entries)
        return []

    def _make_room(self, size: int) -> bool:
        """Puts out tiles until `size` bytes more are within the limit, if that can be. The lock is held."""
        used, generation = self._read_state()
        if used + size <= self.limit:
            return True
        files = sorted(found_in(self._entries()))
        used = sum(file.size for file in files)
        if used + size > self.limit:
            generation += 1
            wanted = self.limit - max(size, self.limit // _FREED)
            for file in files:
                if used <= wanted:
                    break
                if not file.growing:
                    with contextlib.suppress(OSError):
                        os.unlink(file.path)
                    used -= file.size
        self._write_state(used, generation)
        return used + size <= self.limit  # what others are writing stays

    # ---- the count of bytes

    def _open(self) -> None:
        os.makedirs(self._tiles, 0o700, exist_ok=True)
        self._state_file = os.open(self.path / "state", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._process = os.getpid()
        if os.fstat(self._state_file).st_size < _STATE.size:
            os.ftruncate(self._state_file, _STATE.size)
        self._state = mmap.mmap(self._state_file, _STATE.size)

    @contextlib.contextmanager
    def _locked(self) -> Generator[None]:
        with self._mutex:
            if os.getpid() != self._process:  # the lock of a forked process would be its parent's
                os.close(self._state_file)
                self._open()
            fcntl.flock(self._state_file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(self._state_file, fcntl.LOCK_UN)

    def _read_state(self) -> tuple[int, int]:
        used, generation = _STATE.unpack_from(self._state)
        return used, generation

    def _write_state(self, used: int, generation: int) -> None:
        _STATE.pack_into(self._state, 0, max(0, used), generation)

    def _change(self, by: int, put_out: int = 0) -> None:
        used, generation = self._read_state()
        self._write_state(used + by, generation + put_out)


class _Mapped(NamedTuple):
    tile: NDArray[Any]
    stamp: Stamp
    """Of the file when the tile was found sound."""


def _digest(key: str) -> str:
    return "+" + hashlib.blake2b(key.encode(), digest_size=20).hexdigest()


# ---- where caches are --------------------------------------------------------------


def cache_for(store: Store, folder: str, limit: int | str) -> TileCache:
    """The cache of the tiles that a job has in its folder of `store`.

    >>> from linnet.workers.store import open_store
    >>> cache = cache_for(open_store("memory://example"), "job", "64 MB")
    >>> cache
    TileCache('/dev/shm/linnet-..., limit=64000000)
    >>> cache.close()
    """
    name = f"{store.url} {folder}"
    if isinstance(store, DirectoryStore) and _in_memory_here(store.path):
        return TileCache(name, limit, base=os.path.join(store.path, INSIDE), files=store.file)
    return TileCache(name, limit)


def clear_cache(store: Store, folder: str) -> None:
    """Let the tiles go that this host holds of a job."""
    cache = cache_for(store, folder, 1)
    cache.clear()
    cache.close()


def _in_memory_here(path: str) -> bool:
    """Whether this machine keeps the files in its own memory: those of its disks, and shared memory itself.

    What may be on another machine has no device; so have some file systems that are here.
    """
    device = os.stat(path).st_dev
    return os.major(device) != 0 or (SHARED_MEMORY.exists() and device == SHARED_MEMORY.stat().st_dev)


def _bases() -> list[Path]:
    return [SHARED_MEMORY, Path(tempfile.gettempdir())]
