"""Systems, inverses and kept factors against NumPy and SciPy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from ways import ENGINE, WAYS
from ways import run as run_in

from linnet.errors import InputError, LinAlgError
from linnet.events import Events, TaskFinished
from linnet.linalg import ConditionWarning, inv, lu_solve, solve
from linnet.tiles import TiledArray

pytestmark = pytest.mark.slow  # left to `make test`

DTYPES = ["f4", "f8", "c8", "c16"]


def random(seed, *shape, dtype="f8"):
    rng = np.random.default_rng(seed)
    real = rng.standard_normal(shape)
    return (real + 1j * rng.standard_normal(shape) if dtype.startswith("c") else real).astype(dtype)


def positive(seed, n, dtype="f8"):
    x = random(seed, n, n, dtype=dtype)
    return (x @ x.conj().T + n * np.eye(n)).astype(dtype)


def backward_error(a, x, b):
    scale = np.abs(a).sum(axis=1).max() * np.abs(x).max(initial=0) + np.abs(b).max(initial=0)
    return np.abs(a @ x - b).max(initial=0) / max(scale, np.finfo(a.dtype).tiny)


@settings(max_examples=22)
@given(
    st.integers(1, 25), st.integers(0, 12), st.integers(1, 9), st.sampled_from(DTYPES), st.integers(0, 9),
    st.sampled_from(WAYS),
)  # fmt: skip
def test_solve_with_any_size_and_any_tile(n, columns, tile, dtype, seed, way):
    a, b = random(seed, n, n, dtype=dtype), random(seed + 1, n, columns, dtype=dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConditionWarning)
        x = run_in(way, "solve", a, b, tile=tile)
    assert (x.shape, x.dtype) == (b.shape, b.dtype)
    assert backward_error(a, x, b) <= 20 * n * np.finfo(dtype).eps


@pytest.mark.parametrize("tile", [None, 4])
def test_vectors_stacks_and_broadcasting_are_numpys(tile, run):
    a, v, b = random(0, 2, 1, 9, 9), random(1, 9), random(2, 3, 9, 4)
    for right in (v, b, random(3, 9, 2)):
        expected = np.linalg.solve(a, right)
        found = run("solve", a, right, tile=tile)
        assert found.shape == expected.shape
        assert np.allclose(found, expected)
    assert run("solve", a[0, 0], v, tile=tile).shape == (9,)
    assert np.allclose(run("inv", a, tile=tile), np.linalg.inv(a))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "tile"), [(1, 1), (9, 4), (23, 6)])
def test_inverse(n, tile, dtype, run):
    a = positive(n, n, dtype)
    inverse = run("inv", a, tile=tile)
    assert inverse.dtype == dtype
    assert np.abs(a @ inverse - np.eye(n)).max() <= 100 * n * np.finfo(dtype).eps


@pytest.mark.parametrize("tile", [None, 4])
def test_singular_matrices_are_refused_with_the_minor_that_is_zero(tile, run):
    a = np.eye(10)
    a[6, 6] = 0
    with pytest.raises(
        LinAlgError, match=r"singular: after row exchanges, its leading minor of order 7 is zero"
    ):
        run("solve", a, np.ones(10), tile=tile)
    with pytest.raises(
        np.linalg.LinAlgError, match=r"row 2 of tile \(1, 1\)" if tile else r"row 6 of tile \(0, 0\)"
    ):
        run("inv", a, tile=tile)


@pytest.mark.parametrize("tile", [None, 4])
def test_a_singular_matrix_in_a_stack_is_named(tile, run):
    a = np.stack([np.eye(6)] * 4).reshape(2, 2, 6, 6)
    a[1, 0, 5, 5] = 0
    with pytest.raises(
        LinAlgError, match=r"matrix \(1, 0\) of the stack: .* leading minor of order 6 is zero"
    ):
        run("solve", a, np.ones((6, 1)), tile=tile)


@pytest.mark.parametrize("tile", [None, 4])
def test_nearly_singular_matrices_give_a_warning(tile, run):
    a = random(0, 10, 9) @ random(1, 9, 10)
    with pytest.warns(
        ConditionWarning, match=r"singular to working precision: its condition number is about"
    ):
        run("solve", a, np.ones(10), tile=tile)


@pytest.mark.parametrize("tile", [None, 16])
def test_a_matrix_whose_pivots_look_harmless_gives_a_warning_too(tile, run):
    a = np.eye(60) - np.triu(np.ones((60, 60)), 1)  # every pivot is 1, and the condition 2**59 and more
    with pytest.warns(ConditionWarning):
        run("solve", a, np.ones(60), tile=tile)
    with pytest.warns(ConditionWarning):
        run("inv", a, tile=tile)


@settings(max_examples=22)
@given(
    st.integers(2, 40), st.sampled_from(DTYPES), st.integers(-200, 200), st.integers(0, 2**32),
    st.sampled_from(WAYS),
)  # fmt: skip
def test_the_warning_follows_the_condition_at_any_scale(n, dtype, exponent, seed, way):
    rng = np.random.default_rng(seed)
    scale = 10.0 ** (exponent if dtype in ("f8", "c16") else exponent // 8)
    left, right = (np.linalg.qr(random(rng.integers(1000), n, n, dtype=dtype))[0] for _ in range(2))
    digits = -np.log10(np.finfo(dtype).eps)
    for lost, expected in ((digits - 3, False), (digits + 3, True)):
        values = np.ones(n)
        values[-1] = 10.0**-lost
        a = ((left * (scale * values)) @ right).astype(dtype)
        if expected and np.linalg.cond(a.astype("c16") / scale) < 10 ** (digits + 0.5):
            continue  # rounding has made it better
        with warnings.catch_warnings():
            warnings.simplefilter("error", ConditionWarning)
            told = False
            try:
                run_in(way, "solve", a, np.ones(n, dtype), tile=16)
            except (ConditionWarning, LinAlgError):  # rounding may make it singular altogether
                told = True
        assert told is expected


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_scaled_systems_stay_right(scale, run):
    a, b = random(0, 12, 12) * scale, random(1, 12, 2)
    assert np.allclose(run("solve", a, b, tile=5) * scale, np.linalg.solve(a / scale, b))


@pytest.mark.sample(16)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("trans", [0, 1, 2])
@pytest.mark.parametrize("tile", [None, 4])
def test_kept_lu_factors(trans, dtype, tile, run):
    a, b = random(0, 11, 11, dtype=dtype), random(1, 11, 3, dtype=dtype)
    factors = run("lu_factor", a, tile=tile)
    op = [a, a.T, a.conj().T][trans]
    for right in (b, b[:, 0]):
        x = run("lu_solve", factors, right, trans=trans, tile=tile)
        assert x.shape == right.shape
        assert backward_error(op, x, right) <= 400 * np.finfo(dtype).eps
    theirs = scipy.linalg.lu_factor(a)
    assert np.allclose(
        lu_solve(theirs, b, trans=trans), scipy.linalg.lu_solve(theirs, b, trans=trans), rtol=1e-2, atol=1e-3
    )


def test_kept_factors_of_stacks(run):
    a, b = random(0, 3, 6, 6), random(1, 3, 6, 2)
    assert np.allclose(run("lu_solve", run("lu_factor", a), b), np.linalg.solve(a, b))
    spd = np.stack([positive(i, 6) for i in range(3)])
    assert np.allclose(run("cho_solve", run("cho_factor", spd), b), np.linalg.solve(spd, b))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("tile", [None, 4])
def test_kept_cholesky_factors(lower, dtype, tile, run):
    a, b = positive(0, 11, dtype), random(1, 11, 3, dtype=dtype)
    half = np.tril(a) if lower else np.triu(a)  # the other half is not read
    factors = run("cho_factor", half, lower=lower, tile=tile)
    assert factors.lower is lower
    c = np.tril(factors.c) if lower else np.triu(factors.c)
    made = c @ c.conj().T if lower else c.conj().T @ c
    assert np.abs(made - a).max() <= 400 * np.finfo(dtype).eps * np.abs(a).max()
    x = run("cho_solve", factors, b, tile=tile)
    assert backward_error(a, x, b) <= 400 * np.finfo(dtype).eps
    assert np.allclose(scipy.linalg.cho_solve(factors, b), x, atol=1e-4)


def test_every_tile_takes_part():
    events, names = Events(), []
    events.subscribe(lambda event: names.append(event.kernel), TaskFinished)
    a = random(0, 32, 32)
    solve(a, random(1, 32, 2), tile=4, engine=ENGINE, events=events)
    assert names.count("update") == sum((8 - k) * (8 - k - 1) + (8 - k - 1) for k in range(8)) - 28
    assert names.count("substitute") == 8


def test_tiled_and_empty_input():
    a, b = random(0, 10, 10), random(1, 10, 3)
    tiled = TiledArray.from_numpy(a, 4)
    assert np.allclose(solve(tiled, b, engine=ENGINE), np.linalg.solve(a, b))
    assert np.allclose(solve(tiled, TiledArray.from_numpy(b, (4, 2)), engine=ENGINE), np.linalg.solve(a, b))
    assert np.allclose(inv(tiled, engine=ENGINE), np.linalg.inv(a))
    assert solve(np.zeros((0, 0)), np.zeros((0, 2))).shape == (0, 2)
    assert solve(np.eye(3), np.zeros((3, 0))).shape == (3, 0)
    assert inv(np.zeros((0, 0))).shape == (0, 0)
    assert inv(np.zeros((0, 3, 3))).shape == (0, 3, 3)


def test_what_is_refused(run):
    with pytest.raises(LinAlgError, match="solve takes a square matrix, got 2×3"):
        run("solve", np.ones((2, 3)), np.ones(2))
    with pytest.raises(LinAlgError, match=r"a is 3×3 but b has the shape \(2,\); b needs 3 rows"):
        run("solve", np.eye(3), np.ones(2))
    with pytest.raises(LinAlgError, match="b must be a vector or a matrix, got a number"):
        run("solve", np.eye(3), 1.0)
    with pytest.raises(LinAlgError, match="not positive definite"):
        run("cho_factor", -np.eye(5), tile=2)
    with pytest.raises(InputError, match="tile=0: a tile has at least one row and one column"):
        solve(np.eye(5), np.ones(5), tile=0)


def test_tiles_that_do_not_fit_are_cut_anew():
    a, b = random(0, 6, 6), random(1, 6, 2)
    matrix, right = TiledArray.from_numpy(a, 2), TiledArray.from_numpy(b, (3, 1))
    assert np.allclose(solve(matrix, right, engine=ENGINE), np.linalg.solve(a, b))
    assert np.allclose(inv(TiledArray.from_numpy(a, (2, 3)), engine=ENGINE), np.linalg.inv(a))
