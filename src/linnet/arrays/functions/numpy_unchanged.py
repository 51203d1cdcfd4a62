"""Functions of NumPy's that take no arrays, or look at one from outside, under their names here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from linnet.arrays.functions.gufuncs import vectorize

SAME = (
    "base_repr",
    "binary_repr",
    "datetime_data",
    "format_float_positional",
    "format_float_scientific",
    "get_printoptions",
    "isscalar",
    "issubdtype",
    "iterable",
    "mintypecode",
    "printoptions",
    "set_printoptions",
    "typename",
)
"""Names of functions that are NumPy's own."""

globals().update({name: getattr(np, name) for name in SAME})


def isfortran(a: Any) -> bool:
    """Whether an array lies in memory by columns and not by rows: one in tiles does neither.

    Parameters
    ----------
    a : array_like

    Returns
    -------
    bool

    Examples
    --------
    >>> import linnet as ln
    >>> ln.isfortran(ln.ones((2, 3), chunks=1))
    False
    """
    return bool(np.isfortran(a)) if isinstance(a, np.ndarray) else False


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int) -> Any:
    """A Python function of numbers as a function of arrays, tile by tile; results are numbers, not objects.

    Parameters
    ----------
    func : callable
        A function of numbers.
    nin, nout : int
        How many numbers it takes, and how many it returns.

    Returns
    -------
    callable
        A function of arrays.

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> frompyfunc(lambda a, b: divmod(a, b), 2, 2)(asarray([5, 9], chunks=1), 4)[1].compute()
    array([1, 1])
    """
    if nout == 1:
        return vectorize(func)
    sides = (",".join(["()"] * count) for count in (nin, nout))
    return vectorize(func, signature="->".join(sides))


METHODS: dict[str, Any] = {}
__all__ = [*SAME, "frompyfunc", "isfortran"]  # pyright: ignore[reportUnsupportedDunderAll]
