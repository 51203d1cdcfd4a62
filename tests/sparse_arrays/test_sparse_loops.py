"""Loops over sparse arrays, against the plain function on the dense ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import linnet as ln


def _matrix(n: int, m: int, density: float = 0.2, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    made = rng.random((n, m))
    made[rng.random((n, m)) > density] = 0
    return made


@ln.loops
def times_vector(A, x):
    y = ln.zeros(A.shape[0])
    for i, j in ln.grid(*A.shape):
        y[i] += A[i, j] * x[j]
    return y


@ln.loops
def product(A, B):
    C = ln.zeros((A.shape[0], B.shape[1]))
    for i, j, k in ln.grid(A.shape[0], B.shape[1], A.shape[1]):
        C[i, j] += A[i, k] * B[k, j]
    return C


@ln.loops
def pagerank(A, steps, damping):
    n = A.shape[0]
    out = ln.zeros(n)
    for i, j in ln.grid(n, n):
        out[i] += A[i, j]
    rank = ln.full(n, 1.0 / n)
    for _ in range(steps):
        share = ln.zeros(n)
        dangling = 0.0
        for i in range(n):
            if out[i] > 0:
                share[i] = rank[i] / out[i]
            else:
                dangling += rank[i]
        new = ln.zeros(n)
        for i, j in ln.grid(n, n):
            new[j] += A[i, j] * share[i]
        for j in range(n):
            new[j] = (1 - damping) / n + damping * (new[j] + dangling / n)
        rank = new
    return rank


@ln.loops
def shorter(D, F):
    n = D.shape[0]
    E = ln.full((n, n), ln.inf)
    for i, j, k in ln.grid(n, n, n):
        E[i, j] = min(E[i, j], D[i, k] + F[k, j])
    return E


@ln.loops
def column_sums(A):
    s = ln.zeros(A.shape[1])
    for i, j in ln.grid(*A.shape):
        s[j] += A[i, j]
    return s


@pytest.mark.slow
def test_sums_of_products() -> None:
    a, b, x = _matrix(23, 17), _matrix(17, 12, seed=1), np.arange(17.0)
    A, B = ln.sparse(a, chunks=5), ln.sparse(b, chunks=4)
    np.testing.assert_allclose(times_vector(A, x).compute(), times_vector.serial(a, x))
    np.testing.assert_allclose(times_vector(scipy.sparse.csr_array(a), x).compute(), a @ x)
    for one, other in ((A, B), (A, b), (a, B)):
        np.testing.assert_allclose(product(one, other).compute(), a @ b)
    np.testing.assert_allclose(column_sums(A).compute(), a.sum(axis=0))


@pytest.mark.slow
def test_pagerank() -> None:
    a = (_matrix(30, 30) > 0).astype(float)
    a[7] = 0
    np.testing.assert_allclose(
        pagerank(ln.sparse(a, chunks=8), 4, 0.85).compute(), pagerank.serial(a, 4, 0.85), rtol=1e-12
    )


@pytest.mark.slow
def test_shortest_paths() -> None:
    d = _matrix(14, 14, 0.3)
    d[d == 0] = np.inf
    D = ln.sparse(d, chunks=4, fill=np.inf)
    wanted = shorter.serial(d, d)
    for one, other in ((D, D), (D, d), (d, D)):
        np.testing.assert_array_equal(shorter(one, other).compute(), wanted)


def test_a_fill_that_is_no_identity_is_refused() -> None:
    D = ln.sparse(np.eye(4), chunks=2)
    with pytest.raises((ln.InputError, ln.LoopError)):
        shorter(D, D).compute()


def test_large_grids_are_no_work() -> None:
    n = 100_000
    rng = np.random.default_rng(0)
    places = tuple(rng.integers(0, n, (2, 1000)))
    x = rng.random(n)
    values = rng.random(1000)
    A = ln.sparse((values, places), shape=(n, n))
    wanted = np.zeros(n)
    np.add.at(wanted, places[0], values * x[places[1]])
    np.testing.assert_allclose(times_vector(A, x).compute(), wanted)
