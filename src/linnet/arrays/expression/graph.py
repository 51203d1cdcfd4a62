"""The nodes of an expression in order, each once, and which of them are computed together.

Two nodes that say the same of the same operands are one (common subexpressions run once).
Chains of `Map` and `Axes` become one group, computed in one pass over memory: a node joins the
group of its readers if they are all in one, and is stored otherwise. A `Fold` is the end of a
group; folds of the same operand over the same axes share it, so that mean and variance
read their data once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from linnet.arrays.expression.nodes import (
    Axes,
    Blocks,
    Fold,
    Map,
    Node,
    Part,
    ProgramCall,
    Result,
    Source,
    Stored,
)

_MOST_STEPS = 2000
"""Longer groups are broken: their code would outgrow what it saves."""


@dataclass(slots=True)
class Vertex:
    """A node of the graph."""

    node: Node
    operands: tuple[int, ...]
    """Their numbers."""
    readers: list[int] = field(default_factory=list)
    wanted: bool = False
    """Whether the user asked for it."""
    group: int = -1
    """The number of the node that ends its group; its own, if it is stored."""


@dataclass(slots=True)
class Graph:
    """Nodes in an order in which operands come first."""

    entries: list[Vertex]
    wanted: list[int]
    """The numbers of what was asked for."""
    key: tuple[Any, ...]
    """Equal for expressions that differ in nothing but the data in their sources."""
    folds: dict[int, list[int]]
    """For each group that ends in folds, these; the group has the number of the first."""


def graph(nodes: Sequence[Node]) -> Graph:
    """Number the nodes of an expression, and group them."""
    numbers: dict[int, int] = {}
    known: dict[tuple[Any, ...], int] = {}
    entries: list[Vertex] = []
    keys: list[tuple[Any, ...]] = []
    for node in ordered(nodes):
        operands = tuple(numbers[id(each)] for each in node.operands)
        key = key_of(node, operands)
        identity = (*key, _identity(node))
        number = known.get(identity)
        if number is None:
            number = known[identity] = len(entries)
            entries.append(Vertex(node, operands))
            keys.append(key)
        numbers[id(node)] = number
    return assembled(entries, keys, [numbers[id(node)] for node in nodes])


def assembled(entries: list[Vertex], keys: Sequence[tuple[Any, ...]], wanted: list[int]) -> Graph:
    """The graph of nodes that know their operands, and nothing else yet."""
    for number in wanted:
        entries[number].wanted = True
    for number, entry in enumerate(entries):
        for operand in dict.fromkeys(entry.operands):
            entries[operand].readers.append(number)
    folds = _grouped(entries)
    return Graph(entries, wanted, (tuple(keys), tuple(wanted)), folds)


def ordered(nodes: Sequence[Node], ends: Collection[int] = ()) -> list[Node]:
    """Operands before those who read them; without recursion, since chains may be long.

    Of nodes whose `id` is among `ends` the operands are left out.
    """
    done: set[int] = set()
    order: list[Node] = []
    pending: list[tuple[Node, bool]] = [(node, False) for node in reversed(nodes)]
    while pending:
        node, expanded = pending.pop()
        if id(node) in done:
            continue
        if expanded:
            done.add(id(node))
            order.append(node)
        else:
            pending.append((node, True))
            if id(node) not in ends:
                pending.extend((each, False) for each in reversed(node.operands) if id(each) not in done)
    return order


def _identity(node: Node) -> Any:
    """What tells sources with different data apart."""
    if isinstance(node, Source):
        data = node.data
        return (data.__array_interface__["data"][0], data.strides)
    return id(node.tiles) if isinstance(node, Stored) else None


def key_of(node: Node, operands: tuple[int, ...]) -> tuple[Any, ...]:
    """What two nodes that are computed in the same way have in common."""
    match node:
        case Source():
            return ("source", node.dtype, node.layout)
        case Stored():
            return ("stored", node.dtype, node.layout)
        case Map():
            return (node.op, node.extra, operands, node.dtype, node.layout)
        case Axes():
            return ("axes", node.axes, operands)
        case Fold():
            inner = (node.kind, node.axes, node.keepdims, node.inner, node.finish)
            return ("fold", inner, operands, node.dtype)
        case Blocks():
            return ("blocks", node.pieces, operands, node.dtype, node.layout, node.parts)
        case Part():
            return ("part", node.number, operands, node.dtype, node.layout)
        case ProgramCall():
            return ("call", node.recipe, operands)
        case Result():
            return ("result", node.name, operands)
    raise TypeError(f"{type(node).__name__} is no node of an expression")


def _grouped(entries: list[Vertex]) -> dict[int, list[int]]:
    folds: dict[int, list[int]] = {}
    shared: dict[tuple[int, tuple[int, ...]], int] = {}
    sizes: dict[int, int] = {}
    for number, entry in enumerate(entries):
        if isinstance(entry.node, Fold):
            first = shared.setdefault((entry.operands[0], entry.node.axes), number)
            folds.setdefault(first, []).append(number)
            entry.group = first
    for number in range(len(entries) - 1, -1, -1):
        entry = entries[number]
        if isinstance(entry.node, Fold):
            continue
        entry.group = number
        if not isinstance(entry.node, Map | Axes) or entry.wanted:
            continue
        groups = {entries[reader].group for reader in entry.readers}
        fused = all(isinstance(entries[reader].node, Map | Axes | Fold) for reader in entry.readers)
        if fused and len(groups) == 1 and sizes.get(min(groups), 0) < _MOST_STEPS:
            entry.group = groups.pop()
            sizes[entry.group] = sizes.get(entry.group, 0) + 1
    return folds
