"""Rules of reductions and of what runs along an axis: sums, extremes, moments, quantiles, cumulative sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from linnet.arrays.elements.reductions import NOT_GIVEN
from linnet.derivatives.linear_maps import axes_of, conj, keep_axes, length_along, spread_like
from linnet.derivatives.names import ln
from linnet.derivatives.rules import Derivatives, Linear, composition, maps, zero
from linnet.errors import DerivativeError


def _hides(where: Any) -> bool:
    return where is not True and where is not NOT_GIVEN


def _masked(t: Any, where: Any) -> Any:
    return ln.where(where, t, 0) if _hides(where) else t


@maps(ln.sum, text="sum of changes; the weight of the sum on each element")
def _sum(
    result: Any, x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False,
    initial: Any = NOT_GIVEN, where: Any = True,
) -> Derivatives:  # fmt: skip
    return {
        "x": Linear(
            lambda t: ln.sum(t, axis=axis, dtype=dtype, keepdims=keepdims, where=where),
            lambda g: _masked(spread_like(keep_axes(g, axis, x.ndim, keepdims), x), where),
        )
    }


def _count(x: Any, result: Any, where: Any, axis: Any) -> Any:
    """Of how many elements a mean is; with a mask in the result's shape, its axes kept."""
    if not _hides(where):
        return length_along(x, axis)
    mask = ln.broadcast_to(ln.asarray(where), x.shape)
    return ln.sum(mask.astype(result.dtype), axis=axis, keepdims=True)


@maps(ln.mean, text="mean of changes; the weight divided by how many there are, on each")
def _mean(
    result: Any, x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False,
    where: Any = True,
) -> Derivatives:  # fmt: skip
    def pull(g: Any) -> Any:
        each = keep_axes(g, axis, x.ndim, keepdims) / _count(x, result, where, axis)
        return _masked(spread_like(each, x), where)

    return {"x": Linear(lambda t: ln.mean(t, axis=axis, dtype=dtype, keepdims=keepdims, where=where), pull)}


def _deviation(x: Any, axis: Any, where: Any, mean: Any) -> Any:
    given = mean if mean is not NOT_GIVEN else ln.mean(x, axis=axis, keepdims=True, where=where)
    return _masked(x - given, where)


@maps(ln.var, text="2·(x - mean) / (n - ddof)")
def _var(
    result: Any, x: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0,
    keepdims: Any = False, where: Any = True, mean: Any = NOT_GIVEN, correction: Any = NOT_GIVEN,
) -> Derivatives:  # fmt: skip
    less = ddof if correction is NOT_GIVEN else correction

    def partial() -> Any:
        away = 2 * conj(_deviation(x, axis, where, mean))
        return away / (_count(x, result, where, axis) - less)

    return _moment(x, axis, keepdims, partial, mean)


def _moment(x: Any, axis: Any, keepdims: Any, partial: Any, mean: Any) -> Derivatives:
    def push(t: Any) -> Any:
        change = t * partial()
        return ln.sum(ln.real(change) if change.dtype.kind == "c" else change, axis=axis, keepdims=keepdims)

    found: dict[str, Any] = {"x": Linear(push, lambda g: keep_axes(g, axis, x.ndim, keepdims) * partial())}
    if mean is not NOT_GIVEN:
        kept = keepdims

        def push_mean(t: Any) -> Any:
            return ln.sum(-t * partial(), axis=axis, keepdims=kept)

        def pull_mean(g: Any) -> Any:
            from linnet.derivatives.linear_maps import summed_to

            return summed_to(-keep_axes(g, axis, x.ndim, kept) * partial(), mean.shape)

        found["mean"] = Linear(push_mean, pull_mean)
    return found


@maps(ln.std, text="(x - mean) / ((n - ddof)·std)")
def _std(
    result: Any, x: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0,
    keepdims: Any = False, where: Any = True, mean: Any = NOT_GIVEN, correction: Any = NOT_GIVEN,
) -> Derivatives:  # fmt: skip
    less = ddof if correction is NOT_GIVEN else correction

    def partial() -> Any:
        count = _count(x, result, where, axis) - less
        away = conj(_deviation(x, axis, where, mean)) / keep_axes(result, axis, x.ndim, keepdims)
        return away / count

    return _moment(x, axis, keepdims, partial, mean)


