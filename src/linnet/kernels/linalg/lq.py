"""Kernels of tiled LQ: those of QR, on conjugate transposes.

`A = L·Qᴴ` is the QR factorisation of `Aᴴ`, so `V` and `T` are those of `geqrt` and `tpqrt`
on the transposed tile, and `Q` is applied from the right.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linnet.kernels.linalg.dense_factors import extent, misfit
from linnet.kernels.linalg.qr import (
    Shape,
    apply,
    apply_pair,
    factor,
    factor_pair,
    geqrt_flops,
    geqrt_shapes,
    tpqrt_flops,
    tpqrt_shapes,
    upper,
)
from linnet.kernels.registry import kernel
from linnet.machine.fortran import Matrix, blas_dtype, owned, promote, readable


def _adjoint(a: Matrix) -> Matrix:
    """The conjugate transpose as a fresh Fortran-ordered matrix."""
    return np.array(a.conj().T if a.dtype.kind == "c" else a.T, dtype=blas_dtype(a), order="F")


def _swap(shape: Shape) -> Shape:
    return shape[1], shape[0]


def _gelqt_shapes(a: Shape, ib: int = 32) -> tuple[Shape, Shape, Shape]:
    v, t, r = geqrt_shapes(_swap(a), ib)
    return v, t, _swap(r)


def _tplqt_shapes(lower: Shape, b: Shape, ib: int = 32) -> tuple[Shape, Shape, Shape]:
    v, t, r = tpqrt_shapes(_swap(lower), _swap(b), ib)
    return v, t, _swap(r)


@kernel(
    "gelqt",
    outputs=3,
    shape=_gelqt_shapes,
    dtype=lambda a, *_: (promote(a),) * 3,
    flops=lambda a, ib=32: geqrt_flops(_swap(a), ib),
)
def gelqt(a: Matrix, ib: int = 32) -> tuple[Matrix, Matrix, Matrix]:
    """`A = L·Qᴴ`: the reflectors `V` and `T` of `Q`, and the lower triangular `L` of min(m, n) columns.

    >>> v, t, l = gelqt(np.array([[3.0, 4.0]]))
    >>> bool(np.allclose(abs(l), [[5.0]]))
    True
    """
    packed = _adjoint(a)
    t = factor(packed, ib)
    k = t.shape[1]
    return packed[:, :k] if k < packed.shape[1] else packed, t, _adjoint(upper(packed, k))


@kernel(
    "gemlqt",
    shape=lambda v, t, c: c,
    dtype=promote,
    flops=lambda v, t, c: 4.0 * c[0] * c[1] * v[1] - 2.0 * c[0] * v[1] ** 2,
    inplace=2,
)
def gemlqt(v: Matrix, t: Matrix, c: Matrix, *, overwrite: Sequence[int] = ()) -> Matrix:
    """`C·Q` for the `Q` of `gelqt`.

    >>> a = np.array([[3.0, 4.0]])
    >>> v, t, l = gelqt(a)
    >>> bool(np.allclose(gemlqt(v, t, a), [[l[0, 0], 0.0]]))
    True
    """
    if not (v.shape[0] == c.shape[1] and t.shape[1] == v.shape[1]):
        raise misfit(
            "gemlqt", f"as many columns as V has rows, got V {extent(v)}, T {extent(t)} and C {extent(c)}"
        )
    dtype = blas_dtype(v, t, c)
    result = owned(c, dtype, 2 in overwrite)
    apply(b"R", False, readable(v, dtype), readable(t, dtype), result)
    return result


@kernel(
    "tplqt",
    outputs=3,
    shape=_tplqt_shapes,
    dtype=lambda lower, b, *_: (promote(lower, b),) * 3,
    flops=lambda lower, b, ib=32: tpqrt_flops(_swap(lower), _swap(b), ib),
)
def tplqt(lower: Matrix, b: Matrix, ib: int = 32) -> tuple[Matrix, Matrix, Matrix]:
    """LQ of a triangle `L` left of a tile `B`: `[L B] = [L' 0]·Qᴴ`; returns `V`, `T`, `L'`.

    >>> v, t, l = tplqt(np.array([[3.0]]), np.array([[4.0]]))
    >>> bool(np.allclose(abs(l), 5.0))
    True
    """
    if not (lower.shape[1] == lower.shape[0] == b.shape[0]):
        raise misfit(
            "tplqt",
            f"a square triangle beside a tile of as many rows, got {extent(lower)} beside {extent(b)}",
        )
    dtype = blas_dtype(lower, b)
    r = owned(_adjoint(lower), dtype, True)
    v = owned(_adjoint(b), dtype, True)
    t = factor_pair(r, v, ib, triangular=False)
    return v, t, _adjoint(r)


@kernel(
    "tpmlqt",
    outputs=2,
    shape=lambda v, t, c0, c1: (c0, c1),
    dtype=lambda *dtypes: (promote(*dtypes),) * 2,
    flops=lambda v, t, c0, c1: 4.0 * v[0] * v[1] * c1[0],
    inplace=(2, 3),
)
def tpmlqt(
    v: Matrix, t: Matrix, c0: Matrix, c1: Matrix, *, overwrite: Sequence[int] = ()
) -> tuple[Matrix, Matrix]:
    """`[C0 C1]·Q` for the `Q` of `tplqt`, as a pair of tiles.

    >>> v, t, l = tplqt(np.array([[3.0]]), np.array([[4.0]]))
    >>> c0, c1 = tpmlqt(v, t, np.array([[3.0]]), np.array([[4.0]]))
    >>> bool(np.allclose(c0, l) and np.allclose(c1, 0.0))
    True
    """
    if not (
        v.shape[1] == t.shape[1] == c0.shape[1] and v.shape[0] == c1.shape[1] and c0.shape[0] == c1.shape[0]
    ):
        raise misfit(
            "tpmlqt",
            f"tiles for [C0 C1]·Q, got V {extent(v)}, T {extent(t)}, C0 {extent(c0)} and C1 {extent(c1)}",
        )
    dtype = blas_dtype(v, t, c0, c1)
    first = owned(c0, dtype, 2 in overwrite)
    second = owned(c1, dtype, 3 in overwrite)
    apply_pair(b"R", False, readable(v, dtype), readable(t, dtype), first, second, triangular=False)
    return first, second
