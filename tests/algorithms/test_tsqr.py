"""QR of tall and skinny matrices: the tree, and the three ways to factorise a leaf."""

from __future__ import annotations

import numpy as np
import pytest
from hard_matrices import DTYPES, as_good_as_lapack, errors, hard_matrices, random
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits
from ways import ENGINE, WAYS
from ways import run as run_in

from linnet import linalg
from linnet.algorithms.tsqr import leaf_rows, tsqr, tsqr_with_q
from linnet.events import Events, Metrics
from linnet.kernels.linalg import tall_qr
from linnet.tiles import TiledArray

pytestmark = pytest.mark.slow  # left to `make test`


def tree(program, a, tile, events=None):
    """The results of a tree on any matrix, its leaves so many rows (never fewer than it has columns)."""
    leaves = TiledArray.from_numpy(a, (max(tile, a.shape[1]), max(1, a.shape[1])))
    return ENGINE.run(program.bind(N=leaves.grid[0]), {"A": leaves}, events=events)


@pytest.fixture(autouse=True, scope="module")
def one_blas_thread():
    """LAPACK, the oracle, loses time to its own threads on matrices this small."""
    with threadpool_limits(1, user_api="blas"):
        yield


@pytest.mark.sample(12)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "n", "tile"), [(700, 6, 40), (300, 30, 100), (257, 1, 16), (64, 8, 8)])
def test_as_accurate_as_lapack_on_hard_matrices(dtype, m, n, tile, run):
    for name, a in hard_matrices(m, n, dtype):
        before = a.copy()
        q, r = run("qr", a, tile=tile)
        assert q.dtype == r.dtype == a.dtype
        as_good_as_lapack(a, q, r, name)
        assert np.array_equal(a, before)


@settings(max_examples=30)
@given(
    st.integers(0, 60), st.integers(0, 5), st.integers(1, 9), st.sampled_from(DTYPES), st.integers(0, 9),
    st.sampled_from(WAYS),
)  # fmt: skip
def test_any_shape_any_leaf(m, n, tile, dtype, seed, way):
    a = random(np.random.default_rng(seed), (m, n), dtype)
    k = min(m, n)
    made, named = tree(tsqr_with_q, a, tile), run_in(way, "qr", a, tile=tile)
    alone = tree(tsqr, a, tile)["R"].to_numpy(), run_in(way, "qr", a, mode="r", tile=tile)
    for (q, r), triangle in zip(((made["O"].to_numpy(), made["R"].to_numpy()), named), alone, strict=True):
        assert (q.shape, r.shape, q.dtype) == ((m, k), (k, n), a.dtype)
        for mine in errors(a, q, r):
            assert mine <= 30 * max(1, m)
        assert triangle.shape == r.shape
        assert np.allclose(np.abs(triangle), np.abs(r), atol=1000 * np.finfo(a.dtype).eps * max(1, m))


@pytest.mark.parametrize("leaves", [1, 2, 15, 16, 17, 255, 256, 257, 300])
def test_any_number_of_leaves(leaves):
    a = random(np.random.default_rng(leaves), (leaves * 3 - 1, 2))
    metrics, events = Metrics(), Events()
    metrics.listen(events)
    found = tree(tsqr_with_q, a, 3, events)
    q, r = found["O"], found["R"]
    assert metrics.kernels["tall_qr"].tasks == leaves
    as_good_as_lapack(a, q.to_numpy(), r.to_numpy())


def conditioned(rng, m, n, condition, dtype):
    """A matrix with orthonormal columns times one of that condition."""
    q = np.linalg.qr(random(rng, (m, n), dtype))[0]
    u = np.linalg.qr(random(rng, (n, n), dtype))[0]
    return (q @ (u * np.geomspace(1, 1 / condition, n)) @ u.conj().T).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_each_way_is_taken_where_it_is_accurate(dtype):
    rng = np.random.default_rng(0)
    used = set()
    for condition in (1, 2, 4, 8, 1e2, 1e4, 1e6, 1e8, 1e12, 1e16):
        for n in (2, 12):
            a = conditioned(rng, 300, n, condition, dtype)
            for way in (tall_qr._once, tall_qr._twice, tall_qr._by_reflectors):
                factors = way(a)
                if factors is None:
                    continue
                y, z, r = factors
                q = (y if y.size else a) @ z
                used.add((way.__name__, bool(condition > 30)))
                as_good_as_lapack(a, q, r, f"{way.__name__} at condition {condition:.0e}")
    assert used >= {("_once", False), ("_twice", True), ("_by_reflectors", True)}
    assert ("_once", True) not in used


def test_a_tall_matrix_goes_to_the_tree():
    a = random(np.random.default_rng(5), (150_000, 8))
    metrics, events = Metrics(), Events()
    metrics.listen(events)
    q, r = linalg.qr(a, engine=ENGINE, events=events)
    assert metrics.kernels["tall_qr"].tasks == -(-150_000 // leaf_rows(8))
    as_good_as_lapack(a, q, r)
    alone = linalg.qr(a, "r", engine=ENGINE)
    assert np.allclose(np.abs(alone), np.abs(r))


def test_leaves_of_any_form_are_cut_anew():
    a = random(np.random.default_rng(6), (60, 6))
    as_good_as_lapack(a, *linalg.qr(TiledArray.from_numpy(a, (2, 3)), engine=ENGINE))
    as_good_as_lapack(a, *linalg.qr(TiledArray.from_numpy(a, (17, 6)), engine=ENGINE))


def test_sixteen_triangles_are_joined_at_a_time():
    bound = tsqr_with_q.bind(N=40)
    call = bound.call((1, (0, 2)))
    assert [repr(key) for key in call.args[0]] == [f"W[0, {i}]" for i in range(32, 40)]
