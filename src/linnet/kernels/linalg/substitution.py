"""Triangular systems by halves: substitution in small triangles, products for all the rest.

BLAS has `trsm` for the whole of it, but its kernels for triangles are old ones: on a processor with
512-bit vectors a core does 25 GFLOP/s in OpenBLAS's, and 70 in products. Halving leaves it only the
triangles on the diagonal, where it does 8; those are compiled (35), if a compiler was there. Nothing is
inverted but the diagonal, as in BLAS: errors are those of substitution.
"""

from __future__ import annotations

from linnet.kernels import compiled
from linnet.machine.fortran import Matrix, address, integer, leading, multiply_into, routine, scalar

_LEAF = 64
"""Unknowns that `trsm` gets in one piece."""
_COMPILED_LEAF = 128
"""Unknowns that the compiled substitution gets: triangle and right sides fit into the nearer caches."""
_NARROW = 64
"""Right sides that are fewer gain nothing from products."""


def solve_triangle(
    side: bytes, half: bytes, operation: bytes, diagonal: bytes, triangle: Matrix, x: Matrix
) -> None:
    """Overwrite `X` with `op(T)⁻¹·X` (side "L") or `X·op(T)⁻¹` ("R"), as `trsm` does.

    Both matrices are Fortran-ordered; of `T` only one half is read, and with the diagonal "U" that
    counts as ones.

    >>> import numpy as np
    >>> x = np.array([[2.0], [5.0]], order="F")
    >>> solve_triangle(b"L", b"L", b"N", b"N", np.array([[2.0, 0.0], [3.0, 1.0]], order="F"), x)
    >>> x
    array([[1.],
           [2.]])
    """
    unknowns, sides = x.shape if side == b"L" else x.shape[::-1]
    if not (unknowns and sides):
        return
    if sides < _NARROW:
        _trsm(side, half, operation, diagonal, triangle, x)
        return
    library = compiled.substitutes() if x.dtype.kind == "f" else None
    leaf = _LEAF if library is None else _COMPILED_LEAF
    if unknowns > leaf:
        middle = -(-unknowns // (2 * leaf)) * leaf
        low, high = slice(None, middle), slice(middle, unknowns)
        lower = (half == b"L") == (operation == b"N")
        first, then = (low, high) if lower == (side == b"L") else (high, low)
        known, rest = (x[first], x[then]) if side == b"L" else (x[:, first], x[:, then])
        corner = operation, triangle[high, low] if half == b"L" else triangle[low, high]
        solve_triangle(side, half, operation, diagonal, triangle[first, first], known)
        left, right = (corner, (b"N", known)) if side == b"L" else ((b"N", known), corner)
        multiply_into(rest, left, right, len(triangle[first]), -1.0, 1.0)
        solve_triangle(side, half, operation, diagonal, triangle[then, then], rest)
    elif library is None:
        _trsm(side, half, operation, diagonal, triangle, x)
    else:
        # X·T = B is Tᵀ·Xᵀ = Bᵀ, and an upper triangle a lower one from its end.
        item = x.itemsize
        turned = (operation == b"N") == (side == b"R")
        t_down, t_right = (each // item for each in (triangle.strides[::-1] if turned else triangle.strides))
        x_down, x_right = (each // item for each in (x.strides if side == b"L" else x.strides[::-1]))
        t_start, x_start = address(triangle), address(x)
        if (half == b"L") == turned:
            t_start += (unknowns - 1) * (t_down + t_right) * item
            x_start += (unknowns - 1) * x_down * item
            t_down, t_right, x_down = -t_down, -t_right, -x_down
        system = compiled.Substitution(
            ord(x.dtype.char), unknowns, sides, diagonal == b"U",
            t_down, t_right, x_down, x_right, t_start, x_start,
        )  # fmt: skip
        compiled.run_substitution(library, system, item)


def _trsm(side: bytes, half: bytes, operation: bytes, diagonal: bytes, triangle: Matrix, x: Matrix) -> None:
    code = x.dtype.char
    routine("trsm", code)(
        side, half, operation, diagonal, integer(x.shape[0]), integer(x.shape[1]), scalar(1.0, code),
        address(triangle), leading(triangle), address(x), leading(x),
    )  # fmt: skip
