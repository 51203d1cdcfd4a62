"""Kernels on sparse tiles that work element by element, and those that move elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.kernels.registry import kernel
from linnet.machine.float_errors import quietly
from linnet.tiles.sparse_tile import SparseTile, origin_of, same, scalar_of

Tile = NDArray[Any]
unpacked = SparseTile.unpacked


def packed_dtype(*_: Any, **__: Any) -> str:
    """Sparse tiles are bytes."""
    return "uint8"


def ufunc_of(name: str) -> np.ufunc:
    """A function of NumPy's by name; nothing else can be named."""
    found = getattr(np, name, None)
    if not isinstance(found, np.ufunc) or found.nout != 1 or found.signature is not None:
        raise ValueError(f"{name!r} is no universal function of one result")
    return found


def with_values(tile: SparseTile, values: Tile, fill: Any) -> Tile:
    """The tile with other values in the same places; those that are the fill are dropped."""
    fill = values.dtype.type(fill)
    drop = same(values, fill)
    if drop.any():
        keep = ~drop
        made = SparseTile.at(tile.shape, tile.origin, fill, tile.positions()[keep], values[keep])
    else:
        made = SparseTile(tile.shape, tile.origin, fill, tile.pointers, tile.indices, values)
    return made.packed()


@kernel("sparse_map", dtype=packed_dtype, flops=lambda *_, **__: 0.0)
def sparse_map(data: Tile, *, op: str, given: Sequence[str], dtype: str) -> Tile:
    """A function of each element: `given` are numbers, and "" where the element stands.

    >>> tile = SparseTile.of(np.array([[0, 7], [4, 0]]), 0).packed()
    >>> unpacked(sparse_map(tile, op="multiply", given=["", "<i8:" + "02" + "00" * 7], dtype="<i8")).dense()
    array([[ 0, 14],
           [ 8,  0]])
    """
    tile = unpacked(data)
    numbers = [scalar_of(each) if each else None for each in given]

    def value(of: Any) -> Any:
        if op == "astype":
            return np.asarray(of).astype(dtype)
        return np.asarray(ufunc_of(op)(*(of if each is None else each for each in numbers)), dtype)

    return with_values(tile, quietly(value, tile.values), quietly(value, tile.fill)[()])


@kernel("sparse_pair", dtype=packed_dtype, flops=lambda *_, **__: 0.0)
def sparse_pair(
    lefts: list[Tile], rights: list[Tile], *, op: str, fills: Sequence[str], fill: str, both: bool
) -> Tile:
    """A function of the elements of two tiles, of which one may be absent.

    With `both` only elements stored in both count: elsewhere the result is its fill.

    >>> tile = SparseTile.of(np.array([[0, 7], [4, 0]]), 0).packed()
    >>> zero = "<i8:" + "00" * 8
    >>> unpacked(sparse_pair([tile], [tile], op="add", fills=[zero, zero], fill=zero, both=False)).dense()
    array([[ 0, 14],
           [ 8,  0]])
    """
    one, other = _either(lefts, rights, fills[0]), _either(rights, lefts, fills[1])
    ufunc, result = ufunc_of(op), scalar_of(fill)
    p, q = one.positions(), other.positions()
    if both:
        positions, at, beside = np.intersect1d(p, q, assume_unique=True, return_indices=True)
        x, y = one.values[at], other.values[beside]
    else:
        positions = np.union1d(p, q)
        x = _spread(one, p, positions)
        y = _spread(other, q, positions)
    values = np.asarray(quietly(ufunc, x, y)).astype(result.dtype, copy=False)
    keep = ~same(values, result)
    return SparseTile.at(one.shape, one.origin, result, positions[keep], values[keep]).packed()


