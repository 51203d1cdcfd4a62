"""Reductions that leave NaN out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import as_node, axes_of, names_nothing, wrap
from linnet.arrays.elements.elementwise import apply, chosen
from linnet.arrays.elements.means_and_variances import corrected, mean, squared_distances, std, var
from linnet.arrays.elements.reductions import NOT_GIVEN, fold_ufunc, max, min, prod, reduction, sum
from linnet.arrays.expression.builders import constant, folded
from linnet.arrays.expression.nodes import Node
from linnet.arrays.functions.arg_extremes import argmax, argmin
from linnet.arrays.lowering.evaluate import computed

if TYPE_CHECKING:
    from linnet.arrays.array import Array


def _missing(node: Node) -> Node | None:
    """Where there is NaN or NaT; None for dtypes that have neither."""
    if node.dtype.kind in "mM":
        return apply(np.isnat, wrap(node)).__node__
    return apply(np.isnan, wrap(node)).__node__ if node.dtype.kind in "fc" else None


def _filled(x: Any, value: Any) -> Any:
    node = as_node(x)
    missing = _missing(node) if node.dtype.kind in "fc" else None
    return x if missing is None else wrap(chosen(missing, constant(value, node.dtype), node, node.dtype))


@reduction(np.nansum, out_at=3)
def nansum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = NOT_GIVEN,
    where: Any = True,
) -> Array:
    """The sum over axes, NaN counted as 0.

    Parameters
    ----------
    a : array_like
    axis : int or tuple of int, optional; None: over all elements
    dtype : optional; the type to add in
    out : array, optional; where the result goes
    keepdims : whether reduced axes stay, with length 1
    initial : number, optional; one more element
    where : array_like of bool; which elements count

    Returns
    -------
    Array

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> nansum(asarray([1.0, np.nan, 3.0], chunks=1)).compute()
    np.float64(4.0)
    """
    return sum(_filled(a, 0), axis, dtype, None, keepdims, initial, where)


@reduction(np.nanprod, out_at=3)
def nanprod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = NOT_GIVEN,
    where: Any = True,
) -> Array:
    """The product over axes, NaN counted as 1.

    Parameters
    ----------
    a : array_like
    axis : int or tuple of int, optional; None: over all elements
    dtype : optional; the type to multiply in
    out : array, optional; where the result goes
    keepdims : whether reduced axes stay, with length 1
    initial : number, optional; one more element
    where : array_like of bool; which elements count

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.nanprod([2.0, ln.nan, 3.0]).compute()
    np.float64(6.0)
    """
    return prod(_filled(a, 1), axis, dtype, None, keepdims, initial, where)


@reduction(np.nanmax, out_at=2)
def nanmax(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = NOT_GIVEN,
    where: Any = True,
) -> Array:
    """The largest element that is not NaN; NaN where there is none.

    Parameters
    ----------
    a : array_like
    axis : int or tuple of int, optional; None: over all elements
    out : array, optional; where the result goes
    keepdims : whether reduced axes stay, with length 1
    initial : number, optional; one more element
    where : array_like of bool; which elements count

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.nanmax([1.0, ln.nan, 3.0]).compute()
    np.float64(3.0)
    """
    if as_node(a).dtype.kind not in "fcmM":
        return max(a, axis, None, keepdims, initial, where)
    return fold_ufunc(a, np.fmax, "fmax", axis, None, keepdims, initial, where)


@reduction(np.nanmin, out_at=2)
def nanmin(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = NOT_GIVEN,
    where: Any = True,
) -> Array:
    """The smallest element that is not NaN; NaN where there is none.

    Parameters
    ----------
    a : array_like
    axis : int or tuple of int, optional; None: over all elements
    out : array, optional; where the result goes
    keepdims : whether reduced axes stay, with length 1
    initial : number, optional; one more element
    where : array_like of bool; which elements count

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.nanmin([ln.nan, 2.0, 1.0]).compute()
    np.float64(1.0)
    """
    if as_node(a).dtype.kind not in "fcmM":
        return min(a, axis, None, keepdims, initial, where)
    return fold_ufunc(a, np.fmin, "fmin", axis, None, keepdims, initial, where)


def _present(node: Node, where: Any) -> Any:
    """The mask of elements that count; None if all do."""
    if node.dtype.kind not in "fc":
        return None
    here = np.logical_not(wrap(_missing(node)))  # type: ignore[arg-type]
    return here if where is True or where is NOT_GIVEN else np.logical_and(here, where)


def _check_inexact(node: Node, dtype: Any) -> None:
    """Refuse integers as the dtype for what may have been NaN."""
    if node.dtype.kind in "fc" and dtype is not None and not np.issubdtype(dtype, np.inexact):
        raise TypeError("If a is inexact, then dtype must be inexact")


@reduction(np.nanmean, out_at=3)
def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Array:
    """The mean over axes of what is not NaN.

    Parameters
    ----------
    a : array_like
    axis : int or tuple of int, optional; None: over all elements
    dtype : optional; the type to add in
    out : array, optional; where the result goes
    keepdims : whether reduced axes stay, with length 1
    where : array_like of bool; which elements count

    Returns
    -------
    Array; NaN where there is nothing else

    Examples
    --------
    >>> import linnet as ln
    >>> ln.nanmean([1.0, ln.nan, 3.0]).compute()
    np.float64(2.0)
    """
    _check_inexact(as_node(a), dtype)
    here = _present(as_node(a), where)
    return mean(a, axis, dtype, None, keepdims, where=where if here is None else here)


@reduction(np.nanvar, out_at=3)
def nanvar(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = NOT_GIVEN,
    correction: Any = NOT_GIVEN,
) -> Array:
    """The variance over axes of what is not NaN; NaN where that is too little.

    Parameters
    ----------
    a : array_like
    axis : int or tuple of int, optional; None: over all elements
    dtype : optional; the type to compute in
    out : array, optional; where the result goes
    ddof : number; it is subtracted from the count of elements
    keepdims : whether reduced axes stay, with length 1
    where : array_like of bool; which elements count
    mean : array_like, optional; the mean, where it is known
    correction : number; the standard's name of `ddof`

    Returns
    -------
    Array; NaN where there is nothing else

    Examples
    --------
    >>> import linnet as ln
    >>> ln.nanvar([1.0, ln.nan, 5.0]).compute()
    np.float64(4.0)
    """
    return _scattered(a, axis, dtype, ddof, keepdims, where, mean, correction, False)


@reduction(np.nanstd, out_at=3)
def nanstd(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = NOT_GIVEN,
    correction: Any = NOT_GIVEN,
) -> Array:
    """The standard deviation over axes of what is not NaN.

    Parameters
    ----------
    a : array_like
    axis : int or tuple of int, optional; None: over all elements
    dtype : optional; the type to compute in
    out : array, optional; where the result goes
    ddof : number; it is subtracted from the count of elements
    keepdims : whether reduced axes stay, with length 1
    where : array_like of bool; which elements count
    mean : array_like, optional; the mean, where it is known
    correction : number; the standard's name of `ddof`

    Returns
    -------
    Array; NaN where there is nothing else

    Examples
    --------
    >>> import linnet as ln
    >>> ln.nanstd([1.0, ln.nan, 3.0]).compute()
    np.float64(1.0)
    """
    return _scattered(a, axis, dtype, ddof, keepdims, where, mean, correction, True)


def _scattered(
    a: Any,
    axis: Any,
    dtype: Any,
    ddof: Any,
    keepdims: Any,
    where: Any,
    mean: Any,
    correction: Any,
    root: bool,
) -> Any:
    node = as_node(a)
    _check_inexact(node, dtype)
    here = _present(node, where)
    if here is None:
        function = std if root else var
        return function(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction)
    ddof = corrected(ddof, correction)
    axes = axes_of(axis, node.ndim)
    keep = keepdims is not NOT_GIVEN and bool(keepdims)
    result = np.dtype(np.var(np.ones((1,), node.dtype), dtype=dtype).dtype)
    made = squared_distances(node, axes, result, dtype, ddof, keep, here, mean, root)
    # Unlike var, which answers inf, too few elements for the correction give NaN here.
    count = folded(here.__node__, "count", axes, np.intp, keepdims=keep)
    enough = apply(np.greater, wrap(count), float(ddof)).__node__
    return wrap(chosen(enough, made, constant(np.nan, result), result))


def _all_missing(node: Node, axis: Any) -> None:
    missing = _missing(node)
    assert missing is not None
    axes = () if names_nothing(axis, node.ndim) else axes_of(axis, node.ndim)
    (found,) = computed(
        [folded(folded(missing, "all", axes, bool), "any", tuple(range(node.ndim - len(axes))), bool)]
    )
    if found:
        raise ValueError("All-NaN slice encountered")


@reduction(np.nanargmax, out_at=2)
def nanargmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Array:
    """The position of the largest element that is not NaN; an error where there is none.

    Parameters
    ----------
    a : array_like
    axis : int, optional; None: over all elements
    out : array, optional; where the result goes
    keepdims : whether reduced axes stay, with length 1

    Returns
    -------
    Array of positions

    Examples
    --------
    >>> import linnet as ln
    >>> ln.nanargmax([1.0, ln.nan, 3.0]).compute()
    np.int64(2)
    """
    return _best(a, axis, keepdims, argmax, -np.inf)


@reduction(np.nanargmin, out_at=2)
def nanargmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Array:
    """The position of the smallest element that is not NaN; an error where there is none.

    Parameters
    ----------
    a : array_like
    axis : int, optional; None: over all elements
    out : array, optional; where the result goes
    keepdims : whether reduced axes stay, with length 1

    Returns
    -------
    Array of positions

    Examples
    --------
    >>> import linnet as ln
    >>> ln.nanargmin([ln.nan, 2.0, 1.0]).compute()
    np.int64(2)
    """
    return _best(a, axis, keepdims, argmin, np.inf)


def _best(a: Any, axis: Any, keepdims: Any, function: Any, other: float) -> Any:
    node = as_node(a)
    if node.dtype.kind in "fc":
        _all_missing(node, axis)
        a = _filled(a, other)
    return function(a, axis, keepdims=keepdims)


METHODS: dict[str, Any] = {}
__all__ = [
    "nanargmax",
    "nanargmin",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
]
