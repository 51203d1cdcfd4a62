"""Cross products, orders of contraction and equations of tensors, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from against_numpy import Pair, same, tiles_only
from hypothesis import given
from hypothesis import strategies as st
from strategies import arrays, chunkings

import linnet as ln


@pytest.mark.slow
@given(st.data(), st.sampled_from(["i4", "f8", "c16"]))
def test_cross(data: Any, dtype: str) -> None:
    rank = data.draw(st.integers(1, 3))
    axes = [data.draw(st.integers(-rank, rank - 1)) for _ in range(3)]
    rest = [data.draw(st.sampled_from([1, 4])) for _ in range(rank - 1)]
    pairs = []
    for axis in axes[:2]:
        shape = list(rest)
        shape.insert(axis % rank, 3)
        values = np.random.default_rng(rank).integers(-5, 5, shape).astype(dtype)
        pairs.append(Pair(values, data.draw(chunkings(values.shape))))
    with tiles_only():
        same(np.cross, *pairs, *axes)
        same(np.cross, *pairs, axisc=axes[2])
        same(np.cross, pairs[0], pairs[0], axis=axes[0])


def test_cross_takes_three_elements() -> None:
    x = ln.asarray(np.arange(8.0).reshape(4, 2), chunks=1)
    with pytest.raises(ValueError, match="3 elements"):
        ln.cross(x, x)


def test_the_order_of_contractions_needs_no_values() -> None:
    x = ln.zeros((10, 200_000), chunks=(10, 1000))
    path, text = np.einsum_path("ij,jk,kl->il", x, x.T, x)
    assert path == ["einsum_path", (0, 1), (0, 1)]
    assert "Naive scaling" in text


@pytest.mark.slow
@given(st.data())
def test_piecewise(data: Any) -> None:
    values = data.draw(arrays(("i4", "f8"), max_dims=2, special=False))
    x = Pair(values, data.draw(chunkings(values.shape)))
    low, high = Pair(values < 0, data.draw(chunkings(values.shape))), Pair(values > 2, 1)

    def called(x: Any, low: Any, high: Any, functions: list[Any]) -> Any:
        return np.piecewise(x, [low, high], functions)

    with tiles_only():
        same(called, x, low, high, [lambda t: -t, 7])
        same(called, x, low, high, [lambda t: -t, lambda t: 2 * t, 5])
        same(called, x, low, high, [1])
        if values.ndim == 1 and values.size:
            same(np.piecewise, x, low, [lambda t, by: t * by, -1], 3)


def test_piecewise_wants_conditions_of_the_shape() -> None:
    x = ln.asarray(np.arange(6), chunks=2)
    with tiles_only(), pytest.raises(IndexError, match="shape"):
        ln.piecewise(x, [x[:3] > 1], [1])


@pytest.mark.parametrize("chunks", [2, 100])
def test_equations_of_tensors(chunks: int) -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(4, 6, 8, 3)), rng.normal(size=(4, 6))
    with tiles_only():
        same(np.linalg.tensorinv, Pair(a, chunks), rtol=1e-8)
        same(np.linalg.tensorinv, Pair(a.reshape(24, 8, 3), chunks), 1, rtol=1e-8)
        same(np.linalg.tensorsolve, Pair(a, chunks), Pair(b, chunks), rtol=1e-8)
        same(np.linalg.tensorsolve, Pair(np.moveaxis(a, 3, 0), chunks), Pair(b, chunks), (0,), rtol=1e-8)
        with pytest.raises(np.linalg.LinAlgError, match="matrix of 4 × 144"):
            ln.linalg.tensorinv(ln.asarray(a, chunks=2), 1)
        with pytest.raises(ValueError, match="positive"):
            ln.linalg.tensorinv(ln.asarray(a, chunks=2), 0)
