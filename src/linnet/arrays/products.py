"""Sums of products on tiles: one node for a contraction of two or more arrays.

Each tile of the result is one task that reads ranges of tiles along the summed axes and adds up
in place. Where the result has few tiles, the longest summed axis is split, so that there is work
for many; the parts are then joined pairwise. How far depends on shapes alone, never on workers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from linnet.arrays import chunking
from linnet.arrays.building import blocks, is_free, recut
from linnet.arrays.chunking import automatic
from linnet.arrays.expression import Access, Along, At, Axes, Blocks, Node, Operand, Piece, Span, Spans
from linnet.tiles import Layout
from linnet.tiles.layout import Boundaries, regular

_FEW = 16
"""Tasks a contraction should have at least, if it is large enough to be split at all."""

_SLAB = 4
"""Usual tiles in a slab of an array in memory: it is a view, and read once."""

_LEAST_ROWS = 128
"""Slabs of fewer rows would make products of thin matrices, which are slow."""

_LEAST_ROWS_OF_THREE = 8
"""With three operands rows multiply: those of the first product are rows times another axis."""


def contracted(letters: Sequence[str], nodes: Sequence[Node], out: str, dtype: Any) -> Node:
    """`einsum(",".join(letters) + "->" + out, *nodes)` as one node; no letter twice in one operand."""
    named = [_peeled(each, node) for each, node in zip(letters, nodes, strict=True)]
    edges = _edges(named, out, dtype)
    inputs = [recut(node, Layout(tuple(edges[c] for c in own))) for own, node in named]
    groups = [own for own, _ in named]
    summed = [c for c in edges if c not in out and len(edges[c]) > 2]
    split = _split(edges, out, summed)
    layout = Layout(tuple(edges[c] for c in out))
    spec = ",".join(groups) + "->" + out
    if split is None:
        return blocks(inputs, [_piece(groups, out, spec, edges, None)], layout, dtype)
    axis, starts, stops = split
    partial_layout = Layout((tuple(range(len(starts) + 1)), *layout.boundaries))
    piece = _piece(groups, out, spec, edges, (axis, starts, stops))
    parts = blocks(inputs, [piece], partial_layout, dtype)
    return _joined(parts, layout, dtype)


def _peeled(letters: str, node: Node) -> tuple[str, Node]:
    """Transposes become an order of letters; nothing is turned around."""
    if not isinstance(node, Axes) or -1 in node.axes or len(node.axes) != node.operand.ndim:
        return letters, node
    own = [""] * node.operand.ndim
    for axis, where in enumerate(node.axes):
        own[where] = letters[axis]
    return "".join(own), node.operand


def _edges(named: Sequence[tuple[str, Node]], out: str, dtype: Any) -> dict[str, Boundaries]:
    """How each letter is cut: as in the largest operand that would have to move, else the largest."""
    ordered = sorted(named, key=lambda item: (is_free(item[1]), -math.prod(item[1].shape)))
    edges: dict[str, Boundaries] = {}
    for own, node in ordered:
        for letter, cut in zip(own, node.layout.boundaries, strict=True):
            known = edges.setdefault(letter, cut)
            if known[-1] != cut[-1]:
                raise ValueError(
                    f"the axes called {letter!r} have lengths {known[-1]} and {cut[-1]}; they must be equal"
                )
    if all(is_free(node) and _is_ours_to_cut(node) for _, node in named):
        least = _LEAST_ROWS if len(named) < 3 else _LEAST_ROWS_OF_THREE
        edges.update(_slabs(ordered[0], edges, out, np.dtype(dtype).itemsize, least))
    return edges


def _is_ours_to_cut(node: Node) -> bool:
    """Whether nobody has said how the array is to be cut."""
    return node.layout == automatic(node.shape, node.dtype.itemsize)


def _slabs(
    largest: tuple[str, Node], edges: dict[str, Boundaries], out: str, itemsize: int, least: int
) -> dict[str, Boundaries]:
    """Cuts for arrays in memory: along axes of the result only, if what is left of the largest is a tile.

    Then its tiles lie in memory as they are multiplied, and nothing is copied or added up. Where
    summed axes are too long for that, only tiles of the result that came out too large are cut.
    """
    own, node = largest
    kept = [c for c in own if c in out]
    line = math.prod(length for c, length in zip(own, node.shape, strict=True) if c not in out) * itemsize
    rows = min(_SLAB * chunking.target() // max(line, 1), -(-math.prod(edges[c][-1] for c in kept) // _FEW))
    if kept and len(kept) < len(own) and rows >= least:
        cuts: dict[str, Boundaries] = {c: (0, edges[c][-1]) for c in own if c not in out}
        for letter in reversed(kept):  # the last axes stay whole as long as they fit
            length = max(1, min(edges[letter][-1], rows))
            cuts[letter] = regular(edges[letter][-1], length)
            rows //= length
        return cuts
    target = automatic(tuple(edges[c][-1] for c in out), itemsize)
    if out and _tile(edges[c] for c in out) > 2 * _tile(target.boundaries):
        return dict(zip(out, target.boundaries, strict=True))
    return {}


def _tile(edges: Iterable[Boundaries]) -> int:
    """Elements of the largest tile."""
    return math.prod(max(b - a for a, b in itertools.pairwise(each)) for each in edges)


def _split(
    edges: dict[str, Boundaries], out: str, summed: Sequence[str]
) -> tuple[str, tuple[int, ...], tuple[int, ...]] | None:
    """The summed letter to split, and the ranges of tiles for the parts; None: no need."""
    tasks = math.prod(len(edges[c]) - 1 for c in out)
    if tasks >= _FEW or not summed:
        return None
    letter = max(summed, key=lambda c: len(edges[c]))
    tiles = len(edges[letter]) - 1
    parts = min(tiles, -(-_FEW // tasks))
    if parts < 2:
        return None
    bounds = [tiles * part // parts for part in range(parts + 1)]
    return letter, tuple(bounds[:-1]), tuple(bounds[1:])


def _piece(
    groups: Sequence[str],
    out: str,
    spec: str,
    edges: dict[str, Boundaries],
    split: tuple[str, tuple[int, ...], tuple[int, ...]] | None,
) -> Piece:
    shift = 0 if split is None else 1
    operands: list[Operand] = []
    over: list[str] = []
    for which, own in enumerate(groups):
        access: list[Access] = []
        levels = ""
        for letter in own:
            if letter in out:
                access.append(Along(out.index(letter) + shift))
            elif split is not None and letter == split[0]:
                access.append(Spans(0, split[1], split[2]))
                levels += letter
            elif len(edges[letter]) == 2:
                access.append(At(0))
            else:
                access.append(Span(0, len(edges[letter]) - 1))
                levels += letter
        operands.append(Operand(which, tuple(access)))
        over.append(levels)
    return Piece("contract", tuple(operands), (("spec", spec), ("over", tuple(over))))


def _joined(parts: Blocks, layout: Layout, dtype: Any) -> Blocks:
    """The sum of the parts, tile by tile, pairwise."""
    count = len(parts.layout.boundaries[0]) - 1
    access = (Span(0, count), *(Along(axis) for axis in range(len(layout.boundaries))))
    kind = "any" if np.dtype(dtype) == np.bool_ else "sum"
    piece = Piece("fold_join", (Operand(0, access),), (("kind", kind), ("axes", (0,))))
    return blocks((parts,), (piece,), layout, dtype)
