"""Reductions: sums, extremes, moments, and what is made of them.

Every reduction is a fold over tiles; folds of the same operand over the same axes share one pass
(see `graph`), so a mean and a variance read their data once.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from typing import cast as typed_as

import numpy as np

from linnet.arrays.elements.core import (
    NUMPY,
    ArrayBase,
    F,
    as_node,
    axes_of,
    direct,
    is_small,
    names_nothing,
    wrap,
    wrapped,
    wrapped_all,
)
from linnet.arrays.elements.elementwise import cast, chosen, placed, spread
from linnet.arrays.expression import chunking
from linnet.arrays.expression.argument_names import Names
from linnet.arrays.expression.builders import constant, folded, mapped
from linnet.arrays.expression.nodes import Node, Source
from linnet.arrays.expression.semirings import folded_product
from linnet.arrays.expression.traced import Traced
from linnet.arrays.lowering.evaluate import computed

if TYPE_CHECKING:
    from linnet.arrays.array import Array

_PLAIN = frozenset(["axis", "keepdims"])
"""Keywords that methods of NumPy's arrays understand as its functions do, and that are no arrays."""


def reduction(*functions: Any, out_at: int | None = None, small: Any = None) -> Callable[[F], F]:
    """Mark a reduction: small and empty arrays go to NumPy, `out=` is seen to here.

    `out_at` is the position of `out` among the arguments, None if it can only be a keyword; `small`
    computes small arrays (default: the first function of NumPy's).
    """

    def mark(function: F) -> F:
        straight = small or functions[0]
        method = None if small else getattr(np.ndarray, straight.__name__, None)
        names = Names(function, functions[0] if functions else straight)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            out = None
            try:
                if len(args) == 1 and method is not None and kwargs.keys() <= _PLAIN:
                    # The common case first: what stands below takes as long as NumPy for a few numbers.
                    node = getattr(args[0], "_node", None)
                    if type(node) is Source and is_small(node, chunking.LINEAR):
                        return wrapped(method(node.data, **kwargs))
                if kwargs:
                    args, kwargs = names.placed(args, kwargs)
                out = kwargs.pop("out", None)
                if out_at is not None and len(args) > out_at:
                    out = args[out_at]
                    args = (*args[:out_at], None, *args[out_at + 1 :])
                result = direct(straight, args, kwargs, chunking.LINEAR)
                if result is NotImplemented:
                    empty = bool(args) and isinstance(args[0], ArrayBase) and 0 in args[0].__node__.shape
                    result = _empty(straight, args, kwargs) if empty else function(*args, **kwargs)
                return result if out is None else into(result, out, function.__name__)
            except Traced as found:
                traced = found
            return traced.apply(call, args, kwargs if out is None else {**kwargs, "out": out})

        for each in functions:
            NUMPY[each] = call
        return typed_as("F", call)

    return mark


def into(result: Any, out: Any, name: str) -> Any:
    """A result under `out=`: of the same shape exactly."""
    out = out[0] if isinstance(out, tuple) else out
    if hasattr(out, "shape") and out.shape != result.shape:
        raise ValueError(f"{name}: the result has shape {result.shape}, and out= has {out.shape}")
    return placed(result, out, True, name)


