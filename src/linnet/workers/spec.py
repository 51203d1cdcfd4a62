"""What a job is: a program at given sizes, its inputs, and how it is run; as data, stored with its tiles.

Everything a worker needs is here or in the address. Nothing in it can run: kernels are looked up by
name among those registered in the worker's own process, and modules that register more are imported
only if the worker was told to allow them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import msgpack
import numpy as np

from linnet.errors import InputError, WireError
from linnet.programs import BoundProgram, In, Task, TileProgram
from linnet.programs.framing import framed, unframed
from linnet.programs.urgency import Weights, priority
from linnet.tiles import Layout, TiledArray, TileKey
from linnet.workers.array_specs import Borrowed, InputSpec
from linnet.workers.launcher import LONG, check_flag, check_number, check_texts
from linnet.workers.names import Seed, name_of, named
from linnet.workers.queue import Entry
from linnet.workers.second_parts import Gate

MARK = b"LNTJ"
VERSION = 3
"""Since 2 inputs may be borrowed, and a job may have a second part; since 3 it has an identity."""
_OLDEST = 1
_MOST = 256 << 20
_KINDS = "biufcmMSU"
_LEVELS = 100
"""Of lists of lists that arrange results."""
_IDENTITY = re.compile(r"([0-9a-f]{16})?")


@dataclass(frozen=True, slots=True)
class Options:
    """How a job is run."""

    lease: float = 15.0
    """Seconds after which a task of a silent worker is given to another."""
    grace: float = 15.0
    """Seconds that tiles nobody needs are kept nevertheless, for late duplicates."""
    delete: bool = True
    """Whether tiles nobody needs are deleted as the job goes."""
    compression: str | None = None
    """Of tiles: None, "lz4" or "zstd"."""
    imports: tuple[str, ...] = ()
    """Modules that register the kernels of the program."""
    events: tuple[str, ...] = ()
    """Kinds of events that workers tell of, by name; each costs some time."""
    blas: str = ""
    """Name of the BLAS core of the client: with another, bits may differ."""

    task_seconds: float | None = None
    """How long a task may take; one that takes longer fails the job. None: as long as it does."""

    def __post_init__(self) -> None:
        if self.task_seconds is not None:
            check_number("task_seconds", self.task_seconds, 0.001, LONG, "seconds, more than 0, or None")
        # Longer, and nobody would ever take over what a dead worker had.
        check_number("lease", self.lease, 0.001, LONG, "seconds, more than 0")
        check_number("grace", self.grace, 0, LONG, "seconds, not negative")
        check_flag("delete", self.delete)
        if not isinstance(cast("object", self.blas), str):
            raise InputError(f"blas={self.blas!r}: give the name of a BLAS core, or an empty text")
        if self.compression not in (None, "lz4", "zstd"):
            raise InputError(f"compression={self.compression!r}: give 'zstd', 'lz4' or None")
        check_texts("imports", self.imports, "names of modules")
        check_texts("events", self.events, "names of events")

    def with_events(self, kinds: Sequence[str]) -> Options:
        """The same, with these kinds of events told."""
        return replace(self, events=tuple(kinds))


@dataclass(frozen=True)
class JobSpec:
    """A job, as it is stored."""

    program: TileProgram
    sizes: Mapping[str, int]
    tables: Mapping[str, Sequence[int]]
    inputs: Mapping[str, InputSpec]
    weights: Sequence[Weights]
    """For the urgency of tasks."""
    total: int
    """Tasks in all, those of a second part included."""
    options: Options = Options()
    arrays: Mapping[str, InputSpec] = field(default_factory=dict[str, "InputSpec"])
    """Outputs that were asked for as arrays; empty for a program as such."""
    gate: Gate | None = None
    """Where the second part of the program begins, if it has one."""
    wanted: Any = None
    """How the arrays that were asked for are arranged, as in `Asked`; None: outputs of a program as such."""
    conditions: tuple[str, ...] = ()
    """Outputs of one number each that say how well systems could be solved."""
    identity: str = ""
    """Random, so that no other job has it, even one that had the same name before; empty in old jobs."""

    @cached_property
    def bound(self) -> BoundProgram:
        """The program at its sizes."""
        return self.program.bind(**self.sizes, **self.tables)

    @cached_property
    def described(self) -> dict[str, TiledArray]:
        """The inputs without their tiles: shapes and dtypes."""
        return {
            name: TiledArray(each.layout, each.dtype, {}, each.fill) for name, each in self.inputs.items()
        }

    @cached_property
    def first_total(self) -> int:
        """Tasks of the first part; of all, if there is no second."""
        return self.total if self.gate is None else sum(self.bound.counts[: self.gate.statement])

    @cached_property
    def decider(self) -> str:
        """Name of the task that decides whether the second part is run; empty: there is none."""
        return "" if self.gate is None else name_of(self.gate.decider(self.bound))

    def priority(self, name: str) -> int:
        """Of a task, for the queue; seeds come first."""
        return self._urgency(named(name))

    def _urgency(self, task: Task | Seed) -> int:
        if isinstance(task, Seed) or task.statement >= len(self.weights):
            return 2**60
        return priority(self.weights[task.statement], task.indices)

    def entries(self, names: Iterable[str]) -> list[Entry]:
        """What is ready, for the queue; without names that nobody could have told honestly."""
        found: list[Entry] = []
        for name in names:
            with suppress(WireError):
                found.append(Entry(name, self._urgency(named(name))))
        return found

    def to_bytes(self) -> bytes:
        """As it is stored."""
        body = {
            "program": self.program.to_bytes(),
            "sizes": dict(self.sizes),
            "tables": {name: list(values) for name, values in self.tables.items()},
            "inputs": {name: _packed(each) for name, each in self.inputs.items()},
            "weights": [list(each) for each in self.weights],
            "total": self.total,
            "arrays": [[name, _packed(each)] for name, each in self.arrays.items()],
            "options": {name: getattr(self.options, name) for name in Options.__slots__},
            "gate": None if self.gate is None else _packed_gate(self.gate),
            "wanted": self.wanted
            if self.wanted is None
            else _arranged(self.wanted, {*self.arrays, *self.inputs}),
            "conditions": list(self.conditions),
            "identity": self.identity,
        }
        return framed(MARK, VERSION, msgpack.packb(body))

    @classmethod
    def from_bytes(cls, data: bytes | memoryview) -> JobSpec:
        """A job as stored; WireError if the bytes are none."""
        body = unframed(data, MARK, VERSION, "a job", most=_MOST, oldest=_OLDEST)
        try:
            given: Any = msgpack.unpackb(body, strict_map_key=True)
            unknown = sorted(set(given) - _FIELDS)
            if unknown:
                raise ValueError(f"fields that this Linnet does not know: {', '.join(unknown)[:200]}")
            options: dict[str, Any] = {**given["options"]}
            for name in ("imports", "events"):
                options[name] = tuple(map(str, options[name]))
            spec = cls(
                TileProgram.from_bytes(given["program"]),
                {str(name): int(value) for name, value in given["sizes"].items()},
                {str(name): [int(v) for v in values] for name, values in given["tables"].items()},
                {str(name): _unpacked(each) for name, each in given["inputs"].items()},
                [tuple(map(float, each)) for each in given["weights"]],
                int(given["total"]),
                Options(**options),
                {str(name): _unpacked(each) for name, each in given["arrays"]},
                _unpacked_gate(given.get("gate")),
                _checked_wanted(given),
                tuple(map(str, given.get("conditions", ()))),
                str(given.get("identity", "")),
            )
            if not _IDENTITY.fullmatch(spec.identity):
                raise ValueError(f"identity {spec.identity[:80]!r}")
            if spec.gate is not None:
                spec.gate.check(spec.program)
        except WireError:
            raise
        except (
            InputError,
            ValueError,
            TypeError,
            KeyError,
            IndexError,
            AttributeError,
            OverflowError,
            RecursionError,  # however few levels are left where this is called
        ) as error:
            why = str(error) or "nested too deeply"  # msgpack's StackError says nothing
            raise WireError(f"the job cannot be read: {type(error).__name__}: {why}") from error
        expected = {name for name, role in spec.program.arrays.items() if isinstance(role, In)}
        if set(spec.inputs) != expected:
            raise WireError(f"the job has inputs {sorted(spec.inputs)}, its program {sorted(expected)}")
        return spec


_FIELDS = {
    "program", "sizes", "tables", "inputs", "weights", "total", "arrays", "options", "gate", "wanted",
    "conditions", "identity",
}  # fmt: skip
"""Of a job as stored. One with others would mean something else without them."""


def folder_of(job: str, identity: str) -> str:
    """Under which folder of its store a job has its tiles.

    >>> folder_of("mine", "0123456789abcdef")
    'mine.0123456789abcdef'
    """
    return f"{job}.{identity}" if identity else job


def spec_key(job: str) -> str:
    """Where the job itself is stored."""
    return f"{job}/job"


def _packed(given: InputSpec) -> list[Any]:
    fill = given.fill
    return [
        [list(edges) for edges in given.layout.boundaries],
        given.dtype.str,
        [fill.real, fill.imag] if isinstance(fill, complex) else fill,
        sorted(map(list, given.absent)),
        [given.borrowed.job, given.borrowed.array, list(given.borrowed.tokens)] if given.borrowed else None,
    ]


def _unpacked(given: Any) -> InputSpec:
    boundaries, dtype, fill, absent, *later = given
    (lender,) = later or [None]  # the first version has none
    kind = np.dtype(str(dtype))
    if kind.kind not in _KINDS:
        raise ValueError(f"dtype {kind} of an input")
    return InputSpec(
        Layout(tuple(tuple(int(edge) for edge in edges) for edges in boundaries)),
        kind,
        complex(*cast("list[float]", fill)) if isinstance(fill, list) else fill,
        frozenset(tuple(int(i) for i in index) for index in absent),
        None if lender is None else Borrowed(str(lender[0]), str(lender[1]), tuple(lender[2])),
    )


def _packed_gate(gate: Gate) -> list[Any]:
    return [gate.statement, gate.tile.array, list(gate.tile.index), dict(gate.instead)]


def _unpacked_gate(given: Any) -> Gate | None:
    if given is None:
        return None
    statement, array, index, instead = given
    return Gate(
        int(statement),
        TileKey(str(array), tuple(int(i) for i in index)),
        {str(name): str(other) for name, other in instead.items()},
    )


def _checked_wanted(given: Any) -> Any:
    """How results are arranged. Before version 2 arrays were one, or a tuple of several."""
    names = [str(name) for name, _ in given["arrays"]]
    if "wanted" not in given:
        each = [["array", name] for name in names]
        return None if not each else each[0] if len(each) == 1 else ["tuple", each]
    known = {*names, *map(str, given["inputs"])}
    return None if given["wanted"] is None else _arranged(given["wanted"], known)


def _arranged(wanted: Any, known: set[str], levels: int = _LEVELS) -> Any:
    if levels == 0:
        raise InputError(f"results arranged in more than {_LEVELS} levels of lists; give fewer")
    kind, *rest = wanted
    if kind == "array" and len(rest) == 1 and rest[0] in known:
        return [kind, rest[0]]
    if kind == "plain" and len(rest) == 1 and isinstance(rest[0], bool | int | float | str | None):
        return [kind, rest[0]]
    if kind in ("list", "tuple") and len(rest) == 1:
        return [kind, [_arranged(each, known, levels - 1) for each in rest[0]]]
    if kind == "named" and len(rest) == 3 and all(str(each).isidentifier() for each in (rest[0], *rest[1])):
        fields = [_arranged(each, known, levels - 1) for each in rest[2]]
        return [kind, str(rest[0]), list(map(str, rest[1])), fields]
    raise ValueError(f"results arranged as {str(kind)[:80]!r}")
