"""Quantiles: which order statistics they are made of, and how these are found.

The places are those of NumPy's methods, most of them from Hyndman and Fan, "Sample quantiles
in statistical packages" (1996). Order statistics of more elements than fit into memory are found
digit by digit: elements become unsigned integers in the same order, and counting their leading
bits tells in which range the one sought lies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.kernels.registry import kernel
from linnet.machine.float_errors import quietly

Tile = NDArray[Any]

DIGIT = 10
"""Bits that are counted in one pass."""

_SEVERAL = 8
"""Leading bits from which on a search among them is faster than a comparison with each."""

_BLOCK = 1 << 15
"""Elements that are looked at together, so that they stay in the cache meanwhile."""

_PLOTTING = {
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "linear": (1.0, 1.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
METHODS = (
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
    *_PLOTTING,
    "lower",
    "higher",
    "midpoint",
    "nearest",
)
"""NumPy's names of the ways to choose between two neighbours."""


def places(count: Any, q: Tile, method: str) -> tuple[Tile, Tile, Tile]:
    """The two order statistics of `count` elements a quantile lies between, and how far between.

    >>> places(5, np.array([0.3]), "linear")
    (array([1]), array([2]), array([0.2]))
    """
    n = np.asarray(count)
    if method in ("inverted_cdf", "closest_observation"):
        index = n * q - 1 - (0.5 if method == "closest_observation" else 0)
        low = np.floor(index)
        exact = index == low
        if method == "closest_observation":
            exact &= low % 2 == 1
        low = np.where(exact, low, low + 1)
        return _settled(low, low, np.zeros_like(low), n)
    if method in ("lower", "higher", "nearest"):
        index = (n - 1) * q
        low = {"lower": np.floor, "higher": np.ceil, "nearest": np.round}[method](index)
        return _settled(low, low, np.zeros_like(low), n)
    if method in ("midpoint", "median"):
        index = 0.5 * (np.floor((n - 1) * q) + np.ceil((n - 1) * q))
    elif method == "averaged_inverted_cdf":
        index = n * q - 1
    elif method == "linear":
        index = (n - 1) * q
    else:
        alpha, beta = _PLOTTING[method]
        index = n * q + (alpha + q * (1 - alpha - beta)) - 1
    low = np.floor(index)
    share = index - low
    if method in ("midpoint", "median"):
        share = np.where(share == 0, 0.0, 0.5)
    elif method == "averaged_inverted_cdf":
        share = np.where(share == 0, 0.5, 1.0)
    return _settled(low, low + 1, share, n)


def _settled(low: Tile, high: Tile, share: Tile, n: Tile) -> tuple[Tile, Tile, Tile]:
    last = np.maximum(n - 1, 0)
    first, second = (np.clip(np.nan_to_num(each), 0, last).astype(np.intp) for each in (low, high))
    # Beyond the ends both neighbours are the end.
    return np.where(low >= last, last, first), np.where(low < 0, 0, second), share


def between(low: Tile, high: Tile, share: Tile, dtype: Any, method: str) -> Tile:
    """Values between two neighbours, computed from the nearer one as NumPy does; medians are means."""
    dtype = np.dtype(dtype)
    if method == "median":
        return np.where(share == 0, low, np.mean(np.stack([low, high]), axis=0)).astype(dtype, copy=False)
    if low.dtype == dtype and not np.any(share):
        return low
    if dtype.kind == "f":
        share = share.astype(dtype)
    apart = high - low
    near = np.where(share >= 0.5, high - apart * (1 - share), low + apart * share)
    # Elements themselves are not rounded on the way.
    return np.where((share == 0) | (low == high), low.astype(dtype), near.astype(dtype, copy=False))


def _result_shape(
    x: Sequence[int], q: Sequence[int], *_: Any, axes: tuple[int, ...], keepdims: bool, **__: Any
) -> tuple[int, ...]:
    kept = [1 if a in axes else n for a, n in enumerate(x) if keepdims or a not in axes]
    return (*q, *kept)


