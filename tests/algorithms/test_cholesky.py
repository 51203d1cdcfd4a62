"""Cholesky as one array: against NumPy over shapes, tile sizes, dtypes and orders; memory; errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ways import ENGINE, WAYS
from ways import run as run_in

import linnet as ln
from linnet import linalg
from linnet.algorithms.cholesky import left_looking, looking_ahead
from linnet.engines import Threads
from linnet.errors import LinAlgError
from linnet.events import Events, TaskFinished
from linnet.session import init
from linnet.tiles import TiledArray


def positive(seed, n, dtype="f8"):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, n))
    x = x + 1j * rng.standard_normal((n, n)) if dtype.startswith("c") else x
    return (x @ x.conj().T + n * np.eye(n)).astype(dtype)


def residual(a, factor_):
    """`|A − L·Lᴴ| / |A|`, in units of rounding."""
    eps = np.finfo(factor_.dtype).eps
    return np.linalg.norm(a - factor_ @ factor_.conj().T) / np.linalg.norm(a) / eps


@pytest.mark.slow
@settings(max_examples=60)
@given(
    st.integers(0, 40),
    st.integers(1, 20),
    st.sampled_from(["f4", "f8", "c8", "c16"]),
    st.sampled_from(["C", "F", "strided", "tiled"]),
    st.integers(0, 5),
    st.sampled_from(WAYS),
)
def test_any_matrix(n, tile, dtype, form, seed, way):
    a = positive(seed, n, dtype)
    expected = np.linalg.cholesky(a) if n else a
    given_ = {
        "C": lambda: a.copy(),
        "F": lambda: np.asfortranarray(a),
        "strided": lambda: np.repeat(np.repeat(a, 2, 0), 2, 1)[::2, ::2],
        "tiled": lambda: TiledArray.from_numpy(a, tile),
    }[form]()
    found = run_in("at once" if form == "tiled" else way, "cholesky", given_, tile=tile)
    assert found.dtype == dtype
    assert found.flags.c_contiguous
    assert not np.triu(found, 1).any()
    assert np.allclose(found, expected, rtol=1e-3 if dtype in ("f4", "c8") else 1e-9, atol=1e-4)
    assert np.array_equal(np.asarray(given_), a)
    if way != "on nodes" and form != "tiled":
        with init(ENGINE):  # what is kept in tiles is the same
            tiles = linalg.cholesky(ln.asarray(given_), tile=tile).persist()
        assert np.array_equal(tiles.compute(), found)


@pytest.mark.parametrize("scale", [1.0, 1e150, 1e-150, 1e-200])
def test_backward_error_is_within_ten_times_that_of_lapack(scale, run):
    n = 120
    grading = np.logspace(0, -6, n)
    hilbert = 1.0 / (np.arange(n)[:, None] + np.arange(n) + 1) + 1e-10 * np.eye(n)
    for a in (positive(1, n), grading[:, None] * positive(2, n) * grading, hilbert):
        ours = run("cholesky", a * scale, tile=32) / np.sqrt(scale)
        assert residual(a, ours) <= 10 * max(1.0, residual(a, np.linalg.cholesky(a)))


def test_only_the_lower_triangle_is_read(run):
    a = positive(0, 30)
    spoiled = np.where(np.tri(30, dtype=bool), a, np.nan)
    assert np.allclose(run("cholesky", spoiled, tile=8), np.linalg.cholesky(a))
    assert np.allclose(run("cholesky", spoiled), np.linalg.cholesky(a))


def test_small_matrices_go_straight_to_lapack_and_others_to_the_session():
    a = positive(0, 50)
    with init(workers=2):
        assert np.allclose(linalg.cholesky(a), np.linalg.cholesky(a))
        events, found = Events(), []
        events.subscribe(found.append, TaskFinished)
        linalg.cholesky(a, events=events)
        assert not found
        linalg.cholesky(a, tile=10, events=events)
        assert len(found) == looking_ahead.bind(N=5).count() == 45
    assert linalg.cholesky(np.array([[4, 2], [2, 5]])).tolist() == [[2.0, 0.0], [1.0, 2.0]]


def test_the_program_is_proved_and_writes_each_tile_once():
    assert left_looking.proven
    assert looking_ahead.proven
    for engine, tasks in ((ENGINE, 3), (Threads(2, memory="1 MB"), 2)):
        events, found = Events(), []
        events.subscribe(found.append, TaskFinished)
        linalg.cholesky(positive(0, 64), tile=8, engine=engine, events=events)
        assert len(found) == tasks * 8 * 9 // 2


@pytest.mark.slow
def test_memory_that_was_used_before_is_zero_above_the_diagonal():
    a = positive(0, 2100)  # large enough for pages of its own
    first = linalg.cholesky(a, tile=300, engine=ENGINE)
    wanted = first.copy()
    first.fill(np.nan)
    place = first.ctypes.data
    del first
    events, found = Events(), []
    events.subscribe(found.append, TaskFinished)
    again = linalg.cholesky(a, tile=300, engine=ENGINE, events=events)
    assert again.ctypes.data == place
    assert len(found) == 3 * 7 * 8 // 2
    assert np.array_equal(again, wanted)


def test_what_is_refused():
    with pytest.raises(LinAlgError, match="Cholesky takes a square matrix; got 2×3"):
        linalg.cholesky(np.ones((2, 3)))
    with pytest.raises(LinAlgError, match=r"a must be a matrix or a stack .* shape \(3,\)"):
        linalg.cholesky(np.ones(3))
    with pytest.raises(LinAlgError, match="leading minor of order 3 "):
        linalg.cholesky(np.diag([1.0, 1.0, -1.0]))


def test_not_positive_definite_names_tile_and_minor(run):
    a = np.eye(20)
    a[13, 13] = -1
    with pytest.raises(LinAlgError, match=r"leading minor of order 14 is not positive .*L\[1, 1\]") as caught:
        run("cholesky", a, tile=8)
    assert isinstance(caught.value, np.linalg.LinAlgError)