def _either(mine: list[Tile], others: list[Tile], fill: str) -> SparseTile:
    if mine:
        return unpacked(mine[0])
    beside = unpacked(others[0])
    scalar = scalar_of(fill)
    nothing = np.zeros(0, np.int64)
    return SparseTile.at(beside.shape, beside.origin, scalar, nothing, np.zeros(0, scalar.dtype))


def _spread(tile: SparseTile, mine: Tile, positions: Tile) -> Tile:
    values = np.full(len(positions), tile.fill, tile.dtype)
    values[np.searchsorted(positions, mine)] = tile.values
    return values


def leaf(nest: Any) -> Tile:
    """The tile in nested lists of one."""
    while isinstance(nest, list | tuple):
        nest = nest[0]
    return nest


@kernel("sparse_beside_dense", dtype=packed_dtype, flops=lambda *_, **__: 0.0)
def sparse_beside_dense(data: Tile, dense: Any, *, op: str, swapped: bool, fill: str) -> Tile:
    """A function of stored elements and the elements of a dense tile in their places.

    >>> tile = SparseTile.of(np.array([[0, 7], [4, 0]]), 0).packed()
    >>> dense = np.array([[1, 2], [3, 4]])
    >>> zero = "<i8:" + "00" * 8
    >>> unpacked(sparse_beside_dense(tile, dense, op="multiply", swapped=False, fill=zero)).dense()
    array([[ 0, 14],
           [12,  0]])
    """
    tile, beside = unpacked(data), leaf(dense)
    places = tile.coordinates()[len(tile.shape) - beside.ndim :]
    # An axis of length 1 is the same everywhere.
    there = beside[tuple(0 if n == 1 else at for n, at in zip(beside.shape, places, strict=True))]
    operands = (there, tile.values) if swapped else (tile.values, there)
    result = scalar_of(fill)
    values = np.broadcast_to(quietly(ufunc_of(op), *operands), tile.values.shape).astype(result.dtype)
    return with_values(tile, values, result)


@kernel(
    "sparse_to_dense",
    shape=lambda tiles, *box, **_: box[1::2],
    dtype=lambda *_, fill: fill.partition(":")[0],
    flops=lambda *_, **__: 0.0,
)
def sparse_to_dense(tiles: list[Tile], *box: int, fill: str) -> Tile:
    """All elements of the tile at a place, which may be absent; `box`: start and length along each axis.

    >>> tile = SparseTile.of(np.array([[0, 7], [4, 0]]), 0).packed()
    >>> sparse_to_dense([tile], 0, 2, 0, 2, fill="<i8:" + "00" * 8)
    array([[0, 7],
           [4, 0]])
    """
    scalar = scalar_of(fill)
    whole = np.full(box[1::2], scalar, scalar.dtype)
    for data in tiles:
        if origin_of(data) == box[0::2]:
            tile = unpacked(data)
            whole[tile.coordinates()] = tile.values
    return whole


@kernel("sparse_of_dense", dtype=packed_dtype, flops=lambda *_, **__: 0.0)
def sparse_of_dense(dense: Any, *origin: int, fill: str) -> Tile:
    """The elements of a dense tile that differ from the fill.

    >>> tile = sparse_of_dense(np.array([[0, 7], [4, 0]]), 0, 0, fill="<i8:" + "00" * 8)
    >>> unpacked(tile).coordinates(), unpacked(tile).values
    ((array([0, 1], dtype=int32), array([1, 0], dtype=int32)), array([7, 4]))
    """
    return SparseTile.of(leaf(dense), scalar_of(fill), origin).packed()


@kernel("sparse_same", dtype=packed_dtype, flops=lambda *_, **__: 0.0)
def sparse_same(tiles: list[Tile]) -> Tile:
    """The tile itself, under another number.

    >>> tile = SparseTile.of(np.array([[0, 7], [4, 0]]), 0).packed()
    >>> unpacked(sparse_same([tile])).dense()
    array([[0, 7],
           [4, 0]])
    """
    return np.array(tiles[0])


