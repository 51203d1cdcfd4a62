"""From a program and its arrays to a job: what is stored of them, and what is refused before it begins."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

from linnet.errors import (
    AddressError,
    BudgetError,
    InputError,
    LinnetError,
    MissingTileError,
    UnreachableError,
)
from linnet.kernels import get as get_kernel
from linnet.programs import BoundProgram, In
from linnet.programs.grammar import Attribute
from linnet.programs.shapes import Shapes, operands
from linnet.programs.statements import Statement
from linnet.programs.urgency import urgency
from linnet.tiles import TiledArray, TileKey, human
from linnet.tiles.codec import encoded
from linnet.workers.address import Address
from linnet.workers.array_specs import Asked, Borrowed, InputSpec, tile_key
from linnet.workers.job_parts import Parts, board, open_parts
from linnet.workers.kept_results import Keeper, KeptTiles
from linnet.workers.launcher import Limits, check_texts
from linnet.workers.results import StoredTiles
from linnet.workers.second_parts import Gate
from linnet.workers.serving import blas_core
from linnet.workers.spec import JobSpec, Options, spec_key
from linnet.workers.store import Store, open_store

_LOOKED_AT = 50
"""Tasks of each statement whose need of memory is looked at."""


def check_arguments(
    limits: object,
    options: object,
    *,
    store: object = None,
    imports: Sequence[str] = (),
    files: Sequence[str] | None = None,
) -> None:
    """Refuse what cannot be meant, before anything is stored."""
    if store is not None and not isinstance(store, str | os.PathLike):
        raise InputError(f"store={store!r}: give a directory, or a URL such as s3://bucket/prefix")
    if not isinstance(limits, Limits):
        raise InputError(f"limits={limits!r}: give linnet.workers.launcher.Limits(...)")
    if not isinstance(options, Options):
        raise InputError(f"options={options!r}: give linnet.workers.spec.Options(...)")
    check_texts("imports", imports, "names of modules")
    if files is not None:
        check_texts("files", files, "roots: folders, files, beginnings of URLs")


def job_spec(
    bound: BoundProgram,
    inputs: Mapping[str, TiledArray],
    options: Options,
    asked: Asked | None = None,
    gate: Gate | None = None,
) -> JobSpec:
    """The job of a program on these inputs; InputError if they are not those it takes."""
    program = bound.program
    expected = [name for name, role in program.arrays.items() if isinstance(role, In)]
    if set(expected) != set(inputs):
        raise InputError(
            f"{program.name} takes the arrays {', '.join(expected) or 'none'}; "
            f"given: {', '.join(inputs) or 'none'}"
        )
    described = {
        name: InputSpec(
            array.layout,
            array.dtype,
            array.fill,
            frozenset() if array.fill is None else frozenset(set(array.layout.indices()) - set(array.tiles)),
        )
        for name, array in inputs.items()
    }
    options = replace(
        options,
        imports=tuple(dict.fromkeys([*options.imports, *_modules(bound)])),
        blas=options.blas or blas_core(),
    )
    if gate is not None:
        gate.check(program)
        gate.check_sizes(bound)
    tables = {name: list(bound.tables[name].values()) for name in program.tables}
    return JobSpec(
        program,
        bound.sizes,
        tables,
        described,
        urgency(bound),
        bound.count(),
        options,
        {} if asked is None else asked.arrays,
        gate,
        None if asked is None else asked.wanted,
        () if asked is None else asked.conditions,
        os.urandom(8).hex(),
    )


def _modules(bound: BoundProgram) -> Sequence[str]:
    """Modules outside Linnet in which kernels of a program are; a worker must be able to import them."""
    found: dict[str, None] = {}
    for statement in bound.program.statements:
        function: Any = get_kernel(statement.kernel).function
        module = getattr(function, "__module__", "") or ""
        if module == "__main__":
            raise InputError(
                f"kernel {statement.kernel!r} is defined in the script itself, which workers cannot import; "
                "put it into a module of its own"
            )
        if not module.startswith("linnet.kernels"):
            found[module] = None
        for function in _functions(statement):
            found[function.partition(":")[0]] = None
    return list(found)


def _functions(statement: Statement) -> list[str]:
    """Names of the user's own functions that a statement calls on tiles."""
    if statement.kernel != "call":
        return []
    given = dict(statement.run.keywords).get("function")
    name = str(given.value) if isinstance(given, Attribute) else ""
    if ":" not in name:
        raise InputError(
            "a function given to map_blocks or its like has no import name, so workers cannot find it; "
            "define it at the top of a module, without closure or lambda"
        )
    return [name]


def borrowing(
    spec: JobSpec, inputs: Mapping[str, TiledArray], store: Store, keeper: Keeper | None
) -> JobSpec:
    """The job reading in place those inputs that are in its store already.

    These are results of jobs, which stay until that job is deleted, and what `keeper` keeps, if an engine
    runs this job. Results that another engine keeps may go before this job has ended: they are copied.
    """
    found = {name: _in_place(spec.inputs[name], array, store, keeper) for name, array in inputs.items()}
    changed = {name: each for name, each in found.items() if each is not None}
    return replace(spec, inputs={**spec.inputs, **changed}) if changed else spec


