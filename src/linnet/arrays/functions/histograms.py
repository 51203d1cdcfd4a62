"""Histograms: tiles count their own elements, the counts are added. Edges are computed at the call."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linnet.arrays.elements import means_and_variances, reductions
from linnet.arrays.elements.core import ArrayBase, as_node, chunked, wrap
from linnet.arrays.elements.elementwise import apply, cast
from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import blocks, folded, recut
from linnet.arrays.expression.nodes import Along, At, Node, Operand, Piece, Source
from linnet.arrays.expression.operands import as_read
from linnet.arrays.functions.quantiles import quantile
from linnet.arrays.lowering.evaluate import computed
from linnet.tiles import Layout

if TYPE_CHECKING:
    from linnet.arrays.array import Array


def _flat(x: Any) -> Node:
    node = as_node(x)
    return node if node.ndim == 1 else wrap(node).reshape((-1,)).__node__


def _plain(x: Any) -> Any:
    return computed([x.__node__])[0] if isinstance(x, ArrayBase) else x


def _table(values: NDArray[Any]) -> Source:
    return Source(values, chunking.whole(values.shape))


def _range(node: Node, given: Any) -> tuple[Any, Any]:
    """The range of the bins: as given, or that of the elements."""
    if given is not None:
        low, high = given
        if low > high:
            raise ValueError("max must be larger than min in range parameter.")
        if not (np.isfinite(low) and np.isfinite(high)):
            raise ValueError(f"supplied range of [{low}, {high}] is not finite")
    elif not math.prod(node.shape):
        low, high = 0, 1
    else:
        axes = tuple(range(node.ndim))
        found = computed([folded(node, kind, axes, node.dtype) for kind in ("min", "max")])
        low, high = (each[()] for each in found)
        if not (np.isfinite(low) and np.isfinite(high)):
            raise ValueError(f"autodetected range of [{low}, {high}] is not finite")
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def _stone(node: Node, bounds: tuple[Any, Any], spread: Any) -> Any:
    """The width with the smallest estimated loss, among up to max(100, √n) bins: one pass for all."""
    n = math.prod(node.shape)
    if n <= 1 or spread == 0:
        return 0.0
    most = max(100, int(math.sqrt(n)))
    flat = _flat(wrap(node))
    attributes = (("most", most), ("bounds", tuple(map(float, bounds))))
    layout = Layout((tuple(range(flat.grid[0] + 1)), (0, most * (most + 1) // 2)))
    piece = Piece("histograms_tile", (Operand(0, (Along(0),)),), attributes)
    (found,) = computed([folded(blocks((flat,), (piece,), layout, np.intp), "sum", (0,), np.intp)])
    starts = np.cumsum(np.arange(most))
    shares = (found[start : start + bins] / n for bins, start in enumerate(starts, 1))
    losses = [(2 - (n + 1) * each.dot(each)) / (spread / bins) for bins, each in enumerate(shares, 1)]
    return spread / (int(np.argmin(losses)) + 1)


def _width(rule: str, node: Node, bounds: tuple[Any, Any]) -> Any:
    """The width of bins by a rule, as NumPy words it, in its dtypes: rounding may make a bin more."""
    n = math.prod(node.shape)
    x = wrap(node)
    spread = _distance(*computed([as_node(extreme(x)) for extreme in (reductions.min, reductions.max)]))

    def deviation() -> Any:
        return means_and_variances.std(x).compute()[()]

    def scott() -> Any:
        return (24.0 * math.pi**0.5 / n) ** (1.0 / 3.0) * deviation()

    def fd() -> Any:
        upper, lower = quantile(x, [0.75, 0.25]).compute()
        return 2.0 * (upper - lower) * n ** (-1.0 / 3.0)

    def sturges() -> Any:
        return spread / (np.log2(n) + 1.0)

    def doane() -> Any:
        sigma = deviation()
        if n <= 2 or sigma <= 0:
            return 0.0
        scale = np.sqrt(6.0 * (n - 2) / ((n + 1.0) * (n + 3)))
        standard = apply(np.true_divide, apply(np.subtract, x, means_and_variances.mean(x)), sigma)
        skew = means_and_variances.mean(apply(np.power, standard, 3)).compute()[()]
        return spread / (1.0 + np.log2(n) + np.log2(1.0 + abs(skew) / scale))

    simple = {
        "sqrt": lambda: spread / np.sqrt(n),
        "rice": lambda: spread / (2.0 * n ** (1.0 / 3)),
        "sturges": sturges,
        "scott": scott,
        "fd": fd,
        "doane": doane,
        "stone": lambda: _stone(node, bounds, spread),
    }
    if rule == "auto":
        # Half the width of the square-root rule keeps the number of bins in bounds.
        return min(max(fd(), spread / np.sqrt(n) / 2), sturges())
    if rule not in simple:
        known = ", ".join([*simple, "auto"])
        raise ValueError(f"{rule!r} is not a valid estimator for `bins`; use one of {known}")
    return simple[rule]()


def _distance(low: Any, high: Any) -> Any:
    """`high - low` of two numbers: of floats in their dtype, of integers whatever that holds."""
    if np.asarray(low).dtype.kind == "f" and np.asarray(high).dtype.kind == "f":
        return np.subtract(high, low)
    return np.float64(np.asarray(high).item() - np.asarray(low).item())


def _edges(node: Node, bins: Any, given: Any, weights: Any) -> tuple[NDArray[Any], tuple[Any, Any] | None]:
    """The edges of the bins; and the range, if all are equally wide."""
    if node.dtype == bool:
        node = cast(node, np.uint8)
    if isinstance(bins, str):
        if weights is not None:
            raise TypeError("Automated estimation of the number of bins is not supported for weighted data")
        low, high = _range(node, given)
        if given is not None:
            x = wrap(node)
            node = _flat(x[np.logical_and(x >= low, x <= high)])
        count = 1
        if math.prod(node.shape):
            width = _width(bins, node, (low, high))
            if width and node.dtype.kind in "iu" and width < 1:
                width = 1.0
            count = max(1, math.ceil(_distance(low, high) / width)) if width else 1
    elif np.ndim(_plain(bins)) == 0:
        try:
            count = int(bins.__index__())
        except AttributeError as error:
            raise TypeError("`bins` must be an integer, a string, or an array") from error
        if count < 1:
            raise ValueError("`bins` must be positive, when an integer")
        low, high = _range(node, given)
    else:
        found = as_read(_plain(bins))
        if found.ndim != 1:
            raise ValueError("`bins` must be 1d, when an array")
        if np.any(found[:-1] > found[1:]):
            raise ValueError("`bins` must increase monotonically, when an array")
        return found, None
    kind = np.result_type(low, high, node.dtype)
    kind = np.result_type(kind, float) if kind.kind in "iu" else kind
    edges = np.linspace(low, high, count + 1, endpoint=True, dtype=kind)
    if np.any(edges[:-1] >= edges[1:]):
        raise ValueError(f"Too many bins for data range. Cannot create {count} finite-sized bins.")
    return edges, (low, high)


@chunked(np.histogram_bin_edges)
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Array:
    """The edges that `histogram` would use.

    Parameters
    ----------
    a : array_like
    bins : how many bins, their edges, or the name of a rule such as "auto"
    range : two numbers, optional; the outer edges; by default the smallest and the largest element
    weights : without meaning here; edges do not depend on them

    Returns
    -------
    Array, longer by one than there are bins

    Examples
    --------
    >>> import linnet as ln
    >>> ln.histogram_bin_edges([0.0, 4.0], bins=4).compute()
    array([0., 1., 2., 3., 4.])
    """
    return wrap(Source(_edges(as_node(a), bins, range, weights)[0]))


@chunked(np.histogram)
def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Array, Array]:
    """How many elements lie in each bin, and the edges of the bins.

    Parameters
    ----------
    a : array_like
    bins : how many bins, their edges, or the name of a rule such as "auto"
    range : two numbers, optional; the outer edges; by default the smallest and the largest element
    density : whether to give a density whose integral is 1
    weights : array_like, optional; how much each element counts

    Returns
    -------
    tuple of the counts and the edges

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> counts, edges = histogram(asarray([1, 2, 2, 5], chunks=2), bins=2)
    >>> counts.compute(), edges.compute()
    (array([3, 1]), array([1., 3., 5.]))
    """
    node = as_node(a)
    if node.dtype == bool:
        node = cast(node, np.uint8)
    if weights is not None and as_node(weights).shape != node.shape:
        raise ValueError("weights should have the same shape as a.")
    edges, bounds = _edges(node, bins, range, weights)
    counts: Any = _counted(node, edges, bounds, weights)
    if density:
        widths = np.diff(edges).astype(float)
        counts = apply(np.divide, apply(np.divide, counts, widths), reductions.sum(counts))
    return counts, wrap(Source(edges))


def _counted(node: Node, edges: NDArray[Any], bounds: Any, weights: Any) -> Any:
    """The weight in each bin; tiles first, then their sum."""
    flat = _flat(wrap(node))
    inputs: list[Node] = [flat, _table(edges)]
    kind = np.dtype(np.intp)
    if weights is not None:
        weight = _flat(weights)
        kind = np.histogram(np.ones(1), 1, weights=np.ones(1, weight.dtype))[0].dtype
        inputs.append(recut(weight, flat.layout))
    plain = None if bounds is None else tuple(map(_as_attribute, bounds))
    access = ((Along(0),), (At(0),), (Along(0),))
    arguments = tuple(Operand(k, access[k]) for k in range(len(inputs)))
    piece = Piece("histogram_tile", arguments, (("bounds", plain),))
    layout = Layout((tuple(range(flat.grid[0] + 1)), (0, len(edges) - 1)))
    return wrap(folded(blocks(inputs, (piece,), layout, kind), "sum", (0,), kind, inner=kind))


def _as_attribute(bound: Any) -> Any:
    """A bound as programs hold it: complex numbers as two."""
    number = bound.item() if hasattr(bound, "item") else bound
    return (number.real, number.imag) if isinstance(number, complex) else number


@chunked(np.bincount)
def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Array:
    """How often each number from 0 on occurs; the largest number is computed at the call.

    Parameters
    ----------
    x : vector of integers, none negative
    weights : vector, optional; how much each counts
    minlength : int; the result is at least so long

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.bincount([1, 3, 1]).compute()
    array([0, 2, 0, 1])
    """
    node = as_node(x)
    if node.ndim != 1:
        raise ValueError("object too deep for desired array" if node.ndim else "object of too small depth")
    if node.dtype == np.uint64:  # what does not fit is negative then, and refused
        node = cast(node, np.intp)
    _refuse_unsafe(node.dtype, np.intp)
    if minlength < 0:
        raise ValueError("'minlength' must not be negative")
    kind = np.dtype(np.intp if weights is None else np.float64)
    if not node.shape[0]:
        return wrap(Source(np.zeros((minlength,), np.intp)))  # also with weights, as NumPy has it
    low, high = computed([folded(node, each, (0,), node.dtype) for each in ("min", "max")])
    if low < 0:
        raise ValueError("'list' argument must have no negative elements")
    inputs = [node]
    if weights is not None:
        weight = _real(weights)
        if weight.shape != node.shape:
            raise ValueError("The weights and list don't have the same length.")
        inputs.append(recut(weight, node.layout))
    length = max(int(high) + 1, minlength)
    arguments = tuple(Operand(k, (Along(0),)) for k, _ in enumerate(inputs))
    piece = Piece("bincount_tile", arguments, (("length", length),))
    layout = Layout((tuple(range(node.grid[0] + 1)), (0, length)))
    return wrap(folded(blocks(inputs, (piece,), layout, kind), "sum", (0,), kind, inner=kind))


def _real(weights: Any) -> Node:
    """Weights as the doubles that NumPy counts with: complex numbers and times are refused."""
    node = as_node(weights)
    _refuse_unsafe(node.dtype, np.float64)
    return cast(node, np.float64)


def _refuse_unsafe(dtype: np.dtype[Any], wanted: type[np.generic]) -> None:
    if not np.can_cast(dtype, wanted, "safe"):
        raise TypeError(
            f"Cannot cast array data from {dtype!r} to {np.dtype(wanted)!r} according to the rule 'safe'"
        )


# ---- several dimensions


def _columns(sample: Any) -> list[Node]:
    """The coordinates of points: rows of an array, or a sequence of coordinates."""
    if isinstance(sample, ArrayBase | np.ndarray):
        node = as_node(sample)
        if node.ndim == 1:
            return [node]
        whole = wrap(node)
        return [whole[:, k].__node__ for k in range(node.shape[1])]
    return [as_node(each) for each in sample]


@chunked(np.histogramdd)
def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Array, tuple[Array, ...]]:
    """How many points lie in each box, and the edges along each dimension.

    Parameters
    ----------
    sample : array_like, a row for each point
    bins : how many bins, or their edges; for all axes or for each
    range : pairs of numbers, optional; the outer edges
    density : whether to give a density whose integral is 1
    weights : array_like, optional; how much each element counts

    Returns
    -------
    tuple of the counts and a tuple of edges

    Examples
    --------
    >>> import linnet as ln
    >>> counts, edges = ln.histogramdd(ln.asarray([[0.1, 0.2], [0.9, 0.8]]), bins=2)
    >>> counts.shape, len(edges)
    ((2, 2), 2)
    """
    columns = _columns(sample)
    count = len(columns)
    many = bins if isinstance(bins, Sequence | tuple) and not isinstance(bins, str) else None
    if many is not None and len(many) != count:
        raise ValueError("The dimension of bins must be equal to the dimension of the sample x.")
    if range is not None and len(range) != count:
        raise ValueError("range argument must have one entry per dimension")
    common = np.result_type(*(node.dtype for node in columns))
    columns = [cast(node, common) for node in columns]
    edges = [
        _edges_along(node, bins if many is None else many[k], None if range is None else range[k])
        for k, node in enumerate(columns)
    ]
    made = _boxes(columns, edges, weights)
    if density:
        for axis, each in enumerate(edges):
            shape = [-1 if a == axis else 1 for a, _ in enumerate(edges)]
            made = apply(np.divide, made, np.diff(each).reshape(shape))
        made = apply(np.divide, made, reductions.sum(_boxes(columns, edges, weights)))
    return made, tuple(wrap(Source(each)) for each in edges)


def _edges_along(node: Node, bins: Any, given: Any) -> NDArray[Any]:
    """The edges along one dimension; they are of the dtype of the range, not of that of the elements."""
    edges, bounds = _edges(node, bins, given, None)
    return edges if bounds is None else np.linspace(*bounds, len(edges))


def _boxes(columns: list[Node], edges: list[NDArray[Any]], weights: Any) -> Any:
    points = np.stack([wrap(each) for each in columns], axis=1)  # type: ignore[type-var]
    node = as_node(points)
    node = recut(node, Layout((node.layout.boundaries[0], (0, len(columns)))))
    inputs: list[Node] = [node]
    arguments = [Operand(0, (Along(0), At(0)))]
    if weights is not None:
        inputs.append(recut(_real(weights), Layout(node.layout.boundaries[:1])))
        arguments.append(Operand(1, (Along(0),)))
    arguments += [Operand(len(inputs) + k, (At(0),)) for k, _ in enumerate(edges)]
    inputs += [_table(each) for each in edges]
    kernel = "histogramdd_tile" if weights is None else "histogramdd_weighted"
    sizes = tuple((0, len(each) - 1) for each in edges)
    layout = Layout((tuple(range(node.grid[0] + 1)), *sizes))
    counted = blocks(inputs, (Piece(kernel, tuple(arguments)),), layout, np.float64)
    return wrap(folded(counted, "sum", (0,), np.float64, inner=np.float64))


@chunked(np.histogram2d)
def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Array, Array, Array]:
    """How many points lie in each box of the plane, and the edges along both axes.

    Parameters
    ----------
    x, y : vectors; the coordinates of the points
    bins : how many bins, or their edges; for both axes or for each
    range : two pairs of numbers, optional; the outer edges
    density : whether to give a density whose integral is 1
    weights : array_like, optional; how much each element counts

    Returns
    -------
    tuple of the counts and the edges along both axes

    Examples
    --------
    >>> import linnet as ln
    >>> counts, _, _ = ln.histogram2d([0.1, 0.9], [0.1, 0.9], bins=2)
    >>> counts.compute()
    array([[1., 0.],
           [0., 1.]])
    """
    if as_node(x).shape != as_node(y).shape:
        raise ValueError("x and y must have the same length.")
    if hasattr(bins, "__len__") and not isinstance(bins, str) and len(bins) not in (1, 2):
        bins = [np.asarray(_plain(bins))] * 2
    counts, (one, other) = histogramdd([x, y], bins, range, density, weights)
    return counts, one, other


METHODS: dict[str, Any] = {}
__all__ = ["bincount", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd"]
