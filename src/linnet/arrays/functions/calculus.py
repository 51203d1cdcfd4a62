"""Differences, gradients, integrals, interpolation, convolution: element-wise work on shifted arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements import reductions
from linnet.arrays.elements.core import as_node, axis_of, checked, chunked, wrap
from linnet.arrays.elements.cumulative import cumsum
from linnet.arrays.elements.elementwise import apply, cast, spread
from linnet.arrays.elements.join_and_split import concatenate
from linnet.arrays.elements.outcomes import sample
from linnet.arrays.elements.reductions import NOT_GIVEN
from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import blocks, concatenated, permuted, recut, sliced
from linnet.arrays.expression.nodes import Along, At, Entry, Node, Operand, Piece, Source, Spans
from linnet.arrays.expression.operands import as_read
from linnet.arrays.functions import convolve as convolving
from linnet.tiles import Layout

if TYPE_CHECKING:
    from linnet.arrays.array import Array


def _part(node: Node, axis: int, start: int | None, stop: int | None, step: int = 1) -> Any:
    cut = [slice(start, stop, step) if a == axis else slice(None) for a in range(node.ndim)]
    return wrap(sliced(node, cut))


@chunked(np.diff, times=chunking.LINEAR)
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = NOT_GIVEN, append: Any = NOT_GIVEN) -> Array:
    """The n-th differences of neighbours along an axis.

    Parameters
    ----------
    a : array_like
    n : int; how often
    axis : int
    prepend, append : array_like, optional; put before and behind it first

    Returns
    -------
    Array

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> diff(asarray([1, 4, 9], chunks=1)).compute()
    array([3, 5])
    """
    node = as_node(a)
    if n < 0:
        raise ValueError("order must be non-negative but got " + repr(n))
    if n == 0:
        return wrap(node)
    if not node.ndim:
        raise ValueError("diff requires input that is at least one dimensional")
    along = axis_of(axis, node.ndim)
    ends = [None if each is NOT_GIVEN or each is None else as_node(each) for each in (prepend, append)]
    if any(end is not None for end in ends):
        before, after = (_end(end, node, along) for end in ends)
        parts = [wrap(each) for each in (before, node, after) if each is not None]
        node = concatenate(parts, along).__node__
    found = wrap(node)
    for _ in range(n):
        function = np.not_equal if found.dtype == bool else np.subtract
        found = apply(function, _part(found.__node__, along, 1, None), _part(found.__node__, along, None, -1))
    return found


def _end(end: Node | None, node: Node, axis: int) -> Node | None:
    if end is None or end.ndim:
        return end
    return spread(end, tuple(1 if a == axis else n for a, n in enumerate(node.shape)))


@chunked(np.ediff1d, times=chunking.LINEAR)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Array:
    """The differences of neighbours of the flattened array, with numbers before and behind.

    Parameters
    ----------
    ary : array_like
    to_end, to_begin : array_like, optional; numbers behind and before the differences

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.ediff1d([1, 4, 9], to_begin=0).compute()
    array([0, 3, 5])
    """
    node = as_node(ary)
    np.subtract(sample(node.dtype), sample(node.dtype))  # NumPy refuses truth values, unlike diff
    flat = node if node.ndim == 1 else wrap(node).reshape((-1,)).__node__
    parts = [diff(wrap(flat)).__node__]
    for name, given, place in (("to_begin", to_begin, 0), ("to_end", to_end, len(parts))):
        if given is None:
            continue
        extra = as_node(given)
        if not np.can_cast(extra.dtype, node.dtype, "same_kind"):
            raise TypeError(
                f"dtype of `{name}` must be compatible with input `ary` under the `same_kind` rule."
            )
        extra = cast(extra if extra.ndim == 1 else wrap(extra).reshape((-1,)).__node__, node.dtype)
        parts.insert(0 if place == 0 else len(parts), extra)
    return wrap(concatenated(parts, 0, node.dtype))


@chunked(np.gradient, times=chunking.LINEAR)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Second-order central differences inside, one-sided ones at the ends, along each axis.

    Parameters
    ----------
    f : array_like
    varargs : spacing; one number, one for each axis, or coordinates
    axis : int or tuple of int, optional; None: all
    edge_order : 1 or 2; how accurate at the ends

    Returns
    -------
    Array, or a list of them for several axes

    Examples
    --------
    >>> import linnet as ln
    >>> ln.gradient([1.0, 2.0, 4.0, 7.0]).compute()
    array([1. , 1.5, 2.5, 3. ])
    """
    node = as_node(f)
    np.subtract(np.empty(0, node.dtype), np.empty(0, node.dtype))  # NumPy refuses booleans
    axes = (
        tuple(range(node.ndim)) if axis is None else tuple(axis_of(a, node.ndim) for a in np.atleast_1d(axis))
    )
    if edge_order not in (1, 2):
        raise ValueError("'edge_order' greater than 2 not supported")
    if len(varargs) not in (0, 1, len(axes)):
        raise TypeError("invalid number of arguments")
    spacings = [1.0] * len(axes) if not varargs else list(varargs) * (len(axes) if len(varargs) == 1 else 1)
    np.subtract(sample(node.dtype), sample(node.dtype))  # truth values have no differences
    if node.dtype.kind in "iu":
        node = cast(node, np.float64)
    elif node.dtype.kind == "M":  # differences of times are spans
        node = wrap(node).view(node.dtype.str.replace("M8", "m8")).__node__
    found = [_gradient(node, a, each, edge_order) for a, each in zip(axes, spacings, strict=True)]
    return found[0] if len(found) == 1 else tuple(found)


