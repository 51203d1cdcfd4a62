"""Bits in bytes against NumPy, whatever the tiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from against_numpy import Pair, same, tiles_only
from hypothesis import given
from hypothesis import strategies as st
from strategies import arrays, chunkings

import linnet as ln

orders = st.sampled_from(["big", "little"])


@given(st.data(), orders)
def test_packed(data: Any, order: str) -> None:
    x = data.draw(arrays(("?", "u1", "i8"), min_dims=1, max_side=19))
    axis = data.draw(st.none() | st.integers(-x.ndim, x.ndim - 1))
    with tiles_only():
        same(np.packbits, Pair(x, data.draw(chunkings(x.shape))), axis, order)


@given(st.data(), orders, st.none() | st.integers(-50, 70))
def test_unpacked(data: Any, order: str, count: int | None) -> None:
    # Not of length 0: NumPy does not set what it counts beyond the end of nothing.
    x = data.draw(arrays(("u1",), min_dims=1, min_side=1, max_side=5))
    axis = data.draw(st.none() | st.integers(-x.ndim, x.ndim - 1))
    with tiles_only():
        same(np.unpackbits, Pair(x, data.draw(chunkings(x.shape))), axis, count, order)


def test_there_and_back() -> None:
    bits = np.random.default_rng(0).random((50, 33)) < 0.5
    x = ln.asarray(bits, chunks=(7, 5))
    for axis in (0, 1):
        packed = ln.packbits(x, axis=axis)
        assert np.array_equal(ln.unpackbits(packed, axis=axis, count=bits.shape[axis]).compute(), bits)


def test_refused() -> None:
    x = ln.asarray(np.arange(40) % 2, chunks=8)
    with tiles_only():
        with pytest.raises(TypeError, match="integer or boolean"):
            ln.packbits(x / 2)
        with pytest.raises(TypeError, match="unsigned byte"):
            ln.unpackbits(x)
        with pytest.raises(ValueError, match="'little' or 'big'"):
            ln.packbits(x, bitorder="middle")
