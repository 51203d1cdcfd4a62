"""Python's own dates, times and spans beside arrays of datetime64 and timedelta64.

NumPy compares such arrays with them one object at a time; in tiles they are brought to NumPy's types first,
with the same answers. It does not calculate with them, and neither do we.
"""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np

from linnet.arrays.elements.core import ArrayBase

TIMES = (datetime.date, datetime.timedelta)
"""What Python's times are; a datetime is a date."""

_COMPARISONS = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)


def compared(ufunc: np.ufunc, items: tuple[Any, ...]) -> tuple[Any, ...]:
    """The operands of a comparison, Python's times among them as NumPy's; others as they are.

    A date never equals a moment, as in Python; which of them is earlier is not answered.

    >>> compared(np.less, (np.array(["2020-01-01"], "M8[D]"), datetime.date(2020, 1, 2)))[1]
    np.datetime64('2020-01-02')
    """
    if ufunc not in _COMPARISONS:
        return items
    times = [_time(item) for item in items]
    kinds = [_dtype(item) for item in items]
    if all(time is None for time in times) or not any(kind is not None for kind in kinds):
        return items
    dtype = next(kind for kind in kinds if kind is not None)
    return tuple(
        item if time is None else _as_numpy(ufunc, time, dtype)
        for item, time in zip(items, times, strict=True)
    )


def _time(item: Any) -> Any:
    """One of Python's times, also in an array of its own; None if it is something else."""
    if isinstance(item, np.ndarray) and item.dtype.kind == "O" and not item.ndim:
        item = item[()]
    return item if isinstance(item, TIMES) else None


def _dtype(item: Any) -> np.dtype[Any] | None:
    dtype = item.__node__.dtype if isinstance(item, ArrayBase) else getattr(item, "dtype", None)
    return dtype if isinstance(dtype, np.dtype) and dtype.kind in "mM" else None


def _as_numpy(ufunc: np.ufunc, time: Any, dtype: np.dtype[Any]) -> Any:
    own = type(np.zeros((), dtype).item())
    if type(time) is own and getattr(time, "tzinfo", None) is None:
        return np.timedelta64(time) if isinstance(time, datetime.timedelta) else np.datetime64(time)
    if ufunc in (np.equal, np.not_equal):
        return np.zeros((), dtype).dtype.type("NaT")  # equals nothing
    raise TypeError(
        f"elements of {dtype} are to Python of type {own.__name__}, and have no order with one of type "
        f"{type(time).__name__}; give a numpy.datetime64 or numpy.timedelta64"
    )
