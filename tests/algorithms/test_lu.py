"""LU by tournament against LAPACK: any shape, hard matrices, singular ones."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ways import ENGINE, WAYS
from ways import run as run_in

from linnet.algorithms import lu as module
from linnet.algorithms.lu import determinants, packed, partial, rows_of, substituted, system, tournament
from linnet.engines import Threads
from linnet.errors import LinAlgError
from linnet.events import Events, TaskFinished
from linnet.kernels.linalg.pivots import order_of
from linnet.linalg import lu
from linnet.tiles import Layout, TiledArray

pytestmark = pytest.mark.slow  # left to `make test`

DTYPES = ["f4", "f8", "c8", "c16"]


def random(seed, *shape, dtype="f8"):
    rng = np.random.default_rng(seed)
    real = rng.standard_normal(shape)
    return (real + 1j * rng.standard_normal(shape) if dtype.startswith("c") else real).astype(dtype)


def residual(a, p, l, u):
    """The backward error, column by column: the largest against the largest of the column."""
    sizes = np.abs(a).max(axis=0, initial=0)
    sizes[sizes == 0] = 1
    return np.abs((a[p] - l @ u) / sizes).max(initial=0)


def check(a, p, l, u):
    m, n = a.shape
    k = min(m, n)
    assert (l.shape, u.shape, l.dtype, u.dtype) == ((m, k), (k, n), a.dtype, a.dtype)
    assert sorted(p.tolist()) == list(range(m))
    assert not np.triu(l, 1).any()
    assert not np.tril(u, -1).any()
    assert (np.diagonal(l) == 1).all()
    assert np.abs(l).max(initial=0) <= module.LARGEST * 1.5
    assert residual(a, p, l, u) <= 40 * max(1, k) * np.finfo(a.dtype).eps


@settings(max_examples=22)
@given(
    st.integers(1, 40), st.integers(1, 30), st.integers(1, 9), st.sampled_from(DTYPES), st.integers(0, 9),
    st.sampled_from(WAYS),
)  # fmt: skip
@example(m=40, n=37, tile=2, dtype="c16", seed=0, way="at once")  # more than one group of tiles in a column
@example(m=37, n=40, tile=2, dtype="f4", seed=0, way="lazily")
@example(m=39, n=5, tile=2, dtype="f8", seed=0, way="on nodes")
def test_any_shape_any_tile_size(m, n, tile, dtype, seed, way):
    a = random(seed, m, n, dtype=dtype)
    before = a.copy()
    check(a, *run_in(way, "lu", a, tile=tile))
    assert np.array_equal(a, before)


@settings(max_examples=20)
@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 6), st.integers(0, 999), st.sampled_from(WAYS))
def test_matrices_of_few_values_are_often_singular_and_are_factored(m, n, tile, seed, way):
    a = np.random.default_rng(seed).integers(-1, 2, (m, n)).astype(float)
    check(a, *run_in(way, "lu", a, tile=tile))


def hard(n):
    rng = np.random.default_rng(n)
    g = rng.standard_normal((n, n))
    d = np.logspace(-150, 150, n)
    i = np.arange(n)
    h = n // 2
    swap = np.zeros((n, n))
    swap[:h, n - h :] = np.eye(h)
    swap[h:, : n - h] = np.eye(n - h)
    twins = g.copy()
    twins[:, 1] = twins[:, 0]
    twins[:, 5] = 2 * twins[:, 3]
    return {
        "random": g,
        "graded rows": d[:, None] * g,
        "graded columns": g * d,
        "graded both ways": np.sqrt(d)[:, None] * g * np.sqrt(d[::-1]),
        "Hilbert": 1 / (i[:, None] + i + 1.0),
        "rank deficient": g[:, : n // 3] @ g[: n // 3],
        "rank deficient integers": np.rint(3 * g[:, : n // 3]) @ np.rint(3 * g[: n // 3]),
        "orthogonal": np.linalg.qr(g)[0],
        "block exchange": swap,
        "equal columns": twins,
        "sparse": g * (rng.random((n, n)) < 0.05),
        "ones": np.ones((n, n)),
        "zeros": np.zeros((n, n)),
        "tiny": g * 1e-200,
    }


@pytest.mark.sample(14)
@pytest.mark.parametrize(("n", "tile"), [(90, 5), (100, 32)])
@pytest.mark.parametrize("name", hard(6))
def test_hard_matrices_within_ten_times_lapack(name, n, tile, run):
    a = hard(n)[name]
    p, l, u = run("lu", a, tile=tile)
    theirs = scipy.linalg.lu(a, p_indices=True)
    bound = residual(a, np.argsort(theirs[0]), theirs[1], theirs[2])
    assert residual(a, p, l, u) <= 10 * bound + np.finfo(float).eps
    assert np.abs(u).max() <= 10 * np.abs(theirs[2]).max()


def test_growth_stays_near_that_of_partial_pivoting():
    for seed in range(3):
        a = random(seed, 90, 90)
        growth = np.abs(lu(a, tile=5, engine=ENGINE).u).max() / np.abs(lu(a).u).max()
        assert growth < 3


def kernels_of(run):
    events, names = Events(), []
    events.subscribe(lambda event: names.append(event.kernel), TaskFinished)
    run(events)
    return names


def test_pivots_that_fail_are_replaced_by_partial_pivoting():
    a = np.zeros((40, 40))
    a[5:, 3:] = random(0, 35, 37)
    names = kernels_of(lambda events: lu(a, tile=2, engine=ENGINE, events=events))
    assert names.count("elect") == 4
    assert names.count("panel") == 16 + 20  # the last of the first attempt, and all of the second
    check(a, *lu(a, tile=2, engine=ENGINE))
    names = kernels_of(lambda events: lu(random(0, 40, 40), tile=2, engine=ENGINE, events=events))
    assert (names.count("nominate"), names.count("elect"), names.count("panel")) == (8, 4, 16)


def test_partial_pivoting_takes_the_rows_lapack_takes():
    a = random(7, 40, 40)
    inputs = {"A": TiledArray.from_numpy(a, 7)}
    order = ENGINE.run(partial.bind(P=6, Q=6, K=6, side=7, rows=40), inputs)["O"].to_numpy()
    assert np.array_equal(order, lu(a).p)


def test_programs_are_proved():
    for program in (tournament, partial, rows_of, system, packed, determinants, substituted):
        assert program.proven, program.name


def test_the_next_column_does_not_wait_for_the_whole_update():
    for tiles, kernel in ((6, "panel"), (20, "nominate")):
        bound = tournament.bind(P=tiles, Q=tiles, K=tiles, side=2, rows=2 * tiles)
        chosen = next(t for t in bound.tasks() if bound.call(t).kernel == kernel and t.indices[0] == 1)
        parents = {bound.call(t).outputs[0] for t in bound.parents(chosen)}
        assert {key.index[2] for key in parents if not isinstance(key, list) and key.array == "S"} == {1}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "n"), [(9, 9), (14, 6), (6, 14)])
def test_kept_factors_are_laid_out_as_scipy_does(m, n, dtype, run):
    a = random(m, m, n, dtype=dtype)
    packed, piv = run("lu_factor", a, tile=4)
    k = min(m, n)
    lower = np.tril(packed[:, :k], -1) + np.eye(m, k)
    assert len(piv) == k
    (order,) = order_of(piv, [np.arange(m)], 0)
    assert np.allclose(a[order], lower @ np.triu(packed[:k]), atol=1e-4)
    if m == n:
        assert np.allclose(a @ scipy.linalg.lu_solve((packed, piv), a), a, atol=1e-3)


def test_stacks_and_empty_matrices(run):
    a = random(0, 2, 3, 7, 5)
    p, l, u = run("lu", a, tile=3)
    assert (p.shape, l.shape, u.shape) == ((2, 3, 7), (2, 3, 7, 5), (2, 3, 5, 5))
    assert np.allclose(np.take_along_axis(a, p[..., None], axis=-2), l @ u)
    for shape in [(0, 0), (0, 3), (3, 0)]:
        p, l, u = run("lu", np.zeros(shape))
        assert (p.shape, l.shape, u.shape) == (shape[:1], (shape[0], 0), (0, shape[1]))
    assert run("lu", np.zeros((0, 4, 3))).l.shape == (0, 4, 3)
    assert run("lu_factor", np.zeros((2, 3, 3))).piv.shape == (2, 3)


def test_tiled_input_of_uneven_cut():
    a = random(1, 10, 11)
    layout = Layout(((0, 3, 4, 8, 10), (0, 3, 4, 8, 11)))
    tiles = {index: a[layout.slices(index)].copy() for index in layout.indices()}
    check(a, *lu(TiledArray(layout, a.dtype, tiles), engine=ENGINE))


def test_results_are_the_same_on_any_number_of_workers():
    a = random(2, 60, 50)
    first = lu(a, tile=3, engine=Threads(1))
    for workers in (2, 3):
        for mine, theirs in zip(first, lu(a, tile=3, engine=Threads(workers)), strict=True):
            assert np.array_equal(mine, theirs)


def test_integers_are_computed_in_float64_and_numbers_that_are_none_stay(run):
    assert run("lu", np.array([[2, 1], [4, 3]])).u.dtype == np.float64
    a = random(3, 9, 9)
    a[4, 4] = np.nan
    assert np.isnan(run("lu", a, tile=4).u).any()


def test_what_is_refused():
    with pytest.raises(
        LinAlgError, match=r"a must be a matrix or a stack of matrices, got an array of shape \(3,\)"
    ):
        lu(np.ones(3))


def test_tiles_of_any_form_are_cut_anew():
    a = random(5, 6, 6)
    check(a, *lu(TiledArray.from_numpy(a, (2, 3)), engine=ENGINE))
    check(a[:, :3], *lu(TiledArray.from_numpy(a[:, :3], (2, 3)), engine=ENGINE))


@pytest.mark.long
@pytest.mark.parametrize("name", hard(6))
def test_hard_matrices_of_some_size(name, run):
    a = hard(900)[name]
    p, l, u = run("lu", a, tile=24)
    theirs = scipy.linalg.lu(a, p_indices=True)
    bound = residual(a, np.argsort(theirs[0]), theirs[1], theirs[2])
    assert residual(a, p, l, u) <= 10 * bound + np.finfo(float).eps
