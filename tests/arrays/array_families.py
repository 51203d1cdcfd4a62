"""Families of random programs: the function that a program of `array_programs` ends with, by chapter.

A family draws a call that fits the array. What `docs/arrays.md` says is different from NumPy is not drawn:
infinities in quantiles and contractions, float16 and overflows in products, signed integers compared with
unsigned ones in sets.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from array_chapters import CHAPTERS
from array_moves import (
    bits,
    calculus,
    choices,
    contractions,
    covariances,
    growth,
    joins,
    moves,
    norms,
    products,
)
from array_programs import EVERY, INTEGERS, NUMBERS, REAL, Call, Dice, Family, tamely
from numpy.typing import NDArray

UFUNCS = [
    each for each in vars(np).values() if isinstance(each, np.ufunc) and not each.signature and each.nin < 3
]
BINARY = [each for each in UFUNCS if each.nin == 2 and each.nout == 1]


# ---- element by element


def elementwise(dice: Dice, a: NDArray[Any]) -> Call:
    function = dice.pick(UFUNCS)
    return Call(function, [dice.other(a) for _ in range(function.nin - 1)])


COMPARISONS = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)


def elementwise_out(dice: Dice, a: NDArray[Any]) -> Call:
    """With `out=`, `where=`, `dtype=`, `casting=`."""
    ufunc = dice.pick([each for each in UFUNCS if each.nout == 1])
    keywords: dict[str, Any] = {}
    if dice.coin(0.3):
        keywords["casting"] = dice.pick(["same_kind", "safe"])
    if dice.coin(0.2):
        keywords["dtype"] = dice.pick(["f8", "i8", "c16", "f4"])
    target = dice.like(a.shape)
    mask = dice.mask(a.shape) if dice.coin() else True

    def called(x: Any, out: Any, mask: Any, *others: Any, **keywords: Any) -> Any:
        out = out.copy()
        ufunc(x, *others, out=out, where=mask, **keywords)
        return out

    others = [dice.other(a) for _ in range(ufunc.nin - 1)]
    if ufunc in COMPARISONS and any(type(each) is int for each in others):
        mask = (
            True  # NumPy 2.4 crashes: np.equal(np.uint64([2]), -2, out=np.array([0]), where=np.array([True]))
        )
    return Call(called, [target, mask, *others], keywords, ufunc.__name__)


def rounding(dice: Dice, a: NDArray[Any]) -> Call:
    function = dice.pick([np.clip, np.round, np.nan_to_num, np.real, np.imag, np.isclose, np.allclose])
    if function is np.clip:
        ends = [None, 0, 1, 2.5, -1, 300, dice.like(a.shape, REAL), np.float32(1.5)]
        return Call(function, [dice.pick(ends), dice.pick(ends)])
    if function is np.round:
        return Call(function, [dice.integer(-1, 2)])
    if function in (np.isclose, np.allclose):
        return Call(function, [dice.like(a.shape)], {"equal_nan": dice.coin()})
    return Call(function)


def conversions(dice: Dice, a: NDArray[Any]) -> Call:
    """To a dtype that holds all values, and arrays made like this one."""
    dtype = dice.pick([t for t in EVERY if np.can_cast(a.dtype, t)] or [a.dtype.str])
    if dice.coin():
        return Call(lambda x: x.astype(dtype), name=f"astype {dtype}")
    function = dice.pick([np.zeros_like, np.ones_like, np.full_like])
    if function is np.full_like:
        return Call(function, [dice.pick([0, 1, 2.5, True])], {"dtype": dice.pick([None, "f8", "i4"])})
    return Call(function, [], {"dtype": dice.pick([None, "f8", "?"])})


# ---- reductions


def reductions(dice: Dice, a: NDArray[Any]) -> Call:
    found = dice.pick([np.sum, np.prod, np.max, np.min, np.nansum, np.nanprod, np.nanmax, np.nanmin])
    keywords: dict[str, Any] = {"axis": dice.axis(a), "keepdims": dice.coin()}
    if dice.coin(0.4):
        keywords["initial"] = dice.pick([0, 1, 3])
    if found in (np.sum, np.prod) and dice.coin(0.2):
        keywords["dtype"] = dice.pick(["f8", "c16"])
    return Call(tamely(found), [], dice.masked(a, keywords))


def truths(dice: Dice, a: NDArray[Any]) -> Call:
    function = dice.pick([np.all, np.any, np.count_nonzero])
    keywords: dict[str, Any] = {"axis": dice.axis(a), "keepdims": dice.coin()}
    return Call(function, [], keywords if function is np.count_nonzero else dice.masked(a, keywords))


def moments(dice: Dice, a: NDArray[Any]) -> Call:
    function = dice.pick([np.mean, np.var, np.std, np.nanmean, np.nanvar, np.nanstd])
    keywords: dict[str, Any] = {"axis": dice.axis(a), "keepdims": dice.coin()}
    if function not in (np.mean, np.nanmean) and dice.coin(0.3):
        keywords["ddof"] = dice.pick([0, 1, 2])
    return Call(function, [], dice.masked(a, keywords))


def averages(dice: Dice, a: NDArray[Any]) -> Call:
    axis = dice.axis(a, several=False)
    if a.dtype.kind in "mM":  # NumPy weighs no durations
        return Call(np.average, [], {"axis": axis})
    shape = a.shape if axis is None or dice.coin() else (a.shape[axis],)
    weights = dice.like(shape, ("f8", "i4", "u1"), special=False)
    return Call(np.average, [], {"axis": axis, "weights": weights, "returned": dice.coin()})


def methods(dice: Dice, a: NDArray[Any]) -> Call:
    ufunc = dice.pick([np.add, np.multiply, np.maximum, np.logical_xor, np.bitwise_or, np.fmin, np.subtract])
    axis = dice.axis(a, several=False, none=False)
    axis = 0 if axis is None else axis
    kind = dice.integer(0, 3)
    if kind == 0:
        return Call(ufunc.accumulate, [], {"axis": axis}, f"{ufunc.__name__}.accumulate")
    if kind == 1:
        places = dice.places(a.shape[axis] if a.ndim else 1, (dice.integer(1, 4),))
        return Call(ufunc.reduceat, [abs(places)], {"axis": axis}, f"{ufunc.__name__}.reduceat")
    keywords = {"axis": axis, "initial": dice.pick([0, 1]), "keepdims": dice.coin()}
    return Call(tamely(ufunc.reduce), [], dice.masked(a, keywords), f"{ufunc.__name__}.reduce")


def scattered(dice: Dice, a: NDArray[Any]) -> Call:
    """`ufunc.at` and `ufunc.outer`."""
    ufunc = dice.pick([np.add, np.subtract, np.maximum, np.multiply, np.bitwise_xor])
    if dice.coin():
        return Call(
            ufunc.outer, [dice.like(dice.shape(0, 2, 3), (a.dtype.str,))], {}, f"{ufunc.__name__}.outer"
        )

    def at(x: Any, key: Any, value: Any) -> Any:
        changed = x.copy()
        ufunc.at(changed, key, value)
        return changed

    return Call(at, [dice.key(a.shape), np.ones((), a.dtype)], {}, f"{ufunc.__name__}.at")


def cumulative(dice: Dice, a: NDArray[Any]) -> Call:
    function = dice.pick([np.cumsum, np.cumprod, np.nancumsum, np.nancumprod])
    return Call(tamely(function), [], {"axis": dice.axis(a, several=False)})


def positions(dice: Dice, a: NDArray[Any]) -> Call:
    function = dice.pick([np.argmax, np.argmin, np.nanargmax, np.nanargmin, np.ptp])
    keywords: dict[str, Any] = {"axis": dice.axis(a, several=False)}
    return Call(function, [], keywords | {"keepdims": dice.coin()})


# ---- orders, sets, counts


def sets(dice: Dice, a: NDArray[Any]) -> Call:
    function = dice.pick([np.unique, np.union1d, np.intersect1d, np.setdiff1d, np.setxor1d, np.isin])
    if function is np.unique:
        names = ("return_index", "return_inverse", "return_counts", "equal_nan")
        keywords: dict[str, Any] = {name: dice.coin() for name in names}
        if (
            keywords["return_inverse"] or a.dtype.kind in "mM"
        ):  # how NumPy numbers NaNs, and counts NaT, is open
            keywords["equal_nan"] = True
        if a.ndim and a.dtype.kind in "biu" and dice.coin(0.2):
            keywords["axis"] = dice.integer(-a.ndim, a.ndim - 1)
        return Call(function, [], keywords)
    signs = ("i8", "u8") if a.dtype.kind in "iu" else ()
    dtypes = [a.dtype.str] if a.dtype.kind in "mM" else [a.dtype.str, *(t for t in NUMBERS if t not in signs)]
    if a.dtype.kind in "iu":
        dtypes = [t for t in dtypes if np.dtype(t).kind == a.dtype.kind]
    return Call(function, [dice.cut(dice.array(dtypes, max_dims=2))])


def orders(dice: Dice, a: NDArray[Any]) -> Call:
    axis = dice.axis(a, several=False)
    kind = dice.integer(0, 3)
    if kind == 0:
        return Call(np.sort, [], {"axis": axis})
    if kind == 1:
        return Call(np.argsort, [], {"axis": axis, "kind": "stable"})
    if kind == 2:
        others = [dice.like(a.shape, ("i1", "f8")) for _ in range(dice.integer(0, 2))]
        return Call(lambda x, *keys: np.lexsort((x, *keys)), [*others], {}, "lexsort")
    most = a.size if axis is None else a.shape[axis]
    kth = dice.integer(0, max(most - 1, 0))
    return Call(lambda x, kth, axis: np.partition(x, kth, axis).take(kth, axis), [kth, axis], {}, "partition")


def medians(dice: Dice, a: NDArray[Any]) -> Call:
    function = tamely(dice.pick([np.median, np.nanmedian]))
    return Call(function, [], {"axis": dice.axis(a), "keepdims": dice.coin()})


def quantiles(dice: Dice, a: NDArray[Any]) -> Call:
    found = dice.pick([np.quantile, np.percentile, np.nanquantile, np.nanpercentile])

    def function(x: Any, q: Any, **keywords: Any) -> Any:
        if x.dtype.kind == "f":  # between infinities NumPy gives NaN at times
            x = np.where(np.isinf(x), x.dtype.type(1), x)
        return found(x, q, **keywords)

    axis = dice.axis(a)
    axis = None if axis == () else axis  # NumPy's dtype then depends on whether there is a NaN
    q = dice.pick([0, 1, 0.5, [0.25, 0.75], [0, 1], 1.0])
    method = dice.pick(
        ["linear", "lower", "higher", "nearest", "midpoint", "hazen", "weibull", "inverted_cdf"]
    )
    return Call(function, [q], {"axis": axis, "method": method, "keepdims": dice.coin()}, found.__name__)


def histograms(dice: Dice, a: NDArray[Any]) -> Call:
    function = dice.pick([np.histogram, np.histogram_bin_edges])
    keywords: dict[str, Any] = {
        "bins": dice.pick([1, 4, "auto", "sturges", "fd", "sqrt", "rice", [-2, 0, 1.5]])
    }
    keywords["range"] = dice.pick([None, None, (-2, 2), (0, 0), (-1.5, 3)])
    if a.dtype.kind not in "biuf":
        return Call(np.unique)
    if function is np.histogram:
        keywords["density"] = dice.coin(0.3)
        if dice.coin(0.3) and not isinstance(keywords["bins"], str):
            keywords["weights"] = dice.like(a.shape, ("f8", "i4"), special=False)
    return Call(function, [], keywords)


def searches(dice: Dice, a: NDArray[Any]) -> Call:
    kind = dice.integer(0, 4)
    if kind == 0:
        line = np.sort(dice.array((a.dtype.str,), max_dims=1, min_dims=1))
        return Call(
            lambda v, line, side: np.searchsorted(line, v, side),
            [dice.cut(line), dice.pick(["left", "right"])],
        )
    if kind == 1 and a.dtype.kind not in "mM":
        bins = dice.pick([[0, 1, 2], [2.0, 1, -1], [0], [1, 1, 3.5], []])
        return Call(np.digitize, [bins], {"right": dice.coin()})
    if kind == 2:
        return Call(dice.pick([np.nonzero, np.argwhere, np.flatnonzero]))
    if kind == 3:
        weights = dice.like(a.shape, ("f8", "i4"), special=False) if dice.coin() else None
        return Call(np.bincount, [], {"weights": weights, "minlength": dice.pick([0, 3, 9])})
    condition = dice.pick([[True, False], [True, True, False], dice.array(("?",), a.shape[:1])])
    return Call(lambda x, c, axis: np.compress(c, x, axis), [condition, dice.axis(a, several=False)])


# ---- indexing and assignment


def indexing(dice: Dice, a: NDArray[Any]) -> Call:
    return Call(operator.getitem, [dice.key(a.shape)])


def taking(dice: Dice, a: NDArray[Any]) -> Call:
    axis = dice.axis(a, several=False)
    length = a.size if axis is None else a.shape[axis]
    if a.ndim and dice.coin(0.4):
        axis = 0 if axis is None else axis % a.ndim
        shape = tuple(dice.integer(0, 4) if k == axis else n for k, n in enumerate(a.shape))
        places = dice.cut(dice.places(a.shape[axis], shape))
        return Call(np.take_along_axis, [places, axis])
    places = dice.places(length, dice.shape(0, 2, 4))
    mode = dice.pick(
        ["raise", "wrap", "clip"] if length else ["raise"]
    )  # NumPy wraps around nothing for ever
    return Call(np.take, [dice.cut(places) if dice.coin() else places], {"axis": axis, "mode": mode})


def assignments(dice: Dice, a: NDArray[Any]) -> Call:
    """One key, a value that may broadcast, and the array afterwards; whoever read it before keeps that."""
    key, value = dice.key(a.shape), dice.pick([0, 1, True, 3, 2.5, None])
    if value is None:
        value = dice.like(dice.shape(0, 2, 3), (a.dtype.str, "?", "i1"))

    def assign(x: Any, key: Any, value: Any) -> Any:
        changed = x.copy()
        before = changed[key] + 0 if x.dtype.kind in "iufc" else changed[key].copy()
        changed[key] = value
        return changed, before

    return Call(assign, [key, value])


IN_PLACE = [
    operator.iadd, operator.isub, operator.imul, operator.ifloordiv, operator.itruediv, operator.ipow,
    operator.iand, operator.ior, operator.ixor, operator.imod,
]  # fmt: skip


def in_place(dice: Dice, a: NDArray[Any]) -> Call:
    """`x[key] op= value` and `x op= value`, twice."""
    if not a.ndim:  # an element becomes what a number would
        return Call(np.copy)
    update = dice.pick(IN_PLACE)
    key = dice.key(a.shape) if dice.coin(0.7) else ...
    value = dice.pick([1, 2, True, 2.5]) if dice.coin() else dice.other(a[:0] if a.ndim else a)

    def run(x: Any, key: Any, value: Any) -> Any:
        changed = x.copy()
        kept = changed
        for _ in range(2):
            changed[key] = update(changed[key], value)
        changed = update(changed, value)
        return changed, kept

    return Call(run, [key, value], {}, update.__name__)


def placing(dice: Dice, a: NDArray[Any]) -> Call:
    """`copyto`, `place`, `put`, `putmask`, `fill_diagonal`, `put_along_axis`."""
    kind = dice.pick(["copyto", "place", "put", "putmask", "fill_diagonal"])
    value = dice.pick([0, 1, True]) if dice.coin() else dice.array((a.dtype.str,), (dice.integer(1, 4),))

    def run(x: Any, *others: Any) -> Any:
        changed = x.copy()
        getattr(np, kind)(changed, *others)
        return changed

    if kind == "copyto":
        return Call(run, [dice.pick([0, 1, True, dice.like(a.shape, (a.dtype.str, "i1"))])], {}, kind)
    if kind == "fill_diagonal":
        return Call(run, [value], {}, kind)
    where = dice.places(a.size, (dice.integer(0, 3),)) if kind == "put" else dice.mask(a.shape)
    return Call(run, [where, value], {}, kind)


FAMILIES: dict[Family, dict[str, Any]] = {
    elementwise: {"dtypes": EVERY, "wide": True},
    elementwise_out: {"dtypes": EVERY, "special": False, "max_dims": 2},
    rounding: {"dtypes": NUMBERS, "wide": True},
    conversions: {"dtypes": EVERY},
    reductions: {"dtypes": (*NUMBERS, "m8[s]", "M8[D]"), "special": False},
    truths: {"dtypes": EVERY},
    moments: {"dtypes": ("?", "i1", "i4", "u8", "f4", "f8", "c16", "m8[s]"), "special": False},
    averages: {"dtypes": ("?", "i1", "i4", "u8", "f4", "f8", "c16"), "special": False},
    methods: {"dtypes": INTEGERS, "wide": True, "min_dims": 1},
    scattered: {"dtypes": INTEGERS, "wide": True, "min_dims": 1, "max_dims": 2},
    cumulative: {"dtypes": (*NUMBERS, "m8[s]"), "special": False, "max_dims": 1, "max_side": 12},
    positions: {"dtypes": (*REAL, "M8[D]", "m8[s]")},
    sets: {"dtypes": EVERY, "wide": True},
    orders: {"dtypes": EVERY, "wide": True},
    medians: {"dtypes": (*NUMBERS, "m8[s]")},
    quantiles: {"dtypes": REAL},
    histograms: {"dtypes": ("?", "i1", "i4", "u1", "u8", "f4", "f8"), "min_dims": 1},
    searches: {"dtypes": (*REAL, "M8[D]", "m8[s]"), "max_dims": 2},
    indexing: {"dtypes": EVERY},
    taking: {"dtypes": EVERY},
    assignments: {"dtypes": EVERY},
    in_place: {"dtypes": EVERY, "min_dims": 1},
    placing: {"dtypes": EVERY},
    moves: {"dtypes": EVERY},
    growth: {"dtypes": EVERY},
    joins: {"dtypes": EVERY},
    choices: {"dtypes": EVERY},
    calculus: {"dtypes": (*NUMBERS, "m8[s]", "M8[D]"), "special": False, "max_dims": 2},
    products: {"dtypes": NUMBERS, "special": False},
    contractions: {"dtypes": NUMBERS, "special": False},
    covariances: {
        "dtypes": ("?", "i1", "i4", "f4", "f8", "c16"),
        "special": False,
        "max_dims": 2,
        "min_dims": 1,
    },
    norms: {"dtypes": tuple(t for t in NUMBERS if t != "f2"), "special": False, "min_dims": 1, "max_dims": 2},
    bits: {"dtypes": ("?", "u1", "i1", "i4", "u8")},
    **CHAPTERS,
}
