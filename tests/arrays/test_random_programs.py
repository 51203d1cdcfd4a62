"""Programs at random, on NumPy's arrays and on ours in tiles: the same shapes, dtypes and values, or both refuse.

A program is a few steps that are exact (element-wise, moves, assignments in place), then one function of a family.
`make test-long` runs 100,000 of them, `make test` some hundred.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from against_numpy import ERRORS, Pair, same, tiles_only
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from strategies import DATES, NUMBERS, REAL, arrays, chunkings, elements

pytestmark = pytest.mark.slow

Draw = Callable[[Any], Any]
Call = tuple[Callable[..., Any], list[Any], dict[str, Any]]
"""A function, what it takes behind the array, and its keywords."""

INTEGERS = ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
EVERY = (*NUMBERS, "i2", "u4", *DATES)


@pytest.fixture(autouse=True, scope="module")
def _tiles_only() -> Iterator[None]:
    with tiles_only():
        yield


# ---- what programs are made of


def cut(draw: Draw, array: NDArray[Any]) -> Pair:
    return Pair(array, draw(chunkings(array.shape)))


def like(draw: Draw, shape: tuple[int, ...], dtypes: Any = NUMBERS, special: bool = True) -> NDArray[Any]:
    dtype = draw(st.sampled_from(dtypes))
    return draw(hnp.arrays(dtype, shape, elements=elements(dtype, special)))


def axis_of(draw: Draw, a: NDArray[Any], several: bool = True, none: bool = True) -> Any:
    choices: list[Any] = [None] if none or not a.ndim else []
    choices += range(-a.ndim, a.ndim)
    if several and a.ndim > 1:
        choices += [(), (0, -1)]
    return draw(st.sampled_from(choices))


def masked(draw: Draw, a: NDArray[Any], keywords: dict[str, Any]) -> dict[str, Any]:
    """Keywords with `where=` now and then."""
    if draw(st.booleans()):
        shape = a.shape if draw(st.booleans()) else a.shape[1:]
        keywords["where"] = cut(draw, like(draw, shape, ("?",)))
    return keywords


def other(draw: Draw, a: NDArray[Any]) -> Any:
    """The other operand: an array, one of NumPy's, a list, a number."""
    kind = draw(st.integers(0, 3))
    if kind == 0:
        shape = tuple(1 if draw(st.booleans()) else n for n in a.shape)
        return cut(draw, like(draw, shape, EVERY))
    if kind == 1:
        return like(draw, a.shape)
    if kind == 2:
        return like(draw, a.shape, ("?", "i8", "f8")).tolist()
    return draw(st.sampled_from([0, 1, -2, 300, 2.5, True, 1j, np.int8(3), np.float32(0.5), None, "a"]))


# ---- steps: exact, so that differences do not grow


def _arithmetic(draw: Draw, a: NDArray[Any]) -> Call:
    function = draw(st.sampled_from([operator.add, operator.sub, operator.mul, np.maximum, np.minimum]))
    return function, [other(draw, a)], {}


def _compared(draw: Draw, a: NDArray[Any]) -> Call:
    function = draw(st.sampled_from([operator.eq, operator.ne, operator.lt, operator.ge]))
    return function, [other(draw, a)], {}


def _turned(draw: Draw, a: NDArray[Any]) -> Call:
    return draw(st.sampled_from([np.transpose, np.ravel, np.flip, np.atleast_2d])), [], {}


def _sliced(draw: Draw, a: NDArray[Any]) -> Call:
    return operator.getitem, [draw(hnp.basic_indices(a.shape, allow_newaxis=True))], {}


def _converted(draw: Draw, a: NDArray[Any]) -> Call:
    wider = "c16" if a.dtype.kind == "c" else draw(st.sampled_from(["f8", "c16"]))
    return (lambda x: x.astype(wider)), [], {}


def _assigned(draw: Draw, a: NDArray[Any]) -> Call:
    value = draw(st.sampled_from([0, 1, True, 3]))
    key: Any = draw(hnp.basic_indices(a.shape))
    if draw(st.booleans()):
        key = cut(draw, like(draw, a.shape, ("?",)))

    def assign(x: Any, key: Any, value: Any) -> Any:
        changed = x.copy()
        changed[key] = value
        changed += changed
        return changed

    return assign, [key, value], {}


