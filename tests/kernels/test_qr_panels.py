"""Kernels of QR by panels and of tall leaves: dtypes, memory orders, ragged and empty tiles, misfits."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from linnet.kernels.linalg import panel_qr, tall_qr

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]
ORDERS = ["F", "C", "strided"]


@pytest.fixture(autouse=True, scope="module")
def one_blas_thread():
    with threadpool_limits(1, user_api="blas"):
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def random(rng, rows, columns, dtype, order="C"):
    real = rng.standard_normal((2 * rows, 2 * columns))
    full = (real + 1j * rng.standard_normal(real.shape) if np.dtype(dtype).kind == "c" else real).astype(
        dtype
    )
    return full[::2, ::2] if order == "strided" else np.array(full[:rows, :columns], order=order)


def near(actual, expected, dtype):
    assert actual.shape == expected.shape
    assert actual.dtype == dtype
    scale = max(1.0, np.abs(expected).max(initial=0))
    assert (
        np.abs(actual - expected).max(initial=0)
        <= 100 * max(1, *expected.shape) * np.finfo(dtype).eps * scale
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("heights", "n"), [([4, 4, 2], 4), ([3], 5), ([6], 2), ([5, 1], 1), ([0], 3), ([3, 2], 0)]
)
def test_a_panel_and_what_is_done_with_it(rng, dtype, order, heights, n):
    a = [random(rng, m, n, dtype, order) for m in heights]
    whole, m, k = np.vstack(a), sum(heights), min(sum(heights), n)
    before = whole.copy()
    v, t, r = panel_qr.panel_qr(a)
    assert np.array_equal(np.vstack(a), before)
    stacked = np.vstack(v)
    assert not np.triu(stacked, 1).any()
    q = np.eye(m) - stacked @ t @ stacked.conj().T
    near((q @ np.vstack([r, np.zeros((m - k, n))])).astype(dtype), whole, dtype)
    near((q.conj().T @ q).astype(dtype), np.eye(m), dtype)
    c = [random(rng, height, 3, dtype, order) for height in heights]
    for adjoint, turned in ((True, q.conj().T), (False, q)):
        first, others = panel_qr.reflect(v, t, c, adjoint=adjoint)
        near(np.vstack([first, *others]), (turned @ np.vstack(c)).astype(dtype), dtype)
    if k and heights[0] >= k:
        near(np.vstack(panel_qr.reflect_unit(v, t)), q[:, :k].astype(dtype), dtype)
    if len(heights) > 1:
        first, others = panel_qr.reflect_lower(v, t, c[1:])
        near(np.vstack([first, *others]), (q[:, heights[0] :] @ np.vstack(c[1:])).astype(dtype), dtype)


def test_a_column_is_overwritten_where_it_is_given_away(rng):
    v, t, _ = panel_qr.panel_qr([random(rng, 3, 3, np.float64), random(rng, 2, 3, np.float64)])
    c = [random(rng, height, 4, np.float64) for height in (3, 2)]
    before = [each.copy() for each in c]
    first, others = panel_qr.reflect(v, t, c)
    assert all(map(np.array_equal, c, before))
    again, rest = panel_qr.reflect(v, t, c, overwrite=(2,))
    assert again is c[0]
    assert rest[0] is c[1]
    assert np.array_equal(first, again)
    assert np.array_equal(others[0], rest[0])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("spread", [1.0, 1e-3, 0.0])
def test_leaves(rng, dtype, order, spread):
    """Columns far from dependent, closer, and all equal: each of the three ways."""
    a = random(rng, 200, 4, dtype, order)
    a = a if spread == 1.0 else (a[:, :1] + spread * a).astype(dtype)
    y, z, r = tall_qr.tall_qr(a)
    assert y.size == 0 if spread == 1.0 else y.shape == a.shape
    b = np.linalg.qr(random(rng, 4, 4, dtype))[0]
    q = tall_qr.combine(a, y, z, np.eye(4, dtype=dtype))
    near(q @ r, np.array(a), dtype)
    near(q.conj().T @ q, np.eye(4), dtype)
    near(tall_qr.combine(a, y, z, b), q @ b, dtype)
    near(tall_qr.project_leaf(a, y, z, a), r, dtype)
    near(np.abs(tall_qr.tall_r(a)), np.abs(r), np.abs(r).dtype)
    if y.size:
        result = tall_qr.combine(a, y, z, b, overwrite=(1,))
        assert result is y
        near(result, q @ b, dtype)


def test_leaves_in_place_are_multiplied_in_pieces(rng):
    a = np.ascontiguousarray(
        random(rng, 2500, 3, np.float64)[:, :1] + 1e-4 * random(rng, 2500, 3, np.float64)
    )
    y, z, r = tall_qr.tall_qr(a)
    q = tall_qr.combine(a, y.copy(), z, np.eye(3))
    near(tall_qr.combine(a, y, z, np.eye(3), overwrite=(1,)), q, np.float64)
    near(q @ r, a, np.float64)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("heights", [[3, 3], [3, 3, 1], [2], [0, 3], [1, 1]])
def test_stacked_triangles(rng, dtype, heights):
    tiles = [np.triu(random(rng, m, 3, dtype)) for m in heights]
    parts, r = tall_qr.stack_qr(tiles)
    for part, tile in zip(parts, tiles, strict=True):
        near(part @ r, tile, dtype)
    near(tall_qr.project_stack(parts, tiles), r, dtype)


def test_shapes_that_do_not_fit_are_refused(rng):
    one, two = np.ones((2, 2)), np.ones((2, 3))
    with pytest.raises(ValueError, match="panel_qr expects tiles of one width, got 2×2, 2×3"):
        panel_qr.panel_qr([one, two])
    with pytest.raises(
        ValueError, match="reflect expects as many tiles of V as of C, of equal heights; got V 2×2"
    ):
        panel_qr.reflect([one], one, [np.ones((3, 1))])
    with pytest.raises(ValueError, match="reflect expects as many tiles of V as of C"):
        panel_qr.reflect([one], one, [one, one])
    with pytest.raises(ValueError, match="reflect_unit expects the tiles of V and its T, got 2×3 and 2×2"):
        panel_qr.reflect_unit([two], one)
    with pytest.raises(ValueError, match="stack_qr expects tiles of one width, got 2×2, 2×3"):
        tall_qr.stack_qr([one, two])
    with pytest.raises(ValueError, match=r"combine expects tiles for Y·\(Z·B\), got 2×3, 2×2 and 2×2"):
        tall_qr.combine(two, np.empty((0, 3)), one, one)
    with pytest.raises(ValueError, match=r"project_leaf expects tiles for Zᴴ·\(Yᴴ·C\), got 2×2, 2×2 and 3×1"):
        tall_qr.project_leaf(one, np.empty((0, 2)), one, np.ones((3, 1)))
    with pytest.raises(ValueError, match="project_stack expects as many tiles of B as of X"):
        tall_qr.project_stack([one], [one, one])


def test_numbers_that_are_not_finite_pass_through():
    a = np.ones((5, 2))
    a[2, 1] = np.nan
    _, _, r = tall_qr.tall_qr(a)
    assert np.isnan(r).any()
