"""Kernels and programs that the engine suite runs.

They are registered when this module is imported, under names that begin with `testing_`:
an engine with workers elsewhere must have them import it.
"""
# pyright: reportInvalidTypeForm=false, reportIndexIssue=false

from __future__ import annotations

import time
from collections.abc import Sequence
from math import ceil, log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.kernels import add, gemm_add, kernel
from linnet.kernels import gemm as multiply
from linnet.programs import In, Out, Table, Temp, tile_program
from linnet.session import current_engine
from linnet.tiles import TiledArray

Tile = NDArray[Any]


@kernel("testing_step", shape=lambda x: x, inplace=0)
def step(x: Tile, *, overwrite: Sequence[int] = ()) -> Tile:
    """`x + 1`, in place where that is allowed."""
    return np.add(x, 1, out=x if 0 in overwrite else None)


@kernel("testing_steps", shape=lambda tiles: list(tiles), inplace=0)
def steps(tiles: list[Tile], *, overwrite: Sequence[int] = ()) -> list[Tile]:
    """`x + 1` of each tile of a range, in place where that is allowed."""
    return [np.add(x, 1, out=x if 0 in overwrite else None) for x in tiles]


@kernel("testing_scaled", shape=lambda x, factor, offset=0: x)
def scaled(x: Tile, factor: float, *, offset: float = 0) -> Tile:
    """`factor·x + offset`."""
    return np.asarray(factor * x + offset)


@kernel("testing_ends", outputs=2, shape=lambda x: ((1,), (1,)))
def ends(x: Tile) -> tuple[Tile, Tile]:
    """The smallest and the largest element."""
    return x.min(keepdims=True), x.max(keepdims=True)


@kernel("testing_cut")
def cut(x: Tile) -> list[Tile]:
    """The elements, each a tile."""
    return [x[i : i + 1] for i in range(len(x))]


@kernel("testing_total", shape=lambda tiles: tiles[0])
def total(tiles: list[Tile]) -> Tile:
    """The sum of a range of tiles."""
    return np.asarray(sum(tiles[1:], tiles[0]))


@kernel("testing_quotient", shape=lambda x, y: x)
def quotient(x: Tile, y: Tile) -> Tile:
    """`x / y`, an error if any `y` is 0."""
    if not np.all(y):
        raise ZeroDivisionError("a divisor is 0")
    return x / y


@kernel("testing_definite", shape=lambda x: x)
def definite(x: Tile) -> Tile:
    """The square root, an error of linear algebra if there is none."""
    if np.any(x < 0):
        raise np.linalg.LinAlgError("not positive definite")
    return np.sqrt(x)


@kernel("testing_nap", shape=lambda x, seconds: x)
def nap(x: Tile, seconds: float) -> Tile:
    """A copy, after a while."""
    time.sleep(seconds)
    return x.copy()


@kernel("testing_nested", shape=lambda x: x)
def nested(x: Tile) -> Tile:
    """`2·x`, by a program that the engine in use where this runs is given."""
    bound = doubled.bind(N=len(x))
    return current_engine().run(bound, {"B": TiledArray.from_numpy(x, 1)})["D"].to_numpy()


@tile_program
def affine(A: In, B: In, C: Out, P: Temp, N: int, K: int):
    """A product, one task for each pair of tiles."""
    assert K >= 2
    for i in range(N):
        for j in range(N):
            P[1, i, j] = multiply(A[i, 0], B[0, j])
            for k in range(1, K - 1):
                P[k + 1, i, j] = gemm_add(P[k, i, j], A[i, k], B[k, j])
            C[i, j] = gemm_add(P[K - 1, i, j], A[i, K - 1], B[K - 1, j])


@tile_program
def tree(A: In, R: Out, W: Temp("A"), N: int):
    """A sum by halves: partners are powers of two apart."""
    assert N >= 2
    for level in range(ceil(log2(N))):
        for i in range(0, N, 2 ** (level + 1)):
            if i + 2**level < N:
                W[level + 1, i] = add(W[level, i], W[level, i + 2**level])
            else:
                W[level + 1, i] = scaled(W[level, i], 1)
    R[0] = scaled(W[ceil(log2(N)), 0], 1)


@tile_program
def ranges(A: In, B: Out, S: Temp, N: int, M: int):
    """One task makes many tiles, another reads them all."""
    for i in range(N):
        S[i, 0:M] = cut(A[i])
        B[i] = total(S[i, 0:M])


@tile_program
def marching(A: In, B: Out, C: Out, S: Temp("A"), N: int, M: int):
    """M steps of all tiles at once, in place where the engine can; some of the first are read again."""
    assert M >= 2
    for m in range(M):
        S[m + 1, 0:N] = steps(S[m, 0:N])
    for i in range(N):
        B[i] = scaled(S[M, i], 1)
        if i % 2 == 0:
            C[i // 2] = scaled(S[1, i], 1)


@tile_program
def several(A: In, Low: Out, High: Out, N: int):
    """Two results of one task."""
    for i in range(N):
        Low[i], High[i] = ends(A[i])


@tile_program
def filled(A: In, B: Out(fill=7), C: Out, N: int):
    """Tiles that nobody writes are read, and are part of the result."""
    assert N >= 2
    for i in range(N):
        for j in range(N):
            if j != i:
                B[i, j] = scaled(A[i, j], 2)
    for i in range(N):
        for j in range(N):
            C[i, j] = step(B[i, j])


@tile_program
def patched(A: In, C: Out, D: Out, B: Temp(fill=7), S: Temp("B"), N: int):
    """Tiles that nobody writes of an intermediate array: read by themselves, in ranges, as a version 0."""
    assert N >= 2
    for i in range(N):
        for j in range(N):
            if j != i:
                B[i, j] = scaled(A[i, j], 2)
    for i in range(N):
        C[i, 0:N] = steps(B[i, 0:N])
        for j in range(N):
            S[1, i, j] = step(S[0, i, j])
            D[i, j] = add(S[1, i, j], B[i, j])


@tile_program
def squared(B: In, E: Out, N: int):
    """What `filled` may be followed by."""
    for i in range(N):
        for j in range(N):
            E[i, j] = multiply(B[i, j], B[j, i])


@tile_program
def tabled(A: In, B: Out, T: Table, N: int):
    """Where a tile goes is looked up."""
    for i in range(N):
        B[i] = scaled(A[T[i]], 1, offset=i)


@tile_program
def chain(A: In, B: Out, S: Temp("A"), N: int, M: int):
    """M steps on each of N tiles, in place where the engine can."""
    for i in range(N):
        for m in range(M):
            S[m + 1, i] = step(S[m, i])
        B[i] = scaled(S[M, i], 1)


@tile_program
def doubled(B: In, D: Out, N: int):
    """What `chain` may be followed by."""
    for i in range(N):
        D[i] = add(B[i], B[i])


@tile_program
def divided(A: In, B: In, C: Out, N: int):
    """Fails where a divisor is 0."""
    for i in range(N):
        C[i] = quotient(A[i], B[i])


@tile_program
def rooted(A: In, B: Out, N: int):
    """Fails where an element is negative."""
    for i in range(N):
        B[i] = definite(A[i])


@tile_program
def slow(A: In, B: Out, N: int):
    """A hundredth of a second a task."""
    for i in range(N):
        B[i] = nap(A[0], 0.01)


@tile_program
def nesting(A: In, B: Out, N: int):
    """A task that itself runs a program, for each tile."""
    for i in range(N):
        B[i] = nested(A[i])
