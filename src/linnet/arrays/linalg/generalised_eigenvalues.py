"""Hermitian eigenproblems of two matrices, as those of one.

With B = L·Lᴴ the problem A·z = λ·B·z is that of L⁻¹·A·L⁻ᴴ, whose eigenvectors are Lᴴ·z; A·B·z = λ·z and
B·A·z = λ·z are that of Lᴴ·A·L. This is what LAPACK's `sygst` does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linnet.arrays.linalg.factorisations import cholesky
from linnet.arrays.linalg.linear_systems import solve_triangular
from linnet.arrays.linalg.matrices import adjoint, floating
from linnet.errors import InputError, LinAlgError


def reduced(a: Any, b: Any, kind: int, tile: int | None) -> tuple[Any, Any]:
    """The matrix with the same eigenvalues, and L; the lower triangles of `a` and `b` are read."""
    if kind not in (1, 2, 3):
        raise InputError(
            f"type={kind!r} is not known; 1 is a·z = λ·b·z, 2 is a·b·z = λ·z, and 3 is b·a·z = λ·z"
        )
    if a.shape != b.shape:
        raise LinAlgError(f"a and b must have the same shape, got {a.shape} and {b.shape}")
    a, b = floating(a, b), floating(b, a)
    factor = cholesky(b, tile=tile)
    # The other triangle may hold anything, and so may the imaginary parts of the diagonal.
    below = np.tril(a, -1)
    whole = below + adjoint(below) + np.tril(np.triu(a)).real
    if kind == 1:
        half = solve_triangular(factor, whole, lower=True, tile=tile)
        return solve_triangular(factor, half, lower=True, trans="C", side="right", tile=tile), factor
    return adjoint(factor) @ whole @ factor, factor


def restored(vectors: Any, factor: Any, kind: int, tile: int | None) -> Any:
    """The eigenvectors of two matrices, from those of the one they were reduced to."""
    if kind == 3:
        return factor @ vectors
    return solve_triangular(factor, vectors, lower=True, trans="C", tile=tile)
