"""A bag's folder: its specification, its records and its rows in SQLite, and the files of its attempts.

bag.sqlite      specification, jobs, records, accepted rows
making          held by the process that makes the bag
lock            held by the controller that runs the bag; those who look whether one does share it
heartbeat       touched by it; servers leave when it grows old
inbox/, cancel  what others ask of it; refused/ holds what was no request
servers/, attempts/, done/, checkpoints/, inputs/    see `linnet.fleet.agent`
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import random
from typing import IO, Any, cast

from linnet.errors import FileMissingError, FormatError, InputError, JobError
from linnet.fleet.records import Record, from_text, to_text

FORMAT = 1
_SCHEMA = """
create table if not exists meta (key text primary key, value text not null);
create table if not exists jobs (number integer primary key, parameters text not null);
create table if not exists records (number integer primary key, text text not null);
create table if not exists rows (job integer primary key, attempt integer not null, result text);
create table if not exists taken (name text primary key);
"""
_FOLDERS = ("servers", "attempts", "done", "checkpoints", "inputs", "inbox")


class Storage:
    """One bag's folder."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder: Path = Path(folder).resolve()
        self._database: sqlite3.Connection | None = None
        self._lock: IO[str] | None = None

    @property
    def exists(self) -> bool:
        """Whether there is a bag."""
        return (self.folder / "bag.sqlite").exists()

    @property
    def database(self) -> sqlite3.Connection:
        """Opened when first used."""
        if self._database is None:
            if not self.exists:
                raise FileMissingError(f"there is no bag in {self.folder}")
            try:
                self._database = sqlite3.connect(
                    self.folder / "bag.sqlite", isolation_level=None, timeout=60, check_same_thread=False
                )
                self._database.execute("select 1 from meta")
            except sqlite3.DatabaseError as error:
                raise FormatError(f"{self.folder / 'bag.sqlite'} is no bag: {error}") from error
        return self._database

    def create(self, specification: Mapping[str, Any], jobs: Sequence[Mapping[str, Any]]) -> None:
        """Make the folder, within `making`. Whoever is killed meanwhile leaves no half bag: its file gets its
        name last.
        """
        for name in _FOLDERS:
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        part = self.folder / "bag.sqlite.part"
        for ending in ("", "-wal", "-shm"):  # of one that was killed
            Path(f"{part}{ending}").unlink(missing_ok=True)
        database = sqlite3.connect(part, isolation_level=None)
        # The mode stays with the file. Who opens it does not set it: that needs a moment without readers.
        database.execute("pragma journal_mode=wal")
        database.executescript(_SCHEMA)
        database.execute("begin")
        database.execute("insert into meta values ('format', ?)", (str(FORMAT),))
        database.execute("insert into meta values ('id', ?)", (os.urandom(6).hex(),))
        database.execute("insert into meta values ('specification', ?)", (json.dumps(specification),))
        database.executemany(
            "insert into jobs values (?, ?)", ((i, json.dumps(each)) for i, each in enumerate(jobs))
        )
        database.execute("commit")
        database.close()
        os.replace(part, self.folder / "bag.sqlite")

    @contextmanager
    def making(self) -> Generator[None]:
        """One process at a time makes the bag; the others wait, and find it made."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.folder / "making", "a", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    @contextmanager
    def snapshot(self) -> Generator[Storage]:
        """The bag at one moment: what is read from it belongs together, whatever is written meanwhile."""
        seen = Storage(self.folder)
        try:
            seen.database.execute("begin")
            yield seen
        finally:
            seen.close()

    # ---- what is stored

    def get(self, key: str) -> str | None:
        """A value by its key."""
        found = next(self._read("select value from meta where key = ?", key), None)
        return None if found is None else str(found[0])

    def put(self, values: Mapping[str, str]) -> None:
        """Store values by their keys, all or none."""
        with self.transaction() as database:
            database.executemany("insert or replace into meta values (?, ?)", values.items())

    def jobs(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Numbers and parameters of all jobs."""
        for number, text in self._read("select number, parameters from jobs order by number"):
            yield int(number), json.loads(text)

    def parameters(self, job: int) -> dict[str, Any]:
        """Of one job."""
        (text,) = next(self._read("select parameters from jobs where number = ?", job))
        return json.loads(text)

    def count(self) -> int:
        """How many jobs there are."""
        return int(next(self._read("select count(*) from jobs"))[0])

    def records(self) -> Iterator[Record]:
        """What happened and was decided, in order."""
        for (text,) in self._read("select text from records order by number"):
            yield from_text(text)

    def results(self) -> dict[int, Any]:
        """The accepted result of each job that has one."""
        found = self._read("select job, result from rows")
        return {int(job): None if text is None else json.loads(text) for job, text in found}

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection]:
        """All that is written within is there afterwards, or nothing of it."""
        with self._told():
            self.database.execute("begin immediate")
            try:
                yield self.database
                self.database.execute("commit")
            except BaseException:
                if self.database.in_transaction:  # SQLite rolls back by itself when the disk is full
                    self.database.execute("rollback")
                raise

    @contextmanager
    def _told(self) -> Generator[None]:
        """What SQLite cannot do is said in the bag's words."""
        path = self.folder / "bag.sqlite"
        try:
            yield
        except sqlite3.OperationalError as error:
            raise JobError(
                f"{path} cannot be used now: {error}; once it can, `linnet bag resume` goes on where it was"
            ) from error
        except sqlite3.DatabaseError as error:
            raise FormatError(f"{path} is damaged: {error}; nothing was changed") from error

    def _read(self, question: str, *given: object) -> Iterator[tuple[Any, ...]]:
        """Rows of the database."""
        with self._told():
            yield from self.database.execute(question, given)

    def write(
        self,
        records: Iterable[Record],
        rows: Iterable[tuple[int, int, str | None]] = (),
        jobs: Iterable[tuple[int, Mapping[str, Any]]] = (),
        taken: Iterable[str] = (),
    ) -> None:
        """Store what happened, what was decided about it, and rows that were accepted, all at once."""
        with self.transaction() as database:
            database.executemany("insert or ignore into taken values (?)", ((each,) for each in taken))
            database.executemany(
                "insert or ignore into jobs values (?, ?)", ((i, json.dumps(each)) for i, each in jobs)
            )
            database.executemany(
                "insert into records (text) values (?)", ((to_text(each),) for each in records)
            )
            database.executemany("insert or ignore into rows values (?, ?, ?)", rows)

    def is_taken(self, name: str) -> bool:
        """Whether a message of the inbox was taken already."""
        return next(self._read("select 1 from taken where name = ?", name), None) is not None

    # ---- one controller at a time

    def lock(self) -> None:
        """Become the controller of this bag, or say that there is one."""
        file = open(self.folder / "lock", "a+", encoding="utf-8")  # noqa: SIM115 # kept open: it is the lock
        while not _held(file, fcntl.LOCK_EX):
            if _held(file, fcntl.LOCK_SH):  # only held by those who look whether the bag is run: soon free
                fcntl.flock(file, fcntl.LOCK_UN)
                time.sleep(random() / 1000)
                continue
            file.seek(0)
            who = file.read().strip() or "another process"
            file.close()
            raise JobError(
                f"the bag in {self.folder} is run by {who} already; look at it with "
                f"`linnet bag status {self.folder}`"
            ) from None
        file.truncate(0)
        file.write(f"process {os.getpid()}")
        file.flush()
        self._lock = file

    def unlock(self) -> None:
        """Let others be its controller."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def is_run(self) -> bool:
        """Whether some process runs this bag now."""
        if self._lock is not None:
            return True
        try:
            with open(self.folder / "lock", encoding="utf-8") as file:
                return not _held(file, fcntl.LOCK_SH)
        except FileNotFoundError:
            return False

    def beat(self) -> None:
        """Tell servers that there is a controller."""
        (self.folder / "heartbeat").touch()

    # ---- what others ask of the controller

    def send(self, jobs: Sequence[Mapping[str, Any]]) -> None:
        """Ask for further jobs."""
        name = f"{time.time_ns():020d}-{os.urandom(4).hex()}"
        part = self.folder / "inbox" / f".{name}"
        part.write_text(json.dumps(list(jobs)), encoding="utf-8")
        part.rename(self.folder / "inbox" / name)

    def inbox(self) -> list[Path]:
        """Messages, the oldest first."""
        return sorted(path for path in (self.folder / "inbox").iterdir() if path.name[0] != ".")

    def attempt(self, number: int) -> Path:
        """The folder of an attempt."""
        return self.folder / "attempts" / str(number)

    def close(self) -> None:
        """Let go of files."""
        self.unlock()
        if self._database is not None:
            self._database.close()
            self._database = None


def _held(file: IO[str], kind: int) -> bool:
    """Take a lock of this kind, if that can be done at once; whether it could."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def check_format(storage: Storage) -> dict[str, Any]:
    """The specification of a bag that this version can read."""
    found = storage.get("format")
    if found != str(FORMAT):
        raise InputError(
            f"the bag in {storage.folder} has format {found}; this version of Linnet reads format {FORMAT}"
        )
    try:
        said: object = json.loads(storage.get("specification") or "")
        if not isinstance(said, dict):
            raise TypeError("names with values are expected")
    except (ValueError, TypeError, RecursionError) as error:
        raise FormatError(
            f"{storage.folder / 'bag.sqlite'} is damaged: its specification: {error}"
        ) from error
    return cast("dict[str, Any]", said)
