"""Functions made of element-wise operations: rounding, clipping, comparing with a tolerance, polynomials."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements import reductions
from linnet.arrays.elements.core import SCALARS, as_node, chunked, wrap
from linnet.arrays.elements.elementwise import apply, cast, chosen
from linnet.arrays.elements.reductions import reduction
from linnet.arrays.expression import chunking
from linnet.arrays.expression.argument_names import named_as
from linnet.arrays.expression.builders import constant, mapped

if TYPE_CHECKING:
    from linnet.arrays.array import Array


def _one(op: str, x: Any, function: Any) -> Any:
    """An operation of one operand; NumPy says what dtype it gives."""
    node = as_node(x)
    return wrap(mapped(op, [node], np.asarray(function(np.ones((1,), node.dtype))).dtype))


@chunked(np.real, times=chunking.LINEAR)
def real(val: Any) -> Array:
    """The real parts.

    Parameters
    ----------
    val : array_like

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.real([1 + 2j, 3.0]).compute()
    array([1., 3.])
    """
    node = as_node(val)
    return _one("real", val, np.real) if node.dtype.kind == "c" else wrap(node)


@chunked(np.imag, times=chunking.LINEAR)
def imag(val: Any) -> Array:
    """The imaginary parts.

    Parameters
    ----------
    val : array_like

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.imag([1 + 2j, 3.0]).compute()
    array([2., 0.])
    """
    node = as_node(val)
    if node.dtype.kind == "c":
        return _one("imag", val, np.imag)
    return wrap(mapped("fill", [constant(0, node.dtype)], node.dtype, shape=node.shape, layout=node.layout))


@chunked(np.angle, times=chunking.LINEAR)
def angle(z: Any, deg: bool = False) -> Array:
    """The angle of complex numbers, in radians or degrees.

    Parameters
    ----------
    z : array_like
    deg : whether in degrees

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.angle([1j, -1.0], deg=True).compute()
    array([ 90., 180.])
    """
    found = apply(np.arctan2, imag(z), real(z)) if as_node(z).dtype.kind == "c" else apply(np.arctan2, 0, z)
    return apply(np.multiply, found, 180 / np.pi) if deg else found


@chunked(np.i0, times=chunking.LINEAR)
def i0(x: Any) -> Array:
    """The modified Bessel function of order 0.

    Parameters
    ----------
    x : array_like

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.i0([0.0, 1.0]).compute()
    array([1.        , 1.26606588])
    """
    return _one("i0", x, np.i0)


@chunked(np.sinc, times=chunking.LINEAR)
def sinc(x: Any) -> Array:
    """sin(πx) / (πx), and 1 at 0.

    Parameters
    ----------
    x : array_like

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.sinc([0.0, 0.5]).compute()
    array([1.        , 0.63661977])
    """
    return _one("sinc", x, np.sinc)


@reduction(np.fix, out_at=1)
def fix(x: Any, out: Any = None) -> Array:
    """Rounded towards zero.

    Parameters
    ----------
    x : array_like
    out : array, optional; where the result goes

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.fix([1.7, -1.7]).compute()
    array([ 1., -1.])
    """
    return apply(np.trunc, x)


@reduction(np.round, np.around, out_at=2)
def round(a: Any, decimals: int = 0, out: Any = None) -> Array:
    """Rounded to so many decimals, halves to even.

    Parameters
    ----------
    a : array_like
    decimals : int; negative: places before the point
    out : array, optional; where the result goes

    Returns
    -------
    Array

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> round(asarray([1.25, 2.75], chunks=1), 1).compute()
    array([1.2, 2.8])
    """
    node = as_node(a)
    dtype = np.round(np.ones((1,), node.dtype), decimals).dtype
    if decimals == 0 and node.dtype.kind in "fc":
        return wrap(mapped("rint", [node], dtype))
    if node.dtype.kind in "biumM" and decimals >= 0:
        return wrap(cast(node, dtype))
    return wrap(mapped("round", [node, constant(operator.index(decimals), np.intp)], dtype))


around = round


def _small_clip(x: Any, min: Any = None, max: Any = None, out: None = None) -> Any:
    if min is None and max is None:
        return x.copy()
    found = np.clip(x, min, max)
    if found.dtype == x.dtype or found.dtype.kind != x.dtype.kind:
        return found
    if x.dtype.kind in "iu":
        limits = np.iinfo(x.dtype)
        found = np.clip(found, limits.min, limits.max)
    return found.astype(x.dtype)


@named_as(np.clip)
@reduction(out_at=3, small=_small_clip)
def clip(x: Any, /, min: Any = None, max: Any = None, out: Any = None) -> Array:
    """Elements below `min` become `min`, those above `max` become `max`; either may be None.

    The result has the dtype of `x`, as the standard asks, where `min` and `max` are of its kind: a wider
    bound that it does not hold counts as the last number that it does. With bounds of another kind, as 1.5
    for integers, the dtype is NumPy's.

    Parameters
    ----------
    x : array_like
    min, max : array_like or None
    out : array, optional; where the result goes

    Returns
    -------
    Array

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> clip(asarray([0, 2, 4], chunks=2), 1.5, 2.5).compute()
    array([1.5, 2. , 2.5])
    """
    dtype = as_node(x).dtype
    found = _clipped(x, min, max).__node__
    if found.dtype == dtype or found.dtype.kind != dtype.kind:
        return wrap(found)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        found = _clipped(wrap(found), limits.min, limits.max).__node__
    return wrap(cast(found, dtype))


def _clipped(x: Any, low: Any, high: Any) -> Any:
    found = wrap(as_node(x))
    if found.dtype.kind in "iu":  # bounds that all elements keep are none
        limits = np.iinfo(found.dtype)
        low = None if type(low) is int and low <= limits.min else low
        high = None if type(high) is int and high >= limits.max else high
    if low is None and high is None:
        return apply(np.positive, found)
    if low is not None and high is not None:  # the dtype is that of all three, whichever comes first
        bounds = [each if type(each) in SCALARS else as_node(each).dtype for each in (low, high)]
        common = np.result_type(found.dtype, *bounds) if found.dtype.kind in "biufc" else found.dtype
        found = wrap(cast(found.__node__, common)) if common.kind in "biufc" else found
    if low is not None:
        found = apply(np.maximum, found, low)
    return found if high is None else apply(np.minimum, found, high)


@reduction(np.clip, out_at=3)
def numpy_clip(
    a: Any,
    a_min: Any = np._NoValue,
    a_max: Any = np._NoValue,
    out: Any = None,
    *,
    min: Any = np._NoValue,
    max: Any = np._NoValue,
) -> Array:
    """`np.clip` of an array in tiles."""
    low = a_min if a_min is not np._NoValue else min
    high = a_max if a_max is not np._NoValue else max
    return _clipped(a, None if low is np._NoValue else low, None if high is np._NoValue else high)


@chunked(np.nan_to_num, times=chunking.LINEAR)
def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Array:
    """NaN becomes 0 (or `nan`), infinities the largest numbers (or `posinf`, `neginf`).

    Parameters
    ----------
    x : array_like
    copy : without meaning here; the input stays as it is
    nan : number in place of NaN
    posinf, neginf : numbers in place of infinities; by default the largest and the smallest of the type

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.nan_to_num([ln.nan, 1.0, ln.inf], posinf=9.0).compute()
    array([0., 1., 9.])
    """
    node = as_node(x)
    if node.dtype.kind == "c":
        parts = [nan_to_num(part(x), copy, nan, posinf, neginf) for part in (real, imag)]
        return apply(np.add, parts[0], apply(np.multiply, parts[1], np.zeros((), node.dtype)[()] + 1j))
    if node.dtype.kind != "f":
        return wrap(node)
    info = np.finfo(node.dtype)
    high = info.max if posinf is None else posinf
    low = info.min if neginf is None else neginf
    found = chosen(apply(np.isnan, wrap(node)).__node__, constant(nan, node.dtype), node, node.dtype)
    for value, other in ((np.inf, high), (-np.inf, low)):
        test = apply(np.equal, wrap(node), value).__node__
        found = chosen(test, constant(other, node.dtype), found, node.dtype)
    return wrap(found)


# ---- comparing


@chunked(np.isclose, times=chunking.LINEAR)
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Array:
    """Whether |a - b| <= atol + rtol · |b|, element by element.

    Parameters
    ----------
    a, b : array_like
    rtol, atol : by how much they may differ, in parts of `b` and at all
    equal_nan : whether NaN equals NaN

    Returns
    -------
    Array of booleans

    Examples
    --------
    >>> import linnet as ln
    >>> ln.isclose([1.0, 2.0], [1.0, 2.1]).compute()
    array([ True, False])
    """
    x, y = wrap(as_node(a)), wrap(as_node(b))
    if y.__node__.dtype.kind in "biu":
        y = wrap(cast(y.__node__, np.result_type(y.__node__.dtype, 1.0)))
    near = np.abs(x - y) <= atol + rtol * np.abs(y)
    found = (near & np.isfinite(y)) | (x == y)
    return found | (np.isnan(x) & np.isnan(y)) if equal_nan else found


def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are close; this computes.

    Parameters
    ----------
    a, b : array_like
    rtol, atol : by how much they may differ, in parts of `b` and at all
    equal_nan : whether NaN equals NaN

    Returns
    -------
    bool

    Examples
    --------
    >>> import linnet as ln
    >>> ln.allclose([1.0, 2.0], [1.0, 2.0 + 1e-9])
    True
    """
    return bool(reductions.all(isclose(a, b, rtol, atol, equal_nan)))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    """Whether two arrays have the same shape and elements; this computes.

    Parameters
    ----------
    a1, a2 : array_like
    equal_nan : whether NaN equals NaN

    Returns
    -------
    bool

    Examples
    --------
    >>> import linnet as ln
    >>> ln.array_equal([1, 2], [1, 2]), ln.array_equal([1, 2], [[1, 2]])
    (True, False)
    """
    x, y = as_node(a1), as_node(a2)
    return x.shape == y.shape and _all_equal(wrap(x), wrap(y), equal_nan)


