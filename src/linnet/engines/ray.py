"""Ray as an engine: programs run on the nodes of a Ray cluster, each task where the plan wants it.

Tiles are objects in Ray's store, which all workers of a node read without a copy; Ray moves them between
nodes. Tasks are bound to nodes. Ray is told not to repeat tasks: where a node is lost, the rest is placed
again on those that are left.
"""

from __future__ import annotations

import os
import pickle
import time
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

from linnet.engines.driven.engine import Driven
from linnet.engines.driven.run import Ended
from linnet.engines.driven.tasks import Broken, Failed, Order, Report, attempt
from linnet.engines.reachable import RAY, reach, unreachable
from linnet.engines.remote_tiles import Lost
from linnet.errors import JobError, missing_extra
from linnet.planning.cluster import Node
from linnet.tiles import Tile, amount, count

_IN_STORE = 100 * 1024
"""Bytes from which Ray keeps a value in the stores of nodes; smaller ones travel with messages."""

_STALE = 1.0
"""Seconds after which a worker asks whether an order is still wanted."""
_NOTICE = 0.25
"""Seconds after an order was lost: Ray tells of its node a little later."""
_LOCATING = 2000
"""Milliseconds that looking up where tiles are may take."""


class Ray(Driven):
    """Runs programs on the nodes of a Ray cluster.

    Ray is used as it is if it was initialised in this process; otherwise it is connected to the cluster at
    `address` ("auto": one that runs on this machine), or started here with `workers` and a store of `memory`,
    until the engine is closed or let go of. `policy` says how tasks are placed: "auto" takes the cheapest
    plan, "engine" leaves it to Ray. `timeout` is how many seconds the cluster has to answer.
    """

    def __init__(
        self,
        workers: int | None = None,
        memory: float | str | None = None,
        *,
        address: str | None = None,
        policy: str = "auto",
        timeout: float = 10.0,
    ) -> None:
        super().__init__(policy)
        ray = _ray()
        self._own: weakref.finalize[[str, int], Ray] | None = None
        """Ends the connection that this engine made, and with it the cluster that it started."""
        if not ray.is_initialized():
            _start(address, None if workers is None else count(workers), memory, timeout)
            self._own = weakref.finalize(self, _end, _key_now(), os.getpid())
        elif address not in (None, "auto", ray.get_runtime_context().gcs_address):
            raise JobError(
                f"Ray is connected to {ray.get_runtime_context().gcs_address}, not to {address}; "
                "call ray.shutdown() first, or leave address= away"
            )
        self._cluster_key = _key_now()
        self._address: str = ray.get_runtime_context().gcs_address
        self._work = ray.remote(num_cpus=1, max_retries=0)(_work)
        self._keep = ray.remote(num_cpus=0, max_retries=0)(_keep)
        self._arrivals: dict[str, int] = {}

    @property
    def key(self) -> str:
        return self._cluster_key

    def _there(self, refs: Sequence[Any]) -> list[bool]:
        return _there(refs)

    def _gone(self) -> str:
        if _ray().is_initialized() and _key_now() == self._cluster_key:
            return ""
        return f"{self!r} (Ray was shut down)"

    def moved(self) -> list[int]:
        """Bytes of tiles that came to each node from other nodes, since this was asked last.

        Where Ray had copies of each tile is looked up when the tile is let go of, or when a run is over.
        Tiles under 100 KB travel with messages and are not counted.
        """
        with self._lock:
            arrivals, self._arrivals = self._arrivals, {}
        return [arrivals.get(name, 0) for name in _nodes()]

    def _pickled(self, code: object) -> bytes:
        return _ray().cloudpickle.dumps(code)

    def _nodes(self) -> dict[str, Node]:
        return _nodes()

    def _crew(self, job: str, brief: bytes, nodes: dict[str, Node]) -> _Crew:
        return _Crew(self._work, self._keep, job, brief, self.key, nodes, self._came)

    def _came(self, node: str, size: int) -> None:
        with self._lock:
            self._arrivals[node] = self._arrivals.get(node, 0) + size

    def _shut_down(self) -> None:
        if self._own is not None:
            self._own()

    def __repr__(self) -> str:
        return f"Ray({self._address!r}, policy={self.policy!r})"


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise missing_extra('engine "ray"', "ray", "ray") from error
    return ray


def _key_now() -> str:
    """What tells the cluster that Ray is connected to, and this connection, from others."""
    context = _ray().get_runtime_context()
    return f"ray {context.gcs_address} {context.get_job_id()}"


