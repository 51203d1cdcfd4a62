"""One SQLite file for the queue and the ledger of a job, shared by the processes of one host.

It survives the death of any process, between any two instructions; power loss may take the last
moments with it (write-ahead log, synchronous NORMAL). Writers take turns at a lock of the system
(`flock`), which wakes the next one at once and is given back when a process is killed: SQLite alone
would make them sleep and ask again. The clock is that of the host since it started, so that a worker
with a wrong wall clock, or a wall clock that is set, ends no lease. When the host is started anew it goes on
from the latest time in the database; then all workers of before are gone, and their leases over.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager, nullcontext, suppress
from operator import methodcaller
from pathlib import Path
from typing import Any

from linnet.errors import DamagedLedgerError, JobError, StoreError
from linnet.workers.timeouts import is_limited, seconds_left

_NETWORK = {
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "lustre", "gpfs", "beegfs", "glusterfs",
    "orangefs", "fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "fuse.gcsfuse", "fuse.rclone", "fuse.ceph",
    "fuse.juicefs",
}  # fmt: skip
_PIECE = 512
"""Names in one query."""
_TIMES = (
    ("workers", "SELECT max(beat) FROM workers"),
    ("tasks", "SELECT max(max(since, began)) FROM tasks"),
    ("garbage", "SELECT max(since) FROM garbage"),
    ("job", "SELECT max(max(first, last)) FROM job"),
)
"""Where times are."""
_OVER = (("workers", "UPDATE workers SET gone = 2 WHERE gone = 0"), ("queue", "UPDATE queue SET ends = 0"))
"""What is so when the host was started anew."""
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_LOCKS = Path("/proc/locks")
_PAUSES = (0.0005, 0.02)
"""Seconds between tries to get the lock, where somebody waits for so long only; at first and at last."""
_NO_LIMIT = nullcontext()


class HeldLedgerError(StoreError):
    """A process has the lock of the file, and does not give it back."""


class Database:
    """A database and its lock; may be used from several threads."""

    def __init__(self, path: str | os.PathLike[str], *, create: bool = False) -> None:
        self.path: Path = Path(path).absolute()
        if not create and not self.path.exists():
            raise FileNotFoundError(str(self.path))
        _refuse_network(self.path.parent)
        self._mutex = threading.RLock()
        self._depth = 0
        self._begun = False
        self._ahead = 0.0
        """Seconds by which the clock is ahead of the host's."""
        self._damage: sqlite3.DatabaseError | None = None
        self._schemas: list[str] = []
        self._open(create)

    def _open(self, create: bool) -> None:
        """Open the file and its lock."""
        try:
            made = os.O_CREAT if create else 0
            self._gate = os.open(self.path.with_suffix(".lock"), os.O_RDWR | made | os.O_CLOEXEC, 0o600)
            self._lock_gate()
            try:
                self._connection = self._connected(create)
                self._prepare()
            except sqlite3.DatabaseError as error:
                if not _is_damage(error):
                    raise
                self._damage = error  # whoever asks for anything is told so
            finally:
                fcntl.flock(self._gate, fcntl.LOCK_UN)
            self._file = os.stat(self.path)
        except (FileNotFoundError, HeldLedgerError):
            raise  # deleted a moment ago
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"{self.path} cannot be opened: {error}; is the directory writable?") from error

    def _connected(self, create: bool) -> sqlite3.Connection:
        made = sqlite3.connect(
            f"{self.path.as_uri()}?mode={'rwc' if create else 'rw'}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=60,
            cached_statements=256,
        )
        # What is no text comes through, so that it can be thrown away.
        made.text_factory = methodcaller("decode", "utf-8", "surrogateescape")
        return made

    def require(self, schema: str) -> None:
        """Have these tables, in this file and in one that takes its place."""
        self._schemas.append(schema)
        if self._damage is None:
            with self.writing() as tables:
                _make(tables, schema)

    def is_gone(self) -> bool:
        """Whether somebody removed the file, or put another one there."""
        try:
            return not os.path.samestat(os.stat(self.path), self._file)
        except FileNotFoundError:
            return True

    def begin_anew_if_lost(self) -> None:
        """Begin a new file, if this one is gone or damaged; a damaged one is kept beside it."""
        with self._mutex:
            gone = self.is_gone()
            if not gone and self._damage is None:
                return
            self._connection.close()
            os.close(self._gate)
            if not gone:
                for suffix in ("-wal", "-shm"):
                    with suppress(FileNotFoundError):
                        os.unlink(f"{self.path}{suffix}")
                os.replace(self.path, f"{self.path}.damaged")
            self._damage = None
            self._open(create=True)
            for schema in self._schemas:
                with self.writing() as tables:
                    _make(tables, schema)

    def check(self) -> None:
        """Refuse to be used when it was closed, or found damaged."""
        if self._gate < 0:
            raise JobError(f"{self.path} was closed, or its job deleted; ln.attach(address) opens it again")
        if self._damage is not None:
            raise _damaged(self.path, self._damage)

    def _prepare(self) -> None:
        run = self._connection.execute
        run("PRAGMA journal_mode=WAL")
        run("PRAGMA synchronous=NORMAL")
        run("PRAGMA temp_store=MEMORY")
        run("CREATE TABLE IF NOT EXISTS clock (boot TEXT NOT NULL, ahead REAL NOT NULL)")
        known = run("SELECT boot, ahead FROM clock").fetchone()
        if known is None:
            run("INSERT INTO clock VALUES (?, 0)", (boot(),))
        elif known[0] == boot():
            self._ahead = known[1]
        else:
            self._host_started_anew()

    def _host_started_anew(self) -> None:
        """Let time go on from where it was, with nobody at work."""
        run = self._connection.execute
        there = {name for (name,) in run("SELECT name FROM sqlite_master WHERE type = 'table'")}
        times = [run(query).fetchone()[0] for table, query in _TIMES if table in there]
        self._ahead = max((each for each in times if each is not None), default=0.0) - uptime()
        run("BEGIN IMMEDIATE")
        for table, change in _OVER:
            if table in there:
                run(change)
        run("UPDATE clock SET boot = ?, ahead = ?", (boot(), self._ahead))
        run("COMMIT")

    @contextmanager
    def grouped(self) -> Generator[None]:
        """What is written inside is one transaction, which begins when the first of it is."""
        with self._mutex:
            self.check()
            self._depth += 1
            try:
                yield
                if self._depth == 1 and self._begun:
                    self._connection.execute("COMMIT")
            except BaseException as error:
                if self._depth == 1 and self._begun:
                    with suppress(sqlite3.Error):
                        self._connection.execute("ROLLBACK")
                if self._depth == 1 and isinstance(error, sqlite3.DatabaseError):
                    raise self._explained(error) from error
                raise
            finally:
                self._depth -= 1
                if self._begun and not self._depth:
                    self._begun = False
                    fcntl.flock(self._gate, fcntl.LOCK_UN)

    @contextmanager
    def writing(self) -> Generator[sqlite3.Connection]:
        """A transaction; one inside another, or inside a group, belongs to it.

        Writers wait for their turn as long as it takes, unless they said how long they would (`within`).
        """
        with self._entered() if is_limited() else _NO_LIMIT, self.grouped():
            if not self._begun:
                fcntl.flock(self._gate, fcntl.LOCK_EX)
                self._begun = True
                self._connection.execute("BEGIN IMMEDIATE")
            yield self._connection

    @contextmanager
    def _entered(self) -> Generator[None]:
        """Have the lock of the file, or give up in time; other threads may read meanwhile."""
        pauses = _growing()
        while True:
            with self._mutex:
                self.check()
                if self._begun or self._try_gate():
                    try:
                        yield
                    finally:
                        if not self._begun:
                            fcntl.flock(self._gate, fcntl.LOCK_UN)
                    return
            self._pause(next(pauses))

    def _lock_gate(self) -> None:
        if not is_limited():
            fcntl.flock(self._gate, fcntl.LOCK_EX)
            return
        pauses = _growing()
        while not self._try_gate():
            self._pause(next(pauses))

    def _try_gate(self) -> bool:
        try:
            fcntl.flock(self._gate, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _pause(self, seconds: float) -> None:
        if seconds_left(seconds) < seconds:
            holder = _holder(self._gate)
            who = "a process" if holder is None else f"process {holder}"
            raise HeldLedgerError(
                f"{who} has the ledger of the job, {self.path}, and does not give it back: it was stopped, "
                "or hangs in a kernel; let it go on, or kill it"
            )
        time.sleep(seconds)

    def read(self, query: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """The rows that a query finds, as last made durable."""
        with self._mutex:
            self.check()
            try:
                return self._connection.execute(query, values).fetchall()
            except sqlite3.DatabaseError as error:
                raise self._explained(error) from error

    def _explained(self, error: sqlite3.DatabaseError) -> Exception:
        if _is_damage(error):
            self._damage = error
            return _damaged(self.path, error)
        return _explained(self.path, error)

    def version(self) -> tuple[int, int]:
        """Another than before if anybody wrote meanwhile; to ask costs less than to look."""
        ((others,),) = self.read("PRAGMA data_version")
        return others, self._connection.total_changes

    def now(self) -> float:
        """The host's clock: seconds since it started, and those that passed at work before."""
        return uptime() + self._ahead

    def close(self) -> None:
        """Let go of the file."""
        with self._mutex:
            if self._gate >= 0:
                self._connection.close()
                os.close(self._gate)
                self._gate = -1

    def drop(self) -> None:
        """Remove the file, unless another one lies there meanwhile: that is of another job.

        As long as this one is open, no other has its number.
        """
        with self._mutex:
            if self._gate < 0 or (self.path.exists() and self.is_gone()):
                self.close()
                return
            for suffix in ("", "-wal", "-shm", ".damaged"):
                with suppress(FileNotFoundError):
                    os.unlink(f"{self.path}{suffix}")
            with suppress(FileNotFoundError):
                os.unlink(self.path.with_suffix(".lock"))
            self.close()


def _growing() -> Generator[float]:
    pause, longest = _PAUSES
    while True:
        yield pause
        pause = min(2 * pause, longest)


def _holder(file: int) -> int | None:
    """The process that has the lock of a file, where the system tells."""
    with suppress(OSError):
        for line in _LOCKS.read_text().splitlines():
            _, kind, _, _, process, place, *_ = line.replace("-> ", "").split()
            if kind == "FLOCK" and place.endswith(f":{os.fstat(file).st_ino}"):
                return int(process)
    return None


def _make(tables: sqlite3.Connection, schema: str) -> None:
    for statement in filter(str.strip, schema.split(";")):
        tables.execute(statement)


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


def uptime() -> float:
    """Seconds since this host started."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def boot() -> str:
    """Which start of this host it is: clocks of another are of no use."""
    return _BOOT.read_text().strip() if _BOOT.exists() else ""


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    text = str(error)
    return any(words in text for words in ("malformed", "not a database", "file is encrypted"))


def _damaged(path: Path, error: sqlite3.DatabaseError) -> DamagedLedgerError:
    return DamagedLedgerError(
        f"{path}, which has the ledger and the queue of the job, is damaged ({error}): resume() sets it "
        "aside, and builds another one from the stored tiles"
    )


def _explained(path: Path, error: sqlite3.DatabaseError) -> Exception:
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
