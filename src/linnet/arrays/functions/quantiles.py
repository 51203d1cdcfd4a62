"""Quantiles, percentiles and medians: exact with bounded memory, or approximate in one pass.

Where tiles can hold the axes whole, each finds its own. In longer lines the elements sought are found
by counting (`elements_by_rank`). With
`method="approximate"` every tile gives a few thousand of its order statistics, and the result is
the element whose rank among these is right: it is wrong by less than 1/4096 of the number of elements.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linnet.arrays.elements.core import ArrayBase, as_node, axes_of, wrap
from linnet.arrays.elements.elementwise import apply
from linnet.arrays.elements.reductions import NOT_GIVEN, reduction
from linnet.arrays.elements.whole_axes import fits_whole, whole_along
from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import blocks, folded, is_free, part, permuted, sliced
from linnet.arrays.expression.nodes import Along, At, Node, Operand, Piece, Source
from linnet.arrays.functions.elements_by_rank import order_statistics
from linnet.arrays.functions.statistics import weights_like
from linnet.arrays.lowering.evaluate import computed, persisted
from linnet.kernels.arrays.quantiles import METHODS as WAYS
from linnet.kernels.arrays.quantiles import between, places
from linnet.tiles import Layout

if TYPE_CHECKING:
    from linnet.arrays.array import Array

LONGEST = 8.0
"""Usual tiles of a line that is still brought together in one."""

_SAMPLES = 2048
"""Elements that a line of a tile gives to an approximate quantile."""


def _asked(q: Any, whole: float = 1.0) -> NDArray[Any]:
    """The quantiles asked for, as parts of 1; NumPy's errors for what is none."""
    values = np.asarray(computed([q.__node__])[0] if isinstance(q, ArrayBase) else q)
    if values.dtype.kind not in "fiub":
        raise TypeError(f"q must be a real number or an array of them, not of dtype {values.dtype}")
    values = np.true_divide(values, whole).astype(np.float64)
    if values.size and not (np.min(values) >= 0 and np.max(values) <= 1):
        kind, most = ("Quantiles", 1) if whole == 1 else ("Percentiles", 100)
        raise ValueError(f"{kind} must be in the range [0, {most}]")
    return values


def _result_dtype(dtype: np.dtype[Any], q: Any, method: str, whole: float) -> np.dtype[Any]:
    """NumPy's own: it depends on whether q are floats, or become so where they are percentages."""
    if method == "median":
        return np.asarray(np.median(np.zeros((2,), dtype))).dtype
    rule: Any = "lower" if method == "approximate" else method
    function = np.quantile if whole == 1 else np.percentile
    given = q if type(q) in (int, float) else np.asarray(q)
    return np.asarray(function(np.zeros((2,), dtype), given, method=rule)).dtype


def _found(
    a: Any,
    q: Any,
    axis: Any,
    method: str,
    keepdims: Any,
    weights: Any = None,
    whole: float = 1.0,
    skip_nan: bool = False,
) -> Any:
    """Quantiles of an array in tiles; `whole` is what q is a part of."""
    node = as_node(a)
    axes = axes_of(axis, node.ndim)
    keep = keepdims is not NOT_GIVEN and bool(keepdims)
    if method not in (*WAYS, "approximate", "median"):
        raise ValueError(f"{method!r} is not a valid method. Use one of: {', '.join((*WAYS, 'approximate'))}")
    given, q = q, _asked(q, whole)
    dtype = _result_dtype(node.dtype, given, method, whole)
    if weights is not None:
        return wrap(_weighted(node, q, axes, method, dtype, keep, as_node(weights), skip_nan))
    if method == "approximate":
        return _shaped(wrap(_approximate(node, q, axes, dtype, skip_nan)), node, q, axes, keep)
    line = math.prod(node.shape[axis] for axis in axes) * node.dtype.itemsize
    if all(node.grid[axis] == 1 for axis in axes) or (
        line <= LONGEST * chunking.target() and fits_whole(node, axes)
    ):
        return wrap(_in_tiles([whole_along(node, axes)], q, axes, method, dtype, keep, skip_nan))
    return _shaped(_selected(node, q, axes, method, dtype, skip_nan), node, q, axes, keep)


def _in_tiles(
    nodes: list[Node],
    q: NDArray[Any],
    axes: tuple[int, ...],
    method: str,
    dtype: Any,
    keep: bool,
    skip_nan: bool = False,
) -> Node:
    node = nodes[0]
    kept = [a for a in range(node.ndim) if keep or a not in axes]
    own = tuple(At(0) if a in axes else Along(q.ndim + kept.index(a)) for a in range(node.ndim))
    edges = tuple((0, 1) if a in axes else node.layout.boundaries[a] for a in kept)
    layout = Layout((*((0, n) for n in q.shape), *edges))
    attributes = {
        "axes": axes,
        "method": method,
        "dtype": np.dtype(dtype).str,
        "keepdims": keep,
        "skip_nan": skip_nan,
    }
    rest = tuple(Operand(2 + k, own) for k in range(len(nodes) - 1))
    piece = Piece(
        "quantile_tile", (Operand(0, own), Operand(1, (At(0),) * q.ndim), *rest), tuple(attributes.items())
    )
    return blocks((node, Source(q, chunking.whole(q.shape)), *nodes[1:]), (piece,), layout, dtype)


