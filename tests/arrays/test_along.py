"""Lazy positions and masks larger than half of the budget: what is planned without knowing them."""

from __future__ import annotations

import numpy as np
import pytest

import linnet as ln
from linnet.errors import KernelError

MANY = 200_000


def test_a_short_table_at_many_lazy_positions() -> None:
    codes = np.random.default_rng(0).integers(-50, 50, MANY)
    table = np.arange(50.0) ** 2
    lazy = ln.asarray(codes, chunks=20_000) + 0
    with ln.init(workers=2, memory=1 << 20):
        for found in (ln.asarray(table)[lazy], ln.take(ln.asarray(table, chunks=9), lazy)):
            assert found.shape == codes.shape
            assert float(found.sum()) == table[codes].sum()
        square = np.reshape(lazy, (400, 500))
        assert ln.asarray(table)[square].shape == (400, 500)
        with pytest.raises(KernelError, match="out of bounds"):
            ln.asarray(table)[lazy + 1].sum().compute()


@pytest.mark.slow
def test_values_under_a_long_lazy_mask() -> None:
    values = np.arange(float(MANY))
    with ln.init(workers=2, memory=1 << 20):
        for function in (np.place, np.putmask):
            want = values.copy()
            function(want, values % 3 == 0, [1.0, 2.0, 3.0])
            x = ln.asarray(values, chunks=20_000)
            function(x, x % 3 == 0, [1.0, 2.0, 3.0])
            assert float(x.sum()) == want.sum()
            assert np.array_equal(x[-50:].compute(), want[-50:])


def test_nothing_can_be_placed_but_nowhere() -> None:
    x = ln.asarray(np.arange(6), chunks=2)
    np.place(x, x > 9, [])
    with pytest.raises(ValueError, match="empty"):
        np.place(x, x > 3, [])
    with pytest.raises(ValueError, match="same size"):
        np.place(x, np.array([True]), [1])
