"""The parts of a job, opened from its address."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from linnet.errors import AddressError, MissingTileError
from linnet.io.places import path_of
from linnet.workers.address import Address
from linnet.workers.embedded import Database, EmbeddedLedger, EmbeddedQueue
from linnet.workers.ledger import Ledger
from linnet.workers.queue import Queue
from linnet.workers.spec import JobSpec, folder_of, spec_key
from linnet.workers.store import Store, open_store


@dataclass(frozen=True, slots=True)
class Parts:
    """Store, ledger and queue of one job."""

    address: Address
    store: Store
    ledger: Ledger
    queue: Queue
    identity: str = ""
    """Of the job, which no other one has."""

    @property
    def folder(self) -> str:
        """Where the job has its tiles in the store."""
        return folder_of(self.address.job, self.identity)

    def close(self) -> None:
        """Let go of connections and files."""
        self.queue.close()
        self.ledger.close()
        self.store.close()


def open_parts(
    address: Address | str,
    *,
    silence: float = 5.0,
    create: bool = False,
    identity: str | None = None,
    store: Store | None = None,
) -> Parts:
    """The parts of a job, of one that is there or (`create`) of one to be made.

    `silence` is how many seconds a worker may not be heard of before it is taken for dead; `identity` that of
    the job, by default as it is stored; `store` its store, if that is open already.
    """
    address = Address.parse(address)
    store = open_store(address.store) if store is None else store
    identity = _spec(store, address).identity if identity is None else identity
    file = board(address) if address.ledger is None else None
    if file is not None:
        if create:
            file.parent.mkdir(parents=True, exist_ok=True)
        try:
            database = Database(file, create=create)
        except FileNotFoundError:
            raise AddressError(
                f"there is no job {address.job!r} in {address.store}; was it deleted?"
            ) from None
        ledger: Ledger = EmbeddedLedger(database, identity=identity, silence=silence)
        if address.queue is None:
            return Parts(address, store, ledger, EmbeddedQueue(database), identity)
    else:
        from linnet.workers.remote import open_ledger

        assert address.ledger is not None
        ledger = open_ledger(address.ledger, address.job, identity, silence=silence)
    from linnet.workers.remote import open_queue

    place = address.queue or address.ledger
    assert place is not None
    return Parts(address, store, ledger, open_queue(place, address.job, identity), identity)


def reopened(address: Address | str, *, create: bool = True) -> tuple[Parts, JobSpec]:
    """The parts of a job that is stored, and the job.

    Its ledger may be lost: then it is made, empty, unless `create` says that this is for others to do.
    """
    address = Address.parse(address)
    store = open_store(address.store)
    try:
        spec = _spec(store, address)
        silence = spec.options.lease
        return open_parts(address, silence=silence, create=create, identity=spec.identity, store=store), spec
    except BaseException:
        store.close()
        raise


def _spec(store: Store, address: Address) -> JobSpec:
    try:
        return JobSpec.from_bytes(memoryview(store.get(spec_key(address.job))))
    except MissingTileError:
        raise AddressError(f"there is no job {address.job!r} in {store.url}; was it deleted?") from None


def board(address: Address) -> Path:
    """Where the embedded queue and ledger are: beside the tiles, in a directory of this host."""
    scheme = urlsplit(address.store).scheme if "://" in address.store else "file"
    if scheme != "file":
        raise AddressError(
            f"tiles in {scheme}:// need a ledger that all workers reach: give ledger='redis://...', "
            "or a local directory as the store"
        )
    folder = path_of(address.store) if "://" in address.store else address.store
    return Path(folder) / ".boards" / f"{address.job}.sqlite"