def _chosen(draw: Draw, a: NDArray[Any]) -> Call:
    def choose(x: Any, mask: Any, y: Any) -> Any:
        return np.where(mask, x, y)

    return choose, [cut(draw, like(draw, a.shape, ("?",))), cut(draw, like(draw, a.shape))], {}


STEPS = [_arithmetic, _compared, _turned, _sliced, _converted, _assigned, _chosen]


# ---- families: the last function of a program


def elementwise(draw: Draw, a: NDArray[Any]) -> Call:
    function = draw(st.sampled_from(UFUNCS))
    return function, [other(draw, a) for _ in range(function.nin - 1)], {}


UFUNCS = [
    each for each in vars(np).values() if isinstance(each, np.ufunc) and not each.signature and each.nin < 3
]


def reductions(draw: Draw, a: NDArray[Any]) -> Call:
    function = draw(st.sampled_from([np.sum, np.prod, np.max, np.min, np.nansum, np.nanprod, np.nanmax]))
    keywords: dict[str, Any] = {"axis": axis_of(draw, a), "keepdims": draw(st.booleans())}
    if draw(st.booleans()):
        keywords["initial"] = draw(st.sampled_from([0, 1, 3]))
    return function, [], masked(draw, a, keywords)


def truths(draw: Draw, a: NDArray[Any]) -> Call:
    function = draw(st.sampled_from([np.all, np.any, np.count_nonzero]))
    keywords: dict[str, Any] = {"axis": axis_of(draw, a)}
    return function, [], keywords if function is np.count_nonzero else masked(draw, a, keywords)


def moments(draw: Draw, a: NDArray[Any]) -> Call:
    function = draw(st.sampled_from([np.mean, np.var, np.std, np.nanmean, np.nanvar]))
    return function, [], masked(draw, a, {"axis": axis_of(draw, a)})


def methods(draw: Draw, a: NDArray[Any]) -> Call:
    ufunc = draw(st.sampled_from([np.add, np.multiply, np.maximum, np.logical_xor, np.bitwise_or, np.fmin]))
    axis = axis_of(draw, a, several=False, none=False)
    if draw(st.booleans()):
        return ufunc.accumulate, [], {"axis": 0 if axis is None else axis}
    return ufunc.reduce, [], masked(draw, a, {"axis": axis, "initial": draw(st.sampled_from([0, 1]))})


def cumulative(draw: Draw, a: NDArray[Any]) -> Call:
    function = draw(st.sampled_from([np.cumsum, np.cumprod, np.nancumsum, np.nancumprod]))
    return function, [], {"axis": axis_of(draw, a, several=False)}


def positions(draw: Draw, a: NDArray[Any]) -> Call:
    function = draw(st.sampled_from([np.argmax, np.argmin, np.nanargmax, np.ptp]))
    return function, [], {"axis": axis_of(draw, a, several=False)}


def sets(draw: Draw, a: NDArray[Any]) -> Call:
    function = draw(
        st.sampled_from([np.unique, np.union1d, np.intersect1d, np.setdiff1d, np.setxor1d, np.isin])
    )
    if function is np.unique:
        names = ("return_index", "return_inverse", "return_counts", "equal_nan")
        return function, [], {name: draw(st.booleans()) for name in names}
    dtypes = (a.dtype.str,) if a.dtype.kind in "mM" or draw(st.booleans()) else NUMBERS
    second = draw(arrays(dtypes, max_dims=2))
    return function, [cut(draw, second)], {}


def orders(draw: Draw, a: NDArray[Any]) -> Call:
    if draw(st.booleans()):
        return np.sort, [], {"axis": axis_of(draw, a, several=False)}
    return np.argsort, [], {"axis": axis_of(draw, a, several=False), "kind": "stable"}


def medians(draw: Draw, a: NDArray[Any]) -> Call:
    return draw(st.sampled_from([np.median, np.nanmedian])), [], {"axis": axis_of(draw, a)}


def quantiles(draw: Draw, a: NDArray[Any]) -> Call:
    found = draw(st.sampled_from([np.quantile, np.percentile, np.nanquantile]))

    def function(x: Any, q: Any, **keywords: Any) -> Any:
        if x.dtype.kind == "f":  # between infinities NumPy gives NaN at times
            x = np.where(np.isinf(x), x.dtype.type(1), x)
        return found(x, q, **keywords)

    q = draw(st.sampled_from([0, 1, 0.5, [0.25, 0.75], [0, 1], np.float32(0.5)]))
    method = draw(st.sampled_from(["linear", "lower", "midpoint", "hazen", "inverted_cdf"]))
    return function, [q], {"axis": axis_of(draw, a), "method": method}


