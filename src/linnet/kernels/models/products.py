"""Products of columns, added up in place: `XᵀX` and `XᵀWX` of one piece of rows after the other.

Only the upper half counts while pieces are added; the lower one is written once, when all are in.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Tile = NDArray[Any]


def add_squares(target: Tile, piece: Tile) -> None:
    """Add `pieceᵀ·piece` to a matrix of doubles.

    >>> target = np.zeros((2, 2))
    >>> add_squares(target, np.array([[1.0, 2.0], [0.0, 3.0]]))
    >>> target
    array([[ 1.,  2.],
           [ 2., 13.]])
    """
    # NumPy's BLAS knows a matrix and its own transpose, and has a faster SYRK than the one SciPy brings.
    target += piece.T @ piece


def mirror(target: Tile) -> None:
    """Write the upper half of a matrix into its lower one.

    >>> target = np.array([[1.0, 2.0], [9.0, 3.0]])
    >>> mirror(target)
    >>> target
    array([[1., 2.],
           [2., 3.]])
    """
    for row in range(1, len(target)):
        target[row, :row] = target[:row, row]


def add_hessian(hessian: Tile, piece: Tile, curve: Tile | None, room: Tile, intercept: bool) -> None:
    """Add `XᵀWX` of a piece to the upper half, with a column of ones if there is an intercept.

    `curve` is the diagonal of W, or None where all of it is 1.
    """
    columns = piece.shape[1]
    inner = hessian[:columns, :columns]
    if curve is None:
        add_squares(inner, piece)
        curve = np.ones(piece.shape[0]) if intercept else None
    elif curve.size and curve.min() >= 0:
        # A matrix and its own transpose: BLAS computes one half.
        np.multiply(piece, np.sqrt(curve)[:, None], out=room)
        add_squares(inner, room)
    else:
        np.multiply(piece, curve[:, None], out=room)
        inner += room.T @ piece
    if intercept and curve is not None:
        hessian[:columns, columns] += curve @ piece
        hessian[columns, columns] += curve.sum()
