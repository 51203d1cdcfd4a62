"""Rounding, clipping, comparing and polynomials against NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from against_numpy import Pair, same, tiles_only
from hypothesis import given
from hypothesis import strategies as st
from strategies import arrays, chunkings

pytestmark = pytest.mark.slow

FLOATS = ("f4", "f8", "c16")
REALS = ("i1", "i8", "u1", "f4", "f8")


@pytest.fixture(autouse=True, scope="module")
def _tiles_only() -> Iterator[None]:
    with tiles_only():
        yield


@st.composite
def cases(draw: Any, dtypes: Any = REALS, **keywords: Any) -> Pair:
    array = draw(arrays(dtypes, **keywords))
    return Pair(array, draw(chunkings(array.shape)))


@given(cases(FLOATS), st.sampled_from([np.real, np.imag, np.angle]))
def test_parts_of_numbers(x: Pair, function: Any) -> None:
    same(function, x)


@given(cases(("f4", "f8"), special=False), st.sampled_from([np.i0, np.sinc, np.fix]))
def test_functions_of_one_operand(x: Pair, function: Any) -> None:
    same(function, x)


@given(cases((*REALS, "c16", "f2")), st.integers(-2, 3))
def test_rounding(x: Pair, decimals: int) -> None:
    same(np.round, x, decimals)


LIMITS = st.sampled_from([None, -0.5, 1, 2.0])


@given(cases(("f4", "f8")), LIMITS, LIMITS)
def test_clipping(x: Pair, low: Any, high: Any) -> None:
    same(np.clip, x, low, high)


def test_clipping_by_arrays_and_by_one_limit() -> None:
    array = np.arange(20).reshape(4, 5)
    same(np.clip, Pair(array, 2), Pair(array[1], 2), None)
    same(np.clip, Pair(array, 3), min=4)
    same(np.clip, Pair(array, 3), -2, 3)


@given(cases((*REALS, "c16")), st.booleans())
def test_nan_to_num(x: Pair, chosen: bool) -> None:
    same(np.nan_to_num, x, **({"nan": 3.0, "posinf": 1.0, "neginf": -1.0} if chosen else {}))


@given(st.data(), st.booleans())
def test_comparing(data: Any, equal_nan: bool) -> None:
    x = data.draw(cases(("f8", "i4"), min_dims=1, max_dims=2))
    near = Pair(x.array + data.draw(st.sampled_from([0, 1e-9, 1e-3])), data.draw(chunkings(x.array.shape)))
    same(np.isclose, x, near, equal_nan=equal_nan)
    same(np.allclose, x, near, equal_nan=equal_nan)
    same(np.array_equal, x, near, equal_nan=equal_nan)
    same(np.array_equiv, x, near)
    same(np.array_equal, x, Pair(x.array[None], 1))


@given(cases(("f8", "i8"), special=False), st.lists(st.integers(-3, 3), min_size=1, max_size=4))
def test_polynomials(x: Pair, coefficients: list[int]) -> None:
    same(np.polyval, coefficients, x)
    same(np.polyval, [each / 2 for each in coefficients], x)
