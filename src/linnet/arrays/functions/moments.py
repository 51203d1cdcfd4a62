"""Moments about the mean, and what is made of them: how lopsided data are, how heavy their tails.

Sums are taken tile by tile; the few numbers that come of them are put together by functions on tiles, in
the formulas of `scipy.stats`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import ArrayBase, as_node, axis_of, wrap
from linnet.arrays.elements.elementwise import apply
from linnet.arrays.elements.means_and_variances import mean
from linnet.arrays.elements.shapes import ravel
from linnet.arrays.functions.gufuncs import apply_gufunc
from linnet.errors import InputError
from linnet.kernels.arrays.user_functions import Wrapper

if TYPE_CHECKING:
    from linnet.arrays.array import Array


def sample(a: Any, axis: Any, nan_policy: str = "propagate") -> tuple[Any, int]:
    """Data in floats, and the axis that runs over them; None: over all of them."""
    if nan_policy != "propagate":
        raise InputError(f'nan_policy={nan_policy!r} is not known here; NaN is passed on ("propagate")')
    found = a if isinstance(a, ArrayBase) else wrap(as_node(a))
    if as_node(found).dtype.kind not in "fc":
        found = wrap(as_node(found)).astype(np.float64)
    if axis is None:
        return ravel(found), 0
    return found, axis_of(axis, as_node(found).ndim)


def central(x: Any, axis: int, *orders: int) -> list[Any]:
    """The mean, and means of powers of what is left without it."""
    middle = mean(x, axis, keepdims=True)
    away = apply(np.subtract, x, middle)
    square = apply(np.multiply, away, away)
    powers = {2: square, 3: apply(np.multiply, square, away), 4: apply(np.multiply, square, square)}
    found = [mean(powers[k] if k in powers else apply(np.power, away, k), axis) for k in orders]
    return [mean(x, axis), *found]


def settled(function: Callable[..., Any], dtype: Any, *numbers: Any, results: int = 1) -> Any:
    """A function on the few numbers that data came down to, element by element; in silence."""
    signature = ",".join(["()"] * len(numbers)) + "->" + ",".join(["()"] * results)
    return apply_gufunc(Silent(function), signature, *numbers, output_dtypes=(np.dtype(dtype),) * results)


class Silent(Wrapper):
    """A function without warnings of NaN and of infinities, which it answers with these."""

    def __call__(self, *numbers: Any) -> Any:
        with np.errstate(all="ignore"):
            return self.function(*numbers)


def moment(a: Any, order: int = 1, axis: Any = 0, nan_policy: str = "propagate") -> Array:
    """The mean of a power of what data are away from their mean.

    Parameters
    ----------
    a : array_like
    order : int; the power
    axis : int or None; along which the observations are
    nan_policy : "propagate", "omit" or "raise"

    Returns
    -------
    Array

    Examples
    --------
    >>> moment([1.0, 2.0, 3.0, 6.0], 2).compute()
    np.float64(3.5)
    """
    x, along = sample(a, axis, nan_policy)
    power = operator.index(order)
    if power < 0:
        raise ValueError(f"order={order}: a moment is of order 0 or more")
    return central(x, along, power)[1]


def skew(a: Any, axis: Any = 0, bias: bool = True, nan_policy: str = "propagate") -> Array:
    """How lopsided data are: the third moment by that of the deviation; 0 for data that lie evenly.

    `bias=False` corrects for the length of the sample. NaN where all data are equal.

    Parameters
    ----------
    a : array_like
    axis : int or None; along which the observations are
    bias : whether not to correct for the size of the sample
    nan_policy : "propagate", "omit" or "raise"

    Returns
    -------
    Array

    Examples
    --------
    >>> skew([1.0, 2.0, 3.0, 6.0]).compute().round(6)
    np.float64(0.687243)
    """
    x, along = sample(a, axis, nan_policy)
    count = x.shape[along]
    formula = _skew if bias or count < 3 else _unbiased_skew
    return settled(formula, x.dtype, *central(x, along, 2, 3), float(count))


def _equal(middle: Any, m2: Any) -> Any:
    """Whether data are equal, as far as their digits tell."""
    return m2 <= (np.finfo(m2.dtype).resolution * middle) ** 2


def _skew(middle: Any, m2: Any, m3: Any, _: Any) -> Any:
    return np.where(_equal(middle, m2), np.nan, m3 / m2**1.5)


def _unbiased_skew(middle: Any, m2: Any, m3: Any, n: Any) -> Any:
    return _skew(middle, m2, m3, n) * np.sqrt((n - 1.0) * n) / (n - 2.0)


def kurtosis(
    a: Any, axis: Any = 0, fisher: bool = True, bias: bool = True, nan_policy: str = "propagate"
) -> Array:
    """How heavy the tails of data are: the fourth moment by the square of the second.

    3 is taken away, so that normal data have 0, unless `fisher=False`. `bias=False` corrects for the
    length of the sample. NaN where all data are equal.

    Parameters
    ----------
    a : array_like
    axis : int or None; along which the observations are
    fisher : whether 3 is subtracted, so that normal data have 0
    bias : whether not to correct for the size of the sample
    nan_policy : "propagate", "omit" or "raise"

    Returns
    -------
    Array

    Examples
    --------
    >>> kurtosis([1.0, 2.0, 3.0, 6.0]).compute().round(6)
    np.float64(-1.0)
    """
    x, along = sample(a, axis, nan_policy)
    count = x.shape[along]
    formula = _kurtosis if bias or count < 4 else _unbiased_kurtosis
    found = settled(formula, x.dtype, *central(x, along, 2, 4), float(count))
    return apply(np.subtract, found, 3.0) if fisher else found


def _kurtosis(middle: Any, m2: Any, m4: Any, _: Any) -> Any:
    return np.where(_equal(middle, m2), np.nan, m4 / m2**2)


def _unbiased_kurtosis(middle: Any, m2: Any, m4: Any, n: Any) -> Any:
    corrected = ((n**2 - 1.0) * _kurtosis(middle, m2, m4, n) - 3 * (n - 1) ** 2) / ((n - 2) * (n - 3))
    return corrected + 3.0
