"""Bytes in and out, of files and of objects, with one set of errors.

Objects are reached through obstore. Its messages quote what servers answer, and servers quote the
keys they were sent: so of these only the server's code and sentence are passed on, and not the
error itself.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import threading
import uuid
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from linnet.errors import FileDeniedError, FileError, FileMissingError, MissingExtraError, missing_extra
from linnet.io import web
from linnet.io.clients import is_plain, keywords
from linnet.io.places import Place

_SAID = re.compile(r"<Code>(?P<code>[^<]*)</Code>|<Message>(?P<message>[^<]*)</Message>")
_KEYS = re.compile(r"(?i)(key|token|signature|credential|secret)")
_BLOCK = 1 << 16
"""Bytes that are read at least, where a library reads a few."""
_PATIENCE = timedelta(seconds=20)
"""How long a server that does not answer is asked again."""

_ENVIRONMENT = ("AWS_", "GOOGLE_", "AZURE_")
"""Beginnings of the names of variables that say how stores are reached."""

_lock = threading.Lock()
_stores: dict[str, Any] = {}


def extra(package: str, what: str) -> MissingExtraError:
    """The error for a package that is not installed."""
    return missing_extra(what, package, "io")


def library() -> Any:
    """obstore, or the error that says how to get it."""
    try:
        import obstore
    except ImportError as error:
        raise extra("obstore", "reading and writing objects at URLs") from error
    return obstore


def object_store(place: Place) -> Any:
    """The connection to the bucket or host of a place; one for each, kept as long as the process lives."""
    if web.is_guarded(place):
        raise FileDeniedError(
            f"{place} cannot be used by workers in this way: it goes through a library that follows "
            "redirections to anywhere; copy it to a folder or a bucket first"
        )
    secrets = place.secrets
    around = sorted(item for item in os.environ.items() if item[0].startswith(_ENVIRONMENT))
    identity = repr((place.root, place.options, sorted(secrets.items()), around))
    with _lock:
        if identity not in _stores:
            _stores[identity] = _connected(place, secrets)
        return _stores[identity]


def _connected(place: Place, secrets: dict[str, Any]) -> Any:
    library()
    from obstore import store

    if place.scheme == "memory":
        return store.MemoryStore()
    options = {**dict(place.options), **secrets}
    client = {"allow_http": is_plain(place.scheme, options), "connect_timeout": "5s", "timeout": "120s"}
    how = keywords(place.scheme, options, client, {"max_retries": 6, "retry_timeout": _PATIENCE})
    try:
        return store.from_url(place.root, **how)
    except Exception as error:  # obstore names the option, and may quote its value
        known = ", ".join(sorted(options)) or "none"
        raise FileError(
            f"{place.root} cannot be reached: storage_options ({known}) are not what it takes "
            f"({type(error).__name__})"
        ) from None


# ---- errors


@contextmanager
def translated(place: Place, doing: str = "read") -> Generator[None]:
    """Errors of the system and of servers as ours, with the place and what was being done."""
    try:
        yield
    except FileError:
        raise
    except OSError as error:
        if isinstance(error, FileNotFoundError) and place.is_local:
            raise FileMissingError(_missing(place)) from error
        if isinstance(error, FileNotFoundError):
            raise FileMissingError(f"{place}: there is no such object{_said(error)}") from None
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise FileDeniedError(
                f"{place} may not be {_done(doing)}: {error.strerror}; "
                "change its permissions, or run as a user who may"
            ) from error
        raise FileError(f"{place} cannot be {_done(doing)}: {error.strerror or error}") from error
    except Exception as error:
        kind = type(error).__name__
        if not type(error).__module__.startswith("obstore"):
            raise
        if kind in ("PermissionDeniedError", "UnauthenticatedError"):
            raise FileDeniedError(
                f"{place} may not be {_done(doing)}: the server refused the credentials{_said(error)}; give "
                "others as storage_options or in the environment"
            ) from None
        raise FileError(f"{place} cannot be {_done(doing)}: {kind}{_said(error)}") from None


def _done(doing: str) -> str:
    return {"read": "read", "write": "written", "open": "opened", "delete": "deleted"}[doing]


def _missing(place: Place) -> str:
    path = place.url
    while not os.path.exists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    where = f"; there is {path}" if path != os.path.dirname(path) else ""
    return f"{place}: there is no such file or folder{where}"


def _said(error: BaseException) -> str:
    """What the server said, if it holds no key."""
    text = str(error)
    said = [match["code"] or match["message"] for match in _SAID.finditer(text)]
    said = [each for each in said if each and not (_KEYS.search(each) and " " in each)]
    if not said and "error sending request" in text:
        said = ["there is no answer from it"]
    return f" ({': '.join(dict.fromkeys(said))})" if said else ""


# ---- reading


def size_and_version(place: Place) -> tuple[int, str]:
    """Bytes of a file or object, and a text that changes when it does."""
    with translated(place, "open"):
        if place.is_local:
            status = os.stat(place.url)
            return status.st_size, f"{status.st_mtime_ns:x}-{status.st_size:x}-{status.st_ino:x}"
        if web.is_guarded(place):
            return web.size_and_version(place)
        obstore = library()
        meta = obstore.head(object_store(place), place.key)
        return meta["size"], str(meta["e_tag"] or meta["last_modified"].isoformat())


def same_version(place: Place, version: str) -> None:
    """Refuse a file that is not what it was when its array was made."""
    if size_and_version(place)[1] != version:
        raise FileError(f"{place} has changed since it was opened; open it again to read what it holds now")


def read(place: Place, start: int = 0, stop: int | None = None) -> Any:
    """The bytes of a file or object, or those in a range; as something with the buffer protocol."""
    with translated(place):
        if place.is_local:
            with open(place.url, "rb", buffering=0) as file:
                if start == 0 and stop is None:
                    return file.read()
                size = (os.fstat(file.fileno()).st_size if stop is None else stop) - start
                return _pread(file.fileno(), size, start)
        if web.is_guarded(place):
            return web.read(place, start, stop)
        obstore = library()
        if start == 0 and stop is None:
            return obstore.get(object_store(place), place.key).bytes()
        if stop is None:
            stop = size_and_version(place)[0]
        if stop <= start:
            return b""
        return obstore.get_range(object_store(place), place.key, start=start, end=stop)


def read_ranges(place: Place, starts: Sequence[int], size: int) -> list[Any]:
    """Several ranges of the same size of an object, in the order in which they lie there."""
    with translated(place):
        if web.is_guarded(place):
            return web.read_ranges(place, starts, size)
        lengths = [size] * len(starts)
        return library().get_ranges(object_store(place), place.key, starts=starts, lengths=lengths)


def fill(place: Place, room: Any, start: int) -> int:
    """Fill memory with the bytes of a local file from a place on; returns how many there were."""
    with translated(place), open(place.url, "rb", buffering=0) as file:
        return os.preadv(file.fileno(), [room], start)


def _pread(handle: int, size: int, start: int) -> bytes:
    """One call of the system reads at most 2 GB."""
    data = os.pread(handle, size, start)
    if len(data) == size or not data:
        return data
    parts = [data]
    while (left := size - sum(map(len, parts))) > 0 and (more := os.pread(handle, left, start + size - left)):
        parts.append(more)
    return b"".join(parts)


def read_if_there(place: Place) -> Any | None:
    """All bytes, or None if there is no such file or object."""
    try:
        return read(place)
    except FileMissingError:
        return None


def stream(place: Place) -> Iterator[bytes]:
    """All bytes, a few megabytes at a time."""
    with translated(place):
        if place.is_local:
            with open(place.url, "rb", buffering=0) as file:
                while block := file.read(1 << 22):
                    yield block
        elif web.is_guarded(place):
            yield from web.stream(place, 1 << 22)
        else:
            obstore = library()
            for block in obstore.get(object_store(place), place.key).stream(1 << 22):
                yield bytes(block)


class Seekable:
    """A file or object for libraries that want to seek in it; small reads share a block."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._size = size_and_version(place)[0]
        self._at = 0
        self._block = (0, b"")
        self.closed = False

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a byte: counted from the beginning, from here, or from the end."""
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        """Which byte comes next."""
        return self._at

    def read(self, size: int = -1) -> bytes:
        """The next bytes; all that are left without a size."""
        stop = self._size if size < 0 else min(self._size, self._at + size)
        begin, block = self._block
        if not begin <= self._at <= stop <= begin + len(block):
            reach = max(stop, min(self._size, self._at + _BLOCK))
            begin, block = self._at, bytes(read(self._place, self._at, reach)) if reach > self._at else b""
            self._block = (begin, block)
        data = block[self._at - begin : stop - begin]
        self._at += len(data)
        return data

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with the next bytes; returns how many there were."""
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def seekable(self) -> bool:
        """Always."""
        return True

    def readable(self) -> bool:
        """Always."""
        return True

    def writable(self) -> bool:
        """Never."""
        return False

    def flush(self) -> None:
        """Nothing is kept back."""

    def close(self) -> None:
        """Let go of what was read."""
        self._block = (0, b"")
        self.closed: bool = True


