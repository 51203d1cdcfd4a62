"""What the dense solvers share: matrices and stacks of them, checked once, small ones told from large.

A stack is an array of shape `(..., M, N)`: each matrix in it is a computation of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.algorithms.running import budget
from linnet.algorithms.tuning import SHORTCUT, SPECTRAL_SHORTCUT, tile_size
from linnet.engines import Engine
from linnet.errors import InputError, LinAlgError
from linnet.kernels.fortran import promote
from linnet.tiles import Layout, TiledArray

Array = NDArray[Any]

_LAPACK_COPIES = 8
"""Matrices of its size for which LAPACK needs room to find all vectors of one."""


def as_stack(a: Any, name: str = "a") -> Array | TiledArray:
    """A matrix or a stack of them, in a dtype that BLAS knows; tiled ones as they are.

    >>> as_stack([[1, 2], [3, 4]])
    array([[1., 2.],
           [3., 4.]])
    """
    if isinstance(a, TiledArray):
        if a.ndim != 2:
            raise LinAlgError(f"{name} must be a matrix, got a tiled array of shape {a.shape}")
        return a
    array = np.asarray(a)
    if array.ndim < 2:
        raise LinAlgError(
            f"{name} must be a matrix or a stack of matrices, got an array of shape {array.shape}; "
            "give it at least two axes"
        )
    return as_floating(array)


def as_floating(array: Array) -> Array:
    """The array in a dtype that BLAS knows: integers become float64."""
    return array.astype(promote(array.dtype), copy=False)


def need_square(a: Array | TiledArray, what: str) -> None:
    """Refuse matrices that are not square."""
    if a.shape[-1] != a.shape[-2]:
        raise LinAlgError(f"{what} takes a square matrix, got {a.shape[-2]}×{a.shape[-1]}")


def is_small(a: Array | TiledArray, tile: int | None) -> bool:
    """Whether a matrix goes straight to LAPACK: it is not cut, by no one's wish, and below the limit."""
    return 0 in a.shape or (isinstance(a, np.ndarray) and tile is None and max(a.shape[-2:]) < SHORTCUT)


def is_small_spectrum(a: Array | TiledArray, tile: int | None, engine: Engine | None) -> bool:
    """The same for singular values and eigenvalues: a higher limit, as far as there is memory."""
    if is_small(a, tile):
        return True
    memory = budget(engine)
    fits = memory is None or _LAPACK_COPIES * a.nbytes <= memory
    return isinstance(a, np.ndarray) and tile is None and max(a.shape[-2:]) < SPECTRAL_SHORTCUT and fits


def cut(a: Array | TiledArray, tile: int | None, kind: str, engine: Engine | None = None) -> TiledArray:
    """A matrix in square tiles of the given size, or of the library's choice; tiled ones as they are.

    The choice is one that the engine (None: that of the session) has the memory for.
    """
    if isinstance(a, TiledArray):
        return a
    if tile is None:
        tile = even_side(max(a.shape), tile_size(a.shape, a.dtype, kind, budget(engine)))
    return TiledArray.from_numpy(a, tile, copy=False)


def even_side(length: int, side: int) -> int:
    """A side that cuts a length into as many tiles, the last of them nearly as large as the others.

    >>> even_side(5000, 384), even_side(4096, 512)
    (360, 512)
    """
    return ceil(length / ceil(length / side) / 8) * 8


def cut_like_rows(b: Array | TiledArray, matrix: TiledArray, name: str = "b") -> TiledArray:
    """A matrix whose rows are cut as the columns of another are, its own columns by the widest of these."""
    edges = matrix.layout.boundaries[1]
    if isinstance(b, TiledArray):
        if b.layout.boundaries[0] != edges:
            raise InputError(
                f"the rows of {name} must be cut as the columns of the matrix: at {edges}, "
                f"got {b.layout.boundaries[0]}"
            )
        return b
    widest = max(1, *np.diff(edges).tolist())
    columns = Layout.regular((b.shape[1],), widest).boundaries[0]
    return TiledArray(layout := Layout((edges, columns)), b.dtype, _views(b, layout))


def _views(array: Array, layout: Layout) -> dict[tuple[int, ...], Array]:
    tiles: dict[tuple[int, ...], Array] = {}
    for index in layout.indices():
        view = array[layout.slices(index)]
        view.flags.writeable = False
        tiles[index] = view
    return tiles


def transposed(matrix: TiledArray) -> TiledArray:
    """The transpose: the same tiles, seen the other way."""
    rows, columns = matrix.layout.boundaries
    tiles = {(j, i): tile.T for (i, j), tile in matrix.tiles.items()}
    return TiledArray(Layout((columns, rows)), matrix.dtype, tiles, matrix.fill)


def identity(matrix: TiledArray) -> TiledArray:
    """The identity, cut as the columns of a matrix; all its zero tiles of one shape are the same memory."""
    edges = matrix.layout.boundaries[1]
    layout = Layout((edges, edges))
    known: dict[tuple[int, ...], Array] = {}
    tiles: dict[tuple[int, ...], Array] = {}
    for index in layout.indices():
        shape = layout.tile_shape(index)
        if index[0] == index[1]:
            tiles[index] = np.eye(*shape, dtype=matrix.dtype)
        else:
            tiles[index] = known.setdefault(shape, np.zeros(shape, matrix.dtype))
    return TiledArray(layout, matrix.dtype, tiles)


def over_stack(function: Callable[..., Any], *stacks: Array, outputs: int = 1) -> Any:
    """Apply a function to each of the matrices in stacks of one length, and stack what it returns.

    >>> over_stack(np.linalg.inv, np.array([[[2.0]], [[4.0]]])).tolist()
    [[[0.5]], [[0.25]]]
    """
    batch = stacks[0].shape[:-2]
    results: list[Any] = []
    for index in np.ndindex(*batch):
        try:
            results.append(function(*(stack[index] for stack in stacks)))
        except LinAlgError as error:
            raise LinAlgError(f"matrix {index} of the stack: {error}") from error
    # With no matrix at all, identities tell the shapes and dtypes of what would be returned.
    like = results or [function(*(np.eye(*each.shape[-2:], dtype=each.dtype) for each in stacks))]
    if outputs == 1:
        return _joined(results, np.asarray(like[0]), batch)
    columns = zip(*results, strict=True) if results else [[]] * outputs
    return tuple(
        _joined(column, np.asarray(each), batch) for column, each in zip(columns, like[0], strict=True)
    )


def _joined(results: Any, like: Array, batch: tuple[int, ...]) -> Array:
    whole = np.empty((*batch, *like.shape), like.dtype)
    for index, each in zip(np.ndindex(*batch), results, strict=True):
        whole[index] = each
    return whole
