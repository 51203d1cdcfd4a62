"""The steps of one fused call: what a group of element-wise nodes does to a tile, as `fused` reads it.

Within a group transposes and new axes are not steps. They are remembered as views, and end in how the
operands of the group are loaded: an operand that is read in two ways is loaded twice.
"""

from __future__ import annotations

from typing import Any

from linnet.arrays.expression.graph import Graph
from linnet.arrays.expression.nodes import Axes, Map, Node

View = tuple[int, ...]
"""For each axis of a node the axis of its group it runs along, or -1 if it is of length 1."""


class Group:
    """Steps of a fused call: values by node and view, numbered as they are needed."""

    def __init__(self, graph: Graph, number: int) -> None:
        self._entries = graph.entries
        self._group = graph.entries[number].group
        self.leaves: dict[tuple[int, View], int] = {}
        self._values: dict[tuple[int, View], tuple[str, int]] = {}
        self._steps: list[tuple[Any, ...]] = []

    def value(self, number: int, view: View, *, root: bool) -> int:
        """The number of the value of a node; what it is made of gets numbers first.

        Operands come before steps in the numbering, so steps are numbered at the end.
        """
        self._visit(number, view, root)
        return self._number((number, view))

    def steps(self) -> tuple[tuple[Any, ...], ...]:
        """The steps, with values numbered."""
        return tuple(
            (op, *(self._number(value) for value in values), *extra) for op, values, extra in self._steps
        )

    def _number(self, key: tuple[int, View]) -> int:
        kind, place = self._values[key]
        return place if kind == "leaf" else len(self.leaves) + place

    def _visit(self, number: int, view: View, root: bool) -> None:
        pending: list[tuple[int, View, bool, bool]] = [(number, view, root, False)]
        while pending:
            current, seen, is_root, expanded = pending.pop()
            key = (current, seen)
            if key in self._values:
                continue
            entry = self._entries[current]
            node = entry.node
            if not (isinstance(node, Map | Axes) and (is_root or entry.group == self._group)):
                self._values[key] = ("leaf", len(self.leaves))
                self.leaves[key] = len(self.leaves)
                continue
            inputs = [
                (operand, _operand_view(node, self._entries[operand].node, seen))
                for operand in entry.operands
            ]
            if not expanded:
                pending.append((current, seen, is_root, True))
                pending.extend((operand, part, False, False) for operand, part in reversed(inputs))
            elif isinstance(node, Axes) or node.op == "fill":
                self._values[key] = self._values[inputs[0]]
            else:
                self._values[key] = ("step", len(self._steps))
                extra = () if node.extra is None else (node.extra,)
                self._steps.append((node.op, inputs, extra))


def _operand_view(node: Node, operand: Node, view: View) -> View:
    """How an operand lies in its group, given how the node that reads it does."""
    if isinstance(node, Axes):
        turned = [-1] * operand.ndim
        for axis, where in enumerate(node.axes):
            if where >= 0:
                turned[where] = view[axis]
        return tuple(turned)
    offset = node.ndim - operand.ndim
    return tuple(
        view[axis + offset] if length != 1 or node.shape[axis + offset] == 1 else -1
        for axis, length in enumerate(operand.shape)
    )


def load(view: View, rank: int) -> View | None:
    """The axes attribute of a load: for each axis of the group the axis of the tile, or -1.

    None where the tile is broadcast as it is: its axes are the last ones of the group.
    """
    if len(view) <= rank and view == tuple(range(rank - len(view), rank)):
        return None
    axes = [-1] * rank
    for axis, where in enumerate(view):
        if where >= 0:
            axes[where] = axis
    return tuple(axes)