def _weighted(
    node: Node,
    q: NDArray[Any],
    axes: tuple[int, ...],
    method: str,
    dtype: Any,
    keep: bool,
    weight: Node,
    skip_nan: bool,
) -> Node:
    if method != "inverted_cdf":
        raise ValueError(f"Only method 'inverted_cdf' supports weights. Got: {method}.")
    axis = axes if len(axes) < node.ndim else None
    weight = weights_like(node, weight, axis)
    node = whole_along(node, axes)
    weight = wrap(weight).rechunk(chunking.sizes(node.layout)).__node__
    return _in_tiles([node, weight], q, axes, method, dtype, keep, skip_nan)


def _lines(node: Node, axes: tuple[int, ...]) -> Node:
    """The node with these axes as one, the last."""
    kept = tuple(a for a in range(node.ndim) if a not in axes)
    turned = permuted(node, (*kept, *axes))
    if len(axes) == 1:
        return turned
    return wrap(turned).reshape((*(node.shape[a] for a in kept), -1)).__node__


def _shaped(found: Any, node: Node, q: NDArray[Any], axes: tuple[int, ...], keep: bool) -> Any:
    """Results over lines, with the folded axes again if they are to be kept."""
    made = as_node(found)
    if not keep:
        return wrap(made)
    kept = [a for a in range(node.ndim) if a not in axes]
    back = tuple(-1 if a in axes else q.ndim + kept.index(a) for a in range(node.ndim))
    return wrap(permuted(made, (*range(q.ndim), *back)))


# ---- approximate


def _approximate(node: Node, q: NDArray[Any], axes: tuple[int, ...], dtype: Any, skip_nan: bool) -> Node:
    lines = _lines(node, axes)
    edges = lines.layout.boundaries
    last = lines.ndim - 1
    samples = Layout((*edges[:last], tuple(range(0, _SAMPLES * (len(edges[last]) - 1) + 1, _SAMPLES))))
    own = tuple(Along(a) for a in range(lines.ndim))
    sketch = blocks(
        (lines,),
        (Piece("sketch_tile", (Operand(0, own),), (("count", _SAMPLES),)),),
        lines.layout,
        node.dtype,
        2,
    )
    values = whole_along(part(sketch, 0, node.dtype, samples), (last,))
    cut = chunking.sizes(values.layout)
    weights = wrap(part(sketch, 1, np.float64, samples)).rechunk(cut).__node__
    tile = tuple(At(0) if a == last else Along(q.ndim + a) for a in range(lines.ndim))
    piece = Piece(
        "quantile_sketch",
        (Operand(0, tile), Operand(1, tile), Operand(2, (At(0),) * q.ndim)),
        (("dtype", np.dtype(dtype).str), ("skip_nan", skip_nan)),
    )
    layout = Layout((*((0, n) for n in q.shape), *values.layout.boundaries[:last]))
    return blocks((values, weights, Source(q, chunking.whole(q.shape))), (piece,), layout, dtype)


# ---- lines longer than a tile


def _selected(
    node: Node, q: NDArray[Any], axes: tuple[int, ...], method: str, dtype: Any, skip_nan: bool
) -> Any:
    kept = node if is_free(node) else persisted([node])[0]
    if len(axes) == node.ndim:  # the order of elements does not matter
        return np.asarray(_of_line(kept, q, method, dtype, skip_nan))
    lines = _lines(kept, axes)
    outer = lines.shape[:-1]
    made = np.empty((*q.shape, *outer), dtype)
    for place in itertools.product(*map(range, outer)):
        line = sliced(lines, [*(slice(i, i + 1) for i in place), slice(None)])
        made[(..., *place)] = _of_line(line, q, method, dtype, skip_nan)
    return made


def _of_line(line: Node, q: NDArray[Any], method: str, dtype: Any, skip_nan: bool) -> Any:
    count = math.prod(line.shape)
    has_nan = line.dtype.kind in "fcmM"
    if has_nan:
        test = np.isnat if line.dtype.kind in "mM" else np.isnan
        missing = folded(apply(test, wrap(line)).__node__, "count", tuple(range(line.ndim)), np.intp)
        lost = int(computed([missing])[0])
        count = count - lost if skip_nan else count
        if (lost and not skip_nan) or not count:
            return np.array("NaT" if line.dtype.kind in "mM" else np.nan, dtype)
    low, high, share = places(count, q, method)
    ranks = np.unique(np.concatenate([low.ravel(), high.ravel()]))
    values = order_statistics(line, ranks)
    first, second = (values[np.searchsorted(ranks, each)] for each in (low, high))
    return between(first, second, share, dtype, method)


# ---- as NumPy names them


