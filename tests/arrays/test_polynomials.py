"""Polynomials against NumPy: coefficients combined, data fitted."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from against_numpy import Pair, same, tiles_only
from hypothesis import given
from hypothesis import strategies as st

import linnet as ln

coefficients = st.lists(st.integers(-3, 3), min_size=1, max_size=6)
chunks = st.integers(1, 4)


@pytest.mark.slow
@given(coefficients, coefficients, chunks)
def test_sums_and_products(p: list[int], q: list[int], cut: int) -> None:
    with tiles_only():
        for function in (np.polyadd, np.polysub, np.polymul):
            same(function, Pair(p, cut), Pair(q, cut))
            same(function, Pair(p, cut), [each / 2 for each in q])


@pytest.mark.slow
@given(coefficients, st.integers(-1, 7), chunks)
def test_derivatives_and_integrals(p: list[int], m: int, cut: int) -> None:
    with tiles_only():
        same(np.polyder, Pair(p, cut), m)
        same(np.polyint, Pair(p, cut), m)
        same(np.polyint, Pair(np.array(p) / 2, cut), m, 3)
        same(np.polyint, Pair(p, cut), m, [1.0, 2.0])


@pytest.mark.parametrize("shape", [(2, 2), (3, 2), (1, 3), (3,)])
@pytest.mark.parametrize("m", [0, 1, 2])
def test_matrices_are_no_polynomials(shape: tuple[int, ...], m: int) -> None:
    p = Pair(np.arange(1.0, 1 + np.prod(shape)).reshape(shape), 2)
    with tiles_only():
        same(np.polyder, p, m)
        same(np.polymul, p, p)
        same(np.polymul, Pair(np.arange(3), 2), p)


def test_spans_are_no_coefficients() -> None:
    with tiles_only():
        same(np.polyval, Pair(np.arange(3).astype("m8[s]"), 2), Pair(np.arange(3.0), 2))
        same(np.polyval, Pair(np.arange(3.0), 2), Pair(np.arange(3).astype("m8[s]"), 2))
        for x in (np.arange(3), np.arange(3.0), np.arange(3) > 1, np.arange(3).astype("f4")):
            same(np.polyval, Pair(np.arange(3), 2), Pair(x, 2))
            same(np.polyval, Pair(np.array([]), 2), Pair(x, 2))


def data(columns: int | None) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    x = rng.uniform(-2, 2, 40)
    y = np.polyval([0.5, -1, 2], x)
    return x, y + 0.01 * rng.normal(size=40) if columns is None else y[:, None] + rng.normal(
        size=(40, columns)
    )


@pytest.mark.parametrize("columns", [None, 2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("wanted", [{}, {"cov": True}, {"cov": "unscaled"}])
def test_fits(columns: int | None, weighted: bool, wanted: dict[str, Any]) -> None:
    x, y = data(columns)
    weights = {"w": Pair(np.linspace(1, 2, 40), 9)} if weighted else {}
    with tiles_only():
        same(np.polyfit, Pair(x, 7), Pair(y, 11), 3, rtol=1e-8, **weights, **wanted)


@pytest.mark.slow
@pytest.mark.parametrize("columns", [None, 2])
def test_all_that_a_fit_tells(columns: int | None) -> None:
    x, y = data(columns)
    wanted = np.polyfit(x, y, 2, full=True)
    with tiles_only():
        found = ln.polyfit(ln.asarray(x, chunks=7), ln.asarray(y, chunks=6), 2, full=True)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-8)


def test_what_cannot_be_fitted() -> None:
    x = ln.asarray(np.arange(6.0), chunks=2)
    with tiles_only():
        for y, degree in ((x, -1), (x[:4], 1), (ln.asarray(1.0), 1), (ln.zeros((6, 2, 2)), 1)):
            with pytest.raises((TypeError, ValueError), match="expected"):
                ln.polyfit(x, y, degree)
        with pytest.raises(TypeError, match="expected 1D vector for x"):
            ln.polyfit(ln.zeros((6, 2)), x, 1)
        with pytest.raises(TypeError, match="non-empty"):
            ln.polyfit(x[:0], x[:0], 1)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            ln.polyfit(x[:2], x[:2], 3)
        assert any(each.category is np.exceptions.RankWarning for each in said)