@kernel("sparse_transpose", dtype=packed_dtype, flops=lambda *_, **__: 0.0)
def sparse_transpose(tiles: list[Tile], *, axes: Sequence[int]) -> Tile:
    """A tile under other axes; -1 is a new one.

    >>> tile = SparseTile.of(np.array([[0, 7], [4, 0]]), 0).packed()
    >>> unpacked(sparse_transpose([tile], axes=[1, 0])).dense()
    array([[0, 4],
           [7, 0]])
    """
    tile = unpacked(tiles[0])
    places = tile.coordinates()
    shape = tuple(1 if a < 0 else tile.shape[a] for a in axes)
    origin = tuple(0 if a < 0 else tile.origin[a] for a in axes)
    moved = [np.zeros(tile.stored, np.int64) if a < 0 else places[a] for a in axes]
    return _sorted(shape, origin, tile.fill, moved, tile.values).packed()


def _sorted(
    shape: Sequence[int], origin: Sequence[int], fill: Any, places: Sequence[Tile], values: Tile
) -> SparseTile:
    """A tile of elements in any order, each once."""
    positions = np.zeros(len(values), np.int64)
    for length, line in zip(shape, places, strict=True):
        positions = positions * length + line
    if len(positions) > 1 and (np.diff(positions) < 0).any():
        order = np.argsort(positions, kind="stable")
        positions, values = positions[order], values[order]
    return SparseTile.at(shape, origin, fill, positions, values)


@kernel("sparse_cut", dtype=packed_dtype, flops=lambda *_, **__: 0.0)
def sparse_cut(tiles: list[Tile], *bounds: int, kept: Sequence[bool]) -> Tile:
    """Elements of a tile at `start`, `start + step`, ...: along each axis first, length, step, origin.

    The first is counted from the tile's own beginning. Axes that are not kept have one element left.

    >>> tile = SparseTile.of(np.array([[0, 7], [4, 0]]), 0).packed()
    >>> unpacked(sparse_cut([tile], 1, 1, 1, 0, 0, 2, 1, 0, kept=[False, True])).dense()
    array([4, 0])
    """
    tile = unpacked(tiles[0])
    inside = np.ones(tile.stored, np.bool)
    places: list[Tile] = []
    for axis, line in enumerate(tile.coordinates()):
        first, length, step, _ = bounds[4 * axis : 4 * axis + 4]
        quotient, rest = np.divmod(line.astype(np.int64) - first, step)
        inside &= (rest == 0) & (quotient >= 0) & (quotient < length)
        places.append(quotient)
    shape = [bounds[4 * axis + 1] for axis, keep in enumerate(kept) if keep]
    origin = [bounds[4 * axis + 3] for axis, keep in enumerate(kept) if keep]
    left = [line[inside] for line, keep in zip(places, kept, strict=True) if keep]
    return _sorted(shape, origin, tile.fill, left, tile.values[inside]).packed()


@kernel("sparse_recut", dtype=packed_dtype, flops=lambda *_, **__: 0.0)
def sparse_recut(tiles: list[Tile], *bounds: int, fill: str) -> Tile:
    """What several tiles hold of a box: `bounds` has start and stop along each axis, in the whole array.

    >>> left = SparseTile.of(np.array([0, 7]), 0, [0]).packed()
    >>> right = SparseTile.of(np.array([4, 0]), 0, [2]).packed()
    >>> unpacked(sparse_recut([left, right], 1, 3, fill="<i8:" + "00" * 8)).dense()
    array([7, 4])
    """
    starts, stops = bounds[0::2], bounds[1::2]
    shape = [stop - start for start, stop in zip(starts, stops, strict=True)]
    scalar = scalar_of(fill)
    places: list[list[Tile]] = [[np.zeros(0, np.int64)] for _ in starts]
    values: list[Tile] = [np.zeros(0, scalar.dtype)]
    for data in tiles:
        tile = unpacked(data)
        beyond = any(
            o >= stop or o + n <= start
            for o, n, start, stop in zip(tile.origin, tile.shape, starts, stops, strict=True)
        )
        if beyond:
            continue
        lines = [
            line.astype(np.int64) + (o - start)
            for line, o, start in zip(tile.coordinates(), tile.origin, starts, strict=True)
        ]
        inside = np.ones(tile.stored, np.bool)
        for line, length in zip(lines, shape, strict=True):
            inside &= (line >= 0) & (line < length)
        for kept, line in zip(places, lines, strict=True):
            kept.append(line[inside])
        values.append(tile.values[inside])
    joined = [np.concatenate(each) for each in places]
    return _sorted(shape, starts, scalar, joined, np.concatenate(values)).packed()


