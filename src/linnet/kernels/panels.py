"""Kernels of QR by panels: a column of tiles is factorised in one piece, and its reflectors kept in tiles.

The `Q` of a panel is `I − V·T·Vᴴ`. `V` is stored as it is meant, with ones on its diagonal and
zeros above, so that to apply `Q` is nothing but products of tiles:

    W = −Tᴴ·Σ V[m]ᴴ·C[m]        one `project` for a column of tiles
    C[m] + V[m]·W               one `gemm_add` for each tile

Kernels on pairs of tiles (`tpmqrt`) apply as many blocks of `T` as there are tiles in the column,
and multiply matrices only `ib` wide: measured on tiles of 256, 31 GFLOP/s a core against 40 here.
Inside a panel LAPACK's recursive `geqrt` does the blocking.
"""

from __future__ import annotations

import itertools

import numpy as np

from linnet.kernels.dense import extent, misfit, multiply_into
from linnet.kernels.fortran import (
    Matrix,
    address,
    adjoint_operand,
    blas_dtype,
    integer,
    is_fortran,
    leading,
    operand,
    promote,
    readable,
    routine,
    scalar,
)
from linnet.kernels.qr import Shape, factor, geqrt_flops, upper
from linnet.kernels.registry import kernel


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
    columns = tiles[0].shape[1]
    if any(tile.shape[1] != columns for tile in tiles):
        raise misfit("panel_qr", f"tiles of one width, got {', '.join(map(extent, tiles))}")
    edges = np.cumsum([0, *(tile.shape[0] for tile in tiles)]).tolist()
    panel = np.empty((edges[-1], columns), blas_dtype(*tiles), order="F")
    for tile, (start, stop) in zip(tiles, itertools.pairwise(edges), strict=True):
        panel[start:stop] = tile
    t = factor(panel, max(1, columns))
    k = t.shape[1]
    t = t[:k]
    r = upper(panel, k)
    head = panel[:k, :k]
    head[np.triu_indices(k, 1)] = 0
    np.fill_diagonal(head, 1)
    # By rows, so that what is multiplied by V lies like the matrix of the user; but the adjoint of
    # a complex tile is only to be had by columns.
    order = "C" if panel.dtype.kind == "f" else "F"
    v = [np.array(panel[start:stop, :k], order=order) for start, stop in itertools.pairwise(edges)]
    return v, t, r


@kernel(
    "project",
    shape=lambda v, t, c, **_: (t[0], c[0][1]),
    dtype=lambda v, t, c, **_: promote(*v, t, *c),
    flops=lambda v, t, c, **_: 2.0 * c[0][1] * t[0] * (_rows(v) + t[0]),
)
def project(v: list[Matrix], t: Matrix, c: list[Matrix], *, adjoint: bool = True) -> Matrix:
    """`W = −Tᴴ·Σ Vᴴ·C` over the tiles of a column: `C + V·W` is `Qᴴ·C`; `Q·C` with `adjoint=False`.

    >>> a = np.array([[3.0], [4.0]])
    >>> (v,), t, r = panel_qr([a])
    >>> bool(np.allclose(a + v @ project([v], t, [a]), [[r[0, 0]], [0.0]]))
    True
    """
    columns = c[0].shape[1] if c else 0
    k = t.shape[0]
    fits = len(v) == len(c) > 0 and t.shape == (k, k)
    if not fits or any(
        x.shape != (y.shape[0], k) or y.shape[1] != columns for x, y in zip(v, c, strict=True)
    ):
        raise misfit(
            "project",
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


@kernel(
    "first_reflection",
    shape=lambda v, t: t,
    dtype=promote,
    flops=lambda v, t: 2.0 * t[0] ** 3,
)
def first_reflection(v: Matrix, t: Matrix) -> Matrix:
    """`−T·Vᴴ·E`, where `E` holds the first columns of the identity: `E + V·W` begins a column of `Q`.

    >>> (v0, v1), t, r = panel_qr([np.array([[3.0]]), np.array([[4.0]])])
    >>> w = first_reflection(v0, t)
    >>> bool(np.allclose(abs(np.vstack([1 + v0 @ w, v1 @ w])), [[0.6], [0.8]]))
    True
    """
    k = t.shape[0]
    if not (v.shape[1] == k <= v.shape[0]):
        raise misfit("first_reflection", f"the first tile of V and its T, got {extent(v)} and {extent(t)}")
    dtype = blas_dtype(v, t)
    w = np.empty((k, k), dtype, order="F")
    multiply_into(w, operand(t, dtype), adjoint_operand(v[:k], dtype), k, -1.0, 0.0)
    return w


@kernel(
    "identity_add",
    shape=lambda v, w: (v[0], w[1]),
    dtype=promote,
    flops=lambda v, w: 2.0 * v[0] * v[1] * w[1],
)
def identity_add(v: Matrix, w: Matrix) -> Matrix:
    """`E + V·W`, where `E` holds the first columns of the identity.

    >>> identity_add(np.array([[2.0]]), np.array([[3.0]]))
    array([[7.]])
    """
    if v.shape[1] != w.shape[0]:
        raise misfit("identity_add", f"tiles for E + V·W, got {extent(v)} and {extent(w)}")
    dtype = blas_dtype(v, w)
    by_columns = is_fortran(v)
    result = np.zeros((v.shape[0], w.shape[1]), dtype, order="F" if by_columns else "C")
    np.fill_diagonal(result, 1)
    if by_columns:
        multiply_into(result, operand(v, dtype), operand(w, dtype), v.shape[1], 1.0, 1.0)
    else:
        multiply_into(result.T, operand(w.T, dtype), operand(v.T, dtype), v.shape[1], 1.0, 1.0)
    return result
