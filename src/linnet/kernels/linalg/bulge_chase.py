"""The bulge chase: from a band to a bidiagonal (SVD) or a tridiagonal (Hermitian) matrix.

A sweep makes one row bidiagonal with a reflector; what that spoils (the bulge) is pushed down the
band by further reflectors, a step of `b` (the width of the band) each. A few sweeps go down together,
each two steps behind the one before it, so that the part of the band they work on stays in cache.

The chase is compiled where a compiler was there (`compiled`), and then runs on as many threads as
BLAS may use; `_Walker` is the same in Python. The reflectors are kept. Applied to the vectors of the
small problem in blocks (`diamonds`), they cost two matrix products; rotations, as LAPACK's `sbtrd` and
`gbbrd` use them, cost ten times that.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from linnet.errors import MatrixError
from linnet.kernels import compiled
from linnet.machine.fortran import Matrix, address, integer, routine, scalar
from linnet.machine.large_arrays import zeros

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Sweeps:
    """The reflectors `I − tau·v·vᴴ` of a chase, in the order of sweeps, then steps."""

    v: Array
    """Sweeps × steps × width of the band: the vectors, first element 1 (all zero where a sweep has ended)."""
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


_TOGETHER = 4
"""Sweeps that go down the band together, in Python."""


class Band:
    """An upper band matrix with room for the bulge, and zeros around it so that no block is ragged."""

    def __init__(self, size: int, width: int, dtype: np.dtype[Any]) -> None:
        self.size = size
        self.width = width
        row = 3 * width + 1
        before, after = 2 * width, 3 * width
        self.flat = zeros((size + before + after) * row, dtype)
        self.origin: int = before * row + width
        """Where the first element of the matrix is in `flat`."""
        self.down: int = row - 1
        """How far apart in `flat` elements of a column are; those of a row are neighbours."""
        self.dtype = dtype

    def block(self, at: tuple[int, int], shape: tuple[int, int], count: int = 1, step: int = 0) -> Array:
        """`count` blocks whose corners lie `step` apart along the diagonal, the first `at` a place."""
        item = self.flat.itemsize
        start = self.origin + at[0] * self.down + at[1]
        strides = (step * (self.down + 1) * item, self.down * item, item)
        return as_strided(self.flat[start:], (count, *shape), strides)

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
        largest = float(np.abs(self.flat).max(initial=0.0))
        if not np.isfinite(largest):
            raise MatrixError("the matrix has elements that are not finite (inf or nan); remove them first")
        if largest == 0.0:
            return 1.0
        exponent = int(np.clip(np.frexp(largest)[1], -1000, 1000))
        real = np.real(self.flat).dtype.type
        for part in (exponent // 2, exponent - exponent // 2):  # 2**-exponent alone may be out of range
            self.flat *= real(np.ldexp(1.0, -part))
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
    library = compiled.library()
    if library:
        _run(library, band, hermitian, left, right)
    else:
        _walk(band, hermitian, left, right)
    return Chased(np.real(band.diagonal(0)) * back, np.real(band.diagonal(1)) * back, left, right)


def chased_values(band: Band, *, hermitian: bool) -> tuple[Array, Array] | None:
    """The diagonals `chase` gives, of a band that is rescaled; None where the chase is not compiled.

    Reflectors are not kept. LAPACK's rotations, which keep none either, are faster than walking in Python.
    """
    library = compiled.library()
    if not library:
        return None
    _run(library, band, hermitian, None, None)
    return np.real(band.diagonal(0)).copy(), np.real(band.diagonal(1)).copy()


def _run(
    library: ctypes.CDLL, band: Band, hermitian: bool, left: Sweeps | None, right: Sweeps | None
) -> None:
    """The compiled chase, on as many threads as BLAS may use now."""
    chase = compiled.Chase(
        type=ord(band.dtype.char), hermitian=hermitian, size=band.size, width=band.width,
        first=int(hermitian), steps=right.tau.shape[1] if right else 0, down=band.down,
        origin=address(band.flat) + band.origin * band.dtype.itemsize,
    )  # fmt: skip
    if left and right:
        chase.left_v, chase.left_tau = address(left.v), address(left.tau)
        chase.right_v, chase.right_tau = address(right.v), address(right.tau)
    compiled.run_chase(library, chase, band.dtype.itemsize)


def _walk(band: Band, hermitian: bool, left: Sweeps, right: Sweeps) -> None:
    """The chase in Python."""
    n, b, first, sweeps = band.size, band.width, right.first, len(right.tau)
    if hermitian:
        band.mirror()
    for kept in (left, right):
        kept.v[:, :, 0] = 1
    walker = _Walker(band, hermitian, left, right)
    for group in range(0, sweeps, _TOGETHER):
        last = min(group + _TOGETHER, sweeps) - 1
        longest = -(-(n - first - group) // b)
        for moment in range(longest + 2 * (last - group)):
            for sweep in range(group, last + 1):
                step = moment - 2 * (sweep - group)
                if step >= 0 and first + sweep + step * b < n:
                    walker.step(sweep, step)
    for kept in (left, right)[: 1 if hermitian else 2]:
        if kept.v.dtype.kind == "c":
            np.conjugate(kept.v, out=kept.v)
            np.conjugate(kept.tau, out=kept.tau)


def _room(sweeps: int, steps: int, b: int, first: int, n: int, dtype: np.dtype[Any]) -> Sweeps:
    return Sweeps(zeros((sweeps, steps, b), dtype), np.zeros((sweeps, steps), dtype), first, n)


class _Walker:
    """One step of one sweep at a time, on LAPACK.

    The band is stored by rows, so LAPACK sees its transpose: a reflector of columns is applied from
    the left, one of rows from the right, and both are conjugates of those that are meant. All is done
    by address, because a step takes microseconds and making a view takes as long.
    """

    def __init__(self, band: Band, hermitian: bool, left: Sweeps, right: Sweeps) -> None:
        self._hermitian = hermitian
        b, code = band.width, band.dtype.char
        self._width, self._item = b, band.dtype.itemsize
        self._row = band.down * self._item
        self._corner = address(band.flat) + (band.origin + right.first * (band.down + 1)) * self._item
        self._steps = right.tau.shape[1]
        self._right = (address(right.v), address(right.tau), right.tau)
        self._left = (address(left.v), address(left.tau), left.tau)
        self._conjugate = routine("lacgv", code) if band.dtype.kind == "c" else None
        self._make, self._apply = routine("larfg", code), routine("larf", code)
        self._copy, self._clear = routine("lacpy", code), routine("laset", code)
        self._zero = scalar(0.0, code)
        self._work, self._weight = np.empty(2 * b, band.dtype), np.empty(1, band.dtype)
        self._at_work, self._at_weight = address(self._work), address(self._weight)
        self._one, self._b, self._down = integer(1), integer(b), integer(band.down)
        self._less, self._most, self._twice = integer(b - 1), integer(2 * b - 1), integer(2 * b)

    def step(self, sweep: int, step: int) -> None:
        """Clear a row with a reflector of columns, then a column with one of rows."""
        b, item, row = self._width, self._item, self._row
        corner = self._corner + (sweep + step * b) * (row + item)
        place = sweep * self._steps + step
        if self._hermitian:
            # The window has moved by one: its last row is known only as its last column.
            bottom = corner + (b - 1) * row
            self._copy(b"A", self._one, self._less, corner + (b - 1) * item, self._down, bottom, self._one)
            if self._conjugate:
                self._conjugate(self._less, bottom, self._one)
        at_v, at_tau, taus = self._right
        v, tau = at_v + place * b * item, at_tau + place * item
        own = corner - row * (b if step else 1)
        self._make(self._b, own, own + item, self._one, tau)
        self._copy(b"A", self._less, self._one, own + item, self._b, v + item, self._b)
        self._clear(b"A", self._less, self._one, self._zero, self._zero, own + item, self._b)
        weight = tau
        if self._conjugate:
            self._weight[0] = taus[sweep, step].conjugate()
            weight = self._at_weight
        # Above the window, only rows that the sweep has passed have elements here.
        rows, at = (self._most, corner - (b - 1) * row) if step else (self._b, corner)
        self._apply(b"L", self._b, rows, v, self._one, weight, at, self._down, self._at_work)
        columns, at = self._twice, corner
        if not self._hermitian:
            at_v, at_tau, _ = self._left
            v, tau = at_v + place * b * item, at_tau + place * item
            if self._conjugate:
                self._conjugate(self._b, corner, self._down)
            below = corner + row
            self._make(self._b, corner, below, self._down, tau)
            self._copy(b"A", self._one, self._less, below, self._down, v + item, self._one)
            self._clear(b"A", self._one, self._less, self._zero, self._zero, below, self._down)
            columns, at = self._most, corner + item
        self._apply(b"R", columns, self._b, v, self._one, tau, at, self._down, self._at_work)
