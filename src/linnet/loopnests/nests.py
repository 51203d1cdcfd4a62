"""One nest from text to arrays: bound to names, proved, ordered, run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from linnet.loopnests.binding import MISSING, Resolver, resolved
from linnet.loopnests.dependences import dependences
from linnet.loopnests.flattening import flattened
from linnet.loopnests.language import Stmt
from linnet.loopnests.legality import check, refuse_recurrence
from linnet.loopnests.ordering import Part, Recurrence, ordered
from linnet.loopnests.refusing import Origin
from linnet.loopnests.reshaping import reshaped
from linnet.loopnests.running import Machine
from linnet.loopnests.statements import Nest
from linnet.loopnests.sweeping import swept
from linnet.loopnests.vectors import functions
from linnet.loopnests.waving import wave
from linnet.programs.grammar import At

UNSET: Any = type("Unset", (), {"__repr__": lambda self: "<unset>"})()
"""A name that has no value after the nest."""


class NoValue:
    """A scalar after loops of which nobody knows which step assigned it last: using it is refused."""

    def __init__(self, origin: Origin, name: str, at: At | None) -> None:
        self.refuse = lambda: origin.refuse(
            f"{name!r} is read after the loops, and which step assigns it last depends on values or bounds",
            "put what the last step leaves into an array, or assign it after the loops",
            at,
        )


def _refusing(self: NoValue, *arguments: object) -> None:
    self.refuse()


for _word in [
    "add",
    "radd",
    "sub",
    "rsub",
    "mul",
    "rmul",
    "truediv",
    "rtruediv",
    "floordiv",
    "rfloordiv",
    "mod",
    "rmod",
    "pow",
    "rpow",
    "neg",
    "pos",
    "abs",
    "lt",
    "le",
    "gt",
    "ge",
    "eq",
    "ne",
    "bool",
    "float",
    "int",
    "index",
    "len",
    "getitem",
    "iter",
    "array",
    "call",
    "and",
    "rand",
    "or",
    "ror",
    "xor",
    "rxor",
    "matmul",
    "rmatmul",
]:
    setattr(NoValue, f"__{_word}__", _refusing)


def run_nest(
    origin: Origin, body: tuple[Stmt, ...], results: tuple[str, ...], lookup: Callable[[str], Any]
) -> tuple[Any, ...]:
    """Do what statements say; the values of the names asked for. WholeArrays if they are no nest."""
    made, resolver = resolved(origin, body, lookup)
    waves: list[Machine] = []

    def waved(nest: Nest) -> bool:
        machine = Machine(nest, resolver.objects, resolver.functions, origin, lookup, ())
        waves.append(machine)
        with np.errstate(all="ignore"):
            return wave(machine, results)

    nest, parts = planned(origin, made, resolver, waved)
    if parts or not nest.statements:
        machine = Machine(nest, resolver.objects, resolver.functions, origin, lookup, parts, swept)
        with np.errstate(all="ignore"):
            machine.run()
    else:
        (machine,) = waves
    for key, array in resolver.objects.items():
        if any(each.array == key for statement in nest.statements for each in statement.writes):
            array._node = machine.arrays[key].__node__
    return tuple(_result(machine, resolver, nest, name, lookup) for name in results)


def planned(
    origin: Origin, body: tuple[Stmt, ...], resolver: Resolver, waved: Callable[[Nest], bool] | None = None
) -> tuple[Nest, tuple[Part, ...]]:
    """A nest and the order of its parts, after all that can be wrong was looked for.

    Where every loop would have to run step by step, `waved` may do it all (there are no parts then); else the
    loops are cut or skewed and looked at again.
    """
    nest = flattened(origin, body, resolver)
    found = dependences(nest.statements)
    check(origin, nest, found)
    try:
        return nest, ordered(nest.statements, found)
    except Recurrence as recurrence:
        if waved is not None and waved(nest):
            return nest, ()
        for other in reshaped(body, nest, found, recurrence):
            again = flattened(origin, other, resolver)
            try:
                return again, ordered(again.statements, dependences(again.statements))
            except Recurrence:
                continue
        refuse_recurrence(origin, nest, recurrence)


def _result(machine: Machine, resolver: Resolver, nest: Nest, name: str, lookup: Callable[[str], Any]) -> Any:
    """The value of a name after the nest."""
    key = f"${name}"
    if key not in nest.scalars:
        return _last_index(machine, nest, name, lookup)
    if key not in machine.cells:
        found = lookup(name)
        return UNSET if found is MISSING else found
    cells = machine.cells[key]
    data = cells.vector.data
    axes = machine.nest.scalars[key]
    if axes:
        writers = [each for each in nest.statements if any(one.array == key for one in each.writes)]
        loops = {axis.name: axis for each in writers for axis in each.axes if axis.name in axes}
        bent = any(one.terms for axis in loops.values() for one in (*axis.at_least, *axis.at_most))
        if bent or any(each.guards for each in writers):
            return NoValue(machine.origin, name, writers[-1].at)
        data = (
            data[tuple(-1 if loops[one].step > 0 else 0 for one in machine.scalars[key])]
            if machine.scalars[key]
            else data
        )
    if isinstance(data, np.ndarray | np.generic):
        return data.item() if cells.vector.plain else functions().asarray(data)
    return data


def _last_index(machine: Machine, nest: Nest, name: str, lookup: Callable[[str], Any]) -> Any:
    """What a loop variable is after its loop."""
    for statement in nest.statements:
        for axis in statement.axes:
            if axis.written == name and not any(each.terms for each in (*axis.at_least, *axis.at_most)):
                run = axis.run({}, {})
                if run:
                    return run[-1]
    found = lookup(name)
    return UNSET if found is MISSING else found
