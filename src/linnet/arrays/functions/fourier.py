"""Fourier transforms: along axes that lie whole in a tile, and of vectors longer than one.

An axis is made whole by cutting the array along the others. A vector has no others: it is
arranged as a matrix whose columns and rows are transformed in turn, with the twiddle factors
in between (the four-step algorithm), so that no task holds more than a slab of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import as_node, axis_of, wrap
from linnet.arrays.elements.elementwise import apply
from linnet.arrays.elements.reductions import reduction
from linnet.arrays.elements.whole_axes import whole_along
from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import each_tile, permuted
from linnet.kernels.arrays.fourier import transformed
from linnet.tiles import Layout

if TYPE_CHECKING:
    from linnet.arrays.array import Array

_LEAST_FACTOR = 16
"""A length whose best factor is smaller is transformed in one piece."""


def _transform(name: str, x: Any, n: int | None, axis: int, norm: str | None) -> Any:
    """One of NumPy's transforms along one axis."""
    node = as_node(x)
    axis = axis_of(axis, node.ndim)
    length = node.shape[axis] if n is None else n
    if length < 1 or transformed(name, node.shape[axis], n) < 1:
        raise ValueError(f"invalid number of data points ({max(length - 1, 0)}) specified")
    # NumPy says what comes out, and refuses what it would refuse.
    made = getattr(np.fft, name)(np.ones(2, node.dtype), norm=norm)
    long = length * made.dtype.itemsize > chunking.target()
    if long and n is None and name in ("fft", "ifft") and (split := _factor(length)):
        return _four_step(name, wrap(node), axis, norm, split)
    whole = whole_along(node, (axis,))
    edges = list(whole.layout.boundaries)
    edges[axis] = (0, transformed(name, node.shape[axis], n))
    attributes = {"name": name, "n": n, "axis": axis, "norm": norm}
    return wrap(each_tile("transform", whole, made.dtype, Layout(tuple(edges)), **attributes))


def _factor(length: int) -> tuple[int, int] | None:
    """The length as a product of two numbers as equal as possible, if they are not too unequal."""
    for first in range(math.isqrt(length), _LEAST_FACTOR - 1, -1):
        if length % first == 0:
            return first, length // first
    return None


def _four_step(name: str, x: Any, axis: int, norm: str | None, split: tuple[int, int]) -> Any:
    """X[k₁ + n₁·k₂] from columns, twiddle factors and rows of x[n₂·j₁ + j₂] as an n₁ × n₂ matrix."""
    first, second = split
    length = first * second
    x = np.moveaxis(x, axis, -1)
    matrix = x.reshape((*x.shape[:-1], first, second))
    columns = _transform(name, matrix, None, matrix.ndim - 2, norm)
    sign = -2j if name == "fft" else 2j
    rows = apply(np.multiply, _positions(first, (0, -1)), _positions(second, (-1, 0)))
    # Products of positions are taken modulo the length: the angle stays exact.
    angle = apply(np.remainder, rows, length) * (sign * math.pi / length)
    twiddled = columns * apply(np.exp, angle).astype(columns.dtype)
    made = _transform(name, twiddled, None, matrix.ndim - 1, norm)
    turned = np.swapaxes(made, -1, -2).reshape(x.shape)
    return np.moveaxis(turned, -1, axis)


def _positions(count: int, axes: tuple[int, int]) -> Any:
    return wrap(permuted(as_node(np.arange(count)), axes))


def _along_axes(
    name: str, x: Any, s: Sequence[int] | None, axes: Sequence[int] | None, norm: str | None
) -> Any:
    """A complex transform along several axes, the last first."""
    array = wrap(as_node(x))
    lengths, chosen = _axes(array.shape, s, axes)
    for n, axis in reversed(list(zip(lengths, chosen, strict=True))):
        array = _transform(name, array, n, axis, norm)
    return array


