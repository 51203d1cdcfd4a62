"""The nearest of some centres for each row: compiled where a compiler was there, else by matrix products.

Both take squares of distances apart, `|x|² - 2·x·c + |c|²`, of rows and centres that had `shift` taken off:
data far from zero would lose the digits that tell centres apart.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.kernels.compiled import Nearest
from linnet.kernels.compiled import centres as library_of_centres
from linnet.kernels.models.glm import pieces
from linnet.kernels.registry import kernel
from linnet.machine.float_errors import quietly

Tile = NDArray[Any]
_LANES, _ROWS = 4, 6
"""As in `kmeans.c`."""


def nearest(
    x: Tile, centres: Tile, shift: Tile, weight: Tile | None, labels: Tile | None, line: Tile | None
) -> None:
    """Write the number of each row's nearest centre into `labels`, and add rows to `line`, where there are.

    `line` has the inertia, and for each centre the weight and the sum of its rows less `shift`. Both `labels`
    and `line` are contiguous; a row that is not finite is refused.

    >>> labels = np.empty(3, np.int32)
    >>> nearest(np.array([[0.0], [1.0], [5.0]]), np.array([[0.0], [5.0]]), np.zeros(1), None, labels, None)
    >>> labels
    array([0, 0, 1], dtype=int32)
    """
    library = library_of_centres()
    if library is None:
        lost = nearest_by_products(x, centres, shift, weight, labels, line)
    else:
        lost = _compiled(library, x, centres, shift, weight, labels, line)
    if lost:
        raise ValueError(
            f"{lost} rows have no nearest centre: they contain NaN or infinity, or values too large for "
            "float64; remove or fill these rows first"
        )


def _compiled(
    library: ctypes.CDLL,
    x: Tile,
    centres: Tile,
    shift: Tile,
    weight: Tile | None,
    labels: Tile | None,
    line: Tile | None,
) -> int:
    count, columns = centres.shape
    padded = -(-count // _LANES) * _LANES
    turned, squares = np.zeros((columns, padded)), np.full(padded, np.inf)
    moved = centres - shift
    turned[:, :count] = -2.0 * moved.T
    squares[:count] = np.einsum("ij,ij->i", moved, moved)
    shift, work = np.ascontiguousarray(shift, np.float64), np.empty(_ROWS * columns)
    how = Nearest(columns=columns, centres=count, padded=padded)
    how.shift = shift.ctypes.data if shift.any() else None
    how.turned, how.squares, how.work = turned.ctypes.data, squares.ctypes.data, work.ctypes.data
    how.line = None if line is None else line.ctypes.data
    lost = 0
    for part, piece in pieces(x):
        piece = piece if piece.strides[1] == 8 else np.ascontiguousarray(piece)
        of_rows = None if weight is None else np.ascontiguousarray(weight[part], np.float64)
        how.rows, how.x = len(piece), piece.ctypes.data
        how.down = piece.strides[0] // 8
        how.weight = None if of_rows is None else of_rows.ctypes.data
        how.labels = None if labels is None else labels[part].ctypes.data
        lost += library.linnet_nearest(how)
    return lost


def nearest_by_products(
    x: Tile, centres: Tile, shift: Tile, weight: Tile | None, labels: Tile | None, line: Tile | None
) -> int:
    """The same without a compiler; returns how many rows are not finite.

    >>> line = np.zeros(5)
    >>> nearest_by_products(
    ...     np.array([[0.0], [1.0], [5.0]]), np.array([[0.0], [5.0]]), np.zeros(1), None, None, line
    ... )
    0
    >>> line
    array([1., 2., 1., 1., 5.])
    """
    count, moved, lost = len(centres), centres - shift, 0
    squares, turned = np.einsum("ij,ij->i", moved, moved), np.ascontiguousarray(-2.0 * moved.T)
    for part, piece in pieces(x, shift):
        distances = piece @ turned
        distances += squares
        found = distances.argmin(axis=1)
        least = distances[np.arange(len(found)), found]
        lost += int((~np.isfinite(least)).sum())
        if labels is not None:
            labels[part] = found
        if line is not None:
            _add(line, piece, found, least, None if weight is None else weight[part], count)
    return lost


def _add(line: Tile, piece: Tile, found: Tile, least: Tile, weight: Tile | None, count: int) -> None:
    from scipy import sparse

    w = np.ones(len(found)) if weight is None else weight.astype(np.float64)
    line[0] += np.maximum(least + np.einsum("ij,ij->i", piece, piece), 0.0) @ w
    line[1 : 1 + count] += np.bincount(found, w, count)
    chosen = sparse.csr_array((w, found, np.arange(len(found) + 1)), shape=(len(found), count))
    line[1 + count :].reshape(count, -1)[...] += chosen.T @ piece


def _flops(x: Any, centres: Any, *_: Any) -> float:
    return 2.0 * x[0] * centres[0] * (centres[1] + 2)


@kernel(
    "kmeans_pass",
    shape=lambda x, centres, *_: (1, 1 + centres[0] * (1 + centres[1])),
    dtype=lambda *_: np.dtype(np.float64),
    flops=_flops,
)
def kmeans_pass(x: Tile, centres: Tile, shift: Tile, *weight: Tile) -> Tile:
    """The inertia of rows; for each centre the weight and the sum (less `shift`) of its rows.

    >>> kmeans_pass(np.array([[0.0], [1.0], [5.0]]), np.array([[0.0], [5.0]]), np.zeros(1))
    array([[1., 2., 1., 1., 5.]])
    """
    line = np.zeros(1 + centres.shape[0] * (1 + centres.shape[1]))
    quietly(nearest, x, centres, shift, weight[0] if weight else None, None, line)
    return line[None]


@kernel("kmeans_labels", shape=lambda x, *_: (x[0],), dtype=lambda *_: np.dtype(np.int32), flops=_flops)
def kmeans_labels(x: Tile, centres: Tile, shift: Tile) -> Tile:
    """The number of the nearest centre of each row.

    >>> kmeans_labels(np.array([[0.0], [1.0], [5.0]]), np.array([[0.0], [5.0]]), np.zeros(1))
    array([0, 0, 1], dtype=int32)
    """
    labels = np.empty(x.shape[0], np.int32)
    quietly(nearest, x, centres, shift, None, labels, None)
    return labels


@kernel(
    "kmeans_far",
    shape=lambda x, *_, count: (1, count * (3 + x[1])),
    dtype=lambda *_, **__: np.dtype(np.float64),
    flops=lambda x, centres, *_, **__: _flops(x, centres),
)
def kmeans_far(x: Tile, centres: Tile, shift: Tile, *weight: Tile, count: int) -> Tile:
    """The `count` rows farthest from their centres: squared distance, centre, weight, row less `shift`.

    Rows without weight are not taken; where there are too few, the rest is 0.

    >>> kmeans_far(np.array([[0.0], [1.0], [7.0]]), np.array([[0.0], [5.0]]), np.zeros(1), count=1)
    array([[4., 1., 1., 7.]])
    """
    found = np.zeros((count, 3 + x.shape[1]))
    labels = kmeans_labels(x, centres, shift)
    rows = np.asarray(x, np.float64) - shift
    distances = np.square(rows - (centres - shift)[labels]).sum(axis=1)
    w = weight[0].astype(np.float64) if weight else np.ones(len(rows))
    order = np.argsort(np.where(w > 0, -distances, np.inf), kind="stable")[:count]
    order = order[w[order] > 0]
    found[: len(order)] = np.column_stack([distances[order], labels[order], w[order], rows[order]])
    return found.reshape(1, -1)
