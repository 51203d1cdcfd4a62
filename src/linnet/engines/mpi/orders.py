"""A run as rank 0 tells the others of it: data, a few KB however large the program is.

Its first part is all that the plan is made from: where two runs agree in it, so do their plans. The second
part says what else a rank must know. Functions of the user's travel by the names of their modules; those of a
script or a notebook, which have none, by value, as cloudpickle packs them.
"""

from __future__ import annotations

import importlib
import pickle
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from typing import Any

import msgpack
import numpy as np
from numpy.typing import NDArray

from linnet.errors import JobError, MissingExtraError
from linnet.kernels import Kernel, registry
from linnet.kernels import get as get_kernel
from linnet.kernels.arrays import user_functions
from linnet.planning.cluster import Cluster, Link, Node
from linnet.programs import BoundProgram, TileProgram
from linnet.programs.grammar import Attribute
from linnet.tiles import Layout, TiledArray, TileKey

Ranks = NDArray[np.int64]
_FOUND: set[str] = set()
"""Modules that can be imported."""


@dataclass(frozen=True, slots=True)
class Order:
    """What a rank must know of a run besides what its plan is made from."""

    job: str
    """The name of the run, for its events."""
    wanted: tuple[str, ...] = ()
    """Kinds of events that somebody listens to, by name."""
    placed: tuple[str, ...] = ()
    """Outputs that go to rank 0 as they are made; others stay where they are."""
    errors: Mapping[str, str] = field(default_factory=dict[str, str])
    """How NumPy treats floating-point errors where the run was started."""
    modules: tuple[str, ...] = ()
    """Modules in which its kernels and functions are."""
    code: bytes = b""
    """Kernels and functions that are in none."""
    held: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """Of inputs that lie on ranks, the run that made each tile and its number there, in pairs."""
    folder: str = ""
    """Where tiles are written down, so that the run can go on from them; empty: nowhere."""
    name: str = ""
    """The name of the run there."""
    stored: bytes = b""
    """Tiles that an earlier run has written down: a bit each; empty: none."""

    def packed(self, plan: bytes) -> bytes:
        """As it travels."""
        values = {name: getattr(self, name) for name in Order.__slots__}
        return msgpack.packb([plan, {**values, "errors": dict(self.errors), "held": dict(self.held)}])


def read_order(data: bytes) -> tuple[bytes, Order]:
    """What a plan is made from, and the rest."""
    plan, values = msgpack.unpackb(data)
    for name in ("wanted", "placed", "modules"):
        values[name] = tuple(values[name])
    return plan, Order(**values)


def held_inputs(order: Order, inputs: Mapping[str, TiledArray]) -> dict[TileKey, tuple[int, int]]:
    """The run and the number of each input that lies on a rank."""
    return {
        TileKey(name, index): (run, tile)
        for name, pairs in order.held.items()
        for index, (run, tile) in zip(
            inputs[name].layout.indices(), np.frombuffer(pairs, np.int64).reshape(-1, 2).tolist(), strict=True
        )
    }


# ---- what a plan is made from


@dataclass(frozen=True, slots=True)
class Problem:
    """What a plan is made from."""

    bound: BoundProgram
    inputs: Mapping[str, TiledArray]
    """Without their tiles."""
    homes: Mapping[str, Ranks]
    """Of inputs that lie on ranks, the rank of each tile, in the order of `Layout.indices`."""
    cluster: Cluster
    policy: str

    @property
    def home(self) -> dict[TileKey, int]:
        """The ranks of tiles that lie on one already."""
        return {
            TileKey(name, index): rank
            for name, ranks in self.homes.items()
            for index, rank in zip(self.inputs[name].layout.indices(), ranks.tolist(), strict=True)
        }


def packed_program(bound: BoundProgram) -> bytes:
    """A program at its sizes."""
    tables = {
        name: np.asarray(list(bound.tables[name].values()), np.int64).tobytes()
        for name in bound.program.tables
    }
    return msgpack.packb([bound.program.to_bytes(), dict(bound.sizes), tables])


