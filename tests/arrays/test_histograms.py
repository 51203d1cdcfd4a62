"""Histograms and counts against NumPy."""

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

RULES = ("auto", "doane", "fd", "rice", "scott", "sqrt", "stone", "sturges", "none of these")
BINS = (1, 5, [-2, -1, 0, 0.5, 3], [1, 0], 0)


@pytest.fixture(autouse=True, scope="module")
def _tiles_only() -> Iterator[None]:
    with tiles_only():
        yield


@st.composite
def cases(draw: Any, dtypes: Any = ("f8", "f4", "i4", "u1"), **keywords: Any) -> Pair:
    array = draw(arrays(dtypes, **{"max_dims": 2, "special": False, **keywords}))
    return Pair(array, draw(chunkings(array.shape)))


@given(cases(), st.sampled_from(BINS), st.sampled_from([None, (-1, 1), (0, 0), (2, 1)]), st.booleans())
def test_histograms(x: Pair, bins: Any, limits: Any, density: bool) -> None:
    same(np.histogram, x, bins=bins, range=limits, density=density)
    same(np.histogram_bin_edges, x, bins=bins, range=limits)


@given(cases(special=True))
def test_values_that_are_not_finite(x: Pair) -> None:
    same(np.histogram, x)
    same(np.histogram, x, bins=[-2, 0, 2])


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("limits", [None, (-1, 1)])
def test_rules_for_bins(rule: str, limits: Any) -> None:
    rng = np.random.default_rng(2)
    for array in (rng.normal(size=(7, 5)), rng.integers(-9, 9, (7, 5)), np.ones(4)):
        same(np.histogram, Pair(array, 3), bins=rule, range=limits)


@given(st.data(), st.sampled_from(["f8", "c16", "i4"]))
def test_weights(data: Any, dtype: str) -> None:
    x = data.draw(cases(("f8",), min_dims=1))
    weights = (np.arange(x.array.size) % 5 - 1).astype(dtype).reshape(x.array.shape)
    same(np.histogram, x, 4, weights=Pair(weights, data.draw(chunkings(weights.shape))))


@given(st.data(), st.sampled_from([0, 3, 30, -1]))
def test_bincount(data: Any, minlength: int) -> None:
    x = data.draw(cases(("i8", "u1", "i4", "f8"), min_dims=1, max_dims=1, max_side=12))
    same(np.bincount, x, minlength=minlength)
    same(np.bincount, x, Pair(np.arange(x.array.size) / 2, 2), minlength=minlength)


COMPLEX = Pair(np.array([1 + 2j, 1 - 1j, 0.5, -2j, 1 + 2j, 3 - 1j]), 2)
REAL = Pair(np.array([0.5, 1.5, -1.0, 1.5, 0.25, 2.0]), 2)


@pytest.mark.parametrize("bins", [3, [np.array([0, 1, 1 + 2j, 4]), np.array([-1, 1, 2])]])
def test_points_of_complex_numbers_are_counted_with_their_imaginary_parts(bins: Any) -> None:
    same(np.histogram2d, COMPLEX, REAL, bins=bins)
    same(np.histogramdd, Pair(np.stack([COMPLEX.array, REAL.array], axis=1), (2, 1)), bins=bins)


@pytest.mark.parametrize("dtype", ["c16", "c8", "m8[s]", "M8[s]", "i8", "?"])
def test_weights_are_real_numbers(dtype: str) -> None:
    weights = Pair(np.arange(6).astype(dtype), 2)
    same(np.bincount, Pair(np.array([0, 2, 2, 1, 0, 4]), 2), weights)
    same(np.histogram2d, REAL, REAL, weights=weights)
    same(np.histogramdd, Pair(REAL.array.reshape(6, 1), (2, 1)), bins=[[-1, 0, 3]], weights=weights)


@settings(max_examples=15)
@given(st.data(), st.sampled_from([3, [3, 4], [0, 1, 2]]), st.booleans())
def test_histograms_of_several_variables(data: Any, bins: Any, density: bool) -> None:
    x = data.draw(cases(("f8",), min_dims=1, max_dims=1, min_side=1, max_side=12))
    y = Pair(x.array[::-1] ** 2, data.draw(chunkings(x.array.shape)))
    same(np.histogram2d, x, y, bins=bins, density=density)
    rows = Pair(np.stack([x.array, y.array], axis=1), (2, 1))
    count = bins if isinstance(bins, int) else 3
    same(np.histogramdd, rows, bins=count, density=density)
    same(np.histogramdd, rows, bins=count, weights=Pair(np.arange(1.0, x.array.size + 1), 2))
