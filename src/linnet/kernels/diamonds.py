"""Reflectors of a bulge chase applied many at a time.

The reflectors of the same step of neighbouring sweeps lie one row below the other: a
parallelogram (drawn by its corners, a diamond) of `V`, applied as one block `I − V·T·Vᴴ`. Within a
group of sweeps the blocks are applied in the order of steps, first step first; groups, last first.

What they are applied to is transposed, a slab of columns as rows: a block then touches one piece of
memory, not a little of every column.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from linnet.kernels.dense import multiply_into
from linnet.kernels.fortran import Matrix, blas_dtype, owned, promote
from linnet.kernels.registry import kernel

Array = NDArray[Any]


@kernel("diamonds", outputs=2, dtype=lambda v, tau, *_: (v, v))
def diamonds(v: Array, tau: Array, group: int, size: int) -> tuple[Array, Array]:
    """The blocks of a group of `size` sweeps: `Vᴴ` and `(V·T)ᵀ`, one of each for every step.

    `v` (sweeps × steps × width) and `tau` (sweeps × steps) are the reflectors of a chase.

    >>> v, vt = diamonds(np.ones((2, 1, 1)), np.array([[2.0], [1.0]]), 0, 2)
    >>> v[0], vt[0]
    (array([[1., 0.],
           [0., 1.]]), array([[2., 0.],
           [0., 1.]]))
    """
    own = v[group * size : (group + 1) * size]
    weights = tau[group * size : (group + 1) * size].T
    count, steps, width = own.shape
    rows = width + count - 1
    stack = np.zeros((steps, count, rows), v.dtype)
    first, second, third = stack.strides
    slanted = as_strided(stack, (steps, count, width), (first, second + third, third))
    slanted[...] = own.transpose(1, 0, 2)
    adjoint = stack.conj()
    gram = adjoint @ stack.transpose(0, 2, 1)
    t = np.zeros((steps, count, count), v.dtype)
    for j in range(count):
        t[:, :j, j] = -weights[:, j, None] * (t[:, :j, :j] @ gram[:, :j, j, None])[:, :, 0]
        t[:, j, j] = weights[:, j]
    return adjoint, t.transpose(0, 2, 1) @ stack


@kernel(
    "apply_diamonds",
    shape=lambda v, vt, s, *_: s,
    dtype=lambda v, vt, s, *_: promote(v, s),
    flops=lambda v, vt, s, *_: 4.0 * v[0] * v[1] * v[2] * s[0],
    inplace=2,
)
def apply_diamonds(v: Array, vt: Array, s: Matrix, first: int, *, overwrite: Sequence[int] = ()) -> Matrix:
    """The product of the blocks of a group with `Sᵀ`, transposed; `first` is where the first block begins.

    >>> v, vt = diamonds(np.ones((1, 2, 1)), np.array([[2.0, 0.0]]), 0, 1)
    >>> apply_diamonds(v, vt, np.array([[1.0, 3.0, 5.0]]), 1)
    array([[ 1., -3.,  5.]])
    """
    dtype = blas_dtype(v, s)
    result = owned(s, dtype, 2 in overwrite)
    steps, count, rows = v.shape
    width = rows - count + 1
    projected = np.empty((result.shape[0], count), dtype, order="F")
    if not projected.size:
        return result
    for step in range(steps):
        low = first + step * width
        height = min(rows, result.shape[1] - low)
        if height <= 0:
            break
        block = result[:, low : low + height]
        left, right = v[step, :, :height].T, vt[step, :, :height].T
        multiply_into(projected, (b"N", block), (b"N", left), height, 1.0, 0.0)
        multiply_into(block, (b"N", projected), (b"T", right), count, -1.0, 1.0)
    return result
