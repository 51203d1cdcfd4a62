"""Weighted means; covariances and correlations: products of centred variables, computed in tiles."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from linnet.arrays.elements import means_and_variances, reductions
from linnet.arrays.elements.computed_indices import known
from linnet.arrays.elements.core import NUMPY, as_node, axes_of, axis_of, chunked, wrap
from linnet.arrays.elements.elementwise import apply, cast, spread
from linnet.arrays.elements.reductions import NOT_GIVEN, is_set
from linnet.arrays.expression.builders import concatenated, constant, filled, folded, mapped, permuted
from linnet.arrays.expression.nodes import Node
from linnet.arrays.expression.traced import traceable
from linnet.arrays.lowering.evaluate import computed

if TYPE_CHECKING:
    from linnet.arrays.array import Array


@overload
def average(
    a: Any, axis: Any = ..., weights: Any = ..., *, returned: Literal[True], keepdims: Any = ...
) -> tuple[Array, Array]: ...
@overload
def average(
    a: Any, axis: Any = ..., weights: Any = ..., returned: Literal[False] = ..., *, keepdims: Any = ...
) -> Array: ...
@traceable
def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = NOT_GIVEN
) -> Any:
    """The weighted mean over axes; with `returned` also the sum of the weights.

    Parameters
    ----------
    a : array_like
    axis : int or tuple of int, optional; None: over all elements
    weights : array_like, optional; how much each element counts
    returned : whether to give the sum of the weights, too
    keepdims : whether reduced axes stay, with length 1

    Returns
    -------
    Array; with `returned` a tuple of two

    Examples
    --------
    >>> import linnet as ln
    >>> ln.average([1.0, 3.0], weights=[3, 1]).compute()
    np.float64(1.5)
    """
    node = as_node(a)
    keep = is_set(keepdims)
    if weights is None:
        found = means_and_variances.mean(a, axis, keepdims=keep)
        count = math.prod(node.shape) / math.prod(found.shape) if math.prod(found.shape) else 0
        scale = wrap(spread(constant(count, found.dtype), found.shape))
        return (found, scale) if returned else found
    given = as_node(weights)
    if 0 in node.shape and given.shape != node.shape and not known(wrap(given)).sum():
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    weight = weights_like(node, given, axis)
    kinds = [node.dtype, weight.dtype, *([np.dtype("f8")] if node.dtype.kind in "biu" else [])]
    dtype = np.result_type(*kinds)
    axes = axes_of(axis, node.ndim)
    scale = folded(weight, "sum", axes, dtype, keepdims=keep, inner=dtype)
    (values,) = computed([scale])
    if np.any(values == 0):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    product = mapped("multiply", [cast(node, dtype), cast(weight, dtype)], dtype)
    total = folded(product, "sum", axes, dtype, keepdims=keep, inner=dtype)
    found = wrap(mapped("divide", [total, scale], dtype))
    return (found, wrap(scale)) if returned else found


NUMPY[np.average] = average


def weights_like(node: Node, weight: Node, axis: Any) -> Node:
    """Weights in the shape of what they weigh."""
    if weight.shape == node.shape:
        return weight
    if axis is None:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    named = [axis_of(each, node.ndim) for each in (axis if isinstance(axis, tuple) else (axis,))]
    if weight.shape != tuple(node.shape[each] for each in named):
        raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
    turned = permuted(weight, tuple(named.index(a) if a in named else -1 for a in range(node.ndim)))
    return spread(turned, node.shape, node.layout)


@chunked(np.cov)
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Array:
    """The covariance matrix of variables: rows, or columns with `rowvar=False`.

    Parameters
    ----------
    m : array_like; variables in rows
    y : array_like, optional; further variables
    rowvar : whether variables are rows, and not columns
    bias : whether to divide by the count, and not by one less
    ddof : int, optional; what is subtracted from the count
    fweights, aweights : vectors, optional; how often each observation was made, and how much it counts
    dtype : optional; the type to compute in

    Returns
    -------
    Array with two axes

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> cov(asarray([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]], chunks=2)).compute()
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    if ddof is not None and ddof != int(ddof):
        raise ValueError("ddof must be integer")
    x = _variables(m, y, rowvar, dtype)
    weights, total, extra = _weights(fweights, aweights, x.shape[1])
    if ddof is None:
        ddof = 0 if bias else 1
    norm = total - ddof * (extra if aweights is not None else 1)
    if norm <= 0:
        warnings.warn("Degrees of freedom <= 0 for slice", RuntimeWarning, stacklevel=2)
        norm = 0.0
    if weights is None:
        centre = means_and_variances.mean(x, 1, keepdims=True)
    else:
        centre = reductions.sum(apply(np.multiply, x, weights), 1, keepdims=True) / np.sum(weights)
    away = apply(np.subtract, x, centre)
    other = away if weights is None else apply(np.multiply, away, weights)
    product = apply(np.conjugate, other).T if x.dtype.kind == "c" else other.T
    found = (away @ product) * np.true_divide(1, norm)
    if not found.shape[0]:  # NumPy forgets the dtype of no variables
        return wrap(filled((0, 0), 0, np.float64))
    ones = tuple(a for a in range(2) if found.shape[a] == 1)
    return wrap(permuted(found.__node__, tuple(a for a in range(2) if a not in ones)))