def _end(key: str, process: int) -> None:
    """Shut Ray down; not if somebody did before, and perhaps started it anew, nor in a forked child."""
    ray = _ray()
    if os.getpid() == process and ray.is_initialized() and _key_now() == key:
        ray.shutdown()


def _start(address: str | None, workers: int | None, memory: float | str | None, timeout: float) -> None:
    ray = _ray()
    if address is not None:
        if ":" in address:  # else a word, such as "auto"
            reach("ray", address, timeout, RAY, "ray start --head")
        try:
            ray.init(address=address, logging_level="WARNING", log_to_driver=False)
        except ConnectionError as error:
            raise unreachable("ray", address, error, "ray start --head") from error
        return
    store = None if memory is None else amount(memory)
    ray.init(
        address="local",  # else a cluster that runs on this machine for somebody else would be taken
        num_cpus=workers,
        object_store_memory=store,
        include_dashboard=False,
        logging_level="WARNING",
        log_to_driver=False,
    )


def _nodes() -> dict[str, Node]:
    """Nodes with workers that are alive, by their names in Ray, in an order that stays."""
    found: dict[str, Node] = {}
    for each in sorted(_ray().nodes(), key=lambda node: node["NodeID"]):
        resources = each["Resources"]
        if each["Alive"] and resources.get("CPU", 0) >= 1:
            store = int(resources.get("object_store_memory", 0)) or None
            found[each["NodeID"]] = Node(int(resources["CPU"]), store)
    return found


def _locations(refs: Sequence[Any]) -> dict[Any, dict[str, Any]]:
    """Where Ray has copies of objects, and how large they are."""
    ray = _ray()
    if not refs:
        return {}
    try:
        return ray.experimental.get_object_locations(list(refs), timeout_ms=_LOCATING)
    except ray.exceptions.GetTimeoutError:  # a count is not worth waiting for
        return {ref: {"node_ids": [], "object_size": 0} for ref in refs}


def _there(refs: Sequence[Any]) -> list[bool]:
    """Whether objects are on a node that is alive; small ones are with this process."""
    found, alive = _locations(refs), _nodes()
    return [
        (found[ref]["object_size"] or 0) < _IN_STORE or not alive.keys().isdisjoint(found[ref]["node_ids"])
        for ref in refs
    ]