@kernel(
    "quantile_tile",
    shape=_result_shape,
    dtype=lambda x, q, *_, dtype, **__: np.dtype(dtype),
    flops=lambda x, q, *_, **__: float(math.prod(x)) * 4,
    scratch=2.0,
)
def quantile_tile(
    x: Tile,
    q: Tile,
    *weights: Tile,
    axes: tuple[int, ...],
    method: str,
    dtype: str,
    keepdims: bool = False,
    skip_nan: bool = False,
) -> Tile:
    """Quantiles over axes that the tile holds whole; the axes of `q` come first in the result.

    >>> quantile_tile(np.array([4.0, 1.0, 3.0]), np.array([0.0, 0.5]), axes=(0,), method="linear", dtype="f8")
    array([1., 3.])
    """
    if weights:
        (weight,) = weights
        way: Any = method
        if skip_nan and x.dtype.kind == "f" and np.isnan(x).any():
            made = _weighted_without_nan(_lines(x, axes), _lines(weight, axes), q.reshape(-1), way)
            return made.reshape(_result_shape(x.shape, q.shape, axes=axes, keepdims=keepdims)).astype(dtype)
        return np.asarray(np.quantile(x, q, axis=axes, weights=weight, method=way, keepdims=keepdims)).astype(
            dtype, copy=False
        )
    found = quietly(_of_lines, _lines(x, axes), q.reshape(-1), method, dtype, skip_nan)
    return found.reshape(_result_shape(x.shape, q.shape, axes=axes, keepdims=keepdims))


def _lines(x: Tile, axes: tuple[int, ...]) -> Tile:
    """The tile with these axes as one, the last."""
    kept = tuple(a for a in range(x.ndim) if a not in axes)
    return x.transpose((*kept, *axes)).reshape((*(x.shape[a] for a in kept), -1))


def _weighted_without_nan(lines: Tile, weights: Tile, q: Tile, method: Any) -> Tile:
    """Weighted quantiles of what is not NaN in each line, the quantiles first; NaN where that is nothing."""
    made = np.full((q.size, *lines.shape[:-1]), np.nan, lines.dtype)
    for place in np.ndindex(lines.shape[:-1]):
        there = ~np.isnan(lines[place])
        if there.any():
            values, weight = lines[place][there], weights[place][there]
            made[(slice(None), *place)] = np.quantile(values, q, weights=weight, method=method)
    return made


def _of_lines(lines: Tile, q: Tile, method: str, dtype: str, skip_nan: bool) -> Tile:
    """Quantiles of each line along the last axis, the quantiles first."""
    length = lines.shape[-1]
    has_nan = lines.dtype.kind in "fcmM"
    column = q.reshape(-1, *(1,) * (lines.ndim - 1))
    if skip_nan and has_nan:
        ordered = np.sort(lines, axis=-1)
        count: Any = length - np.isnan(ordered).sum(axis=-1)
        low, high, share = places(count, column, method)
    else:
        low, high, share = places(length, column, method)
        ranks = np.unique(np.concatenate([low.ravel(), high.ravel(), [length - 1]]))
        ordered = np.partition(lines, ranks, axis=-1)
        count = length
    shape = (q.size, *lines.shape[:-1])
    low, high, share = (np.broadcast_to(each, shape) for each in (low, high, share))
    take = [
        np.moveaxis(np.take_along_axis(ordered, np.moveaxis(each, 0, -1), axis=-1), -1, 0)
        for each in (low, high)
    ]
    made = between(take[0], take[1], share, dtype, method)
    if not has_nan:
        return made
    if not skip_nan:  # the last is NaN if any is; of complex numbers one of several
        return np.where(np.isnan(ordered[..., -1]), ordered[..., -1].astype(made.dtype), made)
    missing = np.array("NaT" if made.dtype.kind in "mM" else np.nan, made.dtype)
    return np.where(np.asarray(count == 0), missing, made)


# ---- order statistics between two bounds


