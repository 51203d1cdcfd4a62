"""Keys of every kind for `x[key]`, and the comparison of results with NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from strategies import chunkings, tiled

from linnet.arrays.elements.core import wrap
from linnet.arrays.expression.builders import mapped
from linnet.arrays.expression.nodes import Stored
from linnet.tiles import TiledArray


def stored(array: Any, chunks: Any) -> Any:
    """An array in pieces, as `persist` leaves it."""
    x = tiled(array, chunks)
    layout = x.__node__.layout
    tiles = {index: array[(*layout.slices(index), ...)].copy() for index in layout.indices()}
    return wrap(Stored(TiledArray(layout, array.dtype, tiles)))


def lazy(array: Any, chunks: Any) -> Any:
    """An array that is not computed yet."""
    return wrap(mapped("fill", [tiled(array, chunks).__node__], array.dtype, shape=array.shape))


FORMS = (tiled, stored, lazy)


def _position(length: int) -> st.SearchStrategy[int]:
    """Mostly inside, sometimes one too far."""
    return st.integers(-length - (length == 0), max(length - 1, 0)) | st.integers(-length - 1, length)


def _slices(length: int) -> st.SearchStrategy[slice]:
    bound = st.none() | st.integers(-length - 2, length + 2)
    step = st.none() | st.integers(-4, 4).filter(bool)
    return st.builds(slice, bound, bound, step)


@st.composite
def _integers(draw: Any, length: int, shape: tuple[int, ...]) -> Any:
    if length == 0 and 0 not in shape:
        shape = (*shape[:-1], 0) if shape else (0,)
    values = draw(hnp.arrays(np.int64, shape, elements=st.integers(-length, max(length - 1, 0))))
    return values.tolist() if values.ndim == 1 and draw(st.booleans()) else values


@st.composite
def keys(draw: Any, shape: tuple[int, ...]) -> Any:
    """Keys of every kind for an array of this shape; a few of them are wrong."""
    block = draw(hnp.array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=4))
    entries: list[Any] = []
    axis = 0
    while axis < len(shape):
        kind = draw(st.sampled_from("iisssaanmte."))
        if kind == "i":
            entries.append(draw(_position(shape[axis])))
            axis += 1
        elif kind == "s":
            entries.append(draw(_slices(shape[axis])))
            axis += 1
        elif kind == "a":
            part = draw(st.sampled_from([block, block[-1:], tuple(1 for _ in block)]))
            entries.append(draw(_integers(shape[axis], part)))
            axis += 1
        elif kind == "m":
            depth = draw(st.integers(1, len(shape) - axis))
            entries.append(draw(hnp.arrays(bool, shape[axis : axis + depth])))
            axis += depth
        elif kind == "t" and draw(st.integers(0, 3)) == 0:
            entries.append(draw(st.booleans()))
        elif kind == "n":
            entries.append(None)
        elif kind in "e.":
            if Ellipsis not in [e for e in entries if e is Ellipsis]:
                entries.append(Ellipsis)
            if kind == "e":
                break
    if len(entries) == 1 and draw(st.booleans()):
        return entries[0]
    return tuple(entries)


def lazily(draw: Any, key: Any) -> Any:
    """The same key with some of its arrays in tiles."""
    if isinstance(key, tuple):
        return tuple(lazily(draw, each) for each in key)
    if isinstance(key, np.ndarray) and draw(st.booleans()):
        return tiled(key, draw(chunkings(key.shape)))
    return key


def result_of(function: Any) -> Any:
    """A result or the type of an error."""
    try:
        return function()
    except (IndexError, ValueError, TypeError, OverflowError) as error:
        return type(error)


def same(found: Any, expected: Any) -> None:
    """Equal in values, shape and dtype, or the same error."""
    if isinstance(expected, type):
        assert found is expected
        return
    assert not isinstance(found, type), found
    value = np.asarray(found.compute())
    assert found.shape == np.shape(expected)
    assert found.dtype == expected.dtype
    assert value.dtype == expected.dtype
    np.testing.assert_array_equal(value, expected)