def _empty(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """NumPy's own answer, or error, where there are no elements."""

    def plain(item: Any) -> Any:
        return computed([item.__node__])[0] if isinstance(item, ArrayBase) else item

    made = function(*map(plain, args), **{name: plain(value) for name, value in kwargs.items()})
    return wrapped_all(made)


def masked(node: Node, where: Any, other: Any) -> Node:
    """The node with another value where the mask does not hold."""
    if where is True or where is np._NoValue:
        return node
    mask = as_node(where)
    mask = mask if mask.dtype == bool else cast(mask, bool)
    if np.broadcast_shapes(mask.shape, node.shape) != node.shape:
        node = spread(node, np.broadcast_shapes(mask.shape, node.shape))
    return chosen(mask, node, constant(np.asarray(other).astype(node.dtype)), node.dtype)


def _is_given(value: Any) -> bool:
    return value is not np._NoValue and value is not None


def fold_ufunc(
    x: Any,
    ufunc: np.ufunc,
    kind: str,
    axis: Any,
    dtype: Any = None,
    keepdims: Any = False,
    initial: Any = np._NoValue,
    where: Any = True,
) -> Any:
    """`ufunc.reduce` for a ufunc that has a fold."""
    node = as_node(x)
    axes = () if names_nothing(axis, node.ndim) else axes_of(axis, node.ndim)
    result = np.dtype(ufunc.reduce(np.zeros((1,), node.dtype), dtype=dtype).dtype)
    inner = result if dtype is not None or ufunc in (np.add, np.multiply) else None
    if kind == "sum" and result == np.float16:
        inner = np.dtype(np.float32)
    if kind == "prod" and result.kind in "fc":
        kind = "product"
    # Where the mask does not hold nothing is added; a largest element may be compared with `initial` often.
    other = None if initial is None else ufunc.identity
    if other is None and _is_given(initial):
        other = initial
    hidden = where is not True and where is not np._NoValue
    if other is None and hidden:
        raise ValueError(without_identity(ufunc))
    if hidden:
        node = cast(node, result)
    node = masked(node, where, other)
    product = folded_product(node, kind, axes) if result == node.dtype and not is_set(keepdims) else None
    folding = product or folded(node, kind, axes, result, keepdims=is_set(keepdims), inner=inner)
    if not _is_given(initial):
        return wrap(folding)
    return wrap(mapped(ufunc.__name__, [folding, constant(initial, result)], result))


def without_identity(ufunc: np.ufunc) -> str:
    """What NumPy says of a mask where there may be nothing to begin with."""
    return (
        f"reduction operation '{ufunc.__name__}' does not have an identity, "
        "so to use a where mask one has to specify 'initial'"
    )


def is_set(keepdims: Any) -> bool:
    """Whether `keepdims` was given, and true."""
    return keepdims is not np._NoValue and bool(keepdims)


NOT_GIVEN = np._NoValue
"""NumPy's mark of an argument that was not given."""


@reduction(np.sum, out_at=3)
def sum(
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = NOT_GIVEN,
    where: Any = True,
) -> Array:
    """The sum over axes; tiles are summed pairwise.

    Parameters
    ----------
    x : array_like
    axis : int or tuple of int, optional; None: over all elements
    dtype : optional; the type to add in
    out : array, optional; where the result goes
    keepdims : whether reduced axes stay, with length 1
    initial : number, optional; a further term
    where : array_like of bool; which elements count

    Returns
    -------
    Array

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> sum(asarray([[1, 2], [3, 4]], chunks=1), axis=0).compute()
    array([4, 6])
    """
    return fold_ufunc(x, np.add, "sum", axis, dtype, keepdims, initial, where)


@reduction(np.prod, out_at=3)
def prod(
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = NOT_GIVEN,
    where: Any = True,
) -> Array:
    """The product over axes.

    Parameters
    ----------
    x : array_like
    axis : int or tuple of int, optional; None: over all elements
    dtype : optional; the type to multiply in
    out : array, optional; where the result goes
    keepdims : whether reduced axes stay, with length 1
    initial : number, optional; a further factor
    where : array_like of bool; which elements count

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.prod([[1, 2], [3, 4]], axis=1).compute()
    array([ 2, 12])
    """
    return fold_ufunc(x, np.multiply, "prod", axis, dtype, keepdims, initial, where)


@reduction(np.max, np.amax, out_at=2)
def max(
    x: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = NOT_GIVEN,
    where: Any = True,
) -> Array:
    """The largest element over axes; NaN if there is one.

    Parameters
    ----------
    x : array_like
    axis : int or tuple of int, optional; None: over all elements
    out : array, optional; where the result goes
    keepdims : whether reduced axes stay, with length 1
    initial : number, optional; the result is at least this
    where : array_like of bool; which elements count; needs `initial`

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.max([[1, 5], [3, 2]], axis=0).compute()
    array([3, 5])
    """
    return fold_ufunc(x, np.maximum, "max", axis, None, keepdims, initial, where)


@reduction(np.min, np.amin, out_at=2)
def min(
    x: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = NOT_GIVEN,
    where: Any = True,
) -> Array:
    """The smallest element over axes; NaN if there is one.

    Parameters
    ----------
    x : array_like
    axis : int or tuple of int, optional; None: over all elements
    out : array, optional; where the result goes
    keepdims : whether reduced axes stay, with length 1
    initial : number, optional; the result is at most this
    where : array_like of bool; which elements count; needs `initial`

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.min([[1, 5], [3, 2]], axis=0).compute()
    array([1, 2])
    """
    return fold_ufunc(x, np.minimum, "min", axis, None, keepdims, initial, where)


@reduction(np.all, out_at=2)
def all(x: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Array:
    """Whether all elements are true.

    Parameters
    ----------
    x : array_like
    axis : int or tuple of int, optional; None: over all elements
    out : array, optional; where the result goes
    keepdims : whether reduced axes stay, with length 1
    where : array_like of bool; which elements count

    Returns
    -------
    Array of booleans

    Examples
    --------
    >>> import linnet as ln
    >>> ln.all([[True, False], [True, True]], axis=1).compute()
    array([False,  True])
    """
    return fold_ufunc(x, np.logical_and, "all", axis, None, keepdims, NOT_GIVEN, where)


@reduction(np.any, out_at=2)
def any(x: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Array:
    """Whether some element is true.

    Parameters
    ----------
    x : array_like
    axis : int or tuple of int, optional; None: over all elements
    out : array, optional; where the result goes
    keepdims : whether reduced axes stay, with length 1
    where : array_like of bool; which elements count

    Returns
    -------
    Array of booleans

    Examples
    --------
    >>> import linnet as ln
    >>> ln.any([[False, False], [True, False]], axis=1).compute()
    array([False,  True])
    """
    return fold_ufunc(x, np.logical_or, "any", axis, None, keepdims, NOT_GIVEN, where)


@reduction(np.count_nonzero)
def count_nonzero(x: Any, axis: Any = None, *, keepdims: Any = False) -> Array:
    """How many elements are not zero.

    Parameters
    ----------
    x : array_like
    axis : int or tuple of int, optional; None: over all elements
    keepdims : whether reduced axes stay, with length 1

    Returns
    -------
    Array of integers

    Examples
    --------
    >>> import linnet as ln
    >>> ln.count_nonzero([[0, 1], [2, 3]], axis=0).compute()
    array([1, 2])
    """
    node = as_node(x)
    axes = () if names_nothing(axis, node.ndim) else axes_of(axis, node.ndim)
    return wrap(folded(node, "count", axes, np.intp, keepdims=is_set(keepdims)))


@reduction(np.ptp, out_at=2)
def ptp(x: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Array:
    """The largest element minus the smallest, both found in one pass.

    Parameters
    ----------
    x : array_like
    axis : int or tuple of int, optional; None: over all elements
    out : array, optional; where the result goes
    keepdims : whether reduced axes stay, with length 1

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.ptp([[1, 5], [3, 2]], axis=1).compute()
    array([4, 1])
    """
    high, low = max(x, axis, None, keepdims), min(x, axis, None, keepdims)
    return high - low


# ---- moments


def counted(node: Node, axes: tuple[int, ...], where: Any, keepdims: bool) -> Node:
    """How many elements each result is made of."""
    if where is True or where is NOT_GIVEN:
        return constant(math.prod(node.shape[axis] for axis in axes))
    mask = spread(as_node(where), node.shape, node.layout)
    return folded(mask, "count", axes, np.intp, keepdims=keepdims)


amax: Callable[..., Array] = max
amin: Callable[..., Array] = min

METHODS: dict[str, Any] = {
    "all": all,
    "any": any,
    "max": max,
    "min": min,
    "prod": prod,
    "sum": sum,
}
__all__ = [*METHODS, "amax", "amin", "count_nonzero", "ptp"]
