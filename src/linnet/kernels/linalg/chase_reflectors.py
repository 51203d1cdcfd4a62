"""Reflectors of a bulge chase applied many at a time.

The reflectors of the same step of neighbouring sweeps lie one row below the other: a
parallelogram (drawn by its corners, a diamond) of `V`, applied as one block `I − V·T·Vᴴ`. Within a
group of sweeps the blocks are applied in the order of steps, first step first; groups, last first.

Real reflectors are applied by the compiled core, four at a time, if it is there: the zeros around a
parallelogram of four are few. BLAS needs larger ones to be fast; for it, `V` and `V·T` are made
beforehand, zeros and all.

What they are applied to is transposed, a slab of columns as rows: a block then touches one piece of
memory, not a little of every column.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from linnet.kernels import compiled
from linnet.kernels.registry import kernel
from linnet.machine.fortran import (
    Matrix,
    address,
    blas_dtype,
    multiply_into,
    owned,
    promote,
)

Array = NDArray[Any]

_DIAMOND = 48
"""Sweeps to a block for BLAS: with fewer it is slow, with more most of a block is zeros."""


def grouped(v: Array, tau: Array, size: int) -> tuple[list[Array], list[Array]]:
    """The reflectors of a chase in groups of `size` sweeps, as `apply_sweeps` takes them.

    `v` (sweeps × steps × width) and `tau` (sweeps × steps) are what the chase keeps. A group is a part
    of these (three axes), or `Vᴴ` and `(V·T)ᵀ` of its diamonds (four: diamond, step, column, row).

    >>> [len(part) for part in grouped(np.ones((5, 1, 1)), np.ones((5, 1)), 4)]
    [2, 2]
    """
    cuts = range(0, len(v), size)
    groups = [(v[at : at + size], tau[at : at + size]) for at in cuts]
    if v.dtype.kind == "c" or not compiled.library():
        groups = [_diamonds(*group) for group in groups]
    return [group[0] for group in groups], [group[1] for group in groups]


def _diamonds(v: Array, tau: Array) -> tuple[Array, Array]:
    """`Vᴴ` and `(V·T)ᵀ` of the diamonds of a group; the last is filled up with reflectors that do nothing."""
    size = min(_DIAMOND, len(v))
    missing = -len(v) % size
    own = np.concatenate([v, np.zeros((missing, *v.shape[1:]), v.dtype)]).reshape(-1, size, *v.shape[1:])
    weights = np.concatenate([tau, np.zeros((missing, tau.shape[1]), v.dtype)])
    weights = weights.reshape(-1, size, tau.shape[1]).transpose(0, 2, 1)
    diamonds, count, steps, width = own.shape
    stack = np.zeros((diamonds, steps, count, width + count - 1), v.dtype)
    *outer, second, third = stack.strides
    slanted = as_strided(stack, (diamonds, steps, count, width), (*outer, second + third, third))
    slanted[...] = own.transpose(0, 2, 1, 3)
    adjoint = stack.conj()
    gram = adjoint @ stack.swapaxes(-1, -2)
    t = np.zeros((diamonds, steps, count, count), v.dtype)
    for j in range(count):
        t[..., :j, j] = -weights[..., j, None] * (t[..., :j, :j] @ gram[..., :j, j, None])[..., 0]
        t[..., j, j] = weights[..., j]
    return adjoint, t.swapaxes(-1, -2) @ stack


@kernel(
    "apply_sweeps",
    shape=lambda v, weights, s, *_: s,
    dtype=lambda v, weights, s, *_: promote(v, s),
    flops=lambda v, weights, s, *_: 4.0 * np.prod(v) * s[0],
    inplace=2,
)
def apply_sweeps(v: Array, weights: Array, s: Matrix, first: int, *, overwrite: Sequence[int] = ()) -> Matrix:
    """The product of the reflectors of a group with `Sᵀ`, transposed; `first` is where the first begins.

    >>> (v,), (weights,) = grouped(np.ones((1, 2, 1)), np.array([[2.0, 0.0]]), 1)
    >>> apply_sweeps(v, weights, np.array([[1.0, 3.0, 5.0]]), 1)
    array([[ 1., -3.,  5.]])
    """
    result = owned(s, blas_dtype(v, s), 2 in overwrite)
    if not result.size:
        return result
    library = compiled.library()
    if v.ndim == 3 and library and result.dtype.kind == "f":
        _reflect(library, v, weights, result, first)
        return result
    if v.ndim == 3:  # made where there is a compiled core, and sent to where there is none
        v, weights = _diamonds(v, weights)
    for diamond in reversed(range(len(v))):
        _multiply(v[diamond], weights[diamond], result, first + diamond * v.shape[2])
    return result


def _multiply(v: Array, vt: Array, result: Matrix, first: int) -> None:
    """The blocks of a diamond, by BLAS."""
    steps, count, rows = v.shape
    width = rows - count + 1
    projected = np.empty((result.shape[0], count), result.dtype, order="F")
    for step in range(steps):
        low = first + step * width
        height = min(rows, result.shape[1] - low)
        if height <= 0:
            break
        block = result[:, low : low + height]
        left, right = v[step, :, :height].T, vt[step, :, :height].T
        multiply_into(projected, (b"N", block), (b"N", left), height, 1.0, 0.0)
        multiply_into(block, (b"N", projected), (b"T", right), count, -1.0, 1.0)


def _reflect(library: ctypes.CDLL, v: Array, tau: Array, result: Matrix, first: int) -> None:
    """The reflectors of a group, by the compiled core."""
    sweeps, steps, width = v.shape
    v, tau = np.ascontiguousarray(v, result.dtype), np.ascontiguousarray(tau, result.dtype)
    vectors, rows = result.shape
    compiled.run_reflect(
        library,
        compiled.Reflect(
            type=ord(result.dtype.char), sweeps=sweeps, steps=steps, width=width, first=first,
            vectors=vectors, rows=rows, leading=result.strides[1] // result.itemsize,
            v=address(v), tau=address(tau), s=address(result),
        ),
        result.itemsize,
    )  # fmt: skip
