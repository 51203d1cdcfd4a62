"""Products of tiles: one tile of a product, or several at once, from ranges of tiles of the factors."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from linnet.kernels.linalg.dense_factors import Shape, extent, misfit
from linnet.kernels.registry import kernel
from linnet.machine.fortran import (
    Matrix,
    address,
    blas_dtype,
    is_fortran,
    multiply_into,
    operand,
    placed,
    promote,
    workspace,
)


@kernel(
    "gemm",
    shape=lambda a, b: (rows_of(a), columns_of(b)),
    dtype=lambda a, b: promote(*flat(a), *flat(b)),
    flops=lambda a, b: 2.0 * sum(x[0] * x[1] * y[1] for x, y in zip(pairs(a), pairs(b), strict=True)),
    into=True,
)
def gemm(a: Matrix | list[Matrix], b: Matrix | list[Matrix], *, into: Matrix | None = None) -> Matrix:
    """`A·B`; for two ranges of tiles, such as `A[i, 0:K]` and `B[0:K, j]`, `Σ A[i, k]·B[k, j]`.

    The result goes `into` an array, if that is of its form and lies as the factors do.

    >>> gemm([np.array([[1.0]]), np.array([[2.0]])], [np.array([[3.0]]), np.array([[4.0]])])
    array([[11.]])
    """
    left = a if isinstance(a, list) else [a]
    right = b if isinstance(b, list) else [b]
    if not (len(left) == len(right) > 0):
        raise misfit(
            "gemm", f"as many tiles left as right, and at least one; got {len(left)} and {len(right)}"
        )
    dtype = blas_dtype(*left, *right)
    by_columns = is_fortran(left[0]) and is_fortran(right[0])
    shape = (left[0].shape[0], right[0].shape[1])
    result = placed(shape, dtype, into, by_columns=by_columns)
    for position, (x, y) in enumerate(zip(left, right, strict=True)):
        if not (x.shape[1] == y.shape[0] and result.shape == (x.shape[0], y.shape[1])):
            raise misfit("gemm", f"tiles for a product of {extent(result)}, got {extent(x)} and {extent(y)}")
        beta = 1.0 if position else 0.0
        _accumulate(result, x, y, beta)
    return result


def _block_shapes(a: Any, b: Any, turned: Any = ()) -> list[list[Shape]]:
    rows, columns = _as_rows(a, 0 in turned), _as_rows(b, 1 in turned)
    return [[(row[0][0], each[1]) for each in columns[0]] for row in rows]


def _as_rows(shapes: list[list[Shape]], turned: bool) -> list[list[Shape]]:
    """The shapes of tiles row by row, of a matrix that is perhaps given by its transpose."""
    return [[(n, m) for m, n in column] for column in zip(*shapes, strict=True)] if turned else shapes


def _block_flops(a: Any, b: Any, turned: Any = ()) -> float:
    rows, columns = _as_rows(a, 0 in turned), _as_rows(b, 1 in turned)
    height, width = sum(row[0][0] for row in rows), sum(each[1] for each in columns[0])
    return 2.0 * height * width * sum(each[1] for each in rows[0])


@kernel(
    "gemm_block",
    shape=_block_shapes,
    dtype=lambda a, b, **_: promote(*itertools.chain(*a, *b)),
    flops=_block_flops,
    into=True,
)
def gemm_block(
    a: list[list[Matrix]],
    b: list[list[Matrix]],
    *,
    turned: Sequence[int] = (),
    into: list[list[Matrix]] | None = None,
) -> list[list[Matrix]]:
    """Neighbouring tiles of `A·B`, from `A[i:l, 0:K]` and `B[0:K, j:m]`, by one product.

    BLAS copies both factors into an order of its own at every call. The larger a result, the less
    there is to copy for what is computed. `turned` are the factors (0, 1) that are given by their transposes.

    >>> gemm_block([[np.array([[2.0]])]], [[np.array([[3.0]]), np.array([[4.0]])]])
    [[array([[6.]]), array([[8.]])]]
    """
    place = None if into is None else adjoining(into)
    left = joined(a).T if 0 in turned else joined(a)
    right = joined(b).T if 1 in turned else joined(b)
    whole = gemm.function(left, right, into=place)
    if into is not None and whole is place:
        return into
    left_shapes, right_shapes = ([[each.shape for each in row] for row in tiles] for tiles in (a, b))
    shapes = _block_shapes(left_shapes, right_shapes, turned)
    columns = np.cumsum([shape[1] for shape in shapes[0]])[:-1]
    rows = np.cumsum([row[0][0] for row in shapes])[:-1]
    return [
        [each.copy(order="K") for each in np.split(part, columns, axis=1)] for part in np.split(whole, rows)
    ]


@kernel(
    "gemm_add",
    shape=lambda c, a, b: c,
    dtype=promote,
    flops=lambda c, a, b: 2.0 * c[0] * c[1] * a[1],
    inplace=0,
)
def gemm_add(c: Matrix, a: Matrix, b: Matrix, *, overwrite: Sequence[int] = ()) -> Matrix:
    """`C + A·B`.

    >>> gemm_add(np.array([[1.0]]), np.array([[2.0]]), np.array([[3.0]]))
    array([[7.]])
    """
    if not (c.shape == (a.shape[0], b.shape[1]) and a.shape[1] == b.shape[0]):
        raise misfit("gemm_add", f"tiles for C + A·B, got {extent(c)}, {extent(a)} and {extent(b)}")
    dtype = blas_dtype(c, a, b)
    result = workspace(c, dtype, 0 in overwrite)
    _accumulate(result, a, b, 1.0)
    return result


def joined(tiles: list[list[Matrix]]) -> Matrix:
    """Neighbouring tiles as one matrix that lies as the first does; a view, where they lie so already.

    >>> a = np.arange(6.0).reshape(2, 3)
    >>> joined([[a[:1, :2], a[:1, 2:]], [a[1:, :2], a[1:, 2:]]]).base is not None
    True
    """
    view = adjoining(tiles)
    if view is not None:
        return view
    first = tiles[0][0]
    shape = (sum(row[0].shape[0] for row in tiles), sum(each.shape[1] for each in tiles[0]))
    whole = np.empty(shape, np.result_type(*itertools.chain(*tiles)), order="F" if is_fortran(first) else "C")
    low = 0
    for row in tiles:
        left = 0
        for each in row:
            whole[low : low + each.shape[0], left : left + each.shape[1]] = each
            left += each.shape[1]
        low += row[0].shape[0]
    return whole


def adjoining(tiles: list[list[Matrix]]) -> Matrix | None:
    """Tiles that lie beside one another in memory as one view of it; None if they do not."""
    first = tiles[0][0]
    down, right = first.strides
    start = address(first)
    for row in tiles:
        at = start
        for each in row:
            if each.strides != first.strides or each.dtype != first.dtype or address(each) != at:
                return None
            at += right * each.shape[1]
        start += down * row[0].shape[0]
    shape = (sum(row[0].shape[0] for row in tiles), sum(each.shape[1] for each in tiles[0]))
    return as_strided(first, shape, first.strides, writeable=first.flags.writeable)


def _accumulate(result: Matrix, a: Matrix, b: Matrix, beta: float) -> None:
    """`result ← A·B + beta·result`, in whichever order `result` lies."""
    dtype = result.dtype
    if is_fortran(result):
        multiply_into(result, operand(a, dtype), operand(b, dtype), a.shape[1], 1.0, beta)
    else:
        multiply_into(result.T, operand(b.T, dtype), operand(a.T, dtype), a.shape[1], 1.0, beta)


def flat(item: Any) -> list[Any]:
    """What a range operand stands for in a declaration, as a list."""
    return item if isinstance(item, list) else [item]


def pairs(item: Any) -> list[Shape]:
    """The shapes behind an operand: several for a range of tiles."""
    return flat(item)


def rows_of(item: Any) -> int:
    """Rows of the first tile of an operand."""
    return flat(item)[0][0]


def columns_of(item: Any) -> int:
    """Columns of the first tile of an operand."""
    return flat(item)[0][1]