def _gradient(node: Node, axis: int, spacing: Any, edge_order: int) -> Any:
    length = node.shape[axis]
    if length < edge_order + 1:
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, "
            "at least (edge_order + 1) elements are required."
        )
    steps = np.asarray(spacing)
    if steps.ndim > 1:
        raise ValueError("distances must be either scalars or 1d")
    if steps.ndim and len(steps) != length:
        raise ValueError("when 1d, distances must match the length of the corresponding dimension")
    gaps = np.diff(steps.astype(np.result_type(steps.dtype, 1.0))) if steps.ndim else np.full(1, steps, float)
    even = bool((gaps == gaps[0]).all())
    middle = _inner(node, axis, gaps, even)
    first, last = _edges(node, axis, gaps, edge_order, even)
    parts = [cast(each.__node__, node.dtype) for each in (first, middle, last) if each.shape[axis]]
    return wrap(concatenated(parts, axis, node.dtype))


def _inner(node: Node, axis: int, gaps: Any, even: bool) -> Any:
    before, here, after = _part(node, axis, None, -2), _part(node, axis, 1, -1), _part(node, axis, 2, None)
    if even:
        return (after - before) / (2.0 * gaps[0])
    left, right = gaps[:-1], gaps[1:]
    shape = tuple(len(left) if a == axis else 1 for a in range(node.ndim))
    a = (-right / (left * (left + right))).reshape(shape)
    b = ((right - left) / (left * right)).reshape(shape)
    c = (left / (right * (left + right))).reshape(shape)
    return a * before + b * here + c * after


def _edges(node: Node, axis: int, gaps: Any, order: int, even: bool) -> list[Any]:
    def at(place: int) -> Any:
        return _part(node, axis, place, place + 1 if place != -1 else None)

    if order == 1:
        return [(at(1) - at(0)) / gaps[0], (at(-1) - at(-2)) / gaps[-1]]
    found: list[Any] = []
    for one, two, sign, rows in (
        (gaps[0], gaps[1 % len(gaps)], 1, (0, 1, 2)),
        (gaps[-1], gaps[-2 % len(gaps)], -1, (-1, -2, -3)),
    ):
        weights = (
            (-1.5 / one, 2.0 / one, -0.5 / one)
            if even
            else (
                -(2 * one + two) / (one * (one + two)),
                (one + two) / (one * two),
                -one / (two * (one + two)),
            )
        )
        terms = [sign * w * at(row) for w, row in zip(weights, rows, strict=True)]
        found.append(terms[0] + terms[1] + terms[2])
    return found