def histograms(draw: Draw, a: NDArray[Any]) -> Call:
    function = draw(st.sampled_from([np.histogram, np.histogram_bin_edges]))
    bins = draw(st.sampled_from([1, 4, "auto", "sturges", [-2, 0, 1.5]]))
    return function, [], {"bins": bins, "range": draw(st.sampled_from([None, (-2, 2), (0, 0)]))}


SPECS = {
    1: ["i,i->", "i,i->i", "i,j,j->i", "i,i,j->ij"],
    2: ["ij,jk->ik", "ij,jk,kl->il", "ij->", "ij,ij,ij->ij", "ij,j->i"],
}


def contractions(draw: Draw, a: NDArray[Any]) -> Call:
    """Letters of the array have its lengths; others are drawn."""
    spec = draw(st.sampled_from(SPECS.get(a.ndim, ["...->..."])))
    first, *rest = spec.split("->")[0].split(",")
    lengths = dict(zip(first, a.shape, strict=False))
    more = [like(draw, tuple(lengths.setdefault(c, 2) for c in each), special=False) for each in rest]
    return (lambda x, *others: np.einsum(spec, x, *others)), [cut(draw, each) for each in more], {}


FAMILIES: dict[Callable[[Draw, NDArray[Any]], Call], dict[str, Any]] = {
    elementwise: {"dtypes": EVERY, "wide": True},
    reductions: {"dtypes": (*NUMBERS, "m8[s]"), "special": False},
    truths: {"dtypes": NUMBERS},
    moments: {"dtypes": ("?", "i1", "i4", "u8", "f4", "f8", "c16", "m8[s]"), "special": False},
    methods: {"dtypes": INTEGERS, "wide": True, "min_dims": 1},
    cumulative: {"dtypes": (*NUMBERS, "m8[s]"), "special": False},
    positions: {"dtypes": REAL},
    sets: {"dtypes": EVERY, "wide": True},
    orders: {"dtypes": EVERY, "wide": True},
    medians: {"dtypes": (*NUMBERS, "m8[s]")},
    quantiles: {"dtypes": REAL},
    histograms: {"dtypes": ("?", "i1", "i4", "u1", "u8", "f4", "f8"), "min_dims": 1},
    contractions: {"dtypes": NUMBERS, "special": False, "min_dims": 1, "max_dims": 2},
}
MANY = 100_000
EXAMPLES = {"long": -(-MANY // len(FAMILIES)), "ci": 12}


def examples() -> int:
    """How many programs of each family the current profile runs."""
    return EXAMPLES.get(settings.get_current_profile_name(), 2)


def stepped(draw: Draw, x: Pair) -> Pair | None:
    """A step further; None if NumPy refuses it, and so do we."""
    function, others, keywords = draw(st.sampled_from(STEPS))(draw, x.array)
    given = [each.array if isinstance(each, Pair) else each for each in others]
    try:
        made = np.asarray(function(x.array, *given, **keywords))
    except (*ERRORS, OverflowError):
        return None
    if made.dtype.kind not in "biufcmM" or made.size > 500:
        return None
    found = Pair(made, -1)
    found.ours = function(x.ours, *(e.ours if isinstance(e, Pair) else e for e in others), **keywords)
    return found


@pytest.mark.parametrize("family", FAMILIES, ids=lambda each: each.__name__)
def test_programs(family: Callable[..., Call]) -> None:
    # Explaining a failure follows every line, which takes minutes.
    @settings(settings(), max_examples=examples(), phases=(Phase.explicit, Phase.generate, Phase.shrink))
    @given(st.data())
    def programs(data: Any) -> None:
        draw = data.draw
        x = cut(draw, draw(arrays(**FAMILIES[family])))
        for _ in range(draw(st.integers(0, 2))):
            with np.errstate(all="ignore"):
                further = stepped(draw, x)
            if further is not None:
                x = further
        function, others, keywords = family(draw, x.array)
        same(function, x, *others, **keywords)

    programs()
