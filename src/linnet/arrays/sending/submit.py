"""Arrays and programs for stateless workers: `submit` gives them away, `attach` finds them again.

Whatever an expression had to know of values (how many elements a mask keeps) was computed when it was
written, so that what is submitted is one program, however long the expression.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import ArrayBase, wrap
from linnet.arrays.elements.creation import asarray
from linnet.arrays.expression.nodes import Node, Source, Stored
from linnet.arrays.lowering.evaluate import Arrays, persisted, tiled
from linnet.arrays.sending.nested_arrays import PLAIN, arrangement, arrays_in, leaves
from linnet.errors import InputError
from linnet.programs import BoundProgram, TileProgram
from linnet.session import work as session
from linnet.session.work import Expression, Program
from linnet.tiles import TiledArray
from linnet.workers.result_types import arrays_by

if TYPE_CHECKING:
    from linnet.fleet.fleet import Fleet
    from linnet.workers.client import Job
    from linnet.workers.launcher import Launcher, Limits
    from linnet.workers.provisioner import Policy
    from linnet.workers.spec import Options


def submit(
    what: Any,
    inputs: Mapping[str, Any] | None = None,
    *,
    store: str | os.PathLike[str] | None = None,
    ledger: str | None = None,
    queue: str | None = None,
    workers: int | tuple[int, int] | Policy = 2,
    launcher: str | Launcher | Fleet | None = "processes",
    limits: Limits | None = None,
    options: Options | None = None,
    files: Sequence[str] | None = None,
) -> Job:
    """Give an array, several arrays, or a program with its inputs to stateless workers; returns at once.

    `store` is a directory (default: one of the user's cache) or a URL, `ledger` and `queue` URLs of
    servers (default: files in that directory). `launcher` starts `workers` workers, or between `workers[0]`
    and `workers[1]`, as many as suit what is ready; a `linnet.fleet.Fleet` puts each on a server of its own;
    None: somebody else does, with `linnet worker ADDRESS`.
    Workers that it starts may use the files under the roots `files`; None: exactly those that are read or
    written here. The job goes on without this process: `attach(job.address)` finds it again.

    Parameters
    ----------
    what : Array, tuple or dict of them, TileProgram or BoundProgram
    inputs : mapping, optional
        Arrays for a program, by name.
    store : str or path, optional
        Where tiles are kept: a directory or a URL.
    ledger, queue : str, optional
        URLs of servers; None: files in the store.
    workers : int, pair of int, or Policy
        How many workers.
    launcher : str, Launcher or Fleet, optional
        What starts them; None: somebody else.
    limits : Limits, optional
        Memory and time of each worker.
    options : Options, optional
        Leases, attempts and the like.
    files : sequence of str, optional
        Roots of files that workers may use.

    Returns
    -------
    Job
        With `progress()`, `wait()`, `result()`, `cancel()` and `delete()`.

    Examples
    --------
    >>> import tempfile
    >>> x = asarray(np.arange(6.0), chunks=2)
    >>> with tempfile.TemporaryDirectory() as folder, submit(x * 2, store=folder, launcher="threads") as job:
    ...     job.result().compute()
    array([ 0.,  2.,  4.,  6.,  8., 10.])
    """
    return session.submit(
        _understood(what, inputs),
        store=store,
        ledger=ledger,
        queue=queue,
        workers=workers,
        launcher=launcher,
        limits=limits,
        options=options,
        files=files,
    )


def attach(
    address: str,
    *,
    workers: int | tuple[int, int] | Policy = 0,
    launcher: str | Launcher | Fleet | None = "processes",
    limits: Limits | None = None,
    imports: Sequence[str] = (),
    files: Sequence[str] = (),
) -> Job:
    """A job by its address: to watch it, wait for it, cancel or resume it, fetch its result.

    With `workers`, this process sees to it that there are so many, as `submit` does. They import the
    modules named in `imports`, and use files under the roots named in `files`, and no others, whatever the
    job asks for.

    Parameters
    ----------
    address : str
        The address of the job, `job.address`.
    workers : int, pair of int, or Policy
        How many workers to keep running; 0: none.
    launcher : str, Launcher or Fleet, optional
        What starts them.
    limits : Limits, optional
        Memory and time of each worker.
    imports : sequence of str
        Modules that they import.
    files : sequence of str
        Roots of files that they may use.

    Returns
    -------
    Job

    Examples
    --------
    >>> import tempfile
    >>> import linnet as ln
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     job = ln.submit(ln.arange(3) * 2, store=folder, launcher="threads")
    ...     ln.attach(job.address).result().compute()
    array([0, 2, 4])
    """
    from linnet.workers import client

    return client.attach(
        address, workers=workers, launcher=launcher, limits=limits, imports=imports, files=files
    )


def _understood(what: Any, inputs: Mapping[str, Any] | None) -> Expression:
    if isinstance(what, TileProgram):
        what = what.bind()
    if isinstance(what, BoundProgram):
        return Program(what, {name: _in_tiles(name, value) for name, value in (inputs or {}).items()})
    if inputs is not None or not is_arrays(what):
        raise InputError(
            f"submit was given a {type(what).__name__}"
            + (" with inputs" if inputs is not None else "")
            + "; give it an array, several arrays, or a bound program with inputs={name: array}"
        )
    return expression_of(what)


def is_arrays(what: Any) -> bool:
    """Whether it is an array of ours, or tuples and lists of nothing else."""
    found = [each for each in leaves(what) if not isinstance(each, PLAIN)]
    return bool(found) and all(isinstance(each, ArrayBase) for each in found)


def expression_of(what: Any) -> Arrays:
    """Arrays, perhaps in tuples and lists, as an expression."""
    return Arrays([each.__node__ for each in arrays_in(what, "this")], arrangement(what))


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
    return value.__node__


def _in_tiles(name: str, value: Any) -> TiledArray:
    given = as_input(name, value)
    if isinstance(given, TiledArray):
        return given
    (node,) = persisted([given])
    assert isinstance(node, Source | Stored)
    return tiled(node)


__all__ = ["attach", "submit"]
METHODS: dict[str, Any] = {}

arrays_by(lambda tiles: wrap(Stored(tiles)))