@chunked(np.trapezoid, times=chunking.LINEAR)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Array:
    """The integral along an axis by the trapezoidal rule.

    Parameters
    ----------
    y : array_like
    x : array_like, optional; where the values are
    dx : number; how far apart they are, without `x`
    axis : int

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.trapezoid([1.0, 2.0, 3.0]).compute()
    np.float64(4.0)
    """
    node = as_node(y)
    along = axis_of(axis, node.ndim)
    if x is None:
        gaps: Any = dx
    else:
        points = as_node(x)
        gaps = diff(wrap(points), axis=axis if points.ndim > 1 else 0)
        if points.ndim == 1:
            gaps = wrap(permuted(gaps.__node__, tuple(0 if a == along else -1 for a in range(node.ndim))))
    height = _part(node, along, 1, None) + _part(node, along, None, -1)
    return reductions.sum(apply(np.divide, apply(np.multiply, gaps, height), 2.0), along)


@chunked(np.unwrap)
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 2 * np.pi) -> Array:
    """Angles without jumps of more than half a period: their complements are added up.

    Parameters
    ----------
    p : array_like of angles
    discont : number, optional; smaller jumps stay
    axis : int
    period : number

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.unwrap([0.0, 3.0, 6.5], period=6.0).compute()
    array([0. , 3. , 0.5])
    """
    node = as_node(p)
    along = axis_of(axis, node.ndim)
    steps = diff(wrap(node), axis=along)
    limit = period / 2 if discont is None else discont
    dtype = np.result_type(steps.dtype, period)
    if dtype.kind in "iu":
        half, rest = divmod(period, 2)
        on_edge = rest == 0
    else:
        half, on_edge = period / 2, True
    reduced = np.mod(steps + half, period) - half
    if on_edge:
        reduced = np.where((reduced == -half) & (steps > 0), half, reduced)
    correction = np.where(np.abs(steps) < limit, 0, reduced - steps)
    rest = _part(node, along, 1, None) + cumsum(correction, along)
    first = cast(_part(node, along, 0, 1).__node__, dtype)
    return wrap(concatenated([first, cast(rest.__node__, dtype)], along, dtype))


