"""Business days: NumPy's functions of dates, tile by tile."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import ArrayBase, as_node, chunked, refuse_keywords, wrap
from linnet.arrays.functions.map_blocks import map_blocks

if TYPE_CHECKING:
    from linnet.arrays.array import Array

_WEEK = "1111100"


def _days(dates: Any) -> Any:
    """Dates as days."""
    return dates if isinstance(dates, ArrayBase) else wrap(as_node(np.asarray(dates, "M8[D]")))


def _calendar(function: Callable[..., Any], weekmask: Any, holidays: Any, busdaycal: Any) -> Any:
    """A function with the days that count."""
    if busdaycal is not None:
        return functools.partial(function, busdaycal=busdaycal)
    days = np.asarray([] if holidays is None else holidays, "M8[D]")
    return functools.partial(function, weekmask=weekmask, holidays=days)


@chunked(np.is_busday)
def is_busday(
    dates: Any, weekmask: Any = _WEEK, holidays: Any = None, busdaycal: Any = None, out: Any = None
) -> Array:
    """Which dates are business days.

    Parameters
    ----------
    dates : array_like of dates
    weekmask : which days of the week are business days
    holidays : dates that are none
    busdaycal : NumPy's object that holds both, optional
    out : array, optional; where the result goes

    Returns
    -------
    Array of booleans

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> is_busday(asarray(np.array(["2026-11-20", "2026-11-21"], "M8[D]"), chunks=1)).compute()
    array([ True, False])
    """
    refuse_keywords("is_busday", out=(out, None))
    return map_blocks(_calendar(np.is_busday, weekmask, holidays, busdaycal), _days(dates), dtype=bool)


@chunked(np.busday_count)
def busday_count(
    begindates: Any,
    enddates: Any,
    weekmask: Any = _WEEK,
    holidays: Any = (),
    busdaycal: Any = None,
    out: Any = None,
) -> Array:
    """How many business days there are from one date to another, the last one not counted.

    Parameters
    ----------
    begindates, enddates : array_like of dates; the end is not counted
    weekmask : which days of the week are business days
    holidays : dates that are none
    busdaycal : NumPy's object that holds both, optional
    out : array, optional; where the result goes

    Returns
    -------
    Array of integers

    Examples
    --------
    >>> import linnet as ln
    >>> int(ln.busday_count("2026-11-16", "2026-11-23"))
    5
    """
    refuse_keywords("busday_count", out=(out, None))
    count = _calendar(np.busday_count, weekmask, holidays, busdaycal)
    return map_blocks(count, _days(begindates), _days(enddates), dtype=np.int64)


@chunked(np.busday_offset)
def busday_offset(
    dates: Any,
    offsets: Any,
    roll: str = "raise",
    weekmask: Any = _WEEK,
    holidays: Any = None,
    busdaycal: Any = None,
    out: Any = None,
) -> Array:
    """Dates so many business days later; `roll` says what becomes of dates that are none.

    Parameters
    ----------
    dates : array_like of dates
    offsets : array_like of integers; how many business days later
    roll : "raise", "forward", "backward", …; what becomes of dates that are no business days
    weekmask : which days of the week are business days
    holidays : dates that are none
    busdaycal : NumPy's object that holds both, optional
    out : array, optional; where the result goes

    Returns
    -------
    Array of dates

    Examples
    --------
    >>> import linnet as ln
    >>> str(ln.busday_offset("2026-11-20", 1).compute())
    '2026-11-23'
    """
    refuse_keywords("busday_offset", out=(out, None))
    rolled: Any = functools.partial(np.busday_offset, roll=roll)  # pyright: ignore[reportCallIssue]
    later = _calendar(rolled, weekmask, holidays, busdaycal)
    counts = offsets if isinstance(offsets, ArrayBase) else wrap(as_node(offsets))
    return map_blocks(later, _days(dates), counts, dtype="M8[D]")


METHODS: dict[str, Any] = {}
__all__ = ["busday_count", "busday_offset", "is_busday"]
