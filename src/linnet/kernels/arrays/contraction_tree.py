"""In which order one task multiplies its tiles: a binary tree over its operands.

The operands of a contraction may be ranges of tiles, nested lists whose levels each run over the
tiles along a summed axis. The name of such a level is (mostly) the letter of the axis. A name is
looped over in the lowest node below which all operands that have it are, which is where its letter
disappears: so an inner product is complete before it is multiplied further, and nothing is computed
twice.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from dataclasses import dataclass

Names = tuple[str, ...]

_SLOW = 60.0
_COPIED = 130.0
"""What a multiplication outside BLAS, and an element copied across the order of its axes, cost:
operations of BLAS in the same time, measured on tiles of some megabytes."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """An operand."""

    position: int
    given: str
    """The letters of its tiles' axes."""
    letters: str
    """Those that are left after diagonals were taken and letters only it has were summed over."""
    names: Names
    """What its levels of nesting run over, outermost first."""
    lone: Names
    """Those of `names` that no other operand has: summed over here."""
    free: Names
    """The others: what its value depends on."""


@dataclass(frozen=True, slots=True)
class Product:
    """The product of two nodes, summed over `loops` and over the letters that are in neither the
    result nor any other operand."""

    left: Leaf | Product
    right: Leaf | Product
    letters: str
    loops: Names
    free: Names
    """What its value depends on."""


Node = Leaf | Product


@functools.lru_cache(maxsize=512)
def split(spec: str) -> tuple[tuple[str, ...], str]:
    """The letters of each operand, and of the result.

    >>> split("ik,kj->ij")
    (('ik', 'kj'), 'ij')
    """
    before, arrow, out = spec.partition("->")
    inputs = tuple(before.split(","))
    letters = "".join(inputs)
    if not arrow or not all(part.isascii() and (part.isalpha() or not part) for part in (*inputs, out)):
        raise ValueError(f'contract expects a spec like "ik,kj->ij", of letters only; got {spec!r}')
    if len(set(out)) != len(out) or not set(out) <= set(letters):
        raise ValueError(
            f"contract expects each letter of the result once, and in an operand; got {out!r} in {spec!r}"
        )
    return inputs, out


@functools.lru_cache(maxsize=512)
def tree(spec: str, shapes: tuple[tuple[int, ...], ...], names: tuple[Names, ...]) -> Node:
    """The tree for tiles of these shapes: the fastest of three for three operands; for more, the one
    in which opt_einsum finds least to compute.

    >>> root = tree("ijk,jr,kr->ir", ((9, 9, 9), (9, 2), (9, 2)), ((), (), ()))
    >>> root.left.letters, root.right.letters
    ('jr', 'ijr')
    """
    inputs, out = split(spec)
    letters = Counter(c for given in inputs for c in set(given))
    levels = Counter(name for own in names for name in set(own))
    nodes: list[Node] = []
    for position, (given, own) in enumerate(zip(inputs, names, strict=True)):
        kept = "".join(c for c in dict.fromkeys(given) if letters[c] > 1 or c in out)
        lone = tuple(n for n in own if levels[n] == 1)
        nodes.append(Leaf(position, given, kept, own, lone, tuple(n for n in own if levels[n] > 1)))
    lengths = dict(zip("".join(inputs), itertools.chain(*shapes), strict=True))
    paths = [[(0, 1), (0, 1)], [(0, 2), (0, 1)], [(1, 2), (0, 1)]]
    if len(nodes) != 3:
        paths = [_path(tuple(node.letters for node in nodes), out, lengths)]
    return min((_along(path, nodes, out) for path in paths), key=lambda root: _effort(root, lengths))


def _along(path: list[tuple[int, ...]], leaves: list[Node], out: str) -> Node:
    nodes = list(leaves)
    for pair in path:
        first, second = (nodes.pop(position) for position in sorted(pair, reverse=True))
        nodes.append(_joined(second, first, out, nodes))
    return _arranged(nodes[0], out)


