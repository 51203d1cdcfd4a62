"""`x[...] = v` on arrays in tiles, with NumPy as the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from index_keys import FORMS, keys, lazily, result_of, same
from strategies import NUMBERS, arrays, chunkings, elements

from linnet.arrays import assignment, chunking


@pytest.fixture(autouse=True, scope="module")
def _no_straight_path() -> Any:
    """Arrays of one tile go the same way as arrays of many."""
    kept, chunking.SMALL = chunking.SMALL, -1
    yield
    chunking.SMALL = kept


@st.composite
def values(draw: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Values that can be broadcast to a shape, mostly."""
    kept = shape[draw(st.integers(0, len(shape))) :]
    kept = tuple(1 if draw(st.integers(0, 3)) == 0 else n for n in kept)
    if draw(st.integers(0, 5)) == 0:
        kept = (1, *kept)
    if draw(st.integers(0, 9)) == 0:
        kept = (*kept, 2)
    return draw(hnp.arrays(dtype, kept, elements=elements(dtype, special=False)))


def _put(x: Any, key: Any, value: Any) -> Any:
    x[key] = value
    return x


@given(st.data(), st.sampled_from(FORMS), st.sampled_from(FORMS), st.sampled_from([0, 1 << 26]))
def test_every_key_and_value(data: Any, form: Any, value_form: Any, at_once: int) -> None:
    array = data.draw(arrays(NUMBERS, special=False))
    x = form(array.copy(), data.draw(chunkings(array.shape)))
    key = data.draw(keys(array.shape))
    shape = result_of(lambda: array[key])
    value = data.draw(values(() if isinstance(shape, type) else np.shape(shape), array.dtype))
    expected = array.copy()
    outcome = result_of(lambda: _put(expected, key, value))
    ours = value_form(value, data.draw(chunkings(value.shape))) if data.draw(st.booleans()) else value
    before = x + x
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assignment, "_AT_ONCE", at_once)
        found = result_of(lambda: _put(x, lazily(data.draw, key), ours))
    if isinstance(outcome, type):
        both = {IndexError, ValueError}  # where both are wrong, which is said first is not NumPy's promise
        assert found is outcome or {found, outcome} == both
        same(x, array)
    else:
        same(x, expected)
        assert x.chunks == before.chunks
    same(before, array + array)


@given(st.data(), st.sampled_from(FORMS))
def test_many_assignments_in_a_row(data: Any, form: Any) -> None:
    array = data.draw(arrays(("f8",), special=False, min_dims=1, min_side=1))
    x = form(array.copy(), data.draw(chunkings(array.shape)))
    seen: list[tuple[Any, Any]] = []
    for number in range(data.draw(st.integers(1, 40))):
        key = data.draw(keys(array.shape).filter(lambda k: not isinstance(result_of(lambda: array[k]), type)))
        array[key] = number
        x[key] = number
        if data.draw(st.integers(0, 5)) == 0:
            seen.append((x * 2, array * 2))
    same(x, array)
    for ours, theirs in seen:
        same(ours, theirs)
