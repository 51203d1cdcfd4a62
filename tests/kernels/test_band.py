"""Kernels of the reduction to a band, against dense reflectors."""

from __future__ import annotations

import numpy as np
import pytest

from linnet.kernels.linalg.reduce_to_band import (
    apply_panel,
    half_inner,
    hermitian_product,
    project_columns,
    project_rows,
    rank_two_factors,
    reflect_below,
    reflect_columns,
    reflect_rows,
    subtract_product,
)

DTYPES = ["f4", "f8", "c8", "c16"]


def random(seed, m, n, dtype):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((m, n))
    return (x + 1j * rng.standard_normal((m, n)) if dtype.startswith("c") else x).astype(dtype)


def near(actual, expected):
    assert np.abs(actual - expected).max(initial=0) <= 100 * np.finfo(expected.dtype).eps


def dense(v, t, size):
    """`I − V·T·Vᴴ` on the last rows of `size`."""
    whole = np.zeros((size, t.shape[0]), t.dtype)
    stacked = np.concatenate(v)
    whole[size - len(stacked) :] = stacked
    return np.eye(size, dtype=t.dtype) - whole @ t @ whole.conj().T


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("panel", [0, 1])
def test_columns_and_their_projection(dtype, panel):
    a = random(0, 10, 4, dtype)
    tiles = [a[:4], a[4:8], a[8:]]
    v, t, r = reflect_columns(tiles, panel, 2)
    q = dense(v, t, 10)
    at = 2 * panel
    made = q.conj().T @ a
    near(made[at : at + 2, at : at + 2], r)
    near(made[at + 2 :, at : at + 2], np.zeros((8 - at, 2), dtype))
    w = project_columns(v, t, tiles, panel + 1, 2)
    updated = [subtract_product(tile, each, w) for tile, each in zip(tiles, v, strict=True)]
    near(np.concatenate(updated)[at:, at + 2 :], made[at:, at + 2 :])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("panel", [0, 1])
def test_rows_and_their_projection(dtype, panel):
    a = random(1, 4, 10, dtype)
    tiles = [a[:, :4], a[:, 4:8], a[:, 8:]]
    v, t, low = reflect_rows(tiles, panel, 2)
    made = a @ dense(v, t, 10)
    at = 2 * panel
    near(made[at : at + 2, at + 2 : at + 4], low)
    near(made[at : at + 2, at + 4 :], np.zeros((2, 6 - at), dtype))
    z = project_rows(v, t, tiles, panel + 1, 2)
    updated = [subtract_product(tile, z, each, adjoint=True) for tile, each in zip(tiles, v, strict=True)]
    near(np.hstack(updated)[at + 2 :, at + 2 :], made[at + 2 :, at + 2 :])


@pytest.mark.parametrize("dtype", DTYPES)
def test_both_sides_of_a_hermitian_matrix(dtype):
    x = random(2, 8, 8, dtype)
    a = x + x.conj().T
    tiles = [[a[:4, :4], a[:4, 4:]], [a[4:, :4], a[4:, 4:]]]
    v, t, d = reflect_below([tiles[0][0], tiles[1][0]], 0, 2)
    q = dense(v, t, 8)
    made = q.conj().T @ a @ q
    near(d, made[:4, :2])
    y, parts = zip(
        hermitian_product([], [tiles[0][0], tiles[1][0]], v),
        hermitian_product([tiles[1][0]], [tiles[1][1]], v),
        strict=True,
    )
    c = half_inner(list(parts), t)
    factors = [rank_two_factors(each, product, t, c) for each, product in zip(v, y, strict=True)]
    for i, j in ((0, 0), (1, 0), (1, 1)):
        updated = subtract_product(tiles[i][j], factors[i][0], factors[j][1], adjoint=True)
        corner = np.s_[4 * i + (2 if i == 0 else 0) : 4 * i + 4, 4 * j + (2 if j == 0 else 0) : 4 * j + 4]
        near(updated[2 if i == 0 else 0 :, 2 if j == 0 else 0 :], made[corner])


@pytest.mark.parametrize("dtype", DTYPES)
def test_panels_are_applied_to_transposed_slabs(dtype):
    v, t, _ = reflect_columns([random(3, 6, 2, dtype)[:3], random(3, 6, 2, dtype)[3:]], 0, 2)
    s = random(4, 5, 8, dtype)
    near(apply_panel(v, t, s), (dense(v, t, 8) @ s.T).T)


def test_what_is_refused():
    with pytest.raises(ValueError, match="subtract_product expects factors of a corner of S, got S 2×2"):
        subtract_product(np.ones((2, 2)), np.ones((3, 1)), np.ones((1, 1)))
    with pytest.raises(ValueError, match="apply_panel expects reflectors of at most 1 rows, got 1 more"):
        apply_panel([np.ones((2, 1))], np.ones((1, 1)), np.ones((1, 1)))