def _extreme(beyond: Any) -> Any:
    def make(
        result: Any, x: Any, axis: Any = None, out: Any = None, keepdims: Any = False,
        initial: Any = NOT_GIVEN, where: Any = True,
    ) -> Derivatives:  # fmt: skip
        def weights() -> Any:
            kept = keep_axes(result, axis, x.ndim, keepdims)
            is_one = ln.logical_not(beyond(x, kept))  # NaN, too, if the result is NaN
            is_one = ln.logical_and(is_one, where) if _hides(where) else is_one
            shares = ln.sum(is_one.astype(x.dtype), axis=axis, keepdims=True)
            return is_one.astype(x.dtype) / ln.maximum(shares, 1)

        return {
            "x": Linear(
                lambda t: ln.sum(t * weights(), axis=axis, keepdims=keepdims),
                lambda g: keep_axes(g, axis, x.ndim, keepdims) * weights(),
            )
        }

    return make


_MAX = _extreme(lambda x, most: ln.less(x, most))
_MIN = _extreme(lambda x, least: ln.greater(x, least))
maps(ln.max, ln.amax, text="where it is largest; equal ones share it equally")(_MAX)
maps(ln.min, ln.amin, text="where it is smallest; equal ones share it equally")(_MIN)


def _in_front(x: Any, axis: Any) -> Any:
    """The axes of a reduction as one, the first; without axes, all."""
    axes = axes_of(axis, x.ndim)
    moved = ln.moveaxis(x, axes, tuple(range(len(axes))))
    return ln.reshape(moved, (length_along(x, axes), *moved.shape[len(axes) :]))


@composition(ln.prod, text="products of halves: right at zeros, too", own_value=True)
def _prod(
    x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False,
    initial: Any = NOT_GIVEN, where: Any = True,
) -> Any:  # fmt: skip
    x = ln.where(where, x, 1) if _hides(where) else x
    x = x if dtype is None else ln.astype(x, dtype)
    line = _in_front(x, axis)
    if not line.shape[0]:
        line = ln.sum(line, axis=0, keepdims=True) + 1
    while line.shape[0] > 1:
        half = line.shape[0] // 2
        product = line[:half] * line[half : 2 * half]
        line = product if line.shape[0] % 2 == 0 else ln.concatenate([product, line[2 * half :]])
    made = line[0] if initial is NOT_GIVEN else line[0] * initial
    return keep_axes(made, axis, x.ndim, False) if keepdims else made


@composition(ln.ptp, text="max - min", own_value=True)
def _ptp(x: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    return ln.max(x, axis=axis, keepdims=keepdims) - ln.min(x, axis=axis, keepdims=keepdims)


@composition(ln.average, text="sum(x·w) / sum(w)", own_value=True)
def _average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = NOT_GIVEN
) -> Any:
    keep = keepdims is not NOT_GIVEN and bool(keepdims)
    if weights is None:
        made = ln.mean(a, axis=axis, keepdims=keep)
        total: Any = ln.full(made.shape, a.size / max(1, made.size), made.dtype)
    else:
        w = weights if isinstance(weights, ln.Array) else ln.asarray(weights)
        if w.ndim != a.ndim and axis is not None:
            shape = [1] * a.ndim
            shape[axis] = w.shape[0]
            w = ln.reshape(w, tuple(shape))
        total = ln.sum(ln.broadcast_to(w, a.shape), axis=axis, keepdims=keep)
        made = ln.sum(a * w, axis=axis, keepdims=keep) / total
    return (made, total) if returned else made


@composition(ln.cov, text="products of deviations from means", own_value=True)
def _cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None, **weights: Any
) -> Any:
    if any(weights.get(name) is not None for name in ("fweights", "aweights")):
        raise DerivativeError("cov has no rule of derivatives with fweights= or aweights=")
    parts = [each if each.ndim == 2 else ln.reshape(each, (1, -1)) for each in (m, y) if each is not None]
    parts = [each if rowvar or each.shape[0] == 1 else each.T for each in parts]
    rows = parts[0] if len(parts) == 1 else ln.concatenate(parts)
    rows = rows - ln.mean(rows, axis=1, keepdims=True)
    less = (0 if bias else 1) if ddof is None else ddof
    return ln.squeeze((rows @ conj(rows).T) / (rows.shape[1] - less))


@composition(ln.corrcoef, text="cov / (std·std)", own_value=True)
def _corrcoef(x: Any, y: Any = None, rowvar: bool = True, **options: Any) -> Any:
    c = ln.cov(x, y, rowvar)
    if not c.ndim:
        return c / c
    scale = ln.sqrt(ln.diagonal(c))
    return c / scale[:, None] / scale[None, :]


