"""Work of a bound program from what its kernels declare: operations and bytes.

Tiles are taken as equal: a shape for all (`4096` is 4096 × 4096), or one for each array.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import islpy as isl
import numpy as np

from linnet.errors import ProgramError
from linnet.kernels import registry
from linnet.programs.columns import vectorised
from linnet.programs.counting import NoClosedForm, counts_along, fixed
from linnet.programs.expressions import names
from linnet.programs.grammar import Attribute, Expr, Float, Int, Range, Tiles
from linnet.programs.integer_sets import SET, NotAffine, greatest
from linnet.programs.statements import Statement

if TYPE_CHECKING:
    from linnet.programs.bound import BoundProgram

Shape = tuple[int, ...]
Tile = int | Shape | Mapping[str, Shape]

_MOST_TASKS = 5_000_000


def tile_shape(tile: Tile, array: str) -> Shape:
    """Shape of a tile of `array`."""
    if isinstance(tile, int):
        return (tile, tile)
    if isinstance(tile, tuple):
        return tile
    try:
        return tuple(tile[array])
    except KeyError:
        raise ProgramError(
            f"the shape of a tile of {array!r} is missing; give tile=4096, tile=(rows, columns), "
            f"or one shape for each array"
        ) from None


def total_flops(bound: BoundProgram, tile: Tile) -> float | None:
    """Operations of all tasks, or None when a kernel declares none."""
    total = 0.0
    for statement, count in zip(bound.program.statements, bound.counts, strict=True):
        declared = registry.get(statement.kernel).flops
        if declared is None:
            return None
        for operands, times in _variants(bound, statement, count):
            shapes = [_shapes(o, tile) for o in operands]
            attributes = {k: v.value for k, v in statement.run.keywords if isinstance(v, Attribute)}
            total += times * _declared(declared, shapes, attributes)
    return total


def _declared(declared: Any, shapes: list[Any], attributes: dict[str, Any]) -> float:
    """Ask a declaration, which may or may not care about attributes."""
    try:
        return float(declared(*shapes, **attributes))
    except TypeError:
        if not attributes:
            raise
        return float(declared(*shapes))


def total_bytes(bound: BoundProgram, tile: Tile, itemsize: int) -> int:
    """Bytes of all tiles that tasks read and write."""
    total = 0
    for statement, count in zip(bound.program.statements, bound.counts, strict=True):
        operands = [a for a in statement.run.args if isinstance(a, Tiles)]
        for tiles in (*statement.run.outputs, *operands):
            number = sum(n * times for n, times in _lengths(bound, statement, tiles, count))
            total += number * prod(tile_shape(tile, tiles.array)) * itemsize
    return total


def _variants(bound: BoundProgram, statement: Statement, count: int) -> list[tuple[list[Any], int]]:
    """The different operand lists of a statement's tasks, and how many tasks have each."""
    args = statement.run.args
    varying = [a for a in args if _varies(a)]
    if not varying:
        return [([_settled(a, ()) for a in args], count)]
    if len({_length_key(a) for a in varying}) == 1 and isinstance(varying[0], Tiles):
        lengths = _lengths(bound, statement, varying[0], count)
        return [([_settled(a, (n,) if _varies(a) else ()) for a in args], times) for n, times in lengths]
    columns = _columns(bound, statement)
    values = np.column_stack([_column(bound, columns, a) for a in varying])
    kinds, times = np.unique(values, axis=0, return_counts=True)
    variants: list[tuple[list[Any], int]] = []
    for kind, number in zip(kinds.tolist(), times.tolist(), strict=True):
        here = iter(kind)
        variants.append(([_settled(a, (next(here),) if _varies(a) else ()) for a in args], number))
    return variants


def _varies(operand: Tiles | Expr) -> bool:
    """Whether an operand differs from task to task in what its declaration sees."""
    if isinstance(operand, Tiles):
        return any(isinstance(i, Range) for i in operand.index)
    return bool(names(operand))


def _length_key(operand: Tiles | Expr) -> Any:
    if isinstance(operand, Tiles):
        return tuple((i.start, i.stop, i.step) for i in operand.index if isinstance(i, Range))
    return operand


@dataclass(frozen=True, slots=True)
class _Operand:
    """Tiles as a declaration sees them: of which array, and how many (None: one, not in a list)."""

    array: str
    number: int | None


def _settled(operand: Tiles | Expr, value: tuple[Any, ...]) -> Any:
    match operand:
        case Tiles():
            return _Operand(operand.array, int(value[0]) if value else None)
        case Int() | Float() if not value:
            return operand.value
        case _:
            return value[0] if value else None


def _shapes(operand: Any, tile: Tile) -> Any:
    if not isinstance(operand, _Operand):
        return operand
    shape = tile_shape(tile, operand.array)
    return shape if operand.number is None else [shape] * operand.number


def _lengths(bound: BoundProgram, statement: Statement, tiles: Tiles, count: int) -> list[tuple[int, int]]:
    """How many tiles an operand has, and how many tasks have that many."""
    ranges = [i for i in tiles.index if isinstance(i, Range)]
    if not ranges:
        return [(1, count)]
    if len(ranges) == 1:
        try:
            return _affine_lengths(bound, statement, ranges[0])
        except (NotAffine, NoClosedForm, isl.Error):
            pass
    column = _column(bound, _columns(bound, statement), tiles)
    numbers, times = np.unique(column, return_counts=True)
    return list(zip(numbers.tolist(), times.tolist(), strict=True))


def _affine_lengths(bound: BoundProgram, statement: Statement, piece: Range) -> list[tuple[int, int]]:
    sets = bound.program.proof.sets
    dims = len(statement.loops) + 1
    names = {v: k + 1 for k, v in enumerate(statement.variables)}
    start, stop = sets.function(piece.start, names, dims), sets.function(piece.stop, names, dims)
    zero = sets.space(dims)[0]
    if not isinstance(piece.step, Int):
        raise NotAffine("a step that is not constant")
    value = isl.Val.int_from_si(sets.context, piece.step.value)
    length = start.sub(stop).scale_down_val(value).floor().neg().max(zero)
    points = sets.domain(statement.number).insert_dims(SET, 0, 1)
    points = fixed(sets, points.intersect(sets.space(dims)[2][0].eq_set(length)), bound.sizes)
    if points.is_empty():
        return []
    numbers = np.arange(greatest(points, 0) + 1)
    times = counts_along(points, numbers)
    return [(n, t) for n, t in zip(numbers.tolist(), times.tolist(), strict=True) if t]


def _columns(bound: BoundProgram, statement: Statement) -> dict[str, Any]:
    number = bound.counts[statement.number]
    if number > _MOST_TASKS:
        raise ProgramError(
            f"the work of statement {statement.number} ({statement.kernel}) needs a list of {number:,} tasks "
            f"(at most {_MOST_TASKS:,}); bind the program to smaller sizes"
        )
    return bound.enumerator().columns(statement.loops, statement.guards)


def _column(bound: BoundProgram, columns: dict[str, Any], operand: Tiles | Expr) -> Any:
    values = {**bound.sizes, **columns}
    count = len(columns[""])
    if not isinstance(operand, Tiles):
        return np.broadcast_to(np.asarray(vectorised(operand, values, bound.tables)), (count,))
    total = np.ones(count, dtype=np.int64)
    for piece in operand.index:
        if isinstance(piece, Range):
            start, stop, step = (
                np.asarray(vectorised(e, values, bound.tables)) for e in (piece.start, piece.stop, piece.step)
            )
            total = total * np.maximum(0, -((start - stop) // step))
    return total
