"""Triangular systems from all sides against SciPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from ways import ENGINE, WAYS
from ways import run as run_in

from linnet.algorithms.triangular import backward, forward, rows_in_order
from linnet.errors import InputError, LinAlgError
from linnet.linalg import solve_triangular
from linnet.tiles import TiledArray

DTYPES = ["f4", "f8", "c8", "c16"]


def random(seed, *shape, dtype="f8"):
    rng = np.random.default_rng(seed)
    real = rng.standard_normal(shape)
    return (real + 1j * rng.standard_normal(shape) if dtype.startswith("c") else real).astype(dtype)


def triangle(seed, n, lower, dtype):
    """Well conditioned, with nonsense in the half that is not to be read."""
    t = random(seed, n, n, dtype=dtype) / (2 * n)
    np.fill_diagonal(t, 1 + np.abs(t.diagonal()))
    other = np.triu_indices(n, 1) if lower else np.tril_indices(n, -1)
    t[other] = 1e6
    return t


ALL = list(itertools.product([True, False], [0, 1, 2], [True, False], ["left", "right"]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("lower", "trans", "unit", "side"), ALL)
def test_every_side(lower, trans, unit, side, dtype, run):
    t = triangle(1, 11, lower, dtype)
    half = np.tril(t) if lower else np.triu(t)
    if unit:
        np.fill_diagonal(half, 1)
    op = [half, half.T, half.conj().T][trans]
    b = random(2, *((11, 5) if side == "left" else (5, 11)), dtype=dtype)
    for tile in (None, 4):
        x = run("solve_triangular", t, b, lower=lower, trans=trans, unit_diagonal=unit, side=side, tile=tile)
        assert (x.shape, x.dtype) == (b.shape, dtype)
        found = op @ x if side == "left" else x @ op
        assert np.abs(found - b).max() <= 200 * np.finfo(dtype).eps


@pytest.mark.slow
@settings(max_examples=40)
@given(
    st.integers(1, 24),
    st.integers(1, 12),
    st.integers(1, 7),
    st.booleans(),
    st.sampled_from("CF"),
    st.integers(0, 9),
    st.sampled_from(WAYS),
)
def test_any_size_any_tile_any_memory_order(n, columns, tile, lower, order, seed, way):
    t = np.asarray(triangle(seed, n, lower, "f8"), order=order)
    b = random(seed + 1, n, columns)
    x = run_in(way, "solve_triangular", t, b, lower=lower, tile=tile)
    assert np.allclose(x, scipy.linalg.solve_triangular(t, b, lower=lower))


def test_vectors_stacks_tiled_and_empty(run):
    t = np.stack([triangle(i, 7, True, "f8") for i in range(3)])
    b = random(0, 3, 7, 2)
    x = run("solve_triangular", t, b, lower=True, tile=3)
    assert np.allclose(np.tril(t) @ x, b)
    v = b[0, :, 0]
    assert np.allclose(np.tril(t[0]) @ run("solve_triangular", t[0], v, lower=True, tile=3), v)
    assert np.allclose(run("solve_triangular", t[0], v, lower=True, side="right") @ np.tril(t[0]), v)
    assert np.allclose(np.tril(t) @ run("solve_triangular", t, v, lower=True)[..., None], v[:, None])
    tiled = TiledArray.from_numpy(t[0], 3)
    assert np.allclose(np.tril(t[0]) @ solve_triangular(tiled, v, lower=True, engine=ENGINE), v)
    right = TiledArray.from_numpy(b[0], (3, 2))
    assert np.allclose(
        np.tril(t[0]).conj().T @ solve_triangular(tiled, right, lower=True, trans="C", engine=ENGINE), b[0]
    )
    assert solve_triangular(np.zeros((0, 0)), np.zeros((0, 2))).shape == (0, 2)


@pytest.mark.slow
def test_programs_are_proved():
    assert forward.proven
    assert backward.proven
    assert rows_in_order.proven


def test_what_is_refused(run):
    t = np.diag([1.0, 2.0, 0.0, 4.0])
    for tile, place in ((None, r"row 2 of tile \(0, 0\)"), (2, r"row 0 of tile \(1, 1\)")):
        with pytest.raises(
            LinAlgError, match=f"the matrix is singular: its leading minor of order 3 is zero .{place}"
        ):
            run("solve_triangular", t, np.ones(4), tile=tile)
    assert run("solve_triangular", t, np.ones(4), unit_diagonal=True).tolist() == [1.0] * 4
    with pytest.raises(InputError, match="trans 'X' is not known"):
        run("solve_triangular", np.eye(2), np.ones(2), trans="X")
    with pytest.raises(InputError, match="side 'up' is not known"):
        run("solve_triangular", np.eye(2), np.ones(2), side="up")
    with pytest.raises(LinAlgError, match="the triangle is 2×2 but b has 3 rows"):
        run("solve_triangular", np.eye(2), np.ones(3))
    with pytest.raises(LinAlgError, match="solve_triangular takes a square matrix, got 2×3"):
        run("solve_triangular", np.ones((2, 3)), np.ones(3))
