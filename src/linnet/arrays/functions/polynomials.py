"""Polynomials by their coefficients, the highest power first: evaluated, combined, fitted to data.

`polyfit` is the one that meets long arrays on both sides: least squares on the powers of `x`.
"""

from __future__ import annotations

import operator
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.broadcast import atleast_1d
from linnet.arrays.elements.core import NUMPY, ArrayBase, as_node, chunked, wrap, wrapped_all
from linnet.arrays.elements.elementwise import apply
from linnet.arrays.elements.filled import zeros
from linnet.arrays.elements.insert_and_delete import trim_zeros
from linnet.arrays.elements.join_and_split import concatenate
from linnet.arrays.elements.reductions import sum as sums
from linnet.arrays.elements.shapes import reshape, transpose
from linnet.arrays.elements.whole_axes import gathered
from linnet.arrays.functions.calculus import convolve
from linnet.arrays.functions.positions_in_grids import vander
from linnet.arrays.functions.spaced_numbers import arange

if TYPE_CHECKING:
    from linnet.arrays.array import Array


@chunked(np.polyval)
def polyval(p: Any, x: Any) -> Array:
    """A polynomial with coefficients `p`, the highest first, at each element of `x`: Horner's rule, fused.

    Parameters
    ----------
    p : vector of coefficients, the highest first
    x : array_like; where

    Returns
    -------
    Array of the shape of `x`

    Examples
    --------
    >>> import linnet as ln
    >>> ln.polyval([1, 0, -1], [2, 3]).compute()
    array([3, 8])
    """
    coefficients = np.asarray(p)
    found = apply(np.multiply, x, np.zeros((), as_node(x).dtype)[()])
    for each in coefficients:
        found = apply(np.add, apply(np.multiply, found, x), each)
    return found


# ---- of coefficients


def _combined(ufunc: np.ufunc, a1: Any, a2: Any) -> Any:
    """Coefficients of the same powers added or subtracted: the shorter vector gets zeros in front."""
    one, other = (atleast_1d(wrap(as_node(each))) for each in (a1, a2))
    missing = len(one) - len(other)
    if missing < 0:
        one = concatenate([zeros(-missing, one.dtype), one])
    if missing > 0:
        other = concatenate([zeros(missing, other.dtype), other])
    return apply(ufunc, one, other)


@chunked(np.polyadd)
def polyadd(a1: Any, a2: Any) -> Array:
    """The sum of two polynomials.

    Parameters
    ----------
    a1, a2 : vectors of coefficients, the highest first

    Returns
    -------
    Array of coefficients

    Examples
    --------
    >>> polyadd([1, 2], [9, 5, 4]).compute()
    array([9, 6, 6])
    """
    return _combined(np.add, a1, a2)


@chunked(np.polysub)
def polysub(a1: Any, a2: Any) -> Array:
    """The difference of two polynomials.

    Parameters
    ----------
    a1, a2 : vectors of coefficients, the highest first

    Returns
    -------
    Array of coefficients

    Examples
    --------
    >>> import linnet as ln
    >>> ln.polysub([1, 2], [1]).compute()
    array([1, 1])
    """
    return _combined(np.subtract, a1, a2)


@chunked(np.polymul)
def polymul(a1: Any, a2: Any) -> Array:
    """The product of two polynomials: their coefficients convolved.

    As in NumPy's, zeros before the first coefficient are left out: this looks at the values.

    Parameters
    ----------
    a1, a2 : vectors of coefficients, the highest first

    Returns
    -------
    Array of coefficients

    Examples
    --------
    >>> import linnet as ln
    >>> ln.polymul([1, 1], [1, -1]).compute()
    array([ 1,  0, -1])
    """
    return convolve(*(_trimmed(each) for each in (a1, a2)))


def _trimmed(p: Any) -> Any:
    given = atleast_1d(wrap(as_node(p)))
    if given.ndim > 1:
        raise ValueError(f"Polynomial must be 1d only, got coefficients of shape {given.shape}.")
    found = trim_zeros(given, "f")
    return found if len(found) else zeros(1, found.dtype)


@chunked(np.polyder)
def polyder(p: Any, m: int = 1) -> Array:
    """The derivative of a polynomial, taken `m` times.

    Parameters
    ----------
    p : vector of coefficients, the highest first
    m : int; how often

    Returns
    -------
    Array of coefficients

    Examples
    --------
    >>> import linnet as ln
    >>> ln.polyder([1, 2, 3]).compute()
    array([2, 2])
    """
    times = operator.index(m)
    if times < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    found = wrap(as_node(p))
    lowered = _lowered(found)  # one ahead, as NumPy's: it is what refuses most matrices
    for _ in range(times):
        found, lowered = lowered, _lowered(lowered)
    return found


def _lowered(p: Any) -> Any:
    return apply(np.multiply, p[:-1], arange(max(len(p) - 1, 0), 0, -1))


@chunked(np.polyint)
def polyint(p: Any, m: int = 1, k: Any = None) -> Array:
    """The integral of a polynomial, taken `m` times; `k` has the constant of each time (default: zeros).

    Parameters
    ----------
    p : vector of coefficients, the highest first
    m : int; how often
    k : number or vector, optional; the constant of each time

    Returns
    -------
    Array of coefficients

    Examples
    --------
    >>> polyint([6.0, 2.0]).compute()
    array([3., 2., 0.])
    """
    times = operator.index(m)
    if times < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    constants = np.atleast_1d(np.zeros(times) if k is None else np.asarray(k))
    if len(constants) == 1 and times > 1:
        constants = constants * np.ones(times)
    if len(constants) < times:
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or >m.")
    found = wrap(as_node(p))
    for each in constants[:times]:
        found = concatenate([apply(np.true_divide, found, arange(len(found), 0, -1)), [each]])
    return found