def _in_place(given: InputSpec, array: TiledArray, store: Store, keeper: Keeper | None) -> InputSpec | None:
    """An input that is borrowed; None if it must be copied."""
    tiles = array.tiles
    fill, absent = given.fill, given.absent
    if isinstance(tiles, KeptTiles) and tiles.keeper is not keeper:
        return None
    if isinstance(tiles, KeptTiles | StoredTiles):
        if tiles.filled:
            values = {tile.flat[0].item() for tile in tiles.filled.values() if tile.size}
            if fill is not None or len(values) > 1 or given.dtype.kind not in "biufc":
                return None
            fill, absent = (*values, 0)[0], absent | tiles.filled.keys()
        tiles = tiles.stored if isinstance(tiles, KeptTiles) else tiles
    if not isinstance(tiles, StoredTiles) or tiles.store.url != store.url:
        return None
    tokens = [tiles.tokens.get(index, 0) for index in given.layout.indices()]
    if tokens.count(0) != len(absent):
        return None
    return replace(given, fill=fill, absent=absent, borrowed=Borrowed(tiles.folder, tiles.array, tokens))


def store_inputs(parts: Parts, spec: JobSpec, inputs: Mapping[str, TiledArray]) -> None:
    """Put the tiles of the inputs into the store, but for those that are there."""
    for name, array in inputs.items():
        for index in array.tiles if spec.inputs[name].borrowed is None else ():
            key = tile_key(parts.folder, TileKey(name, index), None)
            parts.store.put(key, encoded(array.tiles[index]))


def check_servers(*urls: str | None) -> None:
    """Refuse servers that nobody answers at: a job that runs waits for them, one to begin need not."""
    for url in urls:
        parts = urlsplit(url or "")
        if parts.scheme not in ("redis", "rediss") or parts.hostname is None:
            continue
        place = (parts.hostname, parts.port or 6379)
        try:
            socket.create_connection(place, timeout=5).close()
        except OSError as error:
            raise UnreachableError(
                f"nobody answers at {parts.scheme}://{place[0]}:{place[1]} ({error.strerror or error}); "
                "start the server there (redis-server), or give the address of one that runs"
            ) from error


def claimed(address: Address, spec: JobSpec) -> Parts:
    """The parts of a new job, whose name nobody else can take from now on; AddressError if somebody has."""
    check_servers(address.ledger, address.queue)
    if address.ledger is None:
        board(address)  # refuses a store beside which there can be no ledger
    store = open_store(address.store)
    if store.size(spec_key(address.job)) is not None:  # its ledger may be lost, or elsewhere
        store.close()
        raise _taken(address)
    parts = open_parts(address, store=store, identity=spec.identity, create=True, silence=spec.options.lease)
    try:
        parts.ledger.create(spec.first_total)
    except AddressError:
        parts.close()
        raise _taken(address) from None
    except BaseException:
        parts.close()
        raise
    return parts


def _taken(address: Address) -> AddressError:
    return AddressError(
        f"the name {address.job!r} is taken: look at that job with ln.attach({address.text!r}), delete() it "
        "there, or give this one another name"
    )


def free_name(parts: Parts, spec: JobSpec) -> None:
    """Let others have the name of a job that is deleted; until then it is taken.

    Somebody else may have deleted the job before, and another one have its name since: that keeps it.
    """
    key = spec_key(parts.address.job)
    try:
        stored = JobSpec.from_bytes(memoryview(parts.store.get(key)))
    except MissingTileError:
        return
    except LinnetError:  # nobody could run what lies there
        parts.store.delete([key])
        return
    if stored.identity == spec.identity:
        parts.store.delete([key])


def abandon(parts: Parts) -> None:
    """Leave nothing of what did not become a job, though its name was taken for it."""
    store, name = parts.store, parts.address.job
    with suppress(LinnetError):
        store.delete([spec_key(name), *(key for key, _ in store.list(f"{parts.folder}/"))])
    for drop in (parts.queue.drop, parts.ledger.drop):
        with suppress(LinnetError):
            drop()
    parts.close()


def check_memory(spec: JobSpec, memory: int) -> None:
    """Refuse a job some task of which needs more memory than a worker has.

    Of each statement the first and last tasks are looked at, as far as kernels declare their shapes.
    """
    shapes = Shapes(spec.bound, spec.described)
    for statement in spec.program.statements:
        tasks = list(islice(spec.bound.tasks_of(statement.number), 20 * _LOOKED_AT))
        for task in [*tasks[:_LOOKED_AT], *tasks[-_LOOKED_AT:]]:
            call = spec.bound.call(task)
            try:
                tiles = {*operands(call.args), *operands(call.outputs)}
                need = sum(shapes.describe(key).nbytes for key in tiles)
            except InputError:
                break
            if need > memory:
                raise BudgetError(
                    f"a task needs {human(need)} for the tiles it reads and writes, and a worker may use "
                    f"{human(memory)}: use smaller tiles, or workers with more memory\n"
                    f"  in {spec.bound.where(task)}"
                )