class _Crew:
    """The nodes of a Ray cluster, for one run."""

    overwrites = False  # what is in the store of a node is read by all its workers

    def __init__(
        self, work: Any, keep: Any, job: str, brief: bytes, key: str, nodes: dict[str, Node], came: Any
    ) -> None:
        self.key = key
        self._ray = _ray()
        self._remote, self._keep, self._came = work, keep, came
        self.names = list(nodes)
        self.workers = [node.workers for node in nodes.values()]
        self._here = self._ray.get_runtime_context().get_node_id()
        self._job = f"{key} {job}"
        self._rounds = 0
        """How often orders were broken off."""
        self._brief = self._ray.put(brief)
        self._flying: dict[Any, tuple[int, list[Any]]] = {}
        self._copies: dict[Any, set[str]] = {}
        """Where each object was when it was last looked up."""
        self._missing: set[str] = set()
        """Objects that Ray could not find for an order, by name. The cluster may count a node that died as
        alive for half a minute, and all that is on it as there."""
        self._options: dict[tuple[int, int], Any] = {}

    def _pinned(self, node: int) -> dict[str, Any]:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        if node < 0:
            return {}
        return {"scheduling_strategy": NodeAffinitySchedulingStrategy(self.names[node], soft=False)}

    def put(self, tiles: list[Tile], node: int) -> list[Any]:
        if node < 0 or self.names[node] == self._here:
            refs = [self._ray.put(tile) for tile in tiles]
        else:
            made = self._keep.options(num_returns=len(tiles), **self._pinned(node)).remote(*tiles)
            refs = [made] if len(tiles) == 1 else made
        self._copies.update((ref, {self._here if node < 0 else self.names[node]}) for ref in refs)
        return refs

    def submit(self, number: int, node: int, order: Order, operands: list[Any]) -> list[Any]:
        returns = 1 + len(order.kept)
        remote = self._options.get((node, returns))
        if remote is None:
            remote = self._remote.options(num_returns=returns, **self._pinned(node))
            self._options[node, returns] = remote
        for ref in operands:
            if ref not in self._copies:  # it was there before this run
                found = _locations([ref]).get(ref)
                self._copies[ref] = set(found["node_ids"]) if found else set()
        sent = _Sent(self._job, self._rounds, time.time(), pickle.dumps(order))
        made = remote.remote(sent, [self._brief], *operands)
        told, *parcels = [made] if returns == 1 else made
        self._flying[told] = number, parcels
        self._copies.update((ref, set()) for ref in parcels)  # where, is told when the order ends
        return parcels

    def ended(self, timeout: float) -> list[Ended]:
        waiting = list(self._flying)
        if not waiting:  # those that are left wait for one that failed
            return []
        ready, rest = self._ray.wait(waiting, timeout=timeout)
        if ready and rest:
            ready += self._ray.wait(rest, num_returns=len(rest), timeout=0)[0]
        ends = [end for ref in ready if (end := self._opened(ref)) is not None]
        if any(isinstance(end.error, Lost) for end in ends):
            time.sleep(_NOTICE)
        return ends

    def _opened(self, told: Any) -> Ended | None:
        number, parcels = self._flying.pop(told)
        try:
            outcome = self._ray.get(told)
        except self._ray.exceptions.RayError as error:
            self._missing.update(self._not_found(error))
            return Ended(number, None, Lost(str(error).strip()))
        if outcome is None:  # it waited for one that failed, which is told or will be
            return None
        outcome = pickle.loads(outcome)
        if isinstance(outcome, Failed):
            return Ended(number, None, outcome)
        self._copies.update((ref, {outcome.node}) for ref in parcels)
        return Ended(number, outcome, None)

    def _not_found(self, error: Exception) -> list[str]:
        """The object that could not be found, if that is what went wrong."""
        cause: Any = getattr(error, "cause", error)  # an order that waited for it has an error of its own
        return [cause.object_ref_hex] if isinstance(cause, self._ray.exceptions.ObjectLostError) else []

    def fetch(self, refs: Sequence[Any]) -> list[Any]:
        try:
            return self._ray.get(list(refs))
        except self._ray.exceptions.RayError as error:
            self._missing.update(self._not_found(error))
            raise Lost(
                f"tiles are not on the Ray cluster any more ({str(error).strip()}); compute the array again"
            ) from error

    def release(self, refs: Sequence[Any]) -> None:
        self._count(refs)
        for ref in refs:
            self._copies.pop(ref, None)

    def finish(self) -> None:
        """The run is over: count what came to nodes with tiles that stay."""
        self._count([ref for ref, known in self._copies.items() if known])  # others never came to be
        self._copies.clear()

    def _count(self, refs: Sequence[Any]) -> None:
        for ref, found in _locations(refs).items():
            known = self._copies.get(ref)
            size = found["object_size"] or 0
            if known is not None and size >= _IN_STORE:
                for node in set(found["node_ids"]) - known:
                    self._came(node, size)

    def cancel(self) -> None:
        # Not by `ray.cancel`: where it meets a task that ends just then, Ray ends this process.
        if self._flying:
            self._rounds += 1
            _kv()._internal_kv_put(_key(self._job), str(self._rounds).encode(), overwrite=True)
        self._flying.clear()

    def there(self, refs: Sequence[Any]) -> list[bool]:
        found = zip(refs, _there(refs), strict=True)
        return [there and ref.hex() not in self._missing for ref, there in found]

    def gone(self) -> set[int]:
        alive = _nodes()
        for name, node in alive.items():
            if name not in self.names:
                self.names.append(name)
                self.workers.append(node.workers)
        return {number for number, name in enumerate(self.names) if name not in alive}


class _Sent(NamedTuple):
    """An order on its way."""

    job: str
    round: int
    at: float
    order: bytes

    def broken_off(self) -> bool:
        """Whether nobody waits for it any more; looked up only where it had to wait long."""
        if time.time() < self.at + _STALE:
            return False
        known = _kv()._internal_kv_get(_key(self.job))
        return known is not None and int(known) > self.round


def _work(sent: _Sent, brief: list[Any], *values: Any) -> Any:
    """An order, on a worker of Ray."""
    import ray

    order = pickle.loads(sent.order)
    if sent.broken_off():
        outcome, parcels = None, [Broken()] * len(order.kept)
    else:
        outcome, parcels = attempt(sent.job, lambda: ray.get(brief[0]), order, values)
    if isinstance(outcome, Report):
        outcome = outcome._replace(node=ray.get_runtime_context().get_node_id())
    told = None if outcome is None else pickle.dumps(outcome)
    return (told, *parcels) if parcels else told


def _kv() -> Any:
    """The few bytes that all workers of a cluster share."""
    from ray.experimental import internal_kv

    return internal_kv


def _key(job: str) -> bytes:
    return f"linnet: broken off {job}".encode()


def _keep(*tiles: Tile) -> Any:
    """Tiles, on the node where this runs."""
    return tiles[0] if len(tiles) == 1 else tiles
