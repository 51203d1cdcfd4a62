"""Dask as an engine: programs run on the workers of any Dask cluster, each task where the plan wants it.

Tiles are futures of Dask, and Dask moves them between its workers. Tasks are pinned to workers, so nothing is
stolen. Workers report what they did through Dask's own events: no result has to be fetched to know that.
"""

from __future__ import annotations

import atexit
import itertools
import os
import pickle
import queue
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from linnet.engines.dask_clients import close, found_client
from linnet.engines.driven.engine import Driven
from linnet.engines.driven.run import Ended
from linnet.engines.driven.tasks import Failed, Order, Report, attempt
from linnet.engines.remote_tiles import Lost
from linnet.errors import InputError
from linnet.planning.choosing import check_policy
from linnet.planning.cluster import Node
from linnet.tiles import Tile, count

if TYPE_CHECKING:
    from distributed import Client

_INLINE = 1 << 13
"""Bytes of a brief that go with each order; longer ones are put on every worker once."""
_engines = itertools.count(1)


class Dask(Driven):
    """Runs programs on the workers of a Dask cluster.

    `client` is a `distributed.Client`, `address` that of a scheduler. With neither, the client in use is
    taken, or a cluster is started on this machine, with `workers` processes of `memory` each; it ends
    when the engine is closed or let go of. A worker of Dask is a node of the plan, its threads are the node's
    workers. `policy` says how tasks are placed: "auto" takes the cheapest plan, "engine" leaves it to Dask.
    `timeout` is how many seconds a scheduler has to answer.

    A cluster that is started here has processes in which Python runs the main script again: in a script, this
    has to stand under `if __name__ == "__main__":`.

    While a run goes on, Dask's active memory manager rests: it would drop copies that later tasks read.
    """

    def __init__(
        self,
        workers: int | None = None,
        memory: float | str | None = None,
        *,
        client: Client | None = None,
        address: str | None = None,
        policy: str = "auto",
        timeout: float = 10.0,
    ) -> None:
        check_policy(policy, "engine")
        if client is not None and address is not None:
            raise InputError(f"client={client!r} and address={address!r} were given; give one of them")
        self.client: Any
        self.client, own = found_client(
            client, address, None if workers is None else count(workers), memory, timeout
        )
        super().__init__(policy)
        self._address: str = self.client.scheduler.address
        self._seen: dict[str, int] = {}
        self._runs, self._managed = 0, False
        self._name = f"linnet-{self.client.id}-{next(_engines)}"
        self._inboxes: weakref.WeakValueDictionary[str, _Crew] = weakref.WeakValueDictionary()
        self.client.subscribe_topic(self._name, _listener(weakref.ref(self)))
        self._own: weakref.finalize[[Any, int], Dask] | None = None
        """Closes the client that this engine made, and the cluster that it started."""
        if own:
            self._own = weakref.finalize(self, close, self.client, os.getpid())
            self._own.atexit = False
            atexit.register(self._own)  # which comes before distributed's own

    @property
    def key(self) -> str:
        return f"dask {self.client.id}"

    def moved(self) -> list[int]:
        """Bytes of tiles that came to each worker from other workers, since this was asked last."""
        arrived: dict[str, int] = self.client.run(_arrived_here)
        counts = [arrived.get(address, 0) - self._seen.get(address, 0) for address in _nodes(self.client)]
        self._seen = arrived
        return counts

    def _pickled(self, code: object) -> bytes:
        import cloudpickle

        return cloudpickle.dumps(code)

    @contextmanager
    def _prepared(self) -> Iterator[None]:
        """The memory manager rests until the last run is over."""
        with self._lock:
            if not self._runs:
                self._managed = self.client.amm.running()
                if self._managed:
                    self.client.amm.stop()
            self._runs += 1
        try:
            yield
        finally:
            with self._lock:
                self._runs -= 1
                if self._managed and not self._runs:
                    self.client.amm.start()

    def _nodes(self) -> dict[str, Node]:
        return _nodes(self.client)

    def _crew(self, job: str, brief: bytes, nodes: dict[str, Node]) -> _Crew:
        crew = _Crew(self.client, self._name, f"{self._name}-{job}", brief, self.key, nodes)
        self._inboxes[crew.job] = crew
        return crew

    def _heard(self, event: tuple[float, dict[str, Any]]) -> None:
        """A worker reports; this runs on the thread of the client's event loop."""
        _, message = event
        crew = self._inboxes.get(message["job"])
        if crew is not None:
            crew.inbox.put((message["number"], message["outcome"]))

    def _there(self, refs: Sequence[Any]) -> list[bool]:
        return _there(refs)

    def _gone(self) -> str:
        status: str = self.client.status
        return f"{self!r} (its client is {status})" if status in ("closed", "closing") else ""

    def _shut_down(self) -> None:
        if self._own is not None:
            atexit.unregister(self._own)
            self._own()
        elif self.client.status == "running":
            self.client.unsubscribe_topic(self._name)

    def __repr__(self) -> str:
        return f"Dask({self._address!r}, policy={self.policy!r})"


