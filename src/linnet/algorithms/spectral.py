"""Singular values, eigenvalues and rank as `numpy.linalg` has them: for matrices and stacks of any size.

Small matrices go straight to LAPACK; larger ones through the programs of `svd` and `eigh`.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from linnet.algorithms.eigh import EighResult, eigh_tiled, eigvalsh_tiled
from linnet.algorithms.stacks import Array, as_stack, is_small_spectrum, need_square, over_stack
from linnet.algorithms.svd import SVDResult, svd_tiled, svdvals_tiled
from linnet.engines import Engine
from linnet.errors import InputError, LinAlgError
from linnet.events import Sink
from linnet.tiles import TiledArray


def svd(
    a: Any,
    full_matrices: bool = True,
    *,
    tile: int | None = None,
    engine: Engine | None = None,
    events: Sink | None = None,
) -> SVDResult:
    """`A = U·diag(S)·Vh`, singular values descending.

    With `full_matrices`, `U` and `Vh` are square; else they have min(M, N) columns and rows.

    >>> u, s, vh = svd(np.array([[3.0, 0.0], [0.0, 4.0]]))
    >>> s
    array([4., 3.])
    """
    stack = as_stack(a)
    if is_small_spectrum(stack, tile, engine):
        try:
            return SVDResult(*np.linalg.svd(np.asarray(stack), full_matrices=full_matrices))
        except np.linalg.LinAlgError as error:
            raise _failed(error) from error

    def one(matrix: Array | TiledArray) -> SVDResult:
        return svd_tiled(matrix, full_matrices=full_matrices, tile=tile, engine=engine, events=events)

    if isinstance(stack, np.ndarray) and stack.ndim > 2:
        return SVDResult(*over_stack(one, stack, outputs=3))
    return one(stack)


def svdvals(
    a: Any, *, tile: int | None = None, engine: Engine | None = None, events: Sink | None = None
) -> Array:
    """The singular values of a matrix, descending.

    >>> svdvals([[3, 0], [0, 4]])
    array([4., 3.])
    """
    stack = as_stack(a)
    if is_small_spectrum(stack, tile, engine):
        try:
            return np.linalg.svd(np.asarray(stack), compute_uv=False)
        except np.linalg.LinAlgError as error:
            raise _failed(error) from error

    def one(matrix: Array | TiledArray) -> Array:
        return svdvals_tiled(matrix, tile=tile, engine=engine, events=events)

    return over_stack(one, stack) if isinstance(stack, np.ndarray) and stack.ndim > 2 else one(stack)


def eigh(
    a: Any,
    UPLO: str = "L",
    *,
    tile: int | None = None,
    engine: Engine | None = None,
    events: Sink | None = None,
) -> EighResult:
    """The eigenvalues of a Hermitian matrix, ascending, and its eigenvectors as columns.

    `UPLO` says which triangle is read, "L" or "U"; the other may hold anything.

    >>> w, z = eigh(np.array([[2.0, 0.0], [1.0, 2.0]]))
    >>> w.round(12)
    array([1., 3.])
    """
    uplo = triangle_of(UPLO)
    stack = as_stack(a)
    need_square(stack, "eigh")
    if is_small_spectrum(stack, tile, engine):
        try:
            return EighResult(*np.linalg.eigh(np.asarray(stack), uplo))
        except np.linalg.LinAlgError as error:
            raise _failed(error) from error

    def one(matrix: Array | TiledArray) -> EighResult:
        return eigh_tiled(matrix, lower=uplo == "L", tile=tile, engine=engine, events=events)

    if isinstance(stack, np.ndarray) and stack.ndim > 2:
        return EighResult(*over_stack(one, stack, outputs=2))
    return one(stack)


def eigvalsh(
    a: Any,
    UPLO: str = "L",
    *,
    tile: int | None = None,
    engine: Engine | None = None,
    events: Sink | None = None,
) -> Array:
    """The eigenvalues of a Hermitian matrix, ascending, from one of its triangles.

    >>> eigvalsh([[2, 1], [1, 2]]).round(12)
    array([1., 3.])
    """
    uplo = triangle_of(UPLO)
    stack = as_stack(a)
    need_square(stack, "eigvalsh")
    if is_small_spectrum(stack, tile, engine):
        try:
            return np.linalg.eigvalsh(np.asarray(stack), uplo)
        except np.linalg.LinAlgError as error:
            raise _failed(error) from error

    def one(matrix: Array | TiledArray) -> Array:
        return eigvalsh_tiled(matrix, lower=uplo == "L", tile=tile, engine=engine, events=events)

    return over_stack(one, stack) if isinstance(stack, np.ndarray) and stack.ndim > 2 else one(stack)


def matrix_rank(
    a: Any,
    tol: Any = None,
    hermitian: bool = False,
    *,
    rtol: Any = None,
    tile: int | None = None,
    engine: Engine | None = None,
    events: Sink | None = None,
) -> Any:
    """How many singular values are above the tolerance.

    `tol` is absolute; `rtol` is relative to the largest singular value, and by default max(M, N) times
    the rounding of the dtype.

    >>> int(matrix_rank(np.outer([1.0, 2.0], [3.0, 4.0])))
    1
    """
    if tol is not None and rtol is not None:
        raise InputError("tol and rtol are both given; give one of them")
    if not isinstance(a, TiledArray) and np.ndim(a) < 2:
        return int(np.any(np.asarray(a)))
    stack = as_stack(a)
    if hermitian:
        values = np.sort(np.abs(eigvalsh(stack, tile=tile, engine=engine, events=events)))[..., ::-1]
    else:
        values = svdvals(stack, tile=tile, engine=engine, events=events)
    return counted(values, stack.shape, tol, rtol)


def counted(values: Array, shape: tuple[int, ...], tol: Any, rtol: Any) -> Any:
    """How many of the singular values of a matrix (or of each in a stack) of that shape count."""
    if tol is None:
        relative = max(shape[-2:]) * np.finfo(values.dtype).eps if rtol is None else np.asarray(rtol)
        tol = values.max(axis=-1, keepdims=True, initial=0) * np.asarray(relative)[..., None]
    else:
        tol = np.asarray(tol)[..., None]
    return np.count_nonzero(values > tol, axis=-1)


def triangle_of(uplo: str) -> Literal["L", "U"]:
    """Which triangle a caller means."""
    if uplo.upper() == "L":
        return "L"
    if uplo.upper() == "U":
        return "U"
    raise InputError(f'UPLO={uplo!r}: say which triangle to read, "L" (lower) or "U" (upper)')


def _failed(error: np.linalg.LinAlgError) -> LinAlgError:
    return LinAlgError(f"{error}; is every element of the matrix finite?")
