"""What a statement writes: assignments of regions, and updates by monoids with the loops they fold away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import ArrayBase, wrap
from linnet.loopnests.folding import fold, folded_away, folds, is_identity, masked, spread, without_nan
from linnet.loopnests.language import Expr, Load, Unary
from linnet.loopnests.loading import Region, load
from linnet.loopnests.monoids import MONOIDS, Monoid, identity
from linnet.loopnests.vectors import (
    PLAIN_SCALARS,
    Vector,
    agrees,
    alike,
    apply,
    binary,
    cast,
    functions,
    in_tiles,
    least,
    lined_up,
    logic,
    merged,
    unary,
    where,
)

if TYPE_CHECKING:
    from linnet.loopnests.running import Step
    from linnet.loopnests.statements import Statement


def store(step: Step) -> None:
    """Do what a statement says."""
    statement = step.statement
    masks = step.place.mask(), step.value_mask()
    target = step.region(statement.target)
    if statement.monoid is None:
        write(step, statement.target, target, step.evaluate(statement.value), *masks)
    elif statement.monoid in ("argmin", "argmax"):
        picked(step, target, masks)
    else:
        updated(step, target, MONOIDS[statement.monoid], masks)


def both(masks: tuple[Vector | None, Vector | None]) -> Vector | None:
    """One mask of two."""
    one, other = masks
    return other if one is None else one if other is None else apply(np.logical_and, one, other)


# ---- updates


def updated(step: Step, target: Region, monoid: Monoid, masks: tuple[Vector | None, Vector | None]) -> None:
    """`cell ⊕= value`."""
    statement, place = step.statement, step.place
    kept = _kept(target)
    folded = [name for name, run in place.ranges.items() if name not in kept]
    if target.positions and not _apart(target, step.machine.nest.arrays[statement.target.array]):
        return scattered(step, target, monoid, both(masks))
    old = step.load(statement.target)
    source = added(statement)
    taken = source is not statement.value

    def join(new: Vector) -> Vector:
        return binary("-", old, new) if taken else combined(step, monoid, old, new)

    if not folded:
        return write(step, statement.target, target, join(step.evaluate(source)), *masks)
    change = fold(step, monoid, source, folded, both(masks), old)
    # Cells that no step reaches get the identity: they stay what they are.
    fresh = change.dtype == old.dtype and is_identity(monoid, old)
    if taken or not fresh:
        mask = both(masks)
        joined = join(change)
        if joined.choices and mask is not None:  # what no step changed keeps its type, too
            places = tuple(number for number, name in enumerate(mask.axes) if name in folded)
            left = tuple(name for name in mask.axes if name not in folded)
            joined = where(Vector(functions().any(in_tiles(mask).data, axis=places), left), joined, old)
        change = joined
    write(step, statement.target, target, change, None, None)
    return None


def added(statement: Statement) -> Expr:
    """What an update adds, or takes away."""
    match statement.value:
        case Unary("less", operand):
            return operand
        case value:
            return value


def _apart(target: Region, shape: tuple[int, ...]) -> bool:
    """Whether all positions of a region are different cells; those that are computed may not be."""
    if any(isinstance(each.data, ArrayBase) for _, each in target.positions):
        return False
    axes = merged(*(each for _, each in target.positions))
    lined = [lined_up(np.asarray(each.data), each.axes, axes) for _, each in target.positions]
    flat = np.ravel_multi_index(
        tuple(np.broadcast_arrays(*lined)), tuple(shape[axis] for axis, _ in target.positions)
    )  # fmt: skip
    return np.unique(flat).size == flat.size


def _kept(target: Region) -> set[str]:
    return {*target.direct, *(name for _, each in target.positions for name in each.axes)}


def combined(step: Step, monoid: Monoid, old: Vector, new: Vector) -> Vector:
    """Old and new values joined, as the statement would do it once."""
    if monoid.name in ("min", "max"):
        return least(monoid.name, old, new)
    if monoid.name in ("or", "and"):
        return logic(monoid.name, old, new)
    if monoid.combine is not None:
        from linnet.loopnests.vectors import call

        return call("combine", "", [old, new], monoid.combine)
    return binary(monoid.name, old, new)


def scattered(step: Step, target: Region, monoid: Monoid, mask: Vector | None) -> None:
    """`total[key[i]] += v[i]`: each value goes where its key says."""
    ufuncs = {
        "+": np.add, "*": np.multiply, "min": np.minimum, "max": np.maximum, "or": np.logical_or,
        "and": np.logical_and, "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor,
    }  # fmt: skip
    statement, place = step.statement, step.place
    key = statement.target.array
    if monoid.name not in ufuncs:
        step.machine.refuse(
            statement, f"the monoid {monoid.name!r} cannot be used with a computed index",
            "use +, *, min, max, or, and", statement.target.at,
        )  # fmt: skip
    array = step.machine.arrays[key]
    source = added(statement)
    value = step.evaluate(source)
    wide = np.result_type(array.dtype, PLAIN_SCALARS[value.plain] if value.plain else value.dtype)
    checked_store(step, value, wide, array.dtype)
    value = cast(value, array.dtype)
    if source is not statement.value:
        value = unary("-", value)
    if monoid.name in ("min", "max") and value.dtype.kind == "f":
        value = without_nan(value, identity(monoid, value.dtype))
    if mask is not None:
        value = masked(mask, value, identity(monoid, value.dtype))
    axes = tuple(place.ranges)
    shape = tuple(len(run) for run in place.ranges.values())
    flat = [
        functions().broadcast_to(lined_up(in_tiles(spread(each)).data, each.axes, axes), shape).reshape(-1)
        for each in (value, *(one for _, one in sorted(all_positions(target, array.shape).items())))
    ]
    keys = flat[1] if len(flat) == 2 else tuple(flat[1:])
    ufuncs[monoid.name].at(array, keys, flat[0])


def all_positions(target: Region, shape: tuple[int, ...]) -> dict[int, Vector]:
    """Numbers and slices of a region as positions, too."""
    found = dict(target.positions)
    names = iter(target.direct)
    for axis, each in enumerate(target.key):
        if not isinstance(each, slice):
            found[axis] = Vector(np.asarray(each))
        elif axis not in found:
            found[axis] = Vector(np.arange(shape[axis])[each], (next(names),))
    return found


def picked(step: Step, target: Region, masks: tuple[Vector | None, Vector | None]) -> None:
    """`best, arg = min((best, arg), (value, label))`: the least pair of all steps."""
    statement, place = step.statement, step.place
    assert statement.label is not None
    assert statement.second is not None
    word = "min" if statement.monoid == "argmin" else "max"
    monoid, sign = MONOIDS[word], "<" if word == "min" else ">"
    best, arg = step.load(statement.target), step.load(statement.second)
    value, label = step.evaluate(statement.value), step.evaluate(statement.label)
    folded = [name for name in place.ranges if name not in _kept(target)]
    if target.positions and not _apart(target, step.machine.nest.arrays[statement.target.array]):
        step.machine.refuse(
            statement, "several steps may pick for one cell at an index that is computed or divided",
            "let the cell have an index of its own, made of loop variables", statement.target.at,
        )  # fmt: skip
    mask = both(masks)
    if folded:
        whole = Vector(cast(value, alike(best, value)[0].dtype).data, value.axes)
        top = folded_away(step, monoid, whole, folded, mask, best)
        among = binary("==", whole, top)
        among = among if mask is None else apply(np.logical_and, among, mask)
        spread = Vector(label.data, label.axes, label.plain)
        label = folded_away(step, monoid, cast(spread, np.dtype(label.dtype)), folded, among, arg)
        value = top
        masks = (None, None)
    better = binary(sign, value, best)
    tie = apply(np.logical_and, binary("==", value, best), binary(sign, label, arg))
    better = apply(np.logical_or, Vector(better.data, better.axes), tie)
    second = step.region(statement.second)
    write(step, statement.target, target, where(better, value, best), *masks)
    write(step, statement.second, second, where(better, label, arg), *masks)


# ---- writes


def checked_store(step: Step, value: Vector, new: np.dtype[Any], old: np.dtype[Any]) -> None:
    """Refuse to store what the array cannot hold: a fraction among integers, a complex number among reals,
    whole numbers that may be too long (of those that are known now, `cast` looks at each)."""
    kinds = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
    if new.kind not in kinds or old.kind not in kinds:
        return
    longer = new.kind in "iu" and old.kind in "iu" and not np.can_cast(new, old)
    known = value.plain and not isinstance(value.data, ArrayBase)
    if kinds[new.kind] > kinds[old.kind] or (longer and not known):
        name = step.machine.nest.written.get(step.statement.target.array, "the array")
        step.machine.refuse(
            step.statement,
            f"values of dtype {new} are stored in {name}, which has dtype {old} and cannot hold them",
            f"make {name} an array of {new}, or convert the value: int(...)",
            step.statement.at,
        )


def write(
    step: Step, cell: Load, target: Region, value: Vector, mask: Vector | None, guard: Vector | None
) -> None:
    """Put values into cells; where masks do not hold, cells stay what they are."""
    machine, place = step.machine, step.place
    key = cell.array
    if key in machine.nest.scalars:
        return write_scalar(step, cell, target, value, mask, guard)
    array = machine.arrays[key]
    checked_store(step, value, value.dtype, array.dtype)
    value = cast(value, array.dtype)
    if target.positions:
        return write_positions(step, array, target, value, mask, guard)
    value, joined = one_step_each(step, target, value, both((mask, guard)))
    if joined is not None:
        value = where(joined, value, Vector(*load(array, target)))
    axes = (*(name for name in place.ranges if name not in target.direct), *target.direct)
    data = _trimmed(lined_up(value.data, value.axes, axes), len(axes) - len(target.direct))
    if target.whole and isinstance(data, ArrayBase):
        data = functions().broadcast_to(data, array.shape) if data.shape != array.shape else data  # type: ignore[attr-defined]
        machine.arrays[key] = wrap(data.__node__)
    else:
        array[target.key] = data
    return None


def one_step_each(
    step: Step, target: Region, value: Vector, mask: Vector | None
) -> tuple[Vector, Vector | None]:
    """Without the loops that the target does not name: of their steps one at most writes a cell, since others
    would have been told apart. The mask says which."""
    extra = [name for name, run in step.place.ranges.items() if name not in _kept(target) and len(run) > 1]
    if mask is None or not extra or not set(extra) & {*value.axes, *mask.axes}:
        return value, mask
    kept = Vector(value.data, value.axes) if not value.is_number else spread(value)
    active = masked(mask, Vector(kept.data, kept.axes), kept.dtype.type(0))
    axes = tuple(number for number, name in enumerate(active.axes) if name in extra)
    rest = tuple(name for name in active.axes if name not in extra)
    monoid = MONOIDS["or" if active.dtype.kind == "b" else "+"]
    data = folds(monoid, in_tiles(active).data, axes, active.dtype) if axes else active.data
    places = tuple(number for number, name in enumerate(mask.axes) if name in extra)
    left = tuple(name for name in mask.axes if name not in extra)
    any_step = functions().any(in_tiles(mask).data, axis=places) if places else mask.data
    return Vector(data, rest, value.plain), Vector(any_step, left)


def _trimmed(data: Any, extra: int) -> Any:
    """Without axes of length 1 at the front: of loops with one step."""
    return (
        data
        if getattr(data, "ndim", 0) <= 0 or not extra
        else data[(0,) * extra]
        if data.ndim > extra - 1
        else data
    )


def write_positions(
    step: Step, array: Any, target: Region, value: Vector, mask: Vector | None, guard: Vector | None
) -> None:
    """Assignment by positions: only those steps that run, each to a cell of its own."""
    place = step.place
    axes = tuple(place.ranges)
    shape = tuple(len(run) for run in place.ranges.values())
    full = {
        axis: np.broadcast_to(lined_up(np.asarray(each.data), each.axes, axes), shape)
        for axis, each in all_positions(target, array.shape).items()
    }
    if guard is not None:
        alone = _apart(target, array.shape) and place.ranges.keys() <= _kept(target)
        if alone and isinstance(guard.data, ArrayBase):
            value = where(guard, value, Vector(*load(array, target)))
        else:  # a step that does not run must not write what was there over what another one writes
            known = Vector(np.asarray(guard.data), guard.axes)
            mask = known if mask is None else apply(np.logical_and, mask, known)
    data = lined_up(value.data, value.axes, axes)
    if mask is None:
        array[tuple(full[axis] for axis in range(array.ndim))] = data
        return
    chosen = np.nonzero(np.broadcast_to(lined_up(np.asarray(mask.data), mask.axes, axes), shape))
    if getattr(data, "ndim", 0):
        data = functions().broadcast_to(functions().asarray(data), shape)[chosen]
    array[tuple(full[axis][chosen] for axis in range(array.ndim))] = data


def one_type(step: Step, value: Vector) -> Vector:
    """What a scalar becomes that may have one of several types: where these make a difference, the conditions
    are computed now if there is one scalar only, and refused if there is one for each step."""
    if agrees(value):
        return value
    if value.axes or any(test.axes for test, _ in value.choices):
        _refuse_types(step)
    tests = [test.data for test, _ in value.choices]
    lazy = [each for each in tests if isinstance(each, ArrayBase)]
    found = iter(
        functions().compute(*lazy) if len(lazy) > 1 else [functions().compute(*lazy)] if lazy else []
    )
    known = [bool(next(found) if isinstance(each, ArrayBase) else each) for each in tests]
    return next(each for holds, (_, each) in zip(known, value.choices, strict=True) if holds)


def _refuse_types(step: Step) -> None:
    step.machine.refuse(
        step.statement,
        "this scalar may become a value of one of several types, and results depend on which",
        "give all its values one type: int(...), float(...), or convert the arrays",
        step.statement.at,
    )


def write_scalar(
    step: Step, cell: Load, target: Region, value: Vector, mask: Vector | None, guard: Vector | None
) -> None:
    """Put values into the cells of a scalar, whose dtype is what was put there."""
    from linnet.loopnests.running import Cells

    machine, place = step.machine, step.place
    key = cell.array
    shape, offsets = machine.cell_shape(key)
    old = machine.cells.get(key)
    value, joined = one_step_each(step, target, value, both((mask, guard)))
    if joined is not None and (old is not None or not machine.scalars[key]):
        value = where(joined, value, step.load(cell))
    value = one_type(step, value)
    axes = (*(name for name in place.ranges if name not in target.direct), *target.direct)
    extra = len(axes) - len(target.direct)
    if not shape:
        data = value.data if not value.axes else _trimmed(lined_up(value.data, value.axes, axes), extra)
        machine.cells[key] = Cells(Vector(data, (), value.plain, value.limit), ())
        return
    if target.positions:
        machine.refuse(
            step.statement, "a scalar's cells by positions", "name the scalar once for each loop", cell.at
        )
    new = spread(value)
    data = _trimmed(lined_up(new.data, new.axes, axes), extra)
    if target.whole:
        xp: Any = functions() if isinstance(data, ArrayBase) else np
        machine.cells[key] = Cells(
            Vector(xp.broadcast_to(data, shape), (), value.plain, value.limit), offsets
        )
        return
    if old is None:
        held = Vector(functions().zeros(shape, dtype=value.dtype), (), value.plain)
    else:
        if not agrees(Vector(None, choices=((value, value), (value, old.vector)))):
            _refuse_types(step)
        plain = value.plain if value.plain and old.vector.plain else ""
        held = Vector(in_tiles(old.vector).data, (), plain)
        wide = np.result_type(held.data.dtype, value.dtype)
        if held.data.dtype != wide:
            held = Vector(functions().astype(held.data, wide), (), plain)
        elif held.data is not old.vector.data:
            held = Vector(functions().copy(held.data), (), plain)
    held.data[target.key] = data
    machine.cells[key] = Cells(held, offsets)
