"""Storages of one's own: a packed half and a band; loops read what is kept, nothing else is made."""

from __future__ import annotations

import numpy as np
import pytest

import linnet as ln


def in_triangle(line, i, j):
    return line[i * (i + 1) // 2 + j] if i >= j else 0.0


def as_line(x):
    return x[np.tril_indices(x.shape[0])]


def in_band_of_five(diagonals, i, j):
    return diagonals[i - j + 2, j] if -2 <= i - j <= 2 else 0.0


@ln.loops
def five_diagonals(x):
    n = x.shape[0]
    kept = ln.zeros((5, n))
    for d in range(5):
        for j in range(max(0, 2 - d), min(n, n + 2 - d)):
            kept[d, j] = x[j + d - 2, j]
    return kept


packed = ln.storage("packed half", view=in_triangle, store=as_line)
banded = ln.storage("band of five", view=in_band_of_five, store=five_diagonals)
RNG = np.random.default_rng(0)
LOWER = np.tril(RNG.standard_normal((9, 9)))
BAND = np.triu(np.tril(RNG.standard_normal((9, 9)), 2), -2)
CASES = pytest.mark.parametrize(("kept_as", "x"), [(packed, LOWER), (banded, BAND)])


@CASES
@pytest.mark.parametrize("chunks", [None, 4])
def test_what_is_stored_comes_back(kept_as, x, chunks):
    stored = kept_as(ln.asarray(x, chunks=chunks))
    np.testing.assert_array_equal(stored.compute(), x)
    np.testing.assert_array_equal(np.asarray(stored), x)
    assert (stored.shape, stored.ndim, stored.dtype) == ((9, 9), 2, np.float64)
    assert stored.kept.size == 45


@ln.loops
def products(A, v, B):
    n = A.shape[0]
    y, C, total = ln.zeros(n), ln.zeros((n, n)), 0.0
    for i, j in ln.grid(n, n):
        y[i] += A[i, j] * v[j]
    for i, j, k in ln.grid(n, n, n):
        C[i, j] += A[i, k] * B[k, j]
    for i in range(n):
        if A[i, i] > 0:
            total += A[i, i]
    return y, C, total


@CASES
@pytest.mark.parametrize("chunks", [None, 4])
def test_loops_read_what_is_kept(kept_as, x, chunks):
    v, B = RNG.standard_normal(9), RNG.standard_normal((9, 9))
    stored = kept_as(ln.asarray(x, chunks=chunks))
    found = ln.compute(*products(stored, v, B))
    for one, other in zip(found, (x @ v, x @ B, np.diagonal(x)[np.diagonal(x) > 0].sum()), strict=True):
        np.testing.assert_allclose(one, other)
    np.testing.assert_allclose(products.serial(stored, v, B)[0], x @ v)  # plain Python reads elements


def test_loops_over_the_band_alone():
    @ln.loops
    def product(A, v):
        n = A.shape[0]
        y = ln.zeros(n)
        for i in range(n):
            for j in range(max(0, i - 2), min(n, i + 3)):
                y[i] += A[i, j] * v[j]
        return y

    np.testing.assert_allclose(product(banded(BAND), np.arange(9.0)).compute(), BAND @ np.arange(9.0))


def test_forward_substitution_on_a_packed_triangle():
    @ln.loops
    def solve(L, b):
        n = b.shape[0]
        x = ln.zeros(n)
        for i in range(n):
            s = b[i]
            for j in range(i):
                s -= L[i, j] * x[j]
            x[i] = s / L[i, i]
        return x

    lower = LOWER + 3 * np.eye(9)
    found = solve(packed(lower), np.ones(9)).compute()
    np.testing.assert_allclose(found, np.linalg.solve(lower, np.ones(9)))


def test_the_array_is_never_made():
    """A line of 2⁴⁰ elements' triangle is far beyond memory; what a loop reads of it is not."""
    n = 1 << 20

    def of_two_lines(kept, i, j):
        return kept[0, i] * kept[1, j]

    outer = ln.storage("outer product", view=of_two_lines, store=lambda x: ln.ones((2, n)))
    huge = outer(ln.zeros((n, n)))

    @ln.loops
    def trace(A):
        s = 0.0
        for i in range(A.shape[0]):
            s += A[i, i]
        return s

    assert trace(huge).compute() == n


@pytest.mark.parametrize("index", ["i + 1, j", "i, j - 1", "2 * i, j"])
def test_indices_beyond_the_array_are_refused(index):
    with pytest.raises(ln.LoopError, match=r"the index of axis"):
        ln.einop(f"y[i] += x[{index}] * v[j] * w[i]", x=banded(BAND), v=np.ones(9), w=np.ones(9))


def test_what_is_refused():
    stored = packed(LOWER)
    for wrong in (lambda: stored + 1, lambda: ln.sum(stored), lambda: stored @ LOWER, lambda: stored[1:]):
        with pytest.raises(ln.InputError, match=r"todense\(\)"):
            wrong()
    with pytest.raises(ln.InputError, match="cannot be assigned"):
        stored[0, 0] = 1.0
    with pytest.raises(IndexError, match="index 9 is out of bounds for axis 1 with size 9"):
        stored[0, 9]

    @ln.loops
    def assigned(A):
        for i in range(A.shape[0]):
            A[i, i] = 1.0

    with pytest.raises(ln.LoopError, match="elements of A cannot be assigned"):
        assigned(stored)
    with pytest.raises(ln.InputError, match="takes 2 indices, and the array has 1 axes"):
        packed(np.ones(3))
    with pytest.raises(ln.InputError, match="already"):
        ln.storage("band of five", view=in_triangle, store=as_line)
    with pytest.raises(ln.InputError, match="lambda"):
        ln.storage("other", view=lambda kept, i: kept[i], store=as_line)
    with pytest.raises(ln.InputError, match="must give an array"):
        ln.storage("nothing", view=in_triangle, store=lambda x: None)(LOWER)
