"""The ranks of an MPI job as an engine: peers that exchange tiles, each after a plan it makes for itself."""

from __future__ import annotations

import atexit
import os
import platform
import signal
import socket
import sys
import threading
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from typing import Any, NoReturn

import numpy as np
import xxhash
from numpy.typing import DTypeLike, NDArray

from linnet.engines.driven.tiles import check_reach
from linnet.engines.engine import Outputs, check_inputs, check_out
from linnet.engines.lifetime import Lifetime
from linnet.engines.mpi import news
from linnet.engines.mpi.checkpoint import Checkpoint, forget, name_of
from linnet.engines.mpi.derived import check_memory, going_on
from linnet.engines.mpi.leftovers import clear_leftovers
from linnet.engines.mpi.orders import Order, Problem, code_of, packed_plan, packed_program
from linnet.engines.mpi.parts import Members
from linnet.engines.mpi.peers import Peers
from linnet.engines.mpi.root import Held, Root
from linnet.engines.mpi.root_part import RootPart
from linnet.engines.remote_tiles import RemoteTiles
from linnet.engines.run_events import JOBS
from linnet.engines.threads import available_cores
from linnet.errors import DISTRIBUTION, InputError, JobError
from linnet.events import Events, Sink
from linnet.planning.choosing import choose
from linnet.planning.cluster import Cluster, Node
from linnet.planning.plan import Plan
from linnet.planning.workload import Workload
from linnet.programs import BoundProgram
from linnet.tiles import Index, Tile, TiledArray, TileKey, amount, count, human

_lock = threading.Lock()
_root: tuple[Root, list[int]] | None = None