def exists(place: Place) -> bool:
    """Whether there is a file, a folder or an object of this name."""
    if place.is_local:
        return os.path.exists(place.url)
    try:
        size_and_version(place)
    except FileMissingError:
        return False
    return True


def listing(place: Place) -> list[str]:
    """Names of all files or objects under a place, relative to it, sorted; none if it is not there.

    The web tells no names: there are none to be seen at http:// and https://.
    """
    if place.scheme in ("http", "https"):
        return []
    with translated(place):
        if place.is_local:
            files: list[str] = []
            for folder, _, names in os.walk(place.url):
                inner = os.path.relpath(folder, place.url)
                files += [name if inner == "." else f"{inner}/{name}" for name in names]
            return sorted(files)
        obstore = library()
        prefix = f"{place.key}/" if place.key else ""
        return sorted(
            each["path"].removeprefix(prefix)
            for batch in obstore.list(object_store(place), prefix or None)
            for each in batch
        )


def children(place: Place) -> list[str]:
    """Names of what is directly under a place, folders and files alike, sorted; none on the web."""
    if place.scheme in ("http", "https"):
        return []
    with translated(place):
        if place.is_local:
            return sorted(os.listdir(place.url)) if os.path.isdir(place.url) else []
        obstore = library()
        prefix = f"{place.key}/" if place.key else ""
        answer = obstore.list_with_delimiter(object_store(place), prefix or None)
        names = [*answer["common_prefixes"], *(each["path"] for each in answer["objects"])]
        return sorted(name.removeprefix(prefix) for name in names)


