"""The job of the demonstration: the weights of a Gaussian process, from points and values.

One tile program makes the covariance matrix of the points, factorises it, and solves for the weights. The
matrix exists in tiles only while they are needed; the check makes them anew, one at a time.
"""
# pyright: reportInvalidTypeForm=false, reportIndexIssue=false

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from linnet.kernels import chol, downdate, downdate_lower, kernel, trsm
from linnet.kernels.linalg.triangular import substitute
from linnet.programs import In, Out, Temp, tile_program
from linnet.tiles import TiledArray

_LENGTH = 0.1
_NOISE = 0.01

Tile = NDArray[Any]


@kernel(
    "demo_covariance",
    shape=lambda x, y, diagonal: (x[0], y[0]),
    dtype=lambda x, y, diagonal: np.dtype(np.float64),
    flops=lambda x, y, diagonal: 20.0 * x[0] * y[0],
)
def demo_covariance(x: Tile, y: Tile, diagonal: int) -> Tile:
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


@kernel(
    "demo_back",
    shape=lambda t, b, below, known: b,
    flops=lambda t, b, below, known: (
        float(t[0] ** 2 * b[1]) + sum(2.0 * each[0] * each[1] * b[1] for each in below)
    ),
)
def demo_back(t: Tile, b: Tile, below: list[Tile], known: list[Tile]) -> Tile:
    """`L⁻ᵀ·(B − Σ L[k]ᵀ·X[k])`: a tile of the solution, from those after it."""
    right = b - sum((each.T @ x for each, x in zip(below, known, strict=True)), np.zeros_like(b))
    return solve_triangular(t, right, lower=True, trans="T", check_finite=False)


@tile_program(verify=False)
def weights(P: In, Z: In, W: Out, A: Temp, U: Temp, L: Temp, Y: Temp, N: int):
    for i in range(N):
        A[i, i] = demo_covariance(P[i, 0], P[i, 0], 1)
        for j in range(i):
            A[i, j] = demo_covariance(P[i, 0], P[j, 0], 0)
    for i in range(N):
        U[i, i] = downdate_lower(A[i, i], L[i, 0:i])
        L[i, i] = chol(U[i, i])
        for j in range(i + 1, N):
            U[j, i] = downdate(A[j, i], L[j, 0:i], L[i, 0:i])
            L[j, i] = trsm(L[i, i], U[j, i])
    for i in range(N):
        Y[i, 0] = substitute(L[i, i], Z[i, 0], L[i, 0:i], Y[0:i, 0], 0, lower=True)
    for i in range(N - 1, -1, -1):
        W[i, 0] = demo_back(L[i, i], Y[i, 0], L[i + 1 : N, i], W[i + 1 : N, 0])


def inputs(size: int, tile: int) -> dict[str, TiledArray]:
    """Random points of the unit square, and a value at each."""
    rng = np.random.default_rng(0)
    points, values = rng.random((size, 2)), rng.standard_normal((size, 1))
    return {
        "P": TiledArray.from_numpy(points, (tile, 2)),
        "Z": TiledArray.from_numpy(values, (tile, 1)),
    }


def residual(given: dict[str, TiledArray], found: TiledArray) -> tuple[float, float]:
    """`|A·w − z| / (|A||w| + |z|)`, the matrix made anew tile by tile; and what it must be below."""
    points, z = given["P"], given["Z"].to_numpy()
    w = found.to_numpy()
    product = np.zeros_like(z)
    squares = 0.0
    rows = [points.layout.slices((i, 0))[0] for i in range(points.grid[0])]
    for i, here in enumerate(rows):
        for j, there in enumerate(rows):
            tile = demo_covariance(points.tile((i, 0)), points.tile((j, 0)), int(i == j))
            product[here] += tile @ w[there]
            squares += float(np.einsum("ij,ij->", tile, tile))
    scale = float(np.sqrt(squares) * np.linalg.norm(w) + np.linalg.norm(z))
    return float(np.linalg.norm(product - z)) / scale, len(z) * float(np.finfo(float).eps)
