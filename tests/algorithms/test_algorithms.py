"""Every algorithm on the threads engine against NumPy: odd shapes, ragged tiles, four dtypes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linnet.algorithms.banded import band, banded
from linnet.algorithms.cholesky import cholesky, cholesky_factor
from linnet.algorithms.gemm import accumulated_gemm, gemm, matmul
from linnet.algorithms.qr import qr, qr_r
from linnet.algorithms.tsqr import tall_skinny_r, tsqr
from linnet.engines import Threads
from linnet.errors import InputError, LinAlgError
from linnet.tiles import TiledArray

ENGINE = Threads(2)
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
def test_cholesky(dtype, n, tile):
    a = positive(n, n, dtype)
    before = a.copy()
    near(cholesky_factor(a, tile=tile, engine=ENGINE).to_numpy(), np.linalg.cholesky(before), dtype)
    assert np.array_equal(a, before)
    tiled = TiledArray.from_numpy(a, tile)
    cholesky_factor(tiled, engine=ENGINE)
    assert np.array_equal(tiled.to_numpy(), before)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "n", "tile"), SHAPES)
def test_factorisations_and_products(dtype, m, n, tile):
    a, b = random(m * n, m, n, dtype), random(1, n, m + 2, dtype)
    check_qr(a, qr_r(a, tile=tile, engine=ENGINE).to_numpy(), dtype)
    check_qr(a, tall_skinny_r(a, tile=tile, engine=ENGINE).to_numpy(), dtype)
    check_band(a, band(a, tile=tile, engine=ENGINE).to_numpy(), tile, dtype)
    near(matmul(a, b, tile=tile, engine=ENGINE).to_numpy(), a @ b, dtype)


@pytest.mark.slow
@settings(max_examples=40)
@given(st.integers(1, 24), st.integers(1, 24), st.integers(1, 9), st.sampled_from(DTYPES), st.integers(0, 9))
def test_any_shape_any_tile_size(m, n, tile, dtype, seed):
    a = random(seed, m, n, dtype)
    check_qr(a, qr_r(a, tile=tile, engine=ENGINE).to_numpy(), dtype)
    check_qr(a, tall_skinny_r(a, tile=tile, engine=ENGINE).to_numpy(), dtype)
    check_band(a, band(a, tile=tile, engine=ENGINE).to_numpy(), tile, dtype)
    near(matmul(a, a.conj().T, tile=tile, engine=ENGINE).to_numpy(), a @ a.conj().T, dtype)
    spd = positive(seed, n, dtype)
    near(cholesky_factor(spd, tile=tile, engine=ENGINE).to_numpy(), np.linalg.cholesky(spd), dtype)


@pytest.mark.parametrize("leaves", range(1, 18))
def test_tsqr_with_any_number_of_leaves(leaves):
    a = random(leaves, leaves * 5 - 2, 3, "f8")
    assert TiledArray.from_numpy(a, (5, 3)).grid == (leaves, 1)
    check_qr(a, tall_skinny_r(a, tile=5, engine=ENGINE).to_numpy(), "f8")


@pytest.mark.parametrize("inner", [1, 2, 3, 5])
def test_accumulated_product(inner):
    a, b = random(0, 5, 2 * inner - 1, "f8"), random(1, 2 * inner - 1, 3, "f8")
    inputs = {"A": TiledArray.from_numpy(a, 2), "B": TiledArray.from_numpy(b, 2)}
    out = ENGINE.run(accumulated_gemm.bind(M=3, N=2, K=inner), inputs)["C"]
    near(out.to_numpy(), a @ b, "f8")


def test_empty_matrices():
    assert cholesky_factor(np.zeros((0, 0)), engine=ENGINE).shape == (0, 0)
    assert matmul(np.zeros((3, 0)), np.zeros((0, 2)), engine=ENGINE).to_numpy().tolist() == [[0, 0]] * 3
    assert qr_r(np.zeros((0, 3)), engine=ENGINE).shape == (0, 3)
    assert tall_skinny_r(np.zeros((3, 0)), engine=ENGINE).shape == (0, 0)
    assert band(np.zeros((0, 0)), engine=ENGINE).shape == (0, 0)


def test_results_are_the_same_on_any_number_of_workers():
    a = positive(0, 60, "f8")
    x = random(0, 50, 41, "f8")
    for run in (
        lambda engine: cholesky_factor(a, tile=7, engine=engine),
        lambda engine: qr_r(x, tile=7, engine=engine),
        lambda engine: band(x, tile=7, engine=engine),
    ):
        first = run(Threads(1)).to_numpy()
        for workers in (2, 3):
            assert np.array_equal(run(Threads(workers)).to_numpy(), first)


def test_integers_are_computed_in_float64():
    a = np.array([[4, 2], [2, 5]])
    assert cholesky_factor(a, tile=1, engine=ENGINE).to_numpy().tolist() == [[2.0, 0.0], [1.0, 2.0]]


def test_tiny_numbers_survive():
    a = positive(3, 12, "f8") * 1e-200
    factor = cholesky_factor(a, tile=5, engine=ENGINE).to_numpy()
    assert np.allclose(factor @ factor.T / 1e-200, a / 1e-200)
    x = random(3, 9, 9, "f8") * 1e-200
    r = qr_r(x, tile=4, engine=ENGINE).to_numpy()
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


def test_what_is_refused():
    with pytest.raises(
        InputError, match="Cholesky takes a square matrix in square tiles; got 2×3 in 1×1 tiles"
    ):
        cholesky_factor(np.ones((2, 3)))
    with pytest.raises(InputError, match=r"expected a matrix, got an array of shape \(3,\)"):
        qr_r(np.ones(3))
    with pytest.raises(InputError, match="cannot multiply 2×3 by 2×3"):
        matmul(np.ones((2, 3)), np.ones((2, 3)))
    wide = TiledArray.from_numpy(np.ones((6, 6)), (2, 3))
    with pytest.raises(
        InputError, match=r"QR takes square tiles on the diagonal .* got row heights \[2, 2\]"
    ):
        qr_r(wide)
    with pytest.raises(InputError, match="TSQR takes a matrix in one column of tiles"):
        tall_skinny_r(wide)
    with pytest.raises(LinAlgError, match="not positive definite"):
        cholesky_factor(-np.eye(3), tile=2)
