"""Triangular systems by substitution, left-looking: two tasks for each tile of the solution.

The first, `W`, takes away what all known tiles contribute but the newest, so that it can run while that
one is solved: with few right sides, nothing else could run side by side. `singular` is there to refuse a
zero on the diagonal.

Forward for a lower triangle, backward for an upper one; everything else (a triangle on the
right, transposed, conjugated) is one of the two seen from another side.
"""
# pyright: reportInvalidTypeForm=false, reportIndexIssue=false

from __future__ import annotations

import numpy as np

from linnet.algorithms.recipe import Output, Recipe, only
from linnet.kernels.linalg.lu import arrange
from linnet.kernels.linalg.pivots import check_pivots, diagonal_of, order_of, row_numbers
from linnet.kernels.linalg.triangular import substitute, take_away
from linnet.programs import In, Out, Temp, tile_program
from linnet.tiles import Layout


@tile_program(verify=False)
def forward(T: In, B: In, X: Out, singular: Out, W: Temp, D: Temp, P: int, Q: int, unit: int):
    if unit == 0:
        for k in range(P):
            D[k] = diagonal_of(T[k, k])
        singular[0] = check_pivots(D[0:P], exchanges=False)
    for i in range(P):
        for j in range(Q):
            if i < 2:
                X[i, j] = substitute(T[i, i], B[i, j], T[i, 0:i], X[0:i, j], unit, lower=True)
            else:
                W[i, j] = take_away(B[i, j], T[i, 0 : i - 1], X[0 : i - 1, j])
                X[i, j] = substitute(T[i, i], W[i, j], T[i, i - 1 : i], X[i - 1 : i, j], unit, lower=True)


@tile_program(verify=False)
def backward(T: In, B: In, X: Out, singular: Out, W: Temp, D: Temp, P: int, Q: int, unit: int):
    if unit == 0:
        for k in range(P):
            D[k] = diagonal_of(T[k, k])
        singular[0] = check_pivots(D[0:P], exchanges=False)
    for i in range(P - 1, -1, -1):
        for j in range(Q):
            if i + 2 >= P:
                X[i, j] = substitute(T[i, i], B[i, j], T[i, i + 1 : P], X[i + 1 : P, j], unit, lower=False)
            else:
                W[i, j] = take_away(B[i, j], T[i, i + 2 : P], X[i + 2 : P, j])
                X[i, j] = substitute(
                    T[i, i], W[i, j], T[i, i + 1 : i + 2], X[i + 1 : i + 2, j], unit, lower=False
                )


@tile_program(verify=False)
def rows_in_order(B: In, V: In, X: Out, Z: Temp, O: Temp, P: int, Q: int, side: int, rows: int, back: int):
    """Rows of `B` as the exchanges `V` bring them; with `back`, as they were before."""
    for m in range(P):
        Z[m] = row_numbers(side * m, min(side, rows - side * m))
    O[0:P] = order_of(V[0], Z[0:P], back)
    for m in range(P):
        for n in range(Q):
            X[m, n] = arrange(B[0:P, n], Z[0:P], O[m])


def solution(
    layout: Layout, right: Layout, dtype: np.dtype[np.generic], *, lower: bool, unit: bool
) -> Recipe:
    """`X` with `T·X = B`. Tiles of the other half of `T` are not read."""
    return Recipe(
        "solve_triangular",
        ("T", "B"),
        (("X", Output(right, dtype)),),
        only(forward if lower else backward),
        (("P", layout.grid[0]), ("Q", right.grid[1]), ("unit", int(unit))),
        check=None if unit else "singular",
        halves=(("T", "lower" if lower else "upper"),),
    )


def exchanged_rows(layout: Layout, dtype: np.dtype[np.generic], *, back: bool) -> Recipe:
    """The rows of `B` after the exchanges `V`, or before them."""
    rows = layout.boundaries[0]
    sizes = {"P": layout.grid[0], "Q": layout.grid[1], "side": rows[1], "rows": rows[-1], "back": int(back)}
    outputs = (("X", Output(layout, dtype)),)
    return Recipe("exchange", ("B", "V"), outputs, only(rows_in_order), tuple(sizes.items()))