class MPI:
    """Runs bound programs on the ranks of an MPI job.

    Started by `mpiexec -n 4 python -m linnet run script.py`, the script runs on rank 0 with this engine. In
    a script that is started on all ranks, `ln.init("mpi")` returns on rank 0 only: the others work for it
    there, and end with it. Without `mpiexec` there is one rank, this process.
    """

    shares_memory = False
    deterministic = True

    def __init__(
        self,
        workers: int | None = None,
        memory: float | str | None = None,
        *,
        policy: object = "auto",
        checkpoint: str | os.PathLike[str] | None = None,
        every: float = 30.0,
    ) -> None:
        """`workers` is how many tasks each rank runs side by side (None: its share of the cores), `memory`
        what tiles may take on each rank, in bytes or as "2 GB"; a plan that needs more is refused.

        With `checkpoint`, a folder that all ranks share, outputs are written down as they are made, and
        `every` so many seconds all that is still needed. A job that was killed goes on from there when it is
        started again.
        """
        if workers is not None:
            workers = count(workers, instead="None for a share of the cores")
        if not isinstance(policy, str):
            raise InputError(
                f"policy={policy!r}: give the name of a policy; every rank makes the plan for itself, and "
                "knows those that come with Linnet"
            )
        self._root, cores = connected()
        self.memory: int | None = None if memory is None else amount(memory)
        self.policy = policy
        nodes = [Node(workers or each, self.memory) for each in cores]
        self.cluster: Cluster = Cluster(nodes)
        """The ranks, as plans see them."""
        self.workers: int = self.cluster.workers
        """Tasks that run side by side, on all ranks together."""
        self.checkpoint: str | None = None if checkpoint is None else os.path.abspath(checkpoint)
        self.every = every
        self._life = Lifetime()
        self._names: dict[str, int] = {}
        self._counting = threading.Lock()
        self._moved, self._given, self._peak = np.zeros((3, self.cluster.count), np.int64)

    def run(
        self,
        bound: BoundProgram,
        inputs: Mapping[str, TiledArray],
        *,
        out: Mapping[str, TiledArray] | None = None,
        events: Sink | None = None,
    ) -> Outputs:
        """Run every task of the program; see `Engine.run`.

        Results without a place in `out` stay with the ranks until somebody looks at them. Ctrl-C breaks the
        run off: no further task starts, and kernels in flight end unheard.
        """
        self._life.check()
        check_inputs(bound, inputs)
        check_out(bound, out or {})
        check_reach(bound, inputs)
        sink: Sink = Events() if events is None else events
        mine, held = self._split(inputs)
        homes = {name: np.array([ref.rank for ref in refs], np.int64) for name, refs in held.items()}
        problem = Problem(bound, _described(inputs), homes, self.cluster, self.policy)
        packed = packed_plan(problem)
        order = self._order(bound, sink, tuple(out or ()), held)
        if self.checkpoint is not None:
            order = self._to_go_on(order, packed, problem, mine, held)
        number = self._root.begin(order.packed(packed))
        try:
            derived = going_on(self._root.plans.get(packed, problem), order.stored, 0)
            check_memory(derived, self.memory)
            part = RootPart(self._root, number, derived, order, mine, out or {}, sink, self.every)
        except BaseException:
            self._root.stop(number)
            raise
        outputs = part.outcome(_present(part, inputs, held))
        self._count(part)
        return outputs.kept_by(self._life)

    def plan(self, bound: BoundProgram, inputs: Mapping[str, TiledArray]) -> Plan:
        """The plan that a run of this program on these inputs follows."""
        self._life.check()
        homes = {
            TileKey(name, index): ref.rank
            for name, refs in self._split(inputs)[1].items()
            for index, ref in zip(inputs[name].layout.indices(), refs, strict=True)
        }
        return choose(Workload.of(bound, inputs, homes), self.cluster, self.policy)

    def _order(
        self, bound: BoundProgram, events: Sink, placed: tuple[str, ...], held: Mapping[str, list[Held]]
    ) -> Order:
        modules, code = code_of(bound) if self.cluster.count > 1 else ((), b"")
        return Order(
            job=f"{bound.program.name}-{next(JOBS)}",
            wanted=news.names(events.wanted),
            placed=placed,
            errors={name: str(value) for name, value in np.geterr().items()},
            modules=modules,
            code=code,
            held={name: _pairs(refs) for name, refs in held.items()},
        )

    def _to_go_on(
        self,
        order: Order,
        packed: bytes,
        problem: Problem,
        inputs: Mapping[str, TiledArray],
        held: Mapping[str, list[Held]],
    ) -> Order:
        """The order, with where tiles are written down and which of them are there."""
        assert self.checkpoint is not None
        origins = {name: [ref.name for ref in refs] for name, refs in held.items()}
        digest = name_of(packed_program(problem.bound), inputs, origins)
        with self._counting:
            again = self._names[digest] = self._names.get(digest, -1) + 1
        name = f"{digest}-{again}"  # a script may well run one program on the same data twice
        stored = Checkpoint(self.checkpoint, name, 0).stored(self._root.plans.get(packed, problem).work)
        bits = np.packbits(stored).tobytes() if stored.any() else b""
        return replace(order, folder=self.checkpoint, name=name, stored=bits)

    def forget(self) -> None:
        """Delete what was written down: the script has come to its end, and need not go on from anywhere."""
        if self.checkpoint is not None:
            with self._counting:
                names = [f"{name}-{again}" for name, most in self._names.items() for again in range(most + 1)]
                self._names.clear()
            forget(self.checkpoint, names)

    def _split(self, inputs: Mapping[str, TiledArray]) -> tuple[dict[str, TiledArray], dict[str, list[Held]]]:
        """Inputs in the memory of this process, and those that stayed with ranks."""
        mine: dict[str, TiledArray] = {}
        held: dict[str, list[Held]] = {}
        for name, array in inputs.items():
            tiles: Mapping[Index, Tile] = array.tiles
            if self._root.holds(array):
                assert isinstance(tiles, RemoteTiles)
                held[name] = [tiles.places[index][0].ref for index in array.layout.indices()]
                tiles = {}
            elif array.fill is not None:
                tiles = {index: array.tile(index) for index in array.layout.indices()}
            mine[name] = TiledArray(array.layout, array.dtype, tiles)
        return mine, held

    def close(self) -> None:
        """Run nothing any more, and have the ranks let go of tiles that they kept.

        The ranks themselves were started by `mpiexec`, and serve other engines: they end with this process.
        """
        self._life.end(repr(self))

    def zeros(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """An array for `out`, in the memory of rank 0."""
        return np.zeros(shape, dtype)

    # ---- what was counted

    def _count(self, part: RootPart) -> None:
        with self._counting:
            for rank, counted in enumerate(part.counts):
                self._moved[rank] += counted.moved
                self._given[rank] += counted.given
                self._peak[rank] = max(self._peak[rank], counted.peak)

    def moved(self) -> NDArray[np.int64]:
        """Bytes of tiles that each rank got from others since the last call.

        Inputs in the memory of rank 0 that went to their ranks are counted by `given`, results on their way
        to rank 0 by nobody.
        """
        return self._taken(self._moved)

    def given(self) -> NDArray[np.int64]:
        """Bytes of inputs that each rank got from the memory of rank 0 since the last call."""
        return self._taken(self._given)

    def peak(self) -> NDArray[np.int64]:
        """Bytes of tiles that each rank had at once, at most, in runs since the last call."""
        return self._taken(self._peak)

    def _taken(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        with self._counting:
            found = counts.copy()
            counts[:] = 0
        return found

    def __repr__(self) -> str:
        options = [f"ranks={self.cluster.count}", f"workers={self.workers}"]
        options += [f"memory={human(self.memory)!r}"] if self.memory is not None else []
        options += [f"policy={self.policy!r}"] if self.policy != "auto" else []
        return f"MPI({', '.join(options)})"


def _pairs(refs: list[Held]) -> bytes:
    return np.array([(ref.run, ref.tile) for ref in refs], np.int64).tobytes()


def _described(inputs: Mapping[str, TiledArray]) -> dict[str, TiledArray]:
    """Inputs without their tiles: plans are kept, and must not keep these."""
    return {name: TiledArray(array.layout, array.dtype, {}) for name, array in inputs.items()}


def _present(
    part: RootPart, inputs: Mapping[str, TiledArray], held: Mapping[str, list[Held]]
) -> dict[int, Tile]:
    """Inputs that an earlier run left on rank 0."""
    numbers = part.derived.share.numbers
    return {
        numbers[key]: ref.value
        for name, refs in held.items()
        for index, ref in zip(inputs[name].layout.indices(), refs, strict=True)
        if ref.value is not None and (key := TileKey(name, index)) in numbers
    }


# ---- the ranks of this job


def connected() -> tuple[Root, list[int]]:
    """The other ranks, and how many tasks each should run at a time; made once. Returns on rank 0 only."""
    global _root
    with _lock:
        if _root is None:
            peers = Peers()
            cores = _cores(peers)
            clear_leftovers()
            if peers.rank:
                _serve(peers)
            root = Root(peers)
            atexit.register(root.quit)
            _root = root, cores
        return _root


def _serve(peers: Peers) -> NoReturn:
    """Work for rank 0, and end with it."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # rank 0 hears of it too, and says what is to be done
    Members(peers).serve()
    sys.exit(0)


def _cores(peers: Peers) -> list[int]:
    """How many tasks each rank should run at a time; an error if ranks do not go together."""
    shared = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    versions = [platform.python_version(), version(DISTRIBUTION), np.__version__]
    told = peers.told_by_all([available_cores(), _digest([socket.gethostname(), *shared]), _digest(versions)])
    if len(set(told[:, 2].tolist())) > 1:
        raise JobError(
            f"the ranks have different versions; rank {peers.rank} has Python {versions[0]}, Linnet "
            f"{versions[1]} and NumPy {versions[2]}: install the same on all hosts"
        )
    hosts: list[int] = told[:, 1].tolist()
    return [
        max(1, cores // hosts.count(host)) for cores, host in zip(told[:, 0].tolist(), hosts, strict=True)
    ]


def _digest(values: list[Any]) -> int:
    return xxhash.xxh3_64_intdigest(repr(values).encode()) >> 1
