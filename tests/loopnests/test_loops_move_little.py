"""What products of loops move and hold: blocks of inputs go to a row or a column of nodes, sums stay where
they are, and the blocks of all pairs never exist at once."""

from __future__ import annotations

import numpy as np
import pytest

import linnet as ln

TILES, SIDE = 16, 100
BYTES = 8 * (TILES * SIDE) ** 2


@ln.loops
def plus_times(A, B):
    n = A.shape[0]
    C = ln.zeros((n, n))
    for i, j, k in ln.grid(n, n, n):
        C[i, j] += A[i, k] * B[k, j]
    return C


@ln.loops
def min_plus(A, B):
    n = A.shape[0]
    C = ln.full((n, n), ln.inf)
    for i, j, k in ln.grid(n, n, n):
        C[i, j] = min(C[i, j], A[i, k] + B[k, j])
    return C


def matrix():
    n = TILES * SIDE
    return ln.asarray(np.ones((n, n)), chunks=SIDE)


@pytest.mark.parametrize("nodes", [4, 16])
def test_each_block_reaches_a_row_or_a_column_of_nodes(nodes):
    plan = ln.plan(plus_times(matrix(), matrix()), cluster=ln.Cluster(nodes, workers=1))
    side = int(np.sqrt(nodes))
    # Both inputs reach √p nodes, where they are and √p - 1 others; partial sums move nowhere.
    assert 0 < plan.bytes_moved <= (side - 1) * 2 * BYTES


@pytest.mark.parametrize("product", [plus_times, min_plus])
def test_blocks_of_all_pairs_never_exist_at_once(product):
    plan = ln.plan(product(matrix(), matrix()), cluster=ln.Cluster(1, workers=1))
    assert plan.peak_memory.sum() <= 5.5 * BYTES  # the pairs would be 16 matrices


def test_no_array_of_all_steps_is_made():
    """10⁵ × 10⁵ steps on vectors: an array of them would have 80 GB."""

    @ln.loops
    def moments(x, y):
        s = 0.0
        for i, j in ln.grid(x.shape[0], y.shape[0]):
            s += x[i] * y[j]
        for i in range(x.shape[0]):
            for j in range(max(0, i - 1), min(y.shape[0], i + 2)):
                s += x[i] - y[j]
        return s

    small = np.arange(6.0)
    assert moments(small, small).compute() == moments.serial(small, small)
    x = ln.ones(100_000)
    found = ln.plan(ln.einop("s += x[i] * y[j]", s=np.zeros(()), x=x, y=x), cluster=ln.Cluster(1, workers=1))
    assert found.peak_memory.sum() < 10 * x.nbytes
