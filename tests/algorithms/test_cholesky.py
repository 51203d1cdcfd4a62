"""Cholesky as one array: against NumPy over shapes, tile sizes, dtypes and orders; memory; errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linnet.algorithms.cholesky import cholesky_factor, factor, left_looking, looking_ahead
from linnet.engines import Threads
from linnet.errors import InputError, LinAlgError
from linnet.events import Events, TaskFinished
from linnet.session import init
from linnet.tiles import TiledArray

ENGINE = Threads(2)


def positive(seed, n, dtype="f8"):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, n))
    x = x + 1j * rng.standard_normal((n, n)) if dtype.startswith("c") else x
    return (x @ x.conj().T + n * np.eye(n)).astype(dtype)


def residual(a, factor_):
    """`|A − L·Lᴴ| / |A|`, in units of rounding."""
    eps = np.finfo(factor_.dtype).eps
    return np.linalg.norm(a - factor_ @ factor_.conj().T) / np.linalg.norm(a) / eps


@settings(max_examples=40)
@given(
    st.integers(0, 40),
    st.integers(1, 20),
    st.sampled_from(["f4", "f8", "c8", "c16"]),
    st.sampled_from(["C", "F", "strided", "tiled"]),
    st.integers(0, 5),
)
def test_any_matrix(n, tile, dtype, form, seed):
    a = positive(seed, n, dtype)
    expected = np.linalg.cholesky(a) if n else a
    given_ = {
        "C": lambda: a.copy(),
        "F": lambda: np.asfortranarray(a),
        "strided": lambda: np.repeat(np.repeat(a, 2, 0), 2, 1)[::2, ::2],
        "tiled": lambda: TiledArray.from_numpy(a, tile),
    }[form]()
    found = factor(given_, tile=tile, engine=ENGINE)
    assert found.dtype == dtype
    assert found.flags.c_contiguous
    assert not np.triu(found, 1).any()
    assert np.allclose(found, expected, rtol=1e-3 if dtype in ("f4", "c8") else 1e-9, atol=1e-4)
    assert np.array_equal(np.asarray(given_), a)
    tiles = cholesky_factor(given_, tile=tile, engine=ENGINE)
    assert np.array_equal(tiles.to_numpy(), found)


@pytest.mark.parametrize("scale", [1.0, 1e150, 1e-150, 1e-200])
def test_backward_error_is_within_ten_times_that_of_lapack(scale):
    n = 120
    grading = np.logspace(0, -6, n)
    hilbert = 1.0 / (np.arange(n)[:, None] + np.arange(n) + 1) + 1e-10 * np.eye(n)
    for a in (positive(1, n), grading[:, None] * positive(2, n) * grading, hilbert):
        ours = factor(a * scale, tile=32, engine=ENGINE) / np.sqrt(scale)
        assert residual(a, ours) <= 10 * max(1.0, residual(a, np.linalg.cholesky(a)))


def test_only_the_lower_triangle_is_read():
    a = positive(0, 30)
    spoiled = np.where(np.tri(30, dtype=bool), a, np.nan)
    assert np.allclose(factor(spoiled, tile=8, engine=ENGINE), np.linalg.cholesky(a))
    assert np.allclose(factor(spoiled), np.linalg.cholesky(a))


def test_small_matrices_go_straight_to_lapack_and_others_to_the_session():
    a = positive(0, 50)
    with init(workers=2):
        assert np.allclose(factor(a), np.linalg.cholesky(a))
        events, found = Events(), []
        events.subscribe(found.append, TaskFinished)
        factor(a, events=events)
        assert not found
        factor(a, tile=10, events=events)
        assert len(found) == looking_ahead.bind(N=5, used=0).count() == 45
    assert factor(np.array([[4, 2], [2, 5]])).tolist() == [[2.0, 0.0], [1.0, 2.0]]


def test_the_program_is_proved_and_writes_each_tile_once():
    assert left_looking.proven
    assert looking_ahead.proven
    for engine, tasks in ((ENGINE, 3), (Threads(2, memory="1 MB"), 2)):
        events, found = Events(), []
        events.subscribe(found.append, TaskFinished)
        factor(positive(0, 64), tile=8, engine=engine, events=events)
        assert len(found) == tasks * 8 * 9 // 2


def test_memory_that_was_used_before_is_zero_above_the_diagonal():
    a = positive(0, 2100)  # large enough for pages of its own
    first = factor(a, tile=300, engine=ENGINE)
    wanted = first.copy()
    first.fill(np.nan)
    place = first.ctypes.data
    del first
    events, found = Events(), []
    events.subscribe(found.append, TaskFinished)
    again = factor(a, tile=300, engine=ENGINE, events=events)
    assert again.ctypes.data == place
    assert len(found) == 3 * 7 * 8 // 2 + 6 * 7 // 2
    assert np.array_equal(again, wanted)


def test_a_place_for_the_factor(tmp_path):
    a = positive(0, 40)
    out = np.zeros((40, 40))
    assert factor(a, tile=16, engine=ENGINE, out=out) is out
    assert np.allclose(out, np.linalg.cholesky(a))
    with pytest.raises(
        InputError, match=r"the factor is 40×40 of float64; out has shape \(40, 40\) and dtype float32"
    ):
        factor(a, out=out.astype("f4"))


def test_what_is_refused():
    with pytest.raises(LinAlgError, match="Cholesky takes a square matrix; got 2×3"):
        factor(np.ones((2, 3)))
    with pytest.raises(InputError, match=r"expected a matrix, got an array of shape \(3,\)"):
        factor(np.ones(3))
    with pytest.raises(InputError, match="square tiles; got 6×6 in 3×2 tiles"):
        factor(TiledArray.from_numpy(np.eye(6), (2, 3)))
    with pytest.raises(LinAlgError, match="leading minor of order 3 "):
        factor(np.diag([1.0, 1.0, -1.0]))


def test_not_positive_definite_names_tile_and_minor():
    a = np.eye(20)
    a[13, 13] = -1
    with pytest.raises(
        LinAlgError, match=r"(?s)leading minor of order 14 is not positive .*L\[1, 1\]"
    ) as caught:
        factor(a, tile=8, engine=ENGINE)
    assert isinstance(caught.value, np.linalg.LinAlgError)
    assert caught.value.task == (2, (1,))
    assert "cholesky.py:" in caught.value.where
