"""The kernel of every contraction: matrix products, tensordot, einsum, Gram matrices, MTTKRP.

Two operands go to BLAS (`pairwise`). With more, one task multiplies them pair by pair
(`contraction_tree`), and in pieces along an axis, so that products in between stay in the
processor's cache: the one of MTTKRP (`ijk,jr,kr->ir`) can be larger than the tensor, and is never in
memory as a whole. Its pieces add up in one result.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.kernels.arrays.contraction_tree import Leaf, Names, Node, Product, cut, split, tree
from linnet.kernels.arrays.pair_products import Accumulation
from linnet.kernels.registry import kernel

Tile = NDArray[Any]
Index = dict[str, int]
Piece = tuple[str, slice]
"""A part of the axis of that letter."""

_PIECE = 1 << 20
"""Bytes that products in between may take: what stays in the cache of a core."""


def _promoted(*operands: Any, dtype: str | None = None, **_: Any) -> np.dtype[Any]:
    """The dtype of the result: the one asked for, else as NumPy promotes."""
    if dtype is not None:
        return np.dtype(dtype)
    dtypes = {np.dtype(each) for operand in operands for each in _flat(operand)}
    common = np.result_type(*dtypes)
    if common.kind not in "biufc":
        raise TypeError(
            f"contract expects numbers or booleans, got tiles of {', '.join(sorted(map(str, dtypes)))}; "
            "convert the array to a numeric dtype"
        )
    return common.newbyteorder("=")


def _result_shape(*operands: Any, spec: str, **_: Any) -> tuple[int, ...]:
    inputs, out = split(spec)
    lengths: dict[str, int] = {}
    for letters, operand in zip(inputs, operands, strict=True):
        lengths.update(zip(letters, _first(operand), strict=True))
    return tuple(lengths[c] for c in out)


def _work(*operands: Any, spec: str, over: Sequence[str] | None = None, **_: Any) -> float:
    names = _levels(operands, spec, over)
    root = tree(spec, tuple(_first(operand) for operand in operands), names)
    return _Shapes(operands, names).flops(root, {})


@kernel("contract", shape=_result_shape, dtype=_promoted, flops=_work)
def contract(
    *operands: Tile | list[Any], spec: str, over: Sequence[str] | None = None, dtype: str | None = None
) -> Tile:
    """The sum of products that `spec` says, as in `np.einsum`; letters only, and the result spelt out.

    >>> contract(np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]]), spec="ik,kj->ij")
    array([[11.]])

    An operand is a tile, or a range of tiles along summed axes: a list, or a list of lists for two
    axes. The result is the sum over all of them.

    >>> row, column = [np.array([[1.0]]), np.array([[2.0]])], [np.array([[3.0]]), np.array([[4.0]])]
    >>> contract(row, column, spec="ik,kj->ij")
    array([[11.]])

    `over` gives, for each operand, the letters its levels of nesting run over, outermost first. It
    may be left out if each range runs over all letters of its operand that are not in the result,
    in the order of its axes, or if there are two operands nested to the same depth: then their
    levels run in step.

    >>> x = [[np.ones((1, 2, 3))] * 2] * 2  # X[i, 0:2, 0:2]
    >>> b, c = [np.ones((2, 4))] * 2, [np.ones((3, 4))] * 2  # B[0:2, r], C[0:2, r]
    >>> contract(x, b, c, spec="ijk,jr,kr->ir", over=("jk", "j", "k"))
    array([[24., 24., 24., 24.]])

    If both operands are the same memory and the product is one of a matrix with its own transpose,
    half of it is computed and mirrored. float16 is computed in float32.

    `dtype` is that of the products and of their sum, where it is to be wider than the operands make it.

    >>> contract(np.int8([100]), np.int8([100]), spec="i,i->i", dtype="int64")
    array([10000])
    """
    names = _levels(operands, spec, over)
    result = _promoted(*([tile.dtype for tile in _flat(operand)] for operand in operands), dtype=dtype)
    shapes = tuple(_first(operand).shape for operand in operands)
    for letters, shape in zip(split(spec)[0], shapes, strict=True):
        if len(letters) != len(shape):
            raise ValueError(f"contract expects tiles of {len(letters)} axes for {letters!r}, got {shape}")
    root = tree(spec, shapes, names)
    computing = np.dtype(np.float32) if result.char == "e" else result
    return _Tiles(operands, names, computing).whole(root, spec).astype(result, copy=False)


class _Ranges:
    """The operands of one call, and how long the range behind each name is."""

    def __init__(self, operands: Sequence[Any], names: tuple[Names, ...]) -> None:
        self.operands = operands
        self.ranges: dict[str, int] = {}
        for operand, own in zip(operands, names, strict=True):
            level = operand
            for name in own:
                if self.ranges.setdefault(name, len(level)) != len(level):
                    raise ValueError(
                        f"contract expects ranges of as many tiles over {name!r} in every operand, "
                        f"got {self.ranges[name]} and {len(level)}"
                    )
                level = level[0]

    def indices(self, names: Names) -> Iterator[Index]:
        """All values of these names, the last fastest."""
        for values in itertools.product(*(range(self.ranges[name]) for name in names)):
            yield dict(zip(names, values, strict=True))

    def at(self, leaf: Leaf, index: Index) -> Any:
        """What the operand has there."""
        item = self.operands[leaf.position]
        for name in leaf.names:
            item = item[index[name]]
        return item


class _Shapes(_Ranges):
    """Operands of which only the shapes are known."""

    def flops(self, node: Node, index: Index) -> float:
        """Floating-point operations for the value of a node."""
        if isinstance(node, Leaf):
            return 0.0
        total = 0.0
        for child in (node.left, node.right):
            own = tuple(name for name in node.loops if name in child.free)
            total += sum(self.flops(child, index | more) for more in self.indices(own))
        for more in self.indices(node.loops):
            lengths = self._lengths(node, index | more)
            total += 2.0 * math.prod(lengths[c] for c in {*node.left.letters, *node.right.letters})
        return total

    def _lengths(self, node: Node, index: Index) -> dict[str, int]:
        if isinstance(node, Product):
            return self._lengths(node.left, index) | self._lengths(node.right, index)
        known = dict.fromkeys(node.names, 0) | index
        return dict(zip(node.given, self.at(node, known), strict=True))


class _Tiles(_Ranges):
    """Operands as tiles."""

    def __init__(self, operands: Sequence[Any], names: tuple[Names, ...], dtype: np.dtype[Any]) -> None:
        super().__init__(operands, names)
        self.dtype = dtype
        self._sums: dict[tuple[int, ...], Tile] = {}

    def whole(self, root: Node, spec: str) -> Tile:
        """The value of the root, a new array."""
        _, out = split(spec)
        if isinstance(root, Leaf):
            turned = self.leaf(root, {}, None).transpose([root.letters.index(c) for c in out])
            return np.array(turned, self.dtype, order="K")
        if isinstance(root.left, Leaf) and isinstance(root.right, Leaf):
            return self.value(root, {}, [None])
        lengths = self._longest(spec)
        found = cut(root, lengths, self.dtype.itemsize, _PIECE)
        if found is None:
            return self.value(root, {}, [None])
        letter, step = found
        pieces = [(letter, slice(start, start + step)) for start in range(0, lengths[letter], step)]
        if letter not in out:
            return self.value(root, {}, pieces)
        result = np.empty([lengths[c] for c in out], self.dtype)
        along = np.moveaxis(result, out.index(letter), 0)
        for piece in pieces:
            along[piece[1]] = np.moveaxis(self.value(root, {}, [piece]), out.index(letter), 0)
        return result

    def _longest(self, spec: str) -> dict[str, int]:
        """The length of each axis; of summed ones, that of the longest tile."""
        lengths: dict[str, int] = {}
        for letters, operand in zip(split(spec)[0], self.operands, strict=True):
            for tile in _flat(operand):
                for c, length in zip(letters, tile.shape, strict=True):
                    lengths[c] = max(length, lengths.get(c, 0))
        return lengths

    def value(self, node: Node, index: Index, pieces: Sequence[Piece | None]) -> Tile:
        """The sum of the values of a node for these pieces (None: the whole), at these tiles."""
        if isinstance(node, Leaf):
            return self.leaf(node, index, pieces[0])
        total = Accumulation(node.left.letters, node.right.letters, node.letters, self.dtype)
        for piece in pieces:
            last: list[tuple[Index | None, Any]] = [(None, None), (None, None)]
            for more in self.indices(node.loops):
                here = index | more
                for side, child in enumerate((node.left, node.right)):
                    wanted = {name: here[name] for name in child.free}
                    if wanted != last[side][0]:
                        last[side] = (wanted, self.value(child, here, [piece]))
                total.add(last[0][1], last[1][1])
        return total.result()

    def leaf(self, leaf: Leaf, index: Index, piece: Piece | None) -> Tile:
        """An operand's tile, with diagonals taken and letters that only it has summed over."""
        if leaf.lone or leaf.given != leaf.letters:
            key = (leaf.position, *(index[name] for name in leaf.free))
            if key not in self._sums:
                self._sums[key] = self._reduced(leaf, index)
            tile = self._sums[key]
        else:
            tile = self.at(leaf, index)
        if piece is None or piece[0] not in leaf.letters:
            return tile
        return tile[(slice(None),) * leaf.letters.index(piece[0]) + (piece[1],)]

    def _reduced(self, leaf: Leaf, index: Index) -> Tile:
        distinct = "".join(dict.fromkeys(leaf.given))
        summed = tuple(axis for axis, c in enumerate(distinct) if c not in leaf.letters)
        total: Tile | None = None
        for more in self.indices(leaf.lone):
            tile = self.at(leaf, index | more)
            if distinct != leaf.given:
                tile = np.einsum(f"{leaf.given}->{distinct}", tile)
            if summed:
                tile = np.asarray(np.add.reduce(tile, axis=summed, dtype=self.dtype))
            if total is None:
                total = np.array(tile, self.dtype) if leaf.lone else tile
            else:
                total += tile
        assert total is not None
        return total


