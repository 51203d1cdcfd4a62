"""Products with structure: of a matrix with its adjoint, with a Hermitian matrix, with a triangle.

All are left-looking: each tile of the result is one task. What is symmetric is computed, and
triangles and Hermitian matrices are read, by half.
"""
# pyright: reportInvalidTypeForm=false, reportIndexIssue=false

from __future__ import annotations

import numpy as np

from linnet.algorithms.recipe import Output, Recipe, only
from linnet.kernels.linalg.triangular import adjoint_of, gram, herk
from linnet.kernels.linalg.triangular import symm as symmetric_row
from linnet.kernels.linalg.triangular import trmm as triangular_row
from linnet.programs import In, Out, tile_program
from linnet.tiles import Layout


@tile_program(verify=False)
def gram_matrix(A: In, C: Out, P: int, Q: int):
    assert Q >= 1
    for i in range(P):
        C[i, i] = herk(A[i, 0:Q])
        for j in range(i):
            C[i, j] = gram(A[i, 0:Q], A[j, 0:Q])
            C[j, i] = adjoint_of(C[i, j])


@tile_program(verify=False)
def hermitian_times(A: In, B: In, X: Out, P: int, Q: int):
    for i in range(P):
        for j in range(Q):
            X[i, j] = symmetric_row(A[i, i], B[i, j], A[i, 0:i], B[0:i, j], A[i + 1 : P, i], B[i + 1 : P, j])


@tile_program(verify=False)
def lower_times(T: In, B: In, X: Out, P: int, Q: int, unit: int):
    for i in range(P):
        for j in range(Q):
            X[i, j] = triangular_row(T[i, i], B[i, j], T[i, 0:i], B[0:i, j], unit, lower=True)


@tile_program(verify=False)
def upper_times(T: In, B: In, X: Out, P: int, Q: int, unit: int):
    for i in range(P):
        for j in range(Q):
            X[i, j] = triangular_row(T[i, i], B[i, j], T[i, i + 1 : P], B[i + 1 : P, j], unit, lower=False)


def gram_of(layout: Layout, dtype: np.dtype[np.generic]) -> Recipe:
    """`C`, which is `A·Aᴴ`."""
    edges = layout.boundaries[0]
    sizes = (("P", layout.grid[0]), ("Q", layout.grid[1]))
    return Recipe("syrk", ("A",), (("C", Output(Layout((edges, edges)), dtype)),), only(gram_matrix), sizes)


def hermitian_product(layout: Layout, right: Layout, dtype: np.dtype[np.generic]) -> Recipe:
    """`X`, which is `A·B`, for a Hermitian `A` of which the lower triangle is read."""
    sizes = (("P", layout.grid[0]), ("Q", right.grid[1]))
    outputs = (("X", Output(right, dtype)),)
    return Recipe("symm", ("A", "B"), outputs, only(hermitian_times), sizes, halves=(("A", "lower"),))


def triangular_product(
    layout: Layout, right: Layout, dtype: np.dtype[np.generic], *, lower: bool, unit: bool
) -> Recipe:
    """`X`, which is `T·B`, for a triangle `T`."""
    sizes = (("P", layout.grid[0]), ("Q", right.grid[1]), ("unit", int(unit)))
    program = lower_times if lower else upper_times
    outputs = (("X", Output(right, dtype)),)
    half = "lower" if lower else "upper"
    return Recipe("trmm", ("T", "B"), outputs, only(program), sizes, halves=(("T", half),))
