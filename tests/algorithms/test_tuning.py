"""Automatic tile sizes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import linnet as ln
from linnet import linalg
from linnet.algorithms.tuning import tile_size
from linnet.engines import Threads
from linnet.errors import InputError

KINDS = ["gemm", "cholesky", "triangular", "lu", "qr", "svd", "eigh"]


@given(st.integers(0, 100_000), st.integers(0, 100_000), st.sampled_from(KINDS), st.sampled_from("fdFD"))
def test_sizes_are_positive_multiples_and_within_bounds(rows, columns, kind, dtype):
    side = tile_size((rows, columns), dtype, kind)
    assert side % 32 == 0
    assert 32 <= side <= 1500
    assert side == tile_size((columns, rows), dtype, kind)


@pytest.mark.parametrize("kind", KINDS[:-2])  # a band has one width, whatever the size
def test_large_matrices_have_at_least_eight_by_eight_tiles(kind):
    for n in (2048, 3000, 4096, 5000, 8192):
        assert n / tile_size((n, n), np.float64, kind) > 7


def test_wider_elements_get_smaller_tiles():
    sizes = [tile_size((8192, 8192), code, "cholesky") for code in "fdD"]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1]


def test_unknown_kind():
    with pytest.raises(InputError, match="no tile size is known for 'fft'; there are gemm, cholesky"):
        tile_size((1, 1), "d", "fft")


@given(st.integers(1024, 100_000), st.sampled_from(KINDS), st.sampled_from("fdFD"))
def test_a_budget_holds_five_lines_of_tiles(n, kind, dtype):
    item = np.dtype(dtype).itemsize
    memory = 5 * 200 * n * item
    side = tile_size((n, n), dtype, kind, memory)
    assert side <= 200
    assert side == min(tile_size((n, n), dtype, kind), 192)
    assert tile_size((n, n), dtype, kind, 1) == 32


@pytest.mark.slow
def test_algorithms_choose_tiles_that_fit_the_budget():
    rng = np.random.default_rng(0)
    a = rng.standard_normal((1100, 1100))
    engine = Threads(2, memory="4 MB")
    positive = a @ a.T + 1100 * np.eye(1100)
    lower = linalg.cholesky(positive, engine=engine)
    assert np.allclose(lower @ lower.T, positive)
    assert np.allclose(linalg.matmul(a, a, engine=engine), a @ a)
    assert np.allclose(a @ linalg.solve(a, a[:, :3], engine=engine), a[:, :3])
    r = linalg.qr(a, "r", engine=engine)
    assert np.allclose(r.T @ r, a.T @ a)
    with ln.init(engine):
        x = ln.asarray(a)
        lower = linalg.cholesky(ln.asarray(positive)).compute()
        assert np.allclose(lower @ lower.T, positive)
        assert np.allclose((x @ x).compute(), a @ a)
        assert np.allclose(a @ linalg.solve(x, x[:, :3]).compute(), a[:, :3])
        r = linalg.qr(x, "r").compute()
        assert np.allclose(r.T @ r, a.T @ a)
