"""Selecting bits gives what NumPy's `where` gives, bit by bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from linnet.kernels.arrays.selection import selected, selected_into

DTYPES = ["?", "i1", "u2", "f2", "i4", "f4", "i8", "f8", "c8", "c16", "M8[s]", "m8[D]", ">f8"]


def _bits(shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> Any:
    """Elements of any bits at all: infinities and all kinds of NaN among them."""
    if dtype == "?":
        return rng.random(shape) < 0.5
    return rng.integers(0, 256, (*shape, np.dtype(dtype).itemsize), np.uint8).view(dtype)[..., 0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5,), (4097,), (70, 300), (33, 2, 999)])
@pytest.mark.parametrize("share", [0.5, 0.01])
def test_where(dtype: str, shape: tuple[int, ...], share: float) -> None:
    rng = np.random.default_rng(7)
    condition = rng.random(shape) < share
    x, y = _bits(shape, dtype, rng), _bits(shape, dtype, rng)
    others = [x, x[..., ::-1], x.reshape(-1)[:1], *([1.5, True] if dtype in ("f4", "f8", "c16") else [])]
    for one, other in [(each, y) for each in others] + [(y, each) for each in others]:
        wanted = np.where(condition, one, other)
        found = selected(condition, one, other)
        assert found.dtype == wanted.dtype
        assert found.tobytes() == wanted.tobytes()
        into = np.empty(shape, wanted.dtype)
        selected_into(condition, np.asarray(one, wanted.dtype), np.asarray(other, wanted.dtype), into)
        assert into.tobytes() == wanted.tobytes()


@pytest.mark.parametrize(
    ("x", "y"), [(np.arange(5000), 0.5), (np.float32(1), np.arange(5000.0)), (3, np.zeros(5000, "u1"))]
)
def test_other_dtypes(x: Any, y: Any) -> None:
    condition = np.arange(5000) % 3 == 0
    wanted, found = np.where(condition, x, y), selected(condition, x, y)
    assert found.dtype == wanted.dtype
    assert found.tobytes() == wanted.tobytes()


def test_conditions_that_are_not_boolean() -> None:
    condition = np.arange(5000) % 2
    out = np.empty(5000)
    selected_into(condition, np.ones(5000), np.zeros(5000), out)
    assert out.tolist() == condition.tolist()
    assert selected(condition, 1.0, np.zeros(5000)).tolist() == condition.tolist()
