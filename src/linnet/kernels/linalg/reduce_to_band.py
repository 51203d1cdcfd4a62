"""Kernels that reduce a matrix to a band: panels narrower than a tile, and updates of what is right of them.

A panel is `width` columns of a column of tiles (or rows of a row of tiles), taken together; its
reflectors `I − V·T·Vᴴ` are returned tile by tile, ones and zeros written out, so that everything
else is matrix products. In the tile where the panel begins, `V` has only the rows that the panel has:
other kernels see from that which part of a tile is meant.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from linnet.kernels.linalg.dense_factors import extent, misfit
from linnet.kernels.registry import kernel
from linnet.machine.fortran import (
    Matrix,
    address,
    adjoint_operand,
    blas_dtype,
    conjugate_operand,
    integer,
    leading,
    multiply_into,
    operand,
    owned,
    promote,
    readable,
    routine,
)

Shape = tuple[int, int]


def panel_edges(columns: int, panel: int, width: int) -> tuple[int, int]:
    """Where a panel of a tile begins and ends; the last may be narrower, or have no columns.

    >>> [panel_edges(10, panel, 4) for panel in range(4)]
    [(0, 4), (4, 8), (8, 10), (10, 10)]
    """
    low = min(panel * width, columns)
    return low, min(low + width, columns)


def _factor_shapes(heights: list[int], width: int) -> tuple[list[Shape], Shape, Shape]:
    """Of what `_factorise` makes of pieces so high and so wide."""
    k = min(sum(heights), width)
    return [(height, k) for height in heights], (k, k), (k, width)


def _factor_flops(shapes: tuple[list[Shape], Shape, Shape]) -> float:
    v, (k, _), _ = shapes
    return 4.0 * sum(rows for rows, _ in v) * k * k


def _product_flops(v: list[Shape], t: Shape, across: int) -> float:
    """Of `Vᴴ` or `V` times something `across` wide, and of `T` times that."""
    return 2.0 * across * t[0] * (sum(rows for rows, _ in v) + t[0])


def _panel_kernel(name: str, shapes: Callable[..., tuple[list[Shape], Shape, Shape]]) -> Callable[[Any], Any]:
    """A kernel that factors a panel: it makes `V` by tiles, `T`, and a triangle, of these shapes."""
    return kernel(
        name,
        outputs=3,
        shape=shapes,
        dtype=lambda tiles, *_: (promote(*tiles),) * 3,
        flops=lambda *given: _factor_flops(shapes(*given)),
    )


def _column_shapes(tiles: list[Shape], panel: int, width: int) -> tuple[list[Shape], Shape, Shape]:
    low, high = panel_edges(tiles[0][1], panel, width)
    return _factor_shapes([max(0, tiles[0][0] - low), *(rows for rows, _ in tiles[1:])], high - low)


def _row_shapes(tiles: list[Shape], panel: int, width: int) -> tuple[list[Shape], Shape, Shape]:
    rows, columns = tiles[0]
    low, high = panel_edges(columns, panel, width)
    v, t, r = _factor_shapes(
        [columns - high, *(each for _, each in tiles[1:])], min(high, rows) - min(low, rows)
    )
    return v, t, (r[1], r[0])


def _below_shapes(tiles: list[Shape], panel: int, width: int) -> tuple[list[Shape], Shape, Shape]:
    rows, columns = tiles[0]
    low, high = panel_edges(columns, panel, width)
    v, t, r = _factor_shapes([max(0, rows - high), *(each for each, _ in tiles[1:])], high - low)
    return v, t, (min(high, rows) - min(low, rows) + r[0], high - low)


@_panel_kernel("reflect_columns", _column_shapes)
def reflect_columns(tiles: list[Matrix], panel: int, width: int) -> tuple[list[Matrix], Matrix, Matrix]:
    """QR of a panel of a column of tiles, from its own diagonal down: `V` by tiles, `T`, `R`.

    >>> v, t, r = reflect_columns([np.array([[3.0, 1.0], [4.0, 2.0]])], 0, 1)
    >>> bool(np.allclose(abs(r), 5.0)), v[0].shape
    (True, (2, 1))
    """
    low, high = panel_edges(tiles[0].shape[1], panel, width)
    return _factorise([tiles[0][low:, low:high], *(tile[:, low:high] for tile in tiles[1:])])


@_panel_kernel("reflect_rows", _row_shapes)
def reflect_rows(tiles: list[Matrix], panel: int, width: int) -> tuple[list[Matrix], Matrix, Matrix]:
    """LQ of a panel of a row of tiles, right of its diagonal block: `V` by tiles, `T`, `L`.

    >>> v, t, l = reflect_rows([np.array([[1.0, 3.0], [0.0, 1.0]]), np.array([[4.0], [2.0]])], 0, 1)
    >>> bool(np.allclose(abs(l), 5.0)), v[0].shape, v[1].shape
    (True, (1, 1), (1, 1))
    """
    low, high = panel_edges(tiles[0].shape[1], panel, width)
    first = tiles[0][low:high, high:].T.conj()
    v, t, r = _factorise([first, *(tile[low:high].T.conj() for tile in tiles[1:])])
    return v, t, np.asfortranarray(r.T.conj())


@_panel_kernel("reflect_below", _below_shapes)
def reflect_below(tiles: list[Matrix], panel: int, width: int) -> tuple[list[Matrix], Matrix, Matrix]:
    """QR of a panel of a column of tiles below its diagonal block: `V` by tiles, `T`, and the block on `R`.

    >>> a = np.array([[2.0, 3.0, 4.0], [3.0, 1.0, 0.0], [4.0, 0.0, 1.0]])
    >>> v, t, d = reflect_below([a], 0, 1)
    >>> bool(np.allclose(abs(d.T), [[2.0, 5.0]])), v[0].shape
    (True, (2, 1))
    """
    low, high = panel_edges(tiles[0].shape[1], panel, width)
    v, t, r = _factorise([tiles[0][high:, low:high], *(tile[:, low:high] for tile in tiles[1:])])
    return v, t, np.asfortranarray(np.concatenate([tiles[0][low:high, low:high], r]))


def _factorise(pieces: list[Matrix]) -> tuple[list[Matrix], Matrix, Matrix]:
    """QR of pieces one below the other, in one piece: `V` cut as they are, `T`, `R`."""
    packed = np.asfortranarray(np.concatenate(pieces), blas_dtype(*pieces))
    m, n = packed.shape
    k = min(m, n)
    t = np.zeros((k, k), packed.dtype, order="F")
    if k:
        # One block as wide as the panel: LAPACK then recurses, and T comes out whole.
        work = np.empty(k * n, packed.dtype)
        info = ctypes.c_int(0)
        routine("geqrt", packed.dtype.char)(
            integer(m), integer(n), integer(k), address(packed), leading(packed),
            address(t), leading(t), address(work), ctypes.byref(info),
        )  # fmt: skip
    r = np.asfortranarray(np.triu(packed[:k]))
    v = packed[:, :k]
    v[:k] = np.tril(v[:k], -1)
    np.fill_diagonal(v, 1.0)
    edges = np.cumsum([0, *(len(piece) for piece in pieces)])
    pairs = itertools.pairwise(edges)
    return [v[low:high].copy(order="F") for low, high in pairs], np.triu(t), r


@kernel(
    "project_columns",
    shape=lambda v, t, tiles, skip, width: (t[0], tiles[0][1] - panel_edges(tiles[0][1], skip, width)[0]),
    dtype=lambda v, t, tiles, *_: promote(*v, *tiles),
    flops=lambda v, t, tiles, *_: _product_flops(v, t, tiles[0][1]),
)
def project_columns(v: list[Matrix], t: Matrix, tiles: list[Matrix], skip: int, width: int) -> Matrix:
    """`Tᴴ·Vᴴ·S` for a column of tiles `S`, without the columns of its first `skip` panels.

    >>> project_columns([np.array([[1.0]])], np.array([[2.0]]), [np.array([[1.0, 2.0]])], 1, 1)
    array([[4.]])
    """
    dtype = blas_dtype(*v, t, *tiles)
    start = panel_edges(tiles[0].shape[1], skip, width)[0]
    total = np.zeros((t.shape[0], tiles[0].shape[1] - start), dtype, order="F")
    if not total.size:
        return total
    for each, tile in zip(v, tiles, strict=True):
        rows = each.shape[0]
        if rows:
            block = operand(tile[tile.shape[0] - rows :, start:], dtype)
            multiply_into(total, (b"C", readable(each, dtype)), block, rows, 1.0, 1.0)
    return _multiply((b"C", readable(t, dtype)), (b"N", total), total.shape, t.shape[0])


@kernel(
    "project_rows",
    shape=lambda v, t, tiles, skip, width: (tiles[0][0] - panel_edges(tiles[0][1], skip, width)[0], t[0]),
    dtype=lambda v, t, tiles, *_: promote(*v, *tiles),
    flops=lambda v, t, tiles, *_: _product_flops(v, t, tiles[0][0]),
)
def project_rows(v: list[Matrix], t: Matrix, tiles: list[Matrix], skip: int, width: int) -> Matrix:
    """`S·V·T` for a row of tiles `S`, without the rows of its first `skip` panels.

    >>> project_rows([np.array([[1.0]])], np.array([[2.0]]), [np.array([[3.0]])], 0, 1)
    array([[6.]])
    """
    dtype = blas_dtype(*v, t, *tiles)
    # Panels are counted in the columns of the first tile, which holds the diagonal if any is skipped.
    start = panel_edges(tiles[0].shape[1], skip, width)[0] if skip else 0
    total = np.zeros((tiles[0].shape[0] - start, t.shape[0]), dtype, order="F")
    if not total.size:
        return total
    for each, tile in zip(v, tiles, strict=True):
        rows = each.shape[0]
        if rows:
            block = operand(tile[start:, tile.shape[1] - rows :], dtype)
            multiply_into(total, block, (b"N", readable(each, dtype)), rows, 1.0, 1.0)
    return _multiply((b"N", total), (b"N", readable(t, dtype)), total.shape, t.shape[0])


def _multiply(left: tuple[bytes, Matrix], right: tuple[bytes, Matrix], shape: Shape, inner: int) -> Matrix:
    result = np.empty(shape, left[1].dtype, order="F")
    if result.size:
        multiply_into(result, left, right, inner, 1.0, 0.0)
    return result


@kernel(
    "subtract_product",
    shape=lambda s, a, b, **_: s,
    dtype=promote,
    flops=lambda s, a, b, **_: 2.0 * a[0] * a[1] * max(b),
    inplace=0,
)
def subtract_product(
    s: Matrix, a: Matrix, b: Matrix, *, adjoint: bool = False, overwrite: Sequence[int] = ()
) -> Matrix:
    """`S − A·B` (`adjoint`: `S − A·Bᴴ`) in the lower right corner of `S` that the product covers.

    >>> subtract_product(np.ones((2, 2)), np.array([[2.0]]), np.array([[3.0]]))
    array([[ 1.,  1.],
           [ 1., -5.]])
    """
    rows, inner = a.shape
    columns = b.shape[0] if adjoint else b.shape[1]
    if inner != b.shape[1 if adjoint else 0] or rows > s.shape[0] or columns > s.shape[1]:
        raise misfit(
            "subtract_product", f"factors of a corner of S, got S {extent(s)}, {extent(a)} and {extent(b)}"
        )
    dtype = blas_dtype(s, a, b)
    result = owned(s, dtype, 0 in overwrite)
    if rows and columns and inner:
        right = adjoint_operand(b, dtype) if adjoint else operand(b, dtype)
        corner = result[s.shape[0] - rows :, s.shape[1] - columns :]
        multiply_into(corner, operand(a, dtype), right, inner, -1.0, 1.0)
    return result


@kernel(
    "hermitian_product",
    outputs=2,
    shape=lambda before, below, v: (v[len(before)], (v[0][1], v[0][1])),
    dtype=lambda before, below, v: (promote(*below, *v),) * 2,
    flops=lambda before, below, v: _product_flops(v, (v[0][1], v[0][1]), v[len(before)][0]),
)
def hermitian_product(before: list[Matrix], below: list[Matrix], v: list[Matrix]) -> tuple[Matrix, Matrix]:
    """A row of tiles of `S·V` for a Hermitian `S`, lower half stored, and its part of `Vᴴ·S·V`.

    `before` are the tiles of the row up to the diagonal, `below` those of the column from the
    diagonal down (the diagonal tile is whole).

    >>> hermitian_product([np.array([[2.0]])], [np.array([[1.0]])], [np.array([[1.0]]), np.array([[3.0]])])
    (array([[5.]]), array([[15.]]))
    """
    dtype = blas_dtype(*before, *below, *v)
    own = readable(v[len(before)], dtype)
    total = np.zeros(own.shape, dtype, order="F")
    rows, k = own.shape
    if not total.size:
        return total, np.zeros((k, k), dtype, order="F")
    for position, each in enumerate(v):
        inner = each.shape[0]
        if not inner:
            continue
        if position < len(before):
            tile = before[position]
            block = operand(tile[tile.shape[0] - rows :, tile.shape[1] - inner :], dtype)
        else:
            tile = below[position - len(before)]
            block = adjoint_operand(tile[tile.shape[0] - inner :, tile.shape[1] - rows :], dtype)
        multiply_into(total, block, (b"N", readable(each, dtype)), inner, 1.0, 1.0)
    return total, _multiply((b"C", own), (b"N", total), (k, k), rows)


@kernel("half_inner", shape=lambda parts, t: t, dtype=lambda parts, t: promote(*parts, t))
def half_inner(parts: list[Matrix], t: Matrix) -> Matrix:
    """`½·Tᴴ·P·T`, where `P` is the sum of the parts.

    >>> half_inner([np.array([[3.0]]), np.array([[1.0]])], np.array([[2.0]]))
    array([[8.]])
    """
    total = sum(parts[1:], parts[0])
    return np.asfortranarray(0.5 * (t.conj().T @ total @ t))


@kernel(
    "rank_two_factors",
    outputs=2,
    shape=lambda v, *_: ((v[0], 2 * v[1]),) * 2,
    dtype=lambda *dtypes: (promote(*dtypes),) * 2,
    flops=lambda v, *_: 4.0 * v[0] * v[1] * v[1],
)
def rank_two_factors(v: Matrix, y: Matrix, t: Matrix, c: Matrix) -> tuple[Matrix, Matrix]:
    """`[V W]` and `[W V]` with `W = Y·T − V·C`: `S − V·Wᴴ − W·Vᴴ` is one product of such factors.

    They share memory: both are parts of `[V W V]`.

    >>> one = np.array([[1.0]])
    >>> rank_two_factors(one, 5 * one, one, 2 * one)
    (array([[1., 3.]]), array([[3., 1.]]))
    """
    dtype = blas_dtype(v, y, t, c)
    rows, k = v.shape
    both = np.empty((rows, 3 * k), dtype, order="F")
    both[:, :k] = both[:, 2 * k :] = v
    if both.size:
        w = both[:, k : 2 * k]
        multiply_into(w, operand(y, dtype), operand(t, dtype), k, 1.0, 0.0)
        multiply_into(w, (b"N", both[:, :k]), operand(c, dtype), k, -1.0, 1.0)
    return both[:, : 2 * k], both[:, k:]


@kernel(
    "apply_panel",
    shape=lambda v, t, s: s,
    dtype=lambda v, t, s: promote(*v, t, s),
    flops=lambda v, t, s: 4.0 * sum(each[0] * each[1] for each in v) * s[0],
    inplace=2,
)
def apply_panel(v: list[Matrix], t: Matrix, s: Matrix, *, overwrite: Sequence[int] = ()) -> Matrix:
    """`(I − V·T·Vᴴ)·Sᵀ`, transposed, where `V` covers the last columns of `S`.

    >>> apply_panel([np.array([[1.0]])], np.array([[2.0]]), np.array([[3.0, 4.0]]))
    array([[ 3., -4.]])
    """
    dtype = blas_dtype(*v, t, s)
    result = owned(s, dtype, 2 in overwrite)
    rows, k = result.shape[0], t.shape[0]
    if not (k and rows):
        return result
    at = result.shape[1] - sum(each.shape[0] for each in v)
    if at < 0:
        raise misfit("apply_panel", f"reflectors of at most {result.shape[1]} rows, got {-at} more")
    blocks: list[tuple[Matrix, Matrix]] = []
    for each in v:
        height = each.shape[0]
        if height:
            blocks.append((readable(each, dtype), result[:, at : at + height]))
            at += height
    total = np.zeros((rows, k), dtype, order="F")
    for each, block in blocks:
        multiply_into(total, (b"N", block), conjugate_operand(each, dtype), each.shape[0], 1.0, 1.0)
    weights = _multiply((b"N", total), (b"T", readable(t, dtype)), total.shape, k)
    for each, block in blocks:
        multiply_into(block, (b"N", weights), (b"T", each), k, -1.0, 1.0)
    return result
