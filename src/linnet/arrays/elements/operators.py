"""What stands beside an array in `x + other` and `x == other`: NumPy's rules for both.

Arrays, numbers and whatever NumPy makes an array of take part. Objects that bring ufuncs of their own
(labelled arrays, masked ones, columns of tables) do the work themselves; lazy arrays of other libraries
become ours, and stay lazy. Only `==` and `!=` answer for text, None and other things that no number equals.
"""

from __future__ import annotations

from datetime import date, timedelta
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.arrays.elements import elementwise
from linnet.arrays.elements.core import NUMBERS, SCALARS, ArrayBase, checked, from_lazy, is_future, wrap
from linnet.arrays.elements.outcomes import sample
from linnet.arrays.elements.python_times import TIMES
from linnet.arrays.expression.builders import filled

PRIORITY = 100
"""Ours, as NumPy counts: objects with a higher `__array_priority__` do the work themselves."""

_TAKEN = (ArrayBase, np.generic, *TIMES)


def taken(other: Any) -> Any:
    """The other operand: arrays and numbers as they are, what NumPy makes an array of as one.

    NotImplemented leaves the work to the other.

    >>> taken(range(3))
    array([0, 1, 2])
    """
    kind = type(other)
    if kind in NUMBERS or kind is np.ndarray or isinstance(other, _TAKEN):
        return other
    if is_future(other):
        return taken(other.result())
    if isinstance(other, np.ndarray):
        return other if kind.__array_priority__ <= 0 else NotImplemented
    if hasattr(kind, "__array_ufunc__") or getattr(kind, "__array_priority__", 0) > PRIORITY:
        lazy = from_lazy(other)
        return NotImplemented if lazy is None else lazy
    return np.asarray(other)


def compared(ufunc: np.ufunc, x: Any, other: Any) -> Any:
    """`x == other` or `x != other`: text, None and dates equal no number; None equals NaT."""
    differs = ufunc is np.not_equal
    if isinstance(other, np.ndarray) and other.dtype.kind in "OSUVT":
        numbers, is_number = _numbers_in(other, x.__node__.dtype)
        nothing = np.array([item is None for item in other.flat], bool).reshape(other.shape)
        if (
            x.__node__.dtype.kind in "mM" and nothing.any()
        ):  # NumPy makes None of NaT to compare it with objects
            missing = elementwise.call(np.not_equal if differs else np.equal, (np.isnat(x), True), {})
            return elementwise.where(nothing, missing, differs)
        if is_number.any():
            return elementwise.where(is_number, elementwise.call(ufunc, (x, numbers), {}), differs)
    else:
        try:
            return elementwise.call(ufunc, (x, other), {})
        except TypeError:
            if _comparable(x.__node__.dtype, other):
                raise
    shape = np.broadcast_shapes(x.__node__.shape, np.shape(other))
    return wrap(filled(shape, differs, bool, x.__node__.layout if shape == x.__node__.shape else None))


def _comparable(dtype: np.dtype[Any], other: Any) -> bool:
    if isinstance(other, TIMES):
        return dtype.kind == ("m" if isinstance(other, timedelta) else "M")
    try:
        np.equal(sample(dtype), other if type(other) in SCALARS else sample(other.dtype))
    except TypeError:
        return False
    return True


def _numbers_in(other: NDArray[Any], dtype: np.dtype[Any]) -> tuple[NDArray[Any], NDArray[np.bool]]:
    """The numbers among objects, 0 in place of others; and which are numbers.

    Fractions and other numbers that ours would have to be rounded for, and dates to be compared with
    dates, are refused as arrays of objects are.
    """
    if other.dtype.kind != "O":
        return np.zeros(other.shape, np.int8), np.zeros(other.shape, bool)
    items = list(other.flat)
    if dtype.kind in "mM":
        if any(isinstance(item, np.datetime64 | np.timedelta64 | date | timedelta) for item in items):
            checked(other)
        return np.zeros(other.shape, np.int8), np.zeros(other.shape, bool)
    is_number = [isinstance(item, Number | np.bool) for item in items]
    plain = [item if known else False for item, known in zip(items, is_number, strict=True)]
    if not all(isinstance(item, (*SCALARS, np.generic)) for item in plain):
        checked(other)
    return checked(np.array(plain).reshape(other.shape)), np.array(is_number, bool).reshape(other.shape)
