"""Tile programs called on arrays: `L = cholesky(A=x)` gives a lazy array, as any function of arrays does.

Sizes are found by trying the numbers of tiles that the arrays have; how results are cut follows from what
kernels declare of their shapes, or from what they make of small tiles.
"""

from __future__ import annotations

import itertools
from collections import namedtuple
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from linnet.algorithms.recipe import Output, Recipe, only
from linnet.arrays.elements.core import ArrayBase
from linnet.arrays.elements.creation import asarray
from linnet.arrays.expression.nodes import Node
from linnet.arrays.linalg.matrices import made
from linnet.errors import BindError, InputError, ProgramError
from linnet.programs import BoundProgram, In, Out, TileProgram
from linnet.programs.program import calls_by
from linnet.programs.shapes import Description, Shapes
from linnet.tiles import Index, Layout, TiledArray, TileKey
from linnet.tiles.layout import from_sizes

_MOST_TRIES = 20_000
"""Combinations of numbers of tiles that are tried for the sizes."""
_MANY_TASKS = 20_000
"""A program with more is looked at with fewer tiles: how results are cut shows there."""
_FEW = 4
"""Tiles along an axis that are looked at then."""


def called(program: TileProgram, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The outputs of a program on arrays: a lazy array, or a named tuple of several."""
    inputs, sizes, tables = _arguments(program, given, named)
    cuts = {name: TiledArray(node.layout, node.dtype, {}) for name, node in inputs.items()}
    settled = _sizes(program, sizes, tables, {name: each.grid for name, each in cuts.items()})
    outputs = _outputs(program, settled, tables, cuts)
    recipe = Recipe(
        program.name,
        tuple(inputs),
        tuple(outputs.items()),
        only(program),
        tuple(settled.items()),
        tables=tuple((name, tuple(int(v) for v in values)) for name, values in tables.items()),
    )
    found = made(recipe, *inputs.values())
    if len(found) == 1:
        return next(iter(found.values()))
    return _result_class(program.name, tuple(found))(**found)


def _result_class(name: str, fields: tuple[str, ...]) -> Any:
    """A named tuple of outputs; fields that cannot be attributes (`_x`) are numbered."""
    return namedtuple(name if name.isidentifier() else "Outputs", fields, rename=True)


def _arguments(
    program: TileProgram, given: tuple[Any, ...], named: dict[str, Any]
) -> tuple[dict[str, Node], dict[str, int], dict[str, Any]]:
    """Arrays by name, sizes, and tables."""
    expected = [name for name, role in program.arrays.items() if isinstance(role, In)]
    if len(given) > len(expected):
        raise InputError(
            f"{program.name} takes {len(expected)} arrays ({', '.join(expected)}); {len(given)} were given"
        )
    arrays: dict[str, Any] = dict(zip(expected, given, strict=False))
    sizes: dict[str, int] = {}
    tables: dict[str, Any] = {}
    for name, value in named.items():
        if name in arrays:
            raise InputError(f"{program.name} was given {name} by position and by name; give it once")
        target = arrays if name in expected else sizes if name in program.sizes else tables
        if target is tables and name not in program.tables:
            known = ", ".join((*expected, *program.sizes, *program.tables))
            raise InputError(f"{program.name} has no input or size {name!r}; it has {known}")
        target[name] = value
    missing = [name for name in (*expected, *program.tables) if name not in arrays and name not in tables]
    if missing:
        raise InputError(f"{program.name} also needs {', '.join(missing)}")
    return {name: _node(name, arrays[name]) for name in expected}, sizes, tables


def _node(name: str, value: Any) -> Node:
    if isinstance(value, TiledArray):
        from linnet.arrays.linalg.matrices import operand

        return operand(value).__node__
    if not isinstance(value, ArrayBase):
        try:
            value = asarray(value)
        except (TypeError, ValueError) as error:
            raise InputError(f"input {name} is no array: {error}") from error
    return value.__node__


# ---- sizes


def _sizes(
    program: TileProgram, given: Mapping[str, int], tables: Mapping[str, Any], grids: Mapping[str, Index]
) -> dict[str, int]:
    """The sizes at which the program reads as many tiles of each array as it has."""
    unknown = [name for name in program.sizes if name not in given]
    counts = sorted({count for grid in grids.values() for count in grid})
    if len(counts) ** len(unknown) > _MOST_TRIES:
        raise InputError(
            f"the sizes of {program.name} cannot be told from how its arrays are cut: there are too many; "
            f"give some of {', '.join(f'{name}=' for name in unknown)}"
        )
    fitting: list[dict[str, int]] = []
    nearest: dict[str, Index] = {}
    for values in itertools.product(counts, repeat=len(unknown)):
        tried = {**given, **dict(zip(unknown, values, strict=True))}
        try:
            bound = program.bind(**tried, **tables)
            read = {name: bound.grid(name) for name in grids}
        except (BindError, ProgramError, ValueError, ArithmeticError):
            if not unknown:
                raise
            continue
        nearest = read
        if all(_covers(read[name], grids[name]) for name in grids):
            fitting.append(tried)
    if unknown and fitting:
        exact = [each for each in fitting if _reads_all(program, each, tables, grids)]
        if not exact:
            raise InputError(_part_only(program, fitting[-1], unknown, tables, grids))
        fitting = exact
    if not fitting:
        raise InputError(_misfit(program, given, unknown, grids, nearest))
    open_sizes = [name for name in unknown if len({each[name] for each in fitting}) > 1]
    if open_sizes:
        raise InputError(
            f"{', '.join(open_sizes)} of {program.name} cannot be told from how its arrays are cut "
            f"({', '.join(grids)}); give {', '.join(f'{name}=...' for name in open_sizes)}"
        )
    return {name: fitting[0][name] for name in program.sizes}


def _covers(read: Index, grid: Index) -> bool:
    """Whether no tile is read that is not there."""
    return len(read) == len(grid) and all(few <= many for few, many in zip(read, grid, strict=True))


def _reads_all(
    program: TileProgram, sizes: Mapping[str, int], tables: Mapping[str, Any], grids: Mapping[str, Index]
) -> bool:
    bound = program.bind(**sizes, **tables)
    return all(bound.grid(name) == grid for name, grid in grids.items())


def _part_only(
    program: TileProgram,
    sizes: Mapping[str, int],
    unknown: Sequence[str],
    tables: Mapping[str, Any],
    grids: Mapping[str, Index],
) -> str:
    bound = program.bind(**sizes, **tables)
    name = next(each for each in grids if bound.grid(each) != grids[each])
    wanted = ", ".join(f"{each}={sizes[each]}" for each in unknown)
    return (
        f"no sizes of {program.name} read all tiles of its arrays ({_counts(grids)}): at {wanted} it reads "
        f"only {'×'.join(map(str, bound.grid(name)))} of {name}; give {wanted} if that is meant, or cut the "
        "arrays otherwise (rechunk)"
    )


def _counts(grids: Mapping[str, Index]) -> str:
    return ", ".join(f"{name} {'×'.join(map(str, grid)) or '1'}" for name, grid in grids.items())


def _misfit(
    program: TileProgram,
    given: Mapping[str, int],
    unknown: Sequence[str],
    grids: Mapping[str, Index],
    read: Mapping[str, Index],
) -> str:
    cut = _counts(grids)
    if not unknown:
        asked = _counts(read)
        sizes = ", ".join(f"{name}={value}" for name, value in given.items())
        return (
            f"{program.name} at {sizes or 'its sizes'} reads these tiles: {asked}; the arrays have {cut}. "
            "Cut them otherwise (rechunk), or give other sizes"
        )
    return (
        f"no sizes of {program.name} fit arrays with these tiles: {cut}; cut them as the program reads them "
        f"(rechunk), or give {', '.join(f'{name}=...' for name in unknown)}"
    )


# ---- outputs


def _outputs(
    program: TileProgram,
    sizes: Mapping[str, int],
    tables: Mapping[str, Any],
    cuts: Mapping[str, TiledArray],
) -> dict[str, Output]:
    bound = program.bind(**sizes, **tables)
    names = [name for name, role in program.arrays.items() if isinstance(role, Out)]
    looked, inputs = bound, dict(cuts)
    if not tables and bound.count() > _MANY_TASKS:
        looked, inputs = _shortened(program, sizes, cuts)
    shapes = Shapes(looked, inputs, try_dtypes=True)
    outputs: dict[str, Output] = {}
    for name in names:
        lengths, dtype = _lengths(looked, shapes, name)
        if looked is not bound:
            lengths = [_stretched(each, count) for each, count in zip(lengths, bound.grid(name), strict=True)]
        outputs[name] = Output(Layout(tuple(map(from_sizes, lengths))), dtype)
    return outputs


def _shortened(
    program: TileProgram, sizes: Mapping[str, int], cuts: Mapping[str, TiledArray]
) -> tuple[BoundProgram, dict[str, TiledArray]]:
    """The program on arrays with fewer tiles: the first ones and the last."""
    few = {count: min(count, _FEW) for each in cuts.values() for count in each.grid}
    inputs = {
        name: TiledArray(
            Layout(tuple(from_sizes(_ends(np.diff(edges).tolist())) for edges in each.layout.boundaries)),
            each.dtype,
            {},
        )
        for name, each in cuts.items()
    }
    return program.bind(**{name: few.get(value, value) for name, value in sizes.items()}), inputs


def _ends(lengths: list[int]) -> list[int]:
    return lengths if len(lengths) <= _FEW else [*lengths[: _FEW - 1], lengths[-1]]


def _stretched(lengths: list[int], count: int) -> list[int]:
    """Lengths of all tiles along an axis from those of the first ones and the last."""
    if len(lengths) == count:
        return lengths
    return [*lengths[:-1], *[lengths[-2]] * (count - len(lengths)), lengths[-1]]


def _lengths(bound: BoundProgram, shapes: Shapes, name: str) -> tuple[list[list[int]], np.dtype[Any]]:
    """The lengths of the tiles of an output along each axis; all its tiles must fit together."""
    grid = bound.grid(name)
    found: list[list[tuple[int, TileKey] | None]] = [[None] * count for count in grid]
    kinds: set[np.dtype[Any]] = set()
    for index in itertools.product(*map(range, grid)):
        key = TileKey(name, index)
        if bound.writer(key) is None:
            continue
        described: Description = shapes.describe(key)
        kinds.add(described.dtype)
        if len(described.shape) != len(index):
            raise InputError(
                f"output {name}: its tile {key} has {len(described.shape)} axes but {len(index)} indices, so "
                "that its tiles form no array; make it an ln.Temp, or run the program with an engine"
            )
        for axis, place in enumerate(index):
            length, known = described.shape[axis], found[axis][place]
            if known is not None and known[0] != length:
                raise InputError(
                    f"output {name}: its tiles {known[1]} and {key} do not fit together: {known[0]} and "
                    f"{length} elements along axis {axis}; make it an ln.Temp, or run it with an engine"
                )
            found[axis][place] = (length, key)
    for axis, places in enumerate(found):
        if None in places:
            raise InputError(
                f"output {name}: no tile at place {places.index(None)} along axis {axis} is written, so that "
                "its length is unknown; write at least one there"
            )
    lengths = [[each[0] for each in places if each is not None] for places in found]
    return lengths, np.result_type(*kinds) if kinds else np.dtype(np.float64)


calls_by(called)

METHODS: dict[str, Any] = {}
__all__: list[str] = []