def array_equiv(a1: Any, a2: Any) -> bool:
    """Whether two arrays have the same elements once broadcast together; this computes.

    Parameters
    ----------
    a1, a2 : array_like

    Returns
    -------
    bool

    Examples
    --------
    >>> import linnet as ln
    >>> ln.array_equiv([1, 1], [[1], [1]])
    True
    """
    x, y = as_node(a1), as_node(a2)
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return False
    return _all_equal(wrap(x), wrap(y), False)


def _all_equal(x: Any, y: Any, equal_nan: bool) -> bool:
    try:
        same = apply(np.equal, x, y)
    except TypeError:  # times and numbers, for one: nothing equals anything
        return 0 in np.broadcast_shapes(x.shape, y.shape)
    if equal_nan and all(each.__node__.dtype.kind in "fcmM" for each in (x, y)):
        test = np.isnat if x.__node__.dtype.kind in "mM" else np.isnan
        same = apply(np.logical_or, same, apply(np.logical_and, apply(test, x), apply(test, y)))
    return bool(reductions.all(same))


for _function in (allclose, array_equal, array_equiv):
    chunked(getattr(np, _function.__name__))(_function)


METHODS: dict[str, Any] = {"clip": numpy_clip, "round": round}
__all__ = [
    "allclose",
    "angle",
    "around",
    "array_equal",
    "array_equiv",
    "clip",
    "fix",
    "i0",
    "imag",
    "isclose",
    "nan_to_num",
    "real",
    "round",
    "sinc",
]
