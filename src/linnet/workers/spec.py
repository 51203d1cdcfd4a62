"""What a job is: a program at given sizes, its inputs, and how it is run; as data, stored with its tiles.

Everything a worker needs is here or in the address. Nothing in it can run: kernels are looked up by
name among those registered in the worker's own process, and modules that register more are imported
only if the worker was told to allow them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import msgpack
import numpy as np

from linnet.errors import WireError
from linnet.programs import BoundProgram, In, TileProgram
from linnet.programs.framing import framed, unframed
from linnet.programs.urgency import Weights, priority
from linnet.tiles import Index, Layout, TiledArray, TileKey
from linnet.workers.names import Seed, named

MARK = b"LNTJ"
VERSION = 1
_MOST = 256 << 20
_KINDS = "biufcmMSU"


@dataclass(frozen=True, slots=True)
class InputSpec:
    """An array that the job reads."""

    layout: Layout
    dtype: np.dtype[Any]
    fill: float | complex | None = None
    """The value of tiles that are not stored."""
    absent: frozenset[Index] = frozenset()
    """Tiles that are not stored."""


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
    """Tasks in all."""
    options: Options = Options()
    arrays: Mapping[str, InputSpec] = field(default_factory=dict[str, "InputSpec"])
    """Outputs that were asked for as arrays, in order; empty for a program as such."""

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

    def priority(self, name: str) -> int:
        """Of a task, for the queue; seeds come first."""
        task = named(name)
        if isinstance(task, Seed) or task.statement >= len(self.weights):
            return 2**60
        return priority(self.weights[task.statement], task.indices)

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
        }
        return framed(MARK, VERSION, msgpack.packb(body))

    @classmethod
    def from_bytes(cls, data: bytes | memoryview) -> JobSpec:
        """A job as stored; WireError if the bytes are none."""
        body = unframed(data, MARK, VERSION, "a job", most=_MOST)
        try:
            given: Any = msgpack.unpackb(body, strict_map_key=True)
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
            )
        except WireError:
            raise
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError) as error:
            raise WireError(f"the job cannot be read: {type(error).__name__}: {error}") from error
        expected = {name for name, role in spec.program.arrays.items() if isinstance(role, In)}
        if set(spec.inputs) != expected:
            raise WireError(f"the job has inputs {sorted(spec.inputs)}, its program {sorted(expected)}")
        return spec


def tile_key(job: str, key: TileKey, token: int | None) -> str:
    """Where a tile is stored: that of one attempt, or of an input.

    >>> tile_key("j", TileKey("A", (2, 0)), 17), tile_key("j", TileKey("x", ()), None)
    ('j/A/2.0=17', 'j/x/-=in')
    """
    index = ".".join(map(str, key.index)) or "-"
    return f"{job}/{key.array}/{index}={'in' if token is None else token}"


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
    ]


def _unpacked(given: Any) -> InputSpec:
    boundaries, dtype, fill, absent = given
    kind = np.dtype(str(dtype))
    if kind.kind not in _KINDS:
        raise ValueError(f"dtype {kind} of an input")
    return InputSpec(
        Layout(tuple(tuple(int(edge) for edge in edges) for edges in boundaries)),
        kind,
        complex(*cast("list[float]", fill)) if isinstance(fill, list) else fill,
        frozenset(tuple(int(i) for i in index) for index in absent),
    )
