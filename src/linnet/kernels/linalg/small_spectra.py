"""Kernels of the small problem: bands, bidiagonal and tridiagonal matrices, on LAPACK.

A band comes as the blocks that the reduction leaves: `D`, a diagonal block and what is beside it.
For values alone the reflectors of the chase are not kept; where the chase is not compiled, LAPACK's
rotations take its place. For vectors, divide and conquer gives those of the bidiagonal or tridiagonal matrix.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.errors import MatrixError
from linnet.kernels.linalg.bulge_chase import Band, chase, chased_values
from linnet.kernels.linalg.chase_reflectors import grouped
from linnet.kernels.registry import kernel
from linnet.machine import large_arrays
from linnet.machine.fortran import Matrix, address, blas_dtype, integer, leading, promote, routine

Array = NDArray[Any]


def hermitian_band(blocks: list[Matrix]) -> Band:
    """The band whose column blocks are given: a whole diagonal block on an upper triangle."""
    widths = [block.shape[1] for block in blocks]
    band = Band(sum(widths), max((*widths, 1)), blas_dtype(*blocks))
    at = 0
    for block in blocks:
        rows, columns = block.shape
        band.block((at, at), (columns, rows))[0] = block.T.conj()
        at += columns
    return band


def upper_band(diagonal: list[Matrix], beside: list[Matrix]) -> Band:
    """The band with given upper triangles on its diagonal and lower triangles right of them."""
    widths = [block.shape[1] for block in diagonal]
    band = Band(sum(widths), max((*widths, 1)), blas_dtype(*diagonal))
    at = 0
    for block, right in zip(diagonal, beside, strict=True):
        rows, columns = block.shape
        band.block((at, at), (rows, columns))[0] = block
        band.block((at, at + columns), right.shape)[0] = right
        at += columns
    return band


def _chase_flops(blocks: list[tuple[int, int]], *_: Any) -> float:
    """Of the chase of a Hermitian band; of any other, a third more."""
    widths = [columns for _, columns in blocks]
    return 6.0 * sum(widths) ** 2 * max(widths, default=0)


@kernel("chase_hermitian", outputs=4, flops=_chase_flops, thread_invariant=True)
def chase_hermitian(blocks: list[Matrix], group: int) -> tuple[Array, Array, list[Array], list[Array]]:
    """A Hermitian band to a tridiagonal matrix: its diagonals, and the reflectors in groups of sweeps.

    >>> d, e, *_ = chase_hermitian([np.array([[2.0], [1.0]]), np.array([[3.0]])], 8)
    >>> d, e
    (array([2., 3.]), array([1.]))
    """
    done = chase(hermitian_band(blocks), hermitian=True)
    return done.diagonal, done.beside, *grouped(done.right.v, done.right.tau, group)


@kernel("chase_upper", outputs=6, flops=_chase_flops, thread_invariant=True)
def chase_upper(
    diagonal: list[Matrix], beside: list[Matrix], group: int
) -> tuple[Array, Array, list[Array], list[Array], list[Array], list[Array]]:
    """An upper band to a bidiagonal matrix: its diagonals, and the reflectors from the left and the right.

    >>> one = np.array([[1.0]])
    >>> d, e, *_ = chase_upper([2 * one, 3 * one], [one, np.zeros((1, 0))], 8)
    >>> d, e
    (array([2., 3.]), array([1.]))
    """
    done = chase(upper_band(diagonal, beside), hermitian=False)
    left, right = (grouped(kept.v, kept.tau, group) for kept in (done.left, done.right))
    return done.diagonal, done.beside, *left, *right


def _band_size(blocks: list[tuple[int, int]], *_: Any) -> tuple[int]:
    return (sum(columns for _, columns in blocks),)


def _band_dtype(blocks: list[np.dtype[Any]], *_: Any) -> np.dtype[Any]:
    return np.real(np.zeros(0, promote(*blocks))).dtype


@kernel(
    "hermitian_band_values",
    shape=_band_size,
    dtype=_band_dtype,
    flops=_chase_flops,
    thread_invariant=True,
    refuses=True,
)
def hermitian_band_values(blocks: list[Matrix]) -> Array:
    """The eigenvalues of a Hermitian band, ascending.

    >>> hermitian_band_values([np.array([[2.0], [1.0]]), np.array([[2.0]])])
    array([1., 3.])
    """
    band = hermitian_band(blocks)
    scaled = band.rescaled()
    diagonal, beside = chased_values(band, hermitian=True) or _rotated_hermitian(band)
    info = ctypes.c_int(0)
    routine("sterf", diagonal.dtype.char)(
        integer(band.size), address(diagonal), address(beside), ctypes.byref(info)
    )
    _converged(info, "eigenvalues")
    return diagonal * scaled


def _rotated_hermitian(band: Band) -> tuple[Array, Array]:
    """The tridiagonal matrix of a band, by LAPACK's rotations."""
    n, code = band.size, band.dtype.char
    stored = band.stored(0)
    diagonal, beside = _reals(n, code), _reals(n, code)
    work, unused = np.empty(max(n, 1), band.dtype), np.empty(1, band.dtype)
    routine("hbtrd" if code in "FD" else "sbtrd", code)(
        b"N", b"U", integer(n), integer(band.width), address(stored), integer(band.width + 1),
        address(diagonal), address(beside), address(unused), integer(1), address(work),
        ctypes.byref(ctypes.c_int(0)),
    )  # fmt: skip
    return diagonal, beside


