"""Norms of vectors and matrices, and the condition of a matrix.

Norms of large matrices are tile programs: what each tile contributes, and one task that joins.
Nothing overflows that need not: numbers far from 1 are scaled by a power of 2 first.
"""
# pyright: reportInvalidTypeForm=false, reportIndexIssue=false

from __future__ import annotations

from typing import Any

import numpy as np

from linnet.algorithms.inverse import inv
from linnet.algorithms.running import run
from linnet.algorithms.stacks import (
    Array,
    as_floating,
    as_stack,
    cut,
    is_small,
    is_small_spectrum,
    need_square,
    over_stack,
    transposed,
)
from linnet.algorithms.svd import svdvals_tiled
from linnet.engines import Engine
from linnet.errors import InputError, LinAlgError
from linnet.events import Sink
from linnet.kernels.norms import (
    column_sums,
    join_largest,
    join_squares,
    join_sums,
    largest,
    squares,
)
from linnet.programs import In, Out, Temp, TileProgram, tile_program
from linnet.session import current_engine
from linnet.tiles import TiledArray


@tile_program(verify=False)
def greatest_element(A: In, N: Out, S: Temp, P: int, Q: int):
    for i in range(P):
        for j in range(Q):
            S[i, j] = largest(A[i, j])
    N[0] = join_largest(S[0:P, 0:Q])


@tile_program(verify=False)
def greatest_column(A: In, N: Out, S: Temp, P: int, Q: int):
    for i in range(P):
        for j in range(Q):
            S[i, j] = column_sums(A[i, j])
    N[0] = join_sums(S[0:P, 0:Q])


@tile_program(verify=False)
def frobenius(A: In, N: Out, S: Temp, P: int, Q: int):
    for i in range(P):
        for j in range(Q):
            S[i, j] = squares(A[i, j])
    N[0] = join_squares(S[0:P, 0:Q])


_TILED: dict[Any, TileProgram] = {
    None: frobenius, "fro": frobenius, 1: greatest_column, np.inf: greatest_column, "max": greatest_element,
}  # fmt: skip


def norm(
    x: Any,
    ord: float | str | None = None,
    axis: int | tuple[int, int] | None = None,
    keepdims: bool = False,
    *,
    tile: int | None = None,
    engine: Engine | None = None,
    events: Sink | None = None,
) -> Any:
    """A norm of a vector, a matrix, or of those along the given axes, as `numpy.linalg.norm`.

    Of vectors any order; of matrices `None` or "fro", 1, -1, 2, -2, inf, -inf, "nuc", and "max",
    the largest modulus.

    >>> float(norm([[3.0, 0.0], [0.0, 4.0]])), float(norm([1e200, -2e200], 1))
    (5.0, 3e+200)
    """
    if isinstance(x, TiledArray):
        array: Array | TiledArray = as_stack(x, "x")
    else:
        array = as_floating(np.asarray(x))
    if axis is None and array.ndim == 2 and not is_small(array, tile):
        if ord in _TILED:
            value = _tiled_norm(array, ord, tile, engine, events)
            return value.reshape(1, 1) if keepdims else value
        if ord in (2, -2, "nuc"):
            values = singular_values(array, tile, engine, events)
            value = values.sum() if ord == "nuc" else values[0 if ord == 2 else -1]
            return value.reshape(1, 1) if keepdims else value
    return _norm_at_once(np.asarray(array), ord, axis, keepdims)


def _tiled_norm(
    array: Array | TiledArray, ord: Any, tile: int | None, engine: Engine | None, events: Sink | None
) -> Any:
    matrix = cut(array, tile, "gemm", engine)
    matrix = transposed(matrix) if ord == np.inf else matrix
    bound = _TILED[ord].bind(P=matrix.grid[0], Q=matrix.grid[1])
    value = run(bound, {"A": matrix}, engine, events).tiles("N")[0,]
    return value[0].astype(np.finfo(matrix.dtype).dtype)


def singular_values(
    matrix: Array | TiledArray, tile: int | None, engine: Engine | None, events: Sink | None
) -> Array:
    """The singular values of a matrix, or of each in a stack, descending."""
    if matrix.ndim > 2 or is_small_spectrum(matrix, tile, engine):
        return np.linalg.svd(np.asarray(matrix), compute_uv=False)
    return svdvals_tiled(
        matrix, tile=tile, engine=current_engine() if engine is None else engine, events=events
    )