# ---- in one place


def roots(p: Any, *, gather: bool = False) -> Array:
    """The roots of a polynomial: the eigenvalues of a matrix, computed in one place.

    Parameters
    ----------
    p : vector of coefficients, the highest first
    gather : whether an array in tiles may be put together in one place

    Returns
    -------
    Array of complex or real numbers

    Examples
    --------
    >>> roots([1.0, -3.0, 2.0]).compute()
    array([2., 1.])
    """
    return wrapped_all(gathered(np.roots, [as_node(p)], "roots", gather))


def poly(seq_of_zeros: Any, *, gather: bool = False) -> Array:
    """The polynomial with these roots, or the characteristic one of a matrix; computed in one place.

    Parameters
    ----------
    seq_of_zeros : vector of roots, or a square matrix
    gather : whether an array in tiles may be put together in one place

    Returns
    -------
    Array of coefficients, the highest first

    Examples
    --------
    >>> poly([2.0, 1.0]).compute()
    array([ 1., -3.,  2.])
    """
    return wrapped_all(gathered(np.poly, [as_node(seq_of_zeros)], "poly", gather))


def polydiv(u: Any, v: Any, *, gather: bool = False) -> tuple[Array, Array]:
    """The quotient and the remainder of two polynomials; each coefficient needs the one before it.

    Parameters
    ----------
    u, v : vectors of coefficients; the dividend and the divisor
    gather : whether an array in tiles may be put together in one place

    Returns
    -------
    tuple of two Arrays of coefficients

    Examples
    --------
    >>> [each.compute().tolist() for each in polydiv([3.0, 5.0, 2.0], [2.0, 1.0])]
    [[1.5, 1.75], [0.25]]
    """
    nodes = [as_node(atleast_1d(wrap(as_node(each)))) for each in (u, v)]
    return wrapped_all(gathered(np.polydiv, nodes, "polydiv", gather))


NUMPY.update({np.roots: roots, np.poly: poly, np.polydiv: polydiv})


# ---- of data


def _column(x: Any, name: str, wanted: int | None = None) -> Any:
    """One of the vectors of `polyfit`, in floats."""
    found = apply(np.add, x if isinstance(x, ArrayBase) else np.asarray(x), 0.0)
    if found.ndim != 1:
        raise TypeError(f"expected 1D vector for {name}, got shape {found.shape}")
    if wanted is not None and len(found) != wanted:
        raise TypeError(f"expected {name} and y to have same length, got {len(found)} and {wanted}")
    return found


@chunked(np.polyfit)
def polyfit(
    x: Any, y: Any, deg: int, rcond: Any = None, full: bool = False, w: Any = None, cov: Any = False
) -> Any:
    """The polynomial of a degree that fits data best, in the sense of least squares.

    Parameters
    ----------
    x, y : vectors; the points; `y` may have several columns
    deg : int; the degree
    rcond : float, optional; singular values smaller than this part of the largest count as zero
    full : whether to say how well it fits, too
    w : vector, optional; weights of the points
    cov : whether to give the covariance of the coefficients, too

    Returns
    -------
    Array of coefficients; with `full` or `cov` a tuple

    Examples
    --------
    >>> x = arange(6.0, chunks=2)
    >>> polyfit(x, 3 * x - 1, 1).compute().round(6)
    array([ 3., -1.])
    """
    order = operator.index(deg) + 1
    if order < 1:
        raise ValueError(f"expected deg >= 0, got {deg}")
    right = apply(np.add, y if isinstance(y, ArrayBase) else np.asarray(y), 0.0)
    if right.ndim not in (1, 2):
        raise TypeError(f"expected 1D or 2D array for y, got shape {right.shape}")
    points = _column(x, "x", right.shape[0])
    if not len(points):
        raise TypeError("expected non-empty vector for x")
    if rcond is None:
        rcond = len(points) * np.finfo(points.dtype).eps
    left = vander(points, order)
    if w is not None:
        weights = _column(w, "w", right.shape[0])
        left = apply(np.multiply, left, weights[:, None])
        right = apply(np.multiply, right, weights if right.ndim == 1 else weights[:, None])
    scale = apply(np.sqrt, sums(apply(np.multiply, left, left), axis=0)).compute()
    left = apply(np.divide, left, scale)
    found, residuals, rank, singular = np.linalg.lstsq(left, right, rcond=rcond)
    found = transpose(apply(np.divide, transpose(found), scale))
    if full:
        return found, residuals, rank, singular, rcond
    if int(rank) != order:
        warnings.warn("Polyfit may be poorly conditioned", np.exceptions.RankWarning, stacklevel=3)
    return (found, _covariance(left, scale, residuals, cov, right.ndim)) if cov else found


def _covariance(left: Any, scale: Any, residuals: Any, cov: Any, rank: int) -> Any:
    """How sure the coefficients are, for one column of data or for each of several."""
    rows, order = left.shape
    base = apply(np.divide, np.linalg.inv(transpose(left) @ left), np.outer(scale, scale))
    factor: Any = 1
    if cov != "unscaled":
        if rows <= order:
            raise ValueError("the number of data points must exceed order to scale the covariance matrix")
        factor = apply(np.divide, residuals, rows - order)
    return apply(np.multiply, base if rank == 1 else reshape(base, (order, order, 1)), factor)


METHODS: dict[str, Any] = {}
__all__ = [
    "poly",
    "polyadd",
    "polyder",
    "polydiv",
    "polyfit",
    "polyint",
    "polymul",
    "polysub",
    "polyval",
    "roots",
]
