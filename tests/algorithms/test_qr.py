"""QR by panels: any shape, any tile size, four dtypes; as accurate as LAPACK on hard matrices."""

from __future__ import annotations

import numpy as np
import pytest
from hard_matrices import DTYPES, as_good_as_lapack, errors, hard_matrices, random
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits
from ways import ENGINE
from ways import run as run_in

from linnet import linalg
from linnet.algorithms.householder import (
    apply_q,
    apply_q_adjoint,
    completed,
    form_q,
    householder,
    projected,
    qr,
    qr_at_hand,
    qr_with_q,
)
from linnet.engines import Threads
from linnet.errors import InputError, LinAlgError
from linnet.events import Events, Metrics
from linnet.tiles import Layout, TiledArray

pytestmark = pytest.mark.slow  # left to `make test`

COUNTING = Threads(2, memory="1 GB")
"""Where memory is counted, tiles do not lie together, and another program runs."""
PLACES = {
    "at hand": {"way": "at once", "engine": ENGINE},
    "counted": {"way": "at once", "engine": COUNTING},
    "lazily": {"way": "lazily", "engine": ENGINE},
    "on nodes": {"way": "on nodes", "engine": None},
}


def qr_in(place, a, **options):
    """QR of a matrix, given and run as the place says."""
    return run_in(PLACES[place]["way"], "qr", a, engine=PLACES[place]["engine"], **options)


@pytest.fixture(autouse=True, scope="module")
def one_blas_thread():
    """LAPACK, the oracle, loses time to its own threads on matrices this small."""
    with threadpool_limits(1, user_api="blas"):
        yield


@pytest.mark.sample(16)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "n", "tile"), [(90, 90, 16), (61, 100, 16), (100, 61, 16), (50, 50, 64)])
def test_as_accurate_as_lapack_on_hard_matrices(dtype, m, n, tile, place):
    for name, a in hard_matrices(m, n, dtype):
        before = a.copy()
        q, r = qr_in(place, a, tile=tile)
        assert q.dtype == r.dtype == a.dtype
        as_good_as_lapack(a, q, r, name)
        assert np.array_equal(a, before)


@settings(max_examples=50)
@given(
    st.integers(0, 20),
    st.integers(0, 20),
    st.integers(1, 9),
    st.sampled_from(DTYPES),
    st.sampled_from(["reduced", "complete", "r"]),
    st.booleans(),
    st.integers(0, 9),
    st.sampled_from([*PLACES]),
)
def test_any_shape_any_tile_size(m, n, tile, dtype, mode, by_columns, seed, place):
    a = random(np.random.default_rng(seed), (m, n), dtype)
    if by_columns:
        a = np.asfortranarray(a)
    expected = np.linalg.qr(a, mode)
    found = qr_in(place, a, mode=mode, tile=tile)
    if mode == "r":
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        near = 100 * max(1, m) * np.finfo(dtype).eps * max(1.0, np.abs(a).max(initial=0) ** 2)
        assert np.abs(found.conj().T @ found - a.conj().T @ a).max(initial=0) <= near
        return
    assert (found.Q.shape, found.R.shape) == (expected.Q.shape, expected.R.shape)
    assert found.Q.dtype == expected.Q.dtype
    for mine in errors(a, *found):
        assert mine <= 20 * max(1, m)


@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
@pytest.mark.parametrize("tile", [None, 2])
def test_stacks_of_matrices(mode, tile, run):
    rng = np.random.default_rng(0)
    for shape in [(3, 5, 4), (2, 2, 3, 6), (0, 4, 3), (2, 0, 3)]:
        a = random(rng, shape)
        found, expected = (
            run("qr", a, mode=mode, tile=tile),
            np.linalg.qr(a, mode),
        )
        if mode == "r":
            assert found.shape == expected.shape
        else:
            assert [x.shape for x in found] == [x.shape for x in expected]
            assert np.allclose(found.Q @ found.R, a)


def test_integers_and_bools_are_computed_in_float64(run):
    for a in (np.arange(12).reshape(4, 3), np.eye(3, dtype=bool)):
        for tile in (None, 2):
            q, r = run("qr", a, tile=tile)
            assert q.dtype == r.dtype == np.float64
            assert np.allclose(q @ r, a)
    with pytest.raises(TypeError, match="cannot go to BLAS; convert the array to float32"):
        run("qr", np.eye(2, dtype=np.longdouble))
    with pytest.raises(
        TypeError, match=r"arrays of objects \(dtype object\) are not supported; use booleans"
    ):
        linalg.qr(np.eye(2, dtype=object))


def test_matrices_in_tiles():
    a = random(np.random.default_rng(1), (11, 7))
    tiled = TiledArray.from_numpy(a, 4)
    q, r = linalg.qr(tiled, engine=ENGINE)
    as_good_as_lapack(a, q, r)
    assert np.array_equal(tiled.to_numpy(), a)
    as_good_as_lapack(a, *linalg.qr(TiledArray.from_numpy(a, (4, 3)), engine=ENGINE))


