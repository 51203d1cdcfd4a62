"""Arrays and programs for stateless workers: `submit` gives them away, `attach` finds them again.

Whatever an expression had to know of values (how many elements a mask keeps) was computed when it was
written, so that what is submitted is one program, however long the expression.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from linnet.arrays.core import ArrayBase, as_node, wrap
from linnet.arrays.creation import asarray
from linnet.arrays.evaluation import inputs_of, persisted, tiled
from linnet.arrays.expression import Node, Source, Stored
from linnet.arrays.lowering import lowered
from linnet.errors import InputError
from linnet.programs import BoundProgram, TileProgram
from linnet.tiles import TiledArray
from linnet.workers import client
from linnet.workers.launcher import Launcher, Limits
from linnet.workers.provisioner import Policy
from linnet.workers.results import StoredTiles
from linnet.workers.spec import InputSpec, Options


class Job(client.Job):
    """A job of stateless workers: of an expression on arrays, or of a program."""

    def result(self) -> Any:
        """What was submitted: an array for an array, a tuple for several, outputs by name for a program.

        Waits for the end of the job. Tiles are read when they are needed.
        """
        self.wait()
        if not self.spec.arrays:
            return super().result()
        found = [
            wrap(Stored(TiledArray(each.layout, each.dtype, StoredTiles(self._parts, self.spec, name))))
            for name, each in self.spec.arrays.items()
        ]
        return found[0] if len(found) == 1 else tuple(found)


def submit(
    what: Any,
    inputs: Mapping[str, Any] | None = None,
    *,
    store: str | os.PathLike[str] | None = None,
    ledger: str | None = None,
    queue: str | None = None,
    workers: int | tuple[int, int] | Policy = 2,
    launcher: str | Launcher | None = "processes",
    limits: Limits | None = None,
    options: Options | None = None,
) -> Job:
    """Give an array, several arrays, or a program with its inputs to stateless workers; returns at once.

    `store` is a directory (default: one of the user's cache) or a URL, `ledger` and `queue` URLs of
    servers (default: files in that directory). `launcher` starts `workers` workers, or between `workers[0]`
    and `workers[1]`, as many as suit what is ready; None: somebody else does, with `linnet worker ADDRESS`.
    The job goes on without this process: `attach(job.address)` finds it again.

    >>> import tempfile
    >>> x = asarray(np.arange(6.0), chunks=2)
    >>> with tempfile.TemporaryDirectory() as folder, submit(x * 2, store=folder, launcher="threads") as job:
    ...     job.result().compute()
    array([ 0.,  2.,  4.,  6.,  8., 10.])
    """
    bound, tiles, arrays = _understood(what, inputs)
    return client.submit(
        bound,
        tiles,
        store=store,
        ledger=ledger,
        queue=queue,
        workers=workers,
        launcher=launcher,
        limits=limits,
        options=options,
        arrays=arrays,
        kind=Job,
    )


def attach(
    address: str,
    *,
    workers: int | tuple[int, int] | Policy = 0,
    launcher: str | Launcher | None = "processes",
    limits: Limits | None = None,
    imports: Sequence[str] = (),
) -> Job:
    """A job by its address: to watch it, wait for it, cancel or resume it, fetch its result.

    With `workers`, this process sees to it that there are so many, as `submit` does. They import the
    modules named in `imports`, and no others, whatever the job asks for.
    """
    return client.attach(
        address, workers=workers, launcher=launcher, limits=limits, imports=imports, kind=Job
    )


def _understood(
    what: Any, inputs: Mapping[str, Any] | None
) -> tuple[BoundProgram, dict[str, TiledArray], dict[str, InputSpec]]:
    if isinstance(what, TileProgram):
        what = what.bind()
    if isinstance(what, BoundProgram):
        return what, {name: _in_tiles(name, value) for name, value in (inputs or {}).items()}, {}
    several: Sequence[Any] = what if isinstance(what, tuple | list) else [what]
    if inputs is not None or not several or not all(isinstance(each, ArrayBase) for each in several):
        raise InputError(
            f"submit was given a {type(what).__name__}"
            + (" with inputs" if inputs is not None else "")
            + "; give it an array, several arrays, or a bound program with inputs={name: array}"
        )
    return _expression([as_node(each) for each in several])


def _expression(
    nodes: list[Node],
) -> tuple[BoundProgram, dict[str, TiledArray], dict[str, InputSpec]]:
    made, graph = lowered(nodes)
    if None in made.outputs:
        raise InputError("this array is in memory already: there is nothing to submit")
    names = [name for name in made.outputs if name is not None]
    arrays = {name: InputSpec(node.layout, node.dtype) for name, node in zip(names, nodes, strict=True)}
    if len(arrays) < len(nodes):
        raise InputError("the same array was given twice; submit it once")
    return made.bound, inputs_of(made, graph), arrays


def as_input(name: str, value: Any) -> TiledArray | Node:
    """An input of a program as the user gives it: in tiles already, or a node to be put into some."""
    if isinstance(value, TiledArray):
        return value
    if isinstance(value, np.ndarray):
        value = asarray(value)
    if not isinstance(value, ArrayBase):
        raise InputError(
            f"input {name} is a {type(value).__name__}; give an array: cut as the program needs it with "
            "ln.asarray(x, chunks=...)"
        )
    return value.node


def _in_tiles(name: str, value: Any) -> TiledArray:
    given = as_input(name, value)
    if isinstance(given, TiledArray):
        return given
    (node,) = persisted([given])
    assert isinstance(node, Source | Stored)
    return tiled(node)


__all__ = ["Job", "attach", "submit"]
METHODS: dict[str, Any] = {}
