"""Elements at places of the sorted array, found between bounds that a sample gives, or by digits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.arrays.expression.nodes import Source
from linnet.arrays.functions import elements_by_rank
from linnet.arrays.functions.elements_by_rank import order_statistics
from linnet.tiles import Layout

RNG = np.random.default_rng(11)
DATA = {
    "normal": lambda n: RNG.standard_normal(n),
    "constant": lambda n: np.full(n, 3.0),
    "skewed": lambda n: np.floor(RNG.exponential(0.5, n)),
    "infinite": lambda n: np.where(RNG.random(n) < 0.3, RNG.choice([-np.inf, np.inf], n), RNG.random(n)),
    "integers": lambda n: RNG.integers(-5, 5, n),
    "whole range": lambda n: RNG.choice(np.array([-(2**63), 0, 2**63 - 1]), n),
    "booleans": lambda n: RNG.random(n) < 0.4,
    "dates": lambda n: np.datetime64("2000-01-01") + RNG.integers(0, 40, n),
    "sorted": lambda n: np.arange(n, dtype=np.float32),
}


@pytest.fixture(autouse=True, scope="module")
def _small_samples():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elements_by_rank, "SAMPLES", 64)
        patch.setattr(elements_by_rank, "_SURE", 0.4)
        patch.setattr(elements_by_rank, "_SHARE", 0.9)
        yield


@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("ranks", [(0,), (499, 500), (0, 13, 999), (999,), tuple(range(0, 1000, 90))])
def test_elements_are_those_of_the_sorted_array(kind, ranks):
    x = DATA[kind](1000)
    for shape, tile in (((1000,), 170), ((20, 50), 7), ((1, 1000), 300)):
        node = Source(x.reshape(shape), Layout.regular(shape, tile))
        found = order_statistics(node, np.array(ranks))
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(found, np.sort(x)[list(ranks)])


@given(st.integers(256, 2000), st.integers(1, 50), st.data())
def test_whatever_repeats_in_step_with_the_sample(length, period, data):
    x = (np.arange(length) % period).astype(float)
    ranks = np.array(sorted({data.draw(st.integers(0, length - 1)) for _ in range(3)}))
    node = Source(x, Layout.regular(x.shape, 100))
    np.testing.assert_array_equal(order_statistics(node, ranks), np.sort(x)[ranks])


def test_the_sample_leads_there(monkeypatch):
    monkeypatch.setattr(elements_by_rank, "_by_digits", lambda *_: pytest.fail("the sample misled"))
    monkeypatch.setattr(elements_by_rank, "_SURE", 3.0)
    monkeypatch.setattr(elements_by_rank, "SAMPLES", 1024)
    x = RNG.standard_normal(50_000)
    node = Source(x, Layout.regular(x.shape, 9000))
    np.testing.assert_array_equal(order_statistics(node, np.array([24_999])), np.sort(x)[[24_999]])
