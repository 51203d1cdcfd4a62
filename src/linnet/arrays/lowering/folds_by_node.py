"""Expressions for a cluster: sums that are made where their parts are, and then go up a tree.

On one node a fold joins up to 16 states at a time, whichever they are. On k nodes that would bring
states from everywhere to everywhere. There, the leaves are cut into k contiguous parts; a part is
joined as on one node, and the parts pairwise: k - 1 states move in all, in ⌈log₂ k⌉ rounds. Products
whose summed axis is much longer than the others are sums of this kind too.

How far an expression is spread depends on the nodes, never on their workers: so bits do not, either.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from linnet.arrays.expression.graph import ordered
from linnet.arrays.expression.nodes import Axes, Blocks, Fold, Map, Node, Part, ProgramCall, Result
from linnet.arrays.expression.sums_of_products import respread
from linnet.records import record
from linnet.tiles.layout import Boundaries, regular

_FAN_IN = 16
"""States of a fold that one task joins."""

_LEAST = 4
"""Leaves that a part should have where there are enough results for all nodes: it is one more task."""


@record
class Nodes:
    """The nodes an expression is made for."""

    count: int = 1
    """How many there are."""
    grid: tuple[int, ...] | None = None
    """How they are arranged, if somebody said so."""

    @classmethod
    def of(cls, cluster: Any) -> Nodes:
        """Those of a cluster; None: one."""
        return ONE if cluster is None or cluster.count == 1 else cls(cluster.count, cluster.grid)


ONE = Nodes()


# ---- trees of folds


def fold_levels(
    grid: Sequence[int], axes: tuple[int, ...], nodes: Nodes = ONE
) -> list[dict[int, Boundaries]]:
    """A tree, level by level: for each reduced axis where the states are cut that one task joins.

    >>> fold_levels((40,), (0,))
    [{0: (0, 16, 32, 40)}, {0: (0, 3)}]
    >>> fold_levels((12,), (0,), Nodes(4))
    [{0: (0, 3, 6, 9, 12)}, {0: (0, 2, 4)}, {0: (0, 2)}]
    """
    parts = _parts(grid, axes, nodes)
    cuts: dict[int, list[int]] = {
        axis: [grid[axis] * part // parts[axis] for part in range(parts[axis] + 1)] for axis in axes
    }
    levels: list[dict[int, Boundaries]] = []
    while True:
        longest = {axis: max(b - a for a, b in itertools.pairwise(cuts[axis])) for axis in axes}
        alone = all(len(cuts[axis]) == 2 for axis in axes)
        if alone or any(length > 1 for length in longest.values()):
            level = _within(cuts, _fans(longest, axes))
        else:
            level = _across(cuts)
        levels.append(level)
        if all(len(bounds) == 2 for bounds in level.values()):
            return levels


def _within(cuts: dict[int, list[int]], fans: dict[int, int]) -> dict[int, Boundaries]:
    """A few neighbours of the same part become one; `cuts` are then those between what is left."""
    level: dict[int, Boundaries] = {}
    for axis, ends in cuts.items():
        bounds, left = [0], [0]
        for start, stop in itertools.pairwise(ends):
            bounds += [start + edge for edge in regular(stop - start, fans[axis])[1:]]
            left.append(len(bounds) - 1)
        level[axis], cuts[axis] = tuple(bounds), left
    return level


def _across(cuts: dict[int, list[int]]) -> dict[int, Boundaries]:
    """Parts, of one state each, pairwise along the axis that has most of them."""
    longest = max(cuts, key=lambda axis: len(cuts[axis]))
    level: dict[int, Boundaries] = {axis: tuple(ends) for axis, ends in cuts.items()}
    level[longest] = regular(len(cuts[longest]) - 1, 2)
    cuts[longest] = list(range(len(level[longest])))
    return level


def _parts(grid: Sequence[int], axes: tuple[int, ...], nodes: Nodes) -> dict[int, int]:
    """Into how many parts the leaves are cut along each reduced axis.

    As many as there are nodes for each result; and as many as there are nodes if parts are long enough.
    """
    if nodes.count == 1:
        return dict.fromkeys(axes, 1)
    if nodes.grid is not None and len(nodes.grid) == len(grid) and _fits(nodes.grid, grid):
        return {axis: nodes.grid[axis] for axis in axes}
    results = math.prod(count for axis, count in enumerate(grid) if axis not in axes)
    leaves = math.prod(grid[axis] for axis in axes)
    wanted = max(-(-nodes.count // max(1, results)), min(nodes.count, leaves // _LEAST))
    parts: dict[int, int] = {}
    for axis in axes:
        parts[axis] = max(1, min(grid[axis], wanted))
        wanted = -(-wanted // parts[axis])
    return parts


def _fits(nodes: Sequence[int], grid: Sequence[int]) -> bool:
    return all(few <= many for few, many in zip(nodes, grid, strict=True))


def _fans(lengths: dict[int, int], axes: tuple[int, ...]) -> dict[int, int]:
    """How many states along each reduced axis one task joins: about `_FAN_IN` in all."""
    fans: dict[int, int] = {}
    room = _FAN_IN
    for axis in reversed(axes):
        fans[axis] = max(1, min(lengths[axis], room))
        room //= fans[axis]
    if all(fan == 1 for fan in fans.values()) and any(lengths[axis] > 1 for axis in axes):
        longest = max(axes, key=lambda axis: lengths[axis])
        fans[longest] = min(lengths[longest], _FAN_IN)
    return fans


# ---- products


def spread(wanted: Sequence[Node], nodes: Nodes) -> list[Node]:
    """The same expression with its products cut for so many nodes."""
    if nodes.count == 1:
        return list(wanted)
    made: dict[int, Node] = {}
    for node in ordered(wanted):
        operands = tuple(made[id(each)] for each in node.operands)
        same = all(new is old for new, old in zip(operands, node.operands, strict=True))
        made[id(node)] = respread(node if same else on(node, operands), nodes.count)
    return [made[id(node)] for node in wanted]


def on(node: Node, operands: tuple[Node, ...]) -> Node:
    """The node on other operands, cut as those it had."""
    match node:
        case Map() | Blocks() | ProgramCall():
            return replace(node, inputs=operands)
        case Axes() | Fold():
            return replace(node, operand=operands[0])
        case Part():
            assert isinstance(operands[0], Blocks)
            return replace(node, whole=operands[0])
        case Result():
            assert isinstance(operands[0], ProgramCall)
            return replace(node, call=operands[0])
    return node