def packed_plan(problem: Problem) -> bytes:
    """All that a plan is made from."""
    cluster = problem.cluster
    return msgpack.packb(
        [
            packed_program(problem.bound),
            {name: [array.layout.boundaries, array.dtype.str] for name, array in problem.inputs.items()},
            {name: ranks.tobytes() for name, ranks in problem.homes.items()},
            [
                [[node.workers, node.memory, node.flops] for node in cluster.nodes],
                cluster.grid,
                [cluster.between.latency, cluster.between.bandwidth],
                [cluster.within.latency, cluster.within.bandwidth],
                cluster.dispatch,
            ],
            problem.policy,
        ]
    )


def read_problem(data: bytes) -> Problem:
    """What a plan is made from, on a rank that was told."""
    packed, inputs, homes, cluster, policy = msgpack.unpackb(data, use_list=False)
    program, sizes, tables = msgpack.unpackb(packed)
    given = {name: np.frombuffer(values, np.int64) for name, values in tables.items()}
    nodes, grid, between, within, dispatch = cluster
    return Problem(
        TileProgram.from_bytes(program).bind(**sizes, **given),
        {name: TiledArray(Layout(edges), np.dtype(kind), {}) for name, (edges, kind) in inputs.items()},
        {name: np.frombuffer(ranks, np.int64) for name, ranks in homes.items()},
        Cluster(
            [Node(*node) for node in nodes],
            grid=grid,
            between=Link(*between),
            within=Link(*within),
            dispatch=dispatch,
        ),
        policy,
    )


# ---- kernels


def code_of(bound: BoundProgram) -> tuple[tuple[str, ...], bytes]:
    """Modules that a rank must import for a program, and what is in no module, by value."""
    modules: dict[str, None] = {}
    kernels: list[Kernel] = []
    functions: dict[str, Any] = {}
    for statement in bound.program.statements:
        known = get_kernel(statement.kernel)
        module = known.function.__module__
        if module.startswith("linnet.kernels."):
            pass  # they come with Linnet
        elif _importable(module):
            modules[module] = None
        else:
            kernels.append(known)
        for _, value in statement.run.keywords:
            if isinstance(value, Attribute) and isinstance(value.value, user_functions.Name):
                name = str(value.value)
                if ":" in name and _importable(name.partition(":")[0]):
                    modules[name.partition(":")[0]] = None
                else:
                    functions[name] = value.value.function
    return tuple(modules), _by_value(kernels, functions) if kernels or functions else b""


def _importable(module: str) -> bool:
    """Whether a module is found where modules are looked for; one that was loaded otherwise is only here."""
    if module in _FOUND:
        return True
    path: Sequence[str] | None = None
    parts = module.split(".")
    for count in range(1, len(parts) + 1):
        spec = _spec(".".join(parts[:count]), path)
        if spec is None or module == "__main__":
            return False
        path = spec.submodule_search_locations
    _FOUND.add(module)
    return True


def _spec(name: str, path: Sequence[str] | None) -> ModuleSpec | None:
    for finder in sys.meta_path:
        found = finder.find_spec(name, path)
        if found is not None:
            return found
    return None


def _by_value(kernels: list[Kernel], functions: dict[str, Any]) -> bytes:
    try:
        cloudpickle: Any = importlib.import_module("cloudpickle")
    except ImportError:
        names = ", ".join([*(kernel.name for kernel in kernels), *functions])
        raise MissingExtraError(
            f"{names}: defined in the script itself, which other ranks cannot import; put it into a module, "
            "or pip install cloudpickle, with which it is sent along"
        ) from None
    return cloudpickle.dumps((kernels, functions))


def learn(order: Order) -> tuple[Any, ...]:
    """Import and adopt what the kernels of a run need; what must be held as long as it runs."""
    for module in order.modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise JobError(
                f"kernels of the program are in {module!r}, which cannot be imported on every rank: {error}; "
                "install it where they run, or put it beside the script"
            ) from error
        user_functions.allow(module)
    if not order.code:
        return ()
    kernels, functions = pickle.loads(order.code)
    for kernel in kernels:
        registry.adopt(kernel)
    return tuple(user_functions.adopt(name, function) for name, function in functions.items())
