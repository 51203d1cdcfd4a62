"""Elements of arrays for many steps at once: slices where an index is one loop variable, else positions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from linnet.arrays.elements.core import ArrayBase, wrap
from linnet.loopnests.affine import Affine, affine
from linnet.loopnests.language import Expr
from linnet.loopnests.places import Place
from linnet.loopnests.vectors import Vector, functions, in_tiles, lined_up, merged
from linnet.sparse_arrays.array import SparseArray


@dataclass(frozen=True, slots=True)
class Region:
    """Cells of an array: for each axis a number, a slice along a loop variable, or positions."""

    key: tuple[int | slice, ...]
    """Axes by positions have a full slice here."""
    direct: tuple[str, ...]
    """The loop variables of the slices, in the order of the axes."""
    positions: tuple[tuple[int, Vector], ...]
    """The other axes."""
    whole: bool
    """Whether the slices take all of the array, in its order."""


def region(
    indices: tuple[Expr, ...], shape: tuple[int, ...], place: Place, evaluate: Callable[[Expr, int], Vector],
    offsets: tuple[int, ...] | None = None,
) -> Region:  # fmt: skip
    """Which cells indices mean. Positions beyond the array (where no step runs) are moved into it."""
    sums: list[Affine | None] = []
    for number, each in enumerate(indices):
        found = affine(each)
        found = None if found is None else found.fixed(place.fixed)
        sums.append(found if found is None or offsets is None else found.plus(-offsets[number]))
    # An index is a slice if it is the only one with its variable, and stays inside the array.
    counts: dict[str, int] = {}
    others = [_variables(each, one, place) for each, one in zip(indices, sums, strict=True)]
    for names in others:
        for name in names:
            counts[name] = counts.get(name, 0) + 1
    key: list[int | slice] = []
    direct: list[str] = []
    positions: list[tuple[int, Vector]] = []
    for axis, (each, one, length) in enumerate(zip(indices, sums, shape, strict=True)):
        if one is not None and not one.terms and 0 <= one.constant < length:
            key.append(one.constant)
            continue
        low, high = (0, length) if one is None else one.ends(place.box)
        if (
            one is not None
            and len(one.terms) == 1
            and counts[one.terms[0][0]] == 1
            and low >= 0
            and high < length
        ):
            key.append(_slice(one, place))
            direct.append(one.terms[0][0])
            continue
        key.append(slice(None))
        found = place.positions(one) if one is not None else evaluate(each, length)
        positions.append((axis, _inside(found, length, one is not None)))
    whole = not positions and all(
        isinstance(one, slice) and one.step == 1 and one.start == 0 and one.stop == length
        for one, length in zip(key, shape, strict=True)
    )
    return Region(tuple(key), tuple(direct), tuple(positions), whole)


def _variables(index: Expr, one: Affine | None, place: Place) -> set[str]:
    from linnet.loopnests.language import Index, walk

    if one is not None:
        return set(one.names)
    return {each.name for each in walk(index) if isinstance(each, Index) and each.name in place.ranges}


def _slice(one: Affine, place: Place) -> slice:
    name, factor = one.terms[0]
    run = place.ranges[name]
    first, step = one.constant + factor * run[0], factor * run.step
    last = first + step * (len(run) - 1)
    if len(run) == 1:
        return slice(first, first + 1, 1)
    return slice(first, last + 1 if step > 0 else (last - 1 if last else None), step)


def _inside(found: Vector, length: int, clip: bool) -> Vector:
    """Positions as an array; those that only masked steps have are moved inside."""
    data = found.data
    if isinstance(data, ArrayBase):
        return found
    data = np.asarray(data)
    if clip and length:
        data = np.clip(data, 0, length - 1)
    return Vector(data, found.axes)


def load(array: Any, where: Region) -> tuple[Any, tuple[str, ...]]:
    """The elements, and the loop variables of the axes."""
    taken: Any
    if isinstance(array, SparseArray):
        taken = array if where.whole or not where.key else array[where.key]
    elif hasattr(array, "__node__") and (where.whole or not where.key):
        taken = wrap(array.__node__)  # a handle of its own: the array may be assigned to before this is used
    else:
        taken = array[where.key]
    if not where.positions:
        return taken, where.direct
    kept = [axis for axis, each in enumerate(where.key) if isinstance(each, slice)]
    by_position = [kept.index(axis) for axis, _ in where.positions]
    rest = [axis for axis in range(len(kept)) if axis not in by_position]
    moved = (
        functions().permute_dims(taken, (*by_position, *rest))
        if by_position != list(range(len(by_position)))
        else taken
    )
    axes = merged(*(each for _, each in where.positions))
    indices = [lined_up(each.data, each.axes, axes) for _, each in where.positions]
    if any(isinstance(each, ArrayBase) for each in indices):
        indices = [in_tiles(Vector(each)).data for each in indices]
    picked = moved[tuple(indices)] if len(indices) > 1 else moved[indices[0]]
    return picked, (*axes, *where.direct)
