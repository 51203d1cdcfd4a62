"""Linear equations whose unknowns and right sides have several axes: matrices once the axes are flattened."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linnet.arrays.elements.core import as_node, axis_of, wrap
from linnet.arrays.elements.shapes import ravel, reshape, transpose
from linnet.arrays.linalg.linear_systems import inv, solve
from linnet.arrays.linalg.norms_and_products import mixed
from linnet.errors import LinAlgError


def _square(rows: int, columns: int, shape: tuple[int, ...]) -> None:
    if rows != columns:
        raise LinAlgError(
            f"Input arrays must satisfy the requirement prod(a.shape[ind:]) == prod(a.shape[:ind]); "
            f"the axes of {shape} make a matrix of {rows} × {columns}"
        )


@mixed(np.linalg.tensorinv)
def tensorinv(a: Any, ind: int = 2) -> Any:
    """The inverse of an array as a map from its last axes to its first `ind`.

    Parameters
    ----------
    a : array whose first `ind` axes have as many elements as the others
    ind : int

    Returns
    -------
    array

    Examples
    --------
    >>> a = np.eye(6).reshape(2, 3, 6)
    >>> tensorinv(a).shape
    (6, 2, 3)
    """
    array = wrap(as_node(a))
    if ind <= 0:
        raise ValueError(f"Invalid ind argument: it must be positive, got {ind}")
    first, last = array.shape[:ind], array.shape[ind:]
    _square(math.prod(first), math.prod(last), array.shape)
    return reshape(inv(reshape(array, (math.prod(first), -1))), (*last, *first))


@mixed(np.linalg.tensorsolve)
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    """The array that `tensordot(a, x, x.ndim)` makes `b` of; `axes` of `a` are moved to its end before.

    Parameters
    ----------
    a : array
    b : right-hand side
    axes : sequence of int, optional; axes of `a` that are moved to its end before

    Returns
    -------
    array

    Examples
    --------
    >>> a = np.eye(6).reshape(2, 3, 6)
    >>> tensorsolve(a, np.ones((2, 3)))
    array([1., 1., 1., 1., 1., 1.])
    """
    array, right = wrap(as_node(a)), wrap(as_node(b))
    if axes is not None:
        moved = [axis_of(each, array.ndim) for each in axes]
        array = transpose(array, [*(k for k in range(array.ndim) if k not in moved), *moved])
    unknown = array.shape[right.ndim :]
    _square(right.size, math.prod(unknown), array.shape)
    return reshape(solve(reshape(array, (right.size, -1)), ravel(right)), unknown)


__all__ = ["tensorinv", "tensorsolve"]
