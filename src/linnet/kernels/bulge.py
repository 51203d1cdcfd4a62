"""The bulge chase: from a band to a bidiagonal (SVD) or a tridiagonal (Hermitian) matrix.

A sweep makes one row bidiagonal with a reflector; what that spoils (the bulge) is pushed down the
band by further reflectors, a step of `b` (the width of the band) each. Sweep `q + 1` can follow two
steps behind sweep `q`, so many sweeps are on their way at once, at equal distances along the band:
each moment is a few NumPy calls on a stack of blocks, all of them views of one buffer.

The reflectors are kept. Applied to the vectors of the small problem in blocks (`diamonds`), they
cost two matrix products; rotations, as LAPACK's `sbtrd` and `gbbrd` use them, cost ten times that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from linnet.kernels.fortran import Matrix

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Sweeps:
    """The reflectors `I − tau·v·vᴴ` of a chase, in the order of sweeps, then steps."""

    v: Array
    """Sweeps × steps × width of the band: the vectors, first element 1 (or all zero)."""
    tau: Array
    """Sweeps × steps."""
    first: int
    """The row where step 0 of sweep 0 begins; one more for each sweep, the width more for each step."""
    size: int
    """Rows of the matrix."""


@dataclass(frozen=True, slots=True, eq=False)
class Chased:
    """A band matrix after the chase."""

    diagonal: Array
    """Of the result; real."""
    beside: Array
    """The elements right of the diagonal; real."""
    left: Sweeps
    """The reflectors that act on rows."""
    right: Sweeps
    """Those that act on columns; the same as `left` for a Hermitian matrix."""


class Band:
    """An upper band matrix with room for the bulge, and zeros around it so that no block is ragged."""

    def __init__(self, size: int, width: int, dtype: np.dtype[Any]) -> None:
        self.size = size
        self.width = width
        row = 3 * width + 1
        before, after = 2 * width, 3 * width
        self._flat = np.zeros((size + before + after) * row, dtype)
        self._row = row
        self._origin = before * row + width
        self.dtype = dtype

    def block(self, at: tuple[int, int], shape: tuple[int, int], count: int = 1, step: int = 0) -> Array:
        """`count` blocks whose corners lie `step` apart along the diagonal, the first `at` a place."""
        item = self._flat.itemsize
        start = self._origin + at[0] * (self._row - 1) + at[1]
        strides = (step * self._row * item, (self._row - 1) * item, item)
        return as_strided(self._flat[start:], (count, *shape), strides)

    def diagonal(self, offset: int) -> Array:
        """A copy of a diagonal: 0 the main one, 1 the one right of it."""
        count = max(0, self.size - offset)
        return self.block((0, offset), (1, 1), count, 1)[:, 0, 0].copy()

    def mirror(self) -> None:
        """Write below the diagonal what a Hermitian matrix has above it, as far as windows reach."""
        for offset in range(1, min(self.width, self.size)):
            count = self.size - offset
            above = self.block((0, offset), (1, 1), count, 1)
            self.block((offset, 0), (1, 1), count, 1)[...] = above.conj()

    def stored(self, below: int) -> Matrix:
        """The diagonals from `below` the main one up, as LAPACK stores a band: one column per column."""
        lines = self.width + below + 1
        packed = np.zeros((lines, max(self.size, 1)), self.dtype, order="F")
        for line in range(lines):
            offset = self.width - line
            count = max(0, self.size - abs(offset))
            at = (max(0, -offset), max(0, offset))
            packed[line, at[1] : at[1] + count] = self.block(at, (1, 1), count, 1)[:, 0, 0]
        return packed

    def rescaled(self) -> float:
        """Bring the largest element near 1; returns what to multiply results with.

        There, squares of what matters neither overflow nor vanish. It is a power of two: no digit changes.
        """
        largest = float(np.abs(self._flat).max(initial=0.0))
        if not 0.0 < largest < np.inf:
            return 1.0
        exponent = int(np.clip(np.frexp(largest)[1], -1000, 1000))
        real = np.real(self._flat).dtype.type
        for part in (exponent // 2, exponent - exponent // 2):  # 2**-exponent alone may be out of range
            self._flat *= real(np.ldexp(1.0, -part))
        return float(np.ldexp(1.0, exponent))


def chase(band: Band, *, hermitian: bool) -> Chased:
    """Reduce a band to a real bidiagonal matrix, or (Hermitian, upper half given) a tridiagonal one.

    The band is overwritten. With `Q` and `P` the products of the reflectors of `left` and
    `right`, the matrix is `Q·B·Pᴴ`.
    """
    n, b = band.size, band.width
    back = band.rescaled()
    first = 1 if hermitian else 0
    sweeps = max(0, n - first)
    steps = -(-sweeps // b)
    right = _room(sweeps, steps, b, first, n, band.dtype)
    left = right if hermitian else _room(sweeps, steps, b, first, n, band.dtype)
    for moment in range(2 * (sweeps - 1) + steps if sweeps else 0):
        # Sweep q is at step moment − 2·q; those with a window inside the matrix are on their way.
        newest = min(moment // 2, sweeps - 1)
        oldest = max(0, -(-(moment * b + first - n + 1) // (2 * b - 1)))
        if oldest <= newest:
            _advance(band, moment, first, oldest, newest, hermitian, left, right)
    return Chased(np.real(band.diagonal(0)) * back, np.real(band.diagonal(1)) * back, left, right)


def _room(sweeps: int, steps: int, b: int, first: int, n: int, dtype: np.dtype[Any]) -> Sweeps:
    return Sweeps(np.zeros((sweeps, steps, b), dtype), np.zeros((sweeps, steps), dtype), first, n)


def _advance(
    band: Band,
    moment: int,
    first: int,
    oldest: int,
    newest: int,
    hermitian: bool,
    left: Sweeps,
    right: Sweeps,
) -> None:
    """One step of every sweep on its way: first all their right halves, then all their left halves."""
    b = band.width
    sweeps = np.arange(oldest, newest + 1)
    count, step = len(sweeps), 1 - 2 * b
    start = first + oldest + (moment - 2 * oldest) * b
    if hermitian:
        # The window has moved by one: its last row is known only as its last column.
        corner = band.block((start, start), (b, b), count, step)
        corner[:, -1, :-1] = corner[:, :-1, -1].conj()
    row = band.block((start - b, start), (1, b), count, step)[:, 0, :]
    x = row.conj()
    begin = first + newest
    own = band.block((begin - 1, begin), (1, b))[0, 0]
    beginner = moment == 2 * newest
    if beginner:
        x[-1] = own.conj()
    v, tau, beta = _reflectors(x)
    block = band.block((start - b, start), (2 * b, b), count, step)
    block -= (block @ v[:, :, None]) * (tau[:, None] * v.conj())[:, None, :]
    following = row[:-1] if beginner else row
    following[:, 0] = beta[: len(following)]
    following[:, 1:] = 0
    if beginner:
        own[0] = beta[-1]
        own[1:] = 0
    right.v[sweeps, moment - 2 * sweeps] = v
    right.tau[sweeps, moment - 2 * sweeps] = tau
    block = band.block((start, start), (b, 2 * b), count, step)
    if not hermitian:
        v, tau, beta = _reflectors(block[:, :, 0].copy())
        left.v[sweeps, moment - 2 * sweeps] = v
        left.tau[sweeps, moment - 2 * sweeps] = tau
    block -= (tau.conj()[:, None] * v)[:, :, None] * (v.conj()[:, None, :] @ block)
    if not hermitian:
        block[:, 0, 0] = beta
        block[:, 1:, 0] = 0


def _reflectors(x: Array) -> tuple[Array, Array, Array]:
    """For each row `x`: `v`, `tau` and the real `beta` with `(I − tau·v·vᴴ)ᴴ·x = beta·e₁`."""
    alpha = x[:, 0].copy()
    size = np.einsum("pi,pi->p", np.real(x), np.real(x))
    if x.dtype.kind == "c":
        size += np.einsum("pi,pi->p", np.imag(x), np.imag(x))
    rest = x[:, 1:]
    idle = ~(rest.any(axis=1) | (np.imag(alpha) != 0))
    # Where squares lose digits, what they stand for is far below the rounding of the matrix.
    idle |= size < np.finfo(size.dtype).tiny * 2.0**30
    beta = np.where(np.real(alpha) > 0, -1, 1) * np.sqrt(size)
    beta[idle] = 1
    v = x / np.where(idle, 1, alpha - beta)[:, None]
    v[:, 0] = 1
    v[idle] = 0
    tau = np.where(idle, 0, (beta - alpha) / beta).astype(x.dtype)
    return v, tau, np.where(idle, alpha, beta)
