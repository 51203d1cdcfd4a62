"""Rules of what moves elements and leaves them as they are: shapes, axes, joining, padding, order."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from linnet.derivatives.linear_maps import layout_of, put_into_zeros, spread, summed_to
from linnet.derivatives.names import ln
from linnet.derivatives.rules import Derivatives, Linear, composition, maps, zero
from linnet.errors import DerivativeError


def _reshaped(function: Callable[..., Any], text: str) -> None:
    """A function that gives the elements, in the same order, another shape."""

    def make(result: Any, x: Any, *args: Any, **options: Any) -> Derivatives:
        return {"x": Linear(lambda t: function(t, *args, **options), lambda g: ln.reshape(g, x.shape))}

    maps(function, text=text)(make)


for _function in (ln.squeeze, ln.expand_dims):
    _reshaped(_function, "the same; reshape")


@maps(ln.reshape, text="the same; reshape")
def _reshape(result: Any, a: Any, shape: Any, order: str = "C", copy: Any = None) -> Derivatives:
    return {"a": Linear(lambda t: ln.reshape(t, shape, order), lambda g: ln.reshape(g, a.shape, order))}


@maps(ln.ravel, text="the same; reshape")
def _ravel(result: Any, a: Any, order: str = "C") -> Derivatives:
    order = "C" if order == "K" else order
    return {"a": Linear(lambda t: ln.ravel(t, order), lambda g: ln.reshape(g, a.shape, order))}


def _inverse(axes: Any, ndim: int) -> tuple[int, ...]:
    return tuple(int(each) for each in np.argsort([axis % ndim for axis in axes])) if ndim else ()


@maps(ln.transpose, text="the same; the inverse order of axes")
def _transpose(result: Any, a: Any, axes: Any = None) -> Derivatives:
    axes = tuple(reversed(range(a.ndim))) if axes is None else tuple(axes)
    return {"a": Linear(lambda t: ln.transpose(t, axes), lambda g: ln.transpose(g, _inverse(axes, a.ndim)))}


@composition(ln.permute_dims, text="transpose")
def _permute_dims(x: Any, /, axes: Any = None) -> Any:
    return ln.transpose(x, axes)


@maps(ln.matrix_transpose, text="the same, twice the identity")
def _matrix_transpose(result: Any, x: Any) -> Derivatives:
    return {"x": Linear(ln.matrix_transpose, ln.matrix_transpose)}


@maps(ln.swapaxes, text="the same, twice the identity")
def _swapaxes(result: Any, a: Any, axis1: int, axis2: int) -> Derivatives:
    return {"a": Linear(lambda t: ln.swapaxes(t, axis1, axis2), lambda g: ln.swapaxes(g, axis1, axis2))}


@maps(ln.moveaxis, text="the same; moved back")
def _moveaxis(result: Any, a: Any, source: Any, destination: Any) -> Derivatives:
    return {
        "a": Linear(
            lambda t: ln.moveaxis(t, source, destination), lambda g: ln.moveaxis(g, destination, source)
        )
    }


@composition(ln.rollaxis, text="moveaxis")
def _rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    axis, start = axis % a.ndim, start + a.ndim if start < 0 else start
    return ln.moveaxis(a, axis, start - 1 if axis < start else start)


@maps(ln.broadcast_to, text="the same; summed over what was spread")
def _broadcast_to(result: Any, x: Any, shape: Any, subok: bool = False) -> Derivatives:
    return {"x": Linear(lambda t: ln.broadcast_to(t, result.shape), lambda g: summed_to(g, x.shape))}


@composition(ln.broadcast_arrays, text="broadcast_to")
def _broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    arrays = [each if isinstance(each, ln.Array) else ln.asarray(each) for each in args]
    shape = np.broadcast_shapes(*(each.shape for each in arrays))
    return tuple(spread(each, shape) for each in arrays)


def _at_least(count: int) -> Callable[..., Any]:
    def made(*arys: Any) -> Any:
        found = [_with_axes(each if isinstance(each, ln.Array) else ln.asarray(each), count) for each in arys]
        return found[0] if len(found) == 1 else tuple(found)

    return made


def _with_axes(x: Any, count: int) -> Any:
    if x.ndim >= count:
        return x
    if count < 3:
        return ln.reshape(x, (1,) * (count - x.ndim) + x.shape)
    return ln.reshape(x, {0: (1, 1, 1), 1: (1, *x.shape, 1), 2: (*x.shape, 1)}[x.ndim])


for _function, _count in ((ln.atleast_1d, 1), (ln.atleast_2d, 2), (ln.atleast_3d, 3)):
    composition(_function, text="reshape")(_at_least(_count))

# ---- joining and splitting


def _slice_of(axis: int, start: int, stop: int, ndim: int) -> tuple[slice, ...]:
    return tuple(slice(start, stop) if a == axis else slice(None) for a in range(ndim))


@maps(ln.concatenate, text="changes beside each other; each its part of the weights")
def _concatenate(
    result: Any, arrays: Any, axis: Any = 0, out: Any = None, dtype: Any = None, casting: Any = None
) -> Derivatives:
    found: list[Linear] = []
    start = 0
    for each in arrays:
        shape = np.shape(each)
        along = 0 if axis is None else axis % result.ndim
        stop = start + (int(np.prod(shape)) if axis is None else shape[along])
        key = _slice_of(along, start, stop, result.ndim)
        start = stop

        def push(t: Any, key: Any = key) -> Any:
            flat = ln.ravel(t) if axis is None else t
            return put_into_zeros(flat, key, result.shape, result.dtype, layout_of(result))

        found.append(Linear(push, lambda g, key=key, shape=shape: ln.reshape(g[key], shape)))
    return {"arrays": found}


def _arrays(items: Any) -> list[Any]:
    return [each if isinstance(each, ln.Array) else ln.asarray(each) for each in items]


@composition(ln.stack, text="concatenate")
def _stack(arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: Any = None) -> Any:
    made = ln.concatenate([ln.expand_dims(each, axis) for each in _arrays(arrays)], axis=axis)
    return made if dtype is None else ln.astype(made, dtype)


@composition(ln.hstack, text="concatenate")
def _hstack(tup: Any, *, dtype: Any = None, casting: Any = None) -> Any:
    parts = [_with_axes(each, 1) for each in _arrays(tup)]
    return ln.concatenate(parts, axis=0 if parts[0].ndim == 1 else 1)


@composition(ln.vstack, text="concatenate")
def _vstack(tup: Any, *, dtype: Any = None, casting: Any = None) -> Any:
    return ln.concatenate([_with_axes(each, 2) for each in _arrays(tup)], axis=0)


@composition(ln.dstack, text="concatenate")
def _dstack(tup: Any) -> Any:
    return ln.concatenate([_with_axes(each, 3) for each in _arrays(tup)], axis=2)


@composition(ln.column_stack, text="concatenate")
def _column_stack(tup: Any) -> Any:
    return ln.concatenate([_with_axes(each, 2).T if each.ndim < 2 else each for each in _arrays(tup)], axis=1)


@composition(ln.append, text="concatenate")
def _append(arr: Any, values: Any, axis: Any = None) -> Any:
    return ln.concatenate(_arrays([arr, values]), axis=axis)


@composition(ln.block, text="concatenate")
def _block(arrays: Any) -> Any:
    def depth(item: Any) -> int:
        return 1 + max(map(depth, item)) if isinstance(item, list) else 0

    def ndim(item: Any) -> int:
        return max(map(ndim, item)) if isinstance(item, list) else np.ndim(item)

    levels, axes = depth(arrays), max(depth(arrays), ndim(arrays))

    def joined(item: Any, level: int) -> Any:
        if not isinstance(item, list):
            array = item if isinstance(item, ln.Array) else ln.asarray(item)
            return ln.reshape(array, (1,) * (axes - array.ndim) + array.shape)
        return ln.concatenate([joined(each, level + 1) for each in item], axis=axes - levels + level)

    return joined(arrays, 0)


@composition(ln.array_split, ln.split, text="slices")
def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    axis = axis % ary.ndim
    length = ary.shape[axis]
    if isinstance(indices_or_sections, int | np.integer):
        count = int(indices_or_sections)
        lengths = [length // count + (k < length % count) for k in range(count)]
        edges = [0, *np.cumsum(lengths).tolist()]
    else:
        edges = [0, *(int(each) for each in indices_or_sections), length]
    return [ary[_slice_of(axis, start, stop, ary.ndim)] for start, stop in itertools.pairwise(edges)]


for _function, _axis in ((ln.vsplit, 0), (ln.hsplit, 1), (ln.dsplit, 2)):
    composition(_function, text="slices")(
        lambda ary, sections, axis=_axis: _split(ary, sections, 0 if ary.ndim == 1 else axis)
    )


@composition(ln.unstack, text="slices")
def _unstack(x: Any, /, *, axis: int = 0) -> Any:
    line = ln.moveaxis(x, axis, 0)
    return tuple(line[place] for place in range(line.shape[0]))


# ---- padding, turning, repeating


def _widths(pad_width: Any, ndim: int) -> list[tuple[int, int]]:
    return [(int(a), int(b)) for a, b in np.broadcast_to(np.asarray(pad_width), (ndim, 2)).tolist()]


@composition(ln.pad, text="put into zeros, or rows taken again; constant, edge, reflect, symmetric, wrap")
def _pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    if isinstance(pad_width, dict):
        every = [(0, 0)] * array.ndim
        for axis, width in pad_width.items():
            every[axis] = tuple(np.broadcast_to(np.asarray(width), (2,)).tolist())
        pad_width = every
    widths = _widths(pad_width, array.ndim)
    if mode == "constant":
        return _pad_constant(array, widths, kwargs.get("constant_values", 0))
    if mode not in ("edge", "reflect", "symmetric", "wrap") or kwargs.get("reflect_type", "even") != "even":
        raise DerivativeError(
            f"pad has no rule of derivatives for mode={mode!r}; it has for constant, edge, reflect, "
            f"symmetric, wrap"
        )
    for axis, width in enumerate(widths):
        if any(width):
            array = ln.take(array, np.pad(np.arange(array.shape[axis]), width, mode=mode), axis=axis)
    return array


def _pad_constant(array: Any, widths: list[tuple[int, int]], values: Any) -> Any:
    values = np.broadcast_to(np.asarray(values), (array.ndim, 2))
    for axis, (before, after) in enumerate(widths):
        shape = list(array.shape)
        parts = [array]
        for place, width in ((0, before), (1, after)):
            shape[axis] = width
            if width:
                part = ln.full(tuple(shape), values[axis, place], array.dtype)
                parts.insert(0 if place == 0 else len(parts), part)
        array = ln.concatenate(parts, axis=axis) if len(parts) > 1 else array
    return array


@maps(ln.roll, text="the same; rolled back")
def _roll(result: Any, a: Any, shift: Any, axis: Any = None) -> Derivatives:
    back = tuple(-each for each in shift) if isinstance(shift, tuple | list) else -shift
    return {"a": Linear(lambda t: ln.roll(t, shift, axis), lambda g: ln.roll(g, back, axis))}


@maps(ln.flip, text="the same, twice the identity")
def _flip(result: Any, m: Any, axis: Any = None) -> Derivatives:
    return {"m": Linear(lambda t: ln.flip(t, axis), lambda g: ln.flip(g, axis))}


composition(ln.fliplr, text="flip")(lambda m: ln.flip(m, 1))
composition(ln.flipud, text="flip")(lambda m: ln.flip(m, 0))


@maps(ln.rot90, text="the same; turned back")
def _rot90(result: Any, m: Any, k: int = 1, axes: Any = (0, 1)) -> Derivatives:
    return {"m": Linear(lambda t: ln.rot90(t, k, axes), lambda g: ln.rot90(g, -k, axes))}


@composition(ln.repeat, text="rows taken again")
def _repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    a = ln.ravel(a) if axis is None else a
    axis = 0 if axis is None else axis
    return ln.take(a, np.repeat(np.arange(a.shape[axis]), np.asarray(repeats)), axis=axis)


@composition(ln.tile, text="broadcast_to and reshape")
def _tile(A: Any, reps: Any) -> Any:
    reps = (reps,) if isinstance(reps, int | np.integer) else tuple(reps)
    ndim = max(len(reps), A.ndim)
    reps = (1,) * (ndim - len(reps)) + reps
    shape = (1,) * (ndim - A.ndim) + A.shape
    pairs = [each for n in shape for each in (1, n)]
    wide = [each for rep, n in zip(reps, shape, strict=True) for each in (rep, n)]
    spread_out = spread(ln.reshape(A, tuple(pairs)), tuple(wide))
    return ln.reshape(spread_out, tuple(rep * n for rep, n in zip(reps, shape, strict=True)))


@composition(ln.resize, text="elements taken again")
def _resize(a: Any, new_shape: Any) -> Any:
    if not a.size:  # NumPy gives zeros, which nothing depends on
        return ln.zeros(new_shape, a.dtype)
    places = np.resize(np.arange(a.size), new_shape)
    return ln.ravel(a)[places]


@composition(ln.delete, text="the rest taken")
def _delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    arr = ln.ravel(arr) if axis is None else arr
    axis = 0 if axis is None else axis
    return ln.take(arr, np.delete(np.arange(arr.shape[axis]), obj), axis=axis)


@composition(ln.insert, text="taken from both, beside each other")
def _insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    arr = ln.ravel(arr) if axis is None else arr
    along = 0 if axis is None else axis % arr.ndim
    length = arr.shape[along]
    values = values if isinstance(values, ln.Array) else ln.asarray(values)
    line = ln.moveaxis(arr, along, 0)
    single = np.ndim(obj) == 0 and not isinstance(obj, slice)
    places = np.insert(np.arange(length), obj, -1)
    count = places.size - length
    if not single or values.ndim < arr.ndim:
        given = ln.moveaxis(spread(values, (*arr.shape[:along], count, *arr.shape[along + 1 :])), along, 0)
    else:  # as NumPy has it, the first axis of the values goes where the place is
        given = ln.moveaxis(values, along, 0)
        places = np.insert(np.arange(length), [int(np.asarray(obj))] * given.shape[0], -1)
        count = given.shape[0]
    places[places < 0] = length + np.arange(count)
    both = ln.concatenate([line, ln.astype(spread(given, (count, *line.shape[1:])), arr.dtype)])
    return ln.moveaxis(both[places], 0, along)


# ---- diagonals and triangles


@maps(ln.diagonal, text="the same; as a diagonal in zeros")
def _diagonal(result: Any, a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Derivatives:
    m, n = a.shape[axis1], a.shape[axis2]

    def pull(g: Any) -> Any:
        eye = ln.eye(m, n, offset, dtype=a.dtype)
        length, wanted = g.shape[-1], m if offset >= 0 else n
        wide = ln.pad(g, [(0, 0)] * (g.ndim - 1) + [(0, wanted - length)]) if wanted != length else g
        made = (wide[..., :, None] if offset >= 0 else wide[..., None, :]) * eye
        return ln.moveaxis(made, (-2, -1), (axis1, axis2))

    return {"a": Linear(lambda t: ln.diagonal(t, offset, axis1, axis2), pull)}


@composition(ln.trace, text="sum(diagonal)")
def _trace(
    a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None
) -> Any:
    return ln.sum(ln.diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)


@maps(ln.diag, text="the same; the diagonal, or a diagonal in zeros")
def _diag(result: Any, v: Any, k: int = 0) -> Derivatives:
    if v.ndim == 1:
        return {"v": Linear(lambda t: ln.diag(t, k), lambda g: ln.diagonal(g, k))}
    pair = _diagonal(result, v, k)["a"]
    assert isinstance(pair, Linear)
    return {"v": pair}


composition(ln.diagflat, text="diag(ravel)")(lambda v, k=0: ln.diag(ln.ravel(v), k))


@maps(ln.tril, text="the same")
def _tril(result: Any, m: Any, k: int = 0) -> Derivatives:
    return {"m": Linear(lambda t: ln.tril(t, k), lambda g: ln.tril(g, k))}


@maps(ln.triu, text="the same")
def _triu(result: Any, m: Any, k: int = 0) -> Derivatives:
    return {"m": Linear(lambda t: ln.triu(t, k), lambda g: ln.triu(g, k))}


# ---- the same array


@maps(ln.rechunk, text="the same; in the tiles of before")
def _rechunk(result: Any, x: Any, chunks: Any = "auto") -> Derivatives:
    before, after = layout_of(x), layout_of(result)
    sizes = [tuple(tuple(int(n) for n in np.diff(e)) for e in each.boundaries) for each in (before, after)]
    return {"x": Linear(lambda t: ln.rechunk(t, sizes[1]), lambda g: ln.rechunk(g, sizes[0]))}


@composition(ln.copy, text="1")
def _copy(a: Any, *args: Any, **options: Any) -> Any:
    return ln.positive(a)


@composition(
    ln.asarray,
    ln.array,
    ln.asanyarray,
    ln.ascontiguousarray,
    ln.asfortranarray,
    ln.asarray_chkfinite,
    ln.require,
    text="1; stack",
)
def _asarray(
    obj: Any, dtype: Any = None, *args: Any, chunks: Any = None, ndmin: int = 0, **options: Any
) -> Any:
    made = ln.stack([_asarray(each) for each in obj]) if isinstance(obj, list | tuple) else obj
    if not isinstance(made, ln.Array):
        made = ln.asarray(made)
    made = made if dtype is None or made.dtype == np.dtype(dtype) else ln.astype(made, dtype)
    made = made if chunks is None else ln.rechunk(made, chunks)
    return ln.reshape(made, (1,) * (ndmin - made.ndim) + made.shape) if made.ndim < ndmin else made


@composition(ln.full_like, text="broadcast_to of the value")
def _full_like(
    a: Any, fill_value: Any, dtype: Any = None, *args: Any, shape: Any = None, **options: Any
) -> Any:
    value = fill_value if isinstance(fill_value, ln.Array) else ln.asarray(fill_value)
    wanted = a.dtype if dtype is None else np.dtype(dtype)
    value = value if value.dtype == wanted else ln.astype(value, wanted)
    return spread(value, a.shape if shape is None else tuple(np.atleast_1d(shape).tolist()))


zero(ln.zeros_like, ln.ones_like, ln.empty_like, ln.shape, ln.ndim, ln.size, ln.iscomplexobj, ln.isrealobj)
zero(ln.result_type, ln.can_cast)
