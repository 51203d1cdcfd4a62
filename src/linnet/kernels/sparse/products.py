"""Products of sparse tiles with sparse and with dense ones, over any pair of ⊕ and ⊗.

Fills annihilate ⊗ and are the identity of ⊕ (whoever calls these has seen to it), so that only pairs of
stored elements count. Sums of products are compiled (`compiled/sparse.c`), or go to SciPy's loops; others
expand the pairs a few million at a time, and fold those of one place together.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.kernels.registry import kernel
from linnet.kernels.sparse.compiled_products import (
    compiled_dense_product,
    compiled_product,
    compiled_times_vector,
)
from linnet.kernels.sparse.elements import packed_dtype, ufunc_of, unpacked
from linnet.machine.float_errors import quietly
from linnet.tiles.sparse_tile import SparseTile, same, scalar_of

Tile = NDArray[Any]
_PAIRS = 1 << 21
"""Pairs that are expanded at a time."""


@kernel("sparse_product", dtype=packed_dtype)
def sparse_product(
    lefts: list[Tile], rights: list[Tile], *box: int, plus: str, times: str, fill: str
) -> Tile:
    """One tile of a product: a row of tiles by a column of tiles, with those that are absent left out.

    `box`: rows, columns, and where the tile begins along both axes.

    >>> tile = SparseTile.of(np.array([[0, 7], [4, 0]]), 0).packed()
    >>> zero = "<i8:" + "00" * 8
    >>> unpacked(sparse_product([tile], [tile], 2, 2, 0, 0, plus="add", times="multiply", fill=zero)).dense()
    array([[28,  0],
           [ 0, 28]])
    """
    rows, columns, *origin = box
    corner = origin[0], origin[1]
    scalar = scalar_of(fill)
    pairs = _pairs_of(lefts, rights)
    if (plus, times) == ("add", "multiply") and not scalar:
        made = compiled_product(pairs, (rows, columns), corner, scalar)
        if made is not None:
            return made
    return _product(pairs, (rows, columns), corner, scalar, plus, times).packed()


def _pairs_of(lefts: list[Tile], rights: list[Tile]) -> list[tuple[SparseTile, SparseTile]]:
    """A row of tiles and a column of tiles: those that meet."""
    below = {tile.origin[0]: tile for tile in map(unpacked, rights)}
    return [(tile, below[tile.origin[1]]) for tile in map(unpacked, lefts) if tile.origin[1] in below]


def _product(
    pairs: Any, shape: tuple[int, int], corner: tuple[int, int], scalar: Any, plus: str, times: str
) -> SparseTile:
    if (plus, times) == ("add", "multiply") and scalar.dtype.char != "e":
        made = _summed(pairs, *shape, scalar.dtype)
    else:
        made = _semiring(pairs, shape[1], scalar.dtype, ufunc_of(plus), ufunc_of(times))
    positions, values = made
    keep = ~same(values, scalar)
    return SparseTile.at(shape, corner, scalar, positions[keep], values[keep])


@kernel(
    "sparse_dense_product", shape=lambda _one, _other, *box, **_: tuple(box),
    dtype=lambda *_, fill, **__: fill.partition(":")[0], into=True,
)  # fmt: skip
def sparse_dense_product(
    lefts: list[Tile], rights: list[Tile], rows: int, columns: int, *, plus: str, times: str, fill: str,
    into: Tile | None = None,
) -> Tile:  # fmt: skip
    """One tile of a product of sparse matrices with all of its elements.

    >>> tile = SparseTile.of(np.array([[0, 7], [4, 0]]), 0).packed()
    >>> zero = "<i8:" + "00" * 8
    >>> sparse_dense_product([tile], [tile], 2, 2, plus="add", times="multiply", fill=zero)
    array([[28,  0],
           [ 0, 28]])
    """
    scalar = scalar_of(fill)
    pairs = _pairs_of(lefts, rights)
    fits = into is not None and into.dtype == scalar.dtype and into.shape == (rows, columns)
    made = into if fits and into is not None else np.empty((rows, columns), scalar.dtype)
    if (plus, times) != ("add", "multiply") or scalar or not compiled_dense_product(pairs, made):
        _product(pairs, (rows, columns), (0, 0), scalar, plus, times).dense(made)
    return made


def _matrix(tile: SparseTile, dtype: np.dtype[Any]) -> Any:
    from scipy.sparse import csr_array

    made = csr_array(tile.folded, dtype=dtype)
    made.data, made.indices, made.indptr = tile.values.astype(dtype, copy=False), tile.indices, tile.pointers
    return made


def _summed(pairs: Any, rows: int, columns: int, dtype: np.dtype[Any]) -> tuple[Tile, Tile]:
    if not pairs:
        return np.zeros(0, np.int64), np.zeros(0, dtype)
    total = functools.reduce(
        operator.add, (_matrix(one, dtype) @ _matrix(other, dtype) for one, other in pairs)
    )
    total.sort_indices()
    row = np.repeat(np.arange(rows, dtype=np.int64), np.diff(total.indptr))
    return row * columns + total.indices, total.data.astype(dtype, copy=False)


def _semiring(
    pairs: Any, columns: int, dtype: np.dtype[Any], plus: np.ufunc, times: np.ufunc
) -> tuple[Tile, Tile]:
    positions, values = np.zeros(0, np.int64), np.zeros(0, dtype)
    for one, other in pairs:
        counts = np.diff(other.pointers)[one.indices]
        ends = np.cumsum(counts, dtype=np.int64)
        rows = one.rows().astype(np.int64)
        start = 0
        while start < one.stored:
            before = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + _PAIRS, side="right")))
            part = slice(start, stop)
            repeats = counts[part]
            which = np.repeat(np.arange(start, stop), repeats)
            first = np.repeat(ends[part] - repeats - before, repeats)
            there = np.repeat(other.pointers[one.indices[part]].astype(np.int64), repeats)
            there += np.arange(len(which)) - first
            made = quietly(times, one.values[which], other.values[there]).astype(dtype, copy=False)
            places = rows[which] * columns + other.indices[there]
            positions = np.concatenate([positions, places])
            values = np.concatenate([values, made])
            positions, values = _joined(positions, values, plus)
            start = stop
    return positions, values


def _joined(positions: Tile, values: Tile, plus: np.ufunc) -> tuple[Tile, Tile]:
    """Values of the same place folded together; places ascending."""
    if not len(positions):
        return positions, values
    order = np.argsort(positions, kind="stable")
    positions, values = positions[order], values[order]
    first = np.flatnonzero(np.concatenate([[True], positions[1:] != positions[:-1]]))
    return positions[first], np.asarray(quietly(plus.reduceat, values, first)).astype(
        values.dtype, copy=False
    )


def _product_shape(lefts: Any, rights: Any, start: int, rows: int, **_: Any) -> tuple[int, ...]:
    first = rights
    while isinstance(first, list):
        first = first[0]
    return (rows, first[1])


@kernel("sparse_times_dense", shape=_product_shape, dtype=lambda *_, fill, **__: fill.partition(":")[0])
def sparse_times_dense(
    lefts: list[Tile], rights: Any, start: int, rows: int, *, plus: str, times: str, fill: str
) -> Tile:
    """One tile of a product of a sparse matrix and a dense one; tiles of the second begin at row `start`.

    >>> tile = SparseTile.of(np.array([[0, 7], [4, 0]]), 0).packed()
    >>> dense = np.array([[1, 2], [3, 4]])
    >>> zero = "<i8:" + "00" * 8
    >>> sparse_times_dense([tile], [dense], 0, 2, plus="add", times="multiply", fill=zero)
    array([[21, 28],
           [ 4,  8]])
    """
    scalar = scalar_of(fill)
    dtype = scalar.dtype
    dense: list[Tile] = [each[0] if isinstance(each, list) else each for each in rights]
    edges = np.cumsum([start, *(len(each) for each in dense)])
    total = np.full((rows, dense[0].shape[1]), scalar, dtype)
    for tile in map(unpacked, lefts):
        # The rows of the other matrix that belong to the tile's columns.
        place = int(np.searchsorted(edges, tile.origin[1], side="right")) - 1
        below = dense[place].astype(dtype, copy=False)
        if (plus, times) == ("add", "multiply") and compiled_times_vector(tile, below, total):
            continue
        if (plus, times) == ("add", "multiply") and dtype.char != "e":
            total += _matrix(tile, dtype) @ np.ascontiguousarray(below)
        elif tile.stored:
            _spread_rows(total, tile, below, ufunc_of(plus), ufunc_of(times))
    return total


def _spread_rows(total: Tile, tile: SparseTile, below: Tile, plus: np.ufunc, times: np.ufunc) -> None:
    """Fold the products of the stored elements of each row into the row of the result."""
    step = max(1, _PAIRS // max(1, below.shape[1]))
    rows = tile.rows()
    for start in range(0, tile.stored, step):
        part = slice(start, start + step)
        made = quietly(times, tile.values[part, None], below[tile.indices[part]])
        first = np.flatnonzero(np.concatenate([[True], rows[part][1:] != rows[part][:-1]]))
        folded = quietly(plus.reduceat, made, first, 0)
        here = rows[part][first]
        total[here] = quietly(plus, total[here], folded)
