"""Rules of functions that are rarer: grids, polynomials, interpolation, and NumPy's own forms of some."""

from __future__ import annotations

from typing import Any

import numpy as np

from linnet.arrays.functions.numeric import numpy_clip
from linnet.arrays.functions.sort import numpy_argsort, numpy_sort
from linnet.derivatives.linear_maps import spread
from linnet.derivatives.names import ln
from linnet.derivatives.rules import composition, zero
from linnet.errors import DerivativeError


def _array(item: Any) -> Any:
    return item if isinstance(item, ln.Array) else ln.asarray(item)


@composition(numpy_clip, text="minimum(maximum(x, min), max)")
def _numpy_clip(
    a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, min: Any = None, max: Any = None
) -> Any:
    given = [
        next((each for each in pair if each is not None and each is not np._NoValue), None)
        for pair in ((a_min, min), (a_max, max))
    ]
    return ln.clip(a, *given)


@composition(numpy_sort, text="in the same order; put back")
def _numpy_sort(a: Any, axis: Any = -1, **options: Any) -> Any:
    return ln.sort(a, axis=axis)


zero(numpy_argsort)


@composition(ln.full, text="broadcast_to of the value")
def _full(shape: Any, fill_value: Any, dtype: Any = None, **options: Any) -> Any:
    value = fill_value if dtype is None else ln.astype(fill_value, dtype)
    return spread(value, tuple(np.atleast_1d(shape).tolist()))


@composition(ln.meshgrid, text="broadcast_to")
def _meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    lines = [ln.ravel(_array(each)) for each in xi]
    places = list(range(len(lines)))
    if indexing == "xy" and len(lines) > 1:
        places[:2] = [1, 0]
    shape = [0] * len(lines)
    for line, place in zip(lines, places, strict=True):
        shape[place] = line.shape[0]
    found: list[Any] = []
    for line, place in zip(lines, places, strict=True):
        thin = ln.reshape(line, tuple(line.shape[0] if a == place else 1 for a in range(len(lines))))
        found.append(thin if sparse else spread(thin, tuple(shape)))
    return tuple(found)


@composition(ln.polyval, text="sums and products, after Horner", own_value=True)
def _polyval(p: Any, x: Any) -> Any:
    p, x = _array(p), _array(x)
    made: Any = ln.zeros_like(x)
    for place in range(p.shape[0]):
        made = made * x + p[place]
    return made


@composition(ln.vander, text="powers beside each other", own_value=True)
def _vander(x: Any, N: Any = None, increasing: bool = False) -> Any:
    count = x.shape[0] if N is None else N
    powers = [x**k for k in range(count)]
    return ln.stack(powers if increasing else powers[::-1], axis=-1)


@composition(ln.gradient, text="differences of slices; even spacing", own_value=True)
def _gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    if any(np.ndim(each) for each in varargs) or edge_order != 1:
        raise DerivativeError("gradient has a rule of derivatives for even spacing and edge_order=1")
    axes = range(f.ndim) if axis is None else axis if isinstance(axis, tuple | list) else (axis,)
    steps = varargs if len(varargs) == len(axes) else [*varargs] * len(axes) if varargs else [1.0] * len(axes)
    found: list[Any] = []
    for along, step in zip(axes, steps, strict=True):
        line = ln.moveaxis(f, along, 0)
        inside = (line[2:] - line[:-2]) / 2
        parts = [line[1:2] - line[:1], inside, line[-1:] - line[-2:-1]]
        found.append(ln.moveaxis(ln.concatenate(parts) / step, 0, along))
    return found[0] if len(found) == 1 else tuple(found)


@composition(ln.interp, text="slopes between the points; of the values, the two beside", own_value=True)
def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    if period is not None:
        raise DerivativeError("interp has no rule of derivatives with period=")
    x, xp, fp = _array(x), _array(xp), _array(fp)
    place = ln.clip(ln.ravel(ln.searchsorted(xp, x, side="right")) - 1, 0, max(0, xp.shape[0] - 2))

    def at(table: Any, places: Any) -> Any:
        return ln.reshape(ln.take_along_axis(table, places, axis=0), x.shape)

    low, high, one, other = at(xp, place), at(xp, place + 1), at(fp, place), at(fp, place + 1)
    made = one + (other - one) * ((x - low) / (high - low))
    made = ln.where(x < xp[0], fp[0] if left is None else left, made)
    return ln.where(x > xp[-1], fp[-1] if right is None else right, made)
