"""From a program and its arrays to a job: what is stored of them, and what is refused before it begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from linnet.errors import BudgetError, InputError
from linnet.kernels import get as get_kernel
from linnet.programs import BoundProgram, In
from linnet.programs.grammar import Attribute
from linnet.programs.shapes import Shapes, operands
from linnet.programs.statements import Statement
from linnet.programs.urgency import urgency
from linnet.tiles import TiledArray, TileKey, human
from linnet.tiles.codec import encoded
from linnet.workers.parts import Parts
from linnet.workers.serving import blas_core
from linnet.workers.spec import InputSpec, JobSpec, Options, tile_key

_LOOKED_AT = 50
"""Tasks of each statement whose need of memory is looked at."""


def job_spec(
    bound: BoundProgram,
    inputs: Mapping[str, TiledArray],
    options: Options,
    arrays: Mapping[str, InputSpec],
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
    tables = {name: list(bound.tables[name].values()) for name in program.tables}
    return JobSpec(program, bound.sizes, tables, described, urgency(bound), bound.count(), options, arrays)


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


def store_inputs(parts: Parts, inputs: Mapping[str, TiledArray]) -> None:
    """Put the tiles of the inputs into the store."""
    for name, array in inputs.items():
        for index in array.tiles:
            key = tile_key(parts.address.job, TileKey(name, index), None)
            parts.store.put(key, encoded(array.tiles[index]))


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