def _effort(node: Node, lengths: dict[str, int]) -> float:
    """About how long the products take, in operations of BLAS.

    Operand tiles are taken as C-ordered: one whose summed axes lie between others is copied first.
    """
    if isinstance(node, Leaf):
        return 0.0
    left, right = set(node.left.letters), set(node.right.letters)
    inner, batch = (left & right) - set(node.letters), left & right & set(node.letters)
    total = _effort(node.left, lengths) + _effort(node.right, lengths)
    volume = math.prod(lengths[c] for c in left | right)
    if not inner or (batch and (left <= right or right <= left)):
        return total + _SLOW * volume
    for child in (node.left, node.right):
        runs = [key for key, _ in itertools.groupby(child.letters, lambda c: (c in inner, c in batch))]
        if isinstance(child, Leaf) and len(runs) != len(set(runs)):
            total += _COPIED * math.prod(lengths[c] for c in child.letters)
    return total + 2 * volume


def _joined(left: Node, right: Node, out: str, others: list[Node]) -> Product:
    present = dict.fromkeys(left.letters + right.letters)
    elsewhere = {name for node in others for name in node.free}
    kept = "".join(c for c in present if c in out or any(c in other.letters for other in others))
    names = dict.fromkeys(left.free + right.free)
    loops = tuple(n for n in names if n not in elsewhere)
    return Product(left, right, kept, loops, tuple(n for n in names if n in elsewhere))


def _arranged(node: Node, letters: str) -> Node:
    """The node with its axes in this order, and those of products below as their reader wants them:
    what it sums over as its other operand has it, then what is left, so that nothing is turned around."""
    if isinstance(node, Leaf):
        return node
    left = _arranged(node.left, _order(node.left, node.right, letters))
    right = _arranged(node.right, _order(node.right, left, letters))
    return Product(left, right, letters, node.loops, node.free)


def _order(node: Node, other: Node, out: str) -> str:
    batch = [c for c in out if c in node.letters and c in other.letters]
    inner = [c for c in other.letters if c in node.letters and c not in out]
    own = [c for c in out if c in node.letters and c not in other.letters]
    if batch and (not own or set(other.letters) <= set(node.letters)):
        return "".join(own + inner + batch)  # for `np.einsum`, which is fastest along what it does not sum
    return "".join(batch + inner + own)


def _path(inputs: tuple[str, ...], out: str, lengths: dict[str, int]) -> list[tuple[int, ...]]:
    if len(inputs) <= 2:
        return [(0, 1)][: len(inputs) - 1]
    from opt_einsum import contract_path  # takes a while to import; few tasks need it

    shapes = [tuple(max(1, lengths[c]) for c in letters) for letters in inputs]
    path, _ = contract_path(f"{','.join(inputs)}->{out}", *shapes, shapes=True, optimize="auto")
    return [tuple(pair) for pair in path]


def products(node: Node) -> list[Product]:
    """All products of the tree, each after those it is made of."""
    return [] if isinstance(node, Leaf) else [*products(node.left), *products(node.right), node]


def leaves(node: Node) -> list[Leaf]:
    """All operands of the tree."""
    return [node] if isinstance(node, Leaf) else [*leaves(node.left), *leaves(node.right)]


def cut(root: Node, lengths: dict[str, int], itemsize: int, limit: int) -> tuple[str, int] | None:
    """A letter, and how much of it to take at a time, so that inner products take `limit` bytes at most.

    Only letters of every inner product will do: with others, one would be computed again for each
    piece. Of these, the outermost axis of the largest operand is taken: that is read once, and its
    pieces lie as densely as itself.

    >>> root = tree("ijk,jr,kr->ir", ((9, 9, 9), (9, 2), (9, 2)), ((), (), ()))
    >>> cut(root, {"i": 9, "j": 9, "k": 9, "r": 2}, 8, limit=600)
    ('i', 4)
    """

    def size(letters: str) -> int:
        return math.prod(lengths[c] for c in letters)

    inner = products(root)[:-1]
    largest = max((size(node.letters) for node in inner), default=0) * itemsize
    common = [c for c in lengths if all(c in node.letters for node in inner)]
    if largest <= limit or not common:
        return None
    outer = max((leaf.letters for leaf in leaves(root)), key=size)
    letter = min(common, key=lambda c: outer.index(c) if c in outer else len(outer))
    return letter, max(1, lengths[letter] * limit // largest)
