"""Kernels of tiled QR, on LAPACK's compact WY routines.

A factorised tile is `V` (the reflectors) and `T` (their triangular factors, one block of
`ib` columns beside the other), as LAPACK's `geqrt` and `tpqrt` leave them; `Q` is never
formed, only applied. `ib`, the inner block size, bounds the extra work of applying `T`:
32 to 64 is good for tiles of some hundreds. None of the kernels holds the interpreter lock.

    geqrt   V, T, R  of a tile                gemqrt   applies its Q to a tile
    tpqrt   V, T, R  of a triangle on a tile  tpmqrt   applies its Q to a pair of tiles
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from linnet.kernels.linalg.dense_factors import extent, misfit
from linnet.kernels.registry import kernel
from linnet.machine.fortran import (
    Matrix,
    address,
    blas_dtype,
    integer,
    leading,
    owned,
    promote,
    readable,
    routine,
)

Shape = tuple[int, int]


def _inner(ib: int, k: int) -> int:
    if not (ib >= 1):
        raise misfit("a QR kernel", f"an inner block size of at least 1, got {ib}")
    return max(1, min(ib, k))


def geqrt_shapes(a: Shape, ib: int = 32) -> tuple[Shape, Shape, Shape]:
    """Shapes of `V`, `T`, `R`."""
    k = min(a)
    return (a[0], k), (_inner(ib, k), k), (k, a[1])


def geqrt_flops(a: Shape, ib: int = 32) -> float:
    """Floating-point operations of a QR factorisation by reflectors."""
    m, n = a
    k = min(m, n)
    return 2.0 * m * n * k - (m + n) * k**2 + 2 * k**3 / 3


def tpqrt_shapes(r: Shape, b: Shape, ib: int = 32, **_: Any) -> tuple[Shape, Shape, Shape]:
    """Shapes of `V`, `T`, `R`."""
    return b, (_inner(ib, r[1]), r[1]), r


def tpqrt_flops(r: Shape, b: Shape, ib: int = 32, triangular: bool = False) -> float:
    """Floating-point operations of a triangle on a tile (`triangular`: on a triangle)."""
    return 2 * r[1] ** 3 / 3 if triangular else 2.0 * b[0] * r[1] ** 2


@kernel(
    "geqrt",
    outputs=3,
    shape=geqrt_shapes,
    dtype=lambda a, *_: (promote(a),) * 3,
    flops=geqrt_flops,
    inplace=0,
)
def geqrt(a: Matrix, ib: int = 32, *, overwrite: Sequence[int] = ()) -> tuple[Matrix, Matrix, Matrix]:
    """`A = Q·R`: the reflectors `V` and `T` of `Q`, and the upper triangular `R` of min(m, n) rows.

    Of `V`, only what lies below the diagonal is meant; its diagonal counts as ones.

    >>> v, t, r = geqrt(np.array([[3.0, 1.0], [4.0, 2.0]]))
    >>> bool(np.allclose(abs(r), [[5.0, 2.2], [0.0, 0.4]]))
    True
    """
    packed = owned(a, blas_dtype(a), 0 in overwrite)
    t = factor(packed, ib)
    k = t.shape[1]
    return packed[:, :k] if k < packed.shape[1] else packed, t, upper(packed, k)


def factor(packed: Matrix, ib: int) -> Matrix:
    """Overwrite a Fortran-ordered matrix with `R` and, below it, `V`; return `T`."""
    m, n = packed.shape
    k = min(m, n)
    block = _inner(ib, k)
    code = packed.dtype.char
    t = np.zeros((block, k), packed.dtype, order="F")
    if k:
        work = np.empty(block * n, packed.dtype)
        info = ctypes.c_int(0)
        routine("geqrt", code)(
            integer(m), integer(n), integer(block), address(packed), leading(packed),
            address(t), leading(t), address(work), ctypes.byref(info),
        )  # fmt: skip
        _valid("geqrt", info)
    return t


def upper(packed: Matrix, k: int) -> Matrix:
    """The upper triangle (trapezoid) of the first `k` rows, zeros below it."""
    n = packed.shape[1]
    r = np.zeros((k, n), packed.dtype, order="F")
    if k:
        routine("lacpy", packed.dtype.char)(
            b"U", integer(k), integer(n), address(packed), leading(packed), address(r), leading(r)
        )
    return r


@kernel(
    "gemqrt",
    shape=lambda v, t, c, **_: c,
    dtype=promote,
    flops=lambda v, t, c, **_: 4.0 * c[0] * c[1] * v[1] - 2.0 * c[1] * v[1] ** 2,
    inplace=2,
)
def gemqrt(v: Matrix, t: Matrix, c: Matrix, *, adjoint: bool = True, overwrite: Sequence[int] = ()) -> Matrix:
    """`Qᴴ·C` for the `Q` of `geqrt`; `Q·C` with `adjoint=False`.

    >>> a = np.array([[3.0, 1.0], [4.0, 2.0]])
    >>> v, t, r = geqrt(a)
    >>> bool(np.allclose(gemqrt(v, t, a), r))
    True
    """
    if not (v.shape[0] == c.shape[0] and t.shape[1] == v.shape[1]):
        raise misfit("gemqrt", f"as many rows as V has, got V {extent(v)}, T {extent(t)} and C {extent(c)}")
    dtype = blas_dtype(v, t, c)
    result = owned(c, dtype, 2 in overwrite)
    apply(b"L", adjoint, readable(v, dtype), readable(t, dtype), result)
    return result


def apply(side: bytes, adjoint: bool, v: Matrix, t: Matrix, c: Matrix) -> None:
    """Overwrite `C` with `Q·C` (side L) or `C·Q` (side R), or the same with `Qᴴ`."""
    m, n = c.shape
    block, k = t.shape
    if not (m and n and k):
        return
    work = np.empty(block * (n if side == b"L" else m), c.dtype)
    info = ctypes.c_int(0)
    routine("gemqrt", c.dtype.char)(
        side, _operation(adjoint, c.dtype), integer(m), integer(n), integer(k), integer(block),
        address(v), leading(v), address(t), leading(t), address(c), leading(c),
        address(work), ctypes.byref(info),
    )  # fmt: skip
    _valid("gemqrt", info)


@kernel(
    "tpqrt",
    outputs=3,
    shape=tpqrt_shapes,
    dtype=lambda r, b, *_: (promote(r, b),) * 3,
    flops=tpqrt_flops,
    inplace=(0, 1),
)
def tpqrt(
    r: Matrix,
    b: Matrix,
    ib: int = 32,
    *,
    triangular: bool = False,
    overwrite: Sequence[int] = (),
) -> tuple[Matrix, Matrix, Matrix]:
    """QR of a triangle `R` on top of a tile `B`: `[R; B] = Q·[R'; 0]`; returns `V`, `T`, `R'`.

    `triangular=True` says that `B` is upper triangular (trapezoidal) too, and saves two
    thirds of the work or more.

    >>> v, t, r = tpqrt(np.array([[3.0]]), np.array([[4.0]]))
    >>> bool(np.allclose(abs(r), 5.0))
    True
    """
    n = r.shape[1]
    if not (r.shape[0] == n == b.shape[1]):
        raise misfit(
            "tpqrt",
            f"a square triangle on a tile of as many columns, got {extent(r)} on {extent(b)}; "
            "tiles need at least as many rows as columns, save the last",
        )
    dtype = blas_dtype(r, b)
    top = owned(r, dtype, 0 in overwrite)
    v = owned(b, dtype, 1 in overwrite)
    return v, factor_pair(top, v, ib, triangular), top


def factor_pair(top: Matrix, v: Matrix, ib: int, triangular: bool) -> Matrix:
    """Overwrite a triangle and the Fortran-ordered tile below it with `R'` and `V`; return `T`."""
    m, n = v.shape
    block = _inner(ib, n)
    t = np.zeros((block, n), v.dtype, order="F")
    if m and n:
        work = np.empty(block * n, v.dtype)
        info = ctypes.c_int(0)
        routine("tpqrt", v.dtype.char)(
            integer(m), integer(n), integer(min(m, n) if triangular else 0), integer(block),
            address(top), leading(top), address(v), leading(v), address(t), leading(t),
            address(work), ctypes.byref(info),
        )  # fmt: skip
        _valid("tpqrt", info)
    return t


@kernel(
    "tpmqrt",
    outputs=2,
    shape=lambda v, t, c0, c1, **_: (c0, c1),
    dtype=lambda *dtypes: (promote(*dtypes),) * 2,
    flops=lambda v, t, c0, c1, triangular=False, **_: (2.0 if triangular else 4.0) * v[0] * v[1] * c1[1],
    inplace=(2, 3),
)
def tpmqrt(
    v: Matrix,
    t: Matrix,
    c0: Matrix,
    c1: Matrix,
    *,
    adjoint: bool = True,
    triangular: bool = False,
    overwrite: Sequence[int] = (),
) -> tuple[Matrix, Matrix]:
    """`Qᴴ·[C0; C1]` for the `Q` of `tpqrt`, as a pair of tiles; `Q·[C0; C1]` with `adjoint=False`.

    >>> v, t, r = tpqrt(np.array([[3.0]]), np.array([[4.0]]))
    >>> c0, c1 = tpmqrt(v, t, np.array([[3.0]]), np.array([[4.0]]))
    >>> bool(np.allclose(c0, r) and np.allclose(c1, 0.0))
    True
    """
    if not (
        v.shape[1] == t.shape[1] == c0.shape[0] and v.shape[0] == c1.shape[0] and c0.shape[1] == c1.shape[1]
    ):
        raise misfit(
            "tpmqrt",
            f"tiles for Qᴴ·[C0; C1], got V {extent(v)}, T {extent(t)}, C0 {extent(c0)} and C1 {extent(c1)}",
        )
    dtype = blas_dtype(v, t, c0, c1)
    first = owned(c0, dtype, 2 in overwrite)
    second = owned(c1, dtype, 3 in overwrite)
    apply_pair(b"L", adjoint, readable(v, dtype), readable(t, dtype), first, second, triangular)
    return first, second


def apply_pair(
    side: bytes, adjoint: bool, v: Matrix, t: Matrix, c0: Matrix, c1: Matrix, triangular: bool
) -> None:
    """Overwrite `[C0; C1]` with `Q·[C0; C1]` (side L), or `[C0 C1]` with `[C0 C1]·Q` (side R)."""
    m, n = c1.shape
    block, k = t.shape
    if not (m and n and k):
        return
    work = np.empty(block * (n if side == b"L" else m), c1.dtype)
    info = ctypes.c_int(0)
    routine("tpmqrt", c1.dtype.char)(
        side, _operation(adjoint, c1.dtype), integer(m), integer(n), integer(k),
        integer(min(v.shape) if triangular else 0), integer(block),
        address(v), leading(v), address(t), leading(t), address(c0), leading(c0), address(c1), leading(c1),
        address(work), ctypes.byref(info),
    )  # fmt: skip
    _valid("tpmqrt", info)


def _operation(adjoint: bool, dtype: np.dtype[Any]) -> bytes:
    if not adjoint:
        return b"N"
    return b"C" if dtype.kind == "c" else b"T"


def _valid(name: str, info: ctypes.c_int) -> None:
    """LAPACK's complaint about an argument: never expected, as sizes are checked before the call."""
    if info.value:
        raise ValueError(f"LAPACK's {name} refuses its argument number {-info.value}")
