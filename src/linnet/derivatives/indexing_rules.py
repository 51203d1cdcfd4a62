"""Rules of picking and of assignment: slices, integers, masks, arrays of indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from linnet.arrays.elements import in_place
from linnet.arrays.elements.assignment import setitem
from linnet.derivatives.linear_maps import layout_of, put_back, put_into_zeros, spread, summed_to
from linnet.derivatives.methods import assigned, picked, replaced, updated
from linnet.derivatives.names import ln
from linnet.derivatives.rules import Derivatives, Linear, composition, maps
from linnet.derivatives.tracing import become
from linnet.errors import DerivativeError


@maps(picked, text="the same; added to zeros at the same places")
def _getitem(result: Any, x: Any, key: Any) -> Derivatives:
    return {"x": Linear(lambda t: t[key], lambda g: put_back(g, key, x))}


def _names_places(key: Any) -> bool:
    """Whether an index names elements one by one, and so may name one twice."""
    for each in key if isinstance(key, tuple) else (key,):
        dtype = np.asarray(each).dtype if isinstance(each, list) else getattr(each, "dtype", None)
        if dtype is not None and dtype.kind in "iu" and np.ndim(each):
            return True
    return False


@maps(replaced, text="zero at these places; of the value what is there")
def _replaced(result: Any, array: Any, key: Any, value: Any) -> Derivatives:
    taken = ln.zeros(array.shape, array.dtype)[key].shape if not _is_mask(key) else None

    def last_ones(g: Any) -> Any:
        """Weights on what was assigned; of what was assigned twice to one place, on the last."""
        found = g[key]
        if not _names_places(key):
            return found
        number = np.arange(found.size).reshape(found.shape)
        winners = np.full(array.shape, -1)
        keys = key if isinstance(key, tuple) else (key,)
        plain = tuple(np.asarray(k) if hasattr(k, "__node__") else k for k in keys)
        winners[plain] = number
        return ln.where(ln.asarray(winners[plain] == number), found, 0)

    def pull_value(g: Any) -> Any:
        shape = np.shape(value)
        weights = last_ones(g)
        core = shape[len(shape) - weights.ndim :] if len(shape) > weights.ndim else shape
        return ln.reshape(summed_to(weights, core), shape)

    def push_value(t: Any) -> Any:
        if taken is None or not _names_places(key):
            t = t if taken is None else spread(_short(t, len(taken)), taken)
            return replaced(ln.zeros(array.shape, result.dtype), key, t)
        return replaced(ln.zeros(array.shape, result.dtype), key, _short(t, len(taken)))

    return {
        "array": Linear(lambda t: replaced(t, key, 0), lambda g: replaced(g, key, 0)),
        "value": Linear(push_value, pull_value),
    }


def _short(t: Any, ndim: int) -> Any:
    """Without axes of length 1 in front that are too many."""
    return ln.reshape(t, t.shape[t.ndim - ndim :]) if t.ndim > ndim else t


def _is_mask(key: Any) -> bool:
    return any(
        getattr(getattr(each, "dtype", None), "kind", "") == "b"
        for each in (key if isinstance(key, tuple) else (key,))
    )


composition(setitem, text="zero at these places; of the value what is there")(assigned)
composition(in_place.in_place, text="that of the operator")(updated)


@composition(ln.take, text="x[indices]")
def _take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    a = ln.ravel(a) if axis is None else a
    axis = 0 if axis is None else axis % a.ndim
    places: Any = indices if isinstance(indices, int | np.integer) else np.asarray(indices)
    if mode == "wrap":
        places = places % a.shape[axis]
    elif mode == "clip":
        places = np.clip(places, 0, a.shape[axis] - 1)
    return a[(*(slice(None),) * axis, places)]


@maps(ln.take_along_axis, text="the same; added to zeros at the same places")
def _take_along_axis(result: Any, arr: Any, indices: Any, axis: Any = -1) -> Derivatives:
    def key() -> Any:
        if axis is None:
            return (np.asarray(indices).reshape(-1),)
        places = np.asarray(indices)
        along = axis % arr.ndim
        grids: list[Any] = list(np.ogrid[tuple(slice(n) for n in result.shape)])
        grids[along] = places
        grids = [
            np.zeros_like(grid) if arr.shape[a] == 1 and a != along else grid for a, grid in enumerate(grids)
        ]
        return tuple(grids)

    def pull(g: Any) -> Any:
        if axis is None:
            flat = (arr.size,)
            made = put_into_zeros(g, key(), flat, g.dtype, layout_of(ln.zeros(flat, g.dtype)))
            return ln.reshape(made, arr.shape)
        return put_back(g, key(), arr)

    return {"arr": Linear(lambda t: ln.take_along_axis(t, indices, axis), pull)}


@composition(ln.compress, text="x[condition]")
def _compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    a = ln.ravel(a) if axis is None else a
    return ln.take(a, np.flatnonzero(np.asarray(condition)), axis=0 if axis is None else axis)


@composition(ln.extract, text="x[condition]")
def _extract(condition: Any, arr: Any) -> Any:
    mask = condition if isinstance(condition, ln.Array) else ln.asarray(condition)
    return ln.ravel(arr)[ln.ravel(mask.astype(bool))]


@composition(ln.select, text="where, from the last choice to the first")
def _select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    made = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        made = ln.where(condition, choice, made)
    return made


@composition(ln.choose, text="where, choice by choice")
def _choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    if mode != "raise":
        raise DerivativeError(f"choose has a rule of derivatives for mode='raise', not {mode!r}")
    made = choices[-1]
    for place in reversed(range(len(choices) - 1)):
        made = ln.where(ln.equal(a, place), choices[place], made)
    return made


@composition(ln.copyto, text="where")
def _copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    value = src if isinstance(src, ln.Array) else ln.asarray(src)
    value = ln.astype(value, dst.dtype) if value.dtype != dst.dtype else value
    become(dst, spread(value, dst.shape) if where is True else ln.where(where, value, dst))