# ---- reductions

_FOLDS = {"add", "multiply", "minimum", "maximum", "logical_or", "logical_and"}


@kernel(
    "sparse_fold",
    shape=lambda tiles, count, *box, **_: box[1::2],
    dtype=lambda *_, fill, **__: fill.partition(":")[0],
    flops=lambda *_, **__: 0.0,
)
def sparse_fold(tiles: list[Tile], count: int, *box: int, op: str, kept: Sequence[int], fill: str) -> Tile:
    """A reduction of tiles one behind another to the axes that are kept; the result is dense.

    `count`: how many elements there are for each of the result, stored or not. `box`: start and length along
    each axis that is kept; tiles that lie elsewhere are passed over. `fill` is in the dtype in which the
    reduction is made.

    >>> tile = SparseTile.of(np.array([[0, 7], [4, 0]]), 0).packed()
    >>> sparse_fold([tile], 2, 0, 2, op="maximum", kept=[0], fill="<i8:" + "00" * 8)
    array([7, 4])
    """
    if op not in _FOLDS:
        raise ValueError(f"{op!r} is no reduction of sparse tiles; known are {', '.join(sorted(_FOLDS))}")
    ufunc, scalar = ufunc_of(op), scalar_of(fill)
    dtype = scalar.dtype
    shape = box[1::2]
    size = math.prod(shape)
    seen = np.zeros(size, np.int64)
    total = np.full(size, _start(op, dtype), dtype)
    for data in tiles:
        origin = origin_of(data)
        if tuple(origin[axis] for axis in kept) != box[0::2]:
            continue
        tile = unpacked(data)
        places = tile.coordinates()
        line = np.zeros(tile.stored, np.int64)
        for axis, length in zip(kept, shape, strict=True):
            line = line * length + places[axis]
        seen += np.bincount(line, minlength=size)
        values = tile.values.astype(dtype, copy=False)
        if op == "add" and dtype.char in "fd":
            total += np.bincount(line, values, minlength=size).astype(dtype, copy=False)
        else:
            quietly(ufunc.at, total, line, values)
    absent = count - seen
    if op == "add":
        if scalar != 0:
            total = np.where(absent > 0, total + absent.astype(dtype) * scalar, total).astype(dtype)
    elif op == "multiply":
        if scalar != 1:
            total = np.where(absent > 0, quietly(np.multiply, total, np.power(scalar, absent)), total)
    else:
        total = np.where(absent > 0, quietly(ufunc, total, scalar), total)
    return np.asarray(total, dtype).reshape(shape)


def _start(op: str, dtype: np.dtype[Any]) -> Any:
    """The identity of a reduction."""
    if op in ("add", "logical_or"):
        return 0
    if op in ("multiply", "logical_and"):
        return 1
    if dtype.kind == "f":
        return np.inf if op == "minimum" else -np.inf
    if dtype.kind == "b":
        return op == "minimum"
    if dtype.kind == "c":
        return complex(np.inf, np.inf) if op == "minimum" else complex(-np.inf, -np.inf)
    limits = np.iinfo(dtype)
    return limits.max if op == "minimum" else limits.min
