"""Means, variances and standard deviations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import (
    as_node,
    axes_of,
    wrap,
)
from linnet.arrays.elements.elementwise import cast
from linnet.arrays.expression.builders import constant, folded, mapped
from linnet.arrays.expression.nodes import Node

if TYPE_CHECKING:
    from linnet.arrays.array import Array
from linnet.arrays.elements.reductions import NOT_GIVEN, counted, is_set, masked, reduction


@reduction(np.mean, out_at=3)
def mean(
    x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Array:
    """The mean over axes.

    Parameters
    ----------
    x : array_like
    axis : int or tuple of int, optional; None: over all elements
    dtype : optional; the type to add in; of integers float64
    out : array, optional; where the result goes
    keepdims : whether reduced axes stay, with length 1
    where : array_like of bool; which elements count

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.mean([[1, 2], [3, 4]], axis=0).compute()
    array([2., 3.])
    """
    node = as_node(x)
    axes = axes_of(axis, node.ndim)
    if dtype is not None and np.dtype(dtype).kind in "biu":
        from linnet.arrays.elements.integer_moments import integer_mean

        return wrap(integer_mean(node, axes, np.dtype(dtype), is_set(keepdims), where))
    result = np.dtype(np.mean(np.ones((1,), node.dtype), dtype=dtype).dtype)
    inner = np.dtype("f4") if result == np.float16 and dtype is None else result
    keep = is_set(keepdims)
    total = folded(
        masked(cast(node, inner) if where is not True else node, where, 0),
        "sum",
        axes,
        inner,
        keepdims=keep,
        inner=inner,
    )
    count = counted(node, axes, where, keep)
    made = mapped("divide", [total, cast(count, _counting(inner))], inner)
    return wrap(cast(made, result))


def less(count: Node, ddof: Any) -> Node:
    """A count without the degrees of freedom that are gone, and not below 0."""
    rest = mapped("subtract", [count, constant(ddof, count.dtype)], count.dtype)
    return mapped("maximum", [rest, constant(0, count.dtype)], count.dtype)


def _counting(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype to divide by a count in."""
    return np.dtype(np.int64) if dtype.kind == "m" else np.dtype(dtype.type(0).real.dtype)


@reduction(np.var, out_at=3)
def var(
    x: Any,
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
    """The variance over axes: squared distances from the mean, over count - `correction` (or `ddof`).

    Parameters
    ----------
    x : array_like
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
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.var([1.0, 2.0, 3.0], ddof=1).compute()
    np.float64(1.0)
    """
    return _spread_about_mean(x, axis, dtype, ddof, keepdims, where, mean, correction, False)


@reduction(np.std, out_at=3)
def std(
    x: Any,
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
    """The standard deviation over axes: the root of `var`.

    Parameters
    ----------
    x : array_like
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
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.std([1.0, 3.0]).compute()
    np.float64(1.0)
    """
    return _spread_about_mean(x, axis, dtype, ddof, keepdims, where, mean, correction, True)


def corrected(ddof: Any, correction: Any) -> Any:
    """What is taken off the count: NumPy's `ddof`, or the standard's `correction`."""
    if correction is NOT_GIVEN:
        return ddof
    if ddof != 0:
        raise ValueError("ddof and correction can't be provided simultaneously.")
    return correction


def _spread_about_mean(
    x: Any,
    axis: Any,
    dtype: Any,
    ddof: Any,
    keepdims: Any,
    where: Any,
    mean: Any,
    correction: Any,
    root: bool,
) -> Any:
    ddof = corrected(ddof, correction)
    node = as_node(x)
    axes = axes_of(axis, node.ndim)
    if dtype is not None and np.dtype(dtype).kind in "biu":
        from linnet.arrays.elements.integer_moments import integer_variance

        keep = is_set(keepdims)
        return wrap(integer_variance(node, axes, np.dtype(dtype), ddof, keep, where, mean, root))
    result = np.dtype(np.var(np.ones((1,), node.dtype), dtype=dtype).dtype)
    real_of_complex = node.dtype.kind == "c" and dtype is not None and np.dtype(dtype).kind != "c"
    if (where is True or where is NOT_GIVEN) and mean is NOT_GIVEN and not real_of_complex:
        inner = None if dtype is None else np.dtype(dtype)
        made = folded(
            node, "moments", axes, result, keepdims=is_set(keepdims), inner=inner, ddof=float(ddof), root=root
        )
        return wrap(made)
    return wrap(squared_distances(node, axes, result, dtype, ddof, is_set(keepdims), where, mean, root))


def squared_distances(
    node: Node,
    axes: tuple[int, ...],
    result: np.dtype[Any],
    dtype: Any,
    ddof: Any,
    keepdims: bool,
    where: Any,
    mean: Any,
    root: bool,
) -> Node:
    """A variance in two passes: where the mean is given, or elements are left out.

    A real dtype makes the mean of complex numbers real, as in NumPy; the distances from it stay complex.
    """
    inner = np.result_type(node.dtype if dtype is None else dtype, np.float32)
    inner = np.dtype(np.float64) if node.dtype.kind in "biu" and dtype is None else inner
    given, node = node, cast(node, inner)
    if mean is NOT_GIVEN:
        total = folded(masked(node, where, 0), "sum", axes, inner, keepdims=True, inner=inner)
        kept = cast(counted(node, axes, where, True), _counting(inner))
        centre: Node = mapped("divide", [total, kept], inner)
    else:
        centre = cast(as_node(mean), inner)
    real = np.zeros((), inner).real.dtype
    kind = np.result_type(given.dtype, inner) if given.dtype.kind == "c" else inner
    away = mapped("subtract", [cast(given, kind), centre], kind)
    if kind.kind == "c":
        product = mapped("multiply", [away, mapped("conjugate", [away], kind)], kind)
        squares = cast(mapped("real", [product], np.zeros((), kind).real.dtype), real)
    else:
        squares = mapped("square", [away], real)
    total = folded(masked(squares, where, 0), "sum", axes, real, keepdims=keepdims, inner=real)
    count = less(cast(counted(node, axes, where, keepdims), real), ddof)
    made = mapped("divide", [total, count], real)
    return cast(mapped("sqrt", [made], real) if root else made, result)


METHODS: dict[str, Any] = {"mean": mean, "std": std, "var": var}
__all__ = ["mean", "std", "var"]
