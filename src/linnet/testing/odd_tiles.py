"""Programs of the engine suite for tiles of any kind: any dtype, no axes, no elements.

Like those in `linnet.testing.kernels` they are registered when this module is imported.
"""
# pyright: reportInvalidTypeForm=false, reportIndexIssue=false

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.kernels import kernel
from linnet.programs import In, Out, Temp, tile_program

Tile = NDArray[Any]


@kernel("testing_same", shape=lambda x: x)
def same(x: Tile) -> Tile:
    """A copy."""
    return x.copy()


@kernel("testing_address", shape=lambda x: (1,), dtype=lambda x: np.int64)
def address(x: Tile) -> Tile:
    """Where in memory a tile lies."""
    return np.array([x.ctypes.data])


@kernel("testing_sum", shape=lambda x: ())
def summed(x: Tile) -> Any:
    """The sum of all elements, as NumPy gives it: a number, not an array."""
    return x.sum()


@tile_program
def passed_on(A: In, B: Out, S: Temp, N: int):
    """Tiles go through an intermediate array unchanged."""
    for i in range(N):
        S[i] = same(A[i])
        B[i] = same(S[i])


@tile_program
def passed_on_in_planes(A: In, B: Out, N: int, M: int, K: int):
    """The same with three axes."""
    for i in range(N):
        for j in range(M):
            for k in range(K):
                B[i, j, k] = same(A[i, j, k])


@tile_program
def single(A: In, B: Out, C: Out, S: Temp, N: int):
    """Arrays without axes have one tile."""
    S[()] = same(A[()])
    B[()] = same(S[()])
    for i in range(N):
        C[i] = same(S[()])


@tile_program
def totals(A: In, B: Out, N: int):
    """Each result is a number."""
    for i in range(N):
        B[i] = summed(A[i])


@tile_program
def addresses(A: In, B: Out, N: int):
    """Where the tiles lie that the kernels get."""
    for i in range(N):
        B[i] = address(A[i])


@tile_program
def nothing(A: In, B: Out, S: Temp, N: int):
    """Loops that are empty whatever the size."""
    for i in range(N):
        for _ in range(i, i):
            S[i] = same(A[i])
            B[i] = same(S[i])
