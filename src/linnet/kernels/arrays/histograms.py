"""Counting elements of a tile by bin."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.kernels.registry import kernel

Tile = NDArray[Any]


@kernel(
    "histogram_tile",
    shape=lambda x, edges, *_, **__: (1, edges[0] - 1),
    dtype=lambda x, edges, *weights, **_: weights[0] if weights else np.dtype(np.intp),
    flops=lambda x, *_, **__: 10.0 * math.prod(x),
)
def histogram_tile(x: Tile, edges: Tile, *weights: Tile, bounds: tuple[float, float] | None = None) -> Tile:
    """How many elements, or what weight, each bin has; with `bounds` all bins are equally wide.

    >>> histogram_tile(np.array([1, 2, 2, 9]), np.array([0, 2, 4]))
    array([[1, 2]])
    """
    weight = weights[0].reshape(-1) if weights else None
    flat = np.asarray(x).reshape(-1)
    if bounds is None:
        counts, _ = np.histogram(flat, edges, weights=weight)
    else:
        # NumPy has a faster way for bins of equal width, which also settles ties its own way.
        ends: Any = tuple(map(_as_numpy, bounds))
        counts, _ = np.histogram(flat, edges.size - 1, ends, weights=weight)
    return counts[None]


def _as_numpy(bound: Any) -> Any:
    """A bound as NumPy compares it: large integers are unsigned, complex numbers have an order."""
    if isinstance(bound, tuple | list):
        return np.complex128(complex(*bound))
    return np.uint64(bound) if isinstance(bound, int) and bound >> 63 > 0 else bound


@kernel(
    "histograms_tile",
    shape=lambda x, *, most, bounds: (1, most * (most + 1) // 2),
    dtype=lambda *_, **__: np.dtype(np.intp),
    flops=lambda x, *, most, bounds: 10.0 * math.prod(x) * most,
)
def histograms_tile(x: Tile, *, most: int, bounds: tuple[float, float]) -> Tile:
    """The histograms with 1, 2, … `most` bins of equal width, one behind another.

    >>> histograms_tile(np.array([0.0, 0.4, 1.0]), most=2, bounds=(0.0, 1.0))
    array([[3, 2, 1]])
    """
    flat = np.asarray(x).reshape(-1)
    return np.concatenate([np.histogram(flat, bins, bounds)[0] for bins in range(1, most + 1)])[None]


@kernel(
    "bincount_tile",
    shape=lambda x, *_, length: (1, length),
    dtype=lambda x, *weights, **_: np.dtype(np.float64 if weights else np.intp),
    flops=lambda x, *_, **__: float(math.prod(x)),
)
def bincount_tile(x: Tile, *weights: Tile, length: int) -> Tile:
    """How often each number below `length` occurs, or what weight it has.

    >>> bincount_tile(np.array([1, 1, 3]), length=5)
    array([[0, 2, 0, 1, 0]])
    """
    return np.bincount(x, *weights, minlength=length)[None]


@kernel(
    "histogramdd_tile",
    shape=lambda x, *edges, **_: (1, *(each[0] - 1 for each in edges)),
    dtype=lambda *_, **__: np.dtype(np.float64),
    flops=lambda x, *_, **__: 10.0 * math.prod(x),
)
def histogramdd_tile(x: Tile, *edges: Tile) -> Tile:
    """How many rows of a tile lie in each box between edges.

    >>> x = np.array([[0.5, 1.5], [0.1, 0.2], [0.3, 1.0]])
    >>> histogramdd_tile(x, np.array([0.0, 1.0]), np.array([0.0, 1.0, 2.0]))
    array([[[1., 2.]]])
    """
    return np.histogramdd(x, edges)[0][None]


@kernel(
    "histogramdd_weighted",
    shape=lambda x, weights, *edges, **_: (1, *(each[0] - 1 for each in edges)),
    dtype=lambda *_, **__: np.dtype(np.float64),
    flops=lambda x, *_, **__: 10.0 * math.prod(x),
)
def histogramdd_weighted(x: Tile, weights: Tile, *edges: Tile) -> Tile:
    """The weight of the rows of a tile in each box between edges.

    >>> x, weights = np.array([[0.5], [1.5], [0.1]]), np.array([1.0, 2.0, 4.0])
    >>> histogramdd_weighted(x, weights, np.array([0.0, 1.0, 2.0]))
    array([[5., 2.]])
    """
    return np.histogramdd(x, edges, weights=weights)[0][None]
