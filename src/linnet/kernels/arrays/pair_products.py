"""The sum of products of pairs of tiles, with named axes, on BLAS.

Each axis of a tile has a letter. By where a letter stands, it has one of four parts:

| letter in      | part   | in a matrix product        |
|----------------|--------|----------------------------|
| x, y and out   | batch  | one product for each value |
| x and out      | left   | rows                       |
| y and out      | right  | columns                    |
| x and y        | inner  | what is summed over        |

So every pair of tiles is a (stack of) matrix product(s), once the axes of a part lie one behind
the other. Where they do in memory, nothing is copied: transposes go to BLAS as flags, and the
order of the inner axes, which is free, is chosen so that they do if any order can. `Accumulation`
adds product after product into one result (`beta = 1` in BLAS), with no array for each.

NumPy's `matmul` is used where it does as well: for stacks of small matrices, vectors, and a matrix
times its own transpose, of which it computes one half (SYRK) by the newer BLAS that comes with it.

Without BLAS: a product with nothing to sum is one `np.multiply`; a stack of matrix-vector products
is bound by memory, and `np.einsum` reads the tiles in the order in which they lie; so do integers,
booleans and long doubles, for which there is no BLAS.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.machine.fortran import (
    address,
    is_fortran,
    multiply_into,
    operand,
)

Tile = NDArray[Any]
Extents = dict[str, tuple[int, int]]
"""From an axis' letter to its length and its stride in bytes."""

_BY_HAND = 96**3
"""A stack of products, each of fewer multiplications, goes to `np.matmul` in one call: calls of
BLAS from Python cost some ten microseconds each."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The letters of a pair of tiles, by the part they play."""

    swap: bool
    """Whether the two tiles change places, so that the last axis of the result is one of `right`."""
    x: str
    y: str
    batch: str
    left: str
    right: str
    inner: str
    out: str


@functools.lru_cache(maxsize=1024)
def parts(x: str, y: str, out: str) -> Parts:
    """How the letters of two tiles and of the result take part.

    >>> parts("bik", "bkj", "bij")
    Parts(swap=False, x='bik', y='bkj', batch='b', left='i', right='j', inner='k', out='bij')
    """
    swap = out[-1:] in set(x) - set(y) and any(letter not in x for letter in out)
    if swap:
        x, y = y, x
    return Parts(
        swap,
        x,
        y,
        batch="".join(c for c in out if c in x and c in y),
        left="".join(c for c in out if c not in y),
        right="".join(c for c in out if c not in x),
        inner="".join(c for c in x if c in y and c not in out),
        out=out,
    )


