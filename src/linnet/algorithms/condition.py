"""Whether a solution can be trusted: the condition of its matrix, estimated while the system is solved.

Two columns `Z` of normal numbers are solved along with the right side. The mean of `‖A⁻¹·z‖²` is
`‖A⁻¹‖²` (Frobenius), so `‖A⁻¹·Z‖` tells how large the inverse is, whatever the pivots look like; it is
ten times too small for one matrix in 150. LAPACK's `gecon` solves with the factors and their
transposes several times after the fact, and would read all of them as often, which takes a tenth of the
time of the factorisation. Two columns more cost next to nothing.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.tiles import Layout, TiledArray

Array = NDArray[Any]

PROBES = 2
"""Columns that are solved for the estimate."""
_SCREEN = 1e-2
"""Share of 1/√eps below which the largest pivot times the inverse need not be looked into further: what
makes a matrix large beside its pivots makes its inverse as large."""
_DIGITS = 0.1
"""Share of 1/eps from which hardly a digit of a solution is right."""


class ConditionWarning(RuntimeWarning):
    """A system was solved whose matrix is singular to working precision."""


def probes(rows: int, dtype: np.dtype[Any]) -> Array:
    """The columns to solve: the same for every matrix of a size.

    >>> probes(3, np.dtype("f4")).shape
    (3, 2)
    """
    return np.random.default_rng(rows).standard_normal((rows, PROBES)).astype(dtype)


def with_probes(right: TiledArray, dtype: np.dtype[Any]) -> TiledArray:
    """A right side with the probes as its last columns, in its last tiles; `dtype` is that of the solution.

    >>> with_probes(TiledArray.from_numpy(np.ones((3, 2)), 2), np.dtype("f8"))
    TiledArray(shape=(3, 4), dtype=float64, grid=2×1)
    """
    rows, columns = right.layout.boundaries
    extra = probes(rows[-1], dtype)
    last = right.grid[1] - 1
    tiles = {index: right.tile(index) for index in right.layout.indices()}
    for i in range(right.grid[0]):
        tiles[i, last] = np.hstack([tiles[i, last], extra[rows[i] : rows[i + 1]]])
    return TiledArray(Layout((rows, (*columns[:-1], columns[-1] + PROBES))), dtype, tiles)


def without_probes(solution: TiledArray) -> tuple[TiledArray, float]:
    """A solution without the columns of the probes, and the size of the inverse that these tell."""
    rows, columns = solution.layout.boundaries
    last = solution.grid[1] - 1
    tiles = dict(solution.tiles)
    ends: list[Array] = []
    for i in range(solution.grid[0]):
        whole = tiles[i, last]
        tiles[i, last], end = whole[:, :-PROBES], whole[:, -PROBES:]
        ends.append(end)
    layout = Layout((rows, (*columns[:-1], columns[-1] - PROBES)))
    return TiledArray(layout, solution.dtype, tiles), length(ends) / math.sqrt(PROBES)


def length(tiles: Iterable[Array]) -> float:
    """The Frobenius norm of a matrix in pieces; no square of an element is out of range.

    >>> round(length([np.array([[3e200]]), np.array([[4e200]])]) / 1e200, 12)
    5.0
    """
    parts: list[float] = []
    for tile in tiles:
        largest = float(np.abs(tile).max(initial=0.0))
        inside = 0.0 < largest < np.inf
        parts.append(largest * float(np.linalg.norm(tile / largest)) if inside else largest)
    return math.hypot(*parts)


def warn_if_singular(pivots: Array, inverse: float, matrix: Iterable[Array], dtype: np.dtype[Any]) -> None:
    """Warn of a matrix whose solutions have hardly a correct digit.

    `inverse` is the size of its inverse, `matrix` its tiles: read only if need be.
    """
    eps = float(np.finfo(dtype).eps)
    largest = float(np.abs(pivots).max(initial=0.0))
    if largest * inverse < _SCREEN / math.sqrt(eps):
        return
    condition = length(matrix) * inverse / math.sqrt(len(pivots))
    if not condition >= _DIGITS / eps:  # nor if it is not a number
        return
    warnings.warn(
        f"the matrix is singular to working precision: its condition number is about {condition:.1e}, "
        "so the solution may have no correct digit",
        ConditionWarning,
        stacklevel=4,
    )