def _listener(engine: weakref.ref[Dask]) -> Callable[[Any], None]:
    """What Dask calls when a worker reports; it must not keep the engine, with which its cluster ends."""

    def heard(event: Any) -> None:
        known = engine()
        if known is not None:
            known._heard(event)

    return heard


def _nodes(client: Any) -> dict[str, Node]:
    """Addresses of workers, each with the node it is, in an order that does not change between two looks."""
    known: dict[str, Any] = client.scheduler_info(n_workers=-1)["workers"]
    found = sorted(known.items(), key=lambda item: (str(item[1].get("name")), item[0]))
    if not found:
        client.wait_for_workers(1, timeout=30)
        return _nodes(client)
    return {address: Node(each["nthreads"], each["memory_limit"] or None) for address, each in found}


def _there(refs: Sequence[Any]) -> list[bool]:
    """Whether futures have not lost their values: Dask calls them cancelled then."""
    return [ref.status not in ("cancelled", "lost", "error") for ref in refs]


class _Crew:
    """The workers of a Dask cluster, for one run."""

    overwrites = True

    def __init__(
        self, client: Any, topic: str, job: str, brief: bytes, key: str, nodes: dict[str, Node]
    ) -> None:
        self.key, self.job = key, job
        self._client, self._topic = client, topic
        self.names = list(nodes)
        self.workers = [node.workers for node in nodes.values()]
        self.inbox: queue.SimpleQueue[tuple[int, bytes]] = queue.SimpleQueue()
        self._brief: Any = brief
        if len(brief) > _INLINE:
            self._brief = client.scatter(brief, broadcast=True, hash=False)
        self._direct = True
        self._flying: dict[int, list[Any]] = {}
        self._inputs = itertools.count()

    def put(self, tiles: list[Tile], node: int) -> list[Any]:
        where = None if node < 0 else [self.names[node]]
        named = {f"{self.job}-in-{next(self._inputs)}": tile for tile in tiles}
        try:
            return self._scattered(named, where)
        except OSError as error:
            if node in self.gone():
                raise Lost(f"{where}: {type(error).__name__}: {error}") from error
        self._direct = False  # workers cannot be reached from here, but the scheduler can
        return self._scattered(named, where)

    def _scattered(self, named: dict[str, Tile], where: list[str] | None) -> list[Any]:
        scattered = self._client.scatter(named, workers=where, direct=self._direct, timeout=10)
        return list(scattered.values())

    def submit(self, number: int, node: int, order: Order, operands: list[Any]) -> list[Any]:
        where = None if node < 0 else [self.names[node]]
        name = f"{self.job}-{number}"
        sent = pickle.dumps(order)
        made = self._client.submit(
            _work,
            self.job,
            number,
            self._topic,
            self._brief,
            sent,
            *operands,
            key=name,
            workers=where,
            pure=False,
        )
        self._flying[number] = [made]
        if len(order.kept) < 2:
            return [made] * len(order.kept)
        parts = [
            self._client.submit(_part, made, place, key=f"{name}-{place}", workers=where, pure=False)
            for place in range(len(order.kept))
        ]
        self._flying[number] += parts
        return parts

    def ended(self, timeout: float) -> list[Ended]:
        found: list[Ended] = []
        try:
            found.append(self._opened(*self.inbox.get(timeout=timeout)))
            while True:
                found.append(self._opened(*self.inbox.get_nowait()))
        except queue.Empty:
            pass
        if not found:
            found += [Ended(number, None, error) for number, error in self._broken()]
        for each in found:
            self._flying.pop(each.number, None)
        return found

    def _opened(self, number: int, outcome: bytes) -> Ended:
        told: Report | Failed = pickle.loads(outcome)
        return Ended(number, None, told) if isinstance(told, Failed) else Ended(number, told, None)

    def _broken(self) -> list[tuple[int, Exception]]:
        """Orders that ended without a word."""
        found: list[tuple[int, Exception]] = []
        for number, (made, *_) in self._flying.items():
            if made.status == "error":
                found.append((number, Lost(str(made.exception()))))
            elif made.status in ("lost", "cancelled"):
                found.append((number, Lost(f"Dask says {made.status}")))
        return found

    def fetch(self, refs: Sequence[Any]) -> list[Any]:
        from concurrent.futures import CancelledError

        try:
            return self._client.gather(list(refs), direct=True)
        except (CancelledError, OSError, KeyError) as error:
            raise Lost(
                f"tiles are not on the Dask cluster any more ({type(error).__name__}: {error}); "
                "compute the array again"
            ) from error

    def release(self, refs: Sequence[Any]) -> None:
        for ref in refs:
            ref.release()

    def cancel(self) -> None:
        flying = [future for futures in self._flying.values() for future in futures]
        self._flying.clear()
        if flying:
            self._client.cancel(flying, force=True)

    def finish(self) -> None:
        self._brief = b""  # a future, perhaps: whoever keeps tiles keeps this

    def there(self, refs: Sequence[Any]) -> list[bool]:
        return _there(refs)

    def gone(self) -> set[int]:
        alive = self._client.nthreads()
        for address, threads in alive.items():
            if address not in self.names:
                self.names.append(address)
                self.workers.append(threads)
        return {node for node, address in enumerate(self.names) if address not in alive}


