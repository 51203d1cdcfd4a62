"""Random order of long arrays: dealt to heaps and mixed, with bounded memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import linnet as ln
from linnet.arrays.functions import random_numbers, random_order


@pytest.fixture(autouse=True, scope="module")
def _short_arrays_are_dealt():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(random_order, "LARGE", 1)
        patch.setattr(random_numbers, "LARGE", 1)
        patch.setattr(random_order, "PIECE", 32)
        yield


def rng(seed=5):
    return ln.random.default_rng(seed)


@pytest.mark.slow
@given(st.integers(1, 200), st.integers(1, 60), st.integers(0, 3))
def test_every_element_once_whatever_the_cut(length, chunk, seed):
    x = np.arange(length)
    made = rng(seed).permutation(ln.asarray(x, chunks=chunk)).compute()
    assert sorted(made) == list(x)
    assert np.array_equal(made, rng(seed).permutation(ln.asarray(x, chunks=length)).compute())
    with ln.init(workers=1, memory="1 MB"):
        assert np.array_equal(made, rng(seed).permutation(ln.asarray(x, chunks=chunk)).compute())


@given(st.integers(1, 30), st.integers(1, 9), st.integers(0, 1), st.integers(1, 12))
def test_rows_stay_together(rows, columns, axis, chunk):
    x = np.arange(rows * columns).reshape(rows, columns)
    made = rng().permutation(ln.asarray(x, chunks=chunk), axis=axis).compute()
    ours, theirs = (made.T, x.T) if axis else (made, x)
    assert sorted(map(tuple, ours)) == sorted(map(tuple, theirs))


@pytest.mark.slow
def test_all_orders_are_equally_likely():
    x = ln.asarray(np.arange(8.0), chunks=5)
    seen = np.zeros((8, 8))
    for seed in range(320):
        seen[np.arange(8), rng(seed).permutation(x).compute().astype(int)] += 1
    # 49 degrees of freedom: a value above 90 comes by chance once in three thousand times
    assert ((seen - 40) ** 2 / 40).sum() < 90


@given(st.integers(1, 100), st.floats(0, 1))
def test_samples_without_replacement(length, share):
    count = int(share * length)
    made = rng().choice(ln.asarray(np.arange(length), chunks=7), count, replace=False).compute()
    assert made.shape == (count,)
    assert len(set(made.tolist())) == count
    assert set(made.tolist()) <= set(range(length))


def test_samples_with_replacement():
    made = rng().choice(ln.asarray(np.arange(10), chunks=3), 20_000).compute()
    assert np.allclose(np.bincount(made) / 2000, 1, atol=0.1)
    rows = rng().choice(ln.asarray(np.eye(4), chunks=1), 50, axis=1).compute()
    assert rows.shape == (4, 50)
    assert (rows.sum(axis=0) == 1).all()


def test_integers_and_shuffles():
    assert sorted(rng().permutation(90).compute()) == list(range(90))
    x = ln.asarray(np.arange(40), chunks=9)
    before = x.copy()
    rng(1).shuffle(x)
    assert np.array_equal(x.compute(), rng(1).permutation(before).compute())
    assert sorted(rng().permuted(x.reshape(5, 8)).compute().ravel()) == list(range(40))


def test_what_cannot_be_drawn():
    x = ln.asarray(np.arange(5), chunks=2)
    with pytest.raises(ValueError, match="larger sample than population"):
        rng().choice(x, 6, replace=False)


def test_more_rows_than_numpy_draws_from(monkeypatch):
    monkeypatch.setattr(random_order, "_MOST", 50)
    x = ln.asarray(np.arange(60), chunks=11)
    assert sorted(rng().permutation(x).compute()) == list(range(60))
    with pytest.raises(ValueError, match=r"fewer than 50 rows, not from 60; take the first rows of permu"):
        rng().choice(x, 7, replace=False)
    assert len(set(rng().permutation(x)[:7].compute().tolist())) == 7
