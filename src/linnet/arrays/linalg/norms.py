"""Norms of vectors and matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from linnet.arrays.elements.core import as_node, axis_of, recut_as, wrap
from linnet.arrays.expression.builders import permuted
from linnet.arrays.linalg.eigen_and_singular import (
    svdvals,
)
from linnet.arrays.linalg.matrices import (
    evaluated,
    operand,
)
from linnet.arrays.linalg.norms_and_products import in_range, mixed, range_of
from linnet.session import init


@mixed(np.linalg.vector_norm, small=in_range(np.linalg.vector_norm))
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """The norm of vectors along an axis (None: of all elements).

    Parameters
    ----------
    x : array_like
    axis : int or tuple of int, optional; None: all elements
    keepdims : whether reduced axes stay, with length 1
    ord : number; which norm

    Returns
    -------
    array

    Examples
    --------
    >>> import linnet as ln
    >>> float(ln.linalg.vector_norm([3.0, 4.0]))
    5.0
    """
    array = _as_floats(wrap(as_node(x)))
    size = abs(array)
    axes = tuple(range(array.ndim)) if axis is None else axis
    if ord == np.inf:
        return _largest(size, axes, keepdims)
    if ord == -np.inf:
        return size.min(axis=axes, keepdims=keepdims)
    if ord == 0:
        return (size != 0).astype(size.dtype).sum(axis=axes, keepdims=keepdims)
    if ord == 1:
        return size.sum(axis=axes, keepdims=keepdims)
    return _scaled_norm(size, axes, keepdims, ord)


def _as_floats(array: Any) -> Any:
    """Integers as floats: the size of the least of them is no integer of its dtype."""
    return array if array.dtype.kind in "fc" else array.astype(np.float64)


def _largest(sizes: Any, axes: Any, keepdims: bool = False) -> Any:
    """The largest of numbers that are not negative; 0, if there are none."""
    initial = {"initial": 0} if 0 in sizes.shape else {}
    return sizes.max(axis=axes, keepdims=keepdims, **initial)


def _scaled_norm(size: Any, axes: Any, keepdims: bool, ord: Any) -> Any:
    """A norm by powers of the elements; where these would leave the range of floats they are scaled first."""
    largest = _largest(size, axes, True)
    low, high = range_of(size.dtype)
    extreme = (largest > high) | ((largest < low) & (largest > 0))
    scale = np.where(extreme & np.isfinite(largest), largest, largest.dtype.type(1))
    powers = ((size / scale) ** ord).sum(axis=axes, keepdims=True)
    total = (np.sqrt(powers) if ord == 2 else powers ** (1.0 / ord)) * scale
    if keepdims:
        return total
    drop = {axis_of(a, size.ndim) for a in (axes if isinstance(axes, tuple) else (axes,))}
    return wrap(permuted(total.__node__, tuple(a for a in range(size.ndim) if a not in drop)))


@mixed(np.linalg.matrix_norm, small=in_range(np.linalg.matrix_norm))
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """The norm of matrices in the last two axes.

    Parameters
    ----------
    x : array_like
    keepdims : whether the two axes stay, with length 1
    ord : "fro", "nuc", 1, 2, -1, -2, inf or -inf

    Returns
    -------
    array

    Examples
    --------
    >>> import linnet as ln
    >>> float(ln.linalg.matrix_norm([[3.0, 0.0], [0.0, 4.0]]))
    5.0
    """
    array = wrap(as_node(x))
    if array.ndim < 2:
        raise ValueError(f"matrix_norm takes matrices; got shape {array.shape}")
    return _matrix_norm(array, ord, (array.ndim - 2, array.ndim - 1), keepdims)


def _matrix_norm(array: Any, ord: Any, axes: tuple[int, int], keepdims: bool) -> Any:
    if ord in ("fro", None):
        return vector_norm(array, axis=axes, keepdims=keepdims)
    if ord == "max":
        return vector_norm(array, axis=axes, keepdims=keepdims, ord=np.inf)
    if ord in (1, -1, np.inf, -np.inf):
        rows, columns = axes
        summed, kept = (rows, columns) if ord in (1, -1) else (columns, rows)
        total = abs(_as_floats(array)).sum(axis=summed, keepdims=True)
        made = _largest(total, kept, True) if ord > 0 else total.min(axis=kept, keepdims=True)
    elif ord in (2, -2, "nuc"):
        others = tuple(a for a in range(array.ndim) if a not in axes)
        values = svdvals(wrap(permuted(array.__node__, (*others, *axes))))
        if ord == 2:
            small = _largest(values, -1)
        else:
            small = values.sum(axis=-1) if ord == "nuc" else values.min(axis=-1)
        if not keepdims:
            return small
        order = [-1] * array.ndim
        for place, axis in enumerate(others):
            order[axis] = place
        return wrap(permuted(small.__node__, tuple(order)))
    else:
        raise ValueError(
            f"norm of order {ord!r} of matrices; use 1, -1, 2, -2, inf, -inf, 'fro', 'nuc' or 'max'"
        )
    kept_axes = tuple(a for a in range(array.ndim) if a not in axes)
    return made if keepdims else wrap(permuted(made.__node__, kept_axes))


def _norm_at_once(x: Any, *args: Any, engine: Any = None, events: Any = None, **options: Any) -> Any:
    """The norm of NumPy's arrays."""
    if engine is not None:
        with init(engine):
            return _norm_at_once(x, *args, events=events, **options)
    return evaluated(norm(operand(x), *args, **options), events)


@mixed(np.linalg.norm, _norm_at_once, small=in_range(np.linalg.norm))
def norm(
    x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, *, tile: int | None = None
) -> Any:
    """NumPy's norm: of vectors along one axis, of matrices along two, of all elements.

    Parameters
    ----------
    x : array_like
    ord : number or word, optional; which norm, as for NumPy's function
    axis : int or two int, optional
    keepdims : whether reduced axes stay, with length 1
    tile : int, optional; length of the tiles to compute with; by default it is chosen

    Returns
    -------
    array

    Examples
    --------
    >>> import linnet as ln
    >>> float(ln.linalg.norm([3.0, 4.0]))
    5.0
    """
    array = wrap(recut_as(as_node(x), tile))
    if axis is None and ord is None:
        return vector_norm(array, keepdims=keepdims)
    if axis is None:
        if array.ndim not in (1, 2):
            raise ValueError(f"norm of order {ord!r} of an array of shape {array.shape}: give axis=")
        axis = tuple(range(array.ndim))
    axes = tuple(axis_of(a, array.ndim) for a in (axis if isinstance(axis, tuple) else (axis,)))
    if len(axes) == 1:
        if isinstance(ord, str):
            raise ValueError(f"invalid norm order {ord!r} for vectors")
        return vector_norm(array, axis=axes[0], keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2 or axes[0] == axes[1]:
        raise ValueError(f"axis={axis}: norms are of vectors (one axis) or matrices (two different axes)")
    return _matrix_norm(array, ord, (axes[0], axes[1]), keepdims)