class Accumulation:
    """`Σ x·y` over pairs of tiles whose axes have the same letters.

    >>> total = Accumulation("ik", "kj", "ij", np.dtype("f8"))
    >>> total.add(np.ones((2, 3)), np.ones((3, 2)))
    >>> total.add(np.ones((2, 1)), np.ones((1, 2)))
    >>> total.result()
    array([[4., 4.],
           [4., 4.]])
    """

    def __init__(self, x: str, y: str, out: str, dtype: np.dtype[Any]) -> None:
        self._parts = parts(x, y, out)
        self._dtype = dtype
        self._blas = dtype.char in "fdFD"
        self._total: Tile | None = None
        self._axes = ""  # the letters of `_total`, in the order in which it lies
        self._lengths: dict[str, int] = {}
        self._fresh = True  # whether `_total` holds nothing yet
        self._spare: Tile | None = None

    def add(self, x: Tile, y: Tile) -> None:
        """Add the product of a pair."""
        names = self._parts
        if names.swap:
            x, y = y, x
        if self._blas:
            x, y = (tile if _plain(tile, self._dtype) else tile.astype(self._dtype) for tile in (x, y))
        of_x, of_y = _extents(x, names.x), _extents(y, names.y)
        self._check(of_x, of_y)
        if not names.inner:
            self._begin(names.out)
            # In the dtype of the sum: two narrow numbers may have a product that only it can hold.
            self._through(lambda into: np.multiply(*self._aligned(x, y), out=into, dtype=self._dtype))
        elif self._blas and not names.batch:
            self._matrices(x, y, of_x, of_y)
        elif self._blas and min(self._length(names.left), self._length(names.right)) > 1:
            self._stacks(x, y, of_x, of_y)
        else:
            self._begin(names.out)
            spec = f"{names.x},{names.y}->{names.out}"
            self._through(lambda into: np.einsum(spec, x, y, out=into, dtype=self._dtype))

    def result(self) -> Tile:
        """The sum, a new array, with its axes as `out` has them."""
        if self._total is None:
            raise ValueError("a sum of products needs at least one pair of tiles")
        if self._axes == self._parts.out:
            return self._total
        return self._total.transpose([self._axes.index(c) for c in self._parts.out])

    def _check(self, of_x: Extents, of_y: Extents) -> None:
        names = self._parts
        for letter in names.batch + names.inner:
            if of_x[letter][0] != of_y[letter][0]:
                raise ValueError(
                    f"the axis {letter!r} has length {of_x[letter][0]} in one tile and {of_y[letter][0]} "
                    f"in the other; they must be equal"
                )
        found = {c: (of_x[c] if c in of_x else of_y[c])[0] for c in names.out}
        if not self._lengths:
            self._lengths = found
        elif found != self._lengths:
            raise ValueError(f"products of one sum have one shape; got {self._lengths}, then {found}")

    def _length(self, letters: str) -> int:
        return math.prod(self._lengths[c] for c in letters)

    def _begin(self, axes: str) -> tuple[Tile, bool]:
        """The result, and whether it holds nothing yet."""
        self._fresh = self._total is None
        if self._total is None:
            self._axes = axes
            self._total = np.empty([self._lengths[c] for c in axes], self._dtype)
        return self._total, self._fresh

    def _through(self, compute: Callable[[Tile], object]) -> None:
        """Add what `compute` writes into an array like the result: the result itself, the first time."""
        total = self._total
        assert total is not None
        if self._fresh:
            compute(total)
        else:
            self._spare = np.empty_like(total) if self._spare is None else self._spare
            compute(self._spare)
            total += self._spare

    def _aligned(self, x: Tile, y: Tile) -> list[Tile]:
        """Both tiles with the axes of `out`, of length 1 where they have none."""
        found: list[Tile] = []
        for tile, letters in ((x, self._parts.x), (y, self._parts.y)):
            present = [c for c in self._parts.out if c in letters]
            turned = tile.transpose([letters.index(c) for c in present])
            found.append(turned[tuple(slice(None) if c in letters else None for c in self._parts.out)])
        return found

    def _matrices(self, x: Tile, y: Tile, of_x: Extents, of_y: Extents) -> None:
        names = self._parts
        left, right, inner = self._orders(of_x, of_y)
        total, first = self._begin(left + right)
        depth = math.prod(of_x[c][0] for c in inner)
        if depth == 0 or total.size == 0:
            if first:
                total[...] = 0
            return
        shape = (self._length(left), self._length(right))
        rows = _matrix(x, names.x, left, inner)
        if _same(x, of_x, left, y, of_y, right, inner):
            self._multiply(rows, rows.T, shape)
            return
        columns = _matrix(y, names.y, inner, right)
        if min(shape) == 1:
            self._multiply(rows, columns, shape)
        else:
            _product(total.reshape(shape), rows, columns, 0.0 if first else 1.0)

    def _multiply(self, a: Tile, b: Tile, shape: tuple[int, ...]) -> None:
        """Add `a @ b` by `np.matmul`, which knows a matrix times its own transpose, and vectors."""
        self._through(lambda into: np.matmul(a, b, out=into.reshape(shape)))

    def _orders(self, of_x: Extents, of_y: Extents) -> tuple[str, str, str]:
        """Orders of the left, right and inner axes in which most of the two tiles can stay where it lies."""
        names = self._parts
        if max(len(names.left), len(names.right), len(names.inner)) <= 1:
            return names.left, names.right, names.inner
        if self._total is not None:
            lefts, rights = [self._axes[: len(names.left)]], [self._axes[len(names.left) :]]
        else:
            lefts, rights = [names.left, _lying(of_x, names.left)], [names.right, _lying(of_y, names.right)]
        best: tuple[int, str, str, str] | None = None
        for inner in (_lying(of_x, names.inner), _lying(of_y, names.inner)):
            left, cost_x = _cheapest(of_x, lefts, inner)
            right, cost_y = _cheapest(of_y, rights, inner)
            if best is None or cost_x + cost_y < best[0]:
                best = (cost_x + cost_y, left, right, inner)
        assert best is not None
        return best[1:]

    def _stacks(self, x: Tile, y: Tile, of_x: Extents, of_y: Extents) -> None:
        names = self._parts
        inner = _lying(of_x, names.inner)
        xs = _stack(x, names.x, names.batch, names.left, inner)
        ys = _stack(y, names.y, names.batch, inner, names.right)
        total, first = self._begin(names.batch + names.left + names.right)
        shape = (self._length(names.batch), self._length(names.left), self._length(names.right))
        if xs.shape[2] == 0 or shape[1] * shape[2] * xs.shape[2] < _BY_HAND:
            self._multiply(xs, ys, shape)
        else:
            for one, a, b in zip(total.reshape(shape), xs, ys, strict=True):
                _product(one, a, b, 0.0 if first else 1.0)