def _variables(m: Any, y: Any, rowvar: bool, dtype: Any) -> Any:
    """Variables in rows, in the dtype to compute in."""
    nodes = [as_node(each) for each in (m, y) if each is not None]
    if nodes[0].ndim > 2:
        raise ValueError("m has more than 2 dimensions")
    if nodes[-1].ndim > 2:
        raise ValueError("y has more than 2 dimensions")
    kind = np.dtype(np.result_type(*(node.dtype for node in nodes), np.float64) if dtype is None else dtype)
    found = []
    for which, node in enumerate(nodes):
        if node.ndim < 2:
            node = permuted(node, (-1,) * (2 - node.ndim) + tuple(range(node.ndim)))
            turn = False
        else:
            turn = not rowvar and (node.shape[0] != 1 or which == 0)
        found.append(cast(permuted(node, (1, 0)) if turn else node, kind))
    return wrap(concatenated(found, 0, kind))


def _weights(fweights: Any, aweights: Any, count: int) -> tuple[Any, float, float]:
    """The weight of each observation, their sum, and the correction for `aweights`."""
    weights: Any = None
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is None:
            continue
        values = np.asarray(given, float)
        if name == "fweights" and not np.all(values == np.around(values)):
            raise TypeError("fweights must be integer")
        if values.ndim > 1:
            raise RuntimeError(f"cannot handle multidimensional {name}")
        if values.shape[0] != count:
            raise RuntimeError(f"incompatible numbers of samples and {name}")
        if np.any(values < 0):
            raise ValueError(f"{name} cannot be negative")
        weights = values if weights is None else weights * values
    if weights is None:
        return None, float(count), 1.0
    total = float(np.sum(weights))
    extra = float(np.sum(weights * np.asarray(aweights, float))) / total if aweights is not None else 1.0
    return weights, total, extra


@chunked(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Array:
    """The correlation matrix of variables.

    Parameters
    ----------
    x : array_like; variables in rows
    y : array_like, optional; further variables
    rowvar : whether variables are rows, and not columns
    dtype : optional; the type to compute in

    Returns
    -------
    Array with two axes

    Examples
    --------
    >>> import linnet as ln
    >>> ln.corrcoef([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]).compute().round(6)
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    found = cov(x, y, rowvar, dtype=dtype)
    if not found.ndim:
        return found / found
    spread = apply(np.sqrt, np.diagonal(found) if found.dtype.kind != "c" else np.real(np.diagonal(found)))
    found = found / spread[:, None] / spread[None, :]
    if found.dtype.kind != "c":
        return np.clip(found, -1, 1)
    return np.clip(np.real(found), -1, 1) + 1j * np.clip(np.imag(found), -1, 1)


METHODS: dict[str, Any] = {}
__all__ = ["average", "corrcoef", "cov"]
