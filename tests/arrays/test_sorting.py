"""Sorting, sets and quantiles against NumPy, in one tile and between tiles, and under a budget."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import DATES, NUMBERS, pairs, tiled

from linnet.arrays.expression import chunking
from linnet.arrays.functions import elements_by_rank, quantiles, sets, sort
from linnet.kernels.arrays.quantiles import METHODS, as_keys, from_keys
from linnet.session import init

RNG = np.random.default_rng(7)
KEYS = {
    "normal": lambda n: RNG.normal(size=n),
    "constant": lambda n: np.zeros(n),
    "skewed": lambda n: np.floor(RNG.exponential(size=n) * 2),
    "nan": lambda n: np.where(RNG.random(n) < 0.3, np.nan, RNG.normal(size=n)),
}


@pytest.fixture(autouse=True, scope="module", params=["in one tile", "between tiles"])
def _ways(request: Any) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunking, "SMALL", -1)
        if request.param == "between tiles":
            patch.setattr(sort, "ONE_TILE", -1)
            patch.setattr(sort, "fits_whole", lambda *_: False)
            patch.setattr(sets, "ONE_TILE", -1)
            patch.setattr(quantiles, "LONGEST", -1)
        yield


@pytest.mark.slow
@settings(max_examples=15)
@given(pairs((*NUMBERS, *DATES), min_dims=1, max_dims=2, max_side=9), st.data())
def test_sorting_is_numpys(pair: Any, data: Any) -> None:
    array, ours = pair
    axis = data.draw(st.integers(-array.ndim, array.ndim - 1))
    np.testing.assert_array_equal(np.sort(ours, axis=axis).compute(), np.sort(array, axis=axis))
    wanted = np.argsort(array, axis=axis, stable=True)
    np.testing.assert_array_equal(np.argsort(ours, axis=axis).compute(), wanted)
    downwards = sort.sort(ours, axis=axis, descending=True).compute()
    np.testing.assert_array_equal(downwards, np.flip(np.sort(array, axis=axis), axis))
    if array.shape[axis]:
        best = sort.topk(ours, 2, axis).compute()
        np.testing.assert_array_equal(best, np.take(downwards, range(min(2, array.shape[axis])), axis))


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize(("length", "tile"), [(1, 1), (40, 1), (300, 17)])
def test_buckets_are_even_whatever_the_keys(keys: str, length: int, tile: int) -> None:
    array = KEYS[keys](length)
    made = np.sort(tiled(array, tile))
    np.testing.assert_array_equal(made.compute(), np.sort(array))
    if sort.ONE_TILE < 0:
        assert max(made.chunks[0]) <= 2 * tile + 1


@pytest.mark.slow
@settings(max_examples=15)
@given(pairs((*NUMBERS, *DATES), max_dims=2))
def test_unique_is_numpys(pair: Any) -> None:
    array, ours = pair
    wanted = np.unique(array, True, True, True)
    for found, each in zip(np.unique(ours, True, True, True), wanted, strict=True):
        assert found.shape == each.shape
        np.testing.assert_array_equal(found.compute(), each)
    every = np.unique_all(ours)
    np.testing.assert_array_equal(
        every.values.compute(),
        np.unique(array, equal_nan=False),
    )
    np.testing.assert_array_equal(every.values.compute()[every.inverse_indices.compute()], array)


@pytest.mark.slow
@settings(max_examples=15)
@given(pairs(("i4", "u1", "?"), max_dims=1), pairs(("i4", "i8"), max_dims=1))
def test_sets_are_numpys(one: Any, other: Any) -> None:
    for function in (np.union1d, np.intersect1d, np.setdiff1d, np.setxor1d, np.isin):
        wanted = function(one[0], other[0])
        found = function(one[1], other[1])
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found.compute(), wanted)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "u1"])
def test_quantiles_are_numpys(method: Any, dtype: str) -> None:
    array = (RNG.normal(size=(5, 7)) * 9).astype(dtype)
    asked = [0, 0.1, 0.25, 1 / 3, 0.5, 0.77, 1.0]
    for axis in (None, 1):
        wanted = np.quantile(array, asked, axis=axis, method=method)
        found = np.quantile(tiled(array, 2), asked, axis=axis, method=method)
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found.compute(), wanted, rtol=1e-5)


@pytest.mark.parametrize("function", [np.median, np.nanmedian, np.nanmax])
def test_medians_see_or_skip_nan(function: Any) -> None:
    array = KEYS["nan"](60).reshape(6, 10)
    array[2] = np.nan
    for axis in (None, 1):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = function(array, axis=axis, keepdims=True)
        np.testing.assert_allclose(function(tiled(array, 3), axis=axis, keepdims=True).compute(), wanted)


def test_many_quantiles_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elements_by_rank, "_FEW", 10)
    array = RNG.normal(size=400)
    asked = np.linspace(0, 1, 41)
    found: Any = np.quantile(tiled(array, 90), asked)
    np.testing.assert_allclose(found.compute(), np.quantile(array, asked))


def test_quantiles_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match=r"range \[0, 1\]"):
        np.quantile(tiled(np.zeros(3), 1), 1.5)
    with pytest.raises(ValueError, match="approximate"):
        np.quantile(tiled(np.zeros(3), 1), 0.5, method="close")  # type: ignore[call-overload]


def test_approximate_quantiles_keep_their_bound() -> None:
    array = RNG.exponential(size=50_000)
    asked = [0.01, 0.5, 0.999]
    found = np.quantile(tiled(array, 7_000), asked, method="approximate").compute()  # type: ignore[call-overload]
    ranks = np.searchsorted(np.sort(array), found)
    assert np.all(np.abs(ranks - np.array(asked) * array.size) <= array.size / 4096 + 1)


@given(pairs(("?", "i1", "i8", "u8", "f2", "f4", "f8", *DATES), max_dims=1, min_dims=1))
def test_keys_have_the_order_of_elements(pair: Any) -> None:
    array, _ = pair
    np.testing.assert_array_equal(from_keys(np.sort(as_keys(array)), array.dtype), np.sort(array))


@pytest.fixture
def budget() -> Iterator[int]:
    init(memory=1 << 20)
    yield 1 << 20
    init()


@pytest.mark.sample(3)
@pytest.mark.slow
@pytest.mark.parametrize("keys", KEYS)
def test_four_times_the_budget(keys: str, budget: int) -> None:
    count = 4 * budget // 8
    array = KEYS[keys](count)
    ours = tiled(array, count // 64)
    np.testing.assert_array_equal(np.sort(ours).compute(), np.sort(array))
    for found, each in zip(
        np.unique(ours, return_counts=True), np.unique(array, return_counts=True), strict=True
    ):
        np.testing.assert_array_equal(found.compute(), each)
    np.testing.assert_allclose(np.quantile(ours, [0.1, 0.5]).compute(), np.quantile(array, [0.1, 0.5]))
