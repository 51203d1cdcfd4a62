"""Arrays in files that are needed twice are read twice, where the budget has no room for them in between.

In `x - x.mean()` every tile is needed for the mean, and again when that is known. Under a budget tiles
would wait in scratch files meanwhile, written and read as long as they are; but what lies in a file, often
compressed, can be read from there again. Readers that do not wait for each other still share a tile.
"""

from __future__ import annotations

import math
from weakref import WeakSet

from linnet.arrays.expression.graph import Graph, Vertex, assembled, key_of
from linnet.arrays.expression.nodes import Blocks, Fold, Node
from linnet.kernels import get as get_kernel

_repeatable: WeakSet[Node] = WeakSet()


def repeatable(node: Node) -> Node:
    """Say of a node without operands that its tiles may be made again: they lie somewhere, to be read."""
    _repeatable.add(node)
    return node


def is_repeatable(node: Node) -> bool:
    """Whether that was said of it."""
    return node in _repeatable


def repeated(graph: Graph, memory: int | None) -> Graph:
    """The graph in which what is too large to be kept is read again by those who wait for other readers."""
    if memory is None:
        return graph
    levels: dict[int, dict[int, int]] = {}
    for number, entry in enumerate(graph.entries):
        if _is_read(entry) and 2 * math.prod(entry.node.shape) * entry.node.dtype.itemsize > memory:
            found = _levels(graph.entries, number)
            if len({*found.values()}) > 1:
                levels[number] = found
    return _copied(graph, levels) if levels else graph


def _is_read(entry: Vertex) -> bool:
    node = entry.node
    if not isinstance(node, Blocks) or node.inputs or node.parts or entry.wanted:
        return False
    return node in _repeatable or all(get_kernel(piece.kernel).streams for piece in node.pieces)


def _levels(entries: list[Vertex], number: int) -> dict[int, int]:
    """For each reader of a node, how many folds over it, one of the other, its group waits for."""
    waits = {number: 0}
    groups: dict[int, int] = {}
    for later in range(number + 1, len(entries)):
        entry = entries[later]
        known = [
            waits[each] + isinstance(entries[each].node, Fold) for each in entry.operands if each in waits
        ]
        if known:
            waits[later] = max(known)
            groups[entry.group] = max(groups.get(entry.group, 0), waits[later])
    return {reader: groups[entries[reader].group] for reader in entries[number].readers}


def _copied(graph: Graph, levels: dict[int, dict[int, int]]) -> Graph:
    """The graph with a copy of a node for each level of its readers."""
    made: list[Vertex] = []
    places: list[dict[int, int]] = []
    for number, entry in enumerate(graph.entries):
        operands = tuple(
            places[each][levels[each][number] if each in levels else 0] for each in entry.operands
        )
        places.append({})
        for level in sorted({*levels[number].values()}) if number in levels else (0,):
            places[number][level] = len(made)
            made.append(Vertex(entry.node, operands))
    keys = [key_of(entry.node, entry.operands) for entry in made]
    return assembled(made, keys, [places[number][0] for number in graph.wanted])
