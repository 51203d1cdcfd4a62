"""Linear maps that rules need and users have no name for: transposes, each with a rule itself."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linnet.arrays.elements import elementwise
from linnet.arrays.elements.assignment import added_at
from linnet.arrays.elements.core import wrap
from linnet.arrays.expression.builders import filled
from linnet.arrays.expression.traced import traceable
from linnet.derivatives.names import ln
from linnet.derivatives.rules import Derivatives, Linear, maps
from linnet.derivatives.tracing import plain
from linnet.tiles import Layout


def layout_of(array: Any) -> Layout:
    """The tiles of an array, traced or not."""
    return plain(array).__node__.layout


def zeros_as(array: Any) -> Any:
    """Zeros of the shape, dtype and tiles of an array."""
    node = plain(array).__node__
    return wrap(filled(node.shape, 0, node.dtype, node.layout))


@traceable
def spread(g: Any, shape: tuple[int, ...], layout: Layout | None = None) -> Any:
    """`broadcast_to` in given tiles."""
    return g if g.shape == shape else wrap(elementwise.spread(g.__node__, shape, layout))


@maps(spread, text="spread; summed over what it was spread along")
def _spread(result: Any, g: Any, shape: Any, layout: Any = None) -> Derivatives:
    old = g.shape
    return {"g": Linear(lambda t: spread(t, shape, layout), lambda w: summed_to(w, old))}


def spread_like(g: Any, array: Any) -> Any:
    """A weight on a reduction of an array, on each of its elements."""
    return spread(g, array.shape, layout_of(array))


def summed_to(g: Any, shape: tuple[int, ...]) -> Any:
    """A weight on an array that was broadcast, as one on the array of this shape."""
    if g.shape == shape:
        return g
    extra = len(g.shape) - len(shape)
    short = [a + extra for a, n in enumerate(shape) if n == 1 and g.shape[a + extra] != 1]
    if short or extra:
        g = ln.sum(g, axis=(*range(extra), *short), keepdims=True)
    return ln.reshape(g, shape) if extra else g


@traceable
def put_into_zeros(g: Any, key: Any, shape: tuple[int, ...], dtype: Any, layout: Layout) -> Any:
    """Zeros with `g` added at `[key]`: the transpose of `x[key]`."""
    return added_at(filled(shape, 0, dtype, layout), key, ln.astype(g, dtype))


@maps(put_into_zeros, text="put into zeros; taken from there")
def _put_into_zeros(result: Any, g: Any, key: Any, shape: Any, dtype: Any, layout: Any) -> Derivatives:
    return {
        "g": Linear(
            lambda t: put_into_zeros(t, key, shape, dtype, layout),
            lambda w: ln.astype(w[key], g.dtype),
        )
    }


def put_back(g: Any, key: Any, array: Any) -> Any:
    """A weight on `array[key]` as one on the array."""
    return put_into_zeros(g, key, array.shape, np.dtype(g.dtype), layout_of(array))


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """The axes of a reduction; None: all."""
    given = range(ndim) if axis is None else axis if isinstance(axis, tuple | list) else (axis,)
    return tuple(each % ndim for each in given)


def length_along(x: Any, axis: Any) -> int:
    """How many elements a reduction makes one of."""
    return math.prod(x.shape[each] for each in axes_of(axis, x.ndim))


def keep_axes(g: Any, axis: Any, ndim: int, keepdims: bool) -> Any:
    """The result of a reduction with its axes in their places again."""
    return g if keepdims or not ndim else ln.expand_dims(g, tuple(sorted(axes_of(axis, ndim))))


def conj(x: Any) -> Any:
    """The conjugate; real numbers as they are."""
    return ln.conjugate(x) if x.dtype.kind == "c" else x


def adjoint(x: Any) -> Any:
    """The conjugate transpose of matrices."""
    return conj(ln.matrix_transpose(x))