def test_the_panels_run_when_a_matrix_is_large_or_a_tile_size_is_given():
    rng = np.random.default_rng(2)
    for shape, tile, kernels in [((1100, 1000), None, True), ((40, 40), 8, True), ((40, 40), None, False)]:
        metrics, events = Metrics(), Events()
        metrics.listen(events)
        a = random(rng, shape)
        q, r = linalg.qr(a, tile=tile, engine=ENGINE, events=events)
        assert np.allclose(q @ r, a)
        assert ("slab_qr" in metrics.kernels) is kernels
        assert linalg.qr(a, "r", tile=tile, engine=ENGINE, events=events).shape == r.shape
        assert ("panel_qr" in metrics.kernels) is kernels


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "n"), [(11, 7), (7, 11), (8, 8), (9, 1)])
def test_q_is_applied_without_being_formed(dtype, m, n):
    rng = np.random.default_rng(3)
    a, b = random(rng, (m, n), dtype), random(rng, (m, 5), dtype)
    matrix = TiledArray.from_numpy(a, 3)
    P, Q = matrix.grid
    found = ENGINE.run(householder.bind(P=P, Q=Q), {"A": matrix})
    r, K = found["R"].to_numpy(), min(P, Q)
    # Above the diagonal V has no tiles, and a T is as wide as it is long: they are no arrays.
    widths = Layout.regular((min(m, n),), 3).boundaries[0]
    kept = {
        "V": TiledArray(Layout((matrix.layout.boundaries[0], widths)), a.dtype, found.tiles("V")),
        "T": TiledArray(Layout(((0, 3), widths)), a.dtype, found.tiles("T")),
    }

    def applied(program, tiles):
        bound = program.bind(P=P, K=K, N=tiles.grid[1])
        return ENGINE.run(bound, {**kept, "B": tiles})["X"].to_numpy()

    whole = applied(apply_q, TiledArray.from_numpy(np.eye(m, dtype=dtype), 3))
    near = 50 * m * np.finfo(dtype).eps
    assert np.abs(whole.conj().T @ whole - np.eye(m)).max() <= near
    assert np.abs(whole[:, : min(m, n)] @ r - a).max() <= near * 5
    formed = ENGINE.run(form_q.bind(P=P, K=K), kept)["O"].to_numpy()
    assert np.abs(formed - whole[:, : min(m, n)]).max() <= near
    tiles = TiledArray.from_numpy(b, (3, 2))
    assert np.abs(applied(apply_q, tiles) - whole @ b).max() <= near * 5
    assert np.abs(applied(apply_q_adjoint, tiles) - whole.conj().T @ b).max() <= near * 5


def test_same_bits_on_any_number_of_workers():
    a = random(np.random.default_rng(4), (40, 31))
    first = linalg.qr(a, tile=7, engine=Threads(1))
    for workers in (2, 3):
        found = linalg.qr(a, tile=7, engine=Threads(workers))
        assert all(np.array_equal(x, y) for x, y in zip(found, first, strict=True))


def test_the_programs_are_proved():
    for program in (qr, form_q, qr_with_q, qr_at_hand, apply_q, apply_q_adjoint, projected, completed):
        assert program.proven


def test_what_is_refused(run):
    with pytest.raises(InputError, match="mode 'economic' is not known; use 'reduced', 'complete' or 'r'"):
        run("qr", np.eye(2), mode="economic")
    with pytest.raises(
        LinAlgError, match=r"a must be a matrix or a stack of matrices, got an array of shape \(3,\)"
    ):
        run("qr", np.ones(3))
    with pytest.raises(
        LinAlgError, match=r"the complete Q of a matrix of 1,000,000 rows .* 8.0 TB, and there is room for"
    ):
        linalg.qr(np.broadcast_to(np.ones(2), (1_000_000, 2)), "complete")
    with pytest.raises(
        LinAlgError, match=r"2,000×2,000: 32.0 MB, and there is room for 10.0 MB; use mode='reduced'"
    ):
        linalg.qr(np.ones((2000, 2)), "complete", tile=100, engine=Threads(memory="5 MB"))
    assert linalg.QRResult._fields == ("Q", "R")


@pytest.mark.parametrize(("m", "n", "tile"), [(2100, 2050, 300), (2050, 2100, 300), (70_000, 64, None)])
def test_memory_that_was_used_before_makes_no_difference(m, n, tile):
    a = np.random.default_rng(0).standard_normal((m, n))
    first = linalg.qr(a, tile=tile, engine=ENGINE)  # large enough for pages of their own
    wanted, places = [each.copy() for each in first], {each.ctypes.data for each in first}
    for each in first:
        each.fill(np.nan)
    del first, each
    again = linalg.qr(a, tile=tile, engine=ENGINE)
    assert again[0].ctypes.data in places
    assert all(np.array_equal(each, known) for each, known in zip(again, wanted, strict=True))