def _levels(operands: Sequence[Any], spec: str, over: Sequence[str] | None) -> tuple[Names, ...]:
    """The names of the levels of nesting of each operand."""
    return _named(tuple(map(_depth, operands)), spec, None if over is None else tuple(over))


@functools.lru_cache(maxsize=512)
def _named(depths: tuple[int, ...], spec: str, over: tuple[str, ...] | None) -> tuple[Names, ...]:
    inputs, out = split(spec)
    if len(inputs) != len(depths):
        raise ValueError(f"contract expects {len(inputs)} operands for {spec!r}, got {len(depths)}")
    if over is not None:
        names = tuple(tuple(own) for own in over)
        fits = len(names) == len(depths) and all(
            len(own) == depth and len(set(own)) == depth and set(own) <= set(letters) - set(out)
            for own, depth, letters in zip(names, depths, inputs, strict=True)
        )
        if not fits:
            raise ValueError(
                f"contract expects over= to name, for each operand of {spec!r}, the summed letters its "
                f"levels of nesting run over; the levels are {depths}, over is {over!r}"
            )
        return names
    summed = [tuple(c for c in dict.fromkeys(letters) if c not in out) for letters in inputs]
    if all(depth in (0, len(own)) for depth, own in zip(depths, summed, strict=True)):
        return tuple(own if depth else () for depth, own in zip(depths, summed, strict=True))
    if len(depths) == 2 and depths[0] == depths[1]:
        return (tuple(map(str, range(depths[0]))),) * 2
    raise ValueError(
        f"contract cannot tell what ranges nested to the depths {depths} run over in {spec!r}; "
        'name the letters for each operand, as in over=("jk", "j", "k")'
    )


def _depth(operand: Any) -> int:
    depth = 0
    while isinstance(operand, list):
        if not operand:
            raise ValueError("contract expects at least one tile in a range, got none")
        operand, depth = operand[0], depth + 1
    return depth


def _first(operand: Any) -> Any:
    while isinstance(operand, list):
        operand = operand[0]
    return operand


def _flat(operand: Any) -> list[Any]:
    if not isinstance(operand, list):
        return [operand]
    return [tile for item in operand for tile in _flat(item)]
