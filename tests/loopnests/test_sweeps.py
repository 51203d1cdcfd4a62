"""Loops over time around assignments to matrices: several sweeps in one task, with the values of the plain run."""

from __future__ import annotations

import numpy as np
import pytest
from comparing import same

import linnet as ln
from linnet.kernels.arrays import sweeps
from linnet.loopnests import nests, sweeping

RNG = np.random.default_rng(8)


@pytest.fixture(autouse=True)
def seen(monkeypatch):
    """Whether loops became sweeps."""
    found = []

    def swept(machine, part):
        found.append(sweeping.swept(machine, part))
        return found[-1]

    monkeypatch.setattr(nests, "swept", swept)
    return found


@ln.loops
def heat(A, B, steps):
    n, m = A.shape
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                B[i, j] = A[i, j] + 0.1 * (
                    A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1] - 4 * A[i, j]
                )
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                A[i, j] = B[i, j]
    return A


@ln.loops
def lopsided(A, B, C, steps):
    """Far above, little below; other boxes; an array that is only read; a choice."""
    n, m = A.shape
    for t in range(2, steps + 2):
        for i in range(3, n - 1):
            for j in range(2, m):
                B[i, j] = A[i - 3, j - 2] - C[i + 1, j] if C[i, j] > 0 else abs(A[i, j - 1])
        for i in range(n - 2):
            for j in range(m - 1):
                A[i + 1, j] = min(B[i, j], B[i + 2, j + 1])


@ln.loops
def moved(A, B, steps):
    """Reads the cells below before these are written, and sets a corner."""
    n, m = A.shape
    for t in range(steps):
        for i in range(n - 1):
            for j in range(m):
                A[i, j] = A[i + 1, j] + B[i, j]
        for i in range(1):
            for j in range(min(2, m)):
                B[i, j] = 3
    return A


@ln.loops
def updated(A, B, steps):
    n, m = A.shape
    for t in range(steps):
        for i in range(1, n):
            for j in range(m):
                B[i, j] = A[i - 1, j] * 2
        for i in range(n):
            for j in range(1, m):
                A[i, j] += B[i, j - 1]
        for i in range(n):
            for j in range(m - 1):
                B[i, j] = max(B[i, j], A[i, j + 1])


def matrices(dtype, shape, count):
    if np.dtype(dtype).kind == "b":
        return [RNG.random(shape) < 0.5 for _ in range(count)]
    made = [RNG.integers(-9, 10, shape).astype(dtype) for _ in range(count)]
    if np.dtype(dtype).kind == "f":
        for each in made:
            each.flat[:: max(2, each.size // 3)] = [np.nan, np.inf, -np.inf, -0.0][RNG.integers(4)]
    return made


@pytest.mark.parametrize("compiled", [True, False], ids=["c", "numpy"])
@pytest.mark.parametrize("steps", [1, 2, 5, 19])
@pytest.mark.parametrize("shape", [(3, 3), (5, 9), (40, 7), (33, 61)])
@pytest.mark.parametrize("function", [heat, lopsided, moved, updated], ids=lambda each: each.__name__)
def test_the_values_of_the_plain_function(function, shape, steps, compiled, monkeypatch, seen):
    if not compiled:
        monkeypatch.setattr(sweeps, "_library", lambda: None)
    monkeypatch.setattr(sweeping, "CACHE", int(RNG.integers(1, 20000)))
    count = 3 if function is lopsided else 2
    if function is lopsided and shape[0] < 5:
        return
    with np.errstate(all="ignore"):
        same(function, *matrices(np.float64, shape, count), steps, exact=True)
    assert steps == 1 or (seen and all(seen))


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int32, np.int16, np.complex128, np.uint8])
def test_dtypes(dtype, seen):
    with np.errstate(all="ignore"):
        same(moved, *matrices(dtype, (21, 13), 2), 6, exact=True)
        if np.dtype(dtype).kind != "c":
            same(updated, *matrices(dtype, (21, 13), 2), 6, exact=True)
    assert seen


def test_narrow_cache_makes_many_tiles(monkeypatch):
    A = RNG.random((300, 40))
    monkeypatch.setattr(sweeping, "CACHE", 40 * 8 * 2 * 20)
    made = heat(ln.asarray(A), ln.asarray(A), 11)
    assert len(made.chunks[0]) > 10
    same(heat, A, A.copy(), 11, exact=True)


def test_rows_longer_than_a_piece():
    same(heat, RNG.random((7, 1300)), RNG.random((7, 1300)), 3, exact=True)


@ln.loops
def narrowing(A, B, steps):
    n, m = A.shape
    for t in range(steps):
        for i in range(1, n - t):
            for j in range(1, m):
                B[i, j] = A[i - 1, j] + t
        for i in range(n):
            for j in range(m):
                A[i, j] = B[i, j]
    return A


def test_what_changes_with_time_goes_another_way(seen):
    same(narrowing, *matrices(np.float64, (8, 6), 2), 4, exact=True)
    assert not any(seen)


@ln.loops
def fractions(A, B, steps):
    n, m = A.shape
    for t in range(steps):
        for i in range(n):
            for j in range(m):
                A[i, j] = B[i, j] / 2
        for i in range(n):
            for j in range(m):
                B[i, j] = A[i, j]


def test_refusals_are_the_same():
    A = np.ones((4, 4), int)
    with pytest.raises(ln.LoopError, match="cannot hold them"):
        fractions(A, A.copy(), 3)
