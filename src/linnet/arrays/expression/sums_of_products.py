"""Sums of products on tiles: one node for a contraction of two or more arrays.

Each tile of the result is one task that reads ranges of tiles along the summed axes and adds up
in place. Where the result has few tiles, the longest summed axis is split, so that there is work
for many; the parts are then joined pairwise. On a cluster it is also split where bringing parts of the
sum together moves much less than bringing the operands together. How far depends on shapes and on the
number of nodes, never on workers.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from linnet.algorithms.tuning import SHORTCUT, tile_size
from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import blocks, is_free, mapped, recut
from linnet.arrays.expression.chunking import automatic
from linnet.arrays.expression.nodes import Access, Along, At, Axes, Blocks, Node, Operand, Piece, Span, Spans
from linnet.session import current_engine
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
    """`einsum(",".join(letters) + "->" + out, *nodes)` as one node; no letter twice in one operand.

    Products and sums are of this dtype, which may be wider than the operands'. Parts of a sum of float16
    are float32.
    """
    if np.dtype(dtype) == np.float16:
        return mapped("cast", [contracted(letters, nodes, out, np.float32)], dtype, extra=np.dtype(dtype).str)
    named = [_peeled(each, node) for each, node in zip(letters, nodes, strict=True)]
    edges = _edges(named, out, dtype)
    inputs = [recut(node, Layout(tuple(edges[c] for c in own))) for own, node in named]
    return _cut([own for own, _ in named], inputs, out, edges, dtype, nodes=1)


def respread(node: Node, nodes: int) -> Node:
    """A contraction cut for so many nodes; any other node as it is."""
    if not isinstance(node, Blocks):
        return node
    whole = node
    if _kernel(node) == "fold_join" and isinstance(node.inputs[0], Blocks):
        whole = node.inputs[0]
    elif any(isinstance(each, Spans) for each in _accesses(node)):
        return node  # parts of a sum: whoever joins them is cut anew
    if _kernel(whole) != "contract":
        return node
    spec: str = dict(whole.pieces[0].attributes)["spec"]
    before, out = spec.split("->")
    groups = before.split(",")
    edges: dict[str, Boundaries] = {}
    for own, operand in zip(groups, whole.inputs, strict=True):
        edges.update(zip(own, operand.layout.boundaries, strict=True))
    return _cut(groups, whole.inputs, out, edges, node.dtype, nodes)


def _kernel(node: Blocks) -> str:
    return node.pieces[0].kernel if len(node.pieces) == 1 else ""


def _accesses(node: Blocks) -> Iterator[Access]:
    for piece in node.pieces:
        for each in piece.arguments:
            if isinstance(each, Operand):
                yield from each.access


def _cut(
    groups: Sequence[str],
    inputs: Sequence[Node],
    out: str,
    edges: dict[str, Boundaries],
    dtype: Any,
    nodes: int,
) -> Blocks:
    """The contraction in tasks, for so many nodes."""
    layout = Layout(tuple(edges[c] for c in out))
    attributes: dict[str, Any] = {"spec": ",".join(groups) + "->" + out}
    if np.result_type(*(node.dtype for node in inputs)) != dtype:
        attributes["dtype"] = np.dtype(dtype).str
    piece_of = functools.partial(_piece, groups, out, attributes, edges)
    summed = [c for c in edges if c not in out and len(edges[c]) > 2]
    if not summed:
        return blocks(inputs, [piece_of(None)], layout, dtype)
    letter = max(summed, key=lambda c: len(edges[c]))
    shares = 1 if nodes == 1 else _shares(groups, out, edges, letter, nodes)
    bounds, ends = _split(edges, out, letter, nodes, shares)
    if len(bounds) == 2:
        return blocks(inputs, [piece_of(None)], layout, dtype)
    piece = piece_of((letter, tuple(bounds[:-1]), tuple(bounds[1:])))
    made = blocks(inputs, [piece], _behind(len(bounds) - 1, layout), dtype)
    if ends[-1] > len(ends) - 1 > 1:  # first what is on one node
        made = _joined(made, ends, layout, dtype)
        ends = list(range(len(ends)))
    while len(ends) > 3:
        pairs = regular(len(ends) - 1, 2)
        made = _joined(made, pairs, layout, dtype)
        ends = list(range(len(pairs)))
    return _joined(made, (0, ends[-1]), layout, dtype)


def _behind(count: int, layout: Layout) -> Layout:
    """The layout of parts of a sum: one more axis, in front."""
    return Layout((tuple(range(count + 1)), *layout.boundaries))


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
        edges.update(_squares(named, edges, out, np.dtype(dtype)))
    return edges


def _squares(
    named: Sequence[tuple[str, Node]], edges: dict[str, Boundaries], out: str, dtype: np.dtype[Any]
) -> dict[str, Boundaries]:
    """Cuts for a product of two large matrices in memory: square tiles, the summed axis whole if it fits."""
    if len(named) != 2 or len(out) != 2 or any(len(own) != 2 for own, _ in named):
        return {}
    summed = [c for c in edges if c not in out]
    if len(edges) != 3 or len(summed) != 1 or min(edges[c][-1] for c in out) < SHORTCUT:
        return {}
    shape = tuple(edges[c][-1] for c in edges)
    side = tile_size(shape, dtype, "gemm", current_engine().memory)
    if side * edges[summed[0]][-1] * dtype.itemsize > _SLAB * chunking.target():
        return {}
    return {**{c: regular(edges[c][-1], side) for c in out}, summed[0]: (0, edges[summed[0]][-1])}


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
    edges: dict[str, Boundaries], out: str, letter: str, nodes: int, shares: int
) -> tuple[list[int], list[int]]:
    """Where a summed axis is cut, in tiles, and which of these parts are on one node, for so many shares.

    Each share is cut as it would be on a machine of its own.
    """
    tiles = len(edges[letter]) - 1
    results = math.prod(len(edges[c]) - 1 for c in out)
    here = max(1, -(-results * shares // nodes))
    bounds, ends = [0], [0]
    for share in range(shares):
        start, stop = tiles * share // shares, tiles * (share + 1) // shares
        parts = min(stop - start, -(-_FEW // here))
        bounds += [start + (stop - start) * part // parts for part in range(1, parts + 1)]
        ends.append(len(bounds) - 1)
    return bounds, ends


def _shares(groups: Sequence[str], out: str, edges: dict[str, Boundaries], letter: str, nodes: int) -> int:
    """Among how many nodes the sum over a letter is shared.

    Nodes are arranged along what both operands have, rows, columns and the sum, as b × p × q × s. Then
    q - 1 copies of each element of the first operand move, p - 1 of the second, and s - 1 parts of each
    result. Shares need memory for their parts: they must move less than half of what is moved without.
    """
    tiles = len(edges[letter]) - 1
    results = math.prod(len(edges[c]) - 1 for c in out)
    few = min(tiles, -(-nodes // results))
    if len(groups) != 2:
        return few
    first, second = groups
    both, rows, columns = (
        math.prod(len(edges[c]) - 1 for c in out if (c in first, c in second) == where)
        for where in ((True, True), (True, False), (False, True))
    )
    sizes = [math.prod(edges[c][-1] for c in letters) for letters in (first, second, out)]
    best: dict[int, int] = {}
    for s in _divisors(nodes):
        for p in _divisors(nodes // s):
            for q in _divisors(nodes // s // p):
                b = nodes // s // p // q
                if s <= tiles and p <= rows and q <= columns and b <= both:
                    moved = sizes[0] * (q - 1) + sizes[1] * (p - 1) + sizes[2] * (s - 1)
                    best[s] = min(moved, best.get(s, moved))
    if not best:
        return few
    least = min(best, key=lambda s: (best[s], s))
    return 1 if 1 in best and 2 * best[least] > best[1] else least


def _divisors(number: int) -> list[int]:
    return [each for each in range(1, number + 1) if number % each == 0]


def _piece(
    groups: Sequence[str],
    out: str,
    attributes: dict[str, Any],
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
    return Piece("contract", tuple(operands), tuple({**attributes, "over": tuple(over)}.items()))


def _joined(parts: Blocks, bounds: Sequence[int], layout: Layout, dtype: Any) -> Blocks:
    """Sums of neighbouring parts, tile by tile, pairwise: between two bounds each."""
    along = range(len(layout.boundaries))
    kind = "any" if np.dtype(dtype) == np.bool_ else "sum"
    attributes = (("kind", kind), ("axes", (0,)))
    if len(bounds) == 2:
        whole = (Span(0, bounds[1]), *(Along(axis) for axis in along))
        return blocks((parts,), (Piece("fold_join", (Operand(0, whole),), attributes),), layout, dtype)
    access = (Spans(0, tuple(bounds[:-1]), tuple(bounds[1:])), *(Along(axis + 1) for axis in along))
    piece = Piece("fold_join", (Operand(0, access),), attributes)
    return blocks((parts,), (piece,), _behind(len(bounds) - 1, layout), dtype)
