"""One SQLite file for the queue and the ledger of a job, shared by the processes of one host.

It survives the death of any process, between any two instructions; power loss may take the last
moments with it (write-ahead log, synchronous NORMAL). Writers take turns at a lock of the system
(`flock`), which wakes the next one at once and is given back when a process is killed: SQLite alone
would make them sleep and ask again. The clock is that of the host since it started, so that a worker
with a wrong wall clock, or a wall clock that is set, ends no lease.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from linnet.errors import JobError, StoreError

_NETWORK = {
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "lustre", "gpfs", "beegfs", "glusterfs",
    "orangefs", "fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "fuse.gcsfuse", "fuse.rclone", "fuse.ceph",
    "fuse.juicefs",
}  # fmt: skip
_PIECE = 512
"""Names in one query."""
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Database:
    """A database and its lock; may be used from several threads."""

    def __init__(self, path: str | os.PathLike[str], *, create: bool = False) -> None:
        self.path = Path(path).absolute()
        if not create and not self.path.exists():
            raise FileNotFoundError(str(self.path))
        _refuse_network(self.path.parent)
        self._mutex = threading.RLock()
        self._depth = 0
        self._begun = False
        try:
            self._gate = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._connection = sqlite3.connect(
                self.path, isolation_level=None, check_same_thread=False, timeout=60, cached_statements=256
            )
            fcntl.flock(self._gate, fcntl.LOCK_EX)
            try:
                self._prepare()
            finally:
                fcntl.flock(self._gate, fcntl.LOCK_UN)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"{self.path} cannot be opened: {error}; is the directory writable?") from error

    def _prepare(self) -> None:
        run = self._connection.execute
        run("PRAGMA journal_mode=WAL")
        run("PRAGMA synchronous=NORMAL")
        run("PRAGMA temp_store=MEMORY")

    @contextmanager
    def grouped(self) -> Generator[None]:
        """What is written inside is one transaction, which begins when the first of it is."""
        with self._mutex:
            self._depth += 1
            try:
                yield
                if self._depth == 1 and self._begun:
                    self._connection.execute("COMMIT")
            except BaseException as error:
                if self._depth == 1 and self._begun:
                    with suppress(sqlite3.Error):
                        self._connection.execute("ROLLBACK")
                if self._depth == 1 and isinstance(error, sqlite3.OperationalError):
                    raise _explained(self.path, error) from error
                raise
            finally:
                self._depth -= 1
                if self._begun and not self._depth:
                    self._begun = False
                    fcntl.flock(self._gate, fcntl.LOCK_UN)

    @contextmanager
    def writing(self) -> Generator[sqlite3.Connection]:
        """A transaction; one inside another, or inside a group, belongs to it."""
        with self.grouped():
            if not self._begun:
                fcntl.flock(self._gate, fcntl.LOCK_EX)
                self._begun = True
                self._connection.execute("BEGIN IMMEDIATE")
            yield self._connection

    def read(self, query: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """The rows that a query finds, as last made durable."""
        with self._mutex:
            try:
                return self._connection.execute(query, values).fetchall()
            except sqlite3.OperationalError as error:
                raise _explained(self.path, error) from error

    def version(self) -> tuple[int, int]:
        """Another than before if anybody wrote meanwhile; to ask costs less than to look."""
        ((others,),) = self.read("PRAGMA data_version")
        return others, self._connection.total_changes

    def now(self) -> float:
        """The host's clock: seconds since it started."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def close(self) -> None:
        """Let go of the file."""
        with self._mutex:
            if self._gate >= 0:
                self._connection.close()
                os.close(self._gate)
                self._gate = -1

    def drop(self) -> None:
        """Remove the file."""
        self.close()
        for suffix in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.unlink(f"{self.path}{suffix}")
        with suppress(FileNotFoundError):
            os.unlink(self.path.with_suffix(".lock"))


def rows_of(tables: sqlite3.Connection, query: str, names: Iterable[str]) -> list[tuple[Any, ...]]:
    """The rows that a query finds for many names, which stand where it has `{}`.

    >>> rows_of(sqlite3.connect(":memory:"), "SELECT 'b' IN ({})", "abc")
    [(1,)]
    """
    found: list[tuple[Any, ...]] = []
    left = list(names)
    for first in range(0, len(left), _PIECE):
        piece = left[first : first + _PIECE]
        # A few lengths, so that SQLite has to understand the query a few times only.
        room = 1 << (len(piece) - 1).bit_length()
        piece += piece[-1:] * (room - len(piece))
        found += tables.execute(query.format(",".join("?" * room)), piece)
    return found


def boot() -> str:
    """Which start of this host it is: clocks of another are of no use."""
    return _BOOT.read_text().strip() if _BOOT.exists() else ""


def _explained(path: Path, error: sqlite3.OperationalError) -> Exception:
    text = str(error)
    if "full" in text or "disk I/O" in text:
        return StoreError(f"{path} cannot be written ({text}); make room on its disk, then resume the job")
    if "no such table" in text:
        return JobError(f"{path} holds no job, or one that was deleted ({text})")
    if "readonly" in text:
        return StoreError(f"{path} cannot be written: {text}")
    return error


def _refuse_network(folder: Path) -> None:
    """Locks of SQLite cannot be trusted between hosts."""
    kind = _file_system(folder)
    if kind in _NETWORK:
        raise StoreError(
            f"{folder} is on a network file system ({kind}), where the embedded queue and ledger "
            "are not safe; use a local disk, or a Redis ledger (ledger='redis://...')"
        )


def _file_system(folder: Path) -> str:
    """The type of the file system a folder is on; empty where the system does not tell."""
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return ""
    best, kind = "", ""
    path = os.path.realpath(folder)
    for line in lines:
        before, _, after = line.partition(" - ")
        mount = before.split(" ")[4].replace("\\040", " ")
        inside = path == mount or path.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best):
            best, kind = mount, after.split(" ")[0]
    return kind