@kernel("spread_tile", dtype=lambda x, **_: x, flops=lambda *_, **__: 0.0)
def spread_tile(x: Tile, *, step: int) -> Tile:
    """Every so many elements of a tile, in whatever order they lie.

    >>> spread_tile(np.arange(10), step=4)
    array([2, 6])
    """
    return x.ravel(order="K")[step // 2 :: step].copy()


@kernel(
    "bracket_tile",
    dtype=lambda x, *_, **__: [np.dtype(np.int64), x],
    flops=lambda x, *_, **__: float(math.prod(x)) * 4,
    scratch=0.1,
)
def bracket_tile(x: Tile, low: Tile, high: Tile) -> list[Tile]:
    """For each pair of bounds how many elements are below, equal to the lower, inside, equal to the
    upper; and the elements inside, pair after pair.

    >>> bracket_tile(np.array([5, 1, 3, 2, 9]), np.array([2]), np.array([9]))
    [array([[1, 1, 2, 1]]), array([5, 3])]
    """
    flat = x.ravel(order="K")
    counts = np.zeros((low.size, 4), np.int64)
    inside: list[list[Tile]] = [[] for _ in low]
    for start in range(0, flat.size, _BLOCK):  # what fits the cache is looked at several times
        block = flat[start : start + _BLOCK]
        for place, (least, most) in enumerate(zip(low, high, strict=True)):
            chosen = block > least
            chosen &= block < most
            found = block[chosen]
            inside[place].append(found)
            counts[place] += (
                np.count_nonzero(block < least),
                np.count_nonzero(block == least),
                found.size,
                np.count_nonzero(block == most) if least != most else 0,
            )
    return [counts, np.concatenate([each for found in inside for each in found] or [flat[:0]])]


# ---- order statistics by digits


def as_keys(x: Tile) -> NDArray[np.uint64]:
    """Unsigned integers in the order of the elements; NaN and NaT are last, -0.0 equals 0.0.

    >>> as_keys(np.array([-1.0, 0.0, np.nan])).argsort()
    array([0, 1, 2])
    """
    kind, bits = x.dtype.kind, 8 * x.dtype.itemsize
    if kind in "bu":
        return x.astype(np.uint64)
    top = np.uint64(1 << (bits - 1))
    mask = np.uint64((1 << bits) - 1)
    if kind in "imM":
        keys = (x.view(f"i{x.dtype.itemsize}").astype(np.int64).view(np.uint64) & mask) ^ top
        return np.where(np.isnat(x), mask, keys) if kind in "mM" else keys
    raw = (x + x.dtype.type(0)).view(f"i{x.dtype.itemsize}")
    # Negative numbers have all their bits turned over, others the first.
    turned = raw >> (bits - 1)
    turned |= np.iinfo(raw.dtype).min
    raw ^= turned
    keys = raw.view(f"u{x.dtype.itemsize}").astype(np.uint64, copy=False)
    missing = np.isnan(x)
    if missing.any():
        keys[missing] = mask
    return keys


def from_keys(keys: NDArray[np.uint64], dtype: np.dtype[Any]) -> Tile:
    """The elements again."""
    kind, bits = dtype.kind, 8 * dtype.itemsize
    if kind in "bu":
        return keys.astype(dtype)
    top = np.uint64(1 << (bits - 1))
    mask = np.uint64((1 << bits) - 1)
    if kind in "imM":
        plain = (keys ^ top).astype(f"u{dtype.itemsize}").view(f"i{dtype.itemsize}").view(dtype)
        return np.where(keys == mask, np.array("NaT", dtype), plain) if kind in "mM" else plain
    raw = np.where(keys & top, keys ^ top, ~keys & mask).astype(f"u{dtype.itemsize}")
    return np.where(keys == mask, dtype.type(np.nan), raw.view(dtype))


@kernel(
    "count_digits",
    shape=lambda x, prefixes, *, shift: (1, *prefixes, 1 << DIGIT),
    dtype=lambda *_, **__: np.dtype(np.int64),
    flops=lambda x, *_, **__: float(math.prod(x)) * 4,
)
def count_digits(x: Tile, prefixes: Tile, *, shift: int) -> Tile:
    """How many elements have each digit at `shift` behind each of the (sorted) leading bits given.

    >>> counts = count_digits(np.array([3, 3, 1029], np.uint16), np.array([0, 1], np.uint64), shift=0)
    >>> counts[0, 0, 3], counts[0, 1, 5], counts.sum()
    (np.int64(2), np.int64(1), np.int64(3))
    """
    keys = as_keys(np.ascontiguousarray(x).reshape(-1)) >> np.uint64(shift)
    counts = np.zeros((prefixes.size, 1 << DIGIT), np.int64)
    if prefixes.size > _SEVERAL:
        which, here = _matches(keys >> np.uint64(DIGIT), prefixes)
        digits = (keys[here] & np.uint64((1 << DIGIT) - 1)).view(np.int64)
        return np.bincount((which[here] << DIGIT) | digits, minlength=counts.size).reshape(1, *counts.shape)
    for place, prefix in enumerate(prefixes):
        digits = keys - (prefix << np.uint64(DIGIT))
        digits = digits[digits < np.uint64(1 << DIGIT)].view(np.int64)
        counts[place] = np.bincount(digits, minlength=1 << DIGIT)
    return counts[None]


def _matches(leading: Tile, prefixes: Tile) -> tuple[Tile, Tile]:
    """Which of the sorted prefixes each element could have, and whether it has it."""
    which = np.minimum(np.searchsorted(prefixes, leading), prefixes.size - 1)
    return which, prefixes[which] == leading


@kernel(
    "pick_prefixes", dtype=lambda *_, **__: np.dtype(np.uint64), flops=lambda x, *_, **__: float(math.prod(x))
)
def pick_prefixes(x: Tile, prefixes: Tile, *, shift: int) -> Tile:
    """The elements, as integers, with one of the given (sorted) leading bits.

    >>> pick_prefixes(np.array([3, 8, 17], np.uint8), np.array([1], np.uint64), shift=3)
    array([8], dtype=uint64)
    """
    keys = as_keys(np.ascontiguousarray(x).reshape(-1))
    leading = keys >> np.uint64(shift)
    if prefixes.size > _SEVERAL:
        return keys[_matches(leading, prefixes)[1]]
    chosen = leading == prefixes[0]
    for prefix in prefixes[1:]:
        chosen |= leading == prefix
    return keys[chosen]


@kernel(
    "sketch_tile",
    shape=lambda x, *, count: [(*x[:-1], count), (*x[:-1], count)],
    dtype=lambda dtype, **_: [dtype, np.dtype(np.float64)],
    flops=lambda x, **_: float(math.prod(x)) * 10,
    scratch=1.0,
)
def sketch_tile(x: Tile, *, count: int) -> list[Tile]:
    """Evenly spaced elements of each sorted line, and how many elements each stands for.

    >>> sketch_tile(np.array([4, 1, 3, 2]), count=2)
    [array([2, 4]), array([2., 2.])]
    """
    ordered = np.sort(x, axis=-1)
    where = (2 * np.arange(count) + 1) * x.shape[-1] // (2 * count)
    weights = np.full((*x.shape[:-1], count), x.shape[-1] / count)
    return [ordered[..., where], weights]


@kernel(
    "quantile_sketch",
    shape=lambda x, weights, q, **_: (*q, *x[:-1]),
    dtype=lambda x, *_, **__: x,
    flops=lambda x, *_, **__: float(math.prod(x)) * 10,
)
def quantile_sketch(x: Tile, weights: Tile, q: Tile, *, dtype: str, skip_nan: bool = False) -> Tile:
    """Quantiles of lines of samples, each of which stands for `weights` elements.

    >>> quantile_sketch(np.array([5, 1, 3]), np.ones(3), np.array([0.5, 1.0]), dtype="i8")
    array([3, 5])
    """
    order = np.argsort(x, axis=-1, kind="stable")
    ordered = np.take_along_axis(x, order, -1)
    if skip_nan and x.dtype.kind in "fmM":
        weights = np.where(np.isnan(x), 0.0, weights)
    ranks = np.cumsum(np.take_along_axis(weights, order, -1), axis=-1)
    made = np.empty((q.size, *x.shape[:-1]), x.dtype)
    for place, one in enumerate(q.reshape(-1)):
        index = np.minimum((ranks < one * ranks[..., -1:]).sum(axis=-1), x.shape[-1] - 1)
        made[place] = np.take_along_axis(ordered, index[..., None], -1)[..., 0]
    if not skip_nan and x.dtype.kind in "fmM":
        made = np.where(np.isnan(ordered[..., -1]), ordered[..., -1], made)
    return made.reshape(*q.shape, *x.shape[:-1]).astype(dtype, copy=False)