def _norm_at_once(array: Array, ord: Any, axis: Any, keepdims: bool) -> Any:
    if axis is None and ord is None:
        axes: tuple[int, ...] = tuple(range(array.ndim))
    elif axis is None:
        if array.ndim not in (1, 2):
            raise LinAlgError(
                f"a norm of order {ord!r} is of a vector or a matrix, got an array of shape {array.shape}; "
                "say along which axis or axes"
            )
        axes = tuple(range(array.ndim))
    else:
        axes = (axis,) if isinstance(axis, int) else tuple(axis)
    if len(axes) > 2 and not (axis is None and ord is None):
        raise LinAlgError(f"axis {axis!r} has {len(axes)} entries; a norm is along one axis or two")
    sizes = np.abs(array)
    if ord == "max" and len(axes) == 2:
        return sizes.max(axis=axes, keepdims=keepdims, initial=0)
    shift = _exponents(sizes, axes) if ord != 0 else None
    if shift is None:
        return _numpy_norm(array, ord, axis, keepdims)
    scaled = _scaled(array, -shift)
    value = np.asarray(_numpy_norm(scaled, ord, axis, True))
    with np.errstate(over="ignore"):
        value = np.ldexp(value, shift.reshape(value.shape))
    return value if keepdims else np.squeeze(value, axis=axes)[()]


def _exponents(sizes: Array, axes: tuple[int, ...]) -> Array | None:
    """The powers of 2 that bring numbers near 1, along the axes; None if all are near enough."""
    if not sizes.size:
        return None
    greatest = sizes.max(axis=axes, keepdims=True)
    limits = np.finfo(sizes.dtype)
    ordinary = (greatest == 0) | ~np.isfinite(greatest)
    ordinary |= (greatest < float(limits.max) ** 0.25) & (greatest > float(limits.tiny) ** 0.25)
    if ordinary.all():
        return None
    return np.where(ordinary, 0, np.frexp(greatest)[1])


def _scaled(array: Array, shift: Array) -> Array:
    if array.dtype.kind == "c":
        return np.ldexp(np.real(array), shift) + 1j * np.ldexp(np.imag(array), shift)
    return np.ldexp(array, shift)


def _numpy_norm(array: Array, ord: Any, axis: Any, keepdims: bool) -> Any:
    try:
        return np.linalg.norm(array, ord, axis, keepdims)
    except ValueError as error:
        raise InputError(f"no norm of order {ord!r} for an array of shape {array.shape}: {error}") from error


def cond(
    x: Any,
    p: float | str | None = None,
    *,
    tile: int | None = None,
    engine: Engine | None = None,
    events: Sink | None = None,
) -> Any:
    """The condition number of a matrix in the norm `p`; infinite for a singular one.

    `None` and 2 (and -2, its inverse) go by singular values, for matrices of any shape; other
    norms by the inverse, for square ones.

    >>> float(cond([[1.0, 0.0], [0.0, 1e-3]])), float(cond([[1.0, 1.0], [1.0, 1.0]], 1))
    (1000.0, inf)
    """
    matrix = as_stack(x, "x")
    if p in (None, 2, -2):
        return condition_of(singular_values(matrix, tile, engine, events), p)
    need_square(matrix, f"cond with p={p!r}")
    if matrix.ndim > 2:
        assert isinstance(matrix, np.ndarray)
        return over_stack(lambda a: cond(a, p, tile=tile, engine=engine, events=events), matrix)
    try:
        inverse = inv(matrix, tile=tile, engine=engine, events=events)
    except LinAlgError:
        return np.finfo(matrix.dtype).dtype.type(np.inf)
    options: dict[str, Any] = {"tile": tile, "engine": engine, "events": events}
    return norm(matrix, p, **options) * norm(inverse, p, **options)


def condition_of(values: Array, p: float | str | None) -> Any:
    """The ratio of the largest singular value to the least, or with p = -2 the inverse of that."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = values[..., -1] / values[..., 0] if p == -2 else values[..., 0] / values[..., -1]
    # 0/0 is the zero matrix; where something in the matrix is not a number, so is this.
    return np.where(np.isnan(ratio) & ~np.isnan(values).any(axis=-1), np.inf, ratio)[()]