# ---- along an axis


@maps(ln.cumsum, text="cumsum of changes; cumsum of the weights from the end")
def _cumsum(result: Any, a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Derivatives:
    def pull(g: Any) -> Any:
        along = 0 if axis is None else axis
        return ln.reshape(ln.flip(ln.cumsum(ln.flip(g, along), along), along), a.shape)

    return {"a": Linear(lambda t: ln.cumsum(t, axis=axis, dtype=dtype), pull)}


@composition(ln.cumulative_sum, text="cumsum, with a zero before it")
def _cumulative_sum(
    x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: bool = False, **_: Any
) -> Any:
    made = ln.cumsum(x, axis=0 if axis is None else axis, dtype=dtype)
    return _with_first(made, 0 if axis is None else axis, 0) if include_initial else made


def _with_first(x: Any, axis: int, value: float) -> Any:
    shape = list(x.shape)
    shape[axis] = 1
    return ln.concatenate([ln.full(tuple(shape), value, x.dtype), x], axis=axis)


@composition(
    ln.cumprod, text="products with what lies 1, 2, 4, … before: right at zeros, too", own_value=True
)
def _cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    a = ln.ravel(a) if axis is None else a
    line = ln.moveaxis(a if dtype is None else ln.astype(a, dtype), 0 if axis is None else axis, 0)
    step = 1
    while step < line.shape[0]:
        line = ln.concatenate([line[:step], line[step:] * line[:-step]])
        step *= 2
    return ln.moveaxis(line, 0, 0 if axis is None else axis)


@composition(ln.cumulative_prod, text="cumprod, with a one before it")
def _cumulative_prod(
    x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: bool = False, **_: Any
) -> Any:
    made = ln.cumprod(x, axis=0 if axis is None else axis, dtype=dtype)
    return _with_first(made, 0 if axis is None else axis, 1) if include_initial else made


@composition(ln.diff, text="differences of slices")
def _diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = NOT_GIVEN, append: Any = NOT_GIVEN) -> Any:
    along = axis % a.ndim
    parts = [a]
    for given, place in ((prepend, 0), (append, len(parts) + 1)):
        if given is NOT_GIVEN or given is None:
            continue
        end = given if isinstance(given, ln.Array) else ln.asarray(given)
        if not end.ndim:
            end = ln.broadcast_to(end, tuple(1 if k == along else m for k, m in enumerate(a.shape)))
        parts.insert(place, end)
    a = ln.concatenate(parts, axis=along) if len(parts) > 1 else a
    for _ in range(n):
        later = tuple(slice(1, None) if k == along else slice(None) for k in range(a.ndim))
        sooner = tuple(slice(None, -1) if k == along else slice(None) for k in range(a.ndim))
        a = a[later] - a[sooner]
    return a


@composition(ln.ediff1d, text="differences of slices", own_value=True)
def _ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    parts = [ln.diff(ln.ravel(ary))]
    if to_begin is not None:
        parts.insert(0, ln.ravel(ln.asarray(to_begin)))
    if to_end is not None:
        parts.append(ln.ravel(ln.asarray(to_end)))
    return parts[0] if len(parts) == 1 else ln.concatenate(parts)


@composition(ln.trapezoid, text="sums of slices", own_value=True)
def _trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    line = ln.moveaxis(y, axis, -1)
    if x is not None:
        given = x if isinstance(x, ln.Array) else ln.asarray(x)
        dx = ln.diff(given) if given.ndim == 1 else ln.moveaxis(ln.diff(given, axis=axis), axis, -1)
    return ln.sum(dx * (line[..., 1:] + line[..., :-1]) / 2, axis=-1)


@maps(ln.unwrap, text="1")
def _unwrap(result: Any, p: Any, discont: Any = None, axis: int = -1, period: Any = None) -> Derivatives:
    return {"p": Linear(lambda t: t, lambda g: g)}


# ---- order


@composition(ln.median, text="of the elements in the middle, in equal parts", own_value=True)
def _median(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False
) -> Any:
    return _between(a, np.asarray(0.5), axis, keepdims)


@composition(ln.quantile, text="between neighbours in the sorted array", own_value=True)
def _quantile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: Any = False, *, weights: Any = None,
) -> Any:  # fmt: skip
    if method != "linear" or weights is not None:
        raise DerivativeError(
            f"quantile has a rule of derivatives for method='linear' without weights, not {method!r}"
        )
    return _between(a, np.asarray(q, float), axis, keepdims)