def _axes(
    shape: tuple[int, ...], s: Sequence[int] | None, axes: Sequence[int] | None
) -> tuple[list[int | None], list[int]]:
    if axes is None:
        axes = range(len(shape)) if s is None else range(len(shape) - len(s), len(shape))
    chosen = [axis_of(axis, len(shape)) for axis in axes]
    lengths: list[int | None] = [None] * len(chosen) if s is None else [None if n == -1 else n for n in s]
    if s is None and len(set(chosen)) < len(chosen):  # what is transformed twice keeps its first length
        lengths = [shape[axis] for axis in chosen]
    if len(lengths) != len(chosen):
        raise ValueError(f"s={s} and axes={axes} must have the same length")
    return lengths, chosen


@reduction(np.fft.fft, out_at=4)
def fft(x: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Array:
    """The Fourier transform along an axis.

    Parameters
    ----------
    x : array_like
    n : int, optional; how many elements are transformed; shorter axes get zeros, longer ones are cut
    axis : int; the axis that is transformed
    norm : "backward" (default), "ortho" or "forward"; which direction is divided by the length
    out : array, optional; where the result goes

    Returns
    -------
    Array of complex numbers

    Examples
    --------
    >>> import linnet as ln
    >>> ln.fft.fft([1.0, 0.0, 0.0, 0.0]).compute()
    array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j])
    """
    return _transform("fft", x, n, axis, norm)


@reduction(np.fft.ifft, out_at=4)
def ifft(x: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Array:
    """The inverse Fourier transform along an axis.

    Parameters
    ----------
    x : array_like
    n : int, optional; how many elements are transformed; shorter axes get zeros, longer ones are cut
    axis : int; the axis that is transformed
    norm : "backward" (default), "ortho" or "forward"; which direction is divided by the length
    out : array, optional; where the result goes

    Returns
    -------
    Array of complex numbers

    Examples
    --------
    >>> import linnet as ln
    >>> ln.fft.ifft(ln.fft.fft([1.0, 2.0])).compute()
    array([1.+0.j, 2.+0.j])
    """
    return _transform("ifft", x, n, axis, norm)


@reduction(np.fft.rfft, out_at=4)
def rfft(x: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Array:
    """The transform of real numbers: half of it, the rest is its mirror.

    Parameters
    ----------
    x : array_like
    n : int, optional; how many elements are transformed; shorter axes get zeros, longer ones are cut
    axis : int; the axis that is transformed
    norm : "backward" (default), "ortho" or "forward"; which direction is divided by the length
    out : array, optional; where the result goes

    Returns
    -------
    Array of complex numbers, `n // 2 + 1` along the axis

    Examples
    --------
    >>> import linnet as ln
    >>> ln.fft.rfft([1.0, 0.0, 0.0, 0.0]).compute()
    array([1.+0.j, 1.+0.j, 1.+0.j])
    """
    return _transform("rfft", x, n, axis, norm)


@reduction(np.fft.irfft, out_at=4)
def irfft(x: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Array:
    """The inverse of `rfft`.

    Parameters
    ----------
    x : array_like
    n : int, optional; how many elements the result has; by default an even number
    axis : int; the axis that is transformed
    norm : "backward" (default), "ortho" or "forward"; which direction is divided by the length
    out : array, optional; where the result goes

    Returns
    -------
    Array of real numbers

    Examples
    --------
    >>> import linnet as ln
    >>> ln.fft.irfft(ln.fft.rfft([1.0, 2.0, 3.0, 4.0])).compute()
    array([1., 2., 3., 4.])
    """
    return _transform("irfft", x, n, axis, norm)


@reduction(np.fft.hfft, out_at=4)
def hfft(x: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Array:
    """The transform of a signal whose spectrum is real.

    Parameters
    ----------
    x : array_like
    n : int, optional; how many elements the result has; by default an even number
    axis : int; the axis that is transformed
    norm : "backward" (default), "ortho" or "forward"; which direction is divided by the length
    out : array, optional; where the result goes

    Returns
    -------
    Array of real numbers

    Examples
    --------
    >>> import linnet as ln
    >>> ln.fft.hfft([1.0, 2.0]).compute()
    array([ 3., -1.])
    """
    return _transform("hfft", x, n, axis, norm)


@reduction(np.fft.ihfft, out_at=4)
def ihfft(x: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Array:
    """The inverse of `hfft`.

    Parameters
    ----------
    x : array_like
    n : int, optional; how many elements are transformed; shorter axes get zeros, longer ones are cut
    axis : int; the axis that is transformed
    norm : "backward" (default), "ortho" or "forward"; which direction is divided by the length
    out : array, optional; where the result goes

    Returns
    -------
    Array of complex numbers

    Examples
    --------
    >>> import linnet as ln
    >>> ln.fft.ihfft([3.0, -1.0]).compute()
    array([1.-0.j, 2.-0.j])
    """
    return _transform("ihfft", x, n, axis, norm)


@reduction(np.fft.fftn, out_at=4)
def fftn(x: Any, s: Any = None, axes: Any = None, norm: str | None = None, out: Any = None) -> Array:
    """The Fourier transform along several axes.

    Parameters
    ----------
    x : array_like
    s : sequence of int, optional; how many elements are transformed along each axis
    axes : sequence of int, optional; None: all, or the last ones if `s` is given
    norm : "backward" (default), "ortho" or "forward"; which direction is divided by the length
    out : array, optional; where the result goes

    Returns
    -------
    Array of complex numbers

    Examples
    --------
    >>> import linnet as ln
    >>> ln.fft.fftn(ln.ones((2, 2, 2))).compute().real.ravel()
    array([8., 0., 0., 0., 0., 0., 0., 0.])
    """
    return _along_axes("fft", x, s, axes, norm)


@reduction(np.fft.ifftn, out_at=4)
def ifftn(x: Any, s: Any = None, axes: Any = None, norm: str | None = None, out: Any = None) -> Array:
    """The inverse of `fftn`.

    Parameters
    ----------
    x : array_like
    s : sequence of int, optional; how many elements are transformed along each axis
    axes : sequence of int, optional; None: all, or the last ones if `s` is given
    norm : "backward" (default), "ortho" or "forward"; which direction is divided by the length
    out : array, optional; where the result goes

    Returns
    -------
    Array of complex numbers

    Examples
    --------
    >>> import linnet as ln
    >>> ln.fft.ifftn(ln.fft.fftn([[1.0, 2.0]])).compute().real
    array([[1., 2.]])
    """
    return _along_axes("ifft", x, s, axes, norm)


@reduction(np.fft.fft2, out_at=4)
def fft2(x: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None, out: Any = None) -> Array:
    """The Fourier transform along two axes.

    Parameters
    ----------
    x : array_like
    s : sequence of int, optional; how many elements are transformed along each axis
    axes : sequence of int; the axes that are transformed
    norm : "backward" (default), "ortho" or "forward"; which direction is divided by the length
    out : array, optional; where the result goes

    Returns
    -------
    Array of complex numbers

    Examples
    --------
    >>> import linnet as ln
    >>> ln.fft.fft2(ln.ones((2, 2))).compute().real
    array([[4., 0.],
           [0., 0.]])
    """
    return _along_axes("fft", x, s, axes, norm)


@reduction(np.fft.ifft2, out_at=4)
def ifft2(x: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None, out: Any = None) -> Array:
    """The inverse of `fft2`.

    Parameters
    ----------
    x : array_like
    s : sequence of int, optional; how many elements are transformed along each axis
    axes : sequence of int; the axes that are transformed
    norm : "backward" (default), "ortho" or "forward"; which direction is divided by the length
    out : array, optional; where the result goes

    Returns
    -------
    Array of complex numbers

    Examples
    --------
    >>> import linnet as ln
    >>> ln.fft.ifft2([[4.0, 0.0], [0.0, 0.0]]).compute().real
    array([[1., 1.],
           [1., 1.]])
    """
    return _along_axes("ifft", x, s, axes, norm)


@reduction(np.fft.rfftn, out_at=4)
def rfftn(x: Any, s: Any = None, axes: Any = None, norm: str | None = None, out: Any = None) -> Array:
    """The transform of real numbers along several axes.

    Parameters
    ----------
    x : array_like
    s : sequence of int, optional; how many elements are transformed along each axis
    axes : sequence of int, optional; None: all, or the last ones if `s` is given
    norm : "backward" (default), "ortho" or "forward"; which direction is divided by the length
    out : array, optional; where the result goes

    Returns
    -------
    Array of complex numbers; the last axis is about half as long

    Examples
    --------
    >>> import linnet as ln
    >>> ln.fft.rfftn(ln.ones((2, 2, 4))).shape
    (2, 2, 3)
    """
    array = wrap(as_node(x))
    lengths, chosen = _axes(array.shape, s, axes)
    array = _transform("rfft", array, lengths[-1], chosen[-1], norm)
    for n, axis in zip(lengths[-2::-1], chosen[-2::-1], strict=True):
        array = _transform("fft", array, n, axis, norm)
    return array


@reduction(np.fft.irfftn, out_at=4)
def irfftn(x: Any, s: Any = None, axes: Any = None, norm: str | None = None, out: Any = None) -> Array:
    """The inverse of `rfftn`.

    Parameters
    ----------
    x : array_like
    s : sequence of int, optional; how many elements are transformed along each axis
    axes : sequence of int, optional; None: all, or the last ones if `s` is given
    norm : "backward" (default), "ortho" or "forward"; which direction is divided by the length
    out : array, optional; where the result goes

    Returns
    -------
    Array of real numbers

    Examples
    --------
    >>> import linnet as ln
    >>> ln.fft.irfftn(ln.fft.rfftn([[1.0, 2.0], [3.0, 4.0]])).compute()
    array([[1., 2.],
           [3., 4.]])
    """
    array = wrap(as_node(x))
    lengths, chosen = _axes(array.shape, s, axes)
    if s is None:
        lengths[-1] = 2 * (array.shape[chosen[-1]] - 1)
    for n, axis in zip(lengths[:-1], chosen[:-1], strict=True):
        array = _transform("ifft", array, n, axis, norm)
    return _transform("irfft", array, lengths[-1], chosen[-1], norm)


@reduction(np.fft.rfft2, out_at=4)
def rfft2(x: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None, out: Any = None) -> Array:
    """The transform of real numbers along two axes.

    Parameters
    ----------
    x : array_like
    s : sequence of int, optional; how many elements are transformed along each axis
    axes : sequence of int; the axes that are transformed
    norm : "backward" (default), "ortho" or "forward"; which direction is divided by the length
    out : array, optional; where the result goes

    Returns
    -------
    Array of complex numbers; the last axis is about half as long

    Examples
    --------
    >>> import linnet as ln
    >>> ln.fft.rfft2(ln.ones((2, 4))).shape
    (2, 3)
    """
    return rfftn(x, s, axes, norm)


@reduction(np.fft.irfft2, out_at=4)
def irfft2(x: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None, out: Any = None) -> Array:
    """The inverse of `rfft2`.

    Parameters
    ----------
    x : array_like
    s : sequence of int, optional; how many elements are transformed along each axis
    axes : sequence of int; the axes that are transformed
    norm : "backward" (default), "ortho" or "forward"; which direction is divided by the length
    out : array, optional; where the result goes

    Returns
    -------
    Array of real numbers

    Examples
    --------
    >>> import linnet as ln
    >>> ln.fft.irfft2(ln.fft.rfft2([[1.0, 2.0], [3.0, 4.0]])).compute()
    array([[1., 2.],
           [3., 4.]])
    """
    return irfftn(x, s, axes, norm)
