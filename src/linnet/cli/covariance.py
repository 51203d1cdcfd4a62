"""The matrix of the demonstration: the covariance of a Gaussian process at random points.

It is made by a tile program of its own, and checked tile by tile: nothing here ever holds
more than the lower half of the matrix.
"""
# pyright: reportInvalidTypeForm=false, reportIndexIssue=false

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.engines import Engine
from linnet.events import Sink
from linnet.kernels import kernel
from linnet.programs import In, Out, tile_program
from linnet.tiles import TiledArray

_LENGTH = 0.1
_NOISE = 0.01


@kernel(
    "demo_covariance",
    shape=lambda x, y, diagonal: (x[0], y[0]),
    dtype=lambda x, y, diagonal: np.dtype(np.float64),
    flops=lambda x, y, diagonal: 20.0 * x[0] * y[0],
)
def demo_covariance(x: NDArray[Any], y: NDArray[Any], diagonal: int) -> NDArray[Any]:
    """`exp(-|x - y|² / 2ℓ²)` for two sets of points, plus noise on the diagonal."""
    exponent = np.zeros((len(x), len(y)), order="F")
    for axis in range(x.shape[1]):
        distance = np.subtract.outer(x[:, axis], y[:, axis])
        exponent -= np.square(distance, out=distance)
    exponent /= 2 * _LENGTH**2
    np.exp(exponent, out=exponent)
    if diagonal:
        exponent[np.diag_indices(len(x))] += _NOISE
    return exponent


@tile_program
def covariance(X: In, A: Out(fill=0), N: int):
    for i in range(N):
        A[i, i] = demo_covariance(X[i, 0], X[i, 0], 1)
        for j in range(i):
            A[i, j] = demo_covariance(X[i, 0], X[j, 0], 0)


def matrix(size: int, tile: int, engine: Engine, events: Sink) -> TiledArray:
    """The lower half of the covariance of random points in the unit square."""
    points = np.random.default_rng(0).random((size, 2))
    tiled = TiledArray.from_numpy(points, (tile, 2))
    return engine.run(covariance.bind(N=tiled.grid[0]), {"X": tiled}, events=events)["A"]


def residual(a: TiledArray, factor: TiledArray) -> tuple[float, float]:
    """`|Ax - L(Lᵀx)| / |A||x|` for a random `x`, where `A` is given by its lower half, and its bound.

    A wrong factor leaves a residual for almost every `x`.
    """
    n = a.shape[0]
    x = np.random.default_rng(1).standard_normal(n)
    transposed, left, right = np.zeros(n), np.zeros(n), np.zeros(n)
    squares = 0.0
    for index, tile in a.tiles.items():
        rows, columns = a.layout.slices(index)
        right[rows] += tile @ x[columns]
        weight = 1.0
        if index[0] != index[1]:
            right[columns] += tile.T @ x[rows]
            weight = 2.0
        squares += weight * float(np.einsum("ij,ij->", tile, tile))
    for index, tile in factor.tiles.items():
        rows, columns = factor.layout.slices(index)
        transposed[columns] += tile.T @ x[rows]
    for index, tile in factor.tiles.items():
        rows, columns = factor.layout.slices(index)
        left[rows] += tile @ transposed[columns]
    scale = float(np.sqrt(squares) * np.linalg.norm(x))
    return float(np.linalg.norm(right - left)) / scale, n * float(np.finfo(a.dtype).eps)