@chunked(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Array:
    """Linear interpolation in a table of points, which every tile sees whole.

    Parameters
    ----------
    x : array_like; where
    xp, fp : vectors; the points of the table, `xp` rising
    left, right : numbers, optional; beyond the ends; by default those at the ends
    period : number, optional; of `x`

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.interp([0.5, 2.0], [0, 1], [10, 20]).compute()
    array([15., 20.])
    """
    node = as_node(x)
    points, values = as_read(xp), as_read(fp)
    # NumPy says what comes out, and refuses what is no real number.
    dtype = np.interp(np.zeros(1, node.dtype), points, values, left, right, period).dtype
    points = points.astype(float, copy=False)
    own = tuple(Along(a) for a in range(node.ndim))
    ends = tuple(
        None if each is None else complex(each) if dtype.kind == "c" else float(each)
        for each in (left, right)
    )
    sides = tuple(None if e is None else (e.real, e.imag) for e in ends)
    piece = Piece(
        "interp_tile",
        (Operand(0, own), Operand(1, (At(0),)), Operand(2, (At(0),))),
        (("sides", sides), ("period", None if period is None else float(period))),
    )
    table = [Source(each, chunking.whole(each.shape)) for each in (points, values)]
    return wrap(blocks((node, *table), (piece,), node.layout, dtype))


# ---- convolution


def _small_convolve(a: Any, v: Any, mode: Any = "full", *, strides: Any = 1, padding: Any = None) -> Any:
    if np.ndim(a) <= 1 and np.ndim(v) <= 1 and strides == 1 and padding is None:
        return np.convolve(a, v, mode)
    a, v = np.asarray(a), np.asarray(v)
    return convolving.at_once(a, v, convolving.box(a.shape, v.shape, mode, strides, padding))


@chunked(np.convolve, small=_small_convolve)
def convolve(a: Any, v: Any, mode: Any = "full", *, strides: Any = 1, padding: Any = None) -> Array:
    """The convolution of two arrays: each tile with the smaller one and what it overlaps.

    Parameters
    ----------
    a, v
        Arrays with as many axes; of one axis as NumPy convolves them, of several as `scipy.signal.convolve`.
    mode
        "full" (every element that depends on both), "same" (the middle, of the shape of `a`) or "valid"
        (what does
        not reach beyond the ends).
    strides
        Only every so many-th element of the result, from its first: an integer, or one for each axis.
    padding
        In place of a mode: how many zeros to put around `a`, as an integer, a pair (before, after), or a
        pair for each axis; the result is the "valid" part.

    Returns
    -------
    Array
        Cut along the tiles of the larger operand; the smaller is brought together in one.

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> x = asarray(np.arange(16.0).reshape(4, 4), chunks=2)
    >>> convolve(x, np.ones((2, 2)), "valid", strides=2).compute()
    array([[10., 18.],
           [42., 50.]])
    """
    x, y = as_node(a), as_node(v)
    if x.ndim > 1 or y.ndim > 1 or strides != 1 or padding is not None:
        return wrap(convolving.convolved(x, y, convolving.box(x.shape, y.shape, mode, strides, padding)))
    x, y = (each if each.ndim else wrap(each).reshape((1,)).__node__ for each in (x, y))
    if not x.shape[0] or not y.shape[0]:
        raise ValueError(f"{'a' if not x.shape[0] else 'v'} cannot be empty")
    if y.shape[0] > x.shape[0]:
        x, y = y, x
    return wrap(_convolved(x, y, mode))


@chunked(np.correlate)
def correlate(a: Any, v: Any, mode: Any = "valid") -> Array:
    """The cross-correlation: the convolution with the conjugate of the second in reverse.

    Parameters
    ----------
    a, v : vectors
    mode : "valid", "same" or "full"

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.correlate([1, 2, 3], [0, 1]).compute()
    array([2, 3])
    """
    x, y = as_node(a), as_node(v)
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(f"correlate takes arrays with one axis, not of shapes {x.shape} and {y.shape}")
    if not x.shape[0] or not y.shape[0]:
        raise ValueError(
            "first array argument cannot be empty"
            if not x.shape[0]
            else "second array argument cannot be empty"
        )
    swapped = y.shape[0] > x.shape[0]
    y = _part(y, 0, None, None, -1)
    y = as_node(apply(np.conjugate, y)) if as_node(y).dtype.kind == "c" else as_node(y)
    if swapped:
        x, y = y, x
    return wrap(_convolved(x, y, mode, swapped))


def _convolved(x: Node, y: Node, mode: Any, late: bool = False) -> Node:
    """x is not shorter than y. A tile of the result reads the tiles of x it overlaps, and all of y.

    With `late` the middle of an even number of elements is the later of two.
    """
    n, m = x.shape[0], y.shape[0]
    mode = {0: "valid", 1: "same", 2: "full"}.get(mode, mode)
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")
    dtype = checked(np.convolve(np.ones(1, x.dtype), np.ones(1, y.dtype))).dtype
    start, length = {
        "full": (0, n + m - 1),
        "same": (m // 2 if late else (m - 1) // 2, n),
        "valid": (m - 1, n - m + 1),
    }[mode]
    y = recut(y, chunking.whole(y.shape))
    edges = x.layout.boundaries[0]
    ends = [min(e, length) for e in edges[1:] if e < length] + [length]
    layout = Layout(((0, *ends),))
    first, last, offsets, lengths = [], [], [], []
    for low, high in zip((0, *ends), ends, strict=False):
        # Result elements low..high are sums over x[low + start - m + 1 .. high + start - 1].
        lo, hi = max(0, low + start - m + 1), min(n, high + start)
        tile = int(np.searchsorted(edges, lo, "right")) - 1
        first.append(tile)
        last.append(max(tile + 1, int(np.searchsorted(edges, hi, "left"))))
        offsets.append(low + start - edges[tile])
        lengths.append(high - low)
    piece = Piece(
        "convolve_tile",
        (
            Operand(0, (Spans(0, tuple(first), tuple(last)),)),
            Operand(1, (At(0),)),
            Entry(0, tuple(offsets)),
            Entry(0, tuple(lengths)),
        ),
    )
    return blocks((x, y), (piece,), layout, dtype)


METHODS: dict[str, Any] = {}
__all__ = ["convolve", "correlate", "diff", "ediff1d", "gradient", "interp", "trapezoid", "unwrap"]
