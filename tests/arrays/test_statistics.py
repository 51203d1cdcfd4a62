"""Covariances, correlations and weighted means against NumPy."""

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
def variables(draw: Any, dtypes: Any = ("f8", "i4", "c16"), **keywords: Any) -> Pair:
    keywords = {"min_dims": 1, "max_dims": 2, "min_side": 1, "special": False, **keywords}
    array = draw(arrays(dtypes, **keywords))
    return Pair(array, draw(chunkings(array.shape)))


@given(variables(), st.booleans(), st.sampled_from([None, 0, 1]))
def test_covariances(x: Pair, rowvar: bool, ddof: int | None) -> None:
    same(np.cov, x, rowvar=rowvar, ddof=ddof)


@given(variables(("f8", "f4")), st.booleans())
def test_covariances_of_two_sets(x: Pair, bias: bool) -> None:
    same(np.cov, x, Pair(x.array[..., ::-1] ** 2, 2), bias=bias)


@settings(max_examples=20)
@given(variables(("f8",), min_dims=2, min_side=2))
def test_weighted_covariances(x: Pair) -> None:
    count = x.array.shape[1]
    same(np.cov, x, ddof=0, aweights=np.arange(count) + 1.0, fweights=np.arange(count) % 3 + 1)
    same(np.cov, x, fweights=np.full(count, 1.5))
    same(np.cov, x, aweights=-np.ones(count))
    same(np.cov, x, aweights=np.ones(count + 1))


@pytest.mark.parametrize("shape", [(7, 5), (23,), (2, 40)])
def test_correlations(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    array = rng.normal(size=shape)
    same(np.corrcoef, Pair(array, 2))
    same(np.corrcoef, Pair(array + 1j * rng.normal(size=shape), 3))
    same(np.corrcoef, Pair(array, 2), rowvar=False)


@given(variables(("f8", "f4", "i4")), st.data())
def test_weighted_means(x: Pair, data: Any) -> None:
    axis = data.draw(st.integers(0, x.array.ndim - 1))
    length = x.array.shape[axis]
    same(np.average, x, axis=axis, returned=True)
    same(np.average, x, axis=axis, weights=Pair(np.arange(1.0, length + 1), 2), returned=True)
    same(np.average, x, axis=axis, weights=np.ones(length + 1))
