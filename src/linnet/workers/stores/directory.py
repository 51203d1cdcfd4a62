"""A store in a directory: the key is the path.

What is written goes to a file in `.writing` first and gets its name by a rename, so that a name
never stands for half of something, whenever the writer dies. Nothing is synced: what was written survives
the death of every process, but not that of the machine.

Reading maps the file. That copies nothing, and asking for all pages at once makes it faster than
reading into memory of one's own, which the system would have to clear first. What is mapped stays as it is
when it is deleted or replaced; but if something other than a store makes the file shorter meanwhile, or the
disk fails under it, the system ends the process, and another worker has to find out.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import mmap
import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from linnet.errors import MissingTileError, StoreError
from linnet.tiles.amounts import human
from linnet.tiles.codec import Buffer, size_of
from linnet.workers.stores.keys import checked, checked_prefix

WRITING = ".writing"
STALE_SECONDS = 3600
"""A file that has been in `.writing` for longer has lost its writer."""
SWEEP_SECONDS = 60
"""How often one process looks for those."""

_SMALL = 16 << 10  # mapping costs more than reading below this
_MAX_PARTS = 1024  # of one writev, by the kernel
_MAX_TRIES = 1000  # against others who remove empty directories
_REMEMBERED = 1000  # directories
_POPULATE = getattr(mmap, "MAP_POPULATE", 0)
_REMEDIES = {
    errno.ENOSPC: "the disk is full: free some space, or use a store elsewhere",
    errno.EDQUOT: "your quota is used up: free some space, or use a store elsewhere",
    errno.EACCES: "no permission: change the owner or mode of the directory, or use another one",
    errno.EPERM: "no permission: change the owner or mode of the directory, or use another one",
    errno.EROFS: "the file system is read-only: use a store elsewhere",
    errno.EISDIR: "this key is the beginning of other keys there: use another key",
    errno.ENOTDIR: "the beginning of this key is a file: use another key, or another directory",
    errno.ENOTEMPTY: "this key is the beginning of other keys there: use another key",
    errno.EMFILE: "too many open files: raise the limit (ulimit -n), or use fewer workers in one process",
    errno.EFBIG: "larger than a file may be here (ulimit -f, or the file system): use smaller tiles",
    errno.ENAMETOOLONG: "the path is too long: use a directory with a shorter path",
    errno.ESTALE: "the network file system lost the file: see whether its server is up",
    errno.ELOOP: "remove the link, or use another directory",
    errno.EIO: "the disk has an error: look at the system's log, and use a store elsewhere",
}


class DirectoryStore:
    """Tiles as files of one directory.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = DirectoryStore(folder)
    ...     store.put("job/A/0/1", [b"some ", b"bytes"])
    ...     bytes(store.get("job/A/0/1")), list(store.list("job/"))
    (b'some bytes', [('job/A/0/1', 10)])
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            stands_for_bytes = b"\0" not in os.fsencode(path)
        except UnicodeEncodeError:
            stands_for_bytes = False
        if not stands_for_bytes:
            raise StoreError(
                f"{os.fspath(path)!r} cannot be the name of a directory: it has a null character, or one "
                "that no encoding of names knows; use another path"
            )
        self.path: str = os.path.abspath(path)
        self.url: str = Path(self.path).as_uri()
        self._writing = os.path.join(self.path, WRITING)
        self._swept = time.monotonic() - SWEEP_SECONDS
        self._own: set[str] = set()
        """Directories that are no links."""
        self._stem, self._numbers = os.urandom(12).hex(), itertools.count()
        try:
            self._make()
        except OSError as error:
            self._refuse(error, "cannot be made a store")

    def _make(self) -> None:
        """Makes the directories; somebody may be removing them meanwhile, because they are empty."""
        for _ in range(_MAX_TRIES):
            with contextlib.suppress(FileExistsError, FileNotFoundError):
                os.makedirs(self._writing, exist_ok=True)
                return
        os.makedirs(self._writing, exist_ok=True)

    def put(self, key: str, parts: Sequence[Buffer]) -> None:
        path = self.file(key)
        try:
            written = self._written(parts)
        except OSError as error:
            self._refuse(error, f"{key}: {human(size_of(parts))} were not written")
        try:
            self._named(written, path)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(written)
            self._refuse(error, f"{key} was not written")

    def get(self, key: str) -> memoryview:
        path = self.file(key)
        try:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe would make us wait
            try:
                return contents(file)
            finally:
                os.close(file)
        except (FileNotFoundError, NotADirectoryError):
            raise MissingTileError(
                f"{key} is not in {self.url}; resume the job to compute it again"
            ) from None
        except OSError as error:
            self._refuse(error, f"{key} cannot be read")

    def size(self, key: str) -> int | None:
        try:
            found = os.stat(self.file(key))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            self._refuse(error, f"{key} cannot be looked up")
        return found.st_size if stat.S_ISREG(found.st_mode) else None

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            try:
                os.unlink(self.file(key))
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                continue
            except OSError as error:
                self._refuse(error, f"{key} cannot be deleted")
            self._prune(key)
        self._sweep()

    def list(self, prefix: str = "") -> Iterator[tuple[str, int]]:
        checked_prefix(prefix)
        self._sweep()
        folder = prefix.rpartition("/")[0]
        for key, size in self._walk(f"{folder}/" if folder else ""):
            if key.startswith(prefix):
                yield key, size

    def file(self, key: str) -> str:
        """The path of what is stored under a key."""
        return f"{self.path}/{checked(key)}"

    def close(self) -> None:
        with contextlib.suppress(OSError):  # others may write
            os.rmdir(self._writing)

    def __repr__(self) -> str:
        return f"DirectoryStore({self.path!r})"

    # ---- writing

    def _written(self, parts: Sequence[Buffer]) -> str:
        """A new file in `.writing` that holds all parts."""
        path = f"{self._writing}/{self._stem}-{os.getpid()}-{next(self._numbers)}"
        file = self._created(path)
        try:
            write(file, parts)
        except BaseException:
            os.unlink(path)
            raise
        finally:
            os.close(file)
        return path

    def _created(self, path: str) -> int:
        tries = 0
        while True:
            try:
                return os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666)
            except FileNotFoundError:  # somebody closed this store and found `.writing` empty
                tries += 1
                if tries == _MAX_TRIES:
                    raise
            with contextlib.suppress(FileNotFoundError, FileExistsError):
                os.makedirs(self._writing, exist_ok=True)

    def _named(self, written: str, path: str) -> None:
        """Gives the file its name, making the directories above; somebody may be removing them meanwhile."""
        self._refuse_links(path.rpartition("/")[0])
        tries = 0
        while True:
            try:
                return os.replace(written, path)
            except FileNotFoundError:
                tries += 1
                if tries == _MAX_TRIES:
                    raise
            with contextlib.suppress(FileNotFoundError, FileExistsError):
                os.makedirs(os.path.dirname(path), exist_ok=True)

    def _refuse_links(self, folder: str) -> None:
        """What is written stays in the store: a directory in it that leads elsewhere is none of ours."""
        if folder in self._own:
            return
        above = folder
        while len(above) > len(self.path):
            if os.path.islink(above):
                raise OSError(errno.ELOOP, f"{above} is a link, which leads out of the store")
            above = os.path.dirname(above)
        if len(self._own) >= _REMEMBERED:
            self._own.clear()
        if os.path.isdir(folder):
            self._own.add(folder)

    # ---- tidying

    def _prune(self, key: str) -> None:
        """Removes directories above the key that are empty; those that are not stay, whoever fills them."""
        while "/" in key:
            key = key.rpartition("/")[0]
            try:
                os.rmdir(f"{self.path}/{key}")
            except OSError:
                return

    def _sweep(self) -> None:
        """Removes what dead writers left in `.writing`."""
        if time.monotonic() - self._swept < SWEEP_SECONDS:
            return
        self._swept = time.monotonic()
        with contextlib.suppress(OSError), os.scandir(self._writing) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    if time.time() - entry.stat().st_mtime > STALE_SECONDS:
                        os.unlink(entry.path)

    def _walk(self, folder: str) -> Iterator[tuple[str, int]]:
        try:
            with os.scandir(f"{self.path}/{folder}") as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self._refuse(error, f"{folder or 'the store'} cannot be listed")
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from self._walk(f"{folder}{entry.name}/")
            else:
                with contextlib.suppress(FileNotFoundError):
                    yield f"{folder}{entry.name}", entry.stat().st_size

    def _refuse(self, error: OSError, what: str) -> NoReturn:
        why = _REMEDIES.get(error.errno or 0, "see whether the directory is there and can be written to")
        raise StoreError(f"store {self.path}: {what}: {error.strerror or error}; {why}") from error


def write(file: int, parts: Sequence[Buffer]) -> None:
    """All parts, one after the other, in as few calls as the system allows."""
    if size_of(parts) < _SMALL:
        whole = b"".join(parts)
        parts = [whole[os.writev(file, [whole]) :]]
    left = [view for view in map(memoryview, parts) if len(view)]
    while left:
        written = os.writev(file, left[:_MAX_PARTS])
        while left and written >= len(left[0]):
            written -= len(left.pop(0))
        if written:
            left[0] = left[0][written:]


def contents(file: int) -> memoryview:
    """All that is in an open file: mapped, or read where that costs less."""
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode):
        raise FileNotFoundError(errno.ENOENT, "not a file")
    if found.st_size < _SMALL:
        return memoryview(os.read(file, found.st_size))
    flags = mmap.MAP_SHARED | _POPULATE
    return memoryview(mmap.mmap(file, found.st_size, flags=flags, prot=mmap.PROT_READ))
