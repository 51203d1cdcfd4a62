"""Positions of triangles and diagonals of a matrix, as arrays for indexing."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import NUMPY, as_node, wrap
from linnet.arrays.elements.creation import positions
from linnet.arrays.elements.filled import ones
from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import mapped

if TYPE_CHECKING:
    from linnet.arrays.array import Array
from linnet.arrays.functions.positions_in_grids import tri


def _of_mask(mask: Any) -> tuple[Any, ...]:
    return tuple(NUMPY[np.nonzero](mask))


def tril_indices(n: Any, k: int = 0, m: Any = None) -> tuple[Array, ...]:
    """Where the elements on and below the k-th diagonal are.

    Parameters
    ----------
    n : int; how many rows
    k : int; which diagonal; 0 is the main one, those above are positive
    m : int, optional; how many columns; None: as many

    Returns
    -------
    tuple of two Arrays

    Examples
    --------
    >>> import linnet as ln
    >>> [each.compute().tolist() for each in ln.tril_indices(2)]
    [[0, 1, 1], [0, 0, 1]]
    """
    return _of_mask(tri(n, m, k, bool))


def triu_indices(n: Any, k: int = 0, m: Any = None) -> tuple[Array, ...]:
    """Where the elements on and above the k-th diagonal are.

    Parameters
    ----------
    n : int; how many rows
    k : int; which diagonal; 0 is the main one, those above are positive
    m : int, optional; how many columns; None: as many

    Returns
    -------
    tuple of two Arrays

    Examples
    --------
    >>> import linnet as ln
    >>> [each.compute().tolist() for each in ln.triu_indices(2)]
    [[0, 0, 1], [0, 1, 1]]
    """
    below = tri(n, m, operator.index(k) - 1, bool)
    return _of_mask(wrap(mapped("logical_not", [below.__node__], bool)))


def _sides(arr: Any) -> tuple[int, int]:
    shape = as_node(arr).shape
    if len(shape) != 2:
        raise ValueError(f"input array must be 2-d; this array has shape {shape}")
    return shape[0], shape[1]


def tril_indices_from(arr: Any, k: int = 0) -> tuple[Array, ...]:
    """Where the elements of a matrix on and below the k-th diagonal are.

    Parameters
    ----------
    arr : array with two axes
    k : int; which diagonal; 0 is the main one, those above are positive

    Returns
    -------
    tuple of two Arrays

    Examples
    --------
    >>> import linnet as ln
    >>> [each.compute().tolist() for each in ln.tril_indices_from(ln.ones((2, 2)))]
    [[0, 1, 1], [0, 0, 1]]
    """
    rows, columns = _sides(arr)
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: Any, k: int = 0) -> tuple[Array, ...]:
    """Where the elements of a matrix on and above the k-th diagonal are.

    Parameters
    ----------
    arr : array with two axes
    k : int; which diagonal; 0 is the main one, those above are positive

    Returns
    -------
    tuple of two Arrays

    Examples
    --------
    >>> import linnet as ln
    >>> [each.compute().tolist() for each in ln.triu_indices_from(ln.ones((2, 2)))]
    [[0, 0, 1], [0, 1, 1]]
    """
    rows, columns = _sides(arr)
    return triu_indices(rows, k, columns)


def mask_indices(n: Any, mask_func: Callable[..., Any], k: Any = 0) -> tuple[Array, ...]:
    """Where a function such as `triu` leaves ones in a square array of ones.

    Parameters
    ----------
    n : int; length of the sides
    mask_func : function of an array and `k`
    k : what the function is given

    Returns
    -------
    tuple of two Arrays

    Examples
    --------
    >>> import linnet as ln
    >>> [each.compute().tolist() for each in ln.mask_indices(2, ln.triu)]
    [[0, 0, 1], [0, 1, 1]]
    """
    return _of_mask(mask_func(ones((n, n), int), k) != 0)


def diag_indices(n: Any, ndim: int = 2) -> tuple[Array, ...]:
    """Where the main diagonal of an array of equal sides is.

    Parameters
    ----------
    n : int; length of the sides
    ndim : int; how many axes

    Returns
    -------
    tuple of Arrays, one for each axis

    Examples
    --------
    >>> import linnet as ln
    >>> [each.compute().tolist() for each in ln.diag_indices(3)]
    [[0, 1, 2], [0, 1, 2]]
    """
    edges = chunking.automatic((operator.index(n),), 8).boundaries[0]
    return (wrap(positions(edges)),) * ndim


def diag_indices_from(arr: Any) -> tuple[Array, ...]:
    """Where the main diagonal of this array is.

    Parameters
    ----------
    arr : array_like with equal sides

    Returns
    -------
    tuple of Arrays, one for each axis

    Examples
    --------
    >>> import linnet as ln
    >>> len(ln.diag_indices_from(ln.ones((2, 2, 2))))
    3
    """
    shape = as_node(arr).shape
    if len(shape) < 2:
        raise ValueError(f"input array must be at least 2-d; this array has shape {shape}")
    if len(set(shape)) > 1:
        raise ValueError(f"All dimensions of input must be of equal length; this array has shape {shape}")
    return diag_indices(shape[0], len(shape))


METHODS: dict[str, Any] = {}
__all__ = [
    "diag_indices",
    "diag_indices_from",
    "mask_indices",
    "tril_indices",
    "tril_indices_from",
    "triu_indices",
    "triu_indices_from",
]
for _name in __all__:
    NUMPY.setdefault(getattr(np, _name), globals()[_name])