def _work(job: str, number: int, topic: str, brief: bytes, sent: bytes, *values: Any) -> Any:
    """An order, on a worker of Dask."""
    from distributed import get_worker

    outcome, parcels = attempt(job, lambda: brief, pickle.loads(sent), values)
    worker = get_worker()
    _arrived(worker)
    if isinstance(outcome, Report):
        outcome = outcome._replace(node=worker.address)
    if outcome is not None:
        message = {"job": job, "number": number, "outcome": pickle.dumps(outcome)}
        worker.log_event(topic, message)
    return parcels[0] if len(parcels) == 1 else parcels


_counting = threading.Lock()


def _arrived(worker: Any) -> int:
    """Bytes of tiles that came to this worker from others, so far.

    Dask's log of transfers keeps the latest of them only: it is read at every order.
    """
    with _counting:
        total, last = getattr(worker, "linnet_arrived", (0, None))
        log = worker.transfer_incoming_log
        newest = log[-1] if log else None
        for entry in reversed(list(log)):
            if entry is last:
                break
            total += sum(size for key, size in entry["keys"].items() if str(key).startswith("linnet-"))
        worker.linnet_arrived = total, newest
    return total


def _arrived_here(dask_worker: Any) -> int:
    return _arrived(dask_worker)


def _part(parcels: list[Any], place: int) -> Any:
    """One of several results."""
    return parcels[place]
