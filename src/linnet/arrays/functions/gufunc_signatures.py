"""Signatures of generalised functions, and the axes that their cores are on."""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from typing import Any

from linnet.arrays.elements.core import ArrayBase, axis_of
from linnet.arrays.expression.builders import permuted
from linnet.arrays.expression.nodes import Node

Core = tuple[str, ...]
_CORE = re.compile(r"\(([^()]*)\)")


def parsed(signature: str) -> tuple[list[Core], list[Core]]:
    """The cores of operands and of results.

    >>> parsed("(i,j),(j)->(i)")
    ([('i', 'j'), ('j',)], [('i',)])
    """
    text = re.sub(r"\s+", "", signature)
    sides = text.split("->")
    if len(sides) != 2 or any(_CORE.sub("", side).strip(",") for side in sides):
        raise ValueError(f"signature {signature!r} is not of the form '(i,j),(j)->(i)'")
    cores = [[tuple(name for name in core.split(",") if name) for core in _CORE.findall(s)] for s in sides]
    return cores[0], cores[1]


Places = tuple[int, ...] | None
"""The axes of a core; None: the last ones."""


def core_axes(
    axes: Sequence[Any] | None,
    axis: int | None,
    inputs: list[Core],
    outputs: list[Core],
    keepdims: bool,
    signature: str,
) -> list[Places]:
    """Where the cores of arrays and results are."""
    cores = [*inputs, *outputs]
    if axis is not None:
        if axes is not None:
            raise TypeError("give axis= or axes=, not both")
        if len({name for core in cores for name in core}) != 1 or any(len(core) > 1 for core in cores):
            raise TypeError(f"axis={axis} is for one core axis alone, not for {signature!r}; use axes=")
        wide = [bool(core) or keepdims for core in cores]
        return [(operator.index(axis),) if each else () for each in wide]
    if axes is None:
        return [None] * len(cores)
    given = [(operator.index(each),) if hasattr(each, "__index__") else tuple(each) for each in axes]
    if len(given) == len(inputs) and not any(outputs):
        given += [given[0] if keepdims else ()] * len(outputs)
    if len(given) != len(cores):
        raise ValueError(f"axes={list(axes)!r} has {len(axes)} entries for the {len(cores)} of {signature!r}")
    wanted = [*map(len, inputs), *((len(inputs[0]) if keepdims else len(core)) for core in outputs)]
    if wanted != list(map(len, given)):
        raise ValueError(f"axes={list(axes)!r}: {signature!r} has cores of {wanted} axes")
    return list(given)


def turned(node: Node, places: Places) -> Node:
    """An operand with these axes last."""
    if not places:
        return node
    core = [axis_of(place, node.ndim) for place in places]
    if len(set(core)) != len(core):
        raise ValueError(f"axes {places}: the same axis is named twice")
    return permuted(node, (*(axis for axis in range(node.ndim) if axis not in core), *core))


def turned_back(node: Node, places: Places) -> Node:
    """A result with its last axes at these places."""
    if not places:
        return node
    first = node.ndim - len(places)
    order: list[int] = list(range(first))
    for place, axis in sorted((axis_of(p, node.ndim), first + k) for k, p in enumerate(places)):
        order.insert(place, axis)
    return permuted(node, tuple(order))


def check_whole(args: Sequence[Any], nodes: Sequence[Node], cores: list[Core]) -> None:
    """Refuse arrays of ours whose cores lie in several tiles."""
    for number, (each, node, core) in enumerate(zip(args, nodes, cores, strict=True)):
        if not isinstance(each, ArrayBase):
            continue
        for name, count in zip(core, node.grid[node.ndim - len(core) :], strict=False):
            if count > 1:
                raise ValueError(
                    f"axis {name!r} of argument {number} lies in {count} tiles, and the function takes whole "
                    f"ones; rechunk it to -1, or pass allow_rechunk=True"
                )
