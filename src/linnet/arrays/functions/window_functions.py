"""Windows of signal processing (von Hann's, Hamming's and others), from positions, tile by tile.

The formulas are NumPy's own, step by step, so that the last bits agree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.elementwise import apply, where
from linnet.arrays.elements.filled import ones
from linnet.arrays.functions.numeric import i0
from linnet.arrays.functions.spaced_numbers import arange

if TYPE_CHECKING:
    from linnet.arrays.array import Array


def _centred(M: Any, chunks: Any) -> Any:
    """Odd or even numbers around 0, as many as the window is long: 1 - M, 3 - M, …, M - 1."""
    return arange(1.0 - M, float(M), 2, chunks=chunks)


def _waves(M: Any, chunks: Any, mean: float, *heights: float) -> Any:
    """A mean, and cosines of one, two … periods around it."""
    if M == 1:
        return ones(1, chunks=chunks)
    n = _centred(M, chunks)
    found: Any = mean
    for periods, height in enumerate(heights, 1):
        angle = apply(np.divide, apply(np.multiply, periods * np.pi, n), M - 1.0)
        found = apply(np.add, found, apply(np.multiply, height, apply(np.cos, angle)))
    return found


def hanning(M: Any, *, chunks: Any = "auto") -> Array:
    """Von Hann's window of M points: one period of a raised cosine.

    Parameters
    ----------
    M : int; how many points
    chunks : length of the tiles

    Returns
    -------
    Array

    Examples
    --------
    >>> hanning(5).compute().round(3)
    array([0. , 0.5, 1. , 0.5, 0. ])
    """
    return _waves(M, chunks, 0.5, 0.5)


def hamming(M: Any, *, chunks: Any = "auto") -> Array:
    """Hamming's window of M points: von Hann's on a small step.

    Parameters
    ----------
    M : int; how many points
    chunks : length of the tiles

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.hamming(5).compute()
    array([0.08, 0.54, 1.  , 0.54, 0.08])
    """
    return _waves(M, chunks, 0.54, 0.46)


def blackman(M: Any, *, chunks: Any = "auto") -> Array:
    """Blackman's window of M points: two cosines, for less leakage than one.

    Parameters
    ----------
    M : int; how many points
    chunks : length of the tiles

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.blackman(5).compute().round(2) + 0.0
    array([0.  , 0.34, 1.  , 0.34, 0.  ])
    """
    return _waves(M, chunks, 0.42, 0.5, 0.08)


def bartlett(M: Any, *, chunks: Any = "auto") -> Array:
    """Bartlett's window of M points: a triangle that ends in zeros.

    Parameters
    ----------
    M : int; how many points
    chunks : length of the tiles

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.bartlett(5).compute()
    array([0. , 0.5, 1. , 0.5, 0. ])
    """
    if M == 1:
        return ones(1, chunks=chunks)
    n = _centred(M, chunks)
    slope = apply(np.divide, n, M - 1.0)
    return where(apply(np.less_equal, n, 0), apply(np.add, 1, slope), apply(np.subtract, 1, slope))


def kaiser(M: Any, beta: Any, *, chunks: Any = "auto") -> Array:
    """Kaiser's window of M points: Bessel functions, the narrower the larger `beta`.

    Parameters
    ----------
    M : int; how many points
    beta : float; the larger the narrower
    chunks : length of the tiles

    Returns
    -------
    Array

    Examples
    --------
    >>> kaiser(5, 14.0).compute().round(4)
    array([0.    , 0.1649, 1.    , 0.1649, 0.    ])
    """
    if M == 1:
        return ones(1, chunks=chunks)
    alpha = (M - 1) / 2.0
    away = apply(np.divide, apply(np.subtract, arange(0.0, float(M), chunks=chunks), alpha), alpha)
    inside = apply(np.sqrt, apply(np.subtract, 1, apply(np.power, away, 2.0)))
    return apply(np.divide, i0(apply(np.multiply, float(beta), inside)), np.i0(float(beta)))


METHODS: dict[str, Any] = {}
__all__ = ["bartlett", "blackman", "hamming", "hanning", "kaiser"]