def _between(a: Any, fractions: Any, axis: Any, keepdims: Any) -> Any:
    """What lies at fractions of the sorted elements, between neighbours."""
    line = ln.sort(_in_front(a, axis), axis=0)
    if not line.shape[0]:
        line = ln.sum(line, axis=0, keepdims=True)
    place = fractions.ravel() * (line.shape[0] - 1)
    low = np.floor(place).astype(int)
    high = np.minimum(low + 1, line.shape[0] - 1)
    part = (place - low).reshape(-1, *(1,) * (line.ndim - 1)).astype(line.dtype)
    found = line[low] * (1 - part) + line[high] * part
    if keepdims:
        found = ln.stack([keep_axes(found[k], axis, a.ndim, False) for k in range(place.size)])
    return ln.reshape(found, (*fractions.shape, *found.shape[1:]))


@composition(ln.percentile, text="quantile", own_value=True)
def _percentile(a: Any, q: Any, *args: Any, **options: Any) -> Any:
    return ln.quantile(a, np.asarray(q, float) / 100, *args, **options)


@maps(ln.sort, text="in the same order; put back")
def _sort(
    result: Any, x: Any, axis: Any = -1, kind: Any = None, order: Any = None, descending: bool = False,
    stable: bool = True,
) -> Derivatives:  # fmt: skip
    flat = ln.ravel(x) if axis is None else x
    along = -1 if axis is None else axis
    places = ln.argsort(flat, axis=along, descending=descending, stable=True)
    back = ln.argsort(places, axis=along)
    return {
        "x": Linear(
            lambda t: ln.take_along_axis(ln.ravel(t) if axis is None else t, places, axis=along),
            lambda g: ln.reshape(ln.take_along_axis(g, back, axis=along), x.shape),
        )
    }


@composition(ln.topk, text="the end of the sorted array")
def _topk(a: Any, k: int, axis: int = -1) -> Any:
    line = ln.moveaxis(ln.sort(a, axis=axis, descending=k > 0), axis, -1)[..., : abs(k)]
    return ln.moveaxis(line, -1, axis)


# ---- without NaN


def _without_nan(x: Any, instead: float = 0.0) -> Any:
    return ln.where(ln.isnan(x), instead, x)


@composition(ln.nansum, text="sum of what is not NaN", own_value=True)
def _nansum(a: Any, *args: Any, **options: Any) -> Any:
    return ln.sum(_without_nan(a), *args, **options)


@composition(ln.nanprod, text="prod of what is not NaN", own_value=True)
def _nanprod(a: Any, *args: Any, **options: Any) -> Any:
    return ln.prod(_without_nan(a, 1.0), *args, **options)


@composition(ln.nancumsum, text="cumsum, NaN as 0", own_value=True)
def _nancumsum(a: Any, *args: Any, **options: Any) -> Any:
    return ln.cumsum(_without_nan(a), *args, **options)


@composition(ln.nanmax, text="max of what is not NaN", own_value=True)
def _nanmax(a: Any, *args: Any, **options: Any) -> Any:
    return ln.max(_without_nan(a, -np.inf), *args, **options)


@composition(ln.nanmin, text="min of what is not NaN", own_value=True)
def _nanmin(a: Any, *args: Any, **options: Any) -> Any:
    return ln.min(_without_nan(a, np.inf), *args, **options)


@composition(ln.nanmean, text="mean of what is not NaN", own_value=True)
def _nanmean(a: Any, *args: Any, **options: Any) -> Any:
    return ln.mean(_without_nan(a), *args, where=ln.logical_not(ln.isnan(a)), **options)


@composition(ln.nanvar, text="var of what is not NaN", own_value=True)
def _nanvar(a: Any, *args: Any, **options: Any) -> Any:
    return ln.var(_without_nan(a), *args, where=ln.logical_not(ln.isnan(a)), **options)


@composition(ln.nanstd, text="std of what is not NaN", own_value=True)
def _nanstd(a: Any, *args: Any, **options: Any) -> Any:
    return ln.std(_without_nan(a), *args, where=ln.logical_not(ln.isnan(a)), **options)


zero(
    ln.all, ln.any, ln.argmax, ln.argmin, ln.nanargmax, ln.nanargmin, ln.argsort, ln.argpartition, ln.argtopk,
    ln.count_nonzero, ln.nonzero, ln.argwhere, ln.flatnonzero, ln.searchsorted, ln.digitize, ln.lexsort,
    ln.array_equal, ln.array_equiv, ln.isin,
)  # fmt: skip
