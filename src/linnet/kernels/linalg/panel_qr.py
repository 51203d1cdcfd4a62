"""Kernels of QR by panels: a column of tiles is factorised in one piece, and its reflectors kept in tiles.

The `Q` of a panel is `I − V·T·Vᴴ`. `V` is stored as it is meant, with ones on its diagonal and
zeros above, so that to apply `Q` is nothing but products of tiles:

    W = −Tᴴ·Σ V[m]ᴴ·C[m]        for a column of tiles
    C[m] + V[m]·W               for each of its tiles

Kernels on pairs of tiles (`tpmqrt`) apply as many blocks of `T` as there are tiles in the column,
and multiply matrices only `ib` wide: measured on tiles of 256, 31 GFLOP/s a core against 40 here.
Inside a panel LAPACK's recursive `geqrt` does the blocking. A column of tiles is one task: it is
read and written once for each panel, and `W` never leaves the task.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.kernels.linalg.dense_factors import extent, misfit
from linnet.kernels.linalg.qr import Shape, factor, geqrt_flops, upper
from linnet.kernels.linalg.tile_products import adjoining, gemm, gemm_add
from linnet.kernels.registry import kernel
from linnet.machine.fortran import (
    Matrix,
    address,
    adjoint_operand,
    blas_dtype,
    by_columns,
    integer,
    is_fortran,
    leading,
    multiply_into,
    operand,
    promote,
    readable,
    routine,
    scalar,
    stacked,
)


def _rows(tiles: list[Shape]) -> int:
    return sum(tile[0] for tile in tiles)


def _panel_shapes(tiles: list[Shape]) -> tuple[list[Shape], Shape, Shape]:
    columns = tiles[0][1]
    k = min(_rows(tiles), columns)
    return [(tile[0], k) for tile in tiles], (k, k), (k, columns)


@kernel(
    "panel_qr",
    outputs=3,
    shape=_panel_shapes,
    dtype=lambda tiles: (promote(*tiles),) * 3,
    flops=lambda tiles: geqrt_flops((_rows(tiles), tiles[0][1])),
)
def panel_qr(tiles: list[Matrix]) -> tuple[list[Matrix], Matrix, Matrix]:
    """QR of a column of tiles: `V` in tiles, `T` and `R`. `Q = I − V·T·Vᴴ`.

    >>> (v0, v1), t, r = panel_qr([np.array([[3.0]]), np.array([[4.0]])])
    >>> bool(np.allclose(abs(r), 5.0)), v0
    (True, array([[1.]]))
    """
    v, t, r, edges = _factored(tiles)
    # By rows, so that what is multiplied by V lies like the matrix of the user; but the adjoint of
    # a complex tile is only to be had by columns.
    order = "C" if v.dtype.kind == "f" else "F"
    return [np.array(v[start:stop], order=order) for start, stop in itertools.pairwise(edges)], t, r


def _factored(tiles: list[Matrix]) -> tuple[Matrix, Matrix, Matrix, list[int]]:
    """QR of a column of tiles: `V` by columns, in one piece; `T`, `R`, and where tiles begin and end."""
    columns = tiles[0].shape[1]
    if any(tile.shape[1] != columns for tile in tiles):
        raise misfit("panel_qr", f"tiles of one width, got {', '.join(map(extent, tiles))}")
    edges = np.cumsum([0, *(tile.shape[0] for tile in tiles)]).tolist()
    panel = stacked(tiles, blas_dtype(*tiles))
    t = factor(panel, max(1, columns))
    k = t.shape[1]
    t = t[:k]
    r = upper(panel, k)
    head = panel[:k, :k]
    head[np.triu_indices(k, 1)] = 0
    np.fill_diagonal(head, 1)
    return panel[:, :k], t, r, edges


@kernel(
    "reflect",
    outputs=2,
    shape=lambda v, t, c, **_: (c[0], list(c[1:])),
    dtype=lambda v, t, c, **_: (promote(*v, t, *c),) * 2,
    flops=lambda v, t, c, **_: 2.0 * c[0][1] * t[0] * (2 * _rows(v) + t[0]),
    inplace=2,
)
def reflect(
    v: list[Matrix], t: Matrix, c: list[Matrix], *, adjoint: bool = True, overwrite: Sequence[int] = ()
) -> tuple[Matrix, list[Matrix]]:
    """`Qᴴ·C` for a column of tiles (`Q·C` with `adjoint=False`): its first tile, and the others.

    >>> (v0, v1), t, r = panel_qr([np.array([[3.0]]), np.array([[4.0]])])
    >>> first, (second,) = reflect([v0, v1], t, [np.array([[3.0]]), np.array([[4.0]])])
    >>> bool(np.allclose(first, r)), bool(np.allclose(second, 0))
    (True, True)
    """
    w = _projected(v, t, c, adjoint)
    first, *others = _added(c, v, w, 2 in overwrite)
    return first, others


@kernel(
    "reflect_lower",
    outputs=2,
    shape=lambda v, t, c: ((v[0][0], c[0][1] if c else 0), list(c)),
    dtype=lambda v, t, c: (promote(*v, t, *c),) * 2,
    flops=lambda v, t, c: 2.0 * (c[0][1] if c else 0) * t[0] * (2 * _rows(v) + t[0]),
    inplace=2,
)
def reflect_lower(
    v: list[Matrix], t: Matrix, c: list[Matrix], *, overwrite: Sequence[int] = ()
) -> tuple[Matrix, list[Matrix]]:
    """`Q·C` for a column whose first tile is zero and not given: its first tile, and the others.

    >>> v, t, r = panel_qr([np.array([[3.0]]), np.array([[4.0]])])
    >>> first, (second,) = reflect_lower(v, t, [np.array([[1.0]])])
    >>> bool(np.allclose(abs(np.vstack([first, second])), [[0.8], [0.6]]))
    True
    """
    w = _projected(v[1:], t, c, adjoint=False)
    return gemm.function(v[0], w), _added(c, v[1:], w, 2 in overwrite)


@kernel(
    "reflect_unit",
    shape=lambda v, t: [(tile[0], t[0]) for tile in v],
    dtype=lambda v, t: promote(*v, t),
    flops=lambda v, t: 2.0 * t[0] ** 2 * (_rows(v) + t[0]),
)
def reflect_unit(v: list[Matrix], t: Matrix) -> list[Matrix]:
    """The first columns of `Q`, as many as the panel has.

    >>> v, t, r = panel_qr([np.array([[3.0]]), np.array([[4.0]])])
    >>> bool(np.allclose(np.vstack(reflect_unit(v, t)) @ r, [[3.0], [4.0]]))
    True
    """
    k = t.shape[0]
    if not (v and v[0].shape[1] == k <= v[0].shape[0]):
        raise misfit(
            "reflect_unit", f"the tiles of V and its T, got {', '.join(map(extent, v))} and {extent(t)}"
        )
    w = _unit_weights(v[0], t)
    made = [gemm.function(tile, w) for tile in v]
    made[0][np.diag_indices(k)] += 1
    return made


def _unit_weights(v: Matrix, t: Matrix) -> Matrix:
    """`W = −T·V₀ᴴ`, with the square `V₀` on top of `V`: the first columns of `Q` are those of `I + V·W`."""
    k = t.shape[0]
    dtype = blas_dtype(v, t)
    w = np.empty((k, k), dtype, order="F")
    multiply_into(w, operand(t, dtype), adjoint_operand(v[:k], dtype), k, -1.0, 0.0)
    return w


# ---- the same by columns, where all tiles of one lie together


def slab(tiles: list[Matrix], dtype: np.dtype[Any], mine: bool) -> Matrix:
    """A column of tiles in one piece and by columns: as it lies, if it is `mine` and lies so, else a copy.

    >>> whole = np.zeros((4, 2), order="F")
    >>> slab([whole[:3], whole[3:]], whole.dtype, mine=True).base is not None
    True
    """
    lying = adjoining([[tile] for tile in tiles]) if mine else None
    if lying is not None and lying.dtype == dtype and lying.flags.writeable and is_fortran(lying):
        return lying
    return stacked(tiles, dtype)


def _slab_shapes(tiles: list[Shape]) -> tuple[Shape, Shape, Shape, tuple[int]]:
    rows, columns = _rows(tiles), tiles[0][1]
    k = min(rows, columns)
    return (rows, k), (k, k), (k, columns), (len(tiles) + 1,)


@kernel(
    "slab_qr",
    outputs=4,
    shape=_slab_shapes,
    dtype=lambda tiles: (promote(*tiles),) * 3 + (np.dtype(np.int64),),
    flops=lambda tiles: geqrt_flops((_rows(tiles), tiles[0][1])),
)
def slab_qr(tiles: list[Matrix]) -> tuple[Matrix, Matrix, Matrix, NDArray[np.int64]]:
    """As `panel_qr`, with `V` in one piece; and where its tiles begin and end.

    >>> v, t, r, edges = slab_qr([np.array([[3.0]]), np.array([[4.0]])])
    >>> v.shape, edges
    ((2, 1), array([0, 1, 2]))
    """
    v, t, r, edges = _factored(tiles)
    return v, t, r, np.array(edges)


@kernel(
    "reflect_slab",
    outputs=2,
    shape=lambda v, t, c: (c[0], list(c[1:])),
    dtype=lambda v, t, c: (promote(v, t, *c),) * 2,
    flops=lambda v, t, c: 2.0 * c[0][1] * t[0] * (2 * v[0] + t[0]),
    inplace=2,
)
def reflect_slab(
    v: Matrix, t: Matrix, c: list[Matrix], *, overwrite: Sequence[int] = ()
) -> tuple[Matrix, list[Matrix]]:
    """As `reflect`, with `V` in one piece; the tiles of the result lie together.

    >>> v, t, r, _ = slab_qr([np.array([[3.0]]), np.array([[4.0]])])
    >>> first, (second,) = reflect_slab(v, t, [np.array([[3.0]]), np.array([[4.0]])])
    >>> bool(np.allclose(first, r)), bool(np.allclose(second, 0))
    (True, True)
    """
    whole = slab(c, blas_dtype(v, t, *c), mine=2 in overwrite)
    _reflect(v, whole, _projected([v], t, [whole], adjoint=True))
    first, *others = np.split(whole, np.cumsum([tile.shape[0] for tile in c[:-1]]))
    return first, others


@kernel(
    "column_of_q",
    flops=lambda v, t, edges: 4.0 * sum(each[0] * each[1] for each in v) * t[-1][0],
    into=True,
)
def column_of_q(
    v: list[Matrix], t: list[Matrix], edges: NDArray[np.int64], *, into: list[Matrix] | None = None
) -> list[Matrix]:
    """The tiles of `Q` in the column of the last panel, from the reflectors of that and all before it.

    >>> v, t, r, edges = slab_qr([np.array([[3.0]]), np.array([[4.0]])])
    >>> bool(np.allclose(np.vstack(column_of_q([v], [t], edges)) @ r, [[3.0], [4.0]]))
    True
    """
    dtype = blas_dtype(*v, *t)
    m, columns = v[0].shape[0], t[-1].shape[0]
    q = by_columns(m, columns, dtype)
    own = q[m - v[-1].shape[0] :]
    multiply_into(own, operand(v[-1], dtype), (b"N", _unit_weights(v[-1], t[-1])), columns, 1.0, 0.0)
    own[np.diag_indices(columns)] += 1
    for each, triangle in zip(v[-2::-1], t[-2::-1], strict=True):
        # The rows that a panel has on top are still zero, and not yet written.
        width = triangle.shape[0]
        top = m - each.shape[0]
        below = q[top + width :]
        w = _projected([each[width:]], triangle, [below], adjoint=False)
        multiply_into(q[top : top + width], operand(each[:width], dtype), (b"N", w), width, 1.0, 0.0)
        _reflect(each[width:], below, w)
    tiles = np.split(q, edges[1:-1])
    if into is None:
        return [tile.copy(order="F") for tile in tiles]
    for place, tile in zip(into, tiles, strict=True):
        place[...] = tile
    return into


def _reflect(v: Matrix, c: Matrix, w: Matrix) -> None:
    """Overwrite `C`, by columns, with `C + V·W`."""
    if c.size:
        multiply_into(c, operand(v, c.dtype), operand(w, c.dtype), v.shape[1], 1.0, 1.0)


def _projected(v: list[Matrix], t: Matrix, c: list[Matrix], adjoint: bool) -> Matrix:
    """`W = −Tᴴ·Σ Vᴴ·C` over the tiles of a column: `C + V·W` is `Qᴴ·C`; with T for Tᴴ it is `Q·C`."""
    columns = c[0].shape[1] if c else 0
    k = t.shape[0]
    fits = len(v) == len(c) > 0 and t.shape == (k, k)
    if not fits or any(
        x.shape != (y.shape[0], k) or y.shape[1] != columns for x, y in zip(v, c, strict=True)
    ):
        raise misfit(
            "reflect",
            f"as many tiles of V as of C, of equal heights; got V {', '.join(map(extent, v))}, "
            f"T {extent(t)} and C {', '.join(map(extent, c))}",
        )
    dtype = blas_dtype(*v, t, *c)
    w = np.zeros((k, columns), dtype, order="F")
    for x, y in zip(v, c, strict=True):
        multiply_into(w, adjoint_operand(x, dtype), operand(y, dtype), x.shape[0], 1.0, 1.0)
    if not w.size:
        return w
    triangle = readable(t, dtype)
    routine("trmm", dtype.char)(
        b"L", b"U", b"C" if adjoint else b"N", b"N", integer(k), integer(columns),
        scalar(-1.0, dtype.char), address(triangle), leading(triangle), address(w), leading(w),
    )  # fmt: skip
    return w


def _added(c: list[Matrix], v: list[Matrix], w: Matrix, in_place: bool) -> list[Matrix]:
    """`C + V·W`, tile by tile."""
    given = (0,) if in_place else ()
    return [gemm_add.function(y, x, w, overwrite=given) for x, y in zip(v, c, strict=True)]
