"""Frequencies of Fourier transforms, and their order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import as_node, chunked, listed, wrap

if TYPE_CHECKING:
    from linnet.arrays.array import Array


@chunked(np.fft.fftshift)
def fftshift(x: Any, axes: Any = None) -> Array:
    """The zero frequency in the middle.

    Parameters
    ----------
    x : array_like
    axes : int or sequence of int, optional; None: all

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.fft.fftshift([0, 1, -2, -1]).compute()
    array([-2, -1,  0,  1])
    """
    array = wrap(as_node(x))
    chosen = tuple(range(array.ndim)) if axes is None else listed(axes)
    shifts = tuple(array.shape[a] // 2 for a in chosen)
    return np.roll(array, shifts, chosen)


@chunked(np.fft.ifftshift)
def ifftshift(x: Any, axes: Any = None) -> Array:
    """The inverse of `fftshift`.

    Parameters
    ----------
    x : array_like
    axes : int or sequence of int, optional; None: all

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.fft.ifftshift([-2, -1, 0, 1]).compute()
    array([ 0,  1, -2, -1])
    """
    array = wrap(as_node(x))
    chosen = tuple(range(array.ndim)) if axes is None else listed(axes)
    return np.roll(array, tuple(-(array.shape[a] // 2) for a in chosen), chosen)


def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None, chunks: Any = None) -> Array:
    """The frequencies of a transform of n elements, d apart.

    Parameters
    ----------
    n : int; how many elements are transformed
    d : float; how far apart they are
    dtype : optional; a type of floats
    device : optional; "cpu"
    chunks : optional; length of the tiles

    Returns
    -------
    Array of n frequencies, those from zero on first

    Examples
    --------
    >>> import linnet as ln
    >>> ln.fft.fftfreq(4).compute()
    array([ 0.  ,  0.25, -0.5 , -0.25])
    """
    return _frequencies(np.fft.fftfreq(n, d), dtype, device, chunks)


def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None, chunks: Any = None) -> Array:
    """The frequencies of a transform of n real elements, d apart.

    Parameters
    ----------
    n : int; how many elements are transformed
    d : float; how far apart they are
    dtype : optional; a type of floats
    device : optional; "cpu"
    chunks : optional; length of the tiles

    Returns
    -------
    Array of n // 2 + 1 frequencies

    Examples
    --------
    >>> import linnet as ln
    >>> ln.fft.rfftfreq(4).compute()
    array([0.  , 0.25, 0.5 ])
    """
    return _frequencies(np.fft.rfftfreq(n, d), dtype, device, chunks)


def _frequencies(values: Any, dtype: Any, device: Any, chunks: Any) -> Any:
    from linnet.arrays.elements.creation import asarray

    if dtype is not None and np.dtype(dtype).kind != "f":
        raise ValueError(f"frequencies are floats; dtype={np.dtype(dtype)} was asked for")
    return asarray(values, dtype=dtype, device=device, chunks=chunks)
