"""Kernels of norms: what one tile contributes, and what the contributions of many make.

Sums of squares are kept as a pair (scale, sum of squares over scale²), because squares of
numbers beyond 1e±154 are out of range when the norm is not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.kernels.registry import kernel

Tile = NDArray[Any]
Numbers = NDArray[np.float64]


def _size(shape: tuple[int, ...]) -> float:
    return float(np.prod(shape))


@kernel("largest", shape=lambda x: (1,), dtype=lambda x: np.float64, flops=_size)
def largest(x: Tile) -> Numbers:
    """The largest modulus in a tile; 0 in an empty one.

    >>> largest(np.array([[3.0, -4.0]]))
    array([4.])
    """
    return np.array([np.abs(x).max(initial=0)], np.float64)


@kernel("column_sums", shape=lambda x: (x[1],), dtype=lambda x: np.float64, flops=_size)
def column_sums(x: Tile) -> Numbers:
    """The sums of moduli of the columns of a tile.

    >>> column_sums(np.array([[3.0, -4.0], [1.0, 0.0]]))
    array([4., 4.])
    """
    return np.abs(x).sum(axis=0, dtype=np.float64)


@kernel("squares", shape=lambda x: (2,), dtype=lambda x: np.float64, flops=lambda x: 2 * _size(x))
def squares(x: Tile) -> Numbers:
    """The sum of squared moduli of a tile, as a scale and the sum over the scale squared.

    >>> squares(np.array([[3e200, 4e200]]))
    array([4.0000e+200, 1.5625e+000])
    """
    sizes = np.abs(x).astype(np.float64, copy=False)
    scale = sizes.max(initial=0.0)
    if scale == 0.0 or not np.isfinite(scale):
        return np.array([scale, 1.0])
    sizes = sizes / scale
    return np.array([scale, np.square(sizes).sum()])


@kernel("join_largest", shape=lambda parts: (1,), dtype=lambda parts: np.float64, flops=lambda parts: 0.0)
def join_largest(parts: list[list[Numbers]]) -> Numbers:
    """The largest of what tiles contribute.

    >>> join_largest([[np.array([4.0]), np.array([5.0])]])
    array([5.])
    """
    return np.array([max(_poisoned(each[0] for row in parts for each in row), default=0.0)])


@kernel("join_sums", shape=lambda parts: (1,), dtype=lambda parts: np.float64, flops=lambda parts: 0.0)
def join_sums(parts: list[list[Numbers]]) -> Numbers:
    """The largest column sum, from the column sums of tiles.

    >>> join_sums([[np.array([4.0, 1.0])], [np.array([1.0, 7.0])]])
    array([8.])
    """
    columns = [np.sum(column, axis=0) for column in zip(*parts, strict=True)]
    return np.array([np.concatenate(columns).max(initial=0.0)])


@kernel("join_squares", shape=lambda parts: (1,), dtype=lambda parts: np.float64, flops=lambda parts: 0.0)
def join_squares(parts: list[list[Numbers]]) -> Numbers:
    """The root of the sum of squares, from the pairs of `squares`.

    >>> join_squares([[np.array([3e200, 1.0]), np.array([4e200, 1.0])]])
    array([5.e+200])
    """
    pairs = np.array([each for row in parts for each in row])
    scale = pairs[:, 0].max()
    if scale == 0.0 or not np.isfinite(scale):
        return np.array([scale])
    return np.array([scale * np.sqrt((pairs[:, 1] * (pairs[:, 0] / scale) ** 2).sum())])


def _poisoned(numbers: Any) -> list[float]:
    """The numbers; or only one that is not a number, if there is any: `max` would lose it."""
    found = list(numbers)
    return [each for each in found if np.isnan(each)][:1] or found