@kernel(
    "upper_band_values",
    shape=_band_size,
    dtype=_band_dtype,
    flops=_chase_flops,
    thread_invariant=True,
    refuses=True,
)
def upper_band_values(diagonal: list[Matrix], beside: list[Matrix]) -> Array:
    """The singular values of an upper band, descending.

    >>> upper_band_values([np.array([[3.0]]), np.array([[4.0]])], [np.array([[0.0]]), np.zeros((1, 0))])
    array([4., 3.])
    """
    band = upper_band(diagonal, beside)
    n = band.size
    scaled = band.rescaled()
    values, above = chased_values(band, hermitian=False) or _rotated_upper(band)
    more, nothing = np.empty(4 * max(n, 1), values.dtype), np.empty(1, values.dtype)
    info = ctypes.c_int(0)
    routine("bdsqr", values.dtype.char)(
        b"U", integer(n), integer(0), integer(0), integer(0), address(values), address(above),
        address(nothing), integer(1), address(nothing), integer(1), address(nothing), integer(1),
        address(more), ctypes.byref(info),
    )  # fmt: skip
    _converged(info, "singular values")
    return values * scaled


def _rotated_upper(band: Band) -> tuple[Array, Array]:
    """The bidiagonal matrix of a band, by LAPACK's rotations."""
    n, code = band.size, band.dtype.char
    stored = band.stored(0)
    values, above, reals = _reals(n, code), _reals(n, code), _reals(n, code)
    work, unused = np.empty(2 * max(n, 1), band.dtype), np.empty(1, band.dtype)
    extra = (address(reals),) if code in "FD" else ()
    routine("gbbrd", code)(
        b"N", integer(n), integer(n), integer(0), integer(0), integer(band.width), address(stored),
        integer(band.width + 1), address(values), address(above), address(unused), integer(1),
        address(unused), integer(1), address(unused), integer(1), address(work), *extra,
        ctypes.byref(ctypes.c_int(0)),
    )  # fmt: skip
    return values, above


def _slabs(rows: int, columns: int, slabs: int) -> list[tuple[int, int]]:
    return [(rows, high - low) for low, high in itertools.pairwise(cut_edges(columns, slabs))]


@kernel(
    "tridiagonal_vectors",
    outputs=2,
    shape=lambda diagonal, beside, slabs: (diagonal, _slabs(diagonal[0], diagonal[0], slabs)),
    dtype=lambda diagonal, beside, slabs: (diagonal, diagonal),
    flops=lambda diagonal, *_: 4 / 3 * diagonal[0] ** 3,
    refuses=True,
)
def tridiagonal_vectors(diagonal: Array, beside: Array, slabs: int) -> tuple[Array, list[Matrix]]:
    """The eigenvalues, ascending, and eigenvectors of a tridiagonal matrix, these in slabs of columns.

    The slabs share memory until `turned` has taken them apart.

    >>> values, (z,) = tridiagonal_vectors(np.array([2.0, 2.0]), np.array([1.0]), 1)
    >>> bool(np.allclose(values, [1.0, 3.0])), z.shape
    (True, (2, 2))
    """
    n = len(diagonal)
    values, above = diagonal.copy(), np.append(beside, beside.dtype.type(0))
    z = large_arrays.columns(n, n, values.dtype)
    work = large_arrays.zeros(1 + 4 * n + n * n, values.dtype)
    integers = np.empty(3 + 5 * n, np.intc)
    info = ctypes.c_int(0)
    routine("stedc", values.dtype.char)(
        b"I", integer(n), address(values), address(above), address(z), leading(z),
        address(work), integer(len(work)), address(integers), integer(len(integers)), ctypes.byref(info),
    )  # fmt: skip
    _converged(info, "eigenvalues")
    return values, cut_columns(z, slabs)