def _small(function: Any) -> Any:
    """NumPy's function; what we may approximate, it answers exactly."""

    def call(a: Any, q: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("method") == "approximate":
            kwargs = {**kwargs, "method": "lower"}
        return function(a, q, *args, **kwargs)

    return call


@reduction(np.quantile, out_at=3, small=_small(np.quantile))
def quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    weights: Any = None,
) -> Array:
    """The quantiles over axes, by any of NumPy's methods or `method="approximate"`.

    Parameters
    ----------
    a : array_like
    q : array_like of numbers between 0 and 1
    axis : int or tuple of int, optional; None: over all elements
    out : array, optional; where the result goes
    overwrite_input : without meaning here; the input stays as it is
    method : one of the methods of NumPy's `quantile`, or "approximate" for a sketch in bounded memory
    keepdims : whether reduced axes stay, with length 1
    weights : array_like, optional; how much each element counts

    Returns
    -------
    Array; axes of `q` come first

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> quantile(asarray([3.0, 1.0, 2.0, 4.0], chunks=2), 0.5).compute()
    np.float64(2.5)
    """
    return _found(a, q, axis, method, keepdims, weights)


@reduction(np.percentile, out_at=3, small=_small(np.percentile))
def percentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    weights: Any = None,
) -> Array:
    """The percentiles over axes; see `quantile`.

    Parameters
    ----------
    a : array_like
    q : array_like of numbers between 0 and 100
    axis : int or tuple of int, optional; None: over all elements
    out : array, optional; where the result goes
    overwrite_input : without meaning here; the input stays as it is
    method : one of the methods of NumPy's `quantile`, or "approximate" for a sketch in bounded memory
    keepdims : whether reduced axes stay, with length 1
    weights : array_like, optional; how much each element counts

    Returns
    -------
    Array; axes of `q` come first

    Examples
    --------
    >>> import linnet as ln
    >>> ln.percentile([1, 2, 3, 4, 5], [25, 50]).compute()
    array([2., 3.])
    """
    return _found(a, q, axis, method, keepdims, weights, 100.0)


@reduction(np.nanquantile, out_at=3, small=_small(np.nanquantile))
def nanquantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    weights: Any = None,
) -> Array:
    """The quantiles over axes of what is not NaN.

    Parameters
    ----------
    a : array_like
    q : array_like of numbers between 0 and 1
    axis : int or tuple of int, optional; None: over all elements
    out : array, optional; where the result goes
    overwrite_input : without meaning here; the input stays as it is
    method : one of the methods of NumPy's `quantile`, or "approximate" for a sketch in bounded memory
    keepdims : whether reduced axes stay, with length 1
    weights : array_like, optional; how much each element counts

    Returns
    -------
    Array; axes of `q` come first

    Examples
    --------
    >>> import linnet as ln
    >>> ln.nanquantile([1.0, ln.nan, 3.0], 0.5).compute()
    np.float64(2.0)
    """
    return _found(a, q, axis, method, keepdims, weights, skip_nan=True)


@reduction(np.nanpercentile, out_at=3, small=_small(np.nanpercentile))
def nanpercentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    weights: Any = None,
) -> Array:
    """The percentiles over axes of what is not NaN.

    Parameters
    ----------
    a : array_like
    q : array_like of numbers between 0 and 100
    axis : int or tuple of int, optional; None: over all elements
    out : array, optional; where the result goes
    overwrite_input : without meaning here; the input stays as it is
    method : one of the methods of NumPy's `quantile`, or "approximate" for a sketch in bounded memory
    keepdims : whether reduced axes stay, with length 1
    weights : array_like, optional; how much each element counts

    Returns
    -------
    Array; axes of `q` come first

    Examples
    --------
    >>> import linnet as ln
    >>> ln.nanpercentile([1.0, ln.nan, 3.0], 50).compute()
    np.float64(2.0)
    """
    return _found(a, q, axis, method, keepdims, weights, 100.0, skip_nan=True)


@reduction(np.median, out_at=2)
def median(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False
) -> Array:
    """The median over axes: the mean of the two elements in the middle.

    Parameters
    ----------
    a : array_like
    axis : int or tuple of int, optional; None: over all elements
    out : array, optional; where the result goes
    overwrite_input : without meaning here; the input stays as it is
    keepdims : whether reduced axes stay, with length 1

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.median([3, 1, 2, 10]).compute()
    np.float64(2.5)
    """
    return _found(a, 0.5, axis, "median", keepdims)


@reduction(np.nanmedian, out_at=2)
def nanmedian(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False
) -> Array:
    """The median over axes of what is not NaN.

    Parameters
    ----------
    a : array_like
    axis : int or tuple of int, optional; None: over all elements
    out : array, optional; where the result goes
    overwrite_input : without meaning here; the input stays as it is
    keepdims : whether reduced axes stay, with length 1

    Returns
    -------
    Array; NaN where there is nothing else

    Examples
    --------
    >>> import linnet as ln
    >>> ln.nanmedian([3.0, ln.nan, 1.0]).compute()
    np.float64(2.0)
    """
    return _found(a, 0.5, axis, "median", keepdims, skip_nan=True)


METHODS: dict[str, Any] = {}
__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"]
