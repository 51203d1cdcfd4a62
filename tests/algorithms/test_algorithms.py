"""Every algorithm on the threads engine against NumPy: odd shapes, ragged tiles, four dtypes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ways import ENGINE, WAYS
from ways import run as run_in

from linnet import linalg
from linnet.algorithms.banded import banded
from linnet.algorithms.cholesky import cholesky
from linnet.algorithms.gemm import accumulated_gemm, gemm
from linnet.algorithms.householder import qr
from linnet.algorithms.tsqr import tsqr
from linnet.engines import Threads
from linnet.errors import LinAlgError
from linnet.tiles import TiledArray

DTYPES = ["f4", "f8", "c8", "c16"]
SHAPES = [
    (7, 7, 4), (4, 9, 4), (9, 4, 4), (13, 10, 3), (10, 13, 3), (1, 1, 1), (1, 5, 2), (5, 1, 2), (40, 33, 8),
    (3, 3, 8), (12, 12, 4), (16, 7, 4), (7, 16, 4),
]  # fmt: skip


def random(seed, rows, columns, dtype):
    rng = np.random.default_rng(seed)
    real = rng.standard_normal((rows, columns))
    full = real + 1j * rng.standard_normal((rows, columns)) if dtype.startswith("c") else real
    return full.astype(dtype)


def positive(seed, n, dtype):
    x = random(seed, n, n, dtype)
    return (x @ x.conj().T + n * np.eye(n)).astype(dtype)


def tree_r(a, tile):
    """`R` by a binary tree, whatever the shape."""
    leaves = TiledArray.from_numpy(a, (max(tile, a.shape[1]), max(1, a.shape[1])))
    return ENGINE.run(tsqr.bind(N=leaves.grid[0]), {"A": leaves})["R"].to_numpy()


def band(a, tile, engine=ENGINE):
    """An upper band matrix with the singular values of `a`."""
    matrix = TiledArray.from_numpy(a, tile)
    P, Q = matrix.grid
    return engine.run(banded.bind(P=P, Q=Q), {"A": matrix})["B"].to_numpy()


def near(actual, expected, dtype):
    size = max(1, *expected.shape)
    scale = max(1.0, np.abs(expected).max(initial=0))
    assert actual.shape == expected.shape
    assert actual.dtype == dtype
    assert np.abs(actual - expected).max(initial=0) <= 30 * size * scale * np.finfo(dtype).eps


def check_qr(a, r, dtype):
    assert r.shape == (min(a.shape), a.shape[1])
    assert not np.tril(r, -1).any()
    near(r.conj().T @ r, a.conj().T @ a, dtype)
    near(
        np.abs(np.diag(r))[:, None],
        np.abs(np.diag(np.linalg.qr(a)[1]))[:, None],
        np.zeros(0, dtype).real.dtype,
    )


def check_band(a, b, tile, dtype):
    rows, columns = np.nonzero(b)
    assert (columns - rows).min(initial=0) >= 0
    assert (columns - rows).max(initial=0) <= 2 * tile - 1
    expected = np.linalg.svd(a, compute_uv=False)
    found = np.linalg.svd(b, compute_uv=False)[: len(expected)]
    near(found[:, None], expected[:, None], expected.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "tile"), [(1, 1), (3, 8), (7, 4), (12, 4), (23, 5), (64, 16)])
def test_cholesky(dtype, n, tile, run):
    a = positive(n, n, dtype)
    before = a.copy()
    near(run("cholesky", a, tile=tile), np.linalg.cholesky(before), dtype)
    assert np.array_equal(a, before)
    tiled = TiledArray.from_numpy(a, tile)
    linalg.cholesky(tiled, engine=ENGINE)
    assert np.array_equal(tiled.to_numpy(), before)


@pytest.mark.sample(36)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "n", "tile"), SHAPES)
def test_factorisations_and_products(dtype, m, n, tile, run):
    a, b = random(m * n, m, n, dtype), random(1, n, m + 2, dtype)
    check_qr(a, run("qr", a, mode="r", tile=tile), dtype)
    check_qr(a, tree_r(a, tile), dtype)
    check_band(a, band(a, tile), tile, dtype)
    near(run("matmul", a, b, tile=tile), a @ b, dtype)


@pytest.mark.slow
@settings(max_examples=30)
@given(
    st.integers(1, 24), st.integers(1, 24), st.integers(1, 9), st.sampled_from(DTYPES), st.integers(0, 9),
    st.sampled_from(WAYS),
)  # fmt: skip
def test_any_shape_any_tile_size(m, n, tile, dtype, seed, way):
    a = random(seed, m, n, dtype)
    check_qr(a, run_in(way, "qr", a, mode="r", tile=tile), dtype)
    check_qr(a, tree_r(a, tile), dtype)
    check_band(a, band(a, tile), tile, dtype)
    near(run_in(way, "matmul", a, a.conj().T, tile=tile), a @ a.conj().T, dtype)
    spd = positive(seed, n, dtype)
    near(run_in(way, "cholesky", spd, tile=tile), np.linalg.cholesky(spd), dtype)


@pytest.mark.parametrize("leaves", range(1, 18))
def test_tsqr_with_any_number_of_leaves(leaves):
    a = random(leaves, leaves * 5 - 2, 3, "f8")
    assert TiledArray.from_numpy(a, (5, 3)).grid == (leaves, 1)
    check_qr(a, tree_r(a, 5), "f8")
    if leaves > 4:  # by its name, a matrix goes to the tree if it is skinny
        check_qr(a, linalg.qr(a, "r", tile=5, engine=ENGINE), "f8")


@pytest.mark.parametrize("inner", [1, 2, 3, 5])
def test_accumulated_product(inner):
    a, b = random(0, 5, 2 * inner - 1, "f8"), random(1, 2 * inner - 1, 3, "f8")
    inputs = {"A": TiledArray.from_numpy(a, 2), "B": TiledArray.from_numpy(b, 2)}
    out = ENGINE.run(accumulated_gemm.bind(M=3, N=2, K=inner), inputs)["C"]
    near(out.to_numpy(), a @ b, "f8")


@pytest.mark.parametrize("tile", [None, 2])
def test_empty_matrices(tile, run):
    assert run("cholesky", np.zeros((0, 0)), tile=tile).shape == (0, 0)
    assert run("matmul", np.zeros((3, 0)), np.zeros((0, 2)), tile=tile).tolist() == [[0, 0]] * 3
    assert run("qr", np.zeros((0, 3)), mode="r", tile=tile).shape == (0, 3)
    assert run("qr", np.zeros((3, 0)), mode="r", tile=tile).shape == (0, 0)
    assert run("solve_triangular", np.zeros((0, 0)), np.zeros((0, 2)), tile=tile).shape == (0, 2)


@pytest.mark.slow
def test_results_are_the_same_on_any_number_of_workers():
    a = positive(0, 60, "f8")
    x = random(0, 50, 41, "f8")
    for run in (
        lambda engine: linalg.cholesky(a, tile=7, engine=engine),
        lambda engine: linalg.qr(x, "r", tile=7, engine=engine),
        lambda engine: band(x, 7, engine),
    ):
        first = run(Threads(1))
        for workers in (2, 3):
            assert np.array_equal(run(Threads(workers)), first)


def test_integers_are_computed_in_float64(run):
    a = np.array([[4, 2], [2, 5]])
    assert run("cholesky", a, tile=1).tolist() == [[2.0, 0.0], [1.0, 2.0]]


def test_tiny_numbers_survive(run):
    a = positive(3, 12, "f8") * 1e-200
    factor = run("cholesky", a, tile=5)
    assert np.allclose(factor @ factor.T / 1e-200, a / 1e-200)
    x = random(3, 9, 9, "f8") * 1e-200
    r = run("qr", x, mode="r", tile=4)
    assert np.allclose(np.abs(r) * 1e200, np.abs(np.linalg.qr(x * 1e200)[1]))


def test_tsqr_tree_agrees_with_the_paper():
    """R[6, 1] is read by the task at level 1 with i = 4: its partner is 2**1 away."""
    bound = tsqr.bind(N=8)
    call = bound.call((1, (1, 4)))
    assert [repr(key) for key in call.args[:2]] == ["W[4, 1]", "W[6, 1]"]


def test_which_programs_are_proved():
    assert cholesky.proven
    assert gemm.proven
    assert accumulated_gemm.proven
    assert qr.proven
    assert banded.proven
    assert not tsqr.proven  # 2**level: checked when it runs


def test_what_is_refused(run):
    with pytest.raises(LinAlgError, match="Cholesky takes a square matrix; got 2×3"):
        run("cholesky", np.ones((2, 3)))
    with pytest.raises(LinAlgError, match=r"a must be a matrix or a stack of matrices, got .* shape \(3,\)"):
        run("qr", np.ones(3), mode="r")
    with pytest.raises(ValueError, match="matmul: .*size 2 is different from 3"):
        run("matmul", np.ones((2, 3)), np.ones((2, 3)))
    with pytest.raises(LinAlgError, match="not positive definite"):
        run("cholesky", -np.eye(3), tile=2)


def test_tiles_of_any_form_are_cut_anew():
    a = positive(1, 12, "f8")
    wide = TiledArray.from_numpy(a, (2, 3))
    near(linalg.cholesky(wide, engine=ENGINE), np.linalg.cholesky(a), "f8")
    check_qr(a, linalg.qr(wide, "r", engine=ENGINE), "f8")
    near(linalg.solve(wide, TiledArray.from_numpy(a, (5, 4)), engine=ENGINE), np.eye(12), "f8")