@kernel(
    "bidiagonal_vectors",
    outputs=3,
    shape=lambda diagonal, beside, rows, columns, slabs: (
        diagonal,
        _slabs(rows, columns, slabs),
        [shape[::-1] for shape in _slabs(diagonal[0], diagonal[0], slabs)],
    ),
    dtype=lambda diagonal, *_: (diagonal,) * 3,
    flops=lambda diagonal, *_: 8 / 3 * diagonal[0] ** 3,
    refuses=True,
)
def bidiagonal_vectors(
    diagonal: Array, beside: Array, rows: int, columns: int, slabs: int
) -> tuple[Array, list[Matrix], list[Matrix]]:
    """The singular values, descending, and both sets of singular vectors of an upper bidiagonal matrix.

    The left vectors are set into the corner of a `rows` × `columns` identity. Both sets come
    in slabs of columns, the right ones transposed.

    >>> s, (u,), (v,) = bidiagonal_vectors(np.array([3.0, 4.0]), np.array([0.0]), 3, 2, 1)
    >>> s, u.shape, v.shape
    (array([4., 3.]), (3, 2), (2, 2))
    """
    n = len(diagonal)
    values, above = diagonal.copy(), np.append(beside, beside.dtype.type(0))
    u, vt = large_arrays.columns(rows, columns, values.dtype), large_arrays.columns(n, n, values.dtype)
    work = large_arrays.zeros(3 * n * n + 4 * n + 1, values.dtype)
    integers = np.empty(8 * n + 1, np.intc)
    unused, none = np.empty(1, values.dtype), np.empty(1, np.intc)
    info = ctypes.c_int(0)
    routine("bdsdc", values.dtype.char)(
        b"U", b"I", integer(n), address(values), address(above), address(u), leading(u),
        address(vt), leading(vt), address(unused), address(none), address(work), address(integers),
        ctypes.byref(info),
    )  # fmt: skip
    _converged(info, "singular values")
    extra = np.arange(n, min(rows, columns))
    u[extra, extra] = 1
    return values, cut_columns(u, slabs), [turned(each) for each in cut_columns(vt.T, slabs)]


def cut_columns(matrix: Matrix, slabs: int) -> list[Matrix]:
    """The matrix in `slabs` slabs of columns, as equal as can be."""
    return [matrix[:, low:high] for low, high in itertools.pairwise(cut_edges(matrix.shape[1], slabs))]


def cut_edges(columns: int, slabs: int) -> tuple[int, ...]:
    """Where each of `slabs` slabs of so many columns begins, and the last ends."""
    return tuple(columns * slab // slabs for slab in range(slabs + 1))


@kernel("turned", shape=lambda x: (x[1], x[0]), dtype=lambda x: x, flops=lambda x: 0.0)
def turned(x: Matrix) -> Matrix:
    """The transpose, on its own and in Fortran order.

    >>> turned(np.array([[1.0, 2.0]]))
    array([[1.],
           [2.]])
    """
    result = large_arrays.zeros(x.shape, x.dtype)
    result[...] = x
    return result.T


@kernel("conjugated", shape=lambda x: x, dtype=lambda x: x, flops=lambda x: 0.0, inplace=0)
def conjugated(x: Matrix, *, overwrite: Sequence[int] = ()) -> Matrix:
    """The conjugate of a tile: the same one, if it is real and nobody else needs it.

    >>> conjugated(np.array([1j]))
    array([0.-1.j])
    """
    if x.dtype.kind != "c":
        return x if 0 in overwrite else x.copy(order="K")
    return np.conjugate(x, out=x if 0 in overwrite else None)


def _reals(n: int, code: str) -> Array:
    return np.zeros(max(n, 1), np.float32 if code in "fF" else np.float64)


def _converged(info: ctypes.c_int, what: str) -> None:
    if info.value > 0:
        raise MatrixError(f"the {what} did not converge; is every element of the matrix finite?")