def _plain(tile: Tile, dtype: np.dtype[Any]) -> bool:
    return tile.dtype == dtype and tile.dtype.isnative and tile.flags.aligned


def _extents(tile: Tile, letters: str) -> Extents:
    return {c: (n, step) for c, n, step in zip(letters, tile.shape, tile.strides, strict=True)}


def _lying(extents: Extents, letters: str) -> str:
    """The letters from the longest stride to the shortest: the order in which they may be merged."""
    if len(letters) <= 1:
        return letters
    return "".join(sorted(letters, key=lambda c: -extents[c][1]))


def _merge(extents: Extents, letters: str) -> bool:
    """Whether these axes, in this order, are one axis in memory."""
    within = -1
    for letter in reversed(letters):
        length, stride = extents[letter]
        if length == 1:
            continue
        if within not in (-1, stride):
            return False
        within = stride * length
    return True


def _cheapest(extents: Extents, orders: list[str], inner: str) -> tuple[str, int]:
    """The first order that needs no copy, or the first of all; and how many elements are copied."""
    if _merge(extents, inner):
        for order in orders:
            if _merge(extents, order):
                return order, 0
    return orders[0], math.prod(length for length, _ in extents.values())


def _matrix(tile: Tile, letters: str, rows: str, columns: str) -> Tile:
    """The tile as a matrix that BLAS takes as it lies or transposed; copied if there is no such view."""
    if len(rows) == len(columns) == 1:
        matrix = tile if letters[0] == rows else tile.T
    else:
        matrix = _merged(tile, letters, rows, columns)
    if is_fortran(matrix) or is_fortran(matrix.T):
        return matrix
    by_columns = abs(matrix.strides[0]) < abs(matrix.strides[1])
    return np.array(matrix, order="F" if by_columns else "C")


def _merged(tile: Tile, letters: str, *groups: str) -> Tile:
    """The tile with one axis for each group of letters; copied if there is no such view."""
    shape = [math.prod(tile.shape[letters.index(c)] for c in group) for group in groups]
    return tile.transpose([letters.index(c) for group in groups for c in group]).reshape(shape)


def _stack(tile: Tile, letters: str, batch: str, rows: str, columns: str) -> Tile:
    """The tile as a stack of matrices, each of which BLAS takes as it lies or transposed."""
    stack = _merged(tile, letters, batch, rows, columns)
    if not stack.size or is_fortran(stack[0]) or is_fortran(stack[0].T):
        return stack
    return np.ascontiguousarray(stack)


def _same(x: Tile, of_x: Extents, left: str, y: Tile, of_y: Extents, right: str, inner: str) -> bool:
    """Whether `y` is `x` transposed: the same memory, read with the same steps."""
    return (
        len(left) == len(right) > 0
        and address(x) == address(y)
        and all(of_x[a] == of_y[b] for a, b in zip(left + inner, right + inner, strict=True))
    )


def _product(result: Tile, a: Tile, b: Tile, beta: float) -> None:
    """`result ← A·B + beta·result`, where `result` has contiguous rows."""
    dtype = result.dtype
    multiply_into(result.T, operand(b.T, dtype), operand(a.T, dtype), a.shape[1], 1.0, beta)