# ---- writing


def write(place: Place, data: Any) -> None:
    """A file or object with these bytes: readers see all of it or nothing."""
    write_stream(place, (data,))


def write_stream(place: Place, blocks: Iterable[Any]) -> None:
    """A file or object of blocks of bytes, one behind another: readers see all of it or nothing."""
    with translated(place, "write"):
        if place.is_local:
            os.makedirs(os.path.dirname(place.url), exist_ok=True)
            partial = f"{place.url}.{uuid.uuid4().hex}.partial"
            try:
                with open(partial, "wb", buffering=0) as file:
                    for block in blocks:
                        _write_all(file.fileno(), block)
                os.replace(partial, place.url)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(partial)
                raise
            return
        obstore = library()
        if isinstance(blocks, tuple):
            obstore.put(object_store(place), place.key, blocks[0])
            return
        writer = obstore.open_writer(object_store(place), place.key)
        for block in blocks:
            writer.write(block)
        writer.close()  # without this there is no object: so not after an error


def _write_all(handle: int, block: Any) -> None:
    view = memoryview(block).cast("B")
    while len(view):
        view = view[os.write(handle, view) :]


def remove(place: Place) -> None:
    """Delete a file, a folder with all that is in it, or all objects under a key, if there are any."""
    with translated(place, "delete"):
        if place.is_local:
            if os.path.isdir(place.url) and not os.path.islink(place.url):
                shutil.rmtree(place.url)
            else:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(place.url)
            return
        obstore = library()
        store = object_store(place)
        names = [f"{place.key}/{name}" for name in listing(place)]
        if names:
            obstore.delete(store, names)
        with contextlib.suppress(FileNotFoundError):
            obstore.delete(store, place.key)


def rename(place: Place, target: Place) -> None:
    """Give a file or folder its final name; objects under a key are copied by the server, one by one."""
    with translated(target, "write"):
        if place.is_local:
            if os.path.isdir(target.url) and os.path.isdir(place.url):
                shutil.rmtree(target.url)
            os.replace(place.url, target.url)
            return
        obstore = library()
        store = object_store(place)
        inner = listing(place)
        for name in inner:
            obstore.rename(store, f"{place.key}/{name}", f"{target.key}/{name}")
        if not inner:
            obstore.rename(store, place.key, target.key)
