"""Assigned values belong to the array: what an assignment left to be computed is computed once.

A version of an array in memory that an assignment made, and that is not computed yet, is known here. The
first time that its values are needed, by whomever, all of it is computed and kept in tiles, as much as the
array took before; expressions that are built on it read these. Pure expressions are not remembered, and
neither are versions of what is not in memory, a file perhaps that is longer than memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from numpy.typing import NDArray

from linnet.arrays.expression.graph import ordered
from linnet.arrays.expression.nodes import Node, Part, ProgramCall, Source, Stored
from linnet.arrays.lowering.folds_by_node import on

_versions: WeakKeyDictionary[Node, Node | None] = WeakKeyDictionary()
"""By the node of a version: its tiles, or None until they are computed."""


_numbers: WeakKeyDictionary[Node, Source] = WeakKeyDictionary()
"""Values of nodes of one element that assigned values were made of."""

_DEEP = 24
"""Nodes that an assigned value may be made of before the numbers among them are kept."""


def assigned(node: Node, before: Node) -> None:
    """A node is what an assignment made of another one."""
    if isinstance(before, Source | Stored) or before in _versions:
        _versions[node] = None


def latest(node: Node) -> Node:
    """The tiles of a version that was computed; else the node itself."""
    return (_versions.get(node) or node) if _versions else node


def with_versions(nodes: Sequence[Node], compute: Callable[[list[Node]], list[Node]]) -> list[Node]:
    """The same nodes, built on the tiles of versions; `compute` makes those that are not there yet."""
    if not _versions:
        return list(nodes)
    found = _outermost(nodes)
    if not found:
        return list(nodes)
    missing = [node for node in found if _versions[node] is None]
    if missing:
        for node, made in zip(missing, compute(missing), strict=True):
            _versions[node] = made
    kept = {id(node): made for node in found if (made := _versions[node]) is not None}
    return rebuilt(nodes, kept)


def rebuilt(nodes: Sequence[Node], kept: Mapping[int, Node]) -> list[Node]:
    """The same nodes with others in the place of some, which are given by `id`."""
    built: dict[int, Node] = {}
    for node in ordered(nodes, kept):
        if id(node) in kept:
            built[id(node)] = kept[id(node)]
            continue
        operands = tuple(built[id(each)] for each in node.operands)
        same = all(new is old for new, old in zip(operands, node.operands, strict=True))
        built[id(node)] = node if same else on(node, operands)
    return [built[id(node)] for node in nodes]


# ---- numbers


def shortened(node: Node, compute: Callable[[list[Node]], list[NDArray[Any]] | None]) -> Node:
    """What is about to be assigned, with numbers that it is made of in the place of how they come about.

    A recurrence makes each number of the one before it. Without this, every step would begin at the first.
    """
    known: dict[int, Node] = {}
    numbers: list[Node] = []
    seen: set[int] = set()
    pending = [node]
    while pending:
        current = pending.pop()
        if id(current) in seen or isinstance(current, Source | Stored):
            continue
        seen.add(id(current))
        value = _numbers.get(current)
        if value is not None:
            known[id(current)] = value
            continue
        if math.prod(current.shape) == 1 and not isinstance(current, Part | ProgramCall):
            numbers.append(current)
        pending.extend(current.operands)
    if len(seen) > _DEEP and numbers:
        values = compute(rebuilt(numbers, known))
        for each, value in zip(numbers, values or (), strict=False):
            known[id(each)] = _numbers[each] = Source(value, each.layout)
    return rebuilt([node], known)[0] if known else node


def _outermost(nodes: Sequence[Node]) -> list[Node]:
    """Versions that are read, but by no other version."""
    found: list[Node] = []
    seen: set[int] = set()
    pending = list(nodes)
    while pending:
        node = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node in _versions:
            found.append(node)
        else:
            pending.extend(node.operands)
    return found
