"""Differences, gradients, integrals, interpolation and convolution against NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from against_numpy import Pair, same, tiles_only
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import arrays, chunkings

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True, scope="module")
def _tiles_only() -> Iterator[None]:
    with tiles_only():
        yield


@st.composite
def lines(draw: Any, dtypes: Any = ("f8", "i4"), **keywords: Any) -> tuple[Pair, int]:
    """An array and one of its axes."""
    keywords = {"min_dims": 1, "max_dims": 2, "max_side": 8, "special": False, **keywords}
    array = draw(arrays(dtypes, **keywords))
    return Pair(array, draw(chunkings(array.shape))), draw(st.integers(-array.ndim, array.ndim - 1))


@given(lines(("f8", "i4", "?", "c16", "M8[D]"), special=True), st.integers(-1, 3))
def test_differences(case: Any, n: int) -> None:
    x, axis = case
    same(np.diff, x, n=n, axis=axis)


@given(lines())
def test_differences_with_ends(case: Any) -> None:
    x, axis = case
    same(np.diff, x, axis=axis, prepend=0, append=7)
    same(np.ediff1d, x)
    same(np.ediff1d, Pair(x.array.astype("f8"), 2), to_begin=1.0, to_end=[2.0, 3.0])


@given(lines(("f8", "f4", "i4"), min_side=1), st.sampled_from([1, 2]), st.sampled_from([None, 2.0]))
def test_gradients(case: Any, edge_order: int, step: float | None) -> None:
    x, axis = case
    steps = () if step is None else (step,)
    same(np.gradient, x, *steps, axis=axis, edge_order=edge_order)
    same(np.gradient, x, *steps, edge_order=edge_order)


@given(lines(("f8",), min_side=3, min_dims=2), st.sampled_from([1, 2]))
def test_gradients_between_uneven_points(case: Any, edge_order: int) -> None:
    x, _ = case
    points = [np.arange(n) ** 1.5 for n in x.array.shape]
    same(np.gradient, x, *points, edge_order=edge_order)


@given(lines(("f8", "c16", "i4")))
def test_integrals(case: Any) -> None:
    x, axis = case
    same(np.trapezoid, x, dx=0.5, axis=axis)
    points = np.arange(float(x.array.shape[axis])) ** 2
    same(np.trapezoid, x, Pair(points, 2), axis=axis)


@given(lines(("f8",)), st.sampled_from([{}, {"discont": 4.0}, {"period": 5.0}]))
def test_unwrapping(case: Any, options: Any) -> None:
    x, axis = case
    same(np.unwrap, x, axis=axis, **options)


OPTIONS = ({}, {"left": -7.0}, {"right": 3.0}, {"period": 2.0})


@given(lines(("f8", "f4", "i4"), special=True), st.sampled_from(OPTIONS), st.booleans())
def test_interpolation(case: Any, options: Any, is_complex: bool) -> None:
    x, _ = case
    same(np.interp, x, np.linspace(-1, 1, 5), np.arange(5.0) * (1j if is_complex else 1), **options)


@st.composite
def signals(draw: Any) -> Pair:
    array = draw(arrays(("f8", "i4", "c16"), min_dims=1, max_dims=1, max_side=9, special=False))
    return Pair(array, draw(chunkings(array.shape)))


@settings(max_examples=40)
@given(signals(), signals(), st.sampled_from(["full", "same", "valid"]))
def test_convolution(x: Pair, y: Pair, mode: str) -> None:
    same(np.convolve, x, y, mode=mode)
    same(np.correlate, x, y, mode=mode)


def test_convolution_by_transforms_is_that_by_sums() -> None:
    rng = np.random.default_rng(1)
    long, short = rng.normal(size=3000), rng.normal(size=600)
    same(np.convolve, Pair(long, 700), Pair(short, 200))
    long[1500] = np.inf
    same(np.convolve, Pair(long, 700), Pair(short, 200))
